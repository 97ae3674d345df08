//! L2 as a sample of the cores sees it.
//!
//! Memory that is large, or of which each core reads a part of its own, is simple: the sample gets its
//! share of the cache. A buffer that fits into L2 is different: what one core brings in, others find.
//! Such buffers take their part of L2 at full size and stay. Where scattered accesses read them, as
//! indices into a table do, what the sampled cores bring in stands for what the others do: the same
//! lines, moved on within the buffer. Accesses to consecutive addresses are taken to be of data that
//! belong to one core, or that the sampled cores share as the others would.

use std::ops::Range;

use super::cache::{Cache, Replaces, Slot, Victim};
use super::lines::LineShape;
use super::port::Cycles;

/// L2, or the part of it that the simulated cores can claim.
#[derive(Clone, Debug)]
pub(super) struct L2 {
    /// For all that is not in a small buffer.
    cache: Cache,
    small: Vec<SmallBuffer>,
    /// Buffers that L2 holds a good part of, but not all: the addresses, and the bytes that were brought from there.
    partly: Vec<(Range<u64>, u64)>,
    /// Bytes that were brought from device memory: all, and those for scattered accesses.
    brought: [u64; 2],
    /// Busy cores for each one that is simulated.
    ratio: f64,
    sectors: usize,
    /// Bytes of a line.
    line: u64,
}

/// A buffer that stays in L2 once it is there.
#[derive(Clone, Debug)]
struct SmallBuffer {
    first: u64,
    lines: u64,
    /// When each sector is there.
    ready: Vec<Cycles>,
    /// Whether each line has a copy in the near half.
    near: Vec<bool>,
}

/// A place in L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the cache.
    Cached(Slot),
    /// A line of a small buffer, counted from its first.
    Small {
        /// Which buffer.
        buffer: usize,
        /// Which line.
        line: usize,
    },
}

/// Buffers of more than this many times L2 gain little from it: what was brought is gone when another core asks for it.
const PARTLY: u64 = 8;

/// A buffer of which more is read than this many times its size is read again by others.
const AGAIN: f64 = 1.25;

/// What is brought for scattered accesses is a good part of all where it is more than this.
const SCATTERED: f64 = 0.25;

/// At most this part of L2 is set aside for small buffers.
const MOST_SMALL: f64 = 0.75;

impl L2 {
    /// A cache of `bytes` on the device, of whose busy cores one in `ratio` is simulated.
    pub(super) fn new(bytes: u64, ways: u32, shape: LineShape, ratio: f64, buffers: &[Range<u64>]) -> L2 {
        let (line, sectors) = (shape.line_bytes(), shape.sectors());
        let mut ascending: Vec<&Range<u64>> = buffers.iter().filter(|buffer| !buffer.is_empty()).collect();
        ascending.sort_by_key(|buffer| (buffer.end - buffer.start, buffer.start));
        let mut left = bytes as f64 * MOST_SMALL;
        let mut small = Vec::new();
        let mut partly = Vec::new();
        for buffer in ascending {
            let first = buffer.start / line;
            let lines = buffer.end.div_ceil(line) - first;
            left -= (lines * line) as f64;
            if ratio <= 1.0 || lines * line > PARTLY * bytes {
                break;
            }
            if left < 0.0 {
                partly.push((buffer.clone(), 0));
                continue;
            }
            small.push(SmallBuffer {
                first,
                lines,
                ready: vec![Cycles::INFINITY; lines as usize * sectors],
                near: vec![false; lines as usize],
            });
        }
        let set_aside: u64 = small.iter().map(|buffer| buffer.lines * line).sum();
        let own = (bytes - set_aside) as f64 / ratio;
        L2 {
            cache: Cache::new(own, ways, line, shape),
            small,
            partly,
            brought: [0; 2],
            ratio,
            sectors,
            line,
        }
    }

    /// Bytes are brought from device memory.
    pub(super) fn count(&mut self, address: u64, bytes: u64, scattered: bool) {
        for (buffer, brought) in &mut self.partly {
            if buffer.contains(&address) {
                *brought += bytes;
            }
        }
        let [all, for_scattered] = &mut self.brought;
        *all += bytes;
        *for_scattered += if scattered { bytes } else { 0 };
    }

    /// Whether a line is of memory that L2 keeps little of.
    pub(super) fn is_beyond(&self, line: u64) -> bool {
        let address = line * self.line;
        let is_small = |buffer: &SmallBuffer| (buffer.first..buffer.first + buffer.lines).contains(&line);
        !self.small.iter().any(is_small) && !self.partly.iter().any(|(buffer, _)| buffer.contains(&address))
    }

    /// Whether a good part of what was brought was for scattered accesses.
    pub(super) fn is_scattered(&self) -> bool {
        let [all, for_scattered] = self.brought;
        for_scattered as f64 > SCATTERED * all as f64
    }

    /// Whether what was brought, so many times over, is more than there is of a buffer.
    pub(super) fn is_shared(&self, times: f64) -> bool {
        let again = |(buffer, brought): &(Range<u64>, u64)| {
            *brought as f64 * times > AGAIN * (buffer.end - buffer.start) as f64
        };
        self.partly.iter().any(again)
    }

