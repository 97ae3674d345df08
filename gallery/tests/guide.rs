//! What Intel's page on prefetch says of its three examples: one work-group, nothing unrolled, so that nothing hides the
//! latency.

use std::sync::Arc;

use headstart::device::{CacheState, model};
use headstart::ir::{OpKind, print};
use headstart::tune::{Bench, SimulatedBench, Subject};
use headstart_gallery::kernels;

/// Nanoseconds of a kernel on a device.
fn time(name: &str, device: &str) -> f64 {
    let settings = ["groups=1", "group=128", "items=64", "table=1048576", "work=64"].map(str::to_owned);
    let chosen = kernels::find(name)
        .and_then(|kernel| kernel.with(&settings, None))
        .expect("there");
    let workload = chosen.workload().expect("a workload");
    // The page's data are large; these are small.
    let bench =
        SimulatedBench::new(model::find(device, &[]).expect("a model")).with_cache(CacheState::Flushed);
    let bound = workload.bind(bench.device()).expect("fits");
    bound
        .run(bench.device(), &workload.kernel)
        .expect("it breaks no rule");
    bench.time(&bound, &workload.kernel).expect("a time").time_ns
}

#[test]
fn l1_gains_and_l3_gains_little() {
    let device = "pvc-1550";
    let [plain, l3, l1] =
        ["gather-pointer", "gather-hint-l3", "gather-hint-l1"].map(|name| time(name, device));
    println!("plain {plain}, L3 {l3}, L1 {l1}");
    // The page promises no numbers: little or a loss to L3, a gain to L1. The model has 6 % and 12 % (292, 275, 261 µs).
    assert!(
        plain / l3 < 1.08,
        "to L3 it should gain little, or lose: {plain} to {l3} ns"
    );
    assert!(plain / l1 > 1.10, "to L1 it should gain: {plain} to {l1} ns");
}

#[test]
fn a_device_without_prefetches_leaves_them_out() {
    for device in ["xe-lp", "gen11"] {
        let [l3, l1] = ["gather-hint-l3", "gather-hint-l1"].map(|name| time(name, device));
        // What is left is the pointer to the next index, and a test.
        let plain = time("gather-pointer", device);
        assert!(
            (l3 / plain - 1.0).abs() < 0.05 && (l1 / plain - 1.0).abs() < 0.1,
            "{plain}, {l3}, {l1}"
        );
    }
}

#[test]
fn the_examples_ask_for_what_the_page_asks() {
    for (name, expected) in [
        ("gather-pointer", None),
        ("gather-hint-l3", Some("prefetch L3 4 at")),
        ("gather-hint-l1", Some("prefetch L1C_L3C 4 at")),
    ] {
        let chosen = kernels::find(name)
            .and_then(|kernel| kernel.with(&[], None))
            .expect("there");
        let kernel = Arc::clone(&chosen.workload().expect("a workload").kernel);
        let mut prefetches = 0;
        kernel
            .body
            .walk(&mut |op| prefetches += u32::from(matches!(op.kind, OpKind::Prefetch { .. })));
        assert_eq!(prefetches, u32::from(expected.is_some()), "{name}");
        let text = print(&kernel);
        assert!(expected.is_none_or(|expected| text.contains(expected)), "{text}");
    }
}
