//! The counters of the memory hierarchy.

use super::port::Cycles;

/// Sums over all accesses. Sectors are counted once for each instruction that wants them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryCounters {
    /// Sectors that loads and asynchronous copies asked of L1.
    pub l1_sectors: u64,
    /// Those of them that were there.
    pub l1_hits: u64,
    /// Those of them that were on their way already.
    pub(crate) l1_pending: u64,
    /// Lines that were looked up in L1; with `loads`, lines an instruction.
    pub(crate) l1_lines: u64,
    /// Load and copy instructions.
    pub loads: u64,
    /// Store instructions.
    pub stores: u64,
    /// Sectors asked of L2 for reading, prefetches included.
    pub l2_sectors: u64,
    /// Those of them that were there or on their way.
    pub l2_hits: u64,
    /// Sectors written to L2.
    pub(crate) l2_written_sectors: u64,
    /// Bytes read from device memory.
    pub(crate) dram_read_bytes: u64,
    /// Bytes written back to device memory.
    pub(crate) dram_written_bytes: u64,
    /// Requests that L2 served, weighted by the time that each takes.
    pub(crate) l2_requests: f64,
    /// Cycles that requests waited for L2, summed.
    pub(crate) l2_queueing: Cycles,
    /// Cycles that requests waited for device memory, summed.
    pub(crate) dram_queueing: Cycles,
    /// Bytes on their way to a core × cycles: divided by the time, the bytes in flight.
    pub(crate) byte_cycles_in_flight: Cycles,
    /// The same of bytes that device memory delivered; the others came from L2.
    pub(crate) byte_cycles_from_memory: Cycles,
    /// Lines that hints asked for.
    pub(crate) prefetched_lines: u64,
    /// Bytes that hints fetched from device memory.
    pub(crate) prefetched_bytes: u64,
    /// Translations that were not at hand.
    pub(crate) tlb_misses: u64,
    /// Shared-memory instructions, asynchronous copies included.
    pub shared_accesses: u64,
    /// Passes over the banks that conflicts added.
    pub bank_conflicts: u64,
}
