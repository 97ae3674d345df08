//! Which work-groups touched which piece of global memory: how races between them are found if none of them can see another's
//! writes.
//!
//! Nothing orders such work-groups, so two that touch a cell in one launch race if one of them writes, unless both accesses are
//! device-scope atomic operations, or both write the same bits. Records can be merged in any order with the same result, so
//! reports do not depend on the number of threads. (If work-groups see each other, there is one record for all:
//! [`super::histories`].)
//!
//! Nearly every cell is touched by one work-group alone, and a launch may touch many millions. So each has 24 bytes in a page
//! that is allocated on the first touch; only cells touched by several are stored separately.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::address;
use super::fault::Item;
use super::shadow::{Cell, FastMap, did};
use crate::ir::{Kernel, Place, Races, Space};

/// One work-group's accesses to a cell, as other groups see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupTouch {
    pub item: Item,
    /// In bits: see [`did`].
    pub did: u8,
    pub place: Place,
}

/// The lowest and the highest of several.
#[derive(Clone, Copy, Debug)]
struct Ends<T>(Option<(T, T)>);

impl<T> Default for Ends<T> {
    fn default() -> Ends<T> {
        Ends(None)
    }
}

impl<T: Copy + Ord> Ends<T> {
    fn add(&mut self, one: T) {
        let (lowest, highest) = self.0.get_or_insert((one, one));
        *lowest = one.min(*lowest);
        *highest = one.max(*highest);
    }
}

/// Which groups touched a cell.
#[derive(Clone, Debug, Default)]
struct Shared {
    /// Those that read it plainly.
    readers: Ends<GroupTouch>,
    /// Those that did more than that: nearly always none.
    writers: Option<Box<Writers>>,
}

/// Those that did not only read it plainly.
#[derive(Clone, Copy, Debug, Default)]
struct Writers {
    /// Those that wrote it plainly, by the bits that they left there.
    plain: Ends<(u64, GroupTouch)>,
    /// How many.
    writes: u64,
    /// Those that wrote it by atomic operations, and those that operated on it atomically, by size.
    strong_writers: Ends<GroupTouch>,
    strong: [Ends<GroupTouch>; 2],
}

impl Shared {
    /// A writer and another group's access that race, without intended races.
    fn race(&self, meant: Races) -> Option<(GroupTouch, GroupTouch)> {
        if meant == Races::Any {
            return None;
        }

        let between = |writers: Ends<GroupTouch>, others: Ends<GroupTouch>| {
            let (writers, others) = (writers.0?, others.0?);
            let pairs = [writers.0, writers.1]
                .into_iter()
                .flat_map(|writer| [(writer, others.0), (writer, others.1)]);
            pairs
                .into_iter()
                .find(|(writer, other)| writer.item.group != other.item.group)
        };
        let Writers {
            plain: writers,
            strong_writers,
            strong: [of_4, of_8],
            ..
        } = **self.writers.as_ref()?;
        if let Some(((bits, one), (others, other))) = writers.0
            && bits != others
        {
            return Some((one.min(other), one.max(other)));
        }
        let writers = Ends(writers.0.map(|((_, one), (_, other))| (one, other)));
        let readers = match meant {
            Races::None => self.readers,
            _ => Ends(None),
        };
        between(writers, readers)
            .or_else(|| between(writers, of_4))
            .or_else(|| between(writers, of_8))
            .or_else(|| between(strong_writers, readers))
            .or_else(|| {
                let mixed = strong_writers.0.and(of_4.0).and(of_8.0);
                mixed.and_then(|_| between(of_4, of_8))
            })
    }
}

/// The accesses of the only work-group that has touched a cell so far, in 24 bytes.
#[derive(Clone, Copy, Debug)]
struct Lone {
    /// The group's linear number, with its accesses in the top bits; 0 if there was none.
    group: u64,
    /// Its plain write.
    bits: u64,
    local: u32,
    place: Place,
}

/// A group was here.
const TOUCHED: u64 = 1 << 63;
/// Where the bits of [`did`] begin.
const DID: u32 = 57;
/// More than one group was here: the cell is kept at length.
const SEVERAL: u64 = u64::MAX;
/// Of the number. A launch of 2⁵⁷ groups never ends.
const NUMBER: u64 = (1 << DID) - 1;

impl Lone {
    /// Of no group.
    const NONE: Lone = Lone {
        group: 0,
        bits: 0,
        local: 0,
        place: Kernel::NOWHERE,
    };

