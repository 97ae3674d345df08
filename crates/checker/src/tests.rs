//! The checker must find errors that the bits do not show, and accept correct plans.

use std::sync::Arc;

use super::{Report, check};
use crate::Result;
use crate::ir::{Kernel, Type, parse};
use headstart_device::{Argument, Buffer, Element, Fill, Launch, Pattern};
use headstart_sim::functional::{BufferMemory, Groups};

/// `out[i]` is the sum of `data[i × n + j]` over `j`; `body` is the loop.
fn kernel(arrays: &str, body: &str) -> Arc<Kernel> {
    let text = format!(
        "hsir 1
         kernel @sum(
           %data: ptr.global f32[] align 4 readonly unaliased,
           %out: ptr.global f32[] align 4 unaliased,
           %n: i64,
         ) {{
           {arrays}
           file #1 \"sum.rs\"
           load @data #1:3:9
           load @ring
           %local32 = id.local.x
           %local = extend.u %local32 to i64
           %group32 = id.group.x
           %group = extend.u %group32 to i64
           %size32 = id.group_size.x
           %size = extend.u %size32 to i64
           %before = mul %group, %size
           %item = add %before, %local
           %first = mul %item, %n
           %row = address %data + %first * 4
           {body}
           %to = address %out + %item * 4
           store %to, %sum #1:9:1
           return
         }}"
    );
    Arc::new(parse(&text, "sum.hsir").unwrap_or_else(|error| panic!("{error}")))
}

fn plain() -> Arc<Kernel> {
    kernel(
        "",
        "%sum = loop (%j = 0:i64, %acc = 0.0:f32) -> f32 {
           %more = lt.s %j, %n
           if %more { yield } else { break %acc }
           %p = address %row + %j * 4
           %x = load f32 %p, @data #1:3:9
           %acc1 = fadd %acc, %x #1:4:5
           %j1 = add %j, 1:i64
           continue %j1, %acc1
         }",
    )
}

