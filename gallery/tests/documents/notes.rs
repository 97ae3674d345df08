//! The lines of the notes on optimizing for Intel's GPUs with oneAPI.

use headstart::device::CacheState;
use headstart::device::model::occupancy::Footprint;

use super::latencies::ACCESSES;
use super::page::Found;
use super::{model, net, spills, time};

/// Microseconds of a technique on Xe-LP.
fn on_xe_lp(name: &str, settings: &str) -> f64 {
    time(&model("xe-lp", &[]), name, settings, "none", CacheState::Kept) / 1000.0
}

/// The device: its engines, registers, caches, and how work is laid out on them.
pub const DEVICE: [Found; 5] = [
    (
        "Sub-groups of 8 and work-groups of 448 fill 8 EUs of 7 threads",
        || {
            let gen11 = model("gen11", &["core.work-group-size=448"]);
            let footprint = Footprint {
                barrier: true,
                ..Footprint::new(448, 8)
            };
            let full = gen11.occupancy(&footprint).occupancy;
            format!(
                "{:.0} % occupancy where a device launches this many; `sim:gen11` launches 256",
                100.0 * full
            )
        },
    ),
    (
        "A wider sub-group is like unrolling, while there are registers enough",
        || {
            let [narrow, wide] =
                ["size=16 groups=96", "size=32 groups=96"].map(|settings| on_xe_lp("centre-32", settings));
            format!(
                "32 values of each work-item take {narrow:.0} µs in sub-groups of 16, {wide:.0} in sub-groups of 32, which spill"
            )
        },
    ),
    (
        "Sixteen contiguous integers in one SIMD instruction are better than sixteen in a work-item",
        || {
            let [own, side_by_side] =
                ["store-own", "store-side-by-side"].map(|name| on_xe_lp(name, "groups=96 group=256"));
            format!("{:.1} times as fast", own / side_by_side)
        },
    ),
    (
        "Private variables that do not fit the registers spill to memory",
        || {
            let [narrow, wide] = [16, 32].map(|size| spills::lowered("centre-32", size).frame_bytes);
            format!(
                "stored and loaded again through the caches: {narrow} bytes of a work-item in sub-groups of 16, {wide} in sub-groups of 32, where Intel's compiler stores {:.0}",
                spills::BY_OCLOC
            )
        },
    ),
    ("SLM is closer and faster than global memory", || {
        let pvc = model("pvc-1550", &[]);
        let [shared, global] = [0, 2].map(|at| net(ACCESSES[at].shown_by.0, ACCESSES[at].shown_by.1, &pvc));
        format!("{shared:.0} cycles instead of {global:.0} in L3")
    }),
];

/// The host: launches, queues, transfers, compilation.
pub const HOST: [Found; 2] = [
    ("Launch as few kernels as possible", || {
        let pvc = model("pvc-1550", &[]);
        assert_eq!(*pvc.core.launch, 0);
        let most = pvc.nanoseconds(f64::from(*pvc.core.slowest_launch)) / 1000.0;
        format!(
            "*not modelled on Intel's GPUs*, as each report says: no public number of the Max series is known to us; `offload` leaves open what up to {most:.0} µs a launch would change, and `--model core.launch=CYCLES` decides"
        )
    }),
    ("Local bandwidth is an order of magnitude above PCIe", || {
        let pvc = model("pvc-1550", &[]);
        let link = pvc.card.as_ref().map_or(0.0, |card| *card.link_bandwidth);
        format!(
            "{link:.0} GB/s over the link, {:.0} of memory",
            *pvc.dram.bandwidth
        )
    }),
];
