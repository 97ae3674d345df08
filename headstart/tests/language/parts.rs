//! Devices that are parts of others, a job on several devices, and code that was compiled before.

use headstart::device::sim::Simulator;
use headstart::device::{Bundle, Device, Library, TypedBuffer};
use headstart::prelude::*;
use headstart::runtime::launch::Compiled;
use headstart::runtime::split::Split;

use crate::agree::{devices, lowers};
use crate::conformance::Feature;

/// Something to do for each element, as long as `rounds` says.
#[kernel]
fn rounds_of(values: &[u32], result: &mut [u32], rounds: u32) {
    let at = global_id_y() * global_size() + global_id();
    let mut sum = values[at];
    for round in 0..rounds {
        sum = sum.rotate_left(5) ^ round;
    }
    result[at] = sum;
}

fn expected(values: &[u32], rounds: u32) -> Vec<u32> {
    let one = |&start: &u32| (0..rounds).fold(start, |sum, round| sum.rotate_left(5) ^ round);
    values.iter().map(one).collect()
}

fn pvc() -> Simulator {
    Simulator::new("pvc-1550").expect("a built-in model")
}

#[test]
fn the_stacks_of_a_card_are_devices() {
    let card = pvc();
    let stacks = card.sub_devices().expect("it says");
    let names: Vec<&str> = stacks
        .iter()
        .map(|stack| stack.description().name.as_str())
        .collect();
    assert_eq!(names, ["sim:pvc-1550.0", "sim:pvc-1550.1"]);
    assert!(
        stacks[0].sub_devices().expect("it says").is_empty(),
        "a stack has no stacks"
    );
    let h200 = Simulator::new("h200").expect("a built-in model");
    assert!(h200.sub_devices().expect("it says").is_empty());
    // Each has memory of its own.
    let room = stacks[0].description().memory_bytes;
    let half = |stack: &dyn Device| {
        TypedBuffer::<u8>::from_pattern(stack, room / 2 + 1, headstart::device::Pattern::Constant(0))
    };
    let first = half(&*stacks[0]).expect("fits");
    assert!(half(&*stacks[0]).is_err());
    let second = half(&*stacks[1]).expect("fits beside");
    drop((first, second));

    // Both run at the same time, on the same buffers: half the job each, in half the time.
    let (width, height, rounds) = (1024u32, 256, 600);
    let numbers: Vec<u32> = (0..width * height)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect();
    let values = TypedBuffer::from_slice(&*stacks[0], &numbers).expect("fits");
    let run = |devices: &[&dyn Device]| {
        let mut result = TypedBuffer::uninitialized(&card, numbers.len() as u64).expect("fits");
        let mut split = Split::new();
        for device in devices {
            let kernel = rounds_of::over_range(*device).expect("compiles");
            split.add(kernel, device.queue().expect("a queue"), 1.0);
        }
        let arguments: Vec<_> = devices
            .iter()
            .map(|_| rounds_of::arguments(&values, &mut result, rounds))
            .collect();
        let parts = split.launch([width, height], arguments).expect("as many");
        let times: Vec<_> = parts
            .iter()
            .map(|part| part.event.wait().unwrap_or_else(|error| panic!("{error}")).times)
            .collect();
        let found = result
            .read(&*card.queue().expect("a queue"))
            .expect("all is written");
        assert!(found == expected(&numbers, rounds));
        let start = times
            .iter()
            .map(|times| times.started_ns)
            .fold(f64::MAX, f64::min);
        let end = times.iter().map(|times| times.ended_ns).fold(0.0, f64::max);
        (end - start, times)
    };
    let (alone, _) = run(&[&*stacks[0]]);
    let (together, times) = run(&[&*stacks[0], &*stacks[1]]);
    let (in_turn, _) = run(&[&*stacks[0], &*stacks[0]]);
    println!("one stack {alone:.0} ns, both {together:.0}, one stack twice {in_turn:.0}");
    assert!(times[0].overlap_ns(&times[1]) > 0.9 * together, "{times:?}");
    assert!(together < 0.6 * alone, "{together} of {alone}");
    // The same stack does one part after the other.
    assert!(in_turn > 1.8 * together, "{in_turn} {together}");
    lowers(rounds_of::kernel());
}

