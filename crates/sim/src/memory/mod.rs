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
//! are scaled to the sample's share of the work.
//!
//! A caller must not issue to a core whose port is far behind ([`MemorySystem::port_free`]): accesses
//! reserve L2 and device memory in the order of the calls, which must be about that of their times.

// A list of buffers is often a list of one range.
#![allow(clippy::single_range_in_vec_init)]

mod asked;
mod atomics;
mod banks;
mod cache;
mod code;
mod compressed;
mod counters;
mod dram;
mod hints;
mod host;
mod in_flight;
mod l2;
mod lines;
mod others;
mod port;
mod recent;
mod regions;
mod slices;
mod spilled;
mod stacks;
mod tlb;
mod walk;
mod walks;
mod writes;

#[cfg(test)]
mod tests;

use std::ops::Range;

use asked::Asked;
use atomics::Changed;
use banks::Banks;
use cache::{Cache, Replaces, Victim};
pub use code::CodeCache;
pub use compressed::{Compressible, parts};
use compressed::{Compression, Kept};
pub use counters::MemoryCounters;
use dram::Dram;
use host::HostLink;
pub use host::WithHost;
use in_flight::InFlight;
pub use l2::{Contents, stays_in_l2};
use l2::{Key, L2, Place};
pub use lines::Access;
use lines::{LineShape, Lines};
use others::Others;
pub use port::Cycles;
use port::Port;
pub(crate) use port::spread;
use recent::Recent;
use regions::Regions;
use slices::Slices;
use stacks::Link;
pub use stacks::Placement;
use tlb::Tlb;
use walk::Walk;
use writes::Fences;

use crate::model::DeviceModel;

/// How far a core can be behind with copies of the same before it issues nothing more to memory: two copies of a sub-group.
const COPIES_BEHIND: Cycles = 64.0;

/// Of fewer lines the look-ups do not wait for each other for long.
const FEW: usize = 4;

/// The host's caches hold the simulated caches of this many cores: reading ahead gains nothing.
const SMALL: usize = 16;

/// Copies of so many bytes go past L1 (`cp.async.cg`).
const BEYOND_L1: u32 = 16;

/// The simulated cores, the busy ones, and the data that they can touch.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// Cores that are simulated.
    pub simulated: u32,
    /// Cores of the device that the launch keeps busy; at least as many.
    pub busy: u32,
    /// Whether the simulated ones run work-groups that stand for all.
    pub is_stratified: bool,
    /// The whole launch's work over that of the simulated cores, at least 1: `busy / simulated` where all have as much.
    pub ratio: f64,
    /// Bytes of L1 in each core, shared memory taken off.
    pub l1_bytes: u64,
    /// The addresses of each buffer.
    pub buffers: Vec<Range<u64>>,
    /// L2's initial contents.
    pub contents: Contents,
    /// In which stacks they lie.
    pub placement: Placement,
    /// How they can be compressed, where memory is.
    pub compressible: Vec<Compressible>,
}

/// The memory hierarchy as the simulated cores see it.
#[derive(Clone, Debug)]
pub struct MemorySystem {
    timing: Timing,
    shape: LineShape,
    cores: Vec<CoreMemory>,
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
    /// Lines that were written lately; none where reading them takes no longer.
    recent: Option<Recent>,
    /// When each line that atomic operations changed lately takes the next one.
    atomics: Changed,
    /// How often each line was asked for lately by copies of the same.
    asked: Asked,
    /// Lines brought by cores outside the simulation.
    others: Others,
    /// By buffer, where the simulated cores stand for all.
    regions: Vec<Regions>,
    /// Begins fences, of all cores.
    fences: Fences,
    /// Where the lines of an access are looked for: kept for its room.
    looked_up: Vec<(Option<cache::Key>, Key)>,
    /// Which core requests which lines; then nothing takes any time beyond L1.
    walk: Option<Walk>,
    counters: MemoryCounters,
}

/// Memory's answer to a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// When the last value is there.
    pub done: Cycles,
    /// Whether all of them were in L1.
    pub is_near: bool,
}

