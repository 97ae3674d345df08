//! L2 as a sample of the cores sees it.
//!
//! It has one or two halves. Each line has its home in one. A load from a core of the other half copies the line to that half,
//! where the copy occupies a line; a hint brings a line to its home alone, where it stays until it is loaded, if it can. (On an
//! H200 prefetched single words come at 48 bytes a cycle from random places of 2 GiB, with hints so far ahead that they take
//! more lines than L2 has: `micro/bandwidth segment=1 ahead=2`. With replacement by age alone it would be 35.)
//!
//! Memory that is large, or of which each core reads a part of its own, is simple: the sample gets its share of the cache. A
//! buffer that fits into L2 is different: each core finds the lines that others brought. Such buffers take their part of L2 at
//! full size and stay. If scattered accesses read them, as indices into a table do, lines brought by the sampled cores stand
//! for those of the other cores: the same lines, shifted within the buffer. Accesses to consecutive addresses are assumed to
//! concern data of one core, or data that the sampled cores share as the others would.
//!
//! If all buffers of a launch are small, L2 has them already unless it is flushed: a launch finds the lines left by the same
//! launch before it, as it does on a GPU where one is timed after the other. If they are large, but the part that the launch
//! touches is not, it finds that part. (`article` with one part of 800 kB for all work-groups, 132×128: 187 µs on an H200, as
//! on its model; 347 µs from device memory.)

use std::ops::Range;

use super::cache::{self, Cache, Replaces, Slot, Victim};
use super::lines::LineShape;
use super::port::{Cycles, spread};
use crate::model::DeviceModel;

/// The contents of L2 when a launch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// None of the launch's data.
    Nothing,
    /// All buffers, where they fit together.
    Buffers,
    /// All of the launch's data, which fit.
    Touched,
}

/// L2, or the part of it that the simulated cores can claim.
#[derive(Clone, Debug)]
pub(super) struct L2 {
    /// The halves, for all that is not in a small buffer.
    halves: Vec<Cache>,
    /// Whether all that is touched is there.
    holds_touched: bool,
    small: Vec<SmallBuffer>,
    /// Busy cores for each one that is simulated.
    ratio: f64,
    sectors: usize,
}

/// A buffer that stays in L2 once it is there, or that is there from the start.
#[derive(Clone, Debug)]
struct SmallBuffer {
    first: u64,
    lines: u64,
    /// When each sector is there.
    ready: Vec<Cycles>,
    /// Whether each line has a copy in the half that is not its home.
    copied: Vec<bool>,
}

/// A line, and where L2 looks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub line: u64,
    /// The hash of its number.
    pub hash: u64,
    /// The half where it has its home: the lowest bit of its hash.
    pub home: usize,
    at: At,
}

/// Where that is.
#[derive(Clone, Copy, Debug)]
enum At {
    /// In a half: the same place in either.
    Half(cache::Key),
    /// A line of a small buffer.
    Small { buffer: usize, line: usize },
}

/// A place in L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a half.
    Cached {
        /// Which half.
        half: usize,
        /// Where there.
        slot: Slot,
    },
    /// A line of a small buffer, counted from its first.
    Small {
        /// Which buffer.
        buffer: usize,
        /// Which line.
        line: usize,
    },
}

/// At most this part of L2 is set aside for small buffers, and lines that fill no more of it stay there.
const MOST_SMALL: f64 = 0.75;

/// The bytes of lines of which L2 may have some left when the launch that read them comes again: all that it holds. Some have a
/// copy in the other half.
pub(crate) fn may_stay_in_l2(model: &DeviceModel) -> u64 {
    halves(model) as u64 * *model.l2.effective_size
}

/// How many halves a device's L2 has.
pub(super) fn halves(model: &DeviceModel) -> usize {
    match *model.l2.far_latency > *model.l2.near_latency {
        true => 2,
        false => 1,
    }
}

/// The bytes of lines that stay in L2 beside each other.
pub(crate) fn stays_in_l2(model: &DeviceModel) -> u64 {
    (*model.l2.effective_size as f64 * MOST_SMALL) as u64
}

