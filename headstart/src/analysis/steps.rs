//! What a loop's parameter does from one iteration to the next.
//!
//! ```text
//! loop 'j (%i, %p) { …; continue (add %i, 1), (address %p + 0 * 1 + 128) }      steps 1 and 128 bytes
//! ```

use std::collections::HashMap;

use super::loops::{Inside, Step};
use crate::ir::{BinaryOp, Kernel, NoWrapOp, OpKind, Value, eval};

/// The step of a parameter that every `continue` agrees on.
pub(super) fn common_step(
    kernel: &Kernel,
    inside: &HashMap<Value, Inside>,
    outside: &impl Fn(Value) -> bool,
    param: Value,
    index: usize,
    continues: &[Vec<Value>],
) -> Step {
    let mut steps = continues
        .iter()
        .map(|args| step_of(kernel, inside, outside, param, args[index]));
    match steps.next() {
        Some(first) if steps.all(|step| step == first) => first,
        _ => Step::Carried,
    }
}

/// How `next` comes from `param`.
pub(super) fn step_of(
    kernel: &Kernel,
    inside: &HashMap<Value, Inside>,
    outside: &impl Fn(Value) -> bool,
    param: Value,
    next: Value,
) -> Step {
    if next == param {
        return Step::Invariant;
    }
    let Some(Inside {
        kind,
        in_inner_loop: false,
        ..
    }) = inside.get(&next)
    else {
        return Step::Carried;
    };
    let ty = kernel.ty(param);
    let by = |step: Value, sign: i64| match kernel.as_constant(step) {
        Some(bits) => Step::Constant(eval::signed(ty, bits).wrapping_mul(sign)),
        None if outside(step) && sign == 1 => Step::Value {
            value: step,
            scale: 1,
        },
        None => Step::Carried,
    };
    match *kind {
        OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b) if a == param => {
            by(b, 1)
        }
        OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b) if b == param => {
            by(a, 1)
        }
        OpKind::Binary(BinaryOp::Sub, a, b) | OpKind::NoWrap(NoWrapOp::Sub, _, a, b) if a == param => {
            by(b, -1)
        }
        OpKind::Address {
            base,
            index,
            scale,
            offset,
        } if base == param => match kernel.as_constant(index) {
            Some(bits) => Step::Constant((bits.wrapping_mul(u64::from(scale)) as i64).wrapping_add(offset)),
            None if outside(index) && offset == 0 => Step::Value { value: index, scale },
            None => Step::Carried,
        },
        _ => Step::Carried,
    }
}
