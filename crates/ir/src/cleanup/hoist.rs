//! Loop-invariant code motion.
//!
//! Before: `loop { x = add a, b; … }` where `a` and `b` are defined outside.
//! After: `x = add a, b; loop { … }`.
//!
//! Pure operations are total, so it does not matter that the loop may not run at all. Out of an `if`
//! inside the loop only cheap operations move: the `if` may be there to avoid the others.

use std::mem;

use cranelift_entity::EntitySet;

use crate::ir::{BinaryOp, Kernel, Op, OpKind, Region, UnaryOp, Value};

/// Moves invariant operations out of every loop of the kernel, inner loops first.
pub(crate) fn hoist(kernel: &mut Kernel) {
    let mut body = mem::take(&mut kernel.body);
    region(&mut body);
    kernel.body = body;
}

fn region(region_: &mut Region) {
    let mut ops = Vec::with_capacity(region_.ops.len());
    for mut op in mem::take(&mut region_.ops) {
        for inner in op.kind.regions_mut() {
            region(inner);
        }
        if let OpKind::Loop { params, body, .. } = &mut op.kind {
            let mut inside = body.defined(params);
            extract(body, &mut inside, &mut ops, false);
        }
        ops.push(op);
    }
    region_.ops = ops;
}

/// Moves the invariant operations of a region to `outside`.
fn extract(region: &mut Region, inside: &mut EntitySet<Value>, outside: &mut Vec<Op>, conditional: bool) {
    let mut ops = Vec::with_capacity(region.ops.len());
    for mut op in mem::take(&mut region.ops) {
        let mut invariant = op.kind.is_pure() && !(conditional && is_expensive(&op.kind));
        op.kind
            .for_each_operand(|operand| invariant &= !inside.contains(operand));
        if invariant {
            for &result in &op.results {
                inside.remove(result);
            }
            outside.push(op);
            continue;
        }
        let conditional = conditional || !matches!(op.kind, OpKind::Block { .. });
        for inner in op.kind.regions_mut() {
            extract(inner, inside, outside, conditional);
        }
        ops.push(op);
    }
    region.ops = ops;
}

/// Whether an operation is worth a branch around it.
fn is_expensive(kind: &OpKind) -> bool {
    use BinaryOp::{DivS, DivU, FDiv, RemS, RemU};
    matches!(
        kind.plain(),
        OpKind::Unary(UnaryOp::Sqrt, _) | OpKind::Binary(DivS | DivU | RemS | RemU | FDiv, ..)
    )
}
