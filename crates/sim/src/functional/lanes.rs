//! Lanes, masks and registers: how a sub-group's values are held.

/// Most work-items of a sub-group. Smaller sub-groups use the low lanes.
pub const LANES: usize = 32;

/// One value for each lane, as [`eval`](crate::ir::eval) holds values: zero-extended bits.
pub type Lanes = [u64; LANES];

/// A set of lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask(pub u32);

/// Where a value is kept in [`Registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// The values of a sub-group, by slot. Lanes outside the mask of an operation may be overwritten with
/// anything, unless the operation says that it keeps them.
#[derive(Clone, Debug, PartialEq)]
pub struct Registers(Vec<Lanes>);

impl Mask {
    /// No lane.
    pub const NONE: Mask = Mask(0);

    /// The lanes below `count` (at most [`LANES`]).
    pub fn first(count: u32) -> Mask {
        match count {
            0 => Mask(0),
            count => Mask(u32::MAX >> (32 - count.min(32))),
        }
    }

    /// Whether a lane is in.
    pub fn contains(self, lane: usize) -> bool {
        self.0 >> lane & 1 != 0
    }

    /// Whether there is no lane.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of lanes.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// In both.
    #[must_use]
    pub fn and(self, other: Mask) -> Mask {
        Mask(self.0 & other.0)
    }

    /// In either.
    #[must_use]
    pub fn or(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }

    /// In this one alone.
    #[must_use]
    pub fn without(self, other: Mask) -> Mask {
        Mask(self.0 & !other.0)
    }

    /// The lanes, ascending.
    pub fn lanes(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (lane < LANES).then_some(lane)
        })
    }
}

impl Registers {
    /// `count` slots, all zero.
    pub fn new(count: u32) -> Registers {
        Registers(vec![[0; LANES]; count as usize])
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> u64 {
        (self.0.len() * size_of::<Lanes>()) as u64
    }

    /// The lanes of a slot.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Lanes {
        &self.0[slot.0 as usize]
    }

    /// The lanes of a slot, to be changed.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> &mut Lanes {
        &mut self.0[slot.0 as usize]
    }

    /// Gives every lane the same bits.
    pub fn broadcast(&mut self, slot: Slot, bits: u64) {
        self.0[slot.0 as usize] = [bits; LANES];
    }

    /// Restores the old values of the lanes of `mask`.
    pub(super) fn restore(&mut self, slot: Slot, before: &Lanes, mask: Mask) {
        merge(self.get_mut(slot), before, mask);
    }

    /// The lanes of `within` where a `Bool` is true.
    pub fn truth(&self, slot: Slot, within: Mask) -> Mask {
        let lanes = self.get(slot);
        let (all, any) = lanes
            .iter()
            .fold((1, 0), |(all, any), &truth| (all & truth, any | truth));
        if all & 1 == 1 {
            return within;
        }
        if any & 1 == 0 {
            return Mask::NONE;
        }
        let bits = lanes
            .iter()
            .enumerate()
            .fold(0, |bits, (lane, &truth)| bits | (truth as u32 & 1) << lane);
        Mask(bits).and(within)
    }

    /// Each first slot takes the old value of each second one, on the lanes of `mask`; its other lanes keep theirs.
    pub fn assign(&mut self, moves: &[(Slot, Slot)], mask: Mask) {
        let overwritten = |index: usize| moves[..index].iter().any(|&(to, _)| to == moves[index].1);
        if (1..moves.len()).any(overwritten) {
            let before: Vec<Lanes> = moves.iter().map(|&(_, from)| *self.get(from)).collect();
            for (&(to, _), from) in moves.iter().zip(&before) {
                merge(self.get_mut(to), from, mask);
            }
            return;
        }
        for &(to, from) in moves {
            if mask == Mask::first(LANES as u32) {
                let from = from.0 as usize;
                self.0.copy_within(from..=from, to.0 as usize);
            } else {
                let from = *self.get(from);
                merge(self.get_mut(to), &from, mask);
            }
        }
    }
}

/// Takes over the lanes of `mask`.
fn merge(to: &mut Lanes, from: &Lanes, mask: Mask) {
    if mask == Mask::first(LANES as u32) {
        *to = *from;
        return;
    }
    for lane in mask.lanes() {
        to[lane] = from[lane];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_every_count() {
        for count in 0..=32 {
            let mask = Mask::first(count);
            assert_eq!(mask.count(), count);
            assert_eq!(mask.lanes().count() as u32, count);
        }
        let lanes: Vec<usize> = Mask(0x8000_0011).lanes().collect();
        assert_eq!(lanes, [0, 4, 31]);
    }

    #[test]
    fn assignments_are_simultaneous_and_keep_other_lanes() {
        let mut registers = Registers::new(2);
        registers.broadcast(Slot(0), 10);
        registers.broadcast(Slot(1), 20);
        registers.assign(&[(Slot(0), Slot(1)), (Slot(1), Slot(0))], Mask(0b10));
        assert_eq!(registers.get(Slot(0))[..3], [10, 20, 10]);
        assert_eq!(registers.get(Slot(1))[..3], [20, 10, 20]);
    }
}
