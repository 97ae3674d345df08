//! Operations on 16 bytes at once that are carried as text: `atom.exch.b128`, `atom.cas.b128`, and loads and stores of `b128` with an
//! order.
//!
//! ```text
//! "atom.acq_rel.gpu.global.cas.b128 {=0, =1}, [@0+16], {@1, @2}, {@3, @4}" (i64, i64) (%p, %a, %b, %c, %d)
//! ```
//!
//! Values are pairs of 64 bits. Lanes take their turn, the lowest first, as in other [atomic operations](super::atomics).

use std::sync::PoisonError;

use super::access::Location;
use super::fault::Access;
use super::lanes::{LANES, Lanes, Registers, Slot};
use super::matrix::Run;
use super::order::Strong;
use super::shadow::Strength;
use super::work_group::{Runners, WorkGroup};
use crate::Result;
use crate::ir::{MemoryOrder, MemoryScope, Space, Type};

/// Bytes of a value.
pub(crate) const QUAD_BYTES: u32 = 16;

/// The change of the value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    Store,
    Exchange,
    CompareExchange,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quad {
    change: Change,
    order: MemoryOrder,
    scope: MemoryScope,
    /// Where an address leads that is no pointer.
    space: Space,
    /// Bytes from the address on.
    offset: i64,
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

impl WorkGroup<'_> {
    /// Runs an operation on 16 bytes on each lane of `mask`, the lowest first.
    ///
    /// # Errors
    /// An address leads nowhere, or the access races with another.
    pub(super) fn quad(&mut self, quad: &Quad, run: &Run<'_>, registers: &mut Registers) -> Result<()> {
        let Run {
            to,
            values,
            by: Runners { place, .. },
        } = *run;
        let (reads, writes) = quad.directions();
        let strength = Strength::strong(quad.scope, QUAD_BYTES);
        let access = Access::Atomic {
            reads,
            writes,
            strength,
        };
        let (ty, pointer) = values[0];
        for lane in run.by.mask.lanes() {
            let item = run.by.sub_group.work_item(lane);
            let given = |number: usize| {
                values
                    .get(number)
                    .map_or(0, |&(_, slot)| registers.get(slot)[lane])
            };
            let address = registers.get(pointer)[lane];
            let at = Location::of_operand(self.state, (ty, address), quad.space, quad.offset);
            let offset = self.access(access, at, QUAD_BYTES, item, place)?;
            // Work-groups on other threads may be at the same value.
            let lock = (at.space == Space::Global)
                .then(|| self.state.atomics[(at.address / 8) as usize % self.state.atomics.len()].lock());
            let lock = lock.map(|lock| lock.unwrap_or_else(PoisonError::into_inner));
            let old = [0, 8].map(|half| self.read(at, offset + half, 8, item));
            let new = match quad.change {
                Change::None => None,
                Change::Store | Change::Exchange => Some([given(1), given(2)]),
                Change::CompareExchange => (old == [given(1), given(2)]).then(|| [given(3), given(4)]),
            };
            for (half, bits) in [0, 8].into_iter().zip(new.into_iter().flatten()) {
                self.write(at, offset + half, 8, bits, item);
            }
            drop(lock);
            self.polled(at.address, old[0] ^ old[1].rotate_left(17));
            let strong = Strong {
                order: quad.order,
                scope: quad.scope,
                strength,
                reads,
                writes: new.is_some(),
            };
            self.operate(strong, at, item);
            for (&slot, bits) in to.iter().zip(old) {
                registers.get_mut(slot)[lane] = bits;
            }
        }
        if quad.order.releases() {
            self.tick();
        }
        Ok(())
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
