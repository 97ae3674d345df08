//! The lines of Intel's page on its GPUs' memory system.

use super::latencies::ACCESSES;
use super::page::{Row, found, words};
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

pub const ROWS: [Row; 27] = [
    found(
        "Each address hashes to a unique bank; full bandwidth with as many banks as Xe-cores; queueing, hot spots and bank congestion reduce it",
        || {
            let [own, same] = ["lines=own steps=16", "lines=same steps=16"]
                .map(|settings| number("micro/slices", settings, "pvc-1550", &[]));
            format!(
                "64 slices (`l2.slices`): lines of their own come in {own:.0} cycles, the same line for all cores in {same:.0}"
            )
        },
        "headstart run micro/slices --device sim:pvc-1550 --set lines=same --set steps=16",
    ),
    words(
        "Distribution is about uniform for sequential, strided and random addresses",
        "slices, sets and banks are chosen by a hash of the line",
        "headstart run micro/strided --device sim:pvc-1550",
    ),
    words(
        "TLB misses increase latency, may take more memory accesses and evict cache lines",
        "a walk reads an 8-byte entry of the page table through L3 and takes room there (`tlb.entry`)",
        "headstart devices --model pvc-1550",
    ),
    found(
        "A high miss rate with distributed accesses lowers the memory controller's efficiency",
        || {
            let pvc = model("pvc-1550", &[]);
            let busy = pvc.nanoseconds(f64::from(*pvc.dram.bank_busy));
            format!(
                "banks of device memory are busy for {busy:.0} ns after an access (`dram.bank-busy`, assumed)"
            )
        },
        "headstart run micro/bandwidth --device sim:pvc-1550 --set segment=1 --set footprint=2^30",
    ),
    found(
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
        "headstart run micro/compression --device sim:pvc-1550 --model dram.compression=2 --set data=alike",
    ),
    found(
        "Sustained fabric bandwidth is about 90 % of peak",
        || {
            let pvc = model(PVC, &[]);
            format!(
                "{} requests of {} B a cycle for {} cores (`l2.requests-per-cycle`)",
                *pvc.l2.requests_per_cycle, *pvc.l2.line, *pvc.core.count
            )
        },
        "headstart devices --model pvc-1550-documented",
    ),
    words(
        "GPU cache hit about 150 cycles, miss about 300",
        "the lower ends of the table's ranges, below",
        "headstart run micro/latency --device sim:pvc-1550-documented --set footprint=2^22 --set stride=64",
    ),
    found(
        "A TLB miss adds 50 to 150 cycles",
        || {
            let [miss, both] =
                [3, 4].map(|at| net(ACCESSES[at].shown_by.0, ACCESSES[at].shown_by.1, &model(PVC, &[])));
            format!("{:.0} cycles more", both - miss)
        },
        "headstart run micro/latency --device sim:pvc-1550-documented --set footprint=2^33 --set order=random --set stride=65536 --set chains=work-item --set group=1",
    ),
    found(
        "A line read after a write to it: about 30 cycles more",
        || {
            let [written, not] =
                ["writes=yes", "writes=no"].map(|settings| number("micro/written", settings, PVC, &[]));
            format!("{:.0} cycles more", written - not)
        },
        "headstart run micro/written --device sim:pvc-1550-documented --set writes=yes",
    ),
    found(
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
        "headstart run micro/stacks --device sim:pvc-1550-card --set part=other",
    ),
    words(
        "Host-side and device-side memory are apart; USM moves objects",
        "device, host and shared allocations; pages of shared ones migrate, one fault each",
        "[host allocations](../results/host.md#host-allocations)",
    ),
    words(
        "Vector engines send messages to one data port of the Xe-core: loads an address, stores address and data",
        "one port a core (`l1.misses-per-cycle`); messages are counted as the compiler makes them",
        "headstart emit gather --device sim:pvc-1550 --target machine",
    ),
    found(
        "128 to 256 B a cycle inside a Xe-core",
        || {
            format!(
                "{:.0} B a cycle",
                number(
                    "micro/bandwidth",
                    "groups=1 footprint=16384 width=4 steps=256",
                    PVC,
                    &[]
                )
            )
        },
        "headstart run micro/bandwidth --device sim:pvc-1550-documented --set groups=1 --set footprint=16384 --set width=4 --set steps=256",
    ),
    found(
        "About 64 B a cycle outside",
        || {
            format!(
                "{:.0} B a cycle",
                number(
                    "micro/bandwidth",
                    "groups=1 footprint=2^23 width=4 steps=64",
                    PVC,
                    &[]
                )
            )
        },
        "headstart run micro/bandwidth --device sim:pvc-1550-documented --set groups=1 --set footprint=2^23 --set width=4 --set steps=64",
    ),
    words(
        "Read bandwidth is sometimes higher than write bandwidth",
        "*not modelled*: both are equal, since no public number says how much; `headstart calibrate` on a GPU would",
        "headstart devices --model pvc-1550",
    ),
    found(
        "A new access every cycle; a 32-bit SIMD16 message takes 6 cycles beside memory's latency, four elements 12",
        || {
            let [one, four] = ["width=1", "width=4"].map(|width| number("micro/vectors", width, PVC, &[]));
            format!("four elements take {:.0} cycles more than one", four - one)
        },
        "headstart run micro/vectors --device sim:pvc-1550-documented --set width=4",
    ),
    words(
        "Independent addresses are merged to save bandwidth",
        "a message's addresses become lines; each is asked for once",
        "headstart run micro/strided --device sim:pvc-1550",
    ),
    found(
        "Shared local memory: ~30 cycles",
        || latency(0),
        "headstart run micro/shared --device sim:pvc-1550-documented --set stride=1 --set group=16",
    ),
    found(
        "Xe-core data cache hit: ~50 cycles",
        || latency(1),
        "headstart run micro/latency --device sim:pvc-1550-documented --set footprint=16384",
    ),
    found(
        "GPU cache hit: ~150 to ~200 cycles",
        || latency(2),
        "headstart run micro/latency --device sim:pvc-1550-documented --set footprint=2^22 --set stride=64",
    ),
    found(
        "GPU cache miss: ~300 to ~500 cycles",
        || latency(3),
        "headstart run micro/latency --device sim:pvc-1550-documented --set footprint=2^27 --set order=random --set stride=64 --set chains=work-item --set group=1",
    ),
    words(
        "Loads and stores are relaxed; in order for one address of one thread only; the rest needs atomics or fences",
        "a race between work-items is reported, with both places",
        "[checks](checks.md)",
    ),
    words(
        "An atomic operation reads and writes without another thread's write between",
        "specified so in the IR; each on 32- and 64-bit words, in global and shared memory",
        "[the language](language.md)",
    ),
    found(
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
        "headstart run micro/atomics --device sim:pvc-1550 --set address=same --set unroll=8",
    ),
    words(
        "Atomics imply no fence",
        "relaxed ones order nothing: what relies on it is reported as a race",
        "[checks](checks.md)",
    ),
    words(
        "The program: 1,024 additions by each of 1,024 work-items, SIMD32, two messages, the loop unrolled 8 times",
        "the microbenchmark's defaults, with `unroll=8`",
        "headstart run micro/atomics --device sim:pvc-1550 --set address=own --set unroll=8",
    ),
    words(
        "Access pattern and data size decide which atomic operation is best",
        "in global memory, or in shared memory first",
        "[atomics](../results/techniques.md#atomics)",
    ),
];
