//! The page on the memory system: its table of latencies, as `headstart run micro/latency` prints them.

use super::{model, net};

/// An access of the page's table: what the page says, in cycles, and the microbenchmark that shows it.
pub struct Access {
    /// As the page calls it.
    pub what: &'static str,
    /// As the page spells its latency.
    pub says: &'static str,
    /// The range that the number has to lie in.
    pub range: (f64, f64),
    /// The microbenchmark and its settings.
    pub shown_by: (&'static str, &'static str),
}

const fn access(
    what: &'static str,
    says: &'static str,
    range: (f64, f64),
    shown_by: (&'static str, &'static str),
) -> Access {
    Access {
        what,
        says,
        range,
        shown_by,
    }
}

/// The page's table. "About" is a tenth.
pub const ACCESSES: [Access; 5] = [
    access(
        "shared local memory",
        "~30",
        (27.0, 33.0),
        ("micro/shared", "stride=1 group=16"),
    ),
    access(
        "Xe-core data cache hit",
        "~50",
        (45.0, 55.0),
        ("micro/latency", "footprint=16384"),
    ),
    access(
        "GPU cache hit",
        "~150 to ~200",
        (150.0, 200.0),
        ("micro/latency", "footprint=2^22 stride=64"),
    ),
    access(
        "GPU cache miss",
        "~300 to ~500",
        (300.0, 500.0),
        (
            "micro/latency",
            "footprint=2^27 order=random stride=64 chains=work-item group=1",
        ),
    ),
    access(
        "GPU cache and TLB miss",
        "50 to 150 more",
        (350.0, 650.0),
        (
            "micro/latency",
            "footprint=2^33 order=random stride=65536 chains=work-item group=1",
        ),
    ),
];

#[test]
fn the_documented_latencies_are_what_the_microbenchmarks_print() {
    let device = model("pvc-1550-documented", &[]);
    for access in &ACCESSES {
        let found = net(access.shown_by.0, access.shown_by.1, &device);
        println!(
            "{}: {found:.0} cycles, the page says {}",
            access.what, access.says
        );
        let (least, most) = access.range;
        assert!((least..=most).contains(&found), "{}: {found} cycles", access.what);
    }
}

/// What is taken off are the microbenchmark's own instructions: as many with another memory.
#[test]
fn what_is_taken_off_does_not_depend_on_memory() {
    let (name, settings) = ("micro/latency", "footprint=16384");
    for changes in [&["l1.latency=20"][..], &["l1.latency=120"], &["dram.latency=900"]] {
        let device = model("pvc-1550-documented", changes);
        let latency = f64::from(*device.l1.as_ref().expect("an L1").latency);
        let found = net(name, settings, &device);
        assert!((found - latency).abs() < 3.0, "{changes:?}: {found} cycles");
    }
}
