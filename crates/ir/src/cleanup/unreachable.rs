//! Removal of unreachable code.
//!
//! ```text
//! before                              after
//! loop 'l { …; return }               loop 'l { …; return }
//! %x = load %p        (never run)     return
//! store %q, %x
//! ```
//!
//! A loop, block or `if` without a jump to its end is the last operation that its region runs. A back end has no register for
//! the results of such an operation.

use cranelift_entity::EntitySet;

use crate::ir::{Kernel, Label, Op, OpKind, Region};

/// Removes unreachable operations in the whole kernel.
pub(super) fn remove(kernel: &mut Kernel) {
    prune(&mut kernel.body, &mut EntitySet::new());
}

/// Removes them from a region; `left` gets the target labels of the remaining jumps.
fn prune(region: &mut Region, left: &mut EntitySet<Label>) {
    for at in 0..region.ops.len() {
        let op = &mut region.ops[at];
        if let OpKind::Break(label, _) = op.kind {
            left.insert(label);
        }
        for inner in op.kind.regions_mut() {
            prune(inner, left);
        }
        if op.kind.label().is_some_and(|label| !left.contains(label)) {
            let end = Op::new(OpKind::Return, Vec::new(), op.place);
            region.ops.truncate(at + 1);
            region.ops.push(end);
            return;
        }
    }
}
