//! The host's side: ranges whose work-groups the runtime picks, queues without an order, libraries, constants.

use headstart::device::sim::Simulator;
use headstart::device::{Cache, Library, OutOfOrder, TypedBuffer};
use headstart::prelude::*;
use headstart::runtime::launch::Compiled;

use crate::agree::{devices, lowers};
use crate::conformance::Feature;

/// Positions and sizes of the launch, in three dimensions, and an early return.
#[kernel]
fn positions(result: &mut [u32]) {
    let (x, y, z) = (global_id(), global_id_y(), global_id_z());
    let at = (z * 5 + y) * 70 + x;
    if at % 7 == 0 {
        result[at] = 1_000_000;
        return;
    }
    result[at] = (x + 100 * y + 10_000 * z + global_size()) as u32;
}

#[test]
fn exactly_the_range_runs() {
    let expected: Vec<u32> = (0..70 * 5 * 3)
        .map(|at| match at % 7 {
            0 => 1_000_000,
            _ => at % 70 + 100 * (at / 70 % 5) + 10_000 * (at / 350) + 70,
        })
        .collect();
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let over_range = positions::over_range(&*device).expect("compiles");
        let mut whole = TypedBuffer::<u32>::uninitialized(&*device, 1050).expect("fits");
        let event = over_range.launch(&*queue, [70, 5, 3], positions::arguments(&mut whole));
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(whole.read(&*queue).expect("all is written"), expected);
        // In two parts, which two devices could run.
        let mut parts = TypedBuffer::<u32>::uninitialized(&*device, 1050).expect("fits");
        for part in [2..3, 0..2] {
            let arguments = positions::arguments(&mut parts);
            let event = over_range.launch_part(&*queue, [70, 5, 3], part, arguments);
            event.wait().unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(parts.read(&*queue).expect("all is written"), expected);
        let empty = over_range.launch(&*queue, [70, 0, 3], positions::arguments(&mut whole));
        let error = empty.wait().expect_err("nothing to run").to_string();
        assert!(error.contains("an empty range"), "{error}");
    }
    lowers(positions::kernel());
}

#[test]
fn ranges_refuse_what_needs_a_work_group() {
    #[kernel(work_group = 64)]
    fn sized(result: &mut [u32]) {
        result[global_id()] = 1;
    }
    #[kernel]
    fn together(result: &mut [u32]) {
        result[global_id()] = sub_group_reduce_add(1u32);
    }
    #[kernel]
    fn asking(result: &mut [u32]) {
        result[global_id()] = local_id() as u32;
    }
    let device = Simulator::untimed();
    let said = [
        sized::over_range(&device).expect_err("refused").to_string(),
        together::over_range(&device).expect_err("refused").to_string(),
        asking::over_range(&device).expect_err("refused").to_string(),
    ];
    assert!(said[0].contains("fixes its own sizes"), "{}", said[0]);
    assert!(
        said[1].contains("do nothing together") && said[1].contains("host.rs:"),
        "{}",
        said[1]
    );
    assert!(said[2].contains("asks about its work-group"), "{}", said[2]);
}

#[kernel]
fn add(values: &mut [u32], more: &[u32]) {
    values[global_id()] += more[global_id()];
}

/// Commands of a queue without order wait for the events that they name; an error goes to its own event and to those
/// after it, and to no other.
#[test]
fn queues_without_order_keep_the_events() {
    for device in devices() {
        let queue = OutOfOrder::new(&*device, 3).expect("queues");
        let compiled = add::compile(&*device).expect("compiles");
        let more = TypedBuffer::from_slice(&*device, &[1u32; 64]).expect("fits");
        let mut sums: Vec<TypedBuffer<u32>> = (0..2)
            .map(|_| TypedBuffer::from_slice(&*device, &[0u32; 64]).expect("fits"))
            .collect();
        let geometry = Geometry::new(2, 32);
        let mut last = [None, None];
        for _ in 0..8 {
            for (sums, last) in sums.iter_mut().zip(&mut last) {
                let after: Vec<_> = last.take().into_iter().collect();
                let event = compiled.launch_after(&queue, geometry, add::arguments(sums, &more), &after);
                for before in after {
                    let (before, now) = (
                        before.wait().expect("runs").times,
                        event.wait().expect("runs").times,
                    );
                    assert!(before.ended_ns <= now.ended_ns && now.submitted_ns <= now.started_ns);
                }
                *last = Some(event);
            }
        }
        for (sums, last) in sums.iter().zip(last) {
            let after: Vec<_> = last.into_iter().collect();
            assert_eq!(sums.read_after(&queue, &after).expect("written"), [8; 64]);
        }
        // Too large a group for any device.
        let wrong = compiled.launch(
            &queue,
            Geometry::new(1, 1 << 16),
            add::arguments(&mut sums[0], &more),
        );
        let after = compiled.launch_after(
            &queue,
            geometry,
            add::arguments(&mut sums[0], &more),
            std::slice::from_ref(&wrong),
        );
        let error = wrong.wait().expect_err("too large").to_string();
        assert!(error.contains("too large"), "{error}");
        assert_eq!(
            after.wait().expect_err("it waited for the other").to_string(),
            error
        );
        let fine = compiled.launch(&queue, geometry, add::arguments(&mut sums[1], &more));
        assert!(fine.wait().is_ok());
    }
}

