//! Atomic operations and fences.
//!
//! Lanes take their turn, the lowest first. A work-item that waits for one of its own sub-group waits for ever; others get
//! their turn ([`super::schedule`]). The ordering effects are in [`super::order`].

use std::sync::PoisonError;

use super::access::Location;
use super::checks::Global;
use super::fault::Access;
use super::lane_op::{LaneOp, LaneOpKind};
use super::lanes::{Mask, Registers};
use super::order::{Scopes, Strong};
use super::shadow::Strength;
use super::work_group::{SubGroup, WorkGroup};
use crate::ir::carried::{Carried, PhaseOperation};
use crate::ir::effects::{self, Memory};
use crate::ir::{AtomicOp, Kernel, MemoryOrder, MemoryScope, OpKind, Param, Races, Space, Value, eval};
use crate::{Error, Result};

impl WorkGroup<'_> {
    /// Runs an atomic operation on each lane of `mask`, the lowest first.
    pub(super) fn atomic(
        &mut self,
        atomic: &LaneOp,
        registers: &mut Registers,
        sub_group: &SubGroup,
        mask: Mask,
    ) -> Result<()> {
        let place = atomic.place;
        let LaneOpKind::Atomic {
            op,
            ref to,
            ty,
            space,
            ptr,
            ref values,
            order,
            scope,
        } = atomic.kind
        else {
            return Err(Error::bug("an operation that is none of the atomic ones"));
        };
        let addresses = registers.lanes(ptr);
        let size = ty.bytes();
        let state = self.state;
        let strength = Strength::strong(scope, size);
        let access = Access::Atomic {
            reads: op.has_result(),
            writes: op.writes(),
            strength,
        };
        // One of several values is as many operations.
        let several = op.can_be_several();
        let parts = match several {
            true => to.length().max(values.length()),
            false => 1,
        };
        for (lane, part) in mask
            .lanes()
            .flat_map(|lane| (0..parts).map(move |part| (lane, part as usize)))
        {
            let item = sub_group.work_item(lane);
            let at = Location::new(state, space, addresses[lane]);
            if part == 0 && parts > 1 {
                self.access(access.of(item, place), at, size * parts)?;
            }
            let at = Location::new(
                state,
                space,
                addresses[lane].wrapping_add(u64::from(size) * part as u64),
            );
            let offset = self.access(access.of(item, place), at, size)?;
            let mut operands = [0; 2];
            let first = if several { part } else { 0 };
            for (operand, &slot) in operands.iter_mut().zip(values.as_slice().iter().skip(first)) {
                *operand = registers.get(slot)[lane];
            }
            // Work-groups on other threads may be at the same element.
            let lock = (at.space == Space::Global)
                .then(|| state.atomics[(at.address / 8) as usize % state.atomics.len()].lock());
            let lock = lock.map(|lock| lock.unwrap_or_else(PoisonError::into_inner));
            let old = self.read(at, offset, size, item);
            let writes = op.writes() && (op != AtomicOp::CompareExchange || old == operands[0] & ty.mask());
            if op.writes() {
                self.write(at, offset, size, eval::atomic(op, ty, old, operands), item);
            }
            drop(lock);
            self.polled(at.address, old);
            let strong = Strong {
                order,
                scope,
                strength,
                reads: op.has_result(),
                writes,
            };
            self.operate(strong, at, item);
            if let Some(&to) = to.as_slice().get(part) {
                registers.get_mut(to)[lane] = old;
            }
        }
        if order.releases() {
            self.tick();
        }
        Ok(())
    }

    /// Volatile loads or stores of values of `size` bytes have been made, on the lanes of `mask`: relaxed operations for
    /// the whole system.
    pub(super) fn volatile(
        &mut self,
        addresses: &[u64],
        space: Space,
        access: Access,
        sub_group: &SubGroup,
        mask: Mask,
    ) {
        let strong = Strong {
            order: MemoryOrder::Relaxed,
            scope: MemoryScope::Device,
            strength: access.strength(),
            reads: access.reads(),
            writes: access.writes(),
        };
        for lane in mask.lanes() {
            let at = Location::new(self.state, space, addresses[lane]);
            self.operate(strong, at, sub_group.work_item(lane));
        }
    }

    /// Notes the order that a strong operation of a work-item establishes.
    pub(super) fn operate(&mut self, strong: Strong, at: Location, item: u32) {
        let Some(checks) = &mut self.checks else {
            return;
        };
        let Some(order) = &mut checks.order else {
            return;
        };
        let location = match at.space {
            Space::Private => return,
            Space::Shared => match self.state.shared.offset(at.address, 1) {
                Some(offset) => checks.locations.entry(offset).or_default(),
                None => return,
            },
            Space::Global | Space::Generic => match &mut checks.global {
                // No work-group sees others' writes here.
                Global::Own(_) => return,
                Global::Common(histories) => {
                    let histories = histories.get_or_insert_with(|| self.state.histories());
                    histories.locations.entry(at.address).or_default()
                }
            },
        };
        order.operate(strong, location, item, checks.time);
    }

    /// The work-items of `mask` fence.
    pub(super) fn fence(&mut self, order: MemoryOrder, scope: MemoryScope, sub_group: &SubGroup, mask: Mask) {
        let Some(checks) = &mut self.checks else {
            return;
        };
        if let Some(known) = &mut checks.order {
            for lane in mask.lanes() {
                known.fence(order, scope, sub_group.work_item(lane), checks.time);
            }
            checks.tick();
        }
    }

    pub(super) fn tick(&mut self) {
        if let Some(checks) = &mut self.checks {
            checks.tick();
        }
    }
}

