//! Which work-groups touched which piece of global memory: how races between them are found.
//!
//! Work-groups have nothing to order them, so two that touch a cell in one launch race if one of them writes. What is kept
//! can be merged in any order and gives the same, so that reports do not depend on the number of threads.
//!
//! Nearly every cell is touched by one work-group alone, and a launch may touch many millions. So each has 16 bytes in a page
//! that exists once something in it is touched; only what several touch is kept at length.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::address;
use super::fault::Item;
use super::shadow::{Cell, FastMap, Touch};
use crate::ir::{Kernel, Place, Space};

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

/// What the one work-group did that has touched a cell so far, in 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Lone {
    /// The group's linear number, and what it did in the top bits; 0 if none was here.
    group: u64,
    local: u32,
    place: Place,
}

/// A group was here.
const TOUCHED: u64 = 1 << 63;
/// It wrote.
const WROTE: u64 = 1 << 62;
/// By an atomic operation.
const ATOMIC: u64 = 1 << 61;
/// It orders its accesses and other groups'.
const ORDERED: u64 = 1 << 60;
/// More than one group was here: the cell is kept at length.
const SEVERAL: u64 = u64::MAX;
/// Of the number. A launch of 2⁶⁰ groups never ends.
const NUMBER: u64 = ORDERED - 1;

impl Lone {
    /// Of no group.
    const NONE: Lone = Lone {
        group: 0,
        local: 0,
        place: Kernel::NOWHERE,
    };

    fn new(group: u64, wrote: bool, touch: Touch, is_ordered: bool) -> Lone {
        let flags = [(wrote, WROTE), (touch.is_atomic, ATOMIC), (is_ordered, ORDERED)];
        let did = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).sum::<u64>();
        Lone {
            group: (group & NUMBER) | TOUCHED | did,
            local: touch.local,
            place: touch.place,
        }
    }

    fn is(self, flag: u64) -> bool {
        self.group & flag != 0
    }
}

impl Shared {
    fn add(&mut self, lone: Lone) {
        let wrote = lone.is(WROTE);
        self.written |= wrote;
        // Of what is ordered only that it was written matters.
        if lone.is(ORDERED) {
            return;
        }
        let touch = GroupTouch {
            item: Item {
                group: lone.group & NUMBER,
                local: lone.local,
            },
            wrote,
            place: lone.place,
        };
        if wrote {
            include(&mut self.writers, touch);
        }
        if !lone.is(ATOMIC) {
            include(&mut self.plain, touch);
        }
    }
}

/// What all work-groups did to global memory that may be written.
#[derive(Debug)]
pub(super) struct LaunchShadow {
    /// Of each buffer, its cells by pages.
    buffers: Vec<Box<[Mutex<Page>]>>,
    /// What several groups touched, in parts with a lock each.
    several: Vec<Mutex<FastMap<Shared>>>,
    /// Size of a cell, as a power of two.
    shift: u32,
}

/// Cells that follow each other; empty until one is touched.
type Page = Vec<Lone>;

/// Cells of a page.
const PAGE: u64 = 1 << 12;

const PARTS: u64 = 64;

impl LaunchShadow {
    /// Nothing done yet, to buffers of these sizes in bytes.
    pub fn new(buffers: impl Iterator<Item = u64>, shift: u32) -> LaunchShadow {
        let pages = |bytes: u64| bytes.div_ceil(1 << shift).div_ceil(PAGE);
        LaunchShadow {
            buffers: buffers
                .map(|bytes| (0..pages(bytes)).map(|_| Mutex::default()).collect())
                .collect(),
            several: (0..PARTS).map(|_| Mutex::default()).collect(),
            shift,
        }
    }

    /// Adds what a work-group did. Of one that orders its accesses and other groups' only what it wrote is kept.
    pub fn merge(&self, group: u64, cells: &FastMap<Cell>, is_ordered: bool) {
        for (&cell, history) in cells {
            let Some((wrote, touch)) = history.summary() else {
                continue;
            };
            let now = Lone::new(group, wrote, touch, is_ordered);
            // An address of no buffer was reported when it was touched.
            let (Some(buffer), offset) = address::split(Space::Global, cell << self.shift) else {
                continue;
            };
            let number = offset as u64 >> self.shift;
            let pages = self
                .buffers
                .get(buffer)
                .and_then(|pages| pages.get((number / PAGE) as usize));
            let Some(page) = pages else { continue };
            let mut page = locked(page);
            if page.is_empty() {
                page.resize(PAGE as usize, Lone::NONE);
            }
            let known = &mut page[(number % PAGE) as usize];
            let before = *known;
            *known = match before.is(TOUCHED) {
                false => now,
                true => Lone {
                    group: SEVERAL,
                    ..before
                },
            };
            if before.is(TOUCHED) {
                let mut part = locked(&self.several[(cell / 16 % PARTS) as usize]);
                let shared = part.entry(cell).or_default();
                if before.group != SEVERAL {
                    shared.add(before);
                }
                shared.add(now);
            }
        }
    }

