//! Effects that loads must not cross without a reason: writes, and operations that make other work-items' writes visible.

use std::collections::HashSet;

use crate::ir::effects::{Access, Awaits, Memory};
use crate::ir::{Kernel, Op, OpKind, Place, Region, Value};

/// Something a load may not be moved across without a reason.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A write of this many bytes through this pointer.
    Write(Value, u32, Place),
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

/// The most bytes that an operation writes at its pointer.
fn written(kernel: &Kernel, op: &Op) -> u32 {
    match &op.kind {
        OpKind::Store { values, .. } | OpKind::Atomic { values, .. } => {
            let all = values.iter().chain(&op.results);
            all.map(|&value| kernel.ty(value).bytes()).sum()
        }
        _ => u32::MAX,
    }
}

/// Adds the effects of an operation itself, without its regions. `is_used` says whether a value is used; only results of atomic
/// operations are queried.
pub(super) fn add(kernel: &Kernel, op: &Op, is_used: impl Fn(Value) -> bool, into: &mut Vec<Effect>) {
    let (effects, place) = (op.kind.effects(), op.place);
    if effects.writes == Memory::Any || effects.awaits == Awaits::Anything {
        return into.push(Effect::Carried(place));
    }
    if let Memory::At(pointer) = effects.writes {
        into.push(Effect::Write(pointer, written(kernel, op), place));
    }
    let is_observed =
        || effects.access == Access::Volatile || op.results.iter().any(|&result| is_used(result));
    if effects.is_barrier() {
        into.push(Effect::Barrier(place));
    } else if effects.acquires() {
        into.push(Effect::Acquire(place));
    } else if effects.awaits == Awaits::Launch {
        into.push(Effect::LaunchBefore(place));
    } else if effects.is_strong_read() && is_observed() {
        into.push(Effect::Observation(place));
    }
}