/// The model's numbers, as plain ones.
#[derive(Clone, Debug)]
struct Timing {
    l1_latency: Option<Cycles>,
    l1_bytes_per_cycle: f64,
    /// The time of finding a line in L1, and of requesting one from L2.
    l1_hit: Cycles,
    l1_miss: Cycles,
    near: Cycles,
    far: Cycles,
    spread: Cycles,
    dram: Cycles,
    granule: u64,
    request: u64,
    /// Requests' bytes that L2 gives while it takes a request.
    request_bytes: f64,
    /// The time of an atomic operation on a core's port.
    atomic: Cycles,
    /// The requests that L2 could serve while it changes words of a sector.
    atomic_sector: f64,
    /// The time of a written line on a core's port, and the bytes per cycle.
    store: Cycles,
    store_bytes: f64,
    /// Requests that take L2 as long as a write.
    write: f64,
    read_after_write: Cycles,
    /// Bytes that a hint fetches.
    fetch: u64,
    tlb_miss: Cycles,
    tlb_far_miss: Cycles,
    /// Bytes of an entry of a page table; 0 where walks are no accesses.
    walk_entry: u64,
    page: u64,
    /// The time of reading compression metadata.
    unpacking: Cycles,
    shared: Cycles,
    conflict: Cycles,
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

/// Why a line is asked of L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Purpose {
    /// The work-items' addresses lie in more than twice the lines that they would fill.
    scattered: bool,
    /// Nobody waits for it.
    is_hint: bool,
}

/// The way from a core to a slice of L2.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Way {
    /// Whether the slice lies in the far half.
    is_far: bool,
    /// Its difference from the mean of its half.
    detour: Cycles,
    /// The same for data from device memory, against its mean.
    beyond: Cycles,
}

impl Purpose {
    fn of(access: &Access, lines: &Lines, shape: LineShape) -> Purpose {
        let bytes = u64::from(access.count() * access.bytes);
        let least = bytes.div_ceil(shape.line_bytes()).max(1);
        Purpose {
            scattered: lines.len() as u64 > 2 * least,
            is_hint: false,
        }
    }
}

impl MemorySystem {
    /// Empty caches, except for L2's initial contents; idle resources.
    pub fn new(model: &DeviceModel, extent: &Extent) -> MemorySystem {
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
        let mut beyond = L2::new(
            if *l2.far_latency > *l2.near_latency { 2 } else { 1 },
            *l2.effective_size,
            *l2.ways,
            shape,
            ratio,
            &extent.buffers,
            extent.contents,
        );
        // Where work-groups stand for others, what a line was asked for by is kept until it goes.
        if extent.is_stratified {
            beyond.tell_clean();
        }
        MemorySystem {
            timing: Timing {
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
            },
            shape,
            cores: vec![core; simulated as usize],
            l2: beyond,
            l2_port: Port::new(*l2.requests_per_cycle * share),
            slices: Slices::new(*l2.slices, f64::from(*l2.slices), share),
            link: Link::new(model, &extent.placement, simulated, share),
            host: HostLink::new(model, &extent.placement.with_host, share),
            compression: Compression::new(*model.dram.compression, &extent.compressible),
            hint_port: Port::new(*model.prefetch.lines_per_cycle * share),
            dram: Dram::new(model, share),
            banks: Banks::new(*model.shared.banks, *model.shared.bank_width),
            atomics: Changed::new(*l2.atomics_per_cycle),
            asked: Asked::new(*l2.line_requests_per_cycle, share),
            others: Others::new(simulated, extent.busy),
            regions: extent
                .buffers
                .iter()
                .filter(|_| extent.is_stratified)
                .map(|buffer| {
                    let lines = buffer.start >> shape.line_shift()..buffer.end.div_ceil(shape.line_bytes());
                    Regions::new(lines, shape.sectors(), simulated, extent.busy)
                })
                .collect(),
            fences: Fences::new(f64::from(*l2.fence_interval)),
            // As long as the write is on its way, and as long again.
            recent: (*l2.read_after_write > 0).then(|| Recent::new(2.0 * f64::from(*l2.near_latency))),
            looked_up: Vec::new(),
            walk: None,
            counters: MemoryCounters::default(),
        }
    }

    /// The same for a walk without time: L1 misses are served at once, and the requesting core is noted.
    #[must_use]
    pub fn walked(mut self) -> MemorySystem {
        self.walk = Some(Walk::new(self.shape, self.timing.granule));
        self
    }

    /// When a core's port for global and shared memory is free again.
    pub fn port_free(&self, core: usize) -> Cycles {
        self.cores[core].port.free()
    }

    /// The counters so far.
    pub fn counters(&self) -> &MemoryCounters {
        &self.counters
    }

    /// Whether the simulated accesses, times this factor, read a buffer again of which L2 can keep a good part: then cores find
    /// lines there that others have brought, which a sample of them does not see.
    pub fn is_shared(&self, times: f64) -> bool {
        self.l2.is_shared(times)
    }

    /// Whether a good part of the data from memory that L2 hardly keeps was for scattered accesses. Other cores may request the
    /// neighbouring data.
    pub fn is_scattered(&self) -> bool {
        self.l2.is_scattered()
    }

