//! Memory that a module has of its own, in launches of the module itself: variables that are given contents, and the workspace of
//! a cooperative launch. On a worker without a GPU, and on a real one if there is one.

use std::path::Path;
use std::sync::Arc;

use headstart::device::cuda::timing::TimingOptions;
use headstart::device::cuda::worker;
use headstart::device::sim::Simulator;
use headstart::front::ptx::import;
use headstart::ir::Kernel;
use headstart::prefetch::{Plan, PlanTarget, apply};
use headstart::report::Outputs;
use headstart::tune::gpu::{GpuBench, Wanted};
use headstart::tune::{FileSubject, LaunchFile, Subject, Workload};
use headstart_testing as testing;

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

fn started(worker: &str) -> headstart::Result<GpuBench> {
    let this = std::env::current_exe().expect("a test has a path");
    let command = format!(
        "HEADSTART_TEST_WORKER={worker} exec \"$0\" worker_process --exact --nocapture --test-threads=1"
    );
    let arguments = ["-c".into(), command.into(), this.into()];
    GpuBench::start(Path::new("/bin/sh"), &arguments, 0)
}

fn benches() -> Vec<GpuBench> {
    let mut benches = vec![started("none").expect("it needs nothing")];
    match started("gpu") {
        Ok(bench) => benches.push(bench),
        Err(error) => eprintln!("skipped on a GPU: {error}"),
    }
    benches
}

/// Adds four products with `factors` to each of `sums`, which are the module's.
const SCALED: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .const .align 4 .b8 factors[16] = {0, 0, 128, 63};
.visible .global .align 4 .b8 sums[5120];
.visible .entry other() { ret; }
.visible .entry scaled(.param .u64 data)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [data];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd3, %r4, 4;
    mov.u64 %rd4, sums;
    add.s64 %rd5, %rd4, %rd3;
    mul.wide.u32 %rd6, %r4, 16;
    add.s64 %rd7, %rd2, %rd6;
    mov.u64 %rd8, factors;
    ld.global.f32 %f1, [%rd5];
    mov.u32 %r5, 0;
$again:
    ld.global.f32 %f2, [%rd7];
    ld.const.f32 %f3, [%rd8];
    fma.rn.f32 %f1, %f2, %f3, %f1;
    add.s64 %rd7, %rd7, 4;
    add.s64 %rd8, %rd8, 4;
    add.s32 %r5, %r5, 1;
    setp.lt.s32 %p1, %r5, 4;
    @%p1 bra $again;
    st.global.f32 [%rd5], %f1;
    ret;
}
";