/// Whether a kernel orders anything by atomic operations or fences.
pub(super) fn acquires(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| {
        found |= match &op.kind {
            OpKind::Atomic { order, .. } | OpKind::Fence(order, _) => order.acquires(),
            OpKind::Meet(_) => true,
            OpKind::Opaque(what, _) => matches!(*what.does, Carried::Phase(_)),
            _ => false,
        };
    });
    found
}

/// Which scopes a kernel's orders have.
pub(super) fn scopes(kernel: &Kernel) -> Scopes {
    let mut scopes = Scopes::default();
    kernel.body.walk(&mut |op| {
        scopes.narrow |= match &op.kind {
            OpKind::Atomic { order, scope, .. } => *order != MemoryOrder::Relaxed && !scope.is_wide(),
            OpKind::Fence(_, scope) => !scope.is_wide(),
            OpKind::Opaque(what, _) => matches!(*what.does, Carried::Phase(_)),
            _ => false,
        };
    });
    scopes
}

/// Whether a kernel's results may depend on the order in which its work-groups run: it has intended races, uses the results of
/// atomic operations on global memory, has operations that do not commute, or reads others' writes by volatile loads. Such
/// kernels run their work-groups on one thread, so that results are the same on any number of them; in all others no work-group
/// can see another's writes.
pub(super) fn depends_on_order(kernel: &Kernel) -> bool {
    let mut used: Vec<Value> = Vec::new();
    let (mut found, mut writes, mut looks) = (false, false, false);
    let mut results: Vec<Value> = Vec::new();
    let is_global = |memory: Memory| match memory {
        Memory::At(pointer) => !matches!(kernel.ty(pointer).space(), Some(Space::Shared | Space::Private)),
        Memory::Any => true,
        Memory::None | Memory::Shared => false,
    };
    kernel.body.walk(&mut |op| {
        op.kind.for_each_operand(|value| used.push(value));
        let effects = op.kind.effects();
        let written = is_global(effects.writes);
        writes |= written;
        match effects.access {
            effects::Access::Plain => {}
            effects::Access::Volatile if written => found = true,
            effects::Access::Volatile => looks |= is_global(effects.reads),
            effects::Access::Atomic if written || is_global(effects.reads) => {
                found |= !matches!(&op.kind, OpKind::Atomic { op, .. } if op.commutes());
                results.extend(&op.results);
            }
            effects::Access::Atomic => {}
        }
    });
    used.sort_unstable();
    let races = |param: &Param| param.facts.is_some_and(|facts| facts.races != Races::None);
    found |= kernel.params.iter().any(races);
    found || looks && writes || results.iter().any(|result| used.binary_search(result).is_ok())
}

/// Whether a work-item may wait in a loop for others.
pub(super) fn may_spin(kernel: &Kernel) -> bool {
    fn is_strong_read(kind: &OpKind) -> bool {
        match kind {
            OpKind::Opaque(what, _) => matches!(
                &*what.does,
                Carried::Phase(step) if matches!(step.kind, PhaseOperation::Test { .. })
            ),
            kind => kind.effects().is_strong_read(),
        }
    }
    let mut found = false;
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { body, .. } = &op.kind {
            body.walk(&mut |op| found |= is_strong_read(&op.kind));
        }
    });
    found
}
