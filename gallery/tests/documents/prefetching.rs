//! The lines of Intel's page on prefetch, and its three kernels in its setting: one work-group, nothing unrolled, functions as accurate
//! as DPC++ builds them.

use std::sync::Arc;

use headstart::device::CacheState;
use headstart::ir::Accuracy;
use headstart::tune::{Bench, SimulatedBench};

use super::page::{Row, found, words};
use super::{model, planned, workload};

/// Microseconds of the page's kernels: plain, with hints for L3, with hints for L1.
fn times(settings: &str, cache: CacheState) -> [f64; 3] {
    ["gather-pointer", "gather-hint-l3", "gather-hint-l1"].map(|name| {
        let workload = workload(name, settings);
        let mut kernel = (*planned(&workload, "none", 64)).clone();
        kernel.float_mode.accuracy = Accuracy::OpenCl;
        let bench = SimulatedBench::new(model("pvc-1550", &[])).with_cache(cache);
        let bound = workload.bind(bench.device()).expect("fits");
        bench.time(&bound, &Arc::new(kernel)).expect("a time").time_ns / 1000.0
    })
}

/// As the page's text has it: 64 indices for each work-item of one work-group, values that no cache holds.
const COLD: &str = "groups=1 items=64 table=67108864 work=64";
/// The constants of Intel's published sample: 16 sub-groups of 32, 2,048 indices for each work-item, as many values as indices.
const SAMPLE: &str = "groups=1 group=512 items=2048 table=1048576 work=64";

#[test]
fn the_pages_kernels_gain_as_the_page_says() {
    let [plain, to_l3, to_l1] = times(COLD, CacheState::Flushed);
    println!("cold: {plain:.1}, {to_l3:.1}, {to_l1:.1} µs");
    for (found, expected) in [(plain, 110.0), (to_l3, 92.9), (to_l1, 79.0)] {
        assert!(
            (found / expected - 1.0).abs() < 0.03,
            "{found} µs instead of {expected}"
        );
    }
    let [plain, to_l3, to_l1] = times(SAMPLE, CacheState::Kept);
    println!("sample: {:.2}x to L3, {:.2}x to L1", plain / to_l3, plain / to_l1);
    // "User might even see performance loss" with hints for L3; "prefetch gives best results if data is loaded to L1 cache".
    assert!((0.95..1.03).contains(&(plain / to_l3)), "{}", plain / to_l3);
    assert!((1.12..1.25).contains(&(plain / to_l1)), "{}", plain / to_l1);
}

/// With no root between two indices the loads are still there.
#[test]
fn without_work_the_values_are_loaded_all_the_same() {
    for name in ["gather", "gather-pointer", "gather-hint-l3", "gather-hint-l1"] {
        let kernel = planned(&workload(name, "groups=1 items=64 table=1024 work=0"), "none", 64);
        let text = headstart::ir::print(&kernel);
        assert!(text.matches("= load").count() >= 2, "{name}: {text}");
    }
}

const RUN_COLD: &str = "headstart run gather-hint-l1 --device sim:pvc-1550 --accuracy opencl --l2 flushed --set groups=1 --set items=64 --set table=67108864 --set work=64";
const RUN_SAMPLE: &str = "headstart run gather-hint-l1 --device sim:pvc-1550 --accuracy opencl --set groups=1 --set group=512 --set items=2048 --set table=1048576 --set work=64";

