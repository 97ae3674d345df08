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
use super::lanes::Registers;
use super::matrix::Run;
use super::order::Strong;
use super::shadow::Strength;
use super::work_group::{Runners, WorkGroup};
use crate::Result;
use crate::ir::Space;
use crate::ir::carried::{Change, QUAD_BYTES, Quad};

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
            let offset = self.access(access.of(item, place), at, QUAD_BYTES)?;
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
