//! The placement of buffers, copies that overlap kernels, and the errors of queues.

use std::sync::{Arc, Mutex};

use headstart::device::sim::Simulator;
use headstart::device::{Allocation, Command, Device, Queue, Telling, Times, TypedBuffer};
use headstart::prelude::*;

use crate::agree::{devices, lowers};
use crate::conformance::Feature;

/// Adds a number, `rounds` times.
#[kernel]
fn adds(values: &mut [u32], rounds: u32) {
    let mut sum = values[global_id()];
    for round in 0..rounds {
        sum = sum.wrapping_mul(3).wrapping_add(round);
    }
    values[global_id()] = sum;
}

/// What [`adds`] makes of a number.
fn added(start: u32, rounds: u32) -> u32 {
    (0..rounds).fold(start, |sum, round| sum.wrapping_mul(3).wrapping_add(round))
}

/// The simulator of a device, which tells times.
fn timed(name: &str) -> Simulator {
    Simulator::new(name).expect("a built-in model")
}

/// Kernels read and write every kind; the host reaches its own and the shared kind at once, and not the device's.
fn every_kind_on(device: &dyn Device, kinds: &[Allocation]) {
    let queue = device.queue().expect("a queue");
    let compiled = adds::compile(device).expect("compiles");
    let numbers: Vec<u32> = (0..256).map(|i| i * 7).collect();
    for &kind in kinds {
        let mut values = TypedBuffer::from_slice_as(device, kind, &numbers).expect("fits");
        assert_eq!(values.buffer().allocation(), kind);
        let launch = |values: &mut TypedBuffer<u32>| {
            let event = compiled.launch(&*queue, Geometry::new(4, 64), adds::arguments(values, 5));
            event
                .wait()
                .unwrap_or_else(|error| panic!("{}: {error}", kind.name()))
        };
        launch(&mut values);
        let mut expected: Vec<u32> = numbers.iter().map(|&number| added(number, 5)).collect();
        assert_eq!(
            values.read(&*queue).expect("written"),
            expected,
            "{}",
            kind.name()
        );
        if kind == Allocation::Device {
            for error in [
                values.get(0).map(drop),
                values.set(0, &[1]),
                values.to_vec().map(drop),
            ] {
                let error = error.expect_err("it lies elsewhere").to_string();
                assert!(error.contains("the host cannot reach"), "{error}");
            }
            continue;
        }
        // What the host writes the next kernel sees, and the other way round.
        assert_eq!(values.to_vec().expect("the host sees it"), expected);
        values.set(3, &[1000, 2000]).expect("there is room");
        expected[3..5].copy_from_slice(&[1000, 2000]);
        launch(&mut values);
        expected = expected.iter().map(|&number| added(number, 5)).collect();
        assert_eq!(
            values.to_vec().expect("the host sees it"),
            expected,
            "{}",
            kind.name()
        );
        assert_eq!(values.get(4).expect("there"), added(2000, 5));
        assert!(values.set(255, &[1, 2]).is_err() && values.get(256).is_err());
    }
}

#[test]
fn buffers_lie_on_the_device_the_host_or_both() {
    for device in devices() {
        // Managed memory is not asked of a GPU here: `HEADSTART_MANAGED=1` does.
        let is_gpu = device.description().name.starts_with("cuda");
        let managed = std::env::var_os("HEADSTART_MANAGED").is_some();
        let kinds: Vec<Allocation> = Allocation::ALL
            .into_iter()
            .filter(|&kind| kind != Allocation::Shared || !is_gpu || managed)
            .collect();
        every_kind_on(&*device, &kinds);
    }
    // Unwritten elements are noticed by the host, too.
    let device = Simulator::untimed();
    let nothing = TypedBuffer::<u32>::uninitialized_as(&device, Allocation::Host, 4).expect("fits");
    assert!(nothing.get(1).is_err());
    lowers(adds::kernel());
}