    /// On a walk, the fraction of the L2 requests for scattered accesses that another core had made before.
    pub fn found(&self) -> f64 {
        self.walk.as_ref().map_or(0.0, Walk::found)
    }

    /// A load from global memory.
    pub fn load(&mut self, core: usize, now: Cycles, access: &Access) -> Answer {
        self.counters.loads += 1;
        self.read(core, now, access, Replaces::LeastRecent)
    }

    /// An asynchronous copy from global memory to `to` in shared memory: when the last value is there.
    /// Targets that conflict are written one after the other.
    pub fn copy(&mut self, core: usize, now: Cycles, from: &Access, to: &Access) -> Cycles {
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
        served + self.asked.wait(line, core, served, times) + self.timing.near
    }

    /// An atomic load from global memory, which other cores may have written: when the value is there. L1 has no part in it.
    pub fn load_beyond_l1(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
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
        done
    }

    /// A load from shared memory: when the value is there.
    pub fn shared_load(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
        let passes = self.count_passes(access);
        let start = self.cores[core].port.take(now, passes);
        start + self.timing.shared + (passes - 1.0) * self.timing.conflict
    }

    /// A store to shared memory. Nothing waits for it.
    pub fn shared_store(&mut self, core: usize, now: Cycles, access: &Access) {
        let passes = self.count_passes(access);
        self.cores[core].port.take(now, passes);
    }

