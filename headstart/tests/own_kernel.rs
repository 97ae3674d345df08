//! Errors found at full size, where a kernel is compared with the user's own one on the same GPU: a kernel that is wrong on
//! purpose for each kind of error. On a worker without a GPU, and on a real one if there is one.

use std::path::Path;
use std::sync::Arc;

use headstart::device::cuda::timing::TimingOptions;
use headstart::device::cuda::worker;
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
    let result = ArgumentSpec::output(Type::I32, ITEMS, fill, compare);
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
        .measure_against_own(&own, &kernels, timing())
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
        .measure_against_own(own, &kernels, timing())
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
    let cases: [Case; 3] = [
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
        let against = bench.measure_against_own(&own, &kernels, timing());
        assert!(against.is_ok_and(|against| against.kernels[0].is_ok()));
    }
}

/// `by_chance`, with its results compared so.
fn places(compare: Compare) -> Workload {
    let counter = ArgumentSpec::output(Type::I32, 1, Fill::Pattern(Pattern::Constant(0)), Compare::Bits);
    let result = ArgumentSpec::output(Type::I32, ITEMS, Fill::Uninitialized, compare);
    let kernel = Arc::new(by_chance::kernel().expect("right"));
    let workload = Workload::new(kernel, GROUPS, GROUP).with("counter", counter);
    let workload = workload.and_then(|workload| workload.with("result", result));
    workload.expect("its parameters")
}

/// Kernels beside the user's own one: the findings about that, and the outcome of each.
fn beside(bench: &mut GpuBench, own: &Workload, kernels: &[Kernel]) -> (Vec<String>, Vec<Result<Measured>>) {
    let others = kernels.iter().cloned().map(Arc::new);
    let all = std::iter::once(Arc::clone(&own.kernel)).chain(others).enumerate();
    let named: Vec<_> = all.map(|(number, kernel)| (number.to_string(), kernel)).collect();
    let Against { own, mut kernels } = bench
        .measure_against_own(own, &named, timing())
        .expect("the own kernel can be compared with");
    kernels.remove(0).expect("the own kernel");
    (own.findings, kernels)
}

/// Adds to what it finds, but in one place.
#[kernel(work_group = 32)]
fn adds_up_but_once(data: &[u32], result: &mut [u32]) {
    let i = global_id();
    let more = if i == 40 { 1 } else { 0 };
    result[i] += data[i] + more;
}

#[test]
fn what_reads_its_outputs_first_is_compared_with_the_same_in_them() {
    for mut bench in benches() {
        let kernel = adds_up::kernel().expect("right");
        let own = workload(kernel.clone(), Fill::Uninitialized, Compare::Bits);
        let wrong = adds_up_but_once::kernel().expect("right");
        let (findings, kernels) = beside(&mut bench, &own, &[kernel, wrong]);
        let [finding] = &findings[..] else {
            panic!("{findings:?}")
        };
        assert!(
            finding.contains("reads `result` before it writes it") && finding.contains("first in element 0"),
            "{finding}"
        );
        assert!(kernels[0].is_ok());
        let error = kernels[1].as_ref().expect_err("it is wrong").to_string();
        assert!(error.contains("element 40"), "{error}");
    }
}

#[test]
fn what_varies_by_chance_is_compared_by_its_class() {
    let mut chance = started("HEADSTART_TEST_WORKER=none HEADSTART_TEST_CHANCE=1").expect("it starts");
    let own = workload(own::kernel().expect("right"), Fill::Uninitialized, Compare::Bits);
    let kernels = [same::kernel(), wrong_in_one::kernel(), silent_in_one::kernel()];
    let kernels = kernels.map(|kernel| kernel.expect("it is a kernel"));
    let (findings, outcomes) = beside(&mut chance, &own, &kernels);
    assert!(
        findings[0].contains("of the 1280 words of `result` from launch to launch"),
        "{findings:?}"
    );
    let same = outcomes[0].as_ref().expect("it varies alike");
    assert_eq!(same.outputs, Some(Outputs::Equivalent));
    for wrong in &outcomes[1..] {
        let error = wrong.as_ref().expect_err("it is wrong each time");
        assert_eq!(error.fault(), Fault::Usage, "{error}");
        assert!(
            error
                .to_string()
                .contains("no launch of the kernel as it is left"),
            "{error}"
        );
    }
}

#[test]
fn places_that_are_taken_in_any_order_are_the_same_places() {
    if let Ok(mut bench) = started("HEADSTART_TEST_WORKER=gpu") {
        let own = places(Compare::Bits);
        let (findings, outcomes) = beside(&mut bench, &own, &[by_chance::kernel().expect("right")]);
        assert!(findings[0].contains("in another order"), "{findings:?}");
        assert!(outcomes[0].is_ok());
    }
    for mut bench in benches() {
        let own = places(Compare::Multiset);
        let kernels = [0, 1].map(|number: u32| (number.to_string(), Arc::clone(&own.kernel)));
        let against = bench.measure_against_own(&own, &kernels, timing());
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
            let against = bench.measure_against_own(&own, &kernels, timing());
            assert_eq!(against.expect("it is right").own.restored, !repeats);
        }
    }
}