/// Copies blocks in, works on each, and copies it out: a queue for each way, ordered by events. The times of the copies
/// in, the kernels and the copies out, and what came out.
fn pipeline(
    device: &dyn Device,
    blocks: usize,
    length: u64,
    rounds: u32,
) -> (Vec<[Times; 3]>, Vec<Vec<u32>>) {
    let [inward, work, outward] = [(), (), ()].map(|()| device.queue().expect("a queue"));
    let compiled = adds::compile(device).expect("compiles");
    let numbers = |block: usize| -> Vec<u32> { (0..length).map(|i| i as u32 + block as u32).collect() };
    let on_host =
        |block| TypedBuffer::from_slice_as(device, Allocation::Host, &numbers(block)).expect("fits");
    let sources: Vec<_> = (0..blocks).map(on_host).collect();
    let mut targets: Vec<TypedBuffer<u32>> = (0..blocks)
        .map(|_| TypedBuffer::uninitialized_as(device, Allocation::Host, length).expect("fits"))
        .collect();
    let mut middles: Vec<TypedBuffer<u32>> = (0..blocks)
        .map(|_| TypedBuffer::uninitialized(device, length).expect("fits"))
        .collect();
    let geometry = Geometry::new((length / 128) as u32, 128);
    let events: Vec<_> = sources
        .iter()
        .zip(&mut middles)
        .zip(&mut targets)
        .map(|((source, middle), target)| {
            let copied = source.copy_to(middle, &*inward, &[]);
            let ran = compiled.launch_after(
                &*work,
                geometry,
                adds::arguments(middle, rounds),
                std::slice::from_ref(&copied),
            );
            let out = middle.copy_to(target, &*outward, std::slice::from_ref(&ran));
            [copied, ran, out]
        })
        .collect();
    let times = events
        .iter()
        .map(|events| {
            events.each_ref().map(|event| match event.wait() {
                Ok(outcome) => outcome.times,
                Err(error) => panic!("{error}"),
            })
        })
        .collect();
    let found = targets
        .iter()
        .map(|target| target.to_vec().expect("the host sees it"))
        .collect();
    (times, found)
}

#[test]
fn copies_run_beside_kernels() {
    let (blocks, length, rounds) = (4, 1 << 16, 400);
    let device = timed("h200");
    let (times, found) = pipeline(&device, blocks, length, rounds);
    for (block, found) in found.iter().enumerate() {
        let expected = (0..length).map(|i| added(i as u32 + block as u32, rounds));
        assert!(found.iter().copied().eq(expected), "block {block}");
    }
    for [copied, ran, out] in &times {
        for times in [copied, ran, out] {
            assert!(times.submitted_ns <= times.started_ns && times.started_ns < times.ended_ns);
        }
        assert!(copied.ended_ns <= ran.started_ns && ran.ended_ns <= out.started_ns);
    }
    // The next block comes in, and the last one goes out, while a kernel runs.
    for pair in times.windows(2) {
        assert!(pair[1][0].overlap_ns(&pair[0][1]) > 0.0, "{times:?}");
        assert!(pair[0][2].overlap_ns(&pair[1][1]) > 0.0, "{times:?}");
    }
    // All of it takes less than its parts one after the other, and no less than the cores are busy.
    let end = times
        .iter()
        .flatten()
        .map(|times| times.ended_ns)
        .fold(0.0, f64::max);
    let sum: f64 = times.iter().flatten().map(Times::elapsed_ns).sum();
    let busy: f64 = times.iter().map(|[_, ran, _]| ran.elapsed_ns()).sum();
    println!("4 blocks: {end:.0} ns, {sum:.0} one after the other, kernels {busy:.0}");
    assert!(end < sum && end > busy, "{end} {sum} {busy}");
    // The same times in every run, whatever the threads do.
    assert_eq!(pipeline(&timed("h200"), blocks, length, rounds).0, times);
    // A queue without an order of its own does the same; and one in order does one thing after the other.
    let queue = device.queue().expect("a queue");
    let source = TypedBuffer::from_slice_as(&device, Allocation::Host, &[1u32; 1024]).expect("fits");
    let mut middle = TypedBuffer::uninitialized(&device, 1024).expect("fits");
    let events = [
        source.copy_to(&mut middle, &*queue, &[]),
        source.copy_to(&mut middle, &*queue, &[]),
    ];
    let [first, second] = events.map(|event| event.wait().expect("copies").times);
    assert!(first.ended_ns <= second.started_ns);
    // The host waited for the pipeline, so these came later.
    assert!(first.submitted_ns >= end, "{first:?} {end}");
}

