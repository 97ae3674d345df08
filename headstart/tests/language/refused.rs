//! What is found wrong when a kernel is built or run.

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

#[device_fn]
#[allow(unconditional_recursion)]
fn recursive(x: u32) -> u32 {
    recursive(x) + 1
}

#[kernel]
fn calls_itself(out: &mut [u32]) {
    out[0] = recursive(1);
}

#[kernel]
fn no_step(out: &mut [u32]) {
    for i in (0..10u32).step_by(0) {
        out[0] = i;
    }
}

#[kernel]
fn empty_array<const N: usize>(out: &mut [u32]) {
    let row = [1; N];
    out[0] = row.len() as u32;
}

#[kernel(work_group = size)]
fn sized(out: &mut [u32], #[constant] size: u64) {
    out[0] = 1;
}

#[kernel]
fn bad_plan(out: &mut [u32]) {
    #[prefetch("out=rolling-async:99999")]
    for i in 0..4 {
        out[i] = 1;
    }
}

#[kernel]
fn misspelled(input: &[u32], out: &mut [u32]) {
    #[prefetch("input=roling-async:4")]
    for i in 0..4 {
        out[i] = input[i];
    }
}

#[kernel]
fn no_such_load(input: &[u32], out: &mut [u32]) {
    #[prefetch("inptu=rolling-async:4")]
    for i in 0..4 {
        out[i] = input[i];
    }
}

/// What a device function's slice is, is known when it is built in.
#[device_fn]
fn prefetches_first(row: &[u32]) {
    prefetch(&row[0], L1);
}

#[kernel]
fn near_memory(out: &mut [u32]) {
    let row = [1, 2];
    prefetches_first(&row);
    out[0] = row[1];
}

#[kernel]
fn wrong_pointer(out: &mut [u32]) {
    let row = [1, 2];
    out[0] = shared_ptr(&row[1]).read();
}

#[kernel]
fn computed_offset(values: &[u32], out: &mut [u32], n: i32) {
    lsc_prefetch_uint(global_ptr(&values[0]), n, LSC_LDCC_L1C_L3C);
    out[0] = values[0];
}

#[test]
fn building_says_what_and_where() {
    for (built, expected) in [
        (
            calls_itself::kernel(),
            ["the device function `recursive` calls itself", "refused.rs:"],
        ),
        (no_step::kernel(), ["the step of a range is 0", "refused.rs:"]),
        (empty_array::kernel::<0>(), ["`row` has 0 elements", "at least 1"]),
        (
            sized::kernel(0),
            ["a work-group cannot have 0 work-items", "at least 1"],
        ),
        (
            sized::kernel(1 << 32),
            ["a work-group cannot have 4294967296 work-items", "fits 32 bits"],
        ),
        (bad_plan::kernel(), ["99999", "refused.rs:"]),
        (
            misspelled::kernel(),
            ["did you mean `rolling-async`?", "refused.rs:"],
        ),
        (
            no_such_load::kernel(),
            [
                "this loop has no load `inptu`; did you mean `input`?",
                "refused.rs:",
            ],
        ),
        (
            near_memory::kernel(),
            ["a prefetch brings global memory nearer", "a slice parameter"],
        ),
        (
            wrong_pointer::kernel(),
            ["this is private memory, not shared", "`private_ptr`"],
        ),
        (
            computed_offset::kernel(),
            [
                "the element offset is computed when the kernel runs",
                "`p.add(n)`",
            ],
        ),
    ] {
        let message = built.expect_err(expected[0]).to_string();
        assert!(expected.iter().all(|part| message.contains(part)), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

/// Overflows where a debug build would stop.
#[kernel]
fn overflow(input: &[u8], output: &mut [u8]) {
    output[global_id()] = input[global_id()] + 200;
}

/// Reads behind the end.
#[kernel]
fn outside(input: &[u8], output: &mut [u8]) {
    output[global_id()] = input[global_id() + 1];
}

#[test]
fn running_says_what_and_where() {
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let input = TypedBuffer::from_slice(&device, &[1u8, 55, 56, 2]).expect("a buffer");
    let mut output = TypedBuffer::uninitialized(&device, 4).expect("a buffer");
    let line = |needle: &str| {
        let found = include_str!("refused.rs")
            .lines()
            .position(|line| line.contains(needle));
        format!(
            "refused.rs:{}",
            found.expect("the needle stands in this file") + 1
        )
    };

    let program = overflow::compile(&device).expect("it is right");
    let arguments = overflow::arguments(&input, &mut output);
    let message = program
        .launch(&*queue, Geometry::new(1, 4), arguments)
        .wait()
        .expect_err("56 + 200")
        .to_string();
    assert!(message.contains(&line("input[global_id()] + 200")), "{message}");

    let program = outside::compile(&device).expect("it is right");
    let arguments = outside::arguments(&input, &mut output);
    let message = program
        .launch(&*queue, Geometry::new(1, 4), arguments)
        .wait()
        .expect_err("element 4")
        .to_string();
    assert!(message.contains(&line("input[global_id() + 1]")), "{message}");
}

#[kernel(work_group = 8, sub_group = 4)]
fn of_a_size(out: &mut [u32]) {
    out[global_id()] = (sub_group_id() * 10 + sub_group_local_id()) as u32;
}

#[test]
fn the_reference_keeps_the_required_sizes() {
    let mut out = vec![0; 8];
    of_a_size::reference(Geometry::new(1, 8), &mut out).expect("the sizes are right");
    assert_eq!(out, [0, 1, 2, 3, 10, 11, 12, 13]);
    for (geometry, expected) in [
        (Geometry::new(2, 4), "it requires [8]"),
        (Geometry::new(1, 8).sub_group_size(8), "it requires 4"),
    ] {
        let message = of_a_size::reference(geometry, &mut out)
            .expect_err(expected)
            .to_string();
        assert!(message.contains(expected), "{message}");
    }
}