    /// The line's place; one is made if it has none, and what had to go for it is given, too.
    pub(super) fn place(&mut self, line: u64) -> (Place, Option<Victim>) {
        for (index, buffer) in self.small.iter().enumerate() {
            if (buffer.first..buffer.first + buffer.lines).contains(&line) {
                let line = (line - buffer.first) as usize;
                return (Place::Small { buffer: index, line }, None);
            }
        }
        match self.cache.find(line) {
            Some(slot) => (Place::Cached(slot), None),
            None => {
                let (slot, victim) = self.cache.insert(line, Replaces::LeastRecent);
                (Place::Cached(slot), victim)
            }
        }
    }

    /// The sectors of `wanted` that are there or on their way, and when the last of them is there.
    pub(super) fn present(&self, place: Place, wanted: u8) -> (u8, Cycles) {
        let (buffer, line) = match place {
            Place::Cached(slot) => return self.cache.present(slot, wanted),
            Place::Small { buffer, line } => (buffer, line),
        };
        let ready = &self.small[buffer].ready[line * self.sectors..][..self.sectors];
        let there = |&(sector, ready): &(usize, &Cycles)| wanted >> sector & 1 == 1 && ready.is_finite();
        let found = ready.iter().enumerate().filter(there);
        found.fold((0, 0.0), |(found, last), (sector, &ready)| {
            (found | 1 << sector, ready.max(last))
        })
    }

    /// Sectors of a line arrive at a time; with scattered accesses, so do those that other cores ask for.
    pub(super) fn fill(&mut self, place: Place, sectors: u8, ready: Cycles, scattered: bool) {
        let (buffer, line) = match place {
            Place::Cached(slot) => return self.cache.fill(slot, sectors, ready),
            Place::Small { buffer, line } => (buffer, line),
        };
        let SmallBuffer {
            lines, ready: times, ..
        } = &mut self.small[buffer];
        let step = *lines as f64 / self.ratio;
        let cores = if scattered { self.ratio.round() as u64 } else { 1 };
        for core in 0..cores {
            let line = (line as u64 + (core as f64 * step) as u64) % *lines;
            for (sector, time) in times[line as usize * self.sectors..][..self.sectors]
                .iter_mut()
                .enumerate()
            {
                if sectors >> sector & 1 == 1 {
                    *time = time.min(ready);
                }
            }
        }
    }

    /// Sectors of a line are written, and can be read at a time. Of `partial` ones a part is, and the rest was not there.
    pub(super) fn write(&mut self, place: Place, sectors: u8, partial: u8, ready: Cycles) {
        match place {
            Place::Cached(slot) => {
                self.cache.fill(slot, sectors, ready);
                self.cache.soil(slot, sectors, partial);
            }
            Place::Small { buffer, line } => {
                let times = &mut self.small[buffer].ready[line * self.sectors..][..self.sectors];
                for (sector, time) in times.iter_mut().enumerate() {
                    if sectors >> sector & 1 == 1 {
                        *time = ready;
                    }
                }
            }
        }
    }

    /// Whether a copy of the line is in the near half; from now on it is.
    pub(super) fn bring_near(&mut self, place: Place) -> bool {
        match place {
            Place::Cached(slot) => self.cache.bring_near(slot),
            Place::Small { buffer, line } => std::mem::replace(&mut self.small[buffer].near[line], true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn l2(ratio: f64, buffers: &[Range<u64>]) -> L2 {
        L2::new(30 * MIB, 16, LineShape::new(128, 32), ratio, buffers)
    }

    fn bring(l2: &mut L2, lines: Range<u64>) {
        for line in lines {
            let (place, _) = l2.place(line);
            l2.fill(place, 0b1111, 0.0, true);
        }
    }

    /// The part of the lines that are there.
    fn found(l2: &mut L2, lines: Range<u64>) -> f64 {
        let count = lines.end - lines.start;
        let mut there = 0;
        for line in lines {
            let (place, _) = l2.place(line);
            there += u64::from(l2.present(place, 1).0);
        }
        there as f64 / count as f64
    }

    #[test]
    fn a_sample_of_a_small_buffer_brings_in_all_of_it() {
        let mut l2 = l2(33.0, &[0..1 << 30, 1 << 30..(1 << 30) + 16 * MIB]);
        let first = (1 << 30) / 128;
        // One core's part, a thirty-third.
        bring(&mut l2, first..first + 16 * MIB / 128 / 33 + 1);
        assert_eq!(found(&mut l2, first..first + 16 * MIB / 128), 1.0);
        assert_eq!(found(&mut l2, 0..100), 0.0);
    }

    #[test]
    fn a_sample_has_its_share_for_what_is_large() {
        let mut l2 = l2(30.0, &[0..1024 * MIB]);
        let share = MIB / 128;
        bring(&mut l2, 0..2 * share);
        assert_eq!(found(&mut l2, share..2 * share), 1.0);
        assert_eq!(found(&mut l2, 0..share), 0.0);
    }

    #[test]
    fn consecutive_lines_fill_the_whole_cache() {
        let mut l2 = l2(1.0, &[0..30 * MIB]);
        bring(&mut l2, 0..30 * MIB / 128);
        assert_eq!(found(&mut l2, 0..30 * MIB / 128), 1.0);
    }
}
