//! The memory hierarchy of a model: shared memory, caches, DRAM, address translation.

use serde::Deserialize;

use super::Observation;
use super::quantity::{
    Bytes, BytesPerCycle, Count, Cycles, GigabytesPerSecond, PerCycle, Quantities, Quantity,
};

/// Shared memory (SLM) of a core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SharedMemory {
    /// Bytes that can be set aside for shared memory, or given to a work-group (Intel); ascending.
    pub sizes: Quantities<Bytes>,
    /// Allotted to a work-group in pieces of this many bytes; 1 where `sizes` are the pieces.
    pub granule: Quantity<Bytes>,
    /// Bytes that the system takes for each work-group.
    pub reserved: Quantity<Bytes>,
    /// From a load's issue until its value can be used, without conflicts.
    pub latency: Quantity<Cycles>,
    /// Further cycles that each conflict adds to a load's latency.
    pub conflict_latency: Quantity<Cycles>,
    /// Banks, each of which serves one word a cycle.
    pub banks: Quantity<Count>,
    /// Bytes of a bank's word.
    pub bank_width: Quantity<Bytes>,
}

/// The first-level cache of a core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L1 {
    /// Size. Where `holds-shared`, shared memory is cut out of it.
    pub size: Quantity<Bytes>,
    /// Most bytes that hold global memory, however little is shared memory.
    pub most: Quantity<Bytes>,
    /// Whether shared memory and L1 are one memory.
    pub holds_shared: bool,
    /// Bytes of a line, for which a place is found as a whole.
    pub line: Quantity<Bytes>,
    /// Bytes of a sector, which is fetched on its own.
    pub sector: Quantity<Bytes>,
    /// Lines of a set.
    pub ways: Quantity<Count>,
    /// From a load's issue until its value can be used, on a hit.
    pub latency: Quantity<Cycles>,
    /// Bytes of hits per cycle.
    pub bandwidth: Quantity<BytesPerCycle>,
    /// Different lines of one access that are found per cycle.
    pub lines_per_cycle: Quantity<PerCycle>,
    /// Lines per cycle that are not found, and asked of L2; hints and stores ask for as many.
    pub misses_per_cycle: Quantity<PerCycle>,
    /// Sectors that can be on their way to a core at once.
    pub outstanding: Quantity<Count>,
    /// Whether a load that misses returns only after the asynchronous copies that the sub-group started
    /// before it.
    pub copies_come_first: Observation,
}

/// The cache that all cores share.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L2 {
    /// What the vendor calls it: `L2`, Intel's `L3`.
    pub name: String,
    /// Size, as documented.
    pub size: Quantity<Bytes>,
    /// Bytes of a half, where `far_latency` is more than `near_latency`: each core has one near it, which keeps copies of the
    /// other's lines. Otherwise there is one part, of this size.
    pub effective_size: Quantity<Bytes>,
    /// Bytes of a line, for which a place is found as a whole.
    pub line: Quantity<Bytes>,
    /// Bytes of a sector.
    pub sector: Quantity<Bytes>,
    /// Lines of a set.
    pub ways: Quantity<Count>,
    /// From a load's issue until its value can be used, on a hit in the near half, or in a copy there.
    pub near_latency: Quantity<Cycles>,
    /// The same for a line whose home is the far half and that no load has brought near.
    pub far_latency: Quantity<Cycles>,
    /// Lines differ by up to this much from the mean latency, by the way to their slice.
    pub latency_spread: Quantity<Cycles>,
    /// Requests served per cycle, for all cores; each is for one line and up to `request` bytes.
    pub requests_per_cycle: Quantity<PerCycle>,
    /// Bytes that one request can carry.
    pub request: Quantity<Bytes>,
    /// Bytes per cycle that all cores together receive, however large the requests.
    pub bandwidth: Quantity<BytesPerCycle>,
    /// Bytes per cycle that one core receives.
    pub bandwidth_per_core: Quantity<BytesPerCycle>,
    /// Writes taken per cycle, from all cores; each is to one line and of up to `request` bytes.
    pub writes_per_cycle: Quantity<PerCycle>,
    /// Lines per cycle that one core writes to.
    pub stores_per_core: Quantity<PerCycle>,
    /// Bytes per cycle that one core writes.
    pub store_bandwidth_per_core: Quantity<BytesPerCycle>,
    /// Atomic operations per cycle on one line: there, one waits for the other. Two words are changed together.
    pub atomics_per_cycle: Quantity<PerCycle>,
    /// Atomic operations per cycle that one core sends: as many as there are different addresses.
    pub atomics_per_core: Quantity<PerCycle>,
    /// Sectors per cycle, of all cores together, of which atomic operations change words.
    pub atomic_sectors_per_cycle: Quantity<PerCycle>,
    /// Requests per cycle that one line answers: those of work-items that copy the same past L1 are not merged.
    pub line_requests_per_cycle: Quantity<PerCycle>,
    /// How long after fences of the device began the next ones do: those that all cores ask for until then begin together.
    pub fence_interval: Quantity<Cycles>,
    /// What a read of a line that has just been written takes longer.
    pub read_after_write: Quantity<Cycles>,
}

