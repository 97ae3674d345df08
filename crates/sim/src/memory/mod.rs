//! The timing of the memory hierarchy: L1 of each core, L2, device memory, shared memory.
//!
//! It knows addresses and times, no kernels. An access is resolved when it is issued: each resource on
//! its way is reserved, and the answer is when its data are there. So nothing here runs by itself, and
//! the same accesses in the same order give the same times.
//!
//! The model covers: coalescing into lines and sectors; a limited number of lines per access and cycle; sectored caches that
//! merge misses in flight; a limited number of sectors in flight to a core; L2 with a limited rate and a near and a far half;
//! device memory with bandwidth, banks and granule; address translation; conflicts of shared-memory banks.
//!
//! The simulated cores can be a sample of those that a launch keeps busy. Then L2 and device memory
//! are scaled to the sample's share of the work, and the lines that other cores have brought to L2 are
//! found as often as the requests of all work-groups say ([`Reuse`]).
//!
//! A caller must not issue to a core whose port is far behind ([`MemorySystem::port_free`]): accesses
//! reserve L2 and device memory in the order of the calls, which must be about that of their times.

// A list of buffers is often a list of one range.
#![allow(clippy::single_range_in_vec_init)]

mod atomics;
mod backlogs;
mod banks;
mod beyond;
mod cache;
mod code;
mod compressed;
mod controls;
mod counters;
mod dram;
mod hints;
mod host;
mod in_flight;
mod l2;
mod lines;
mod near_tlb;
mod port;
mod recent;
mod regions;
mod reuse;
mod saturation;
mod slices;
mod spilled;
mod stacks;
mod timing;
mod tlb;
mod walks;
mod writes;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use atomics::Changed;
use backlogs::LineBacklogs;
use banks::Banks;
use beyond::Purpose;
use cache::{Cache, Replaces};
pub(crate) use code::CodeCache;
pub(crate) use compressed::Compressible;
use compressed::Compression;
pub(crate) use compressed::parts;
pub(crate) use counters::MemoryCounters;
use dram::Dram;
use host::HostLink;
pub(crate) use host::WithHost;
use in_flight::InFlight;
pub(crate) use l2::Contents;
use l2::{Key, L2};
pub(crate) use l2::{may_stay_in_l2, stays_in_l2};
pub(crate) use lines::Access;
use lines::{LineShape, Lines};
use near_tlb::NearTlb;
pub(crate) use port::Cycles;
use port::Port;
pub(crate) use port::spread;
use recent::Recent;
use regions::Regions;
pub(crate) use reuse::{Requests, Reuse, noted};
pub use saturation::saturation;
use slices::Slices;
use stacks::Link;
pub(crate) use stacks::Placement;
use timing::Timing;
use tlb::Tlb;
use writes::{Fences, Written};

use crate::model::DeviceModel;

/// How far a core can be behind with copies of the same before it issues nothing more to memory: two copies of a sub-group.
const COPIES_BEHIND: Cycles = 64.0;

/// Of fewer lines the look-ups do not wait for each other for long.
const FEW: usize = 4;

/// The host's caches hold the simulated caches of this many cores: reading ahead gains nothing.
const SMALL: usize = 16;

/// Copies of this many bytes go past L1 (`cp.async.cg`).
const BEYOND_L1: u32 = 16;

/// The simulated cores, the busy ones, and the data that they can touch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Extent {
    /// Cores that are simulated.
    pub simulated: u32,
    /// Cores of the device that the launch keeps busy; at least as many.
    pub busy: u32,
    /// How often cores find lines that others brought, if it is known.
    pub reuse: Option<Arc<Reuse>>,
    /// The whole launch's work over that of the simulated cores, at least 1: `busy / simulated` where all have as much.
    pub ratio: f64,
    /// Bytes of L1 in each core, shared memory taken off.
    pub l1_bytes: u64,
    /// The addresses of each buffer.
    pub buffers: Vec<Range<u64>>,
    /// L2's initial contents.
    pub contents: Contents,
    /// Whether the launch touches more than L2 holds, and what it had touched before, or a launch like it, fills L2.
    pub was_full: bool,
    /// In which stacks they lie.
    pub placement: Placement,
    /// How they can be compressed, where memory is.
    pub compressible: Vec<Compressible>,
}

