//! The way of an access beyond L1: address translation, the link to L2, L2's service and its contents, device memory.
//!
//! L1 has been asked already, or is passed by. Each step reserves its resource in the order of the calls.

use super::cache::Victim;
use super::compressed::Kept;
use super::l2::{Key, Place};
use super::lines::{LineShape, Lines};
use super::port::Cycles;
use super::recent::Recent;
use super::{Access, MemorySystem};

/// Why a line is asked of L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Purpose {
    /// The work-items' addresses lie in more than twice the lines that they would fill.
    pub scattered: bool,
    /// It is not waited for.
    pub is_hint: bool,
}

/// The path from a core to a slice of L2.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub(crate) struct L2Path {
    /// Whether the slice lies in the far half.
    is_far: bool,
    /// Its difference from the mean of its half.
    detour: Cycles,
    /// The same for data from device memory, against its mean.
    beyond: Cycles,
}

impl Purpose {
    pub(super) fn of(access: &Access, lines: &Lines, shape: LineShape) -> Purpose {
        let bytes = u64::from(access.count() * access.bytes);
        let least = bytes.div_ceil(shape.line_bytes()).max(1);
        Purpose {
            scattered: lines.len() as u64 > 2 * least,
            is_hint: false,
        }
    }
}

impl MemorySystem {
    /// Brings sectors to a core, as soon as it may have further ones on their way.
    pub(super) fn fetch(
        &mut self,
        core: usize,
        now: Cycles,
        line: u64,
        sectors: u8,
        purpose: Purpose,
    ) -> Cycles {
        let memory = &mut self.cores[core];
        let count = sectors.count_ones();
        let start = memory.in_flight.start(now, count);
        let delivered = self.counters.dram_read_bytes;
        // Until then other cores ask: a turn that is taken ahead of them, at what all share, would hold them up. So it has its turns as
        // if it asked now, and comes as much later as it does not wait for them.
        let queueing = self.counters.l2_queueing;
        let asked = self.ask_l2(core, now, line, sectors, purpose);
        let waited = self.counters.l2_queueing - queueing;
        let arrives = asked + (start - now - waited).max(0.0);
        let bytes = (u64::from(count) * self.shape.sector_bytes()) as f64;
        // Device memory may deliver more than was asked for.
        let delivered = (self.counters.dram_read_bytes - delivered) as f64;
        self.counters.byte_cycles_in_flight += bytes * (arrives - now);
        self.counters.byte_cycles_from_memory += delivered.min(bytes) * (arrives - now);
        self.cores[core].in_flight.add(arrives, count);
        arrives
    }

    /// A core's next instructions for memory wait until what was asked for so far has room on its way.
    pub(super) fn wait_for_room(&mut self, core: usize) {
        let memory = &mut self.cores[core];
        memory.port.block(memory.in_flight.last());
    }

    /// Requests data from L2, and from device memory if L2 misses: when the core has the data.
    pub(super) fn ask_l2(
        &mut self,
        core: usize,
        now: Cycles,
        line: u64,
        sectors: u8,
        purpose: Purpose,
    ) -> Cycles {
        let translation = self.translate(core, now, line);
        let bytes = u64::from(sectors.count_ones()) * self.shape.sector_bytes();
        let start = translation + self.cores[core].link.take(now, bytes as f64);
        let start = start + self.cross(core, start, line, bytes);
        let served = self.serve(start, line, self.requests(bytes));
        self.look_up(core, (start, served), &self.l2.key(line), sectors, purpose)
    }

    /// Only later requests wait for those in flight until a time: a core's queue holds no more than is in flight.
    pub(super) fn queue(&mut self, core: usize, until: Cycles) {
        self.cores[core].port.block(until - 2.0 * self.timing.near);
    }

