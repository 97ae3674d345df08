//! Who touched which piece of memory last: how races are found.
//!
//! Memory is watched in cells, as large as the smallest access of the kernel. Inside a work-group, time
//! is counted in barriers: two work-items that touch a cell in the same interval, one of them writing,
//! race. Work-groups have nothing to order them at all, so two that touch a cell in one launch race if
//! one of them writes. What is kept of the groups can be merged in any order and gives the same, so that
//! reports do not depend on the number of threads.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use super::fault::Item;
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
    fn summary(&self) -> Option<(bool, Touch)> {
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
pub(super) type FastMap<V> = HashMap<u64, V, BuildHasherDefault<Spread>>;

/// Fibonacci hashing.
#[derive(Default)]
pub(super) struct Spread(u64);

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

/// What one work-group did to a cell, as other groups see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupTouch {
    pub item: Item,
    pub wrote: bool,
    pub place: Place,
}

/// Which groups touched a cell.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    /// It was written at all.
    written: bool,
    /// The lowest and the highest that wrote it, by whatever means.
    writers: Option<(GroupTouch, GroupTouch)>,
    /// The same of those that touched it by other means than atomic operations.
    plain: Option<(GroupTouch, GroupTouch)>,
}

impl Shared {
    /// A writer and another group's access that is not atomic, or whose other side is not.
    fn race(&self) -> Option<(GroupTouch, GroupTouch)> {
        let (writers, plain) = (self.writers?, self.plain?);
        let pairs = [writers.0, writers.1]
            .into_iter()
            .flat_map(|writer| [(writer, plain.0), (writer, plain.1)]);
        pairs
            .into_iter()
            .find(|(writer, other)| writer.item.group != other.item.group)
    }
}

/// Makes a range of touches include another.
fn include(range: &mut Option<(GroupTouch, GroupTouch)>, touch: GroupTouch) {
    let (lowest, highest) = range.get_or_insert((touch, touch));
    *lowest = touch.min(*lowest);
    *highest = touch.max(*highest);
}

/// What all work-groups did to global memory that may be written.
#[derive(Debug)]
pub(super) struct LaunchShadow {
    shards: Vec<Mutex<FastMap<Shared>>>,
}

const SHARDS: u64 = 64;

impl LaunchShadow {
    /// Nothing done yet.
    pub fn new() -> LaunchShadow {
        LaunchShadow {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Adds what a work-group did. Of one that orders its accesses and other groups' only what it wrote is kept.
    pub fn merge(&self, group: u64, cells: &FastMap<Cell>, is_ordered: bool) {
        for (&cell, history) in cells {
            let Some((wrote, touch)) = history.summary() else {
                continue;
            };
            let item = Item {
                group,
                local: touch.local,
            };
            let shard = &self.shards[(cell / 16 % SHARDS) as usize];
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let shared = shard.entry(cell).or_default();
            shared.written |= wrote;
            if is_ordered {
                continue;
            }
            let place = touch.place;
            let group_touch = GroupTouch { item, wrote, place };
            if wrote {
                include(&mut shared.writers, group_touch);
            }
            if !touch.is_atomic {
                include(&mut shared.plain, group_touch);
            }
        }
    }

    /// The lowest cell that two work-groups race for: a writer, and another group's access.
    pub fn race(&self) -> Option<(u64, GroupTouch, GroupTouch)> {
        let mut lowest: Option<(u64, GroupTouch, GroupTouch)> = None;
        self.for_each(|cell, shared| {
            if let Some((writer, other)) = shared.race()
                && lowest.is_none_or(|(found, ..)| cell < found)
            {
                lowest = Some((cell, writer, other));
            }
        });
        lowest
    }

    /// Calls `visit` with each written cell, in no order.
    pub fn written(&self, mut visit: impl FnMut(u64)) {
        self.for_each(|cell, shared| {
            if shared.written {
                visit(cell);
            }
        });
    }

    fn for_each(&self, mut visit: impl FnMut(u64, &Shared)) {
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.iter().for_each(|(&cell, shared)| visit(cell, shared));
        }
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

        let groups = |plain: &[u64], ordered: bool| {
            let shadow = LaunchShadow::new();
            for group in 0..4 {
                let mut cell = Cell::default();
                let access = match plain.contains(&group) {
                    true => touch(0, 0),
                    false => atomic(0),
                };
                cell.write(access).expect("alone");
                shadow.merge(group, &FastMap::from_iter([(8, cell)]), ordered);
            }
            shadow
                .race()
                .map(|(_, writer, other)| (writer.item.group, other.item.group))
        };
        assert_eq!(groups(&[], false), None);
        assert_eq!(groups(&[2], false), Some((0, 2)));
        assert_eq!(groups(&[0], false), Some((3, 0)));
        assert_eq!(groups(&[0, 1], true), None);
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

    #[test]
    fn groups_race_in_whatever_order_they_are_merged() {
        let history = |accesses: &[(bool, u32)]| {
            let mut cell = Cell::default();
            for &(write, local) in accesses {
                let touch = touch(local, 0);
                if write {
                    cell.write(touch)
                } else {
                    cell.read(touch)
                }
                .expect("no race inside");
            }
            FastMap::from_iter([(77, cell)])
        };
        let groups = [
            (3, history(&[(false, 9)])),
            (5, history(&[(true, 4)])),
            (8, history(&[(false, 1)])),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let shadow = LaunchShadow::new();
            for index in order {
                shadow.merge(groups[index].0, &groups[index].1, false);
            }
            let (cell, writer, other) = shadow.race().expect("group 5 writes");
            assert_eq!(
                (cell, writer.item.group, other.item.group, other.wrote),
                (77, 5, 3, false)
            );
        }
        let shadow = LaunchShadow::new();
        shadow.merge(3, &groups[0].1, false);
        shadow.merge(8, &groups[2].1, false);
        assert!(shadow.race().is_none(), "reads alone do not race");
    }
}