impl Extent {
    /// The buffers whose place in L2 is not known from what the same launch has left there.
    fn of_l2(&self, line: u64) -> Vec<Range<u64>> {
        let reuse = self.reuse.as_deref().filter(|reuse| reuse.is_kept());
        let is_known = |buffer: &&Range<u64>| reuse.is_some_and(|reuse| reuse.has(buffer, line));
        self.buffers
            .iter()
            .filter(|buffer| !is_known(buffer))
            .cloned()
            .collect()
    }
}

/// The memory hierarchy as the simulated cores see it.
#[derive(Clone, Debug)]
pub(crate) struct MemorySystem {
    timing: Timing,
    shape: LineShape,
    cores: Vec<CoreMemory>,
    /// Translations that some neighbouring cores share, where the data are beyond their reach.
    near_tlb: Option<NearTlb>,
    l2: L2,
    l2_port: Port,
    /// Each takes the requests for its lines, where the model has them.
    slices: Option<Slices>,
    /// Between stacks, if the data may lie in another one.
    link: Option<Link>,
    /// To the host, if the data may lie there.
    host: Option<HostLink>,
    compression: Compression,
    /// Takes hints, a line each.
    hint_port: Port,
    dram: Dram,
    banks: Banks,
    /// Those that L1's values come from, where the model has them.
    l1_banks: Option<Banks>,
    /// Lines that were written recently; none where reading them takes no longer.
    recent: Option<Recent>,
    /// When each line that atomic operations changed recently takes the next one.
    atomics: Changed,
    /// How often each line was asked for recently by copies of the same.
    backlogs: LineBacklogs,
    /// Lines brought by cores outside the simulation, by buffer.
    regions: Vec<Regions>,
    /// Buffers that several cores write, where the others' stores are not simulated.
    written: Vec<Written>,
    /// Begins fences, of all cores.
    fences: Fences,
    /// Whether what the present load brings stays in L2. Only a cache control says no.
    is_kept_beyond_l1: bool,
    /// Where the lines of an access are looked for: kept for its room.
    looked_up: Vec<(Option<cache::Key>, Key)>,
    counters: MemoryCounters,
}

/// Memory's answer to a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadResponse {
    /// When the last value is there.
    pub done: Cycles,
    /// Whether all of them were in L1.
    pub is_near: bool,
}

/// The parts that each core has of its own.
#[derive(Clone, Debug)]
struct CoreMemory {
    /// Takes some cycles for a line, and one for a pass over the banks of shared memory.
    port: Port,
    /// Takes a cycle for each work-item that copies the same as another one.
    again: Port,
    /// Carries L2's data.
    link: Port,
    l1: Option<Cache>,
    in_flight: InFlight,
    tlb: Option<Tlb>,
}

