//! The accesses to global memory of launches whose work-groups may see each other's writes: one record for all of them.
//!
//! Nearly every cell is touched by one work-item at a time, and a launch may touch many millions. So each has 16 bytes, for one
//! access that implies all before it, in a page that is allocated on the first touch; cells that need more are stored
//! separately.

use super::address;
use super::order::Locations;
use super::shadow::{Cell, FastMap, Now, Touch};
use crate::ir::Space;

/// Cells of a page.
const PAGE: u64 = 1 << 12;

/// The accesses to global memory, and their work-items.
#[derive(Debug, Default)]
pub(super) struct Histories {
    /// Of each buffer, its cells by pages.
    buffers: Vec<Vec<Option<Box<Page>>>>,
    long: FastMap<Cell>,
    /// Where strong operations meet.
    pub locations: Locations,
    /// Size of a cell, as a power of two.
    shift: u32,
    /// Bytes that further records may take.
    room: u64,
    /// Some accesses were forgotten for want of room.
    pub is_incomplete: bool,
}

type Page = [Brief; PAGE as usize];

/// A cell's record if it is brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brief {
    Untouched,
    One(Touch),
    Long,
}

impl Histories {
    /// Nothing done yet, to buffers of these sizes in bytes; full records take at most this number of bytes.
    pub(crate) fn new(buffers: impl Iterator<Item = u64>, shift: u32, room: u64) -> Histories {
        let pages = |bytes: u64| bytes.div_ceil(1 << shift).div_ceil(PAGE);
        Histories {
            buffers: buffers
                .map(|bytes| (0..pages(bytes)).map(|_| None).collect())
                .collect(),
            shift,
            room,
            ..Histories::default()
        }
    }

    /// The place of a cell, if it lies in a buffer.
    fn brief(&mut self, cell: u64) -> Option<&mut Brief> {
        let (buffer, offset) = address::split(Space::Global, cell << self.shift);
        let number = u64::try_from(offset).ok()? >> self.shift;
        let page = self.buffers.get_mut(buffer?)?.get_mut((number / PAGE) as usize)?;
        let page = page.get_or_insert_with(|| Box::new([Brief::Untouched; PAGE as usize]));
        Some(&mut page[(number % PAGE) as usize])
    }

    /// An earlier access to a cell that the present one races with.
    pub(crate) fn conflict(
        &mut self,
        cell: u64,
        now: &Now<'_>,
        is_allowed: &mut impl FnMut(&Touch, &Locations) -> bool,
    ) -> Option<Touch> {
        let brief = *self.brief(cell)?;
        let locations = &self.locations;
        let mut is_allowed = |with: &Touch| is_allowed(with, locations);
        match brief {
            Brief::One(with) => now.conflict(&with, &mut is_allowed),
            Brief::Long => self.long.get(&cell)?.conflict(now, &mut is_allowed),
            Brief::Untouched => None,
        }
    }

    /// Who wrote a cell last, if that is still known.
    pub(crate) fn writer(&mut self, cell: u64) -> Option<Touch> {
        match self.brief(cell) {
            Some(Brief::One(touch)) => touch.wrote.then_some(*touch),
            Some(Brief::Long) => self.long.get(&cell)?.writer(),
            _ => None,
        }
    }

    /// Remembers an access. `same` says that it is a write which others of the same bits are not ordered with.
    pub(crate) fn record(&mut self, cell: u64, now: &Now<'_>, same: bool) {
        let is_incomplete = self.is_incomplete;
        let Some(brief) = self.brief(cell) else { return };
        match *brief {
            Brief::Untouched => *brief = Brief::One(now.touch),
            Brief::One(_) if now.touch.wrote && now.touch.strength.is_plain() && !same => {
                *brief = Brief::One(now.touch);
            }
            Brief::One(with) if now.stands_for(&with) && (now.touch.wrote || !with.wrote) => {
                *brief = Brief::One(now.touch);
            }
            // The write has the same time.
            Brief::One(with) if is_told_by(&now.touch, &with) => {}
            Brief::One(with) if is_incomplete => {
                if now.touch.wrote || !with.wrote {
                    *brief = Brief::One(now.touch);
                }
            }
            Brief::One(with) => {
                *brief = Brief::Long;
                let mut long = Cell::of(with);
                long.record(now, same, true);
                self.long.insert(cell, long);
                self.take(size_of::<(u64, Cell)>() as u64);
            }
            Brief::Long => {
                let grown = match self.long.get_mut(&cell) {
                    Some(long) => long.record(now, same, !is_incomplete),
                    None => 0,
                };
                self.take(grown);
            }
        }
    }

    fn take(&mut self, bytes: u64) {
        match self.room.checked_sub(bytes) {
            Some(room) => self.room = room,
            None => self.is_incomplete = true,
        }
    }
}

/// Whether who races with the later access races with the earlier write of the same work-item, too, and knows it no
/// sooner.
fn is_told_by(now: &Touch, wrote: &Touch) -> bool {
    (now.item, now.time) == (wrote.item, wrote.time)
        && (wrote.strength.is_plain() || wrote.strength == now.strength)
}
