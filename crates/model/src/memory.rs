//! The memory hierarchy of a model: shared memory, caches, DRAM, address translation.

use super::Observation;
use super::numbers::numbers;
use super::quantity::{
    Bytes, BytesPerCycle, Count, Cycles, GigabytesPerSecond, PerCycle, Quantities, Quantity,
};

numbers! {
    /// Shared memory (SLM) of a core.
    pub struct SharedMemory in "shared" {
        /// Bytes that can be set aside for shared memory, or given to a work-group (Intel); ascending.
        sizes: Quantities<Bytes>;
        /// Allotted to a work-group in pieces of this many bytes; 1 where `sizes` are the pieces.
        granule: Quantity<Bytes> [power_of_two];
        /// Bytes that the system takes for each work-group.
        reserved: Quantity<Bytes>;
        /// From a load's issue until its value can be used, without conflicts.
        latency: Quantity<Cycles>;
        /// Further cycles that each conflict adds to a load's latency.
        conflict_latency: Quantity<Cycles>;
        /// Banks, each of which serves one word a cycle.
        banks: Quantity<Count> [positive, power_of_two];
        /// Bytes of a bank's word.
        bank_width: Quantity<Bytes> [power_of_two];
        /// Whether a copy from global to shared memory passes by the registers and is waited for apart from loads. Elsewhere the
        /// device gets a load and a store.
        asynchronous_copies: Observation = {
        nvidia: true because "PTX ISA: cp.async, sm_80 and later",
        intel: false because "Intel's GPUs have no message from global to shared memory: docs/spirv.md",
    };
    }
}

numbers! {
    /// The first-level cache of a core.
    pub struct L1 in "l1" {
        /// Size. Where `holds-shared`, shared memory is cut out of it.
        size: Quantity<Bytes>;
        /// Most bytes that hold global memory, however little is shared memory.
        most: Quantity<Bytes>;
        /// Whether shared memory and L1 are one memory.
        holds_shared: bool;
        /// Bytes of a line, for which a place is found as a whole.
        line: Quantity<Bytes>;
        /// Bytes of a sector, which is fetched on its own.
        sector: Quantity<Bytes>;
        /// Lines of a set.
        ways: Quantity<Count>;
        /// From a load's issue until its value can be used, on a hit.
        latency: Quantity<Cycles>;
        /// Bytes of hits per cycle.
        bandwidth: Quantity<BytesPerCycle>;
        /// Banks that values which are found come from, of the width of shared memory's: two words in one bank take a cycle each. 0
        /// where they are not known.
        banks: Quantity<Count> = {
        nvidia: 32 because "measured on an H200, 2026-11-27, driver 580.159.04: `micro/strided`: 32.0 cycles a load with all words in one bank (`stride=32`), 8.0 with none in another's (`stride=33`); 30.2 and 10.3 at random; loads of 16 bytes a quarter of the work-items at a time, 20.1 at random at a stride of 64 bytes",
        intel: 0 because "not known",
    };
        /// Different lines of one access that are found per cycle.
        lines_per_cycle: Quantity<PerCycle>;
        /// Lines per cycle that are not found, and asked of L2; hints and stores ask for as many.
        misses_per_cycle: Quantity<PerCycle>;
        /// Sectors that can be on their way to a core at once (MSHRs, miss-status holding registers).
        outstanding: Quantity<Count>;
        /// Whether a load that misses returns only after the asynchronous copies that the sub-group started
        /// before it.
        copies_come_first: Observation;
        /// Whether the caches act on the controls of loads: uncached, streaming, invalidated after a read. Elsewhere they are loads
        /// like any other.
        controls: Observation = {
        nvidia: false because "PTX's cache operators are hints; not measured",
        intel: true because "Intel, Prefetch (oneAPI optimization guide): the list of LSC_LDCC; disassembled: load.ugm with each of them",
    };
    }
}