impl MemorySystem {
    /// Empty caches, except for L2's initial contents; idle resources.
    pub(crate) fn new(model: &DeviceModel, extent: &Extent) -> MemorySystem {
        let simulated = extent.simulated.max(1);
        let ratio = extent.ratio.max(1.0);
        let share = 1.0 / ratio;
        let footprint = extent
            .buffers
            .iter()
            .map(|buffer| buffer.end - buffer.start)
            .sum();
        let (l2, l1) = (&model.l2, model.l1.as_ref());
        let shape = LineShape::new(*l2.line, *l2.sector);
        let core = CoreMemory {
            port: Port::new(1.0),
            again: Port::new(1.0),
            link: Port::new(*l2.bandwidth_per_core),
            l1: l1
                .filter(|_| extent.l1_bytes > 0)
                .map(|l1| Cache::new(extent.l1_bytes as f64, *l1.ways, *l1.line, shape)),
            in_flight: InFlight::new(l1.map_or(1024, |l1| *l1.outstanding)),
            tlb: Tlb::new(*model.tlb.page, *model.tlb.reach, footprint),
        };
        let beyond = L2::new(
            l2::halves(model),
            *l2.effective_size,
            *l2.ways,
            shape,
            ratio,
            &extent.of_l2(*model.l2.line),
            extent.contents,
        );
        MemorySystem {
            timing: Timing::of(model),
            shape,
            cores: vec![core; simulated as usize],
            near_tlb: NearTlb::new(&model.tlb, *model.core.count, simulated, extent.busy, footprint),
            l2: beyond.filled_before(extent.was_full),
            l2_port: Port::new(*l2.requests_per_cycle * share),
            slices: Slices::new(*l2.slices, f64::from(*l2.slices), share),
            link: Link::new(model, &extent.placement, simulated, share),
            host: HostLink::new(model, &extent.placement.with_host, share),
            compression: Compression::new(*model.dram.compression, &extent.compressible),
            hint_port: Port::new(*model.prefetch.lines_per_cycle * share),
            dram: Dram::new(model, share),
            banks: Banks::new(*model.shared.banks, *model.shared.bank_width),
            l1_banks: l1
                .filter(|l1| *l1.banks > 0)
                .map(|l1| Banks::new(*l1.banks, *model.shared.bank_width)),
            atomics: Changed::new(*l2.atomics_per_cycle),
            backlogs: LineBacklogs::new(*l2.line_requests_per_cycle, share),
            regions: extent
                .reuse
                .iter()
                .filter(|reuse| ratio > 1.0 || reuse.is_kept())
                .flat_map(|reuse| reuse.buffers())
                .map(|buffer| Regions::new(Arc::clone(buffer), ratio))
                .collect(),
            written: extent
                .reuse
                .iter()
                .filter(|_| ratio > 1.0)
                .flat_map(|reuse| reuse.written())
                .map(|(lines, part)| Written::new(lines, part))
                .collect(),
            fences: Fences::new(f64::from(*l2.fence_interval)),
            // As long as the write is on its way, and as long again.
            recent: (*l2.read_after_write > 0).then(|| Recent::new(2.0 * f64::from(*l2.near_latency))),
            is_kept_beyond_l1: true,
            looked_up: Vec::new(),
            counters: MemoryCounters::default(),
        }
    }

    /// When a core's port for global and shared memory is free again.
    pub(crate) fn port_free(&self, core: usize) -> Cycles {
        self.cores[core].port.free()
    }

    /// How long device memory takes for all writes so far, at least.
    pub(crate) fn dram_written(&self) -> Cycles {
        self.dram.written()
    }

    /// The counters so far.
    pub(crate) fn counters(&self) -> &MemoryCounters {
        &self.counters
    }

    /// A load from global memory.
    pub(crate) fn load(&mut self, core: usize, now: Cycles, access: &Access) -> LoadResponse {
        self.counters.loads += 1;
        self.read(core, now, access, Replaces::LeastRecent)
    }

    /// An asynchronous copy from global memory to `to` in shared memory: when the last value is there.
    /// Targets that conflict are written one after the other.
    pub(crate) fn copy(&mut self, core: usize, now: Cycles, from: &Access, to: &Access) -> Cycles {
        self.counters.loads += 1;
        let passes = self.count_passes(to);
        let again = from.most_alike().max(1) - 1;
        let asked = self.cores[core].again.take(now, f64::from(again));
        let done = match from.bytes >= BEYOND_L1 {
            true => {
                let done = self.fetch_all(core, now, from);
                done.max(self.ask_again(core, asked, from, again))
            }
            false => self.read(core, now, from, Replaces::Any).done,
        };
        // What is read goes to shared memory at once, but for what conflicts there. Work-items that copy the same do so one
        // after the other, while other instructions go on.
        let least = f64::from((to.count() * to.bytes).div_ceil(128).max(1));
        let memory = &mut self.cores[core];
        memory.port.take(now, passes - least + 1.0);
        memory.port.block(memory.again.free() - COPIES_BEHIND);
        done + (passes - 1.0) * self.timing.conflict
    }

