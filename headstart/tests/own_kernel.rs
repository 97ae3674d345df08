//! Errors found at full size, where a kernel is compared with the user's own one on the same GPU: a kernel that is wrong on
//! purpose for each kind of error. On a worker without a GPU, and on a real one if there is one.

use std::path::Path;
use std::sync::Arc;

use headstart::device::cuda::timing::TimingOptions;
use headstart::device::cuda::worker::{self, Piece};
use headstart::device::{Fill, Pattern};
use headstart::ir::{Kernel, Type};
use headstart::prelude::{Atomic, Ordering, global_id, kernel};
use headstart::report::Outputs;
use headstart::tune::gpu::{Against, GpuBench, Measured};
use headstart::tune::{ArgumentSpec, Compare, Workload};
use headstart::{Fault, Result};
use headstart_testing as testing;

const GROUPS: u32 = 40;
const GROUP: u32 = 32;
const ITEMS: u64 = (GROUPS * GROUP) as u64;

/// Elements that a work-item computes which is left out by [`leaves_poison`].
const LEFT_OUT: usize = 777;

/// What each work-item computes; one of the results is what outputs hold before a launch.
#[kernel(work_group = 32)]
fn own(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    result[i] = if i == 777 { 0x5a5a_5a5a } else { data[i] * 3 + 1 };
}

#[kernel(work_group = 32)]
fn same(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    let x = if i == 777 {
        0x5a5a_5a59
    } else {
        data[i] + data[i] + data[i]
    };
    result[i] = x + 1;
}

/// Wrong in one element of one work-group.
#[kernel(work_group = 32)]
fn wrong_in_one(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    let x = if i == 777 { 0x5a5a_5a59 } else { data[i] * 3 };
    result[i] = if i == 700 { 7 } else { x + 1 };
}

/// Writes nothing in one work-group.
#[kernel(work_group = 32)]
fn silent_in_one(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    if i / 32 != 20 {
        result[i] = if i == 777 { 0x5a5a_5a5a } else { data[i] * 3 + 1 };
    }
}

/// Does not write the element that should hold what is there before the launch.
#[kernel(work_group = 32)]
fn leaves_poison(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    if i != 777 {
        result[i] = data[i] * 3 + 1;
    }
}

/// Writes an input, after it was read.
#[kernel(work_group = 32)]
fn writes_an_input(data: &mut [u32], result: &mut [u32]) {
    let i = global_id();
    result[i] = if i == 777 { 0x5a5a_5a5a } else { data[i] * 3 + 1 };
    if i == 5 {
        data[i] = 9;
    }
}

/// Reads beyond the end of its input, and does nothing with it that shows.
#[kernel(work_group = 32)]
fn reads_beyond(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    let beyond = data[i + 32];
    let x = if i == 777 { 0x5a5a_5a5a } else { data[i] * 3 + 1 };
    result[i] = if beyond == 0x1234_5678 && i == 9 { 1 } else { x };
}

/// Does not end in one work-group.
#[kernel(work_group = 32)]
fn endless(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    let mut x = data[i] | 1;
    while i == 64 && x != 0 {
        x = x * 5 + 2;
    }
    result[i] = x;
}

/// Adds to what it finds.
#[kernel(work_group = 32)]
fn adds_up(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    result[i] += data[i];
}

/// Leaves an order of its work-items.
#[kernel(work_group = 32)]
fn by_chance(counter: &[Atomic<u32>], result: &mut [u32]) {
    let place = counter[0].fetch_add(1, Ordering::Relaxed);
    result[place as usize] = global_id() as u32;
}

/// What the worker runs: it is this program again, with this test alone.
#[test]
fn worker_process() {
    let (input, output) = (std::io::stdin().lock(), std::io::stdout());
    match std::env::var("HEADSTART_TEST_WORKER").as_deref() {
        Ok("gpu") => worker::serve(input, output).expect("the parent listens"),
        Ok("none") => testing::worker::serve(input, output).expect("the parent listens"),
        _ => {}
    }
}

fn started(environment: &str) -> Result<GpuBench> {
    let this = std::env::current_exe().expect("a test has a path");
    let command = format!("{environment} exec \"$0\" worker_process --exact --nocapture --test-threads=1");
    let arguments = ["-c".into(), command.into(), this.into()];
    GpuBench::start(Path::new("/bin/sh"), &arguments, 0)
}

/// One without a GPU, and a real one where there is one.
fn benches() -> Vec<GpuBench> {
    let mut benches = vec![started("HEADSTART_TEST_WORKER=none").expect("it needs nothing")];
    match started("HEADSTART_TEST_WORKER=gpu") {
        Ok(bench) => benches.push(bench),
        Err(error) => eprintln!("skipped on a GPU: {error}"),
    }
    benches
}