/// One job on every device that this machine has, the simulator first, each with memory of its own.
#[test]
fn one_job_runs_on_several_devices() {
    let mut all = devices();
    all.push(Box::new(Simulator::untimed()));
    let (width, height, rounds) = (96u32, 41, 7);
    let numbers: Vec<u32> = (0..width * height).map(|i| i.wrapping_mul(40_503)).collect();
    let mut split = Split::new();
    let mut buffers = Vec::new();
    for (device, speed) in all.iter().zip([1.0, 2.5, 1.5, 0.5]) {
        let values = TypedBuffer::from_slice(&**device, &numbers).expect("fits");
        let result = TypedBuffer::<u32>::uninitialized(&**device, numbers.len() as u64).expect("fits");
        buffers.push((values, result));
        let kernel = rounds_of::over_range(&**device).expect("compiles");
        split.add(kernel, device.queue().expect("a queue"), speed);
    }
    let arguments: Vec<_> = buffers
        .iter_mut()
        .map(|(values, result)| rounds_of::arguments(values, result, rounds))
        .collect();
    let parts = split.launch([width, height], arguments).expect("as many");
    let mut found = Vec::new();
    for ((part, device), (_, result)) in parts.iter().zip(&all).zip(&buffers) {
        println!("{}: rows {:?}", device.description().name, part.range);
        let queue = device.queue().expect("a queue");
        let (first, count) = (
            u64::from(part.range.start * width),
            part.range.len() as u64 * u64::from(width),
        );
        let event = std::slice::from_ref(&part.event);
        found.extend(
            result
                .read_part(&*queue, first, count, event)
                .unwrap_or_else(|error| panic!("{error}")),
        );
    }
    assert_eq!(found, expected(&numbers, rounds));
    assert!(split.launch([width], []).is_err(), "nobody was given arguments");
}

#[test]
fn bundles_hold_machine_code() {
    let folder = tempfile::tempdir().expect("a place");
    let path = folder.path().join("kernels.hsbundle");
    let all = devices();
    let compiling: Vec<&dyn Device> = all.iter().map(|device| &**device).collect();
    let library = Library::new([rounds_of::kernel().expect("right")]).expect("one name");
    Bundle::build(library, &compiling)
        .expect("every device compiles it")
        .write(&path)
        .expect("written");
    let bundle = Bundle::read(&path).expect("read again");
    // The simulator compiles nothing that is worth keeping.
    let compilers = all
        .iter()
        .filter(|device| device.description().name != "sim")
        .count();
    assert_eq!(bundle.images().len(), compilers);
    for image in bundle.images().iter() {
        println!("{image:?}");
    }
    let numbers: Vec<u32> = (0..64).collect();
    for device in &all {
        let start = std::time::Instant::now();
        let programs = bundle.load(&**device).expect("every device takes it");
        println!(
            "{}: loaded in {:.3} ms",
            device.description().name,
            start.elapsed().as_secs_f64() * 1e3
        );
        let queue = device.queue().expect("a queue");
        let values = TypedBuffer::from_slice(&**device, &numbers).expect("fits");
        let mut result = TypedBuffer::uninitialized(&**device, 64).expect("fits");
        let compiled = Compiled::of(programs.get("rounds_of").expect("there").clone());
        let event = compiled.launch(
            &*queue,
            Geometry::new(2, 32),
            rounds_of::arguments(&values, &mut result, 9),
        );
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(result.read(&*queue).expect("written"), expected(&numbers, 9));
    }
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "sub-devices",
        spelled: "`device.sub_devices()?`",
        kernel: rounds_of::kernel,
        test: the_stacks_of_a_card_are_devices,
    },
    Feature {
        name: "one job on several devices",
        spelled: "`split.add(k::over_range(&device)?, queue, speed)`, `split.launch([1001], arguments)?`",
        kernel: rounds_of::kernel,
        test: one_job_runs_on_several_devices,
    },
    Feature {
        name: "bundles of machine code",
        spelled: "`Bundle::build(library, &[&device])?.write(path)`",
        kernel: rounds_of::kernel,
        test: bundles_hold_machine_code,
    },
];
