//! Atomic operations and fences, and what they order for the checks.
//!
//! Lanes take their turn, the lowest first; sub-groups run one after the other up to the next barrier, in the
//! order of their numbers. So a work-item that waits for one of a later sub-group of its work-group, or of a
//! later work-group, waits for ever, and is reported as a loop without end.
//!
//! What is ordered is taken generously: whoever acquires counts as having seen all that ran before, whether
//! or not the other side released it. So no race is reported that is none, and some are not reported.

use std::sync::PoisonError;

use super::access::Location;
use super::fault::Access;
use super::lane_op::SlotList;
use super::lanes::{Mask, Registers, Slot};
use super::work_group::{SubGroup, WorkGroup};
use crate::Result;
use crate::ir::{AtomicOp, Kernel, MemoryOrder, MemoryScope, OpKind, Place, Space, Type, Value, eval};

/// An atomic operation's fields.
#[derive(Clone, Copy)]
pub(super) struct Atomic<'o> {
    pub op: AtomicOp,
    pub to: Option<Slot>,
    pub ty: Type,
    pub space: Space,
    pub ptr: Slot,
    pub values: &'o SlotList,
    pub order: MemoryOrder,
    pub scope: MemoryScope,
}

impl WorkGroup<'_> {
    /// Runs an atomic operation on each lane of `mask`, the lowest first.
    pub(super) fn atomic(
        &mut self,
        atomic: &Atomic<'_>,
        registers: &mut Registers,
        sub_group: &SubGroup,
        mask: Mask,
        place: Place,
    ) -> Result<()> {
        let Atomic { op, ty, order, .. } = *atomic;
        let addresses = *registers.get(atomic.ptr);
        let size = ty.bytes();
        let state = self.state;
        let access = Access::Atomic {
            reads: op.has_result(),
            writes: op.writes(),
        };
        for lane in mask.lanes() {
            let item = sub_group.work_item(lane);
            let at = Location::new(atomic.space, addresses[lane]);
            let offset = self.access(access, at, size, item, place)?;
            let mut operands = [0; 2];
            for (operand, &slot) in operands.iter_mut().zip(atomic.values.as_slice()) {
                *operand = registers.get(slot)[lane];
            }
            // Work-groups on other threads may be at the same element.
            let lock = (at.space == Space::Global)
                .then(|| state.atomics[(at.address / 8) as usize % state.atomics.len()].lock());
            let lock = lock.map(|lock| lock.unwrap_or_else(PoisonError::into_inner));
            let old = self.read(at, offset, size, item);
            if op.writes() {
                self.write(at, offset, size, eval::atomic(op, ty, old, operands), item);
            }
            drop(lock);
            if let Some(to) = atomic.to {
                registers.get_mut(to)[lane] = old;
            }
            self.order(order, atomic.scope, item);
        }
        Ok(())
    }

    /// Notes what a fence or atomic operation of a work-item orders.
    pub(super) fn order(&mut self, order: MemoryOrder, scope: MemoryScope, item: u32) {
        let Some(checks) = &mut self.checks else {
            return;
        };
        if order == MemoryOrder::Relaxed {
            return;
        }
        checks.is_ordered |= scope == MemoryScope::Device;
        if order.acquires()
            && let Some(acquired) = checks.acquired.get_mut(item as usize)
        {
            checks.clock += 1;
            *acquired = checks.clock;
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
            _ => false,
        };
    });
    found
}

/// Whether what a kernel computes may depend on the order in which its work-groups run: it uses what atomic
/// operations on global memory find there, or does not only what commutes. Such kernels run their
/// work-groups one after the other, so that results are the same on any number of threads.
pub(super) fn depends_on_order(kernel: &Kernel) -> bool {
    let mut used: Vec<Value> = Vec::new();
    let mut found = false;
    let mut results: Vec<Value> = Vec::new();
    kernel.body.walk(&mut |op| {
        op.kind.for_each_operand(|value| used.push(value));
        if let OpKind::Atomic { op: atomic, ptr, .. } = &op.kind
            && kernel.ty(*ptr) != Type::Ptr(Space::Shared)
        {
            found |= !atomic.commutes();
            results.extend(&op.results);
        }
    });
    used.sort_unstable();
    found || results.iter().any(|result| used.binary_search(result).is_ok())
}
