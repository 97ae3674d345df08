//! Operations on 16 bytes, read from the text that carries them. [`quads`](super::quads) runs them.

use super::lanes::{LANES, Lanes, Registers, Slot};
use crate::ir::{MemoryOrder, MemoryScope, Space, Type};

/// Bytes of a value.
pub(crate) const QUAD_BYTES: u32 = 16;

/// The change of the value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    Store,
    Exchange,
    CompareExchange,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quad {
    pub(super) change: Change,
    pub(super) order: MemoryOrder,
    pub(super) scope: MemoryScope,
    /// Where an address leads that is no pointer.
    pub(super) space: Space,
    /// Bytes from the address on.
    pub(super) offset: i64,
}

impl Quad {
    /// The operation of a text with these numbers of results and operands.
    pub(crate) fn read(text: &str, results: usize, operands: usize) -> Option<Quad> {
        let (name, rest) = text.split_once(' ')?;
        let words: Vec<&str> = name.split('.').collect();
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
        if words.last() != Some(&"b128") || (results != made && results != 0) || operands != expected {
            return None;
        }
        let inside = rest.split_once('[')?.1.split_once(']')?.0;
        let (base, offset) = match inside.split_once('+') {
            Some((base, offset)) => (base, offset.parse().ok()?),
            None => (inside, 0),
        };
        // The values stand behind the address.
        (base == "@0").then_some(())?;
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
            space: match (has("global"), has("shared") || has("shared::cta")) {
                (true, _) => Space::Global,
                (_, true) => Space::Shared,
                _ => Space::Generic,
            },
            offset,
        })
    }
}

impl Quad {
    /// Whether it reads memory, and whether it writes there.
    pub(crate) fn directions(&self) -> (bool, bool) {
        (self.change != Change::Store, self.change != Change::None)
    }

    /// Whether later accesses of the device come after it.
    pub(crate) fn acquires(&self) -> bool {
        self.order.acquires() && self.scope.is_wide()
    }

    /// The address of each work-item, whose register is the first of these operands.
    pub(crate) fn addresses(&self, values: &[(Type, Slot)], registers: &Registers) -> Lanes {
        let mut addresses = values
            .first()
            .map_or([0; LANES], |&(_, slot)| registers.lanes(slot));
        for address in &mut addresses {
            *address = address.wrapping_add_signed(self.offset);
        }
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read() {
        let cas = "atom.acq_rel.gpu.global.cas.b128 {=0, =1}, [@0+-16], {@1, @2}, {@3, @4}";
        let read = Quad::read(cas, 2, 5).expect("an operation");
        assert_eq!(
            (read.change, read.order, read.offset),
            (Change::CompareExchange, MemoryOrder::AcquireRelease, -16)
        );
        assert_eq!(Quad::read(cas, 2, 4), None, "an operand is missing");
        let store = Quad::read("st.release.cta.shared.b128 [@0], {@1, @2}", 0, 3).expect("an operation");
        assert_eq!((store.change, store.space), (Change::Store, Space::Shared));
        assert_eq!(
            Quad::read("atom.global.add.b128 {=0, =1}, [@0], {@1, @2}", 2, 3),
            None
        );
    }
}
