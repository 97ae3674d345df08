//! A set-associative cache with sectors. It keeps times instead of data: when each sector arrives.

use super::lines::LineShape;
use super::port::{Cycles, Turns, pick, spread};
use crate::model::MOST_WAYS;

/// Which line makes room for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaces {
    /// The one that was not used for longest, of those that do not wait for the load that a hint announced; if all do, of these.
    LeastRecent,
    /// The same; the new one goes next, unless it is used again.
    LeastRecentAndGoesNext,
    /// Any, by a fixed sequence.
    Any,
}

/// A cache. A look-up reads one line of the host's memory: a set's tags, the order of its ways.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    sets: Vec<Set>,
    lines: Vec<Line>,
    /// When each sector's data are there; never, if it was not requested.
    ready: Vec<Cycles>,
    turns: Turns,
    ways: usize,
    sectors: usize,
    /// Look-ups and insertions so far, from which [`Replaces::Any`] chooses.
    clock: u64,
    /// Whether it was full of lines that the simulation has not seen.
    was_full: bool,
}

/// A set: which of its ways may have a line, and which goes next.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Set {
    /// Eight bits of the hash of each way's line.
    tags: [u8; MOST_WAYS as usize],
    /// The ways, four bits each, from the least recently used one on. Those without a line were never used.
    order: u64,
    /// A bit for each way whose line waits for the load that a hint announced: it goes last.
    awaited: u16,
    /// A bit for each way that has a line, and for each whose line was written.
    taken: u16,
    dirty: u16,
}

/// The state of a line that was found.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Its number; `EMPTY` if there is none.
    number: u64,
    dirty: u8,
    partial: u8,
    /// It took the place of a line that the simulation has not seen, and that was as this one is going to be: where this one is
    /// written, that one was.
    owes: bool,
    /// The first core that requested it, if that is recorded; `NO_CORE` if none did.
    first_asker: u32,
}

/// Where a cache looks for a line: as good for any other of its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    number: u64,
    set: usize,
    tag: u8,
}

/// A place in a cache, as long as nothing else is put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

impl Slot {
    /// Its number among all of the cache.
    pub(super) fn number(self) -> usize {
        self.0
    }
}

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
const NO_CORE: u32 = u32::MAX;

/// The first asker of lines from before.
const BEFORE: u32 = u32::MAX - 1;

/// One in every byte, and in every half of one.
const BYTES: u64 = u64::MAX / 0xff;
const HALVES: u64 = u64::MAX / 0xf;

impl Line {
    const fn new(number: u64) -> Line {
        Line {
            number,
            dirty: 0,
            partial: 0,
            owes: false,
            first_asker: NO_CORE,
        }
    }
}

impl Set {
    /// No line was used: the first way goes first.
    const NEW: Set = Set {
        tags: [0; MOST_WAYS as usize],
        order: 0xfedc_ba98_7654_3210,
        awaited: 0,
        taken: 0,
        dirty: 0,
    };

    /// A bit for each way with this tag, and for some others behind such a one.
    fn like(&self, tag: u8) -> u16 {
        let half = |tags: &[u8]| {
            let tags = tags.iter().rev().fold(0, |all, &tag| all << 8 | u64::from(tag));
            // The lowest zero byte is found, despite borrows into those above it.
            let other = tags ^ (u64::from(tag) * BYTES);
            let zero = other.wrapping_sub(BYTES) & !other & BYTES << 7;
            // The top bits of eight bytes side by side.
            ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u16
        };
        let (low, high) = self.tags.split_at(8);
        half(low) | half(high) << 8
    }

    /// The way that goes next, of those that are not awaited if there are any.
    fn next_to_go(&self, ways: usize) -> usize {
        let mut order = self.order;
        for _ in 0..ways {
            let way = (order & 0xf) as usize;
            if self.awaited >> way & 1 == 0 {
                return way;
            }
            order >>= 4;
        }
        (self.order & 0xf) as usize
    }

