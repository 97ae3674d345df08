//! Bounds of integers, as unsigned numbers.
//!
//! Simple and cheap: from constants, identities of work-items, lengths of slices, and the operations
//! between. Values carried by loops are unbounded, unless a promise bounds them.

use std::cell::Cell;

use super::definitions::{Definition, Definitions};
use crate::ir::{BinaryOp, ConvertOp, Id, Kernel, NoWrapOp, OpKind, Type, Value, Wrap};

/// Every value an integer can take lies between these, both included, read as unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
}

impl Range {
    fn between(min: u64, max: u64) -> Range {
        Range { min, max }
    }

    fn up_to(max: u64) -> Range {
        Range::between(0, max)
    }

    fn one(number: u64) -> Range {
        Range::between(number, number)
    }

    /// Of an operation that grows with its operand.
    fn map(self, operation: impl Fn(u64) -> u64) -> Range {
        Range::between(operation(self.min), operation(self.max))
    }

    /// Of an operation that grows with both operands.
    fn with(self, other: Range, operation: impl Fn(u64, u64) -> u64) -> Range {
        Range::between(operation(self.min, other.min), operation(self.max, other.max))
    }
}

/// The greatest work-group that any device here takes.
pub(crate) const MAX_GROUP_SIZE: u64 = 1024;

/// Values looked at before nothing is known: expressions that share parts would take exponential time.
const VISITS: u32 = 200;

/// The range of an integer value.
pub fn range(kernel: &Kernel, definitions: &Definitions, value: Value) -> Range {
    bounded(kernel, definitions, value, &Cell::new(VISITS))
}

fn bounded(kernel: &Kernel, definitions: &Definitions, value: Value, visits: &Cell<u32>) -> Range {
    let ty = kernel.ty(value);
    let left = visits.get();
    visits.set(left.saturating_sub(1));
    let full = Range::up_to(ty.mask());
    if let Some(bits) = kernel.as_constant(value) {
        return Range::one(bits);
    }
    if let Some(element) = length_of(kernel, value) {
        // Rust's own rule: no object is larger than isize::MAX bytes.
        return Range::up_to(i64::MAX as u64 / u64::from(element.bytes().max(1)));
    }
    let (Some(Definition::Result { kind, .. }), true) = (definitions.get(value), left > 0) else {
        return full;
    };
    let of = |value: &Value| bounded(kernel, definitions, *value, visits);
    // A result that may not fit the type may wrap: then nothing is known.
    let fitting = |min: Option<u64>, max: Option<u64>| match (min, max) {
        (Some(min), Some(max)) if max <= ty.mask() => Range::between(min, max),
        _ => full,
    };
    match kind {
        OpKind::Id(id) => id_range(kernel, *id),
        OpKind::Convert(ConvertOp::ExtendU, a) => of(a),
        OpKind::Convert(ConvertOp::ExtendS, a) => {
            let a_range = of(a);
            let sign = kernel.ty(*a).mask() >> 1;
            if a_range.max <= sign { a_range } else { full }
        }
        OpKind::Convert(ConvertOp::Truncate, a) => {
            let a_range = of(a);
            if a_range.max <= ty.mask() { a_range } else { full }
        }
        OpKind::Binary(BinaryOp::Add, a, b) => {
            let (a, b) = (of(a), of(b));
            fitting(a.min.checked_add(b.min), a.max.checked_add(b.max))
        }
        OpKind::Binary(BinaryOp::Mul, a, b) => {
            let (a, b) = (of(a), of(b));
            fitting(a.min.checked_mul(b.min), a.max.checked_mul(b.max))
        }
        OpKind::NoWrap(op, Wrap::NotUnsigned | Wrap::Neither, a, b) => {
            let (a, b) = (of(a), of(b));
            match op {
                NoWrapOp::Add => a.with(b, |a, b| a.saturating_add(b).min(ty.mask())),
                NoWrapOp::Mul => a.with(b, |a, b| a.saturating_mul(b).min(ty.mask())),
                NoWrapOp::Sub => Range::between(a.min.saturating_sub(b.max), a.max.saturating_sub(b.min)),
            }
        }
        OpKind::Binary(BinaryOp::And, a, b) => Range::up_to(of(a).max.min(of(b).max)),
        OpKind::Binary(BinaryOp::MinU, a, b) => of(a).with(of(b), u64::min),
        OpKind::Binary(BinaryOp::MaxU, a, b) => of(a).with(of(b), u64::max),
        OpKind::Binary(BinaryOp::ShrU, a, b) => match kernel.as_constant(*b) {
            Some(count) if count < 64 => of(a).map(|number| number >> count),
            _ => full,
        },
        OpKind::Binary(BinaryOp::Shl, a, b) => match kernel.as_constant(*b) {
            Some(count) if count < 63 => {
                let (a, factor) = (of(a), 1u64 << count);
                fitting(a.min.checked_mul(factor), a.max.checked_mul(factor))
            }
            _ => full,
        },
        OpKind::Binary(BinaryOp::DivU, a, b) => match kernel.as_constant(*b) {
            Some(divisor) if divisor > 0 => of(a).map(|number| number / divisor),
            _ => Range::up_to(of(a).max),
        },
        OpKind::Binary(BinaryOp::RemU, a, b) => match kernel.as_constant(*b) {
            Some(divisor) if divisor > 0 => Range::up_to(of(a).max.min(divisor - 1)),
            _ => Range::up_to(of(a).max),
        },
        OpKind::Select(_, a, b) => {
            let (a, b) = (of(a), of(b));
            Range::between(a.min.min(b.min), a.max.max(b.max))
        }
        _ => full,
    }
}

/// The element type of a slice whose length this parameter is.
fn length_of(kernel: &Kernel, value: Value) -> Option<Type> {
    let facts = kernel.params.iter().filter_map(|param| param.facts);
    facts
        .filter(|facts| facts.length == Some(value))
        .map(|facts| facts.element)
        .next()
}

fn id_range(kernel: &Kernel, id: Id) -> Range {
    let group = |dimension: u8| match kernel.group_size {
        Some(size) => {
            let size = u64::from(size[usize::from(dimension.min(2))]);
            Range::one(size)
        }
        None => Range::between(1, MAX_GROUP_SIZE),
    };
    // CUDA's limits of a grid, the widest of the devices here: 2³¹ − 1 in x, 65,535 in y and z.
    let count = |dimension: u8| if dimension == 0 { (1 << 31) - 1 } else { 65_535 };
    match id {
        Id::Local(dimension) => Range::up_to(group(dimension).max - 1),
        Id::GroupSize(dimension) => group(dimension),
        Id::Group(dimension) => Range::up_to(count(dimension) - 1),
        Id::GroupCount(dimension) => Range::between(1, count(dimension)),
        Id::Lane => Range::up_to(31),
        Id::SubGroup => Range::up_to(MAX_GROUP_SIZE / 8 - 1),
        Id::SubGroupSize | Id::MaxSubGroupSize => Range::between(1, 32),
        Id::SubGroupCount => Range::between(1, MAX_GROUP_SIZE / 8),
    }
}
