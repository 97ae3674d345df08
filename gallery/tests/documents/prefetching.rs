//! The lines of Intel's page on prefetch, and its three kernels in its setting: one work-group, nothing unrolled, functions as accurate
//! as DPC++ builds them.

use std::sync::Arc;

use headstart::device::CacheState;
use headstart::ir::Accuracy;
use headstart::tune::{Bench, SimulatedBench};

use super::page::Found;
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

pub const ROWS: [Found; 4] = [
    ("First example: indirect access, each iteration waits", || {
        let [plain, ..] = times(COLD, CacheState::Flushed);
        format!("{plain:.0} µs, cold caches, roots within 3 ulp as DPC++ builds them")
    }),
    (
        "Second example: the next index is prefetched by `prefetch(1)`, which reaches L3",
        || {
            let [_, to_l3, _] = times(COLD, CacheState::Flushed);
            format!("{to_l3:.1} µs")
        },
    ),
    ("Third example: prefetched to L1, with bounds checked", || {
        let [_, _, to_l1] = times(COLD, CacheState::Flushed);
        format!("{to_l1:.1} µs")
    }),
    (
        "With hints for L3 a user might see no gain or a loss; L1 gives best results",
        || {
            let [plain, to_l3, to_l1] = times(SAMPLE, CacheState::Kept);
            format!(
                "with the published sample's constants, warm: {:.2}× to L3, {:.2}× to L1",
                plain / to_l3,
                plain / to_l1
            )
        },
    ),
];
