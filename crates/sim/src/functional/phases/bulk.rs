//! Bulk copies that complete on a barrier: how they start, and when their data come.
//!
//! The parent's documentation says when that is.

use super::state::State;
use super::{PIECE, Runs};
use crate::Result;
use crate::functional::access::Location;
use crate::functional::fault;
use crate::functional::in_flight::{BulkCopy, CopyInFlight};
use crate::functional::order::Strong;
use crate::functional::shadow::Strength;
use crate::functional::work_group::WorkGroup;
use crate::ir::carried::{BARRIER_BYTES, Operand, PhaseOperation, PhaseStep, Reference};
use crate::ir::{MemoryOrder, MemoryScope, Space};
use crate::violation::Violation;

impl WorkGroup<'_> {
    /// Starts a copy of `bytes` bytes from `from` to `to` that completes on the barrier at `at`.
    pub(super) fn start_bulk_copy(
        &mut self,
        at: Location,
        (to, from): (Reference, Reference),
        bytes: u64,
        scope: MemoryScope,
        runs: &Runs<'_>,
    ) -> Result<u64> {
        let (to, from) = (runs.location(to, self), runs.location(from, self));
        let piece = u64::from(PIECE);
        let addresses = [to.address, from.address, bytes];
        if to.space != Space::Shared || addresses.iter().any(|number| !number.is_multiple_of(piece)) {
            let what = format!(
                "{} starts a bulk copy of {bytes} bytes: it goes to shared memory, and its addresses and its size are multiples of {PIECE}",
                self.describe(runs.item)
            );
            return Err(fault::error(
                self.state.kernel,
                runs.place,
                Violation::Misused(what),
            ));
        }
        let barrier = self
            .state
            .shared
            .offset(at.address, BARRIER_BYTES)
            .unwrap_or_default();
        let mut pieces = Vec::new();
        for start in (0..bytes).step_by(PIECE as usize) {
            let (target, source) = (to.address + start, from.address + start);
            let offset = self.begin_copy(target, source, PIECE, runs.item, runs.place)?;
            pieces.push(CopyInFlight {
                number: 0,
                target: offset,
                target_address: target,
                source,
                bytes: PIECE,
                place: runs.place,
            });
        }
        self.bulk_copies.push(BulkCopy {
            barrier,
            asked: None,
            item: runs.item,
            bytes,
            scope,
            pieces,
        });
        Ok(0)
    }

    /// Delivers the copies that complete on a barrier, except those that were not waited for before.
    pub(super) fn deliver_to(&mut self, at: Location, offset: u64, runs: &Runs<'_>) -> Result<()> {
        let now = self.questions;
        for copy in self.bulk_copies.iter_mut().filter(|copy| copy.barrier == offset) {
            copy.asked.get_or_insert(now);
        }
        let is_due = |copy: &BulkCopy| copy.barrier == offset && copy.asked.is_some_and(|asked| asked < now);
        while let Some(found) = self.bulk_copies.iter().position(is_due) {
            let copy = self.bulk_copies.remove(found);
            for piece in &copy.pieces {
                self.deliver(piece, copy.item);
            }
            let runs = Runs {
                item: copy.item,
                place: copy.pieces.first().map_or(runs.place, |piece| piece.place),
                ..*runs
            };
            let step = PhaseStep {
                kind: PhaseOperation::Complete(Operand::Number(copy.bytes)),
                barrier: None,
                order: MemoryOrder::Release,
                scope: copy.scope,
            };
            let old = self.read(at, offset, BARRIER_BYTES, copy.item);
            let (new, _) = self.changed(&step, State::of(old), old, at, &runs)?;
            self.write(at, offset, BARRIER_BYTES, new.bits(), copy.item);
            let strong = Strong {
                order: step.order,
                scope: copy.scope,
                strength: Strength::strong(copy.scope, BARRIER_BYTES),
                reads: true,
                writes: true,
            };
            self.operate(strong, at, copy.item);
            self.tick();
        }
        Ok(())
    }

    /// Checks, when all work-items have ended, that no bulk copy is in flight.
    ///
    /// # Errors
    /// A bulk copy was not waited for.
    pub(in crate::functional) fn check_bulk_copies(&self) -> Result<()> {
        let Some(copy) = self.bulk_copies.first().filter(|_| self.checks.is_some()) else {
            return Ok(());
        };
        let Some(piece) = copy.pieces.first() else {
            return Ok(());
        };
        let (region, offset) = self.region(Space::Shared, piece.target_address);
        let what = format!(
            "{} ends without anybody waiting for its bulk copy to {}",
            self.describe(copy.item),
            region.element(offset)
        );
        Err(fault::error(
            self.state.kernel,
            piece.place,
            Violation::InFlight(what),
        ))
    }
}