/// `own` with data, or another kernel in its place.
fn workload(kernel: Kernel, fill: Fill, compare: Compare) -> Workload {
    let workload = Workload::new(Arc::new(kernel), GROUPS, GROUP);
    let data = ArgumentSpec::Input {
        element: Type::I32,
        length: ITEMS,
        fill: Fill::Pattern(Pattern::Below { bound: 1000, seed: 3 }),
    };
    let result = ArgumentSpec::Output {
        element: Type::I32,
        length: ITEMS,
        fill,
        compare,
    };
    let workload = workload.with("data", data).expect("its first parameter");
    workload.with("result", result).expect("its second")
}

fn timing() -> TimingOptions {
    TimingOptions {
        rounds: 1,
        limit: std::time::Duration::from_secs(2),
        ..TimingOptions::default()
    }
}

/// What comes of a kernel beside `own`.
fn beside_own(bench: &mut GpuBench, kernel: Kernel) -> Result<Measured> {
    let own = workload(own::kernel().expect("right"), Fill::Uninitialized, Compare::Bits);
    let kernels = [
        ("none".to_owned(), Arc::clone(&own.kernel)),
        ("other".to_owned(), Arc::new(kernel)),
        ("last".to_owned(), Arc::new(same::kernel().expect("right"))),
    ];
    let Against { kernels, .. } = bench
        .measure_against_own(&own, &kernels, &[], timing())
        .expect("the own kernel is right");
    let [plain, other, last] = <[_; 3]>::try_from(kernels).expect("one for each");
    // Whatever goes wrong with one, the others are measured.
    for fine in [plain, last] {
        assert_eq!(fine.expect("it is right").outputs, Some(Outputs::Identical));
    }
    other
}

/// What is said of a kernel that is wrong beside `own`, on each bench.
fn refused(kernel: impl Fn() -> Result<Kernel>, expected: &[&str]) {
    for mut bench in benches() {
        let error = beside_own(&mut bench, kernel().expect("it is a kernel")).expect_err("it is wrong");
        let text = error.to_string();
        for part in expected {
            assert!(text.contains(part), "{}: {text}", bench.facts().name);
        }
    }
}

#[test]
fn a_kernel_that_computes_the_same_passes() {
    for mut bench in benches() {
        let measured = beside_own(&mut bench, same::kernel().expect("right")).expect("it is the same");
        assert_eq!(measured.outputs, Some(Outputs::Identical));
    }
}

#[test]
fn one_wrong_element_anywhere_is_found_and_told() {
    refused(
        wrong_in_one::kernel,
        &["output `result`: element 700 is 7, not", "on the same GPU"],
    );
}

#[test]
fn what_is_not_written_is_not_taken_from_an_earlier_launch() {
    refused(silent_in_one::kernel, &["output `result`: element 640 is"]);
}

#[test]
fn what_is_not_written_is_found_where_the_result_is_what_was_there() {
    let found = format!("output `result`: element {LEFT_OUT} is");
    refused(leaves_poison::kernel, &[&found]);
}

#[test]
fn an_input_that_is_written_is_told() {
    refused(writes_an_input::kernel, &["writes `data`, which is an input"]);
}

#[test]
fn a_read_beyond_the_end_faults() {
    refused(
        reads_beyond::kernel,
        &["fails at full size, and the plain `own` does not"],
    );
}

#[test]
fn a_kernel_that_does_not_end_is_given_up() {
    refused(endless::kernel, &["times as long as `own`"]);
}

/// What is said of the user's own kernel.
fn own_refused(bench: &mut GpuBench, own: &Workload, expected: &[&str]) {
    let kernels = [("none".to_owned(), Arc::clone(&own.kernel))];
    let error = bench
        .measure_against_own(own, &kernels, &[], timing())
        .expect_err("nothing can be compared with it");
    assert_eq!(error.fault(), Fault::Input, "{error}");
    let text = error.to_string();
    for part in expected {
        assert!(text.contains(part), "{}: {text}", bench.facts().name);
    }
}