/// Sizes and a factor that are fixed when the kernel is built.
#[kernel(work_group = size)]
fn scaled(values: &mut [f32], #[constant] size: u32, #[constant] by: f32) {
    let mut tile = shared::<f32, 64>();
    tile[local_id()] = values[global_id()];
    barrier();
    values[global_id()] = tile[size as usize - 1 - local_id()] * by;
}

#[test]
fn constants_are_known_when_a_kernel_is_built() {
    for device in devices() {
        let queue = device.queue().expect("a queue");
        for (size, by) in [(32, 2.0f32), (64, -0.5)] {
            let numbers: Vec<f32> = (0..64).map(|i| i as f32).collect();
            let mut values = TypedBuffer::from_slice(&*device, &numbers).expect("fits");
            let compiled = scaled::compile(&*device, size, by).expect("compiles");
            assert_eq!(compiled.program().kernel().params.len(), 2);
            let event = compiled.launch(
                &*queue,
                Geometry::new(64 / size, size),
                scaled::arguments(&mut values),
            );
            event.wait().unwrap_or_else(|error| panic!("{error}"));
            let found = values.read(&*queue).expect("written");
            let size = size as usize;
            let expected: Vec<f32> = (0..64)
                .map(|i| (i / size * size + size - 1 - i % size) as f32 * by)
                .collect();
            assert_eq!(found, expected);
        }
    }
    lowers(scaled::kernel(32, 1.0));
}

#[test]
fn libraries_are_written_and_read() {
    let folder = tempfile::tempdir().expect("a place");
    let path = folder.path().join("kernels.hslib");
    let library = Library::new([
        add::kernel().expect("right"),
        positions::kernel().expect("right"),
        scaled::kernel(32, 3.0).expect("right"),
    ]);
    library.expect("three names").write(&path).expect("written");
    let library = Library::read(&path).expect("read again");
    let cache = Cache::new();
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let programs = library.compile(&*device).expect("compiles");
        let mut sums = TypedBuffer::from_slice(&*device, &[5u32; 32]).expect("fits");
        let more = TypedBuffer::from_slice(&*device, &[7u32; 32]).expect("fits");
        let compiled = Compiled::of(programs.get("add").expect("there").clone());
        let event = compiled.launch(&*queue, Geometry::new(1, 32), add::arguments(&mut sums, &more));
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(sums.read(&*queue).expect("written"), [12; 32]);
        for kernel in library.kernels().iter().chain(library.kernels()) {
            cache.compile(&*device, kernel).expect("compiles");
        }
    }
    assert_eq!(cache.len(), 3 * devices().len());
    let missing = Library::read(&folder.path().join("none"))
        .expect_err("not there")
        .to_string();
    assert!(missing.contains("cannot be read"), "{missing}");
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "launches over a range, and parts of one",
        spelled: "`k::over_range(&device)?.launch(&*queue, [1001, 5], …)`",
        kernel: positions::kernel,
        test: exactly_the_range_runs,
    },
    Feature {
        name: "constants fixed when a kernel is built",
        spelled: "`#[constant] size: u32`, `work_group = size`",
        kernel: || scaled::kernel(32, 1.0),
        test: constants_are_known_when_a_kernel_is_built,
    },
    Feature {
        name: "queues without an order of their own",
        spelled: "`OutOfOrder::new(&device, 4)`, `launch_after(…, &[event])`",
        kernel: add::kernel,
        test: queues_without_order_keep_the_events,
    },
    Feature {
        name: "libraries of kernels in a file, compiled once",
        spelled: "`Library::new([a, b])?.write(path)`, `Cache`",
        kernel: add::kernel,
        test: libraries_are_written_and_read,
    },
];
