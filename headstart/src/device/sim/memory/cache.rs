//! A set-associative cache with sectors. It keeps times instead of data: when each sector arrives.

use super::lines::LineShape;
use super::port::{Cycles, Turns, pick, spread};

/// Which line makes room for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaces {
    /// The one that was not used for longest, of those that do not wait for the load that a hint announced; if all do, of these.
    LeastRecent,
    /// Any, by a fixed sequence.
    Any,
}

/// A cache. What is looked at most lies closest together: the numbers of a set, then how long ago each was used.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Each line's number; `EMPTY` if there is none.
    numbers: Vec<u64>,
    /// When each line was used, in [`AWAITED`] more if a hint brought it and nothing has loaded it; 0 where there is none.
    used: Vec<u64>,
    rest: Vec<Rest>,
    /// When each sector's data are there; never, if nobody asked for it.
    ready: Vec<Cycles>,
    turns: Turns,
    ways: usize,
    sectors: usize,
    clock: u64,
}

/// What is seldom asked of a line.
#[derive(Clone, Copy, Debug)]
struct Rest {
    dirty: u8,
    partial: u8,
    /// The first core that asked for it, as far as anybody wants to know; `NOBODY` if none did.
    first_asker: u32,
}

/// A line of this age or more waits for the load that a hint announced: it goes last.
const AWAITED: u64 = 1 << 63;

/// A place in a cache, as long as nothing else is put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

/// A line that had to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Victim {
    /// Its number.
    pub(super) number: u64,
    /// Its sectors that were written.
    pub(super) dirty: u8,
    /// Those of them of which a part was, and the rest is not known.
    pub(super) partial: u8,
}

const EMPTY: u64 = u64::MAX;
const NOBODY: u32 = u32::MAX;

impl Rest {
    const NEW: Rest = Rest {
        dirty: 0,
        partial: 0,
        first_asker: NOBODY,
    };
}

impl Cache {
    /// A cache of about `bytes`: at least one set.
    pub(super) fn new(bytes: f64, ways: u32, line: u64, shape: LineShape) -> Cache {
        let ways = ways as usize;
        let sets = ((bytes / line as f64 / ways as f64).round() as usize).max(1);
        Cache {
            numbers: vec![EMPTY; sets * ways],
            used: vec![0; sets * ways],
            rest: vec![Rest::NEW; sets * ways],
            ready: vec![Cycles::INFINITY; sets * ways * shape.sectors()],
            turns: Turns::new(sets, 0),
            ways,
            sectors: shape.sectors(),
            clock: 0,
        }
    }

    /// The first way of the set that a line belongs to. Consecutive lines lie in different sets, in an
    /// order that a hash changes from one round through the sets to the next.
    fn set(&self, number: u64) -> usize {
        self.turns.place(number) * self.ways
    }

    /// Forgets every line. Nothing is written back: only clean caches are emptied.
    pub(super) fn empty(&mut self) {
        self.numbers.fill(EMPTY);
        self.used.fill(0);
    }

    /// The line's place, if it has one; it counts as used.
    pub(super) fn find(&mut self, number: u64) -> Option<Slot> {
        let first = self.set(number);
        let set = &self.numbers[first..first + self.ways];
        let way = set.iter().position(|&own| own == number)?;
        self.clock += 1;
        let used = &mut self.used[first + way];
        *used = *used & AWAITED | self.clock;
        Some(Slot(first + way))
    }

    /// Makes a place for a line that has none, without any sector; gives the line that had to go.
    pub(super) fn insert(&mut self, number: u64, replaces: Replaces) -> (Slot, Option<Victim>) {
        self.clock += 1;
        let first = self.set(number);
        let used = &self.used[first..first + self.ways];
        // Places without a line are the least recent of all.
        let (mut way, mut least) = (0, u64::MAX);
        for (other, &used) in used.iter().enumerate() {
            if used < least {
                (way, least) = (other, used);
            }
        }
        if least != 0 && replaces == Replaces::Any {
            way = pick(spread(self.clock), self.ways);
        }
        let slot = first + way;
        let old = (self.numbers[slot], self.rest[slot]);
        self.numbers[slot] = number;
        self.used[slot] = self.clock;
        self.rest[slot] = Rest::NEW;
        self.ready[slot * self.sectors..][..self.sectors].fill(Cycles::INFINITY);
        let victim = (old.0 != EMPTY).then_some(Victim {
            number: old.0,
            dirty: old.1.dirty,
            partial: old.1.partial,
        });
        (Slot(slot), victim)
    }

    /// A hint has announced a load of a line, or it has been loaded.
    pub(super) fn await_load(&mut self, slot: Slot, is_awaited: bool) {
        let used = &mut self.used[slot.0];
        *used = *used & !AWAITED | if is_awaited { AWAITED } else { 0 };
    }