    /// Looks for sectors in L2, which has served a request that it got at `start`: when the core has the data. Data from the
    /// far half leave a copy in the near one.
    pub(super) fn look_up(
        &mut self,
        core: usize,
        (start, served): (Cycles, Cycles),
        key: &Key,
        sectors: u8,
        purpose: Purpose,
    ) -> Cycles {
        self.counters.l2_queueing += served - start;
        let path = self.path(core, key);
        let is_new = |recent: &Recent| recent.was_written(key, served);
        let new = self.recent.as_ref().is_some_and(is_new);
        let detour = path.detour + if new { self.timing.read_after_write } else { 0.0 };
        let near = self.l2.near(core);
        if path.is_far
            && let Some(ready) = self.l2.copied(key, near, sectors)
        {
            let count = u64::from(sectors.count_ones());
            self.counters.l2_sectors += count;
            self.counters.l2_hits += count;
            return ready.max(served + self.timing.near + detour);
        }
        let latency = if path.is_far {
            self.timing.far
        } else {
            self.timing.near
        };
        let is_new_here = !self.regions.is_empty() && !self.l2.holds(key);
        if is_new_here && let Some(region) = self.others_hold(key.line) {
            let count = u64::from(sectors.count_ones());
            self.counters.l2_sectors += count;
            self.counters.l2_hits += count;
            if !path.is_far || self.regions[region].have_copy() {
                return served + self.timing.near + detour;
            }
            let done = served + latency + detour;
            let whole = self.shape.widen(sectors, self.timing.granule);
            let victim = self.l2.copy(key, near, whole, done);
            self.write_back(served, victim);
            return done;
        }
        if !self.is_kept_beyond_l1 && !self.l2_has(key, sectors) {
            self.counters.l2_sectors += u64::from(sectors.count_ones());
            let whole = self.shape.widen(sectors, self.timing.granule);
            return self.read_memory(served, key, whole, purpose, path).0;
        }
        let (place, _) = self.place_in_l2(served, key);
        let was_announced = self.l2.await_load(place, false);
        let (missing, ready) = self.missing_in_l2(place, sectors);
        let missing = match is_new_here || was_announced {
            true => {
                self.l2.first_asker(place, core);
                missing
            }
            false => self.missing_of_all(core, served, (key, place), missing, purpose),
        };
        let mut done = ready.max(served + latency + detour);
        if missing != 0 {
            let (arrives, _) = self.bring(served, key, place, missing, purpose, path);
            done = done.max(arrives);
        }
        if path.is_far {
            let whole = self.shape.widen(sectors, self.timing.granule);
            let (there, _) = self.l2.present(place, whole);
            let victim = self.l2.copy(key, near, there, done);
            self.write_back(served, victim);
        }
        done
    }

    /// The missing sectors of a line, if lines brought by cores outside the simulation count, too.
    pub(super) fn missing_of_all(
        &mut self,
        core: usize,
        now: Cycles,
        (key, place): (&Key, Place),
        missing: u8,
        purpose: Purpose,
    ) -> u8 {
        if !self.regions_have(core, key, place, missing) || missing == 0 {
            return missing;
        }
        self.counters.l2_hits += u64::from(missing.count_ones());
        let brought = self.brought_with(place, missing);
        self.l2.fill(place, brought, now, purpose.scattered);
        0
    }

    /// Whether cores outside the simulation have the missing sectors of a line that the sample holds, by the hit rate of its
    /// region.
    pub(super) fn regions_have(&mut self, core: usize, key: &Key, place: Place, missing: u8) -> bool {
        // Buffers set aside at full size are filled for all.
        if matches!(place, Place::Small { .. }) {
            return false;
        }
        let Some(regions) = self.regions.iter_mut().find(|regions| regions.contains(key.line)) else {
            return false;
        };
        let is_own = missing == 0 && self.l2.first_asker(place, core) == core;
        (!is_own || regions.counts_own(key.line)) && regions.have(key.line, missing == 0)
    }

    /// Whether cores outside the simulation have a line that the sample does not hold: the number of its buffer's regions.
    pub(super) fn others_hold(&mut self, line: u64) -> Option<usize> {
        let at = self.regions.iter().position(|regions| regions.contains(line))?;
        self.regions[at].have(line, false).then_some(at)
    }

