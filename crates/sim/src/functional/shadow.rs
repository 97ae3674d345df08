//! Who touched which piece of memory, as far as it still matters: how races are found.
//!
//! Memory is watched in cells, as large as the smallest access of the kernel. A cell remembers its accesses until later ones
//! imply them: whatever follows the later one follows the earlier one, too ([`Now::stands_for`]). Nearly always one write and
//! one read are left. Two of each are stored inline; further ones, where many reads or atomic operations meet, are kept in sets
//! by their operation. The order of accesses is defined in [`super::order`]; accesses of work-groups that cannot see each other
//! are in [`super::launch_shadow`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::clock::Clock;
use crate::ir::{MemoryScope, Place};

/// How strong an access is, in the sense of PTX: plain, or atomic for a scope and in a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strength(u8);

impl Strength {
    /// No atomic operation's.
    pub(crate) const PLAIN: Strength = Strength(0);
    const STRONG: u8 = 1 << 7;

    /// An atomic operation's or a volatile access's, with its size in bytes.
    pub(crate) fn strong(scope: MemoryScope, bytes: u32) -> Strength {
        Strength(Strength::STRONG | (scope as u8) << 4 | bytes.trailing_zeros() as u8)
    }

    pub(crate) fn is_plain(self) -> bool {
        self == Strength::PLAIN
    }

    /// The size of the access, as a power of two.
    pub(crate) fn size(self) -> u8 {
        self.0 & 0xf
    }

    /// Whether it holds between work-groups.
    pub(crate) fn is_of_device(self) -> bool {
        !self.is_plain() && self.has(MemoryScope::Device)
    }

    fn has(self, scope: MemoryScope) -> bool {
        self.0 >> 4 & 3 >= scope as u8
    }

    /// Whether accesses of these two strengths, by work-items with this common scope, do not race in any order: both are
    /// strong, of one size, and each scope includes the other work-item.
    pub(crate) fn is_morally_strong(self, other: Strength, common: MemoryScope) -> bool {
        !self.is_plain()
            && !other.is_plain()
            && self.size() == other.size()
            && self.has(common)
            && other.has(common)
    }
}

/// One access: by which work-item, when, from which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    /// The work-item's number: in its work-group, or in the launch where work-groups may see each other.
    pub item: u32,
    /// The time of its work-group.
    pub time: u32,
    pub place: Place,
    pub strength: Strength,
    pub wrote: bool,
}

/// An access now, with its work-item's knowledge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now<'c> {
    pub touch: Touch,
    /// The time of the last barrier of its work-group: its work-items' events until then are known.
    pub since: u32,
    /// Further knowledge; none if barriers alone order accesses.
    pub known: Option<&'c Clock>,
    /// Bits of work-items' numbers that tell those of one work-group apart.
    pub group_bits: u32,
    /// Work-items of a sub-group.
    pub sub_group: u32,
}

impl Now<'_> {
    /// Whether it is ordered after an earlier access.
    #[inline]
    pub(crate) fn sees(&self, with: &Touch) -> bool {
        with.item == self.touch.item
            || with.time <= self.since && self.is_of_group(with.item)
            || self.known.is_some_and(|known| known.get(with.item) >= with.time)
    }

    fn is_of_group(&self, item: u32) -> bool {
        u64::from(item ^ self.touch.item) >> self.group_bits == 0
    }

    /// Whether the strength of both keeps them from racing.
    pub(crate) fn is_strong_with(&self, item: u32, strength: Strength) -> bool {
        let number = |item: u32| (u64::from(item) & ((1 << self.group_bits) - 1)) as u32 / self.sub_group;
        let common = match self.is_of_group(item) {
            false => MemoryScope::Device,
            true if number(item) != number(self.touch.item) => MemoryScope::WorkGroup,
            true => MemoryScope::SubGroup,
        };
        self.touch.strength.is_morally_strong(strength, common)
    }

    fn races(&self, with: &Touch) -> bool {
        !self.sees(with) && !self.is_strong_with(with.item, with.strength)
    }

    /// The earlier access, if the two race and nothing else allows it.
    #[inline]
    pub(crate) fn conflict(
        &self,
        with: &Touch,
        is_allowed: &mut impl FnMut(&Touch) -> bool,
    ) -> Option<Touch> {
        let matters = with.wrote || self.touch.wrote;
        (matters && self.races(with) && !is_allowed(with)).then_some(*with)
    }

    /// Whether who races with the earlier access from now on races with this one, too, so that the earlier one need
    /// not be remembered.
    pub(crate) fn stands_for(&self, with: &Touch) -> bool {
        if !self.sees(with) {
            return false;
        }
        // A strong access does not race where a plain access races. After a barrier, no access of the work-group does if no
        // other work-group is involved.
        let is_weaker = with.strength.is_plain() && !self.touch.strength.is_plain();
        !is_weaker || self.known.is_none() && with.time <= self.since
    }
}