    /// An access to private memory: when its value is there. Private arrays are laid out so that
    /// the work-items of a sub-group share lines, and are taken to stay in L1.
    pub fn private(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
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
    fn read(&mut self, core: usize, now: Cycles, access: &Access, replaces: Replaces) -> Answer {
        let mut done = now;
        let mut is_near = true;
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
            let start = memory
                .port
                .take(now, lookup.max(bytes / self.timing.l1_bytes_per_cycle));
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
        Answer { done, is_near }
    }

    /// Brings sectors to a core, as soon as it may have further ones on their way.
    fn fetch(&mut self, core: usize, now: Cycles, line: u64, sectors: u8, purpose: Purpose) -> Cycles {
        let memory = &mut self.cores[core];
        let count = sectors.count_ones();
        let start = memory.in_flight.start(now, count);
        if start > now {
            memory.port.block(start);
        }
        let delivered = self.counters.dram_read_bytes;
        let arrives = self.ask_l2(core, start, line, sectors, purpose);
        let bytes = (u64::from(count) * self.shape.sector_bytes()) as f64;
        // Device memory may deliver more than was asked for.
        let delivered = (self.counters.dram_read_bytes - delivered) as f64;
        self.counters.byte_cycles_in_flight += bytes * (arrives - now);
        self.counters.byte_cycles_from_memory += delivered.min(bytes) * (arrives - now);
        self.cores[core].in_flight.add(arrives, count);
        arrives
    }

    /// Requests data from L2, and from device memory if L2 misses: when the core has the data.
    fn ask_l2(&mut self, core: usize, now: Cycles, line: u64, sectors: u8, purpose: Purpose) -> Cycles {
        if self.is_walked(core, line, sectors, purpose) {
            return now;
        }
        let translation = self.translate(core, now, line);
        let bytes = u64::from(sectors.count_ones()) * self.shape.sector_bytes();
        let start = translation + self.cores[core].link.take(now, bytes as f64);
        let start = start + self.cross(core, start, line, bytes);
        let served = self.serve(start, line, self.requests(bytes));
        self.look_up(core, (start, served), &self.l2.key(line), sectors, purpose)
    }

    /// Whether this is a walk without time; then only the requests are recorded.
    fn is_walked(&mut self, core: usize, line: u64, sectors: u8, purpose: Purpose) -> bool {
        let Some(walk) = &mut self.walk else {
            return false;
        };
        let is_counted = purpose.scattered && self.l2.is_beyond(&self.l2.key(line));
        walk.ask(line, sectors, core, is_counted);
        true
    }

    /// Only later requests wait for those in flight until a time: a core's queue holds no more than is in flight.
    fn queue(&mut self, core: usize, until: Cycles) {
        self.cores[core].port.block(until - 2.0 * self.timing.near);
    }

    /// Looks for sectors in L2, which has served a request that it got at `start`: when the core has the data. Data from the
    /// far half leave a copy in the near one.
    fn look_up(
        &mut self,
        core: usize,
        (start, served): (Cycles, Cycles),
        key: &Key,
        sectors: u8,
        purpose: Purpose,
    ) -> Cycles {
        self.counters.l2_queueing += served - start;
        let way = self.way(core, key);
        let is_new = |recent: &Recent| recent.was_written(key, served);
        let new = self.recent.as_ref().is_some_and(is_new);
        let detour = way.detour + if new { self.timing.read_after_write } else { 0.0 };
        let near = self.l2.near(core);
        if way.is_far
            && let Some(ready) = self.l2.copied(key, near, sectors)
        {
            let count = u64::from(sectors.count_ones());
            self.counters.l2_sectors += count;
            self.counters.l2_hits += count;
            return ready.max(served + self.timing.near + detour);
        }
        let (place, _) = self.place_in_l2(served, key);
        self.l2.await_load(place, false);
        let latency = if way.is_far {
            self.timing.far
        } else {
            self.timing.near
        };
        let (missing, ready) = self.missing_in_l2(place, sectors);
        let missing = self.missing_of_all(core, served, (key, place), missing, purpose);
        let mut done = ready.max(served + latency + detour);
        if missing != 0 {
            let (arrives, _) = self.bring(served, key, place, missing, purpose, way);
            done = done.max(arrives);
        }
        if way.is_far {
            let whole = self.shape.widen(sectors, self.timing.granule);
            let (there, _) = self.l2.present(place, whole);
            let victim = self.l2.copy(key, near, there, done);
            self.write_back(served, victim);
        }
        done
    }

    /// The missing sectors of a line, if lines brought by cores outside the simulation count, too.
    fn missing_of_all(
        &mut self,
        core: usize,
        now: Cycles,
        (key, place): (&Key, Place),
        missing: u8,
        purpose: Purpose,
    ) -> u8 {
        let have = match self.regions.is_empty() {
            true => self.others_have(core, key, place, missing, purpose),
            false => self.regions_have(core, key, place, missing),
        };
        if !have || missing == 0 {
            return missing;
        }
        self.counters.l2_hits += u64::from(missing.count_ones());
        let brought = self.brought_with(place, missing);
        self.l2.fill(place, brought, now, purpose.scattered);
        0
    }

    /// Whether other cores have the missing sectors, by the hit rate among the first cores.
    fn others_have(&mut self, core: usize, key: &Key, place: Place, missing: u8, purpose: Purpose) -> bool {
        if !purpose.scattered || !self.others.exist() || !self.l2.is_beyond(key) {
            return false;
        }
        let first = self.l2.first_asker(place, core);
        self.others.have(missing == 0 && first != core)
    }

    /// The same by the sample's share of the region around.
    fn regions_have(&mut self, core: usize, key: &Key, place: Place, missing: u8) -> bool {
        // Buffers set aside at full size are filled for all.
        if matches!(place, Place::Small { .. }) {
            return false;
        }
        let Some(region) = self.regions.iter().position(|regions| regions.may_have(key.line)) else {
            return false;
        };
        let first = self.l2.first_asker(place, core);
        if missing == 0 && first == core {
            return false;
        }
        let have = self.regions[region].have(key.line, core, missing == 0);
        let brought = match missing {
            0 => 0,
            missing => self.brought_with(place, missing),
        };
        self.regions[region].note(key.line, first, brought.count_ones(), 0);
        have
    }

    /// Which of the sectors that are asked for L2 does not have, and when the last of the others is there.
    fn missing_in_l2(&mut self, place: Place, sectors: u8) -> (u8, Cycles) {
        let (present, ready) = self.l2.present(place, sectors);
        self.counters.l2_sectors += u64::from(sectors.count_ones());
        let missing = sectors & !present;
        if missing == 0 || !self.l2.holds_touched() {
            self.counters.l2_hits += u64::from(present.count_ones());
            return (missing, ready);
        }
        self.counters.l2_hits += u64::from(sectors.count_ones());
        self.l2.fill(place, missing, 0.0, false);
        (0, ready)
    }

    /// The sectors fetched for the missing ones of a line: whole granules, without those present.
    fn brought_with(&self, place: Place, missing: u8) -> u8 {
        let whole = self.shape.widen(missing, self.timing.granule);
        let (there, _) = self.l2.present(place, whole);
        whole & !there
    }

    /// Fetches the missing sectors of a line to L2 from device memory, which delivers whole granules: when they arrive, and how
    /// many bytes they are.
    fn bring(
        &mut self,
        now: Cycles,
        key: &Key,
        place: Place,
        missing: u8,
        purpose: Purpose,
        way: Way,
    ) -> (Cycles, u64) {
        let fetched = self.brought_with(place, missing);
        let bytes = u64::from(fetched.count_ones()) * self.shape.sector_bytes();
        // Compressed lines come with their neighbours, in the space of one line.
        let kept = self
            .compression
            .of(key.line << self.shape.line_shift(), self.shape.line_bytes());
        let together = self.compression.together;
        let (begun, bytes) = match kept {
            Kept::Whole if purpose.is_hint => (self.dram.hint(now, key.line, bytes), bytes),
            Kept::Whole => (self.dram.access(now, key.line, bytes), bytes),
            Kept::Compressed => {
                let (bank, bytes) = (key.line / together, bytes / together);
                (
                    self.dram.access_part(now, bank, bytes, 1.0 / together as f64),
                    bytes,
                )
            }
            Kept::Clear => (now, 0),
        };
        self.counters.dram_queueing += begun - now;
        self.counters.dram_read_bytes += bytes;
        self.l2
            .count(key.line << self.shape.line_shift(), bytes, purpose.scattered);
        let latency = match kept {
            // Only how it is kept is looked up.
            Kept::Clear => self.timing.near,
            _ => self.timing.dram,
        };
        let arrives = begun + latency + self.timing.unpacking + way.beyond;
        self.l2.fill(place, fetched, arrives, purpose.scattered);
        (arrives, bytes)
    }

    /// The way from a core to the slice of L2 that a line belongs to.
    fn way(&self, core: usize, key: &Key) -> Way {
        let is_far = key.home != self.l2.near(core);
        // The upper half of the hash chooses the slice, the lowest bit its half.
        let detour = ((key.hash >> 32) as f64 / f64::from(u32::MAX) * 2.0 - 1.0) * self.timing.spread;
        // The model's latency of device memory is the mean of lines of the near and of the far half.
        let half = (self.timing.far - self.timing.near) / 2.0;
        Way {
            is_far,
            detour,
            beyond: detour + if is_far { half } else { -half },
        }
    }

    /// The line's place in L2, and when there is room: the evicted line is written back, and read before that if only a part of
    /// a sector was written.
    fn place_in_l2(&mut self, now: Cycles, key: &Key) -> (Place, Cycles) {
        let (place, victim) = self.l2.place(key);
        (place, self.write_back(now, victim))
    }

    /// Writes back an evicted line: when that is done.
    fn write_back(&mut self, now: Cycles, victim: Option<Victim>) -> Cycles {
        let mut room = now;
        if let Some(Victim {
            number,
            there,
            first_asker: Some(core),
            ..
        }) = victim
            && let Some(regions) = self.regions.iter_mut().find(|regions| regions.may_have(number))
        {
            regions.note(number, core, 0, there);
        }
        if let Some(victim) = victim.filter(|victim| victim.dirty != 0) {
            if victim.partial != 0 {
                let wanted = self.shape.widen(victim.partial, self.timing.granule);
                let bytes = u64::from(wanted.count_ones()) * self.shape.sector_bytes();
                self.counters.dram_read_bytes += bytes;
                self.dram.access(now, victim.number, bytes);
            }
            let bytes = u64::from(victim.dirty.count_ones()) * self.shape.sector_bytes();
            self.counters.dram_written_bytes += bytes;
            room = self.dram.write(now, victim.number, bytes);
        }
        room
    }

    /// L2 serves requests for a line that come at `now`; gives the start of the service.
    fn serve(&mut self, now: Cycles, line: u64, requests: f64) -> Cycles {
        self.counters.l2_requests += requests;
        let served = self.l2_port.take(now, requests);
        match &mut self.slices {
            Some(slices) => slices.take(served, line, requests),
            None => served,
        }
    }

    /// The additional time for bytes of a line that lies in another stack, or with the host.
    fn cross(&mut self, core: usize, now: Cycles, line: u64, bytes: u64) -> Cycles {
        let address = line << self.shape.line_shift();
        let host = self.host.as_mut();
        let host = host.map_or(0.0, |host| host.reach(now, address, bytes as f64));
        let link = self.link.as_mut();
        host + link.map_or(0.0, |link| link.cross(core, now, address, bytes as f64))
    }

    /// A core runs a work-group that belongs to this stack of the device.
    pub fn run_on_stack(&mut self, core: usize, stack: u64) {
        if let Some(link) = &mut self.link {
            link.run(core, stack);
        }
    }

    /// Requests that sectors of a line make.
    fn requests_of(&self, sectors: u8) -> f64 {
        let bytes = u64::from(sectors.count_ones()) * self.shape.sector_bytes();
        (bytes as f64 / self.timing.request as f64).ceil()
    }

    /// Requests that bytes take of L2, or as many as take it as long.
    fn requests(&self, bytes: u64) -> f64 {
        let requests = (bytes as f64 / self.timing.request as f64).ceil();
        requests.max(bytes as f64 / self.timing.request_bytes)
    }
}
