//! Words of a captured launch that are pointers. They are never drawn: a drawn one would lead nowhere, and a launch in which the
//! kernel follows it says nothing.
//!
//! A capture does not mark them. A word, aligned as a pointer is, is one if its value lies in captured memory. The allocations of
//! derived launches lie far apart, so that no drawn index leads from one into another, and the words that lead into them are
//! those of their new places:
//!
//! ```text
//! captured   0x7f00_0000_1000: list [0x7f00_0000_2010, 5, …]    0x7f00_0000_2000: …
//! derived    0x0400_0000_1000: list [0x0800_0000_2010, 9, …]    0x0800_0000_2000: …
//! ```

use std::ops::Range;

use crate::tune::subject::workload::{Placed, PlacedMemory};

/// The distance of two allocations: the engine takes an address up to half as far behind one for an index beyond its end.
const APART: u64 = 1 << 42;
/// What stays of an allocation's address: its alignment.
const ALIGNMENT: u64 = 1 << 16;

/// Where the allocations of a captured launch lie, in the order of their addresses, and where those of launches derived from it do.
#[derive(Debug)]
pub(super) struct Pointers(Vec<(Range<u64>, u64)>);

impl Pointers {
    /// New places for the memory of a captured launch.
    pub(crate) fn new(placed: &Placed) -> Pointers {
        let place = |(own, number): (&PlacedMemory, u64)| {
            let end = own.address.saturating_add(own.bytes.len() as u64);
            (own.address..end, number * APART + own.address % ALIGNMENT)
        };
        Pointers(placed.memory.iter().zip(1..).map(place).collect())
    }

    /// A captured address in its new place; none if a word with this value is no pointer.
    pub(crate) fn moved(&self, address: u64) -> Option<u64> {
        let after = self.0.partition_point(|(range, _)| range.start <= address);
        let (range, place) = &self.0[after.checked_sub(1)?];
        (address < range.end).then(|| place + (address - range.start))
    }

    /// Whether a word leads into an allocation's new place.
    pub(crate) fn has(&self, word: u64) -> bool {
        let after = self.0.partition_point(|(_, place)| *place <= word);
        let last = self.0[..after].last();
        last.is_some_and(|(range, place)| word - place < range.end - range.start)
    }
}