/// The record of a cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    writers: [Option<Touch>; 2],
    readers: [Option<Touch>; 2],
    /// Further ones.
    more: Option<Box<Sets>>,
    /// The work-group's accesses to it so far: see [`did`].
    pub did: u8,
    /// The value of its last plain write.
    pub bits: u64,
}

/// A work-group's accesses to a cell, as bits for other work-groups.
pub(super) mod did {
    use super::Touch;

    /// Read it; or only by atomic operations that are not for the device.
    pub(crate) const READ: u8 = 1;
    /// Wrote it, the same.
    pub(crate) const WROTE: u8 = 2;
    /// Atomic operations for the device read it.
    pub(crate) const STRONG_READ: u8 = 4;
    /// Atomic operations for the device wrote it.
    pub(crate) const STRONG_WROTE: u8 = 8;
    /// They were of 4 bytes.
    pub(crate) const OF_4: u8 = 16;
    /// They were of 8 bytes.
    pub(crate) const OF_8: u8 = 32;
    /// Of shared memory: its last write was an asynchronous copy's.
    pub(crate) const COPIED: u8 = 64;

    /// That of one access.
    #[inline]
    pub(crate) fn of(touch: Touch) -> u8 {
        if !touch.strength.is_of_device() {
            return if touch.wrote { WROTE } else { READ };
        }
        let size = if touch.strength.size() == 3 { OF_8 } else { OF_4 };
        size | if touch.wrote { STRONG_WROTE } else { STRONG_READ }
    }
}

/// Further accesses to a cell.
#[derive(Clone, Debug, Default)]
struct Sets(Vec<Set>);

/// Accesses from one operation to a cell.
#[derive(Clone, Debug)]
struct Set {
    place: Place,
    strength: Strength,
    wrote: bool,
    items: Items,
}

/// Work-items with times.
#[derive(Clone, Debug)]
enum Items {
    Few(Vec<(u32, u32)>),
    Many(Clock),
}

/// Most work-items of a list.
const FEW: usize = 24;

impl Set {
    fn add(&mut self, touch: Touch, nobody: &Clock) {
        let few = match &mut self.items {
            Items::Many(clock) => return clock.raise(touch.item, touch.time),
            Items::Few(few) => few,
        };
        match few.iter().position(|(item, _)| *item == touch.item) {
            Some(at) => few[at].1 = touch.time,
            None if few.len() < FEW => few.push((touch.item, touch.time)),
            None => {
                let mut clock = nobody.emptied();
                for &(item, time) in few.iter() {
                    clock.raise(item, time);
                }
                clock.raise(touch.item, touch.time);
                self.items = Items::Many(clock);
            }
        }
    }

    /// Some access of it that is not ordered before now.
    fn unordered(&self, now: &Now<'_>) -> Option<Touch> {
        let touch = |(item, time): (u32, u32)| Touch {
            item,
            time,
            place: self.place,
            strength: self.strength,
            wrote: self.wrote,
        };
        match (&self.items, now.known) {
            (Items::Few(few), _) => few.iter().copied().map(touch).find(|with| !now.sees(with)),
            (Items::Many(clock), Some(known)) => clock.beyond(known, now.touch.item).map(touch),
            // There are sets only where there are clocks.
            (Items::Many(_), None) => None,
        }
    }

    fn conflict(&self, now: &Now<'_>, is_allowed: &mut impl FnMut(&Touch) -> bool) -> Option<Touch> {
        // Two device-scope accesses do not race.
        if self.strength.is_of_device() && now.is_strong_with(now.touch.item ^ u32::MAX, self.strength) {
            return None;
        }
        let matters = self.wrote || now.touch.wrote;
        let with = matters.then(|| self.unordered(now)).flatten()?;
        now.conflict(&with, is_allowed)
    }

    /// Bytes that one more work-item takes at most.
    const ITEM: u64 = 64;
}

impl Cell {
    /// One access so far.
    pub(crate) fn of(touch: Touch) -> Cell {
        let mut cell = Cell::default();
        match touch.wrote {
            true => cell.writers[0] = Some(touch),
            false => cell.readers[0] = Some(touch),
        }
        cell
    }

    /// The last write; none if there was none.
    pub(crate) fn writer(&self) -> Option<Touch> {
        self.writers[0]
    }

    /// The first read since a barrier.
    pub(crate) fn reader(&self) -> Option<Touch> {
        self.readers[0]
    }

