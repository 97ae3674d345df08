//! The lines of SYCL's extension for prefetching, and its open question.

use headstart::device::CacheState;
use headstart::ir::CacheLevel;

use super::page::Found;
use super::{model, time, workload};

/// Microseconds of the gallery's kernel whose prefetches name no level, on cold caches.
fn with_default(level: CacheLevel) -> f64 {
    let settings = format!("example=no-level default-level={}", level.name());
    time(
        &model("pvc-1550", &[]),
        "prefetch-examples",
        &settings,
        "none",
        CacheState::Flushed,
    ) / 1000.0
}

/// "Which level of cache should be targeted for an empty property list?" Where the next element is used soon, the nearest.
#[test]
fn the_default_level_is_the_launch_s() {
    let [l1, l2, l3, l4] = [CacheLevel::L1, CacheLevel::L2, CacheLevel::L3, CacheLevel::L4].map(with_default);
    println!("default L1 {l1:.0} µs, L2 {l2:.0}, L3 {l3:.0}, L4 {l4:.0}");
    assert!(l1 < 0.97 * l3, "{l1} and {l3} µs");
    // There are two levels: what is not L1 is Intel's L3.
    assert_eq!((l2, l4), (l3, l3));
}

/// Nontemporal is Intel's streaming, in L1; its L3 has no such mode.
#[test]
fn a_launch_reports_what_nontemporal_becomes() {
    let pvc = model("pvc-1550", &[]);
    let mapped = |example: &str| {
        let workload = workload("prefetch-examples", &format!("example={example}"));
        let hints = pvc.prefetches(&workload.kernel);
        hints
            .into_iter()
            .map(|hint| (hint.reached, hint.why))
            .collect::<Vec<_>>()
    };
    let [(reached, why)] = &mapped("nontemporal")[..] else {
        panic!("one hint")
    };
    assert!(
        *reached == Some(CacheLevel::L1) && why.starts_with("L1S_L3C"),
        "{why}"
    );
    let two = mapped("two-levels");
    let controls: Vec<&str> = two.iter().filter_map(|(_, why)| why.split(':').next()).collect();
    assert_eq!(controls, ["L1C_L3C", "L1UC_L3C"]);
}

pub const ROWS: [Found; 1] = [(
    "Open: the level of an empty property list; the draft takes the lowest",
    || {
        let [l1, l3] = [CacheLevel::L1, CacheLevel::L3].map(with_default);
        format!(
            "the launch decides, L1 unless it says otherwise: {l1:.0} µs with L1, {l3:.0} with the other levels, where the next use is near"
        )
    },
)];