    fn new(group: u64, cell: &Cell) -> Option<Lone> {
        let touch = cell.writer().or(cell.reader())?;
        Some(Lone {
            group: (group & NUMBER) | TOUCHED | u64::from(cell.did) << DID,
            bits: cell.bits,
            local: touch.item,
            place: touch.place,
        })
    }

    fn did(self) -> u8 {
        (self.group >> DID) as u8 & 0x3f
    }

    fn wrote(self) -> bool {
        self.did() & (did::WROTE | did::STRONG_WROTE) != 0
    }
}

impl Shared {
    fn add(&mut self, lone: Lone) {
        let touch = GroupTouch {
            item: Item {
                group: lone.group & NUMBER,
                local: lone.local,
            },
            did: lone.did(),
            place: lone.place,
        };
        let does = |what: u8| touch.did & what != 0;
        if does(did::READ) {
            self.readers.add(touch);
        }
        if touch.did == did::READ {
            return;
        }
        let writers = self.writers.get_or_insert_default();
        if does(did::WROTE) {
            writers.plain.add((lone.bits, touch));
            writers.writes += 1;
        }
        if does(did::STRONG_WROTE) {
            writers.strong_writers.add(touch);
        }
        for (size, strong) in [did::OF_4, did::OF_8].into_iter().zip(&mut writers.strong) {
            if does(size) {
                strong.add(touch);
            }
        }
    }
}

/// The accesses of all work-groups to writable global memory.
#[derive(Debug)]
pub(super) struct LaunchShadow {
    buffers: Vec<Pages>,
    /// Cells touched by several groups, in parts with a lock each.
    several: Vec<Mutex<FastMap<Shared>>>,
    /// Size of a cell, as a power of two.
    shift: u32,
}

/// Cells that follow each other; empty until one is touched.
type Page = Vec<Lone>;

/// The cells of a buffer, by pages, and those in books: a launch need not touch much of a large buffer.
#[derive(Debug)]
struct Pages {
    count: u64,
    books: Box<[OnceLock<Book>]>,
}

/// Pages that follow each other.
type Book = Box<[Mutex<Page>]>;

/// Pages of a book: 16 KiB of a buffer of words, and 1 KiB itself.
const BOOK: u64 = 1 << 5;

/// Cells of a page: few, since a launch that reads a large buffer at random touches one of nearly each.
const PAGE: u64 = 1 << 7;

const PARTS: u64 = 64;