    /// Work-items that copy the same line do not share the data: each requests it from L2, which serves one line no faster than
    /// its slice does. When the last one has it.
    fn ask_again(&mut self, core: usize, now: Cycles, from: &Access, again: u32) -> Cycles {
        let Some(address) = from.active().next().filter(|_| again > 0) else {
            return now;
        };
        let times = f64::from(again);
        let line = address >> self.shape.line_shift();
        let served = self.serve(now, line, times);
        self.counters.l2_sectors += u64::from(again);
        self.counters.l2_hits += u64::from(again);
        served + self.backlogs.wait(line, core, served, times) + self.timing.near
    }

    /// An atomic load from global memory, which other cores may have written: when the value is there. L1 has no part in it.
    pub(crate) fn load_beyond_l1(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
        self.counters.loads += 1;
        self.fetch_all(core, now, access)
    }

    /// Reads all that the look-ups of these lines will read. One look-up after the other would wait for the host's memory
    /// each time; so they wait together. It changes nothing.
    fn at_hand(&mut self, core: usize, lines: &Lines) {
        if lines.len() < FEW || self.cores.len() <= SMALL {
            return;
        }
        let l1 = self.cores[core].l1.as_ref();
        self.looked_up.clear();
        let mut read = 0;
        for (line, _) in lines.iter() {
            let beyond = self.l2.key(line);
            let near = l1.map(|l1| l1.key(line, beyond.hash));
            read ^= near.zip(l1).map_or(0, |(near, l1)| l1.glance(near)) ^ self.l2.glance(&beyond);
            self.looked_up.push((near, beyond));
        }
        for (near, beyond) in &self.looked_up {
            read ^= near.zip(l1).map_or(0, |(near, l1)| l1.glance_at_place(near));
            read ^= self.l2.glance_at_place(beyond);
        }
        std::hint::black_box(read);
    }

    /// Reads from L2, bypassing L1.
    fn fetch_all(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
        let lines = Lines::of(access, self.shape);
        let purpose = Purpose::of(access, &lines, self.shape);
        self.at_hand(core, &lines);
        let mut done = now;
        for (line, sectors) in lines.iter() {
            let start = self.cores[core].port.take(now, self.timing.l1_miss);
            done = done.max(self.fetch(core, start, line, sectors, purpose));
        }
        self.wait_for_room(core);
        done
    }

    /// A load from shared memory: when the value is there.
    pub(crate) fn shared_load(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
        let passes = self.count_passes(access);
        let start = self.cores[core].port.take(now, passes);
        start + self.timing.shared + (passes - 1.0) * self.timing.conflict
    }

    /// A store to shared memory. Nothing waits for it.
    pub(crate) fn shared_store(&mut self, core: usize, now: Cycles, access: &Access) {
        let passes = self.count_passes(access);
        self.cores[core].port.take(now, passes);
    }

    /// An access to private memory: when its value is there. Private arrays are laid out so that
    /// the work-items of a sub-group share lines, and are taken to stay in L1.
    pub(crate) fn private(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
        let bytes = access.count() * access.bytes;
        let lines = (f64::from(bytes) / self.shape.line_bytes() as f64).ceil();
        let start = self.cores[core].port.take(now, lines);
        start + self.timing.l1_latency.unwrap_or(self.timing.near)
    }

    fn count_passes(&mut self, access: &Access) -> f64 {
        let passes = self.banks.passes(access);
        // As many passes as the width asks for are no conflict.
        let least = (access.count() * access.bytes).div_ceil(128).max(1);
        self.counters.shared_accesses += 1;
        self.counters.bank_conflicts += u64::from(passes.saturating_sub(least));
        f64::from(passes)
    }

