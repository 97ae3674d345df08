//! Lanes, masks and registers: how a sub-group's values are held.

/// Most work-items of a sub-group. Smaller sub-groups use the low lanes.
pub const LANES: usize = 64;

/// One value for each lane, as [`eval`](crate::ir::eval) holds values: zero-extended bits. Values beyond the
/// sub-group's size have no meaning.
pub type Lanes = [u64; LANES];

/// Lanes that are computed side by side: registers hold a multiple of them, and the compiler makes vectors of their loops.
const AT_ONCE: usize = 8;

/// A set of lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask(pub u64);

/// Where a value is kept in [`Registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// The values of a sub-group, by slot. Lanes outside the mask of an operation may be overwritten with
/// anything, unless the operation says that it keeps them.
#[derive(Clone, Debug, PartialEq)]
pub struct Registers {
    values: Vec<[u64; AT_ONCE]>,
    /// How many of them a slot takes.
    of_slot: usize,
}

impl Mask {
    /// No lane.
    pub const NONE: Mask = Mask(0);

    /// The lanes below `count` (at most [`LANES`]).
    pub(crate) fn first(count: u32) -> Mask {
        match count {
            0 => Mask(0),
            count => Mask(u64::MAX >> (64 - count.min(64))),
        }
    }

    /// One lane.
    pub(crate) fn of(lane: usize) -> Mask {
        Mask(1 << lane)
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
    pub(crate) fn and(self, other: Mask) -> Mask {
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
    /// `count` slots for a sub-group of `size` work-items, all zero.
    pub fn new(count: u32, size: u32) -> Registers {
        let of_slot = (size as usize).div_ceil(AT_ONCE).max(1);
        Registers {
            values: vec![[0; AT_ONCE]; count as usize * of_slot],
            of_slot,
        }
    }

    /// Bytes of memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(self.values.as_slice()) as u64
    }

    /// The lanes of a slot: those of the sub-group, rounded up to a multiple of eight.
    #[inline]
    pub fn get(&self, slot: Slot) -> &[u64] {
        let first = slot.0 as usize * self.of_slot;
        self.values[first..first + self.of_slot].as_flattened()
    }

    /// The lanes of a slot, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut [u64] {
        let first = slot.0 as usize * self.of_slot;
        self.values[first..first + self.of_slot].as_flattened_mut()
    }

    /// A copy of the lanes of a slot.
    #[inline]
    pub fn lanes(&self, slot: Slot) -> Lanes {
        let mut lanes = [0; LANES];
        let own = self.get(slot);
        lanes[..own.len()].copy_from_slice(own);
        lanes
    }

    /// Gives the lanes of a slot these values.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, lanes: &Lanes) {
        let own = self.get_mut(slot);
        own.copy_from_slice(&lanes[..own.len()]);
    }

    /// Gives every lane the same bits.
    pub fn broadcast(&mut self, slot: Slot, bits: u64) {
        self.get_mut(slot).fill(bits);
    }

    /// Gives each lane of a slot the result of a function of the same lane of others.
    #[inline(always)]
    pub(super) fn map<const COUNT: usize>(
        &mut self,
        to: Slot,
        from: [Slot; COUNT],
        of: impl Fn([u64; COUNT]) -> u64,
    ) {
        let count = self.of_slot;
        let first = |slot: Slot| slot.0 as usize * count;
        let (to, from) = (first(to), from.map(first));
        for part in 0..count {
            let operands = from.map(|from| self.values[from + part]);
            self.values[to + part] = std::array::from_fn(|lane| of(operands.map(|operand| operand[lane])));
        }
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
            .fold(0, |bits, (lane, &truth)| bits | (truth & 1) << lane);
        Mask(bits).and(within)
    }

    /// Each first slot takes the old value of each second one, on the lanes of `mask`; its other lanes keep theirs.
    pub fn assign(&mut self, moves: &[(Slot, Slot)], mask: Mask) {
        let overwritten = |index: usize| moves[..index].iter().any(|&(to, _)| to == moves[index].1);
        if (1..moves.len()).any(overwritten) {
            let before: Vec<Lanes> = moves.iter().map(|&(_, from)| self.lanes(from)).collect();
            for (&(to, _), from) in moves.iter().zip(&before) {
                merge(self.get_mut(to), from, mask);
            }
            return;
        }
        let all = Mask::first((self.of_slot * AT_ONCE) as u32);
        for &(to, from) in moves {
            if mask == all {
                let [from, to] = [from, to].map(|slot| slot.0 as usize * self.of_slot);
                self.values.copy_within(from..from + self.of_slot, to);
            } else {
                let from = self.lanes(from);
                merge(self.get_mut(to), &from, mask);
            }
        }
    }
}

/// Takes over the lanes of `mask`.
fn merge(to: &mut [u64], from: &Lanes, mask: Mask) {
    if mask == Mask::first(to.len() as u32) {
        to.copy_from_slice(&from[..to.len()]);
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
        for count in 0..=64 {
            let mask = Mask::first(count);
            assert_eq!(mask.count(), count);
            assert_eq!(mask.lanes().count() as u32, count);
        }
        let lanes: Vec<usize> = Mask(0x8000_0000_0000_0011).lanes().collect();
        assert_eq!(lanes, [0, 4, 63]);
    }

    #[test]
    fn assignments_are_simultaneous_and_keep_other_lanes() {
        let mut registers = Registers::new(2, 32);
        registers.broadcast(Slot(0), 10);
        registers.broadcast(Slot(1), 20);
        registers.assign(&[(Slot(0), Slot(1)), (Slot(1), Slot(0))], Mask(0b10));
        assert_eq!(registers.get(Slot(0))[..3], [10, 20, 10]);
        assert_eq!(registers.get(Slot(1))[..3], [20, 10, 20]);
    }
}
