//! Who touched which piece of memory last: how races are found.
//!
//! Memory is watched in cells, as large as the smallest access of the kernel. Inside a work-group, time
//! is counted in barriers: two work-items that touch a cell in the same interval, one of them writing,
//! race. What lies between work-groups is [`super::launch_shadow`]'s.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::ir::Place;

/// One access: by whom, in which interval between barriers, from which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub local: u32,
    pub epoch: u32,
    pub place: Place,
    /// How often anything had been acquired by then.
    pub time: u32,
    /// The time at which its work-item had last acquired: it sees what ran before.
    pub since: u32,
    /// By an atomic operation; these do not race with each other.
    pub is_atomic: bool,
}

/// The history of a cell inside one work-group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// The last writer, ever.
    pub writer: Option<Touch>,
    /// The first reader since the last barrier.
    reader: Option<Touch>,
    /// The first reader since then that is another work-item.
    other_reader: Option<Touch>,
}

/// An earlier access that the present one races with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub with: Touch,
    pub wrote: bool,
}

impl Cell {
    /// Records a read, unless it races.
    pub fn read(&mut self, touch: Touch) -> Result<(), Conflict> {
        racing(self.writer, touch, true)?;
        match self.reader {
            Some(reader) if reader.epoch == touch.epoch => {
                if reader.local != touch.local && !self.is_current(self.other_reader, touch) {
                    self.other_reader = Some(touch);
                }
            }
            _ => self.reader = Some(touch),
        }
        Ok(())
    }

    /// Records a write, unless it races.
    pub fn write(&mut self, touch: Touch) -> Result<(), Conflict> {
        racing(self.writer, touch, true)?;
        racing(self.reader, touch, false)?;
        racing(self.other_reader, touch, false)?;
        self.writer = Some(touch);
        Ok(())
    }

    /// What other work-groups have to know: whether it was written, and the access that says so.
    pub fn summary(&self) -> Option<(bool, Touch)> {
        let write = self.writer.map(|touch| (true, touch));
        write.or(self.reader.map(|touch| (false, touch)))
    }

    fn is_current(&self, earlier: Option<Touch>, now: Touch) -> bool {
        earlier.is_some_and(|earlier| earlier.epoch == now.epoch)
    }
}

fn racing(earlier: Option<Touch>, now: Touch, wrote: bool) -> Result<(), Conflict> {
    match earlier {
        Some(with)
            if with.epoch == now.epoch
                && with.local != now.local
                && with.time >= now.since
                && !(with.is_atomic && now.is_atomic) =>
        {
            Err(Conflict { with, wrote })
        }
        _ => Ok(()),
    }
}

/// A map from numbers that are spread well by one multiplication.
pub(crate) type FastMap<V> = HashMap<u64, V, BuildHasherDefault<Spread>>;

/// Fibonacci hashing.
#[derive(Default)]
pub(crate) struct Spread(u64);

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

    fn touch(local: u32, epoch: u32) -> Touch {
        Touch {
            local,
            epoch,
            place: Kernel::NOWHERE,
            time: 0,
            since: 0,
            is_atomic: false,
        }
    }

    #[test]
    fn atomic_accesses_race_with_plain_ones_only() {
        let atomic = |local| Touch {
            is_atomic: true,
            ..touch(local, 0)
        };
        let mut cell = Cell::default();
        assert!(cell.write(atomic(1)).is_ok());
        assert!(cell.write(atomic(2)).is_ok());
        assert!(
            cell.read(touch(3, 0)).is_err(),
            "a plain read meets an atomic write"
        );
        let after = Touch {
            since: 1,
            ..touch(3, 0)
        };
        assert!(cell.read(after).is_ok(), "what was acquired is ordered");
    }

    #[test]
    fn a_barrier_orders_and_nothing_else_does() {
        let mut cell = Cell::default();
        assert!(cell.write(touch(1, 0)).is_ok());
        assert!(
            cell.read(touch(1, 0)).is_ok(),
            "a work-item does not race with itself"
        );
        let conflict = cell.read(touch(2, 0)).expect_err("read after another's write");
        assert_eq!(conflict.with.local, 1);
        assert!(cell.read(touch(2, 1)).is_ok(), "a barrier lies between");
        assert!(cell.read(touch(2, 1)).is_ok());
        assert!(cell.read(touch(3, 1)).is_ok(), "reads do not race");
        let conflict = cell.write(touch(2, 1)).expect_err("another read it too");
        assert_eq!((conflict.with.local, conflict.wrote), (3, false));
        assert!(cell.write(touch(2, 2)).is_ok());
        assert!(cell.write(touch(3, 2)).is_err());
    }
}