numbers! {
    /// The cache that all cores share.
    pub struct L2 in "l2" {
        /// The vendor's name: `L2`, Intel's `L3`.
        name: String;
        /// Size, as documented.
        size: Quantity<Bytes>;
        /// Bytes of a half, where `far_latency` is more than `near_latency`: each core has one near it, which keeps copies of the
        /// other's lines. Otherwise there is one part, of this size.
        effective_size: Quantity<Bytes>;
        /// Bytes of a line, for which a place is found as a whole.
        line: Quantity<Bytes> [power_of_two];
        /// Bytes of a sector.
        sector: Quantity<Bytes> [power_of_two];
        /// Lines of a set.
        ways: Quantity<Count> [positive];
        /// From a load's issue until its value can be used, on a hit in the near half, or in a copy there.
        near_latency: Quantity<Cycles>;
        /// The same for a line whose home is the far half and that no load has brought near.
        far_latency: Quantity<Cycles>;
        /// Lines differ by up to this much from the mean latency, by the way to their slice.
        latency_spread: Quantity<Cycles>;
        /// Requests served per cycle, for all cores; each is for one line and up to `request` bytes.
        requests_per_cycle: Quantity<PerCycle>;
        /// Bytes that one request can carry.
        request: Quantity<Bytes> [power_of_two];
        /// Bytes per cycle that all cores together receive, however large the requests.
        bandwidth: Quantity<BytesPerCycle>;
        /// Bytes per cycle that one core receives.
        bandwidth_per_core: Quantity<BytesPerCycle>;
        /// Writes taken per cycle, from all cores; each is to one line and of up to `request` bytes.
        writes_per_cycle: Quantity<PerCycle>;
        /// Lines per cycle that one core writes to.
        stores_per_core: Quantity<PerCycle>;
        /// Bytes per cycle that one core writes.
        store_bandwidth_per_core: Quantity<BytesPerCycle>;
        /// Atomic operations per cycle on one line: there, one waits for the other. Two words are changed together.
        atomics_per_cycle: Quantity<PerCycle>;
        /// Atomic operations per cycle that one core sends: as many as there are different addresses.
        atomics_per_core: Quantity<PerCycle>;
        /// Sectors per cycle, of all cores together, of which atomic operations change words.
        atomic_sectors_per_cycle: Quantity<PerCycle>;
        /// Requests per cycle that one line answers: those of work-items that copy the same past L1 are not merged.
        line_requests_per_cycle: Quantity<PerCycle>;
        /// How long after fences of the device began the next ones do: those that all cores ask for until then begin together.
        fence_interval: Quantity<Cycles>;
        /// Slices, each of which serves one request a cycle for the addresses that belong to it; 0 where only their sum is known.
        slices: Quantity<Count> = {
        nvidia: 0 because "a hash spreads addresses over them: requests-per-cycle was measured for all together",
        intel: 0 because "not known",
    };
        /// The additional latency of reading a line that has just been written.
        read_after_write: Quantity<Cycles> = {
        nvidia: 0 because "not measured",
        intel: 30 because "Intel, GPU Memory System (oneAPI optimization guide): a line read after a write to it adds about 30 cycles",
    };
    }
}

numbers! {
    /// Device memory.
    pub struct Dram in "dram" {
        /// Size.
        size: Quantity<Bytes>;
        /// From a load's issue until its value can be used, unloaded and outside refreshes: the mean of
        /// the lines of the near and of the far half.
        latency: Quantity<Cycles>;
        /// Most bytes per second that reads achieve.
        bandwidth: Quantity<GigabytesPerSecond>;
        /// Bytes of the smallest read, aligned to its size.
        granule: Quantity<Bytes> [power_of_two];
        /// Banks that work in parallel; addresses are spread over them evenly.
        banks: Quantity<Count> [positive];
        /// How long one access to a line occupies its bank, whatever its row buffer holds. With `banks`, the rate of scattered
        /// accesses.
        bank_busy: Quantity<Cycles>;
        /// How long a cache hint's read occupies its bank.
        hint_busy: Quantity<Cycles>;
        /// Most bytes per second that writes achieve.
        write_bandwidth: Quantity<GigabytesPerSecond>;
        /// How long a write to a line occupies its bank. One of less than a sector is preceded by a read of it.
        write_busy: Quantity<Cycles>;
        /// How long a refresh blocks a bank; requests wait meanwhile.
        refresh: Quantity<Cycles>;
        /// From one refresh of a bank to the next; 0 if refreshes are not modelled.
        refresh_interval: Quantity<Cycles>;
        /// Adjacent lines that are kept as one where they are alike enough; 1 where memory is not compressed.
        compression: Quantity<Count> = {
        nvidia: 1 because "memory is compressed only where an allocation asks for it",
        intel: 1 because "memory is compressed only where an allocation asks for it (Level Zero, ze_memory_compression_hints_ext_flags_t); 2 is what Intel's guide describes: adjacent cache lines",
    };
        /// The latency that it adds to all data from device memory.
        compression_latency: Quantity<Cycles> = {
        nvidia: 0 because "memory is not compressed",
        intel: 30 because "assumed: Intel, GPU Memory System (oneAPI optimization guide), says that it adds latency, and not how much",
    };
    }
}

