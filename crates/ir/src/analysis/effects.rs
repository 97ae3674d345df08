//! Effects that loads must not cross without a reason: writes, and operations that make other work-items' writes visible.

use std::collections::HashSet;

use crate::ir::{CacheUse, Dependency, Op, OpKind, Place, Region, Touches, Value};

/// Something a load may not be moved across without a reason.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A write through this pointer.
    Write(Value, Place),
    /// A barrier.
    Barrier(Place),
    /// A fence or atomic operation that acquires: others' earlier releases are visible from here on.
    Acquire(Place),
    /// A volatile or relaxed read of others' writes: programs wait for a flag this way, and then read the data that it guards.
    Observation(Place),
    /// A wait for the previous launch: its writes are visible from here on, even in memory that this launch only reads.
    LaunchBefore(Place),
    /// A carried instruction, which may write anything or order others' writes.
    Carried(Place),
}

/// Every operand of the operations in a region.
pub(super) fn operands(region: &Region) -> HashSet<Value> {
    let mut used = HashSet::new();
    region.walk(&mut |op| {
        op.kind.for_each_operand(|operand| {
            used.insert(operand);
        });
    });
    used
}

/// Adds the effects of an operation itself, without its regions. `is_used` says whether a value is used; only results of atomic
/// operations are queried.
pub(super) fn add(op: &Op, is_used: impl Fn(Value) -> bool, into: &mut Vec<Effect>) {
    match &op.kind {
        OpKind::Load {
            cache: CacheUse::Volatile,
            ..
        } => into.push(Effect::Observation(op.place)),
        OpKind::Store { ptr, .. } => into.push(Effect::Write(*ptr, op.place)),
        OpKind::Copy { to, .. } => into.push(Effect::Write(*to, op.place)),
        OpKind::Atomic {
            op: atomic,
            ptr,
            order,
            ..
        } => {
            if atomic.writes() {
                into.push(Effect::Write(*ptr, op.place));
            }
            if order.acquires() {
                into.push(Effect::Acquire(op.place));
            } else if op.results.iter().any(|&result| is_used(result)) {
                into.push(Effect::Observation(op.place));
            }
        }
        OpKind::Fence(order, _) if order.acquires() => into.push(Effect::Acquire(op.place)),
        OpKind::Barrier | OpKind::GroupVote(..) | OpKind::Meet(_) => into.push(Effect::Barrier(op.place)),
        OpKind::Opaque(what, _) if what.orders || what.touches == Touches::Anything => {
            into.push(Effect::Carried(op.place));
        }
        OpKind::Depend(Dependency::Wait) => into.push(Effect::LaunchBefore(op.place)),
        _ => {}
    }
}
