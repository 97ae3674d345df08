//! Shuffles, votes, reductions and scans.

use headstart::device::sim::Simulator;
use headstart::device::{Device, Element, TypedBuffer};
use headstart::prelude::*;

use crate::agree::{devices, lowers, noise, taken};
use crate::conformance::Feature;

/// Runs `kernel(&input, &mut output)` on every device there is; the outputs.
macro_rules! outputs {
    ($kernel:ident $(::<$($generic:tt),+>)?, $geometry:expr, $input:expr, $count:expr) => {{
        let devices = devices();
        devices
            .iter()
            .filter(|device| {
                let sizes = &device.description().sub_group_sizes;
                $geometry.sub_group_size.is_none_or(|size| sizes.contains(&size))
            })
            .filter_map(|device| {
                let queue = device.queue().expect("a queue");
                let compiled = taken(&**device, $kernel::compile $(::<$($generic),+>)? (&**device))?;
                let source = TypedBuffer::from_slice(&**device, &$input).expect("fits");
                let mut target = TypedBuffer::uninitialized(&**device, $count).expect("fits");
                let arguments = $kernel::arguments(&source, &mut target);
                let event = compiled.launch(&*queue, $geometry, arguments);
                event.wait().unwrap_or_else(|error| panic!("{error}"));
                Some(target.read(&*queue).expect("written"))
            })
            .collect::<Vec<_>>()
    }};
}

#[kernel]
fn shuffles<T: Scalar>(input: &[T], output: &mut [T]) {
    let lane = sub_group_local_id();
    let (x, first) = (input[global_id()], global_id() * 6);
    output[first] = sub_group_shuffle(x, (lane * 5 + 3) % max_sub_group_size());
    output[first + 1] = sub_group_shuffle_up(x, 3);
    output[first + 2] = sub_group_shuffle_down(x, lane % 4);
    output[first + 3] = sub_group_shuffle_xor(x, 5);
    output[first + 4] = sub_group_broadcast(x, 2);
    output[first + 5] = sub_group_shuffle_up(x, lane);
}

/// What the shuffles of a launch of one-dimensional work-groups give.
fn shuffled<T: Scalar>(input: &[T], group: usize, size: usize) -> Vec<T> {
    let mut out = Vec::new();
    for i in 0..input.len() {
        let local = i % group;
        let (lane, first) = (local % size, i - local % size);
        let there = (group - (local - lane)).min(size);
        let from = |source: isize| match usize::try_from(source) {
            Ok(source) if source < there => input[first + source],
            _ => input[i],
        };
        let here = lane as isize;
        out.extend([
            from((lane as isize * 5 + 3) % size as isize),
            from(here - 3),
            from(here + here % 4),
            from(here ^ 5),
            from(2),
            from(0),
        ]);
    }
    out
}

fn shuffles_agree<T: Scalar>(input: &[T]) {
    for (group, size) in [(64, 32), (44, 32), (40, 16), (24, 8), (13, 8)] {
        let input = &input[..group * 2];
        let geometry = Geometry::new(2, group as u32).sub_group_size(size as u32);
        let found = outputs!(shuffles::<T>, geometry, input, input.len() as u64 * 6);
        for found in found {
            let bits = |values: &[T]| values.iter().map(|&x| Element::to_bits(x)).collect::<Vec<u64>>();
            assert_eq!(
                bits(&found),
                bits(&shuffled(input, group, size)),
                "{group} by {size}"
            );
        }
    }
    lowers(shuffles::kernel::<T>());
}

