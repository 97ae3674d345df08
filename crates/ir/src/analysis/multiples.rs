//! Known trailing zero bits: the power of two that divides a value.

use std::cell::Cell;

use super::definitions::Definitions;
use crate::ir::{BinaryOp, ConvertOp, Kernel, NoWrapOp, OpKind, UnaryOp, Value};

/// Values looked at before nothing is known: expressions that share parts would take exponential time.
const VISITS: u32 = 200;

/// At least this many low bits of the value are zero, for all arguments of the kernel.
pub(crate) fn low_zeros(kernel: &Kernel, definitions: &Definitions, value: Value) -> u32 {
    bounded(kernel, definitions, value, &Cell::new(VISITS))
}

fn bounded(kernel: &Kernel, definitions: &Definitions, value: Value, visits: &Cell<u32>) -> u32 {
    let width = kernel.ty(value).bits();
    let left = visits.get();
    visits.set(left.saturating_sub(1));
    if let Some(bits) = kernel.as_constant(value) {
        return bits.trailing_zeros().min(width);
    }
    let (Some(kind), true) = (definitions.op(value), left > 0) else {
        return 0;
    };
    let of = |value: Value| bounded(kernel, definitions, value, visits);
    let zeros = match *kind {
        OpKind::Binary(BinaryOp::Sub, a, b) | OpKind::NoWrap(NoWrapOp::Sub, _, a, b) => {
            let removed = |a, b| rest_removed(kernel, definitions, a, b);
            of(a).min(of(b)).max(removed(a, b)).max(removed(b, a))
        }
        OpKind::Binary(BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor, a, b)
        | OpKind::NoWrap(NoWrapOp::Add, _, a, b) => of(a).min(of(b)),
        OpKind::Binary(BinaryOp::And, a, b) => of(a).max(of(b)),
        OpKind::Binary(BinaryOp::Mul, a, b) | OpKind::NoWrap(NoWrapOp::Mul, _, a, b) => of(a) + of(b),
        OpKind::Binary(BinaryOp::Shl, a, count) => {
            of(a) + kernel.as_constant(count).map_or(0, |count| count.min(64) as u32)
        }
        OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS | ConvertOp::Truncate, a) => of(a),
        OpKind::Unary(UnaryOp::Neg, a) => of(a),
        OpKind::Select(_, a, b) => of(a).min(of(b)),
        _ => 0,
    };
    zeros.min(width)
}

/// `a - (a & 2ᵏ-1)`, or its negation: compilers' code for the part of a trip count that fills whole groups.
fn rest_removed(kernel: &Kernel, definitions: &Definitions, a: Value, b: Value) -> u32 {
    let Some(OpKind::Binary(BinaryOp::And, x, y)) = definitions.op(b) else {
        return 0;
    };
    let mask = match (*x == a, *y == a) {
        (true, _) => kernel.as_constant(*y),
        (_, true) => kernel.as_constant(*x),
        _ => None,
    };
    mask.map_or(0, |mask| mask.trailing_ones())
}