    /// A way is used.
    fn touch(&mut self, way: usize, ways: usize) {
        let other = self.order ^ (way as u64 * HALVES);
        let zero = other.wrapping_sub(HALVES) & !other & HALVES << 3;
        // Its place, in bits.
        let at = zero.trailing_zeros() & !3;
        let last = 4 * (ways as u32 - 1);
        if at < last {
            let before = self.order & ((1 << at) - 1);
            let behind = self.order >> at >> 4 << at & ((1 << last) - 1);
            let beyond = self.order & !(1u64 << last << 3 << 1).wrapping_sub(1);
            self.order = before | behind | (way as u64) << last | beyond;
        }
    }
}

impl Cache {
    /// A cache of about `bytes`: at least one set, of [`MOST_WAYS`] at most.
    pub(super) fn new(bytes: f64, ways: u32, line: u64, shape: LineShape) -> Cache {
        let ways = ways.clamp(1, MOST_WAYS) as usize;
        let sets = ((bytes / line as f64 / ways as f64).round() as usize).max(1);
        Cache {
            sets: vec![Set::NEW; sets],
            lines: vec![Line::new(EMPTY); sets * ways],
            ready: vec![Cycles::INFINITY; sets * ways * shape.sectors()],
            turns: Turns::new(sets, 0),
            ways,
            sectors: shape.sectors(),
            clock: 0,
            was_full: false,
        }
    }

    /// The same, which others had filled with lines of the same kinds: each line that comes makes one of them go.
    pub(super) fn filled_before(mut self) -> Cache {
        self.was_full = true;
        self
    }

    /// Where to look for a line. Consecutive lines lie in different sets, in an order that a hash changes from one round
    /// through the sets to the next.
    pub(super) fn key(&self, number: u64, hash: u64) -> Key {
        Key {
            number,
            set: self.turns.place(number),
            tag: (hash >> 16) as u8,
        }
    }

    /// Touches the data of a look-up or an insertion, without changing anything: see [`MemorySystem::at_hand`].
    ///
    /// [`MemorySystem::at_hand`]: super::MemorySystem::at_hand
    pub(super) fn glance(&self, key: Key) -> u64 {
        self.sets[key.set].order
    }

    /// The same of the line's own place, or the one that it would get.
    pub(super) fn glance_at_place(&self, key: Key) -> u64 {
        let set = &self.sets[key.set];
        let way = match set.like(key.tag) {
            0 => (set.order & 0xf) as usize,
            like => like.trailing_zeros() as usize,
        };
        let slot = key.set * self.ways + way.min(self.ways - 1);
        self.lines[slot].number ^ self.ready[slot * self.sectors].to_bits()
    }

    /// How many lines it has room for.
    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Forgets every line. Nothing is written back: only clean caches are emptied.
    pub(super) fn empty(&mut self) {
        self.sets.fill(Set::NEW);
        self.lines.fill(Line::new(EMPTY));
    }

    /// The line's place, if it has one; it counts as used.
    pub(super) fn find(&mut self, key: Key) -> Option<Slot> {
        let first = key.set * self.ways;
        let lines = &self.lines[first..first + self.ways];
        let set = &mut self.sets[key.set];
        let mut like = set.like(key.tag);
        while like != 0 {
            let way = like.trailing_zeros() as usize;
            if lines.get(way)?.number == key.number {
                set.touch(way, self.ways);
                self.clock += 1;
                return Some(Slot(first + way));
            }
            like &= like - 1;
        }
        None
    }

    /// The line has no place any more, and its place goes next. Only clean caches drop lines so.
    pub(super) fn forget(&mut self, key: Key) {
        let Some(Slot(slot)) = self.find(key) else { return };
        let (set, way) = (&mut self.sets[key.set], slot % self.ways);
        self.lines[slot] = Line::new(EMPTY);
        set.taken &= !(1 << way);
        set.awaited &= !(1 << way);
        // It was just used, so its place is the last one: the others move on.
        for _ in 1..self.ways {
            let next = (set.order & 0xf) as usize;
            set.touch(next, self.ways);
        }
    }