impl Pages {
    /// The pages of a buffer of `cells` cells, all of them untouched.
    fn new(cells: u64) -> Pages {
        let count = cells.div_ceil(PAGE);
        Pages {
            count,
            books: (0..count.div_ceil(BOOK)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The page of a cell.
    fn of(&self, cell: u64) -> Option<&Mutex<Page>> {
        let page = cell / PAGE;
        let number = page / BOOK;
        let pages = BOOK.min(self.count.saturating_sub(number * BOOK));
        let book = self.books.get(number as usize)?;
        let book = book.get_or_init(|| (0..pages).map(|_| Mutex::default()).collect());
        book.get((page % BOOK) as usize)
    }
}

impl LaunchShadow {
    /// Nothing done yet, to buffers of these sizes in bytes.
    pub(crate) fn new(buffers: impl Iterator<Item = u64>, shift: u32) -> LaunchShadow {
        LaunchShadow {
            buffers: buffers
                .map(|bytes| Pages::new(bytes.div_ceil(1 << shift)))
                .collect(),
            several: (0..PARTS).map(|_| Mutex::default()).collect(),
            shift,
        }
    }

    /// Adds a work-group's accesses.
    pub(crate) fn merge(&self, group: u64, cells: &FastMap<Cell>) {
        for (&cell, history) in cells {
            let Some(now) = Lone::new(group, history) else {
                continue;
            };
            // An address of no buffer was reported when it was touched.
            let (Some(buffer), offset) = address::split(Space::Global, cell << self.shift) else {
                continue;
            };
            let number = offset as u64 >> self.shift;
            let Some(page) = self.buffers.get(buffer).and_then(|pages| pages.of(number)) else {
                continue;
            };
            let mut page = locked(page);
            if page.is_empty() {
                page.resize(PAGE as usize, Lone::NONE);
            }
            let known = &mut page[(number % PAGE) as usize];
            let before = *known;
            let is_touched = before.group & TOUCHED != 0;
            *known = match is_touched {
                false => now,
                true => Lone {
                    group: SEVERAL,
                    ..before
                },
            };
            if is_touched {
                let mut part = locked(&self.several[(cell / 16 % PARTS) as usize]);
                let shared = part.entry(cell).or_default();
                if before.group != SEVERAL {
                    shared.add(before);
                }
                shared.add(now);
            }
        }
    }

    /// The lowest cell with a race of two work-groups, except for the races `meant` for its buffer: a writer, and another
    /// group's access.
    pub(crate) fn race(&self, meant: impl Fn(usize) -> Races) -> Option<(u64, GroupTouch, GroupTouch)> {
        let mut lowest: Option<(u64, GroupTouch, GroupTouch)> = None;
        for part in &self.several {
            for (&cell, shared) in locked(part).iter() {
                let (buffer, _) = address::split(Space::Global, cell << self.shift);
                if let Some((writer, other)) = shared.race(buffer.map_or(Races::None, &meant))
                    && lowest.is_none_or(|(found, ..)| cell < found)
                {
                    lowest = Some((cell, writer, other));
                }
            }
        }
        lowest
    }

    /// The cells that several work-groups wrote the same bits to: of each operation in each buffer, how many such writes
    /// there were, and the lowest cell.
    pub(crate) fn same_bits(&self) -> BTreeMap<(usize, Place), (u64, u64)> {
        let mut found: BTreeMap<(usize, Place), (u64, u64)> = BTreeMap::new();
        for part in &self.several {
            for (&cell, shared) in locked(part).iter() {
                if let Some(writers) = &shared.writers
                    && let (Some(((_, touch), _)), 2..) = (writers.plain.0, writers.writes)
                    && let (Some(buffer), _) = address::split(Space::Global, cell << self.shift)
                {
                    let (count, lowest) = found.entry((buffer, touch.place)).or_insert((0, cell));
                    *count += writers.writes - 1;
                    *lowest = cell.min(*lowest);
                }
            }
        }
        found
    }

    /// How many pages have touched cells.
    pub(crate) fn pages(&self) -> u64 {
        let books = self.buffers.iter().flat_map(|pages| pages.books.iter());
        let pages = books.filter_map(OnceLock::get).flatten();
        pages.filter(|page| !locked(page).is_empty()).count() as u64
    }

    /// Calls `visit` with the group, the buffer and the byte offset of each cell that one group has written and no other has
    /// touched.
    pub(crate) fn written_by_one(&self, mut visit: impl FnMut(u64, usize, u64)) {
        for (buffer, pages) in self.buffers.iter().enumerate() {
            for (book, number) in pages.books.iter().zip(0u64..) {
                for (page, within) in book.get().into_iter().flatten().zip(0u64..) {
                    let first = (number * BOOK + within) * PAGE;
                    for (lone, cell) in locked(page).iter().zip(first..) {
                        if lone.group != SEVERAL && lone.wrote() {
                            visit(lone.group & NUMBER, buffer, cell << self.shift);
                        }
                    }
                }
            }
        }
    }

    /// Calls `visit` with the buffer and the byte offset of each written cell, in no order.
    pub(crate) fn written(&self, mut visit: impl FnMut(usize, u64)) {
        self.written_by_one(|_, buffer, offset| visit(buffer, offset));
        for part in &self.several {
            for (&cell, shared) in locked(part).iter() {
                let is_written = |writers: &Writers| writers.writes > 0 || writers.strong_writers.0.is_some();
                if shared.writers.as_deref().is_some_and(is_written)
                    && let (Some(buffer), offset) = address::split(Space::Global, cell << self.shift)
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

    /// A group's accesses to a cell, and the bits of its plain write.
    fn history(local: u32, what: u8, bits: u64) -> Cell {
        use crate::functional::shadow::{Strength, Touch};
        let mut cell = Cell::of(Touch {
            item: local,
            time: 1,
            place: Kernel::NOWHERE,
            strength: Strength::PLAIN,
            wrote: what & (did::WROTE | did::STRONG_WROTE) != 0,
        });
        cell.did = what;
        cell.bits = bits;
        cell
    }

    const ATOMIC: u8 = did::STRONG_READ | did::STRONG_WROTE | did::OF_4;

    /// Two buffers of 4-byte cells.
    fn shadow() -> LaunchShadow {
        LaunchShadow::new([1 << 10, 1 << 22].into_iter(), 2)
    }

    #[test]
    fn a_large_buffer_costs_what_is_touched_of_it() {
        // 256 GiB: a page for each of its cells would not fit.
        let cells = 1u64 << 36;
        let shadow = LaunchShadow::new([cells << 2].into_iter(), 2);
        let touched = [5, cells / 2, cells - 1];
        for (group, number) in (0..).zip(touched) {
            let cell = (address::buffer_address(0) >> 2) + number;
            let cells = [(cell, history(0, did::WROTE, 7))].into_iter().collect();
            shadow.merge(group, &cells);
        }
        let mut written = Vec::new();
        shadow.written_by_one(|group, buffer, offset| written.push((group, buffer, offset >> 2)));
        assert_eq!(
            written,
            [(0, 0, touched[0]), (1, 0, touched[1]), (2, 0, touched[2])]
        );
    }

    /// A cell of the second buffer.
    fn cell(number: u64) -> u64 {
        (address::buffer_address(1) >> 2) + number
    }

    /// The groups of the race between those that did this to one cell.
    fn race(groups: &[(u8, u64)]) -> Option<(u64, u64)> {
        let shadow = shadow();
        for (group, &(what, bits)) in (0..).zip(groups) {
            shadow.merge(group, &FastMap::from_iter([(cell(8), history(0, what, bits))]));
        }
        let (_, writer, other) = shadow.race(|_| Races::None)?;
        Some((writer.item.group, other.item.group))
    }

    #[test]
    fn atomic_accesses_race_with_plain_ones_only() {
        let atomic = (ATOMIC, 0);
        assert_eq!(race(&[atomic; 4]), None);
        assert_eq!(race(&[atomic, atomic, (did::WROTE, 0), atomic]), Some((2, 0)));
        assert_eq!(race(&[(did::READ, 0), atomic]), Some((1, 0)));
        let read = (did::STRONG_READ | did::OF_8, 0);
        assert_eq!(race(&[read, read]), None);
        assert_eq!(race(&[read, atomic]), Some((1, 0)), "of another size");
    }

    #[test]
    fn writes_of_the_same_bits_do_not_race_with_each_other() {
        let seven = (did::WROTE, 7);
        assert_eq!(race(&[seven; 5]), None);
        assert_eq!(race(&[seven, seven, (did::WROTE, 8)]), Some((0, 2)));
        assert_eq!(race(&[(did::READ, 0), seven, seven]), Some((1, 0)));
        let both = (did::WROTE | did::READ, 7);
        assert_eq!(race(&[seven, both]), Some((0, 1)), "one looks first");
        assert_eq!(race(&[both]), None);
        let shadow = shadow();
        for group in 0..5 {
            let at = |number| (cell(number), history(0, did::WROTE, 7));
            shadow.merge(group, &FastMap::from_iter([at(9), at(4), at(100 + group)]));
        }
        let expected = BTreeMap::from([((1, Kernel::NOWHERE), (8, cell(4)))]);
        assert_eq!(shadow.same_bits(), expected);
    }

    #[test]
    fn groups_race_in_whatever_order_they_are_merged() {
        let at = cell(77 * PAGE);
        let one = |what: u8, local: u32| FastMap::from_iter([(at, history(local, what, 0))]);
        let groups = [
            (3, one(did::READ, 9)),
            (5, one(did::WROTE, 4)),
            (8, one(did::READ, 1)),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let shadow = shadow();
            for index in order {
                shadow.merge(groups[index].0, &groups[index].1);
            }
            let (cell, writer, other) = shadow.race(|_| Races::None).expect("group 5 writes");
            assert_eq!(
                (
                    cell,
                    writer.item.group,
                    writer.item.local,
                    other.item.group,
                    other.did
                ),
                (at, 5, 4, 3, did::READ)
            );
        }
        let shadow = shadow();
        shadow.merge(3, &groups[0].1);
        shadow.merge(8, &groups[2].1);
        assert!(shadow.race(|_| Races::None).is_none(), "reads alone do not race");
    }

    #[test]
    fn what_was_written_is_known_once_however_many_wrote_it() {
        let shadow = shadow();
        let (written, read) = (|| history(1, ATOMIC, 0), || history(1, did::READ, 0));
        shadow.merge(0, &FastMap::from_iter([(cell(1), written()), (cell(2), read())]));
        shadow.merge(
            1,
            &FastMap::from_iter([(cell(2), read()), (cell(5000), written())]),
        );
        shadow.merge(2, &FastMap::from_iter([(cell(1), written())]));
        let mut found = Vec::new();
        shadow.written(|buffer, offset| found.push((buffer, offset)));
        found.sort_unstable();
        assert_eq!(found, [(1, 4), (1, 20_000)]);
    }
}