#[test]
fn shuffles_of_every_type_agree() {
    let bits = noise(128);
    shuffles_agree::<u32>(&bits);
    shuffles_agree::<i8>(&bits.iter().map(|&x| x as i8).collect::<Vec<_>>());
    shuffles_agree::<u16>(&bits.iter().map(|&x| x as u16).collect::<Vec<_>>());
    shuffles_agree::<u64>(
        &bits
            .iter()
            .map(|&x| u64::from(x) * 0x1_0000_0007)
            .collect::<Vec<_>>(),
    );
    shuffles_agree::<f32>(&bits.iter().map(|&x| x as f32).collect::<Vec<_>>());
    shuffles_agree::<f64>(&bits.iter().map(|&x| f64::from(x) / 7.0).collect::<Vec<_>>());
    shuffles_agree::<bool>(&bits.iter().map(|&x| x % 3 == 0).collect::<Vec<_>>());
    let text = lowers(shuffles::kernel::<f64>());
    for wanted in [
        "shfl.sync.idx.b32",
        "shfl.sync.up.b32",
        "shfl.sync.down.b32",
        "shfl.sync.bfly.b32",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[kernel]
fn votes(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    let x = input[i];
    output[i * 4] = sub_group_any(x % 64 == 0) as u32;
    output[i * 4 + 1] = sub_group_all(x % 64 > 0) as u32;
    output[i * 4 + 2] = sub_group_ballot(x % 2 == 1);
    output[i * 4 + 3] = sub_group_all(true) as u32 + 2 * sub_group_any(false) as u32;
}

#[test]
fn votes_agree() {
    let input = noise(120);
    for (group, size) in [(60, 32), (60, 16), (30, 8)] {
        let geometry = Geometry::new(120 / group, group).sub_group_size(size);
        for found in outputs!(votes, geometry, input, 480) {
            for i in 0..120 {
                let local = i as u32 % group;
                let first = i - (local % size) as usize;
                let there = (group - local / size * size).min(size) as usize;
                let own = &input[first..first + there];
                let ballot = own
                    .iter()
                    .enumerate()
                    .fold(0, |bits, (lane, x)| bits | (x & 1) << lane);
                let any = own.iter().any(|x| x % 64 == 0) as u32;
                assert_eq!(found[i * 4..][..4], [any, 1 - any, ballot, 1]);
            }
        }
    }
    let text = lowers(votes::kernel());
    assert!(
        text.contains("vote.sync.ballot.b32") && text.contains("vote.sync.any.pred"),
        "{text}"
    );
}

#[kernel]
fn reductions<T: Integer>(input: &[T], output: &mut [T]) {
    let x = input[global_id()];
    let first = global_id() * 10;
    output[first] = sub_group_reduce_add(x);
    output[first + 1] = sub_group_reduce_min(x);
    output[first + 2] = sub_group_reduce_max(x);
    output[first + 3] = sub_group_reduce_and(x);
    output[first + 4] = sub_group_reduce_or(x);
    output[first + 5] = sub_group_reduce_xor(x);
    output[first + 6] = sub_group_inclusive_scan_add(x);
    output[first + 7] = sub_group_inclusive_scan_min(x);
    output[first + 8] = sub_group_inclusive_scan_max(x);
    output[first + 9] = sub_group_exclusive_scan_add(x);
}

#[test]
fn reductions_and_scans_agree() {
    let input: Vec<i32> = noise(132).iter().map(|&bits| bits as i32).collect();
    for (group, size) in [(66, 32), (66, 16), (33, 8), (44, 32)] {
        let geometry = Geometry::new(132 / group, group).sub_group_size(size);
        for found in outputs!(reductions::<i32>, geometry, input, 1320) {
            for i in 0..132 {
                let local = i as u32 % group;
                let lane = (local % size) as usize;
                let there = (group - local / size * size).min(size) as usize;
                let all = &input[i - lane..i - lane + there];
                let to_here = &all[..=lane];
                let sum = |values: &[i32]| values.iter().fold(0i32, |sum, &x| sum.wrapping_add(x));
                let fold = |values: &[i32], op: fn(i32, i32) -> i32| {
                    values.iter().copied().reduce(op).expect("not empty")
                };
                let expected = [
                    sum(all),
                    fold(all, i32::min),
                    fold(all, i32::max),
                    fold(all, |a, b| a & b),
                    fold(all, |a, b| a | b),
                    fold(all, |a, b| a ^ b),
                    sum(to_here),
                    fold(to_here, i32::min),
                    fold(to_here, i32::max),
                    sum(&all[..lane]),
                ];
                assert_eq!(found[i * 10..][..10], expected, "{i} of {group} by {size}");
            }
        }
    }
    lowers(reductions::kernel::<i32>());
    lowers(reductions::kernel::<u64>());
}

/// The same sum where every sub-group is full and where the kernel does not know it.
#[kernel(work_group = 64, sub_group = 32)]
fn known(input: &[f32], output: &mut [f32]) {
    output[global_id()] = sub_group_reduce_add(input[global_id()]) + group_reduce_add(input[global_id()]);
}

#[kernel]
fn unknown(input: &[f32], output: &mut [f32]) {
    output[global_id()] = sub_group_reduce_add(input[global_id()]) + group_reduce_add(input[global_id()]);
}

#[test]
fn sums_of_floats_have_the_same_bits_everywhere() {
    let input: Vec<f32> = noise(128).iter().map(|&bits| bits as f32 / 3e7).collect();
    let geometry = Geometry::new(2, 64).sub_group_size(32);
    let all: Vec<Vec<f32>> = outputs!(known, geometry, input, 128)
        .into_iter()
        .chain(outputs!(unknown, geometry, input, 128))
        .collect();
    let bits = |values: &Vec<f32>| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    assert!(all.iter().all(|other| bits(other) == bits(&all[0])));
    lowers(known::kernel());
}

#[kernel]
fn whole_group(input: &[i64], output: &mut [i64]) {
    let x = input[global_id()];
    let first = global_id() * 5;
    output[first] = group_reduce_add(x);
    output[first + 1] = group_reduce_min(x);
    output[first + 2] = group_reduce_max(x);
    output[first + 3] = group_inclusive_scan_add(x);
    output[first + 4] = group_exclusive_scan_add(x);
}

#[test]
fn work_groups_reduce_and_scan() {
    let input: Vec<i64> = noise(200)
        .iter()
        .map(|&bits| i64::from(bits) - (1 << 31))
        .collect();
    for (group, size) in [(100, 32), (200, 8), (25, 16), (1, 32)] {
        let geometry = Geometry::new(200 / group, group).sub_group_size(size);
        for found in outputs!(whole_group, geometry, input, 1000) {
            for i in 0..200usize {
                let start = i - i % group as usize;
                let all = &input[start..start + group as usize];
                let before: i64 = input[start..i].iter().sum();
                let least = *all.iter().min().expect("not empty");
                let greatest = *all.iter().max().expect("not empty");
                let expected = [all.iter().sum(), least, greatest, before + input[i], before];
                assert_eq!(found[i * 5..][..5], expected, "{i} of {group} by {size}");
            }
        }
    }
    lowers(whole_group::kernel());
}

#[test]
fn who_is_missing_is_reported() {
    #[kernel]
    fn some(input: &[u32], output: &mut [u32]) {
        if input[local_id()] > 1 {
            output[local_id()] = sub_group_reduce_add(1);
        }
    }
    #[kernel]
    fn ended(input: &[u32], output: &mut [u32]) {
        if input[local_id()] > 6 {
            return;
        }
        output[local_id()] = sub_group_ballot(true);
    }
    #[kernel]
    fn too_far(input: &[u32], output: &mut [u32]) {
        output[local_id()] = sub_group_shuffle(1u32, input[local_id()] as usize * 8);
    }
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let input = TypedBuffer::from_slice(&device, &[0u32, 1, 2, 3, 4, 5, 6, 7]).expect("fits");
    let mut output = TypedBuffer::from_slice(&device, &[0u32; 8]).expect("fits");
    let mut said =
        |compiled: headstart::Result<headstart::runtime::launch::Compiled<fn(&[u32], &mut [u32])>>| {
            let arguments = some::arguments(&input, &mut output);
            let event = compiled
                .expect("compiles")
                .launch(&*queue, Geometry::new(1, 8), arguments);
            event.wait().expect_err("reported").to_string()
        };
    let error = said(some::compile(&device));
    assert!(
        error.contains(
            "work-item 2 of work-group 0 (global 2) runs a shuffle of its sub-group without work-item 0"
        ),
        "{error}"
    );
    assert!(error.contains("sub_groups.rs:"), "{error}");
    let error = said(ended::compile(&device));
    assert!(
        error.contains("runs a vote of its sub-group without work-item 7"),
        "{error}"
    );
    let error = said(too_far::compile(&device));
    assert!(
        error.contains("work-item 4 of work-group 0 (global 4) shuffles from 32"),
        "{error}"
    );
    let error = votes::reference(Geometry::new(1, 4), &[0; 4], &mut [0; 16]).expect_err("alone");
    assert!(error.to_string().contains("wait for each other"), "{error}");
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "shuffles, broadcast",
        spelled: "`sub_group_shuffle_xor(x, 1)`",
        kernel: shuffles::kernel::<f64>,
        test: shuffles_of_every_type_agree,
    },
    Feature {
        name: "any, all, ballot",
        spelled: "`sub_group_ballot(c)`",
        kernel: votes::kernel,
        test: votes_agree,
    },
    Feature {
        name: "sub-group reductions and scans",
        spelled: "`sub_group_inclusive_scan_add(x)`",
        kernel: reductions::kernel::<i32>,
        test: reductions_and_scans_agree,
    },
    Feature {
        name: "work-group reductions and scans",
        spelled: "`group_reduce_add(x)`",
        kernel: whole_group::kernel,
        test: work_groups_reduce_and_scan,
    },
];