    /// Makes a place for a line that has none, without any sector; gives the line that had to go if it was written.
    pub(super) fn insert(&mut self, key: Key, replaces: Replaces) -> (Slot, Option<Victim>) {
        self.clock += 1;
        let first = key.set * self.ways;
        let set = &mut self.sets[key.set];
        let mut way = set.next_to_go(self.ways);
        if replaces == Replaces::Any && set.taken >> way & 1 == 1 {
            way = pick(spread(self.clock), self.ways);
        }
        let (bit, slot) = (1 << way, first + way);
        let was_taken = set.taken & bit != 0;
        let is_dirty = was_taken && set.dirty & bit != 0;
        if replaces != Replaces::LeastRecentAndGoesNext {
            set.touch(way, self.ways);
        }
        set.tags[way] = key.tag;
        set.awaited &= !bit;
        set.dirty &= !bit;
        set.taken |= bit;
        let victim = is_dirty.then(|| self.victim(slot));
        self.lines[slot] = Line {
            owes: self.was_full && !was_taken,
            ..Line::new(key.number)
        };
        self.ready[slot * self.sectors..][..self.sectors].fill(Cycles::INFINITY);
        (Slot(slot), victim)
    }

    fn victim(&self, slot: usize) -> Victim {
        let old = &self.lines[slot];
        Victim {
            number: old.number,
            dirty: old.dirty,
            partial: old.partial,
        }
    }

    /// The line's place; one is made where it has none, unless every line that could go waits for a load.
    pub(super) fn find_or_fit(&mut self, key: Key) -> Option<(Slot, Option<Victim>)> {
        match self.find(key) {
            Some(slot) => Some((slot, None)),
            None if u32::from(self.sets[key.set].awaited) == (1 << self.ways) - 1 => None,
            None => Some(self.insert(key, Replaces::LeastRecent)),
        }
    }

    /// A hint has announced a load of a line, or it has been loaded: whether a hint had announced it.
    pub(super) fn await_load(&mut self, slot: Slot, is_awaited: bool) -> bool {
        let bit = 1 << (slot.0 % self.ways);
        let awaited = &mut self.sets[slot.0 / self.ways].awaited;
        let was_awaited = *awaited & bit != 0;
        *awaited = *awaited & !bit | if is_awaited { bit } else { 0 };
        was_awaited
    }

    /// Every line that is here was asked for by a core that is none of those which ask from now on.
    pub(super) fn asked_for_before(&mut self) {
        self.lines.iter_mut().for_each(|line| line.first_asker = BEFORE);
    }

