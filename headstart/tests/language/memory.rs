//! Slices, private and shared arrays, hints.

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

use crate::agree::{agree, noise};
use crate::conformance::Feature;

const ONE: Geometry = Geometry {
    groups: [2, 1, 1],
    group: [32, 1, 1],
    ..Geometry::new(1, 1)
};

/// Sorts in a private array whose length is a constant of the kernel; the array in the inner block is new in
/// every iteration.
#[kernel]
fn sort<const N: usize>(input: &[u32], output: &mut [u32]) {
    let first = global_id() * N;
    let mut row = [0; N];
    for i in 0..N {
        row[i] = input[(first + i) % input.len()];
    }
    for i in 0..N {
        for j in 1..N - i {
            if row[j - 1] > row[j] {
                let t = row[j];
                row[j] = row[j - 1];
                row[j - 1] = t;
            }
        }
    }
    let mut total = 0;
    for i in 0..row.len() {
        let mut pair = [1, 2];
        pair[i % 2] += 5;
        total += pair[0] * pair[1];
        output[first + i] = row[i];
    }
    output[first] ^= total;
}

#[test]
fn private_arrays_agree() {
    agree!(sort::<5>, ONE, noise(300), vec![0u32; 64 * 5]);
    agree!(sort::<24>, ONE, noise(300), vec![0u32; 64 * 24]);
}

/// Truth values in memory.
#[kernel]
fn truth(input: &[bool], output: &mut [bool]) {
    let i = global_id();
    let mut seen = [false; 2];
    seen[input[i] as usize] = true;
    output[i] = seen[0] ^ input[(i + 1) % input.len()] || input.is_empty();
}

#[test]
fn truth_values_agree() {
    let input: Vec<bool> = noise(64).iter().map(|&bits| bits % 3 == 0).collect();
    agree!(truth, ONE, input, vec![false; 64]);
}

/// Each work-group turns its part around, through shared memory.
#[kernel(work_group = N)]
fn turn_around<const N: usize>(input: &[f64], output: &mut [f64]) {
    let mut tile = shared::<f64, N>();
    let mut counts: [u32; N] = shared();
    tile[local_id()] = input[global_id()];
    counts[local_id()] = local_id() as u32;
    barrier();
    let other = N - 1 - local_id();
    output[global_id()] = tile[other] + counts[other] as f64;
}

#[test]
fn shared_arrays_are_of_the_work_group() {
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let program = turn_around::compile::<64>(&device).expect("it is right");
    let values: Vec<f64> = (0..256).map(|i| f64::from(i) * 1000.0).collect();
    let input = TypedBuffer::from_slice(&device, &values).expect("a buffer");
    let mut output = TypedBuffer::uninitialized(&device, 256).expect("a buffer");
    let launched = program.launch(
        &*queue,
        Geometry::new(4, 64),
        turn_around::arguments(&input, &mut output),
    );
    launched.wait().expect("it runs");
    let expected: Vec<f64> = (0..256)
        .map(|i| {
            let (group, other) = (i / 64, 63 - i % 64);
            values[group * 64 + other] + other as f64
        })
        .collect();
    assert_eq!(output.read(&*queue).expect("it was written"), expected);
    // Work-items that wait for each other cannot run one after the other.
    let mut result = vec![0.0; 256];
    let refused = turn_around::reference::<64>(Geometry::new(4, 64), &values, &mut result);
    assert!(
        refused
            .expect_err("barriers")
            .to_string()
            .contains("no CPU reference")
    );
}

/// Hints change no result, and towards L3 may name what lies behind the end.
#[kernel]
fn hints(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    let mut at = i;
    while at < input.len() {
        prefetch(&input[at + global_size()], L3);
        if at + 1 < input.len() {
            prefetch(&input[at + 1], L1.nontemporal());
        }
        output[i] += input[at];
        at += global_size();
    }
}

#[test]
fn hints_agree() {
    let input: Vec<u32> = noise(300).iter().map(|bits| bits >> 8).collect();
    agree!(hints, ONE, input, vec![0u32; 64]);
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "private arrays",
        spelled: "`let mut a = [0; 8];`",
        kernel: sort::kernel::<5>,
        test: private_arrays_agree,
    },
    Feature {
        name: "truth values in memory",
        spelled: "`&[bool]`",
        kernel: truth::kernel,
        test: truth_values_agree,
    },
    Feature {
        name: "shared arrays, barriers",
        spelled: "`shared::<f64, 64>()`, `barrier()`",
        kernel: turn_around::kernel::<64>,
        test: shared_arrays_are_of_the_work_group,
    },
    Feature {
        name: "cache hints",
        spelled: "`prefetch(&a[i], L2)`",
        kernel: hints::kernel,
        test: hints_agree,
    },
];