    /// An earlier access that the present one races with, and that nothing else allows.
    #[inline]
    pub(crate) fn conflict(
        &self,
        now: &Now<'_>,
        is_allowed: &mut impl FnMut(&Touch) -> bool,
    ) -> Option<Touch> {
        let writers = self.writers.iter().flatten();
        let readers = self.readers.iter().flatten().filter(|_| now.touch.wrote);
        for with in writers.chain(readers) {
            if let Some(with) = now.conflict(with, is_allowed) {
                return Some(with);
            }
        }
        let mut sets = self.more.iter().flat_map(|sets| sets.0.iter());
        sets.find_map(|set| set.conflict(now, is_allowed))
    }

    /// Records an access. Gives the additional bytes that takes beside the cell itself, nearly always 0; if `may_grow` is
    /// false, it takes none, and accesses may be forgotten. `same` says that it is a write with the same bits as unordered
    /// others.
    #[inline]
    pub(crate) fn record(&mut self, now: &Now<'_>, same: bool, may_grow: bool) -> u64 {
        let touch = now.touch;
        if !touch.wrote {
            let overflow = put(&mut self.readers, now);
            return overflow.map_or(0, |touch| self.add_to_set(now, touch, may_grow));
        }
        // Everything came before a plain write that does not race.
        if touch.strength.is_plain() && !same {
            self.writers = [Some(touch), None];
            self.readers = [None; 2];
            self.more = None;
            return 0;
        }
        for reader in &mut self.readers {
            if reader.is_some_and(|reader| now.stands_for(&reader)) {
                *reader = None;
            }
        }
        if self.readers[0].is_none() {
            self.readers.swap(0, 1);
        }
        // The last write stands first.
        let before = self.writers[0];
        self.writers[0] = Some(touch);
        match (before, self.writers[1]) {
            (Some(before), Some(other)) if !now.stands_for(&before) && !now.stands_for(&other) => {
                return self.add_to_set(now, before, may_grow);
            }
            (Some(before), _) if !now.stands_for(&before) => self.writers[1] = Some(before),
            (_, Some(other)) if now.stands_for(&other) => self.writers[1] = None,
            _ => {}
        }
        0
    }

    /// Where barriers alone order, two of the work-items are enough: an access that races with a third races with one of them.
    #[cold]
    fn add_to_set(&mut self, now: &Now<'_>, touch: Touch, may_grow: bool) -> u64 {
        let Some(known) = now.known else { return 0 };
        let Sets(sets) = &mut **self.more.get_or_insert_default();
        let is_its = |set: &&mut Set| {
            (set.place, set.strength, set.wrote) == (touch.place, touch.strength, touch.wrote)
        };
        match sets.iter_mut().find(is_its) {
            Some(set) if may_grow => set.add(touch, known),
            None if may_grow => sets.push(Set {
                place: touch.place,
                strength: touch.strength,
                wrote: touch.wrote,
                items: Items::Few(vec![(touch.item, touch.time)]),
            }),
            _ => return 0,
        }
        Set::ITEM
    }
}

/// Records a read in one of two places. Gives a read without a place.
#[inline]
fn put(places: &mut [Option<Touch>; 2], now: &Now<'_>) -> Option<Touch> {
    let touch = now.touch;
    let [first, second] = places;
    match first {
        None => *first = Some(touch),
        // The first of several reads is the one to be told of.
        Some(there) if there.item == touch.item && there.time == touch.time => {
            if touch.strength.is_plain() {
                there.strength = touch.strength;
            }
        }
        Some(there) if now.stands_for(there) => *first = Some(touch),
        _ => match second {
            Some(there) if !now.stands_for(there) => return Some(touch),
            _ => *second = Some(touch),
        },
    }
    None
}

/// A map from numbers that are spread well by one multiplication.
#[doc(hidden)]
pub type FastMap<V> = HashMap<u64, V, BuildHasherDefault<Spread>>;

