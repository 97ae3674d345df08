//! Vector clocks of many work-items: for each of them the time up to which its accesses are known.
//!
//! A launch may have a hundred thousand work-items, and as many clocks. So a clock is a tree with 32 children per node that
//! shares common parts with others: a copy costs nothing, raising a time costs one path, and joining two clocks of common
//! origin visits only the paths in which they differ. If a whole sub-group or work-group is known up to one time, as after a
//! barrier, its node is that time; if a single work-item is known, its node is that work-item.

use std::sync::Arc;

/// Bits of a work-item's number that a level takes.
pub(super) const LEVEL: u32 = 5;
/// Parts of a level.
const PARTS: usize = 1 << LEVEL;

/// Of each work-item, the time up to which its accesses are known; 0 where none is.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    root: Part,
    /// The place of the bits that choose among the root's parts.
    shift: u32,
}

#[derive(Clone, Debug, Default)]
enum Part {
    /// Nothing is known.
    #[default]
    Nobody,
    /// All are known up to this time.
    All(u32),
    /// One is known.
    One { item: u32, time: u32 },
    /// 32 work-items.
    Items(Arc<[u32; PARTS]>),
    /// 32 parts of the level below.
    Parts(Arc<Parts>),
}

#[derive(Clone, Debug)]
struct Parts {
    /// The latest time.
    latest: u32,
    parts: [Part; PARTS],
}

/// The place of a work-item among the parts of a level.
fn index(item: u32, shift: u32) -> usize {
    (item >> shift) as usize % PARTS
}

/// The bits for numbers below this, in whole levels.
pub(super) fn bits_for(numbers: u64) -> u32 {
    let bits = u64::BITS - numbers.saturating_sub(1).leading_zeros();
    bits.div_ceil(LEVEL).max(1) * LEVEL
}

impl Clock {
    /// Nothing is known of work-items; their numbers have this number of bits.
    pub(crate) fn new(bits: u32) -> Clock {
        Clock {
            root: Part::Nobody,
            shift: bits.div_ceil(LEVEL).max(1) * LEVEL - LEVEL,
        }
    }

    /// Nothing is known of the same work-items.
    pub(crate) fn emptied(&self) -> Clock {
        Clock {
            root: Part::Nobody,
            shift: self.shift,
        }
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.root, Part::Nobody)
    }

    /// The time up to which a work-item's accesses are known.
    pub(crate) fn get(&self, item: u32) -> u32 {
        let (mut part, mut shift) = (&self.root, self.shift);
        loop {
            match part {
                Part::Nobody => return 0,
                Part::All(time) => return *time,
                Part::One { item: one, time } => return if *one == item { *time } else { 0 },
                Part::Items(times) => return times[index(item, 0)],
                Part::Parts(inside) => {
                    part = &inside.parts[index(item, shift)];
                    shift -= LEVEL;
                }
            }
        }
    }

    /// Makes a work-item known up to a time, if it is not yet.
    pub(crate) fn raise(&mut self, item: u32, time: u32) {
        self.root.raise(item, 0, time, self.shift);
    }

    /// The same of all work-items whose numbers agree with this one's above the lowest `bits`: whole levels.
    pub(crate) fn raise_all(&mut self, item: u32, bits: u32, time: u32) {
        self.root.raise(item, bits, time, self.shift);
    }

    /// Adds the other's knowledge.
    pub(crate) fn join(&mut self, other: &Clock) {
        // An empty one may not know yet how many work-items there are.
        if self.is_empty() {
            self.clone_from(other);
        } else {
            self.root.join(&other.root, self.shift);
        }
    }

    /// Whether some work-item that is known here is known there up to the same time or a later one.
    pub(crate) fn meets(&self, there: &Clock) -> bool {
        self.root.meets(&there.root, self.shift)
    }

    /// The first work-item that is known up to a later time here than there, other than `except`, with that time.
    pub(crate) fn beyond(&self, there: &Clock, except: u32) -> Option<(u32, u32)> {
        self.root.beyond(&there.root, except, 0, self.shift)
    }
}

impl Part {
    fn latest(&self) -> u32 {
        match self {
            Part::Nobody => 0,
            Part::All(time) | Part::One { time, .. } => *time,
            Part::Items(times) => times.iter().fold(0, |latest, &time| latest.max(time)),
            Part::Parts(inside) => inside.latest,
        }
    }