    /// Reads through L1. A load's line replaces the oldest one, a copy's or hint's a random one (assumed).
    fn read(&mut self, core: usize, now: Cycles, access: &Access, replaces: Replaces) -> LoadResponse {
        let mut done = now;
        let mut is_near = true;
        let mut taken = 0.0;
        let lines = Lines::of(access, self.shape);
        let purpose = Purpose::of(access, &lines, self.shape);
        self.at_hand(core, &lines);
        for (line, sectors) in lines.iter() {
            let count = u64::from(sectors.count_ones());
            let bytes = (count * self.shape.sector_bytes()) as f64;
            self.counters.l1_lines += 1;
            self.counters.l1_sectors += count;
            let memory = &mut self.cores[core];
            let (Some(latency), Some(l1)) = (self.timing.l1_latency, memory.l1.as_mut()) else {
                let start = memory.port.take(now, self.timing.l1_miss);
                done = done.max(self.fetch(core, start, line, sectors, purpose));
                is_near = false;
                continue;
            };
            let key = l1.key(line, spread(line));
            let slot = l1.find(key);
            let (present, ready) = slot.map_or((0, 0.0), |slot| l1.present(slot, sectors));
            let missing = sectors & !present;
            let lookup = match missing {
                0 => self.timing.l1_hit,
                _ => self.timing.l1_miss,
            };
            let cycles = lookup.max(bytes / self.timing.l1_bytes_per_cycle);
            let start = memory.port.take(now, cycles);
            taken += cycles;
            if present != 0 {
                let hits = u64::from(present.count_ones());
                self.counters.l1_hits += if ready <= start { hits } else { 0 };
                self.counters.l1_pending += if ready <= start { 0 } else { hits };
                is_near &= ready <= start;
                done = done.max(ready.max(start + latency));
            }
            if missing != 0 {
                is_near = false;
                let slot = slot.unwrap_or_else(|| l1.insert(key, replaces).0);
                let arrives = self.fetch(core, start, line, missing, purpose);
                if let Some(l1) = &mut self.cores[core].l1 {
                    l1.fill(slot, missing, arrives);
                }
                done = done.max(arrives);
            }
        }
        self.wait_for_room(core);
        if replaces != Replaces::Any {
            done = done.max(self.pass_banks(core, access, taken));
        }
        LoadResponse { done, is_near }
    }

    /// L1 no longer has the lines of an access.
    fn forget_in_l1(&mut self, core: usize, access: &Access) {
        let lines = Lines::of(access, self.shape);
        let Some(l1) = &mut self.cores[core].l1 else {
            return;
        };
        for (line, _) in lines.iter() {
            l1.forget(l1.key(line, spread(line)));
        }
    }

    /// Values come from the banks of L1 while further lines are looked up, which has `taken` some cycles; a pass is part of each
    /// load. When the last value is there, if they conflict.
    fn pass_banks(&mut self, core: usize, access: &Access, taken: Cycles) -> Cycles {
        // No work-item's value takes more than a pass of its own.
        let most = f64::from(access.count());
        let Some(banks) = self.l1_banks.as_mut().filter(|_| taken < most) else {
            return 0.0;
        };
        let conflicts = f64::from(banks.passes(access)) - taken.max(1.0);
        if conflicts <= 0.0 {
            return 0.0;
        }
        let start = self.cores[core].port.take(0.0, conflicts);
        start + self.timing.l1_latency.unwrap_or(0.0) + conflicts * self.timing.conflict
    }

    /// A core runs a work-group that belongs to this stack of the device.
    pub(crate) fn run_on_stack(&mut self, core: usize, stack: u64) {
        if let Some(link) = &mut self.link {
            link.run(core, stack);
        }
    }
}