pub const ROWS: [Row; 24] = [
    words(
        "Loads that miss are among the commonest reasons of stalls; registers wait for memory",
        "stalls by reason, in each run's counters",
        "headstart run gather --device sim:pvc-1550",
    ),
    words(
        "The GPU hides latency by reordering and by other threads",
        "the model issues in order, switches threads, and lets loads of a thread overlap until a value is used",
        "[the simulator](simulator.md)",
    ),
    words(
        "If that is not enough, and bandwidth is left, prefetch",
        "the first two questions of the checklist",
        "headstart advise gather --device sim:pvc-1550",
    ),
    words(
        "Prefetch works on the Max series and later",
        "`sim:xe-lp` and `sim:gen11` leave hints out, and say so",
        "headstart devices",
    ),
    words(
        "Prefetch is asynchronous: nothing waits",
        "a hint holds a thread up for its issue only",
        "headstart run micro/hints --device sim:pvc-1550",
    ),
    words(
        "It has to be submitted far enough ahead",
        "`tune` finds the distance, and a sweep shows it",
        "headstart sweep gather --device sim:pvc-1550 --over distance=1..16 --plan indices=cache:L1:1",
    ),
    words(
        "Unrolling is tried first; prefetch where it cannot be",
        "verdicts prefer the cheaper answer: more work-groups, unrolling, prefetching",
        "[reading a report](reading.md)",
    ),
    words(
        "VTune: bandwidth not fully used, many scoreboard stalls",
        "`advise --vtune FILE.csv` asks the same of a profile",
        "[reading a report](reading.md)",
    ),
    words(
        "The examples run one work-group, and forbid unrolling",
        "`groups=1`, and `#[unroll(0)]` in the kernels",
        RUN_COLD,
    ),
    found(
        "First example: indirect access, each iteration waits",
        || {
            let [plain, ..] = times(COLD, CacheState::Flushed);
            format!("{plain:.0} µs, cold caches, roots within 3 ulp as DPC++ builds them")
        },
        "headstart run gather-pointer --device sim:pvc-1550 --accuracy opencl --l2 flushed --set groups=1 --set items=64 --set table=67108864 --set work=64",
    ),
    found(
        "Second example: the next index is prefetched by `prefetch(1)`, which reaches L3",
        || {
            let [_, to_l3, _] = times(COLD, CacheState::Flushed);
            format!("{to_l3:.1} µs")
        },
        "headstart run gather-hint-l3 --device sim:pvc-1550 --accuracy opencl --l2 flushed --set groups=1 --set items=64 --set table=67108864 --set work=64",
    ),
    found(
        "Third example: prefetched to L1, with bounds checked",
        || {
            let [_, _, to_l1] = times(COLD, CacheState::Flushed);
            format!("{to_l1:.1} µs")
        },
        RUN_COLD,
    ),
    found(
        "With hints for L3 a user might see no gain or a loss; L1 gives best results",
        || {
            let [plain, to_l3, to_l1] = times(SAMPLE, CacheState::Kept);
            format!(
                "with the published sample's constants, warm: {:.2}× to L3, {:.2}× to L1",
                plain / to_l3,
                plain / to_l1
            )
        },
        RUN_SAMPLE,
    ),
    words(
        "`prefetch` takes one argument: a number of consecutive elements",
        "`Ptr::prefetch(count)`",
        "[prefetches](prefetch.md)",
    ),
    words(
        "At most 32 bytes of each work-item a call",
        "longer ranges are split into calls of at most 32 bytes",
        "[SPIR-V](spirv.md)",
    ),
    words(
        "The number should be constant",
        "a constant becomes calls; another one becomes a loop",
        "[prefetches](prefetch.md)",
    ),
    words(
        "It maps to L1UC_L3C, and gives no control over the cache",
        "the same control, in `run`'s list of hints",
        "headstart run gather-hint-l3 --device sim:pvc-1550 --set groups=1 --set items=64",
    ),
    words(
        "`LSC_LDCC`: eight cache controls",
        "each with its number and effect, for loads and hints: streaming and invalidated lines leave L1 alone, uncached ones leave L3 alone",
        "headstart sweep micro/controls --device sim:pvc-1550 --over control=L1UC_L3UC,L1UC_L3C,L1C_L3UC,L1C_L3C,L1S_L3UC,L1S_L3C,L1IAR_L3C",
    ),
    words(
        "Twelve functions `__builtin_IB_lsc_prefetch_global_*`",
        "`lsc_prefetch_uchar` to `lsc_prefetch_ulong8`, emitted as these calls",
        "headstart emit gather-hint-l1 --target spirv",
    ),
    words(
        "`immElemOff` offsets the pointer, mostly 0",
        "the functions' second argument",
        "[prefetches](prefetch.md)",
    ),
    words(
        "L1C_L3C is expected to be best in most scenarios",
        "what a hint to L1 becomes",
        "headstart advise gather --device sim:pvc-1550",
    ),
    words(
        "A prefetch to L1 beyond memory's end is undefined",
        "derived hints are guarded; one that may fault is reported",
        "[checks](checks.md)",
    ),
    words(
        "Memory fences may flush the cache",
        "a fence empties L1 in the model",
        "headstart run micro/atomics --device sim:pvc-1550 --set order=acq-rel",
    ),
    words(
        "Short kernels like these are served by unrolling",
        "`tune` on the page's first kernel says so where it may unroll",
        "headstart tune gather --device sim:pvc-1550 --set groups=1 --set items=64",
    ),
];