/// The value of the next iteration is carried in a register; `ahead` is how far ahead it is loaded.
fn rolling(ahead: i64) -> Arc<Kernel> {
    kernel(
        "",
        &format!(
            "%any = lt.s 0:i64, %n
             %x0 = if %any -> f32 {{ %a = load f32 %row, @data #1:3:9 yield %a }} else {{ yield 0.0:f32 }}
             %sum = loop (%j = 0:i64, %acc = 0.0:f32, %x = %x0) -> f32 {{
               %more = lt.s %j, %n
               if %more {{ yield }} else {{ break %acc }}
               %j1 = add %j, 1:i64
               %k = add %j, {ahead}:i64
               %inside = lt.s %k, %n
               %next = if %inside -> f32 {{
                 %p = address %row + %k * 4
                 %y = load f32 %p, @data #1:3:9
                 yield %y
               }} else {{ yield 0.0:f32 }}
               %acc1 = fadd %acc, %x #1:4:5
               continue %j1, %acc1, %next
             }}"
        ),
    )
}

/// Each work-item copies its next value into its own slot of shared memory; `lane` says whose slot it
/// reads, `wait` how it waits.
fn ring(lane: &str, wait: &str) -> Arc<Kernel> {
    kernel(
        "shared @ring: f32[64] align 16",
        &format!(
            "%ring = array @ring
             %slot = address %ring + %local * 4
             %read_lane = {lane}
             %read = address %ring + %read_lane * 4
             %sum = loop (%j = 0:i64, %acc = 0.0:f32) -> f32 {{
               %more = lt.s %j, %n
               if %more {{ yield }} else {{ break %acc }}
               %p = address %row + %j * 4
               %t = copy 4 to %slot from %p, @data
               {wait}
               barrier
               %x = load f32 %read, @ring
               barrier
               %acc1 = fadd %x, %acc #1:4:5
               %j1 = add %j, 1:i64
               continue %j1, %acc1
             }}"
        ),
    )
}

fn buffer<T: Element>(length: u64, fill: Fill) -> Argument {
    let memory = BufferMemory::new(T::TYPE, length, fill).expect("fits");
    Argument::Buffer(Buffer::new(T::TYPE, length, Arc::new(memory)))
}

/// Checks on data that are all the same, so that only terms can tell elements apart.
fn checked(derived: &Arc<Kernel>, trips: u64) -> Result<Report> {
    checked_against(&plain(), derived, trips)
}

fn checked_against(plain: &Arc<Kernel>, derived: &Arc<Kernel>, trips: u64) -> Result<Report> {
    let (groups, group) = (3u32, 40u32);
    let items = u64::from(groups * group);
    let ones = Fill::Pattern(Pattern::Constant(u64::from(1.0f32.to_bits())));
    let launch = Launch::new(
        groups,
        group,
        vec![
            buffer::<f32>(items * trips, ones),
            buffer::<f32>(items, Fill::Uninitialized),
            Argument::Scalar(Type::I64, trips),
        ],
    );
    check(plain, derived, &launch, 32, &Groups::All)
}

fn message(derived: &Arc<Kernel>, trips: u64) -> String {
    let error = checked(derived, trips).expect_err("the derived kernel is wrong");
    assert_eq!(error.exit_status(), 4, "{error}");
    error.to_string()
}

/// Trip counts at which the remainders, prologues and drains of a loop go through all their cases, for the
/// distances and unroll factors of a plan: 0, 1, and D − 1, D, D + 1, 2 D + 1 for each.
fn trip_counts(distances: &[u64]) -> Vec<u64> {
    let around = |&distance: &u64| {
        [
            distance.saturating_sub(1),
            distance,
            distance.saturating_add(1),
            distance.saturating_mul(2).saturating_add(1),
        ]
    };
    let mut counts: Vec<u64> = distances.iter().flat_map(around).chain([0, 1]).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

#[test]
fn right_kernels_pass_at_every_trip_count() {
    for trips in trip_counts(&[1, 4]) {
        let report = checked(&rolling(1), trips).unwrap_or_else(|error| panic!("{trips}: {error}"));
        assert_eq!((report.groups, report.bytes), (3, 480));
        assert_eq!(
            (report.loads[0].plain, report.loads[0].derived),
            (120 * trips, 120 * trips)
        );
        let report = checked(&ring("add %local, 0:i64", "wait %t"), trips);
        report.unwrap_or_else(|error| panic!("{trips}: {error}"));
    }
}

#[test]
fn a_value_of_another_iteration_is_found_and_named() {
    assert_eq!(
        message(&rolling(2), 5),
        "sum.rs:9:1, work-item 0 of work-group 0 (global 0): a bug in Headstart: the derived kernel differs at `out[0]`: \
         it uses `data[2]`, which work-item 0 of work-group 0 (global 0) reads by load `data` (sum.rs:3:9) in iteration \
         1 where the plain kernel uses `data[1]`, which work-item 0 of work-group 0 (global 0) reads by load `data` \
         (sum.rs:3:9) in iteration 1; it gives bits 0x40800000, not 0x40a00000"
    );
    // One iteration is too few to show it.
    assert!(checked(&rolling(2), 1).is_ok());
}

#[test]
fn a_neighbours_slot_is_found_where_the_data_coincide() {
    let text = message(&ring("xor %local, 1:i64", "wait %t"), 2);
    assert!(
        text.contains("it uses `data[2]`, which work-item 1 of work-group 0 (global 1) reads by load `data`")
            && text.contains("the plain kernel uses `data[0]`, which work-item 0 of work-group 0 (global 0)")
            && text.ends_with("the bits are the same with these data"),
        "{text}"
    );
}

#[test]
fn a_missing_wait_is_the_engines_report() {
    let text = message(&ring("add %local, 0:i64", ""), 2);
    assert!(
        text.contains(
            "the derived kernel differs: work-item 0 of work-group 0 (global 0) reads `ring[0]` while"
        ),
        "{text}"
    );
}

#[test]
fn another_operation_or_order_is_found() {
    let other = |change: &str| {
        let sum = format!(
            "%sum = loop (%j = 0:i64, %acc = 0.0:f32) -> f32 {{
               %more = lt.s %j, %n
               if %more {{ yield }} else {{ break %acc }}
               %p = address %row + %j * 4
               %x = load f32 %p, @data #1:3:9
               {change}
               %j1 = add %j, 1:i64
               continue %j1, %acc1
             }}"
        );
        kernel("", &sum)
    };
    assert!(
        checked(&other("%acc1 = fadd %x, %acc"), 4).is_ok(),
        "addition commutes"
    );
    let text = message(&other("%y = fmul %x, %x #1:5:5\n%acc1 = fadd %acc, %y"), 4);
    assert!(
        text.contains("it uses the result of `fmul` at sum.rs:5:5 where the plain kernel uses `data[0]`"),
        "{text}"
    );
    // The sum from the other end: the same bits for ones, but not for all data.
    let text = message(
        &other(
            "%last = sub %n, 1:i64\n%k = sub %last, %j\n%q = address %row + %k * 4\n%z = load f32 %q, @data #1:3:9\n%acc1 = fadd %acc, %z",
        ),
        4,
    );
    assert!(
        text.contains("it uses `data[3]`") && text.contains("uses `data[0]`"),
        "{text}"
    );
}

/// A pass folds what it knows, and what is masked goes, with the load that it depends on.
#[test]
fn what_a_zero_masks_is_known() {
    let masked = |mask: u32| {
        kernel(
            "",
            &format!(
                "%x = load f32 %row, @data #1:3:9
                 %bits = bits %x to i32
                 %masked = and {mask}:i32, %bits
                 %sum = bits %masked to f32"
            ),
        )
    };
    let folded = kernel("", "%zero = mul 0:i32, 8:i32\n%sum = bits %zero to f32");
    assert!(checked_against(&masked(0), &folded, 1).is_ok());
    assert!(checked_against(&masked(1), &folded, 1).is_err());
}

#[test]
fn an_element_that_is_not_written_is_found() {
    let derived = kernel(
        "",
        "%sum = loop (%j = 0:i64, %acc = 0.0:f32) -> f32 {
           %more = lt.s %j, %n
           if %more { yield } else { break %acc }
           %p = address %row + %j * 4
           %x = load f32 %p, @data #1:3:9
           %acc1 = fadd %acc, %x #1:4:5
           %odd = eq %item, 7:i64
           if %odd { return }
           %j1 = add %j, 1:i64
           continue %j1, %acc1
         }",
    );
    let text = message(&derived, 2);
    assert!(
        text.contains("at `out[7]`: the derived kernel does not write it"),
        "{text}"
    );
}

#[test]
fn a_wrong_plain_kernel_is_not_our_fault() {
    let wrong = kernel(
        "",
        "%p = address %row + 1000000:i64 * 4\n%sum = load f32 %p, @data",
    );
    let launch = Launch::new(
        1,
        1,
        vec![
            buffer::<f32>(8, Fill::Pattern(Pattern::Constant(0))),
            buffer::<f32>(1, Fill::Uninitialized),
            Argument::Scalar(Type::I64, 1),
        ],
    );
    let error = check(&wrong, &wrong, &launch, 32, &Groups::All).expect_err("out of bounds");
    assert_eq!(error.exit_status(), 1);
}

#[test]
fn trip_counts_are_those_of_the_rule() {
    assert_eq!(trip_counts(&[]), [0, 1]);
    assert_eq!(trip_counts(&[4]), [0, 1, 3, 4, 5, 9]);
    assert_eq!(trip_counts(&[1, 16]), [0, 1, 2, 3, 15, 16, 17, 33]);
}