    /// Which of the sectors that are asked for L2 does not have, and when the last of the others is there.
    pub(super) fn missing_in_l2(&mut self, place: Place, sectors: u8) -> (u8, Cycles) {
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
    pub(super) fn brought_with(&self, place: Place, missing: u8) -> u8 {
        let whole = self.shape.widen(missing, self.timing.granule);
        let (there, _) = self.l2.present(place, whole);
        whole & !there
    }

    /// Whether L2 has sectors of a line, or will have them.
    fn l2_has(&mut self, key: &Key, sectors: u8) -> bool {
        if !self.l2.holds(key) {
            return false;
        }
        let (place, _) = self.l2.place(key);
        self.l2.holds_touched() || self.l2.present(place, sectors).0 == sectors
    }

    /// Fetches the missing sectors of a line to L2 from device memory, which delivers whole granules: when they arrive, and how
    /// many bytes they are.
    pub(super) fn bring(
        &mut self,
        now: Cycles,
        key: &Key,
        place: Place,
        missing: u8,
        purpose: Purpose,
        path: L2Path,
    ) -> (Cycles, u64) {
        let fetched = self.brought_with(place, missing);
        let (arrives, bytes) = self.read_memory(now, key, fetched, purpose, path);
        self.l2.fill(place, fetched, arrives, purpose.scattered);
        (arrives, bytes)
    }

    /// Reads sectors of a line from device memory: when they arrive, and how many bytes they are.
    fn read_memory(
        &mut self,
        now: Cycles,
        key: &Key,
        fetched: u8,
        purpose: Purpose,
        path: L2Path,
    ) -> (Cycles, u64) {
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
        let latency = match kept {
            // Only how it is kept is looked up.
            Kept::Clear => self.timing.near,
            _ => self.timing.dram,
        };
        (begun + latency + self.timing.unpacking + path.beyond, bytes)
    }

    /// The path from a core to the slice of L2 that a line belongs to.
    pub(super) fn path(&self, core: usize, key: &Key) -> L2Path {
        let is_far = key.home != self.l2.near(core);
        // The upper half of the hash chooses the slice, the lowest bit its half.
        let detour = ((key.hash >> 32) as f64 / f64::from(u32::MAX) * 2.0 - 1.0) * self.timing.spread;
        // The model's latency of device memory is the mean of lines of the near and of the far half.
        let half = (self.timing.far - self.timing.near) / 2.0;
        L2Path {
            is_far,
            detour,
            beyond: detour + if is_far { half } else { -half },
        }
    }

    /// The line's place in L2, and when there is room: the evicted line is written back, and read before that if only a part of
    /// a sector was written.
    pub(super) fn place_in_l2(&mut self, now: Cycles, key: &Key) -> (Place, Cycles) {
        let (place, victim) = self.l2.place(key);
        (place, self.write_back(now, victim))
    }

    /// Writes back an evicted line: when that is done.
    pub(super) fn write_back(&mut self, now: Cycles, victim: Option<Victim>) -> Cycles {
        let mut room = now;
        if let Some(victim) = victim.filter(|victim| victim.dirty != 0) {
            self.complete(now, victim.number, victim.partial);
            let bytes = u64::from(victim.dirty.count_ones()) * self.shape.sector_bytes();
            self.counters.dram_written_bytes += bytes;
            room = self.dram.write(now, victim.number, bytes);
        }
        room
    }

    /// Reads sectors of a line, a part of each of which was written.
    pub(super) fn complete(&mut self, now: Cycles, line: u64, partial: u8) {
        if partial != 0 {
            let wanted = self.shape.widen(partial, self.timing.granule);
            let bytes = u64::from(wanted.count_ones()) * self.shape.sector_bytes();
            self.counters.dram_read_bytes += bytes;
            self.dram.access(now, line, bytes);
        }
    }

    /// L2 serves requests for a line that come at `now`; gives the start of the service.
    pub(super) fn serve(&mut self, now: Cycles, line: u64, requests: f64) -> Cycles {
        self.counters.l2_requests += requests;
        let served = self.l2_port.take(now, requests);
        match &mut self.slices {
            Some(slices) => slices.take(served, line, requests),
            None => served,
        }
    }

    /// The additional time for bytes of a line that lies in another stack, or with the host.
    pub(super) fn cross(&mut self, core: usize, now: Cycles, line: u64, bytes: u64) -> Cycles {
        let address = line << self.shape.line_shift();
        let host = self.host.as_mut();
        let host = host.map_or(0.0, |host| host.reach(now, address, bytes as f64));
        let link = self.link.as_mut();
        host + link.map_or(0.0, |link| link.cross(core, now, address, bytes as f64))
    }

    /// Requests that sectors of a line make.
    pub(super) fn requests_of(&self, sectors: u8) -> f64 {
        let bytes = u64::from(sectors.count_ones()) * self.shape.sector_bytes();
        (bytes as f64 / self.timing.request as f64).ceil()
    }

    /// Requests that bytes take of L2, or as many as take it as long.
    pub(super) fn requests(&self, bytes: u64) -> f64 {
        let requests = (bytes as f64 / self.timing.request as f64).ceil();
        requests.max(bytes as f64 / self.timing.request_bytes)
    }
}