impl L2 {
    /// This many halves of `bytes` each on the device, of whose busy cores one in `ratio` is simulated.
    pub(super) fn new(
        halves: usize,
        bytes: u64,
        ways: u32,
        shape: LineShape,
        ratio: f64,
        buffers: &[Range<u64>],
        contents: Contents,
    ) -> L2 {
        let (line, sectors) = (shape.line_bytes(), shape.sectors());
        let mut ascending: Vec<&Range<u64>> = buffers.iter().filter(|buffer| !buffer.is_empty()).collect();
        ascending.sort_by_key(|buffer| (buffer.end - buffer.start, buffer.start));
        let mut left = bytes as f64 * MOST_SMALL;
        let total: u64 = ascending.iter().map(|buffer| buffer.end - buffer.start).sum();
        let is_there = match contents {
            Contents::Nothing => false,
            Contents::Buffers => total as f64 <= left,
            Contents::Touched => true,
        };
        let mut small = Vec::new();
        for buffer in ascending {
            let first = buffer.start / line;
            let lines = buffer.end.div_ceil(line) - first;
            left -= (lines * line) as f64;
            if ratio <= 1.0 && !is_there || left < 0.0 {
                break;
            }
            small.push(SmallBuffer {
                first,
                lines,
                ready: vec![if is_there { 0.0 } else { Cycles::INFINITY }; lines as usize * sectors],
                copied: vec![is_there; lines as usize],
            });
        }
        let set_aside: u64 = small.iter().map(|buffer| buffer.lines * line).sum();
        let own = (bytes - set_aside) as f64 / ratio;
        L2 {
            halves: vec![Cache::new(own, ways, line, shape); halves.max(1)],
            holds_touched: contents == Contents::Touched,
            small,
            ratio,
            sectors,
        }
    }

    /// The same, which was full of lines of the same kinds where `was_full` says so: see [`Cache::filled_before`].
    pub(super) fn filled_before(mut self, was_full: bool) -> L2 {
        if was_full {
            self.halves = self.halves.into_iter().map(Cache::filled_before).collect();
        }
        self
    }

    /// Whether all that is touched is there from the start.
    pub(super) fn holds_touched(&self) -> bool {
        self.holds_touched
    }

    /// Where to look for a line.
    pub(super) fn key(&self, line: u64) -> Key {
        let hash = spread(line);
        let holds = |buffer: &SmallBuffer| (buffer.first..buffer.first + buffer.lines).contains(&line);
        Key {
            line,
            hash,
            home: hash as usize & 1 & (self.halves.len() - 1),
            at: match self.small.iter().position(holds) {
                Some(buffer) => At::Small {
                    buffer,
                    line: (line - self.small[buffer].first) as usize,
                },
                None => At::Half(self.halves[0].key(line, hash)),
            },
        }
    }

    /// Touches the data of a look-up: see [`Cache::glance`].
    pub(super) fn glance(&self, key: &Key) -> u64 {
        match key.at {
            At::Half(at) => self.halves.iter().fold(0, |all, half| all ^ half.glance(at)),
            At::Small { buffer, line } => self.small[buffer].ready[line * self.sectors].to_bits(),
        }
    }

    /// The same of the line's place.
    pub(super) fn glance_at_place(&self, key: &Key) -> u64 {
        match key.at {
            At::Half(at) => self
                .halves
                .iter()
                .fold(0, |all, half| all ^ half.glance_at_place(at)),
            At::Small { .. } => 0,
        }
    }

    /// The half that is near a core. Cores take turns.
    pub(super) fn near(&self, core: usize) -> usize {
        core & 1 & (self.halves.len() - 1)
    }

    /// Whether the line has a place in its home, or needs none; if so, it counts as used.
    pub(super) fn holds(&mut self, key: &Key) -> bool {
        match key.at {
            At::Small { .. } => true,
            At::Half(at) => self.halves[key.home].find(at).is_some(),
        }
    }

    /// The line's place in its home; one is made if it has none, and the evicted line is given, too.
    pub(super) fn place(&mut self, key: &Key) -> (Place, Option<Victim>) {
        let half = key.home;
        match key.at {
            At::Small { buffer, line } => (Place::Small { buffer, line }, None),
            At::Half(at) => {
                let cache = &mut self.halves[half];
                let (slot, victim) = match cache.find(at) {
                    Some(slot) => (slot, None),
                    None => cache.insert(at, Replaces::LeastRecent),
                };
                (Place::Cached { half, slot }, victim)
            }
        }
    }

    /// The same for a hint: none is made where every line that could go waits to be loaded.
    pub(super) fn place_hint(&mut self, key: &Key) -> Option<(Place, Option<Victim>)> {
        match key.at {
            At::Half(at) => {
                let half = key.home;
                let (slot, victim) = self.halves[half].find_or_fit(at)?;
                Some((Place::Cached { half, slot }, victim))
            }
            At::Small { .. } => Some(self.place(key)),
        }
    }

    /// The first core that asked for a line since it is here; this one, if none did.
    pub(super) fn first_asker(&mut self, place: Place, core: usize) -> usize {
        match place {
            Place::Cached { half, slot } => self.halves[half].first_asker(slot, core),
            Place::Small { .. } => core,
        }
    }

