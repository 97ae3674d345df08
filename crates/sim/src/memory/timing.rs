//! The numbers of a device model that the memory hierarchy uses, as plain ones: reading one takes no indirection.

use super::port::Cycles;
use crate::model::DeviceModel;

/// The model's numbers, as plain ones.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    pub l1_latency: Option<Cycles>,
    pub l1_bytes_per_cycle: f64,
    /// The time of finding a line in L1, and of requesting one from L2.
    pub l1_hit: Cycles,
    pub l1_miss: Cycles,
    pub near: Cycles,
    pub far: Cycles,
    pub spread: Cycles,
    pub dram: Cycles,
    pub granule: u64,
    pub request: u64,
    /// Requests' bytes that L2 gives while it takes a request.
    pub request_bytes: f64,
    /// The time of an atomic operation on a core's port.
    pub atomic: Cycles,
    /// The requests that L2 could serve while it changes words of a sector.
    pub atomic_sector: f64,
    /// The time of a written line on a core's port, and the bytes per cycle.
    pub store: Cycles,
    pub store_bytes: f64,
    /// Requests that take L2 as long as a write.
    pub write: f64,
    pub read_after_write: Cycles,
    /// Bytes that a hint fetches.
    pub fetch: u64,
    pub tlb_miss: Cycles,
    pub tlb_far_miss: Cycles,
    /// Bytes of an entry of a page table; 0 where walks are no accesses.
    pub walk_entry: u64,
    pub page: u64,
    /// The time of reading compression metadata.
    pub unpacking: Cycles,
    pub shared: Cycles,
    pub conflict: Cycles,
}

impl Timing {
    pub(super) fn of(model: &DeviceModel) -> Timing {
        let (l2, l1) = (&model.l2, model.l1.as_ref());
        Timing {
            l1_latency: l1.map(|l1| f64::from(*l1.latency)),
            l1_bytes_per_cycle: l1.map_or(f64::INFINITY, |l1| *l1.bandwidth),
            l1_hit: l1.map_or(1.0, |l1| 1.0 / *l1.lines_per_cycle),
            l1_miss: l1.map_or(1.0, |l1| 1.0 / *l1.misses_per_cycle),
            near: f64::from(*l2.near_latency),
            far: f64::from(*l2.far_latency),
            spread: f64::from(*l2.latency_spread),
            dram: f64::from(*model.dram.latency),
            granule: *model.dram.granule,
            request: *l2.request,
            request_bytes: *l2.bandwidth / *l2.requests_per_cycle,
            atomic: 1.0 / *l2.atomics_per_core,
            atomic_sector: *l2.requests_per_cycle / *l2.atomic_sectors_per_cycle,
            store: 1.0 / *l2.stores_per_core,
            store_bytes: *l2.store_bandwidth_per_core,
            write: *l2.requests_per_cycle / *l2.writes_per_cycle,
            read_after_write: f64::from(*l2.read_after_write),
            fetch: *model.prefetch.fetch,
            tlb_miss: f64::from(*model.tlb.miss),
            tlb_far_miss: f64::from(*model.tlb.far_miss),
            walk_entry: *model.tlb.entry,
            page: (*model.tlb.page).max(1),
            unpacking: match *model.dram.compression {
                0 | 1 => 0.0,
                _ => f64::from(*model.dram.compression_latency),
            },
            shared: f64::from(*model.shared.latency),
            conflict: f64::from(*model.shared.conflict_latency),
        }
    }
}