    /// The first core that asked for a line since it is here; this one, if none did.
    pub(super) fn first_asker(&mut self, slot: Slot, core: usize) -> usize {
        let first = &mut self.rest[slot.0].first_asker;
        if *first == NOBODY {
            *first = core as u32;
        }
        *first as usize
    }

    /// Whether a line could be put in the place of one that no load is announced of.
    pub(super) fn has_room(&self, number: u64) -> bool {
        let first = self.set(number);
        let set = &self.used[first..first + self.ways];
        set.iter().any(|&used| used < AWAITED)
    }

    /// The sectors of `wanted` that are there or on their way, and when the last of them is there.
    pub(super) fn present(&self, slot: Slot, wanted: u8) -> (u8, Cycles) {
        let ready = &self.ready[slot.0 * self.sectors..][..self.sectors];
        let mut found = 0;
        let mut last = 0.0f64;
        for (sector, &ready) in ready.iter().enumerate() {
            if wanted >> sector & 1 == 1 && ready < Cycles::INFINITY {
                found |= 1 << sector;
                last = last.max(ready);
            }
        }
        (found, last)
    }

    /// Sectors arrive at a time.
    pub(super) fn fill(&mut self, slot: Slot, sectors: u8, ready: Cycles) {
        for (sector, place) in self.ready[slot.0 * self.sectors..][..self.sectors]
            .iter_mut()
            .enumerate()
        {
            if sectors >> sector & 1 == 1 {
                *place = ready;
            }
        }
    }

    /// Sectors were written and must be written back when their line goes; of `partial` ones a part was.
    pub(super) fn soil(&mut self, slot: Slot, sectors: u8, partial: u8) {
        let line = &mut self.rest[slot.0];
        line.dirty |= sectors;
        line.partial = line.partial & !(sectors & !partial) | partial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(ways: u32, lines: u64) -> Cache {
        Cache::new((lines * 128) as f64, ways, 128, LineShape::new(128, 32))
    }

    #[test]
    fn sectors_come_one_by_one() {
        let mut cache = cache(4, 16);
        assert_eq!(cache.find(7), None);
        let (slot, victim) = cache.insert(7, Replaces::LeastRecent);
        assert_eq!(victim, None);
        assert_eq!(cache.present(slot, 0b1111), (0, 0.0));
        cache.fill(slot, 0b0011, 50.0);
        cache.fill(slot, 0b0100, 90.0);
        assert_eq!(cache.find(7), Some(slot));
        assert_eq!(cache.present(slot, 0b1001), (0b0001, 50.0));
        assert_eq!(cache.present(slot, 0b1111), (0b0111, 90.0));
    }

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut cache = cache(2, 2);
        cache.insert(1, Replaces::LeastRecent);
        let (slot, _) = cache.insert(2, Replaces::LeastRecent);
        cache.soil(slot, 0b0100, 0);
        cache.find(1);
        assert_eq!(
            cache.insert(3, Replaces::LeastRecent).1,
            Some(Victim {
                number: 2,
                dirty: 0b0100,
                partial: 0,
            })
        );
        assert!(cache.find(1).is_some() && cache.find(2).is_none());
    }

    #[test]
    fn what_a_load_is_announced_of_stays() {
        let mut cache = cache(2, 2);
        let (first, _) = cache.insert(1, Replaces::LeastRecent);
        cache.await_load(first, true);
        cache.insert(2, Replaces::LeastRecent);
        assert!(cache.has_room(3));
        let (third, victim) = cache.insert(3, Replaces::LeastRecent);
        assert_eq!(victim.map(|victim| victim.number), Some(2));
        cache.await_load(third, true);
        // Both are awaited: the older one goes.
        assert!(!cache.has_room(4));
        assert_eq!(
            cache
                .insert(4, Replaces::LeastRecent)
                .1
                .map(|victim| victim.number),
            Some(1)
        );
    }

    #[test]
    fn what_comes_around_too_late_is_gone() {
        let mut cache = cache(4, 1664);
        let mut misses = 0;
        for round in 0..4 {
            for line in 0..2048 {
                if cache.find(line).is_none() {
                    misses += u32::from(round == 3);
                    cache.insert(line, Replaces::LeastRecent);
                }
            }
        }
        // Five lines in nearly every set of four.
        assert!((1800..2000).contains(&misses), "{misses}");
    }

    #[test]
    fn who_replaces_any_keeps_a_part() {
        // As many new lines as the cache holds leave (3/4)⁴, about e⁻¹, of those that were there.
        let mut cache = cache(4, 4096);
        for line in 0..5 * 4096 {
            cache.insert(line, Replaces::Any);
        }
        let kept = |from: u64, cache: &mut Cache| {
            (from..from + 4096)
                .filter(|&line| cache.find(line).is_some())
                .count()
        };
        let (last, before) = (kept(4 * 4096, &mut cache), kept(3 * 4096, &mut cache));
        assert!((2600..2900).contains(&last), "{last}");
        assert!(
            (0.28..0.36).contains(&(before as f64 / last as f64)),
            "{before} {last}"
        );
    }
}