    /// The first core that asked for a line since it is here; this one, if none did.
    pub(super) fn first_asker(&mut self, slot: Slot, core: usize) -> usize {
        let first = &mut self.lines[slot.0].first_asker;
        if *first == NO_CORE {
            *first = core as u32;
        }
        *first as usize
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

    /// The sectors of a line that were written since it came.
    pub(super) fn dirty(&self, slot: Slot) -> u8 {
        self.lines[slot.0].dirty
    }

    /// Sectors were written and must be written back when their line goes; of `partial` ones a part was. Gives what the line that
    /// was here before has to write back for it, where it was full of such lines.
    pub(super) fn mark_dirty(&mut self, slot: Slot, sectors: u8, partial: u8) -> Option<Victim> {
        self.sets[slot.0 / self.ways].dirty |= u16::from(sectors != 0) << (slot.0 % self.ways);
        let line = &mut self.lines[slot.0];
        let new = sectors & !line.dirty;
        let owed = (line.owes && new != 0).then_some(Victim {
            number: line.number,
            dirty: new,
            partial: partial & new,
        });
        line.dirty |= sectors;
        line.partial = line.partial & !(sectors & !partial) | partial;
        owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Cache {
        fn of(&self, number: u64) -> Key {
            self.key(number, spread(number))
        }

        fn find_line(&mut self, number: u64) -> Option<Slot> {
            self.find(self.of(number))
        }

        fn insert_line(&mut self, number: u64, replaces: Replaces) -> (Slot, Option<Victim>) {
            self.insert(self.of(number), replaces)
        }
    }

    fn cache(ways: u32, lines: u64) -> Cache {
        Cache::new((lines * 128) as f64, ways, 128, LineShape::new(128, 32))
    }

    #[test]
    fn sectors_come_one_by_one() {
        let mut cache = cache(4, 16);
        assert_eq!(cache.find_line(7), None);
        let (slot, victim) = cache.insert_line(7, Replaces::LeastRecent);
        assert_eq!(victim, None);
        assert_eq!(cache.present(slot, 0b1111), (0, 0.0));
        cache.fill(slot, 0b0011, 50.0);
        cache.fill(slot, 0b0100, 90.0);
        assert_eq!(cache.find_line(7), Some(slot));
        assert_eq!(cache.present(slot, 0b1001), (0b0001, 50.0));
        assert_eq!(cache.present(slot, 0b1111), (0b0111, 90.0));
    }

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut cache = cache(2, 2);
        cache.insert_line(1, Replaces::LeastRecent);
        let (slot, _) = cache.insert_line(2, Replaces::LeastRecent);
        cache.mark_dirty(slot, 0b0100, 0);
        cache.find_line(1);
        assert_eq!(
            cache.insert_line(3, Replaces::LeastRecent).1,
            Some(Victim {
                number: 2,
                dirty: 0b0100,
                partial: 0,
            })
        );
        assert!(cache.find_line(1).is_some() && cache.find_line(2).is_none());
    }

    #[test]
    fn what_is_streamed_takes_one_place_and_what_is_forgotten_gives_its_own_back() {
        let mut cache = cache(4, 4);
        for line in 1..=3 {
            cache.insert_line(line, Replaces::LeastRecent);
        }
        for line in 10..20 {
            cache.insert_line(line, Replaces::LeastRecentAndGoesNext);
        }
        assert!((1..=3).all(|line| cache.find_line(line).is_some()) && cache.find_line(19).is_some());
        cache.forget(cache.of(2));
        assert!(cache.find_line(2).is_none());
        // Its place is taken, and nothing else goes.
        cache.insert_line(30, Replaces::LeastRecent);
        assert!(
            [1, 3, 19, 30]
                .into_iter()
                .all(|line| cache.find_line(line).is_some())
        );
    }

    #[test]
    fn what_a_load_is_announced_of_stays() {
        let mut cache = cache(2, 2);
        let (first, _) = cache.insert_line(1, Replaces::LeastRecent);
        cache.await_load(first, true);
        cache.insert_line(2, Replaces::LeastRecent);
        let (third, _) = cache.find_or_fit(cache.of(3)).unwrap();
        assert!(cache.find_line(2).is_none() && cache.find_line(1).is_some());
        assert!(!cache.await_load(third, true));
        // Both are awaited: the one that was used longer ago goes.
        cache.find_line(3);
        assert!(cache.find_or_fit(cache.of(4)).is_none());
        cache.insert_line(4, Replaces::LeastRecent);
        assert!(cache.find_line(1).is_none() && cache.await_load(third, false));
    }

    #[test]
    fn what_comes_around_too_late_is_gone() {
        let mut cache = cache(4, 1664);
        let mut misses = 0;
        for round in 0..4 {
            for line in 0..2048 {
                if cache.find_line(line).is_none() {
                    misses += u32::from(round == 3);
                    cache.insert_line(line, Replaces::LeastRecent);
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
            cache.insert_line(line, Replaces::Any);
        }
        let kept = |from: u64, cache: &mut Cache| {
            (from..from + 4096)
                .filter(|&line| cache.find_line(line).is_some())
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
