//! Barriers of parts of a work-group, dot products of bytes, the least and greatest of floats in atomic memory.

use headstart::device::TypedBuffer;
use headstart::device::sim::Simulator;
use headstart::prelude::*;

use crate::agree::{agree, devices, lowers, noise, taken};
use crate::conformance::Feature;

/// Two pairs of sub-groups exchange through shared memory, each at a barrier of its own; then all do; then each
/// sub-group by itself.
#[kernel(work_group = 128, sub_group = 32)]
fn exchange(values: &[u32], result: &mut [u32]) {
    let mut tile = shared::<u32, 128>();
    let i = local_id();
    tile[i] = values[global_id()];
    let pair = sub_group_id() / 2;
    if pair == 0 {
        named_barrier::<1, 2>();
    } else {
        named_barrier::<15, 2>();
    }
    let mirrored = tile[pair * 64 + (63 - i % 64)];
    barrier();
    tile[i] = mirrored + 1;
    sub_group_barrier();
    let neighbour = tile[i / 32 * 32 + (i + 1) % 32];
    result[global_id()] = mirrored ^ neighbour << 3;
}

#[test]
fn parts_of_a_work_group_meet() {
    const COUNT: usize = 256;
    let values: Vec<u32> = noise(COUNT).iter().map(|bits| bits >> 8).collect();
    let mirrored = |i: usize| values[i / 64 * 64 + (63 - i % 64)];
    let expected: Vec<u32> = (0..COUNT)
        .map(|i| mirrored(i) ^ (mirrored(i / 32 * 32 + (i + 1) % 32) + 1) << 3)
        .collect();
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let source = TypedBuffer::from_slice(&*device, &values).expect("fits");
        let mut result = TypedBuffer::<u32>::uninitialized(&*device, COUNT as u64).expect("fits");
        let arguments = exchange::arguments(&source, &mut result);
        let Some(compiled) = taken(&*device, exchange::compile(&*device)) else {
            continue;
        };
        let event = compiled.launch(&*queue, Geometry::new(2, 128), arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(result.read(&*queue).expect("written"), expected);
    }
    let text = lowers(exchange::kernel());
    for wanted in ["bar.sync 1, 64", "bar.sync 15, 64", "bar.warp.sync 0xffffffff"] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// What goes wrong at barriers: no other work-item comes; a race that no barrier orders; a number that is none.
#[test]
fn wrong_meetings_are_reported() {
    #[kernel(work_group = 64, sub_group = 32)]
    fn alone(result: &mut [u32]) {
        if sub_group_id() == 0 {
            named_barrier::<3, 2>();
        }
        result[global_id()] = 1;
    }
    #[kernel(work_group = 64, sub_group = 32)]
    fn apart(result: &mut [u32]) {
        let mut tile = shared::<u32, 64>();
        tile[local_id()] = 1;
        sub_group_barrier();
        result[global_id()] = tile[63 - local_id()];
    }
    #[kernel(work_group = 64, sub_group = 32)]
    fn part_of_one(result: &mut [u32]) {
        if local_id() % 2 == 0 {
            sub_group_barrier();
        }
        result[global_id()] = 1;
    }
    #[kernel]
    fn too_high() {
        named_barrier::<16, 1>();
    }
    let device = Simulator::untimed();
    let queue = headstart::device::Device::queue(&device).expect("a queue");
    macro_rules! said {
        ($kernel:ident) => {{
            let mut result = TypedBuffer::uninitialized(&device, 64).expect("fits");
            let arguments = $kernel::arguments(&mut result);
            let compiled = $kernel::compile(&device).expect("compiles");
            let event = compiled.launch(&*queue, Geometry::new(1, 64), arguments);
            event.wait().expect_err("it goes wrong").to_string()
        }};
    }
    let said_alone = said!(alone);
    assert!(
        said_alone.contains("waits at barrier 3 for 2 sub-groups"),
        "{said_alone}"
    );
    assert!(said_alone.contains("meeting.rs:"), "{said_alone}");
    let said_apart = said!(apart);
    assert!(said_apart.contains("tile"), "{said_apart}");
    let said_part = said!(part_of_one);
    assert!(said_part.contains("sub-group barrier"), "{said_part}");
    let error = too_high::kernel().expect_err("15 is the highest").to_string();
    assert!(error.contains("there is no barrier 16"), "{error}");
}

/// Signed and unsigned bytes; a sum that wraps; a product that two sums use.
#[kernel]
fn bytes(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    let (a, b) = (input[i], input[(i + 7) % input.len()]);
    let mut sum = i as i32;
    for j in 0..4 {
        sum = dot4_i8(a, input[(i + j) % input.len()], sum);
    }
    let alone = dot4_u8(a, b, 0);
    output[i * 4] = sum as u32;
    output[i * 4 + 1] = dot4_u8(a, b, 0xffff_ff00).wrapping_mul(alone);
    output[i * 4 + 2] = alone.wrapping_add(dot4_u8(b, b, a));
    output[i * 4 + 3] = dot4_i8_u8(a, b, sum) as u32;
}

#[test]
fn dot_products_of_bytes_agree() {
    agree!(bytes, Geometry::new(2, 32), noise(64), vec![0; 256]);
    let text = lowers(bytes::kernel());
    // The accumulation is part of the instruction.
    assert!(
        text.contains("dp4a.s32.s32") && text.contains("dp4a.u32.u32"),
        "{text}"
    );
    assert!(text.contains("dp4a.s32.u32"), "{text}");
    let loop_adds = text
        .lines()
        .filter(|line| line.contains("dp4a.s32.s32") && line.ends_with(", 0;"));
    assert_eq!(loop_adds.count(), 0, "{text}");
}

/// Floats of all kinds, in an order that does not matter.
#[kernel]
fn extremes<T: Float + AtomicScalar>(values: &[T], least: &[Atomic<T>], greatest: &[Atomic<T>]) {
    let i = global_id();
    least[i % 3].fetch_min(values[i], Ordering::Relaxed);
    greatest[i % 3].fetch_max(values[i], Ordering::Relaxed);
}

#[test]
fn extremes_of_floats_agree() {
    const COUNT: usize = 96;
    let mut values: Vec<f32> = noise(COUNT).iter().map(|&bits| f32::from_bits(bits)).collect();
    (values[3], values[4], values[5]) = (-0.0, 0.0, f32::NEG_INFINITY);
    // One place never meets a negative number, one only zeros and NaNs.
    for (i, value) in values.iter_mut().enumerate() {
        match i % 3 {
            0 => *value = value.abs(),
            1 => *value = [0.0, -0.0, f32::NAN, -f32::NAN][i % 4],
            _ => {}
        }
    }
    let wide: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
    macro_rules! check {
        ($float:ty, $values:expr) => {{
            let values: &Vec<$float> = $values;
            let starts = |from: $float| [from, -<$float>::NAN, from].map(Atomic::new);
            let (least, greatest) = (starts(<$float>::INFINITY), starts(<$float>::NEG_INFINITY));
            extremes::reference(Geometry::new(3, 32), values, &least, &greatest).expect("runs");
            let (least, greatest) = (least.map(Atomic::into_inner), greatest.map(Atomic::into_inner));
            for device in devices() {
                let queue = device.queue().expect("a queue");
                let source = TypedBuffer::from_slice(&*device, values).expect("fits");
                let start = |from: $float| TypedBuffer::from_slice(&*device, &[from, -<$float>::NAN, from]);
                let mut lowest = start(<$float>::INFINITY).expect("fits");
                let mut highest = start(<$float>::NEG_INFINITY).expect("fits");
                let arguments = extremes::arguments(&source, &mut lowest, &mut highest);
                let event = extremes::compile::<$float>(&*device).expect("compiles").launch(
                    &*queue,
                    Geometry::new(3, 32),
                    arguments,
                );
                event.wait().unwrap_or_else(|error| panic!("{error}"));
                let bits = |values: &[$float]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                let found = (
                    lowest.read(&*queue).expect("read"),
                    highest.read(&*queue).expect("read"),
                );
                assert_eq!(bits(&found.0), bits(&least), "{least:?}");
                assert_eq!(bits(&found.1), bits(&greatest), "{greatest:?}");
            }
        }};
    }
    check!(f32, &values);
    check!(f64, &wide);
    lowers(extremes::kernel::<f32>());
    lowers(extremes::kernel::<f64>());
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "barriers of sub-groups, named barriers",
        spelled: "`sub_group_barrier()`, `named_barrier::<1, 2>()`",
        kernel: exchange::kernel,
        test: parts_of_a_work_group_meet,
    },
    Feature {
        name: "dot products of bytes",
        spelled: "`dot4_i8(a, b, sum)`",
        kernel: bytes::kernel,
        test: dot_products_of_bytes_agree,
    },
    Feature {
        name: "atomic minimum and maximum of floats",
        spelled: "`x[0].fetch_min(1.5, Ordering::Relaxed)`",
        kernel: extremes::kernel::<f32>,
        test: extremes_of_floats_agree,
    },
];