    /// The lowest cell that two work-groups race for: a writer, and another group's access.
    pub fn race(&self) -> Option<(u64, GroupTouch, GroupTouch)> {
        let mut lowest: Option<(u64, GroupTouch, GroupTouch)> = None;
        for part in &self.several {
            for (&cell, shared) in locked(part).iter() {
                if let Some((writer, other)) = shared.race()
                    && lowest.is_none_or(|(found, ..)| cell < found)
                {
                    lowest = Some((cell, writer, other));
                }
            }
        }
        lowest
    }

    /// Calls `visit` with the buffer and the byte offset of each written cell, in no order.
    pub fn written(&self, mut visit: impl FnMut(usize, u64)) {
        for (buffer, pages) in self.buffers.iter().enumerate() {
            for (page, first) in pages.iter().zip((0..).step_by(PAGE as usize)) {
                for (lone, number) in locked(page).iter().zip(first..) {
                    if lone.group != SEVERAL && lone.is(WROTE) {
                        visit(buffer, number << self.shift);
                    }
                }
            }
        }
        for part in &self.several {
            for (&cell, shared) in locked(part).iter() {
                if let (true, (Some(buffer), offset)) =
                    (shared.written, address::split(Space::Global, cell << self.shift))
                {
                    visit(buffer, offset as u64);
                }
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(local: u32, is_atomic: bool) -> Touch {
        Touch {
            local,
            epoch: 0,
            place: Kernel::NOWHERE,
            time: 0,
            since: 0,
            is_atomic,
        }
    }

    /// Two buffers of 4-byte cells.
    fn shadow() -> LaunchShadow {
        LaunchShadow::new([1 << 10, 1 << 20].into_iter(), 2)
    }

    /// A cell of the second buffer.
    fn cell(number: u64) -> u64 {
        (address::buffer_address(1) >> 2) + number
    }

    #[test]
    fn atomic_accesses_race_with_plain_ones_only() {
        let groups = |plain: &[u64], ordered: bool| {
            let shadow = shadow();
            for group in 0..4 {
                let mut history = Cell::default();
                history.write(touch(0, !plain.contains(&group))).expect("alone");
                shadow.merge(group, &FastMap::from_iter([(cell(8), history)]), ordered);
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
    fn groups_race_in_whatever_order_they_are_merged() {
        let at = cell(77 * PAGE);
        let history = |write: bool, local: u32| {
            let mut cell = Cell::default();
            let touch = touch(local, false);
            match write {
                true => cell.write(touch),
                false => cell.read(touch),
            }
            .expect("no race inside");
            FastMap::from_iter([(at, cell)])
        };
        let groups = [
            (3, history(false, 9)),
            (5, history(true, 4)),
            (8, history(false, 1)),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let shadow = LaunchShadow::new([0, 1 << 22].into_iter(), 2);
            for index in order {
                shadow.merge(groups[index].0, &groups[index].1, false);
            }
            let (cell, writer, other) = shadow.race().expect("group 5 writes");
            assert_eq!(
                (
                    cell,
                    writer.item.group,
                    writer.item.local,
                    other.item.group,
                    other.wrote
                ),
                (at, 5, 4, 3, false)
            );
        }
        let shadow = LaunchShadow::new([0, 1 << 22].into_iter(), 2);
        shadow.merge(3, &groups[0].1, false);
        shadow.merge(8, &groups[2].1, false);
        assert!(shadow.race().is_none(), "reads alone do not race");
    }

    #[test]
    fn what_was_written_is_known_once_however_many_wrote_it() {
        let shadow = shadow();
        let mut written = Cell::default();
        written.write(touch(1, true)).expect("alone");
        let mut read = Cell::default();
        read.read(touch(1, false)).expect("alone");
        shadow.merge(
            0,
            &FastMap::from_iter([(cell(1), written), (cell(2), read)]),
            false,
        );
        shadow.merge(
            1,
            &FastMap::from_iter([(cell(2), read), (cell(5000), written)]),
            true,
        );
        shadow.merge(2, &FastMap::from_iter([(cell(1), written)]), true);
        let mut found = Vec::new();
        shadow.written(|buffer, offset| found.push((buffer, offset)));
        found.sort_unstable();
        assert_eq!(found, [(1, 4), (1, 20_000)]);
    }
}
