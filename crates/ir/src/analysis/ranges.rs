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
    let full = Range {
        min: 0,
        max: ty.mask(),
    };
    if let Some(bits) = kernel.as_constant(value) {
        return Range { min: bits, max: bits };
    }
    if let Some(element) = length_of(kernel, value) {
        // Rust's own rule: no object is larger than isize::MAX bytes.
        return Range {
            min: 0,
            max: i64::MAX as u64 / u64::from(element.bytes().max(1)),
        };
    }
    let (Some(Definition::Result { kind, .. }), true) = (definitions.get(value), left > 0) else {
        return full;
    };
    let of = |value: Value| bounded(kernel, definitions, value, visits);
    // A result that may not fit the type may wrap: then nothing is known.
    let fitting = |min: Option<u64>, max: Option<u64>| match (min, max) {
        (Some(min), Some(max)) if max <= ty.mask() => Range { min, max },
        _ => full,
    };
    match kind {
        OpKind::Id(id) => id_range(kernel, *id),
        OpKind::Convert(ConvertOp::ExtendU, a) => of(*a),
        OpKind::Convert(ConvertOp::ExtendS, a) => {
            let a_range = of(*a);
            let sign = kernel.ty(*a).mask() >> 1;
            if a_range.max <= sign { a_range } else { full }
        }
        OpKind::Convert(ConvertOp::Truncate, a) => {
            let a_range = of(*a);
            if a_range.max <= ty.mask() { a_range } else { full }
        }
        OpKind::Binary(BinaryOp::Add, a, b) => {
            let (a, b) = (of(*a), of(*b));
            fitting(a.min.checked_add(b.min), a.max.checked_add(b.max))
        }
        OpKind::Binary(BinaryOp::Mul, a, b) => {
            let (a, b) = (of(*a), of(*b));
            fitting(a.min.checked_mul(b.min), a.max.checked_mul(b.max))
        }
        OpKind::NoWrap(op, Wrap::NotUnsigned | Wrap::Neither, a, b) => {
            let (a, b) = (of(*a), of(*b));
            match op {
                NoWrapOp::Add => Range {
                    min: a.min.saturating_add(b.min).min(ty.mask()),
                    max: a.max.saturating_add(b.max).min(ty.mask()),
                },
                NoWrapOp::Mul => Range {
                    min: a.min.saturating_mul(b.min).min(ty.mask()),
                    max: a.max.saturating_mul(b.max).min(ty.mask()),
                },
                NoWrapOp::Sub => Range {
                    min: a.min.saturating_sub(b.max),
                    max: a.max.saturating_sub(b.min),
                },
            }
        }
        OpKind::Binary(BinaryOp::And, a, b) => Range {
            min: 0,
            max: of(*a).max.min(of(*b).max),
        },
        OpKind::Binary(BinaryOp::MinU, a, b) => {
            let (a, b) = (of(*a), of(*b));
            Range {
                min: a.min.min(b.min),
                max: a.max.min(b.max),
            }
        }
        OpKind::Binary(BinaryOp::MaxU, a, b) => {
            let (a, b) = (of(*a), of(*b));
            Range {
                min: a.min.max(b.min),
                max: a.max.max(b.max),
            }
        }
        OpKind::Binary(BinaryOp::ShrU, a, b) => match kernel.as_constant(*b) {
            Some(count) if count < 64 => Range {
                min: of(*a).min >> count,
                max: of(*a).max >> count,
            },
            _ => full,
        },
        OpKind::Binary(BinaryOp::Shl, a, b) => match kernel.as_constant(*b) {
            Some(count) if count < 63 => {
                let factor = 1u64 << count;
                fitting(of(*a).min.checked_mul(factor), of(*a).max.checked_mul(factor))
            }
            _ => full,
        },
        OpKind::Binary(BinaryOp::DivU, a, b) => match kernel.as_constant(*b) {
            Some(divisor) if divisor > 0 => Range {
                min: of(*a).min / divisor,
                max: of(*a).max / divisor,
            },
            _ => Range {
                min: 0,
                max: of(*a).max,
            },
        },
        OpKind::Binary(BinaryOp::RemU, a, b) => match kernel.as_constant(*b) {
            Some(divisor) if divisor > 0 => Range {
                min: 0,
                max: of(*a).max.min(divisor - 1),
            },
            _ => Range {
                min: 0,
                max: of(*a).max,
            },
        },
        OpKind::Select(_, a, b) => {
            let (a, b) = (of(*a), of(*b));
            Range {
                min: a.min.min(b.min),
                max: a.max.max(b.max),
            }
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
            Range { min: size, max: size }
        }
        None => Range {
            min: 1,
            max: MAX_GROUP_SIZE,
        },
    };
    // CUDA's limits of a grid, the widest of the devices here: 2³¹ − 1 in x, 65,535 in y and z.
    let count = |dimension: u8| if dimension == 0 { (1 << 31) - 1 } else { 65_535 };
    match id {
        Id::Local(dimension) => Range {
            min: 0,
            max: group(dimension).max - 1,
        },
        Id::GroupSize(dimension) => group(dimension),
        Id::Group(dimension) => Range {
            min: 0,
            max: count(dimension) - 1,
        },
        Id::GroupCount(dimension) => Range {
            min: 1,
            max: count(dimension),
        },
        Id::Lane => Range { min: 0, max: 31 },
        Id::SubGroup => Range {
            min: 0,
            max: MAX_GROUP_SIZE / 8 - 1,
        },
        Id::SubGroupSize | Id::MaxSubGroupSize => Range { min: 1, max: 32 },
        Id::SubGroupCount => Range {
            min: 1,
            max: MAX_GROUP_SIZE / 8,
        },
    }
}