const SCALED_LAUNCH: &str = "
groups = 40
group = 32
readonly = [\"data\"]
unaliased = [\"sums\"]
[parameters.data]
length = 5120
fill = \"fractions\"
[parameters.sums]
length = 1280
fill = \"fractions\"
output = \"bits\"
[parameters.factors]
length = 4
fill = \"fractions\"
";

/// Writes `middle`, meets the other work-groups as cooperative groups do, and adds up what eight of them wrote.
const MEETS: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry meets(.param .u64 middle, .param .u64 result)
{
    .reg .pred %p<5>;
    .reg .b32 %r<24>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [middle];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u64 %rd3, [result];
    cvta.to.global.u64 %rd4, %rd3;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd5, %r4, 4;
    add.s64 %rd6, %rd2, %rd5;
    mul.lo.s32 %r5, %r4, 3;
    st.global.u32 [%rd6], %r5;
    mov.u32 %r6, %envreg2;
    cvt.u64.u32 %rd7, %r6;
    mov.u32 %r7, %envreg1;
    cvt.u64.u32 %rd8, %r7;
    bfi.b64 %rd10, %rd8, %rd7, 32, 32;
    bar.sync 0;
    setp.ne.s32 %p1, %r3, 0;
    @%p1 bra $met;
    mov.u32 %r8, %nctaid.x;
    sub.s32 %r9, -2147483647, %r8;
    setp.eq.s32 %p2, %r1, 0;
    selp.b32 %r10, %r9, 1, %p2;
    membar.gl;
    atom.global.add.u32 %r11, [%rd10+4], %r10;
$wait:
    ld.volatile.global.u32 %r12, [%rd10+4];
    xor.b32 %r13, %r12, %r11;
    setp.ge.s32 %p3, %r13, 0;
    @%p3 bra $wait;
    membar.gl;
$met:
    bar.sync 0;
    mov.u32 %r14, 0;
    mov.u32 %r15, 0;
    mov.u32 %r20, %nctaid.x;
    mul.lo.s32 %r21, %r20, %r2;
$again:
    add.s32 %r4, %r4, %r2;
    rem.u32 %r4, %r4, %r21;
    mul.wide.u32 %rd11, %r4, 4;
    add.s64 %rd12, %rd2, %rd11;
    ld.global.u32 %r16, [%rd12];
    add.s32 %r14, %r14, %r16;
    add.s32 %r15, %r15, 1;
    setp.lt.s32 %p4, %r15, 8;
    @%p4 bra $again;
    add.s64 %rd13, %rd4, %rd5;
    st.global.u32 [%rd13], %r14;
    ret;
}
";

const MEETS_LAUNCH: &str = "
groups = 40
group = 32
[parameters.middle]
length = 1280
output = \"bits\"
[parameters.result]
length = 1280
output = \"bits\"
";

fn workload(text: &str, entry: &str, launch: &str) -> Workload {
    let launch = LaunchFile::parse(launch, "launch").expect("a launch file");
    let imported = import(text, "memory.ptx", Some(entry), &launch.facts()).expect("it can be read");
    let subject = FileSubject::of_module(imported, launch);
    subject.workload().expect("it has all arguments")
}

/// The outputs of a kernel and of a plan of it, which are the same, in the module that it was read from.
fn outputs(bench: &mut GpuBench, workload: &Workload, plan: &str) -> Vec<Vec<u8>> {
    let target = PlanTarget {
        group_size: Some(workload.group),
        ..PlanTarget::default()
    };
    let plan: Plan = plan.parse().expect("a plan");
    let planned = apply(&workload.kernel, &plan, &target)
        .expect("it is legal")
        .kernel;
    let named = |name: &str, kernel: Arc<Kernel>| (name.to_owned(), kernel);
    let kernels = [
        named("none", Arc::clone(&workload.kernel)),
        named("planned", Arc::new(planned)),
    ];
    let timing = TimingOptions {
        rounds: 2,
        ..TimingOptions::default()
    };
    let mut found = || Ok(Wanted::Found);
    let measured = bench
        .measure(workload, &kernels, &mut found, timing)
        .expect("they run");
    let found: Vec<_> = measured
        .into_iter()
        .map(|own| own.expect("it runs").found.expect("it is wanted"))
        .collect();
    assert_eq!(found[0], found[1]);
    let against = bench
        .measure_against_own(workload, &kernels, timing)
        .expect("they run");
    assert!(against.own.is_its_module);
    for own in against.kernels {
        assert_eq!(own.expect("it is right").outputs, Some(Outputs::Identical));
    }
    found.into_iter().next().expect("there are two")
}

#[test]
fn variables_have_the_contents_that_a_launch_gives_them() {
    let workload = workload(SCALED, "scaled", SCALED_LAUNCH);
    let simulator = Simulator::untimed();
    let (_, right) = workload
        .bind(&simulator)
        .and_then(|bound| bound.run(&simulator, &workload.kernel))
        .expect("it runs");
    for mut bench in benches() {
        for plan in ["unroll:2", "data=rolling-registers:2"] {
            assert_eq!(outputs(&mut bench, &workload, plan), right, "{plan}");
        }
    }
}

#[test]
fn work_groups_meet_in_a_cooperative_launch() {
    let workload = workload(MEETS, "meets", MEETS_LAUNCH);
    // Only a GPU runs work-groups that wait for each other beside each other.
    let Ok(mut bench) = started("gpu") else {
        eprintln!("skipped: there is no GPU");
        return;
    };
    let outputs = outputs(&mut bench, &workload, "unroll:2");
    let words = |bytes: &[u8]| -> Vec<u32> {
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|word| u32::from_le_bytes(*word)).collect()
    };
    let right: Vec<u32> = (0..1280)
        .map(|item| (1..=8).map(|step| 3 * ((item + 32 * step) % 1280)).sum())
        .collect();
    assert_eq!(words(&outputs[1]), right);
}
