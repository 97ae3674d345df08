//! Operations on 16 bytes at once: `atom.exch.b128`, `atom.cas.b128`, and loads and stores of `b128` with an order.

use super::{operands, reference_in, space_of};
use crate::ir::{MemoryOrder, MemoryScope, Space};

/// Bytes of a value.
pub const QUAD_BYTES: u32 = 16;

/// The change of the value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is read.
    None,
    /// It is replaced.
    Store,
    /// It is replaced, and read before.
    Exchange,
    /// The same, if it is as expected.
    CompareExchange,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quad {
    /// What becomes of the value.
    pub change: Change,
    /// What it orders.
    pub order: MemoryOrder,
    /// Between which work-items.
    pub scope: MemoryScope,
    /// Where an address leads that is no pointer.
    pub space: Space,
    /// Bytes from the address on.
    pub offset: i64,
}

impl Quad {
    /// Reads the operation with these words, operands and number of results.
    pub(super) fn read(words: &[&str], rest: &str, results: usize) -> Option<Quad> {
        let has = |word: &str| words.contains(&word);
        let change = match (words[0], has("exch"), has("cas")) {
            ("ld", ..) => Change::None,
            ("st", ..) => Change::Store,
            ("atom", true, false) => Change::Exchange,
            ("atom", false, true) => Change::CompareExchange,
            _ => return None,
        };
        let (made, expected) = match change {
            Change::None => (2, 1),
            Change::Store => (0, 3),
            Change::Exchange => (2, 3),
            Change::CompareExchange => (2, 5),
        };
        // `_` stands where the old value is not used.
        if words.last() != Some(&"b128") || (results != made && results != 0) || operands(rest) != expected {
            return None;
        }
        let at = reference_in(rest, space_of(words))?;
        // The values stand behind the address.
        (at.value == 0).then_some(())?;
        Some(Quad {
            change,
            order: match (has("acquire"), has("release"), has("acq_rel")) {
                (true, ..) => MemoryOrder::Acquire,
                (_, true, _) => MemoryOrder::Release,
                (.., true) => MemoryOrder::AcquireRelease,
                _ => MemoryOrder::Relaxed,
            },
            scope: match (has("cta"), has("sys")) {
                (true, _) => MemoryScope::WorkGroup,
                (_, true) => MemoryScope::System,
                _ => MemoryScope::Device,
            },
            space: at.space,
            offset: at.offset,
        })
    }

    /// Whether it reads memory, and whether it writes there.
    pub fn directions(&self) -> (bool, bool) {
        (self.change != Change::Store, self.change != Change::None)
    }

    /// Whether later accesses of the device come after it.
    pub fn acquires(&self) -> bool {
        self.order.acquires() && self.scope.is_wide()
    }

    /// Whether others of the device see earlier accesses before it.
    pub fn releases(&self) -> bool {
        self.order.releases() && self.scope.is_wide()
    }
}