/// Device memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dram {
    /// Size.
    pub size: Quantity<Bytes>,
    /// From a load's issue until its value can be used, unloaded and outside refreshes: the mean of
    /// the lines of the near and of the far half.
    pub latency: Quantity<Cycles>,
    /// Most bytes per second that reads achieve.
    pub bandwidth: Quantity<GigabytesPerSecond>,
    /// Bytes of the smallest read, aligned to its size.
    pub granule: Quantity<Bytes>,
    /// Banks that work in parallel; addresses are spread over them evenly.
    pub banks: Quantity<Count>,
    /// How long one access to a line occupies its bank. With `banks`, the rate of scattered accesses.
    pub bank_busy: Quantity<Cycles>,
    /// How long a cache hint's read occupies its bank.
    pub hint_busy: Quantity<Cycles>,
    /// Most bytes per second that writes achieve.
    pub write_bandwidth: Quantity<GigabytesPerSecond>,
    /// How long a write to a line occupies its bank. One of less than a sector is preceded by a read of it.
    pub write_busy: Quantity<Cycles>,
    /// How long a refresh keeps a bank from serving; what comes meanwhile waits.
    pub refresh: Quantity<Cycles>,
    /// From one refresh of a bank to the next; 0 if refreshes are not modelled.
    pub refresh_interval: Quantity<Cycles>,
}

impl Dram {
    /// The part of the bandwidth that scattered reads of one granule each reach.
    pub fn scattered_efficiency(&self, clock_mhz: f64) -> f64 {
        let rate = f64::from(*self.banks) / f64::from(*self.bank_busy).max(1.0) * self.awake();
        (rate * *self.granule as f64 / self.bytes_per_cycle(clock_mhz)).min(1.0)
    }

    /// The part of the time in which a bank is not refreshed.
    fn awake(&self) -> f64 {
        match *self.refresh_interval {
            0 => 1.0,
            interval => 1.0 - f64::from(*self.refresh) / f64::from(interval),
        }
    }

    /// Bandwidth in bytes per cycle of the cores' clock.
    pub fn bytes_per_cycle(&self, clock_mhz: f64) -> f64 {
        *self.bandwidth * 1000.0 / clock_mhz
    }
}

/// Address translation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tlb {
    /// Bytes of a page.
    pub page: Quantity<Bytes>,
    /// Bytes whose translations are kept.
    pub reach: Quantity<Bytes>,
    /// What a miss adds to a load's latency.
    pub miss: Quantity<Cycles>,
}

/// The instruction caches of a core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InstructionCache {
    /// Bytes of code that run at full speed.
    pub near: Quantity<Bytes>,
    /// Bytes of code in the second level.
    pub size: Quantity<Bytes>,
    /// Bytes of a line.
    pub line: Quantity<Bytes>,
    /// From one line to the next, when they come from the second level.
    pub near_miss: Quantity<Cycles>,
    /// From one line to the next, when they come from beyond.
    pub miss: Quantity<Cycles>,
}