    /// Whether it is the same without a look inside.
    fn is_same(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Nobody, Part::Nobody) => true,
            (Part::All(one), Part::All(other)) => one == other,
            (
                Part::One { item, time },
                Part::One {
                    item: other,
                    time: there,
                },
            ) => item == other && time == there,
            (Part::Items(one), Part::Items(other)) => Arc::ptr_eq(one, other),
            (Part::Parts(one), Part::Parts(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// The part for some of the work-items inside, where there is no level below.
    fn inside(&self, number: usize, shift: u32) -> Part {
        match self {
            Part::All(time) => Part::All(*time),
            Part::One { item, .. } if index(*item, shift) == number => self.clone(),
            _ => Part::Nobody,
        }
    }

    /// Takes it apart into those of the level below.
    fn open(&mut self, shift: u32) -> &mut Parts {
        if !matches!(self, Part::Parts(_)) {
            *self = Part::Parts(Arc::new(Parts {
                latest: self.latest(),
                parts: std::array::from_fn(|number| self.inside(number, shift)),
            }));
        }
        match self {
            Part::Parts(inside) => Arc::make_mut(inside),
            _ => unreachable!("it has just been taken apart"),
        }
    }

    /// The same at the lowest level.
    fn times(&mut self) -> &mut [u32; PARTS] {
        if !matches!(self, Part::Items(_)) {
            let time = |number: usize| match self {
                Part::All(time) => *time,
                Part::One { item, time } if index(*item, 0) == number => *time,
                _ => 0,
            };
            *self = Part::Items(Arc::new(std::array::from_fn(time)));
        }
        match self {
            Part::Items(times) => Arc::make_mut(times),
            _ => unreachable!("it has just been taken apart"),
        }
    }

    fn raise(&mut self, item: u32, bits: u32, time: u32, shift: u32) {
        if bits > shift {
            if self.latest() <= time {
                *self = Part::All(time);
            } else {
                self.join(&Part::All(time), shift);
            }
            return;
        }
        match self {
            Part::All(known) if *known >= time => {}
            Part::Nobody if bits == 0 => *self = Part::One { item, time },
            Part::One {
                item: one,
                time: known,
            } if bits == 0 && *one == item => *known = time.max(*known),
            _ if shift == 0 => {
                let times = self.times();
                let known = &mut times[index(item, 0)];
                *known = time.max(*known);
                if times.iter().all(|&other| other == time) {
                    *self = Part::All(time);
                }
            }
            _ => {
                let inside = self.open(shift);
                inside.latest = inside.latest.max(time);
                let part = &mut inside.parts[index(item, shift)];
                part.raise(item, bits, time, shift - LEVEL);
                let is_whole = |part: &Part| matches!(part, Part::All(other) if *other == time);
                if inside.parts.iter().all(is_whole) {
                    *self = Part::All(time);
                }
            }
        }
    }

    fn join(&mut self, other: &Part, shift: u32) {
        if self.is_same(other) {
            return;
        }
        if let Part::All(time) = other
            && self.latest() <= *time
        {
            *self = Part::All(*time);
            return;
        }
        match (&mut *self, other) {
            (_, Part::Nobody) => {}
            (Part::Nobody, _) => self.clone_from(other),
            (_, Part::One { item, time }) => self.raise(*item, 0, *time, shift),
            (&mut Part::One { item, time }, _) => {
                self.clone_from(other);
                self.raise(item, 0, time, shift);
            }
            (Part::All(time), _) if other.latest() <= *time => {}
            _ if shift == 0 => {
                let (mut theirs, times) = (other.clone(), self.times());
                let theirs = theirs.times();
                for (time, &there) in times.iter_mut().zip(theirs.iter()) {
                    *time = there.max(*time);
                }
                // Equal parts are shared from now on.
                if times == theirs {
                    self.clone_from(other);
                }
            }
            _ => {
                let inside = self.open(shift);
                inside.latest = inside.latest.max(other.latest());
                let mut all_same = true;
                for (number, part) in inside.parts.iter_mut().enumerate() {
                    let there = other.below(number, shift);
                    part.join(&there, shift - LEVEL);
                    all_same &= part.is_same(&there);
                }
                if all_same {
                    self.clone_from(other);
                }
            }
        }
    }

    fn meets(&self, there: &Part, shift: u32) -> bool {
        match (self, there) {
            (Part::Nobody, _) | (_, Part::Nobody) => false,
            (Part::One { item, time }, _) => {
                let known = Clock {
                    root: there.clone(),
                    shift,
                };
                known.get(*item) >= *time
            }
            (_, Part::All(time)) if self.latest() <= *time => true,
            _ if shift == 0 => {
                let (mut here, mut there) = (self.clone(), there.clone());
                let mut times = here.times().iter().zip(there.times().iter());
                times.any(|(&here, &there)| here > 0 && here <= there)
            }
            _ => (0..PARTS).any(|number| {
                let (here, there) = (self.below(number, shift), there.below(number, shift));
                here.meets(&there, shift - LEVEL)
            }),
        }
    }

    /// A part of the level below.
    fn below(&self, number: usize, shift: u32) -> Part {
        match self {
            Part::Parts(inside) => inside.parts[number].clone(),
            part => part.inside(number, shift),
        }
    }

    fn beyond(&self, there: &Part, except: u32, first: u32, shift: u32) -> Option<(u32, u32)> {
        if self.is_same(there) {
            return None;
        }
        match (self, there) {
            (Part::Nobody, _) => None,
            (Part::One { item, time }, _) => {
                let known = Clock {
                    root: there.clone(),
                    shift,
                };
                (*item != except && known.get(*item) < *time).then_some((*item, *time))
            }
            (_, Part::All(time)) if self.latest() <= *time => None,
            _ if shift == 0 => {
                let (mut here, mut there) = (self.clone(), there.clone());
                let mut times = (first..).zip(here.times().iter().zip(there.times().iter()));
                let found = times.find(|&(item, (here, there))| item != except && here > there);
                found.map(|(item, (&time, _))| (item, time))
            }
            _ => (0..PARTS).find_map(|number| {
                let (here, there) = (self.below(number, shift), there.below(number, shift));
                here.beyond(&there, except, first | (number as u32) << shift, shift - LEVEL)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_ir::random::splitmix64;

    const BITS: u32 = 15;

    fn from(times: &[(u32, u32)]) -> Clock {
        let mut clock = Clock::new(BITS);
        for &(item, time) in times {
            clock.raise(item, time);
        }
        clock
    }

    #[test]
    fn levels_are_whole() {
        assert_eq!(
            [1, 32, 33, 1024, 1025, 1 << 20].map(bits_for),
            [5, 5, 10, 10, 15, 20]
        );
    }

    #[test]
    fn whole_blocks_are_one_time() {
        let mut clock = from(&[(70, 3)]);
        clock.raise_all(64, 5, 5);
        assert_eq!([63, 64, 70, 95, 96].map(|item| clock.get(item)), [0, 5, 5, 5, 0]);
        clock.raise(70, 9);
        clock.raise_all(1 << 10, 10, 7);
        assert_eq!(
            [70, 71, 1023, 1024, 2047, 2048].map(|item| clock.get(item)),
            [9, 5, 0, 7, 7, 0]
        );
        for item in 0..32 {
            clock.raise(item, 4);
        }
        assert!(matches!(&clock.root, Part::Parts(inside)
            if matches!(&inside.parts[0], Part::Parts(inside) if matches!(inside.parts[0], Part::All(4)))));
        clock.raise_all(64, 5, 6);
        assert_eq!([70, 71].map(|item| clock.get(item)), [9, 6]);
    }

    #[test]
    fn the_first_beyond_is_found() {
        let known = from(&[(3, 5), (900, 2)]);
        assert_eq!(from(&[(3, 5)]).beyond(&known, 0), None);
        assert_eq!(from(&[(3, 6), (4, 1)]).beyond(&known, 0), Some((3, 6)));
        assert_eq!(from(&[(3, 6), (4, 1)]).beyond(&known, 3), Some((4, 1)));
        let mut whole = Clock::new(BITS);
        whole.raise_all(0, 10, 2);
        assert_eq!(from(&[(900, 2), (7, 1)]).beyond(&whole, 0), None);
        assert_eq!(whole.beyond(&known, 0), Some((1, 2)));
        assert_eq!(from(&[(5000, 1)]).beyond(&whole, 0), Some((5000, 1)));
    }

    /// Against plain arrays.
    #[test]
    fn random_clocks_agree_with_arrays() {
        const ITEMS: usize = 1 << 12;
        let mut drawn = 0;
        let mut below = |bound: u64| {
            drawn += 1;
            (splitmix64(drawn, 17) % bound) as u32
        };
        let mut clocks: Vec<(Clock, Vec<u32>)> = (0..6).map(|_| (Clock::new(BITS), vec![0; ITEMS])).collect();
        for _ in 0..4000 {
            let (one, other) = (below(6) as usize, below(6) as usize);
            let time = below(9) + 1;
            match below(8) {
                0..4 => {
                    let item = below(64) * if below(2) == 0 { 1 } else { 61 };
                    let (clock, times) = &mut clocks[one];
                    clock.raise(item, time);
                    times[item as usize] = times[item as usize].max(time);
                }
                4 => {
                    let bits = [5, 10][below(2) as usize];
                    let first = below(4) << bits;
                    let (clock, times) = &mut clocks[one];
                    clock.raise_all(first, bits, time);
                    for known in &mut times[first as usize..][..1 << bits] {
                        *known = time.max(*known);
                    }
                }
                5 => clocks[one] = (Clock::new(BITS), vec![0; ITEMS]),
                _ => {
                    let (from, theirs) = clocks[other].clone();
                    let (clock, times) = &mut clocks[one];
                    clock.join(&from);
                    for (known, there) in times.iter_mut().zip(theirs) {
                        *known = there.max(*known);
                    }
                }
            }
            let ((clock, times), (known, there)) = (&clocks[one], &clocks[other]);
            let probe = below(ITEMS as u64);
            assert_eq!(clock.get(probe), times[probe as usize]);
            let except = below(64);
            let beyond = times
                .iter()
                .zip(there)
                .enumerate()
                .find(|&(item, (here, there))| item as u32 != except && here > there)
                .map(|(item, (&here, _))| (item as u32, here));
            assert_eq!(clock.beyond(known, except), beyond);
            let meets = times
                .iter()
                .zip(there)
                .any(|(&here, &there)| here > 0 && here <= there);
            assert_eq!(clock.meets(known), meets);
        }
        for (clock, times) in &clocks {
            for (item, &time) in (0..).zip(times) {
                assert_eq!(clock.get(item), time);
            }
        }
    }
}