impl Dram {
    /// The part of the bandwidth that scattered reads of one granule each reach.
    #[doc(hidden)]
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
    #[doc(hidden)]
    pub fn bytes_per_cycle(&self, clock_mhz: f64) -> f64 {
        *self.bandwidth * 1000.0 / clock_mhz
    }
}

numbers! {
    /// Address translation.
    pub struct Tlb in "tlb" {
        /// Bytes of a page.
        page: Quantity<Bytes> [power_of_two];
        /// Bytes whose translations some neighbouring cores keep; 0 where they are not known.
        near_reach: Quantity<Bytes> = {
        nvidia: 268435456 because "measured on an H200, 2026-11-27, driver 580.159.04: `micro/strided groups=132 together=1 places=4096`: 32.1 cycles a load up to 256 MiB (`stride=16384`), 52.5 at 320 MiB, 85.2 at 1 GiB (`stride=65536`), 99.8 at 8 GiB",
        intel: 0 because "not known",
    };
        /// Cores that share them.
        near_cores: Quantity<Count> [positive] = {
        nvidia: 6 because "measured on an H200, 2026-11-27, driver 580.159.04: `micro/strided groups=132 together=1 places=4096 stride=65536`: six times 14 cycles, by the number of work-groups in even steps",
        intel: 1 because "not known",
    };
        /// Requests per cycle to pages that are not among them, of those cores together.
        near_misses_per_cycle: Quantity<PerCycle> = {
        nvidia: 1.2 because "fitted on an H200, 2026-11-27, driver 580.159.04: `micro/strided groups=132 together=1 places=4096`: 52.5 cycles a load at 320 MiB (`stride=20480`), 85.2 at 1 GiB (`stride=65536`), 99.8 at 8 GiB (`stride=524288`); 54.3, 85.4 and 94.2 here",
        intel: 1 because "not known",
    };
        /// Bytes of a block: consecutive requests of a core for one block are looked up together.
        near_block: Quantity<Bytes> [power_of_two] = {
        nvidia: 32768 because "measured on an H200, 2026-11-27, driver 580.159.04: `micro/strided groups=132` in 1 GiB: 158 cycles a load from random places, 82 from pairs that are 8 KiB apart (`together=2 places=131072 stride=2048`), 81 from pairs that are 16 KiB apart, 156 from pairs that are 32 KiB apart (`places=32768 stride=8192`)",
        intel: 32768 because "as NVIDIA's; unused without near-reach",
    };
        /// How long after such a request its page is among them.
        near_fill: Quantity<Cycles> = {
        nvidia: 12 because "fitted on an H200, 2026-11-27, driver 580.159.04: `micro/strided groups=132 places=16384 stride=16384`: 142 cycles a load from random pages of 1 GiB (`together=1`), 122 where 8 neighbours read one page, 79 where 16 do, 56 where 32 do",
        intel: 0 because "not known",
    };
        /// Bytes whose translations are kept (the reach of the TLB).
        reach: Quantity<Bytes>;
        /// The latency that a miss adds to a load; if walks read memory, a miss whose page-table entry is in L2.
        miss: Quantity<Cycles>;
        /// The latency of a miss whose entry comes from device memory.
        far_miss: Quantity<Cycles> = {
        nvidia: 0 because "walks do not access memory here: all misses take the same time",
        intel: 150 because "Intel, GPU Memory System (oneAPI optimization guide): a miss adds 50 to 150 cycles, and may take more memory accesses",
    };
        /// Bytes of an entry of the page table, which a walk reads through L2; 0 where walks are no accesses.
        entry: Quantity<Bytes> = {
        nvidia: 0 because "not measured",
        intel: 8 because "Intel's page tables have 64-bit entries",
    };
    }
}

numbers! {
    /// The instruction caches of a core.
    pub struct InstructionCache in "instruction-cache" {
        /// Bytes of code that run at full speed.
        near: Quantity<Bytes>;
        /// Bytes of code in the second level.
        size: Quantity<Bytes>;
        /// Bytes of a line.
        line: Quantity<Bytes> [power_of_two];
        /// From one line to the next, when they come from the second level.
        near_miss: Quantity<Cycles>;
        /// From one line to the next, when they come from beyond.
        miss: Quantity<Cycles>;
    }
}
