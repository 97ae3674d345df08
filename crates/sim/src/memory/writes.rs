//! Writes to memory: stores, atomic operations, and the fences that order them.

use std::ops::Range;

use super::cache::Victim;
use super::reuse::WrittenParts;
use super::{Access, Cycles, Lines, MemorySystem, Purpose};

/// How far device memory may be behind with writes before stores wait, in times its latency.
const WAITING: f64 = 10.0;

/// Fences of the device. Those that wait begin together, all cores': on an H200 a fence and an addition take a lone sub-group
/// 698 cycles, one in each of 32 cores 1,165, 32 in each of 132 cores 1,378 (`micro/atomics address=own order=acq-rel`).
#[derive(Clone, Debug)]
pub(super) struct Fences {
    /// From one beginning to the next.
    interval: Cycles,
    /// When the last ones that were asked for begin.
    last: Cycles,
}

impl Fences {
    pub(crate) fn new(interval: Cycles) -> Fences {
        Fences {
            interval,
            last: f64::NEG_INFINITY,
        }
    }

    /// When a fence that is asked for now begins.
    fn take(&mut self, now: Cycles) -> Cycles {
        if self.last < now {
            self.last = now.max(self.last + self.interval);
        }
        self.last
    }
}

/// A buffer that several cores write.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// The numbers of its lines.
    lines: Range<u64>,
    parts: WrittenParts,
    /// Stores whose sectors are to be read, and those to be written back.
    due: WrittenParts,
}

impl Written {
    pub(super) fn new(lines: Range<u64>, parts: WrittenParts) -> Written {
        let due = WrittenParts {
            absent: 0.5,
            written_back: 0.5,
        };
        Written { lines, parts, due }
    }

    /// A store: whether its sectors are not there, and whether they are written back for it.
    fn write(&mut self) -> (bool, bool) {
        let is_due = |due: &mut f64, part: f64| {
            *due += part;
            let is_due = *due >= 1.0;
            *due -= f64::from(u8::from(is_due));
            is_due
        };
        (
            is_due(&mut self.due.absent, self.parts.absent),
            is_due(&mut self.due.written_back, self.parts.written_back),
        )
    }
}

impl MemorySystem {
    /// Earlier accesses are visible to all cores: when the fence begins.
    pub(crate) fn order(&mut self, now: Cycles) -> Cycles {
        self.fences.take(now)
    }

    /// A device-wide fence empties a core's L1: others' writes are in L2. Nothing is lost, because stores are written through.
    pub(crate) fn fence(&mut self, core: usize) {
        if let Some(l1) = &mut self.cores[core].l1 {
            l1.empty();
        }
    }

    /// A store to global memory. It goes through to L2. Nothing waits for it but the next ones, where L2 has to make room
    /// and device memory does not keep up.
    pub(crate) fn store(&mut self, core: usize, now: Cycles, access: &Access) {
        self.counters.stores += 1;
        self.write_through(core, now, access);
    }

    /// Writes lines to L2: when the first one leaves the core.
    pub(super) fn write_through(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
        let mut left = Cycles::INFINITY;
        let lines = Lines::of(access, self.shape);
        let sectors: u32 = lines.iter().map(|(_, sectors)| sectors.count_ones()).sum();
        let whole =
            u64::from(access.count() * access.bytes) >= u64::from(sectors) * self.shape.sector_bytes();
        for (line, sectors) in lines.iter() {
            let bytes = u64::from(sectors.count_ones()) * self.shape.sector_bytes();
            let cycles = self.timing.store.max(bytes as f64 / self.timing.store_bytes);
            let start = self.cores[core].port.take(now, cycles);
            left = left.min(start);
            let start = self.serve(start, line, self.requests_of(sectors) * self.timing.write);
            self.counters.l2_written_sectors += u64::from(sectors.count_ones());
            let key = self.l2.key(line);
            let room = match self
                .written
                .iter_mut()
                .find(|buffer| buffer.lines.contains(&line))
            {
                // The line lies in the other cores' part of L2.
                Some(buffer) => {
                    let (is_absent, goes_back) = buffer.write();
                    if is_absent && !whole {
                        self.complete(start, line, sectors);
                    }
                    let victim = Victim {
                        number: line,
                        dirty: sectors,
                        partial: 0,
                    };
                    self.write_back(start, goes_back.then_some(victim))
                }
                None => {
                    let (place, room) = self.place_in_l2(start, &key);
                    let (present, ready) = self.l2.present(place, sectors);
                    let partial = if whole { 0 } else { sectors & !present };
                    let owed = self.l2.write(place, sectors, partial, ready.max(start));
                    room.max(self.write_back(start, owed))
                }
            };
            if let Some(recent) = &mut self.recent {
                recent.write(&key, start);
            }
            let address = line << self.shape.line_shift();
            let host = self.host.as_mut();
            let room = room.max(start) + host.map_or(0.0, |host| host.write(start, address, bytes as f64));
            // L2 buffers many writes that wait for their banks: a core is blocked only if all banks fall behind.
            self.cores[core]
                .port
                .block(room.max(start) - WAITING * self.timing.dram);
        }
        left
    }

    /// An atomic operation on global memory: when the old value is back. It is carried out in L2, and counted as a store.
    /// Operations that meet in one line are served one after the other, two words at a time; if a whole sub-group adds to one
    /// word, its compiler has combined them. Each of the consecutive `values` of a work-item is an operation of its own. The
    /// returned data are small.
    pub(crate) fn atomic(&mut self, core: usize, now: Cycles, access: &Access, values: u32) -> Cycles {
        self.counters.stores += 1;
        let mut addresses = access.active();
        let first = addresses.next();
        let is_one = addresses.all(|address| Some(address) == first);
        let most = values * if is_one { 1 } else { access.count() };
        let start = self.cores[core]
            .port
            .take(now, f64::from(most) * self.timing.atomic);
        let mut done = start;
        let lines = Lines::of(access, self.shape);
        let purpose = Purpose::of(access, &lines, self.shape);
        for (line, sectors) in lines.iter() {
            let in_line = |address: &u64| address >> self.shape.line_shift() == line;
            let words = match is_one {
                true => 1,
                false => access.active().filter(in_line).count(),
            };
            let start = start + self.translate(core, start, line);
            let written = self.requests_of(sectors) * self.timing.write;
            let changed = f64::from(sectors.count_ones()) * self.timing.atomic_sector;
            let served = self.serve(start, line, written.max(changed));
            let key = self.l2.key(line);
            let back = self.look_up(core, (start, served), &key, sectors, purpose);
            self.counters.l2_written_sectors += u64::from(sectors.count_ones());
            let (place, _) = self.place_in_l2(back, &key);
            let owed = self.l2.write(place, sectors, 0, back);
            self.write_back(back, owed);
            done = done.max(self.atomics.change(line, back, words * values as usize));
        }
        // It may not be waited for.
        self.queue(core, done);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_that_wait_begin_together() {
        let mut fences = Fences::new(100.0);
        assert_eq!(fences.take(10.0), 10.0);
        assert_eq!((fences.take(20.0), fences.take(90.0)), (110.0, 110.0));
        assert_eq!(fences.take(111.0), 210.0);
        assert_eq!(fences.take(500.0), 500.0);
    }
}