    /// A hint announces a load of a line, or it is loaded: whether a hint had announced it.
    pub(super) fn await_load(&mut self, place: Place, is_awaited: bool) -> bool {
        match place {
            Place::Cached { half, slot } => self.halves[half].await_load(slot, is_awaited),
            Place::Small { .. } => false,
        }
    }

    /// Whether a half that is not the line's home has a copy with sectors, and when the last of them is there.
    pub(super) fn copied(&mut self, key: &Key, half: usize, sectors: u8) -> Option<Cycles> {
        let place = match key.at {
            At::Small { buffer, line } if !self.small[buffer].copied[line] => return None,
            At::Small { buffer, line } => Place::Small { buffer, line },
            At::Half(at) => Place::Cached {
                half,
                slot: self.halves[half].find(at)?,
            },
        };
        let (present, ready) = self.present(place, sectors);
        (present == sectors).then_some(ready)
    }

    /// Copies sectors of a line to a half that is not its home, at a time; gives the evicted line.
    pub(super) fn copy(&mut self, key: &Key, half: usize, sectors: u8, ready: Cycles) -> Option<Victim> {
        match key.at {
            At::Small { buffer, line } => {
                self.small[buffer].copied[line] = true;
                None
            }
            At::Half(at) => {
                let cache = &mut self.halves[half];
                let (slot, victim) = cache.find_or_fit(at)?;
                cache.fill(slot, sectors, ready);
                victim
            }
        }
    }

    /// The sectors of `wanted` that are there or on their way, and when the last of them is there.
    pub(super) fn present(&self, place: Place, wanted: u8) -> (u8, Cycles) {
        let (buffer, line) = match place {
            Place::Cached { half, slot } => return self.halves[half].present(slot, wanted),
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
            Place::Cached { half, slot } => return self.halves[half].fill(slot, sectors, ready),
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

    /// Sectors of a line are written, and can be read at a time. Of `partial` ones a part is, and the rest was not there. Gives what
    /// has to be written back for it: see [`Cache::mark_dirty`].
    pub(super) fn write(&mut self, place: Place, sectors: u8, partial: u8, ready: Cycles) -> Option<Victim> {
        match place {
            Place::Cached { half, slot } => {
                self.halves[half].fill(slot, sectors, ready);
                self.halves[half].mark_dirty(slot, sectors, partial)
            }
            Place::Small { buffer, line } => {
                let times = &mut self.small[buffer].ready[line * self.sectors..][..self.sectors];
                for (sector, time) in times.iter_mut().enumerate() {
                    if sectors >> sector & 1 == 1 {
                        *time = ready;
                    }
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn l2(ratio: f64, buffers: &[Range<u64>]) -> L2 {
        L2::new(
            1,
            30 * MIB,
            16,
            LineShape::new(128, 32),
            ratio,
            buffers,
            Contents::Nothing,
        )
    }

    fn bring(l2: &mut L2, lines: Range<u64>) {
        for line in lines {
            let (place, _) = l2.place(&l2.key(line));
            l2.fill(place, 0b1111, 0.0, true);
        }
    }

    /// The part of the lines that are there.
    fn found(l2: &mut L2, lines: Range<u64>) -> f64 {
        let count = lines.end - lines.start;
        let mut there = 0;
        for line in lines {
            let (place, _) = l2.place(&l2.key(line));
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

    #[test]
    fn copies_take_room_and_homes_do_not_move() {
        let mut l2 = L2::new(
            2,
            MIB,
            16,
            LineShape::new(128, 32),
            1.0,
            &[0..64 * MIB],
            Contents::Nothing,
        );
        let near = l2.near(0);
        // One core reads 1.5 MiB: the lines whose home is near and the copies of the rest do not fit into one half.
        let lines = 3 * MIB / 2 / 128;
        let (mut at_home, mut copies, mut there) = (0, 0, 0);
        for round in 0..4 {
            for line in 0..lines {
                let key = l2.key(line);
                let (place, _) = l2.place(&key);
                let (present, _) = l2.present(place, 1);
                if key.home != near {
                    if l2.copied(&key, near, 1).is_none() {
                        l2.copy(&key, near, 1, 0.0);
                    } else {
                        copies += u32::from(round == 3);
                    }
                    at_home += u32::from(round == 3);
                    there += u32::from(round == 3 && present != 0);
                }
                l2.fill(place, 1, 0.0, false);
            }
        }
        assert!(copies < at_home / 20, "{copies} of {at_home}");
        // Sets are not all as full as the mean.
        assert!(there > at_home * 9 / 10, "{there} of {at_home}");
    }
}