#[test]
fn copies_run_beside_kernels_on_a_gpu() {
    let device = match headstart::device::cuda::device::CudaDevice::open(0) {
        Ok(device) => device,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let (blocks, length, rounds) = (6, 1 << 24, 4000);
    // Other programs on the GPU, including other tests, delay launches: one undisturbed pipeline suffices.
    let mut all = Vec::new();
    for _ in 0..8 {
        let (times, found) = pipeline(&device, blocks, length, rounds);
        for (block, found) in found.iter().enumerate() {
            for at in [0, 1, length / 2, length - 1] {
                assert_eq!(
                    found[at as usize],
                    added(at as u32 + block as u32, rounds),
                    "block {block}"
                );
            }
        }
        if overlaps(&times, (length * 4) as f64) {
            return;
        }
        all.push(times);
    }
    panic!("no copy was beside a kernel: {all:?}");
}

/// Whether a pipeline's blocks came in beside kernels, and all took less than its parts one after the other.
fn overlaps(times: &[[Times; 3]], bytes: f64) -> bool {
    let overlap: f64 = times
        .windows(2)
        .map(|pair| pair[1][0].overlap_ns(&pair[0][1]))
        .sum();
    let start = times
        .iter()
        .flatten()
        .map(|times| times.started_ns)
        .fold(f64::MAX, f64::min);
    let end = times
        .iter()
        .flatten()
        .map(|times| times.ended_ns)
        .fold(0.0, f64::max);
    let sum: f64 = times.iter().flatten().map(Times::elapsed_ns).sum();
    let rate = |which: usize| {
        let fastest = times
            .iter()
            .map(|times| times[which].elapsed_ns())
            .fold(f64::MAX, f64::min);
        bytes / fastest
    };
    println!(
        "{} blocks of {} MiB: {:.2} ms, {:.2} ms one after the other; kernel {:.2} ms; pinned copies in {:.1} GB/s, \
         out {:.1} GB/s; copies in beside kernels for {:.2} ms",
        times.len(),
        bytes as u64 >> 20,
        (end - start) * 1e-6,
        sum * 1e-6,
        times[0][1].elapsed_ns() * 1e-6,
        rate(0),
        rate(2),
        overlap * 1e-6,
    );
    overlap > 0.0 && end - start < 0.9 * sum
}

#[test]
fn copies_are_checked() {
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let mut values = TypedBuffer::from_slice(&device, &[1u32, 2, 3, 4]).expect("fits");
    let copy = |from_offset, to_offset, length| {
        let command = Command::Copy {
            from: values.buffer().clone(),
            from_offset,
            to: values.buffer().clone(),
            to_offset,
            length,
        };
        queue.submit(command, &[]).wait().map(drop)
    };
    copy(0, 8, 8).expect("apart");
    assert!(
        copy(0, 4, 8)
            .expect_err("overlaps")
            .to_string()
            .contains("overlaps itself")
    );
    assert!(
        copy(0, 12, 8)
            .expect_err("outside")
            .to_string()
            .contains("outside a buffer")
    );
    assert!(copy(u64::MAX, 0, 8).is_err());
    assert_eq!(values.read(&*queue).expect("written"), [1, 2, 1, 2]);
    let three = TypedBuffer::from_slice(&device, &[7u32; 3]).expect("fits");
    let error = three
        .copy_to(&mut values, &*queue, &[])
        .wait()
        .expect_err("others");
    assert!(error.to_string().contains("as many"), "{error}");
    assert_eq!(values.read_part(&*queue, 1, 2, &[]).expect("there"), [2, 1]);
    assert!(values.read_part(&*queue, 3, 2, &[]).is_err());
}

#[test]
fn a_queue_tells_of_its_errors() {
    let told = |device: &dyn Device| {
        let errors = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&errors);
        let tell = move |error: &headstart::Error| list.lock().expect("no panic").push(error.to_string());
        let queue = Telling::new(device.queue().expect("a queue"), tell);
        let compiled = adds::compile(device).expect("compiles");
        let mut values = TypedBuffer::from_slice(device, &[1u32; 64]).expect("fits");
        let launch = |queue: &dyn Queue, group: u32, values: &mut TypedBuffer<u32>| {
            compiled.launch(queue, Geometry::new(1, group), adds::arguments(values, 1))
        };
        // These events are dropped.
        launch(&queue, 64, &mut values);
        let wrong = launch(&queue, 1 << 16, &mut values);
        let error = queue.finish().expect_err("too large a group").to_string();
        assert_eq!(error, wrong.wait().expect_err("the same").to_string());
        launch(&queue, 1 << 17, &mut values);
        launch(&queue, 64, &mut values);
        // The queue goes on, and its errors come once.
        assert!(queue.finish().is_err());
        launch(&queue, 64, &mut values);
        queue.finish().expect("it was told of the others before");
        assert_eq!(
            values.read(&queue).expect("ran three times"),
            [added(1, 1) * 9; 64]
        );
        let errors = errors.lock().expect("no panic").clone();
        assert_eq!(errors.len(), 2);
        assert!(
            errors[0].contains("65536") && errors[1].contains("131072"),
            "{errors:?}"
        );
    };
    devices().iter().for_each(|device| told(&**device));
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "device, host and shared allocations",
        spelled: "`TypedBuffer::from_slice_as(&device, Allocation::Host, &values)`, `values.get(3)`",
        kernel: adds::kernel,
        test: buffers_lie_on_the_device_the_host_or_both,
    },
    Feature {
        name: "copies beside kernels, with times",
        spelled: "`source.copy_to(&mut target, &*queue, &[event])`, `times.overlap_ns(…)`",
        kernel: adds::kernel,
        test: copies_run_beside_kernels,
    },
    Feature {
        name: "errors of a queue",
        spelled: "`Telling::new(queue, handler)`, `queue.finish()?`",
        kernel: adds::kernel,
        test: a_queue_tells_of_its_errors,
    },
];
