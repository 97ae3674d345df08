//! Known trailing zero bits: the power of two that divides a value.

use std::cell::Cell;
use std::collections::HashSet;

use super::definitions::{Definition, Definitions};
use crate::ir::{BinaryOp, ConvertOp, Kernel, NoWrapOp, OpKind, UnaryOp, Value};

/// Values looked at before nothing is known: expressions that share parts would take exponential time.
const VISITS: u32 = 200;

/// At least this many low bits of the value are zero, for all arguments of the kernel.
pub(crate) fn low_zeros(kernel: &Kernel, definitions: &Definitions, value: Value) -> u32 {
    bounded(kernel, definitions, value, &Cell::new(VISITS))
}

/// Whether a pointer is a multiple of this many bytes, a power of two, in every iteration, where parameters are as aligned as their
/// facts say. False where that is not known.
pub fn is_aligned(kernel: &Kernel, definitions: &Definitions, pointer: Value, bytes: u64) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![pointer];
    // A pointer that comes from several places is a multiple if it is one from each.
    while let Some(pointer) = work.pop() {
        let pointer = definitions.in_front_of_edges(pointer);
        if !seen.insert(pointer) {
            continue;
        }
        if seen.len() > VISITS as usize {
            return false;
        }
        if let Some(param) = kernel.param_of(pointer) {
            match param.facts {
                Some(facts) if facts.align > 0 && u64::from(facts.align).is_multiple_of(bytes) => continue,
                _ => return false,
            }
        }
        match definitions.get(pointer) {
            Some(Definition::LoopParam { initial, next, .. }) => {
                work.push(*initial);
                work.extend(next);
            }
            Some(Definition::Result { kind, passed, .. }) => match kind {
                OpKind::ArrayAddress(array)
                    if u64::from(kernel.arrays[*array].align).is_multiple_of(bytes) => {}
                OpKind::Address {
                    base,
                    index,
                    scale,
                    offset,
                } if (*offset as u64).is_multiple_of(bytes) => {
                    let index = low_zeros(kernel, definitions, definitions.in_front_of_edges(*index));
                    if scale.trailing_zeros() + index < bytes.trailing_zeros() {
                        return false;
                    }
                    work.push(*base);
                }
                OpKind::Convert(ConvertOp::ToGeneric | ConvertOp::FromGeneric, from) => work.push(*from),
                OpKind::Select(_, a, b) => work.extend([*a, *b]),
                OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => work.extend(passed),
                _ => return false,
            },
            None => return false,
        }
    }
    true
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
