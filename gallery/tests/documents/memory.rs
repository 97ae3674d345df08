//! The lines of Intel's page on its GPUs' memory system.

use super::latencies::ACCESSES;
use super::page::Found;
use super::{model, net};

/// A microbenchmark's number, rounded.
fn number(name: &str, settings: &str, device: &str, changes: &[&str]) -> f64 {
    net(name, settings, &model(device, changes))
}

/// What is found for an access of the page's table.
fn latency(at: usize) -> String {
    let access = &ACCESSES[at];
    let cycles = net(
        access.shown_by.0,
        access.shown_by.1,
        &model("pvc-1550-documented", &[]),
    );
    format!("{cycles:.0} cycles")
}

const PVC: &str = "pvc-1550-documented";

pub const ROWS: [Found; 15] = [
    (
        "Each address hashes to a unique bank; full bandwidth with as many banks as Xe-cores; queueing, hot spots and bank congestion reduce it",
        || {
            let [own, same] = ["lines=own steps=16", "lines=same steps=16"]
                .map(|settings| number("micro/slices", settings, "pvc-1550", &[]));
            format!(
                "64 slices (`l2.slices`): lines of their own come in {own:.0} cycles, the same line for all cores in {same:.0}"
            )
        },
    ),
    (
        "A high miss rate with distributed accesses lowers the memory controller's efficiency",
        || {
            let pvc = model("pvc-1550", &[]);
            let busy = pvc.nanoseconds(f64::from(*pvc.dram.bank_busy));
            format!(
                "banks of device memory are busy for {busy:.0} ns after an access (`dram.bank-busy`, assumed)"
            )
        },
    ),
    (
        "A compression unit compresses adjacent lines, and supports fast clear: more bandwidth, more latency",
        || {
            let [random, alike, clear] = ["random", "alike", "clear"].map(|data| {
                let settings = format!("data={data} steps=8");
                number(
                    "micro/compression",
                    &settings,
                    "pvc-1550",
                    &["dram.compression=2"],
                )
            });
            format!(
                "{:.1} times the bandwidth for lines that are alike, {:.1} times for cleared ones; 30 cycles more (assumed)",
                alike / random,
                clear / random
            )
        },
    ),
    ("Sustained fabric bandwidth is about 90 % of peak", || {
        let pvc = model(PVC, &[]);
        format!(
            "{} requests of {} B a cycle for {} cores (`l2.requests-per-cycle`)",
            *pvc.l2.requests_per_cycle, *pvc.l2.line, *pvc.core.count
        )
    }),
    ("A TLB miss adds 50 to 150 cycles", || {
        let [miss, both] =
            [3, 4].map(|at| net(ACCESSES[at].shown_by.0, ACCESSES[at].shown_by.1, &model(PVC, &[])));
        format!("{:.0} cycles more", both - miss)
    }),
    ("A line read after a write to it: about 30 cycles more", || {
        let [written, not] =
            ["writes=yes", "writes=no"].map(|settings| number("micro/written", settings, PVC, &[]));
        format!("{:.0} cycles more", written - not)
    }),
    (
        "Another stack's memory comes over a link about as wide as one stack's memory",
        || {
            let [own, other] = ["own", "other"].map(|part| {
                number(
                    "micro/stacks",
                    &format!("part={part} steps=8"),
                    "pvc-1550-card",
                    &[],
                )
            });
            format!("{:.0} % of the own memory's bandwidth", 100.0 * other / own)
        },
    ),
    ("128 to 256 B a cycle inside a Xe-core", || {
        format!(
            "{:.0} B a cycle",
            number(
                "micro/bandwidth",
                "groups=1 footprint=16384 width=4 steps=256",
                PVC,
                &[]
            )
        )
    }),
    ("About 64 B a cycle outside", || {
        format!(
            "{:.0} B a cycle",
            number(
                "micro/bandwidth",
                "groups=1 footprint=2^23 width=4 steps=64",
                PVC,
                &[]
            )
        )
    }),
    (
        "A new access every cycle; a 32-bit SIMD16 message takes 6 cycles beside memory's latency, four elements 12",
        || {
            let [one, four] = ["width=1", "width=4"].map(|width| number("micro/vectors", width, PVC, &[]));
            format!("four elements take {:.0} cycles more than one", four - one)
        },
    ),
    ("Shared local memory: ~30 cycles", || latency(0)),
    ("Xe-core data cache hit: ~50 cycles", || latency(1)),
    ("GPU cache hit: ~150 to ~200 cycles", || latency(2)),
    ("GPU cache miss: ~300 to ~500 cycles", || latency(3)),
    (
        "Atomics of several threads on one address are serialized, by L2's rules",
        || {
            let [own, same] = ["own", "same"].map(|address| {
                number(
                    "micro/atomics",
                    &format!("address={address} unroll=8"),
                    "pvc-1550",
                    &[],
                )
            });
            format!(
                "{own:.0} cycles an addition on own words, {same:.0} on one word: 32 sub-groups take turns"
            )
        },
    ),
];