#[test]
fn what_is_wrong_with_the_users_own_kernel_is_told_as_theirs() {
    type Case = (fn() -> Result<Kernel>, &'static [&'static str]);
    let cases: [Case; 4] = [
        (
            reads_beyond::kernel,
            &[
                "`reads_beyond` itself fails at full size",
                "stays within its buffers",
            ],
        ),
        (endless::kernel, &["`endless` itself does not end at full size"]),
        (
            writes_an_input::kernel,
            &["`writes_an_input` writes `data`, which it is given as an input"],
        ),
        (
            adds_up::kernel,
            &[
                "`adds_up` reads `result` before it writes it",
                "first in element 0",
            ],
        ),
    ];
    for mut bench in benches() {
        for (kernel, expected) in &cases {
            let own = workload(
                kernel().expect("it is a kernel"),
                Fill::Uninitialized,
                Compare::Bits,
            );
            own_refused(&mut bench, &own, expected);
        }
        // What is given may be read.
        let zeros = Fill::Pattern(Pattern::Constant(0));
        let own = workload(adds_up::kernel().expect("right"), zeros, Compare::Bits);
        let kernels = [("none".to_owned(), Arc::clone(&own.kernel))];
        let against = bench.measure_against_own(&own, &kernels, &[], timing());
        assert!(against.is_ok_and(|against| against.kernels[0].is_ok()));
    }
}

/// `by_chance`, with its results compared so.
fn places(compare: Compare) -> Workload {
    let counter = ArgumentSpec::Output {
        element: Type::I32,
        length: 1,
        fill: Fill::Pattern(Pattern::Constant(0)),
        compare: Compare::Bits,
    };
    let result = ArgumentSpec::Output {
        element: Type::I32,
        length: ITEMS,
        fill: Fill::Uninitialized,
        compare,
    };
    let kernel = Arc::new(by_chance::kernel().expect("right"));
    let workload = Workload::new(kernel, GROUPS, GROUP).with("counter", counter);
    let workload = workload.and_then(|workload| workload.with("result", result));
    workload.expect("its parameters")
}

#[test]
fn a_kernel_that_is_not_deterministic_is_told_unless_that_is_declared() {
    let said = [
        "`by_chance` is not deterministic",
        "left other bits in `result`",
        "words of 4 bytes differ",
    ];
    let mut chance = started("HEADSTART_TEST_WORKER=none HEADSTART_TEST_CHANCE=1").expect("it starts");
    own_refused(&mut chance, &places(Compare::Bits), &said);
    match started("HEADSTART_TEST_WORKER=gpu") {
        Ok(mut bench) => own_refused(&mut bench, &places(Compare::Bits), &said),
        Err(error) => eprintln!("skipped on a GPU: {error}"),
    }
    for mut bench in benches() {
        let own = places(Compare::Multiset);
        let kernels = [0, 1].map(|number: u32| (number.to_string(), Arc::clone(&own.kernel)));
        let against = bench.measure_against_own(&own, &kernels, &[], timing());
        let Against { own, kernels } = against.expect("that is declared");
        // Launched on what it left, it takes places beyond the end.
        assert!(own.restored);
        for kernel in kernels {
            assert!(kernel.expect("the same in any order").outputs.is_some());
        }
    }
}

#[test]
fn outputs_are_put_back_for_kernels_that_leave_something_else_the_next_time() {
    for mut bench in benches() {
        for (kernel, repeats) in [(adds_up::kernel(), false), (own::kernel(), true)] {
            let zeros = Fill::Pattern(Pattern::Constant(0));
            let own = workload(kernel.expect("right"), zeros, Compare::Bits);
            let kernels = [("none".to_owned(), Arc::clone(&own.kernel))];
            let against = bench.measure_against_own(&own, &kernels, &[], timing());
            assert_eq!(against.expect("it is right").own.restored, !repeats);
        }
    }
}

#[test]
fn pieces_of_what_the_own_kernel_leaves_are_read() {
    for mut bench in benches() {
        let own = workload(own::kernel().expect("right"), Fill::Uninitialized, Compare::Bits);
        let kernels = [("none".to_owned(), Arc::clone(&own.kernel))];
        let piece = |first: u64, count: u64| Piece {
            output: 0,
            offset: first * 4,
            bytes: count * 4,
        };
        let pieces = [piece(776, 2), piece(0, 1)];
        let against = bench
            .measure_against_own(&own, &kernels, &pieces, timing())
            .expect("it is right");
        let data = Pattern::Below { bound: 1000, seed: 3 };
        let right = |i: u64| match i {
            777 => 0x5a5a_5a5a,
            _ => data.bits(Type::I32, i) as u32 * 3 + 1,
        };
        let expected: Vec<u8> = [776, 777, 0]
            .into_iter()
            .flat_map(|i| right(i).to_le_bytes())
            .collect();
        assert_eq!(against.own.pieces, expected);
        assert!(!against.own.is_its_module);
    }
}