/// Fibonacci hashing.
#[derive(Default)]
#[doc(hidden)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio; the rotation brings the good high bits to the low end.
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Kernel;

    /// An access by a work-item of a group of up to 32, with a barrier before its `since`.
    fn now(item: u32, since: u32, wrote: bool, strength: Strength) -> Now<'static> {
        Now {
            touch: Touch {
                item,
                time: since + 1,
                place: Kernel::NOWHERE,
                strength,
                wrote,
            },
            since,
            known: None,
            group_bits: 5,
            sub_group: 32,
        }
    }

    /// The access that it races with, if any; else it is recorded.
    fn touch(cell: &mut Cell, now: Now<'_>) -> Result<(), Touch> {
        match cell.conflict(&now, &mut |_| false) {
            Some(with) => Err(with),
            None => {
                cell.record(&now, false, true);
                Ok(())
            }
        }
    }

    fn read(item: u32, since: u32) -> Now<'static> {
        now(item, since, false, Strength::PLAIN)
    }

    fn write(item: u32, since: u32) -> Now<'static> {
        now(item, since, true, Strength::PLAIN)
    }

    fn atomic(item: u32, since: u32) -> Now<'static> {
        now(item, since, true, Strength::strong(MemoryScope::Device, 4))
    }

    #[test]
    fn a_cell_stays_small() {
        assert_eq!(size_of::<Option<Touch>>(), 16);
        assert!(size_of::<Cell>() <= 88);
    }

    #[test]
    fn a_barrier_orders_and_nothing_else_does() {
        let mut cell = Cell::default();
        assert!(touch(&mut cell, write(1, 0)).is_ok());
        assert!(
            touch(&mut cell, read(1, 0)).is_ok(),
            "a work-item does not race with itself"
        );
        let with = touch(&mut cell, read(2, 0)).expect_err("read after another's write");
        assert_eq!((with.item, with.wrote), (1, true));
        assert!(touch(&mut cell, read(2, 1)).is_ok(), "a barrier lies between");
        assert!(touch(&mut cell, read(2, 1)).is_ok());
        assert!(touch(&mut cell, read(3, 1)).is_ok(), "reads do not race");
        assert!(touch(&mut cell, read(4, 1)).is_ok(), "nor do three");
        let with = touch(&mut cell, write(2, 1)).expect_err("another read it too");
        assert_eq!((with.item, with.wrote), (3, false));
        assert!(touch(&mut cell, write(2, 2)).is_ok());
        assert!(touch(&mut cell, write(3, 2)).is_err());
    }

    #[test]
    fn atomic_accesses_race_with_plain_ones_only() {
        let mut cell = Cell::default();
        for item in [1, 2, 3] {
            assert!(touch(&mut cell, atomic(item, 0)).is_ok());
        }
        for item in [1, 2, 3] {
            assert!(touch(&mut cell, read(item, 0)).is_err(), "there are others");
        }
        assert!(touch(&mut cell, read(4, 1)).is_ok());
        let eight = now(1, 1, true, Strength::strong(MemoryScope::Device, 8));
        assert!(touch(&mut cell, atomic(4, 1)).is_ok());
        assert!(touch(&mut cell, eight).is_err(), "of another size");
    }

    #[test]
    fn what_a_work_item_wrote_plainly_is_not_forgotten_for_its_atomic_operation() {
        let mut cell = Cell::default();
        assert!(touch(&mut cell, write(1, 0)).is_ok());
        assert!(touch(&mut cell, atomic(1, 0)).is_ok());
        assert_eq!(touch(&mut cell, atomic(2, 0)).map_err(|with| with.item), Err(1));
        assert!(touch(&mut cell, atomic(2, 1)).is_ok());
        assert!(touch(&mut cell, atomic(3, 1)).is_ok());
    }

    #[test]
    fn scopes_have_to_reach_each_other() {
        let scoped = |item, scope| Now {
            sub_group: 8,
            ..now(item, 0, true, Strength::strong(scope, 4))
        };
        let pairs = [
            (1, MemoryScope::SubGroup, true),
            (9, MemoryScope::SubGroup, false),
            (9, MemoryScope::WorkGroup, true),
            (40, MemoryScope::WorkGroup, false),
            (40, MemoryScope::Device, true),
        ];
        for (item, scope, is_right) in pairs {
            let mut cell = Cell::default();
            assert!(touch(&mut cell, scoped(2, scope)).is_ok());
            let wide = scoped(item, MemoryScope::Device);
            assert_eq!(touch(&mut cell, wide).is_ok(), is_right, "{item} {scope:?}");
        }
    }

    #[test]
    fn many_readers_are_all_remembered_where_clocks_order_them() {
        let mut cell = Cell::default();
        let nothing = Clock::new(10);
        let reader = |item| Now {
            known: Some(&nothing),
            ..read(item, 0)
        };
        for item in 0..100 {
            assert!(touch(&mut cell, reader(item)).is_ok());
        }
        let mut known = Clock::new(10);
        for item in 0..99 {
            known.raise(item, 1);
        }
        let after = |known| Now {
            known: Some(known),
            ..write(200, 0)
        };
        let with = touch(&mut cell, after(&known)).expect_err("one is missing");
        assert_eq!(with.item, 99);
        let mut all = known.clone();
        all.raise(99, 1);
        assert!(touch(&mut cell, after(&all)).is_ok());
        assert!(cell.more.is_none() && cell.reader().is_none());
    }
}
