//! Kernels that fill a buffer on the GPU: a table of a gigabyte is ready in a millisecond, and never
//! crosses the bus.
//!
//! Each is built as IR and compiled like any other kernel, so that it writes the bits that
//! [`Pattern::bits`] defines and the simulator reads.

use crate::ir::{
    BinaryOp, Builder, CacheUse, CompareOp, ConvertOp, Id, Kernel, LoopWishes, OpKind, Param, PointerFacts,
    Races, Space, Type, Value,
};
use headstart_device::Pattern;

/// Work-items of a work-group of these kernels.
pub(super) const GROUP: u32 = 256;

/// A kernel `fill(elements, count)` that writes a pattern. `None` for a pattern without a closed form.
pub(super) fn kernel(pattern: &Pattern, element: Type) -> Option<Kernel> {
    if matches!(pattern, Pattern::Function(_)) {
        return None;
    }
    let mut kernel = Kernel::new("fill");
    kernel.group_size = Some([GROUP, 1, 1]);
    let elements = kernel.value(Type::Ptr(Space::Global));
    let count = kernel.value(Type::I64);
    let facts = PointerFacts {
        element,
        align: 256,
        length: Some(count),
        read_only: false,
        unaliased: true,
        is_constant: false,
        races: Races::None,
    };
    kernel.params = vec![
        Param {
            name: "elements".into(),
            value: elements,
            facts: Some(facts),
        },
        Param {
            name: "count".into(),
            value: count,
            facts: None,
        },
    ];
    let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
    let (group, local, groups) = (b.id(Id::Group(0)), b.id(Id::Local(0)), b.id(Id::GroupCount(0)));
    let [group, local, groups] =
        [group, local, groups].map(|id| b.convert(ConvertOp::ExtendU, Type::I64, id));
    let size = b.i64(i64::from(GROUP));
    let before = b.mul(group, size);
    let first = b.add(before, local);
    let stride = b.mul(groups, size);
    b.loop_(
        Some("elements".into()),
        vec![first],
        &[],
        LoopWishes::default(),
        |b, label, params| {
            let index = params[0];
            let outside = b.compare(CompareOp::LeU, count, index);
            b.break_if(outside, label, Vec::new());
            let bits = bits(b, pattern, element, index);
            let to = b.element(elements, element, index);
            b.push(OpKind::store(to, vec![bits], CacheUse::Default), &[]);
            let next = b.add(index, stride);
            b.continue_(label, vec![next]);
        },
    );
    b.return_();
    kernel.body = b.finish();
    Some(kernel)
}

/// The element at `index`, an `I64`.
fn bits(b: &mut Builder<'_>, pattern: &Pattern, element: Type, index: Value) -> Value {
    let number = |b: &mut Builder<'_>, bits: u64| b.constant(Type::I64, bits);
    let bits = match pattern {
        Pattern::Constant(bits) => return b.constant(element, *bits),
        Pattern::Steps { first, step } => {
            let (first, step) = (number(b, *first), number(b, *step));
            let rise = b.mul(index, step);
            b.add(first, rise)
        }
        Pattern::Below { bound, seed } => {
            let random = splitmix64(b, index, *seed);
            let bound = number(b, (*bound).max(1));
            b.binary(BinaryOp::RemU, random, bound)
        }
        Pattern::Bits { seed } => splitmix64(b, index, *seed),
        Pattern::Fractions { low } => {
            let (factor, eight, mask) = (number(b, 2_654_435_761), number(b, 8), number(b, 0xffff));
            let product = b.mul(index, factor);
            let shifted = b.binary(BinaryOp::ShrU, product, eight);
            let sixteen_bits = b.and(shifted, mask);
            let fraction = b.convert(ConvertOp::UnsignedToFloat, Type::F64, sixteen_bits);
            let unit = b.f64(1.0 / 65536.0);
            let fraction = b.binary(BinaryOp::FMul, fraction, unit);
            let low = b.f64(*low);
            let sum = b.binary(BinaryOp::FAdd, low, fraction);
            return match element {
                Type::F64 => sum,
                _ if element.is_float() => b.convert(ConvertOp::FloatToFloat, element, sum),
                _ => {
                    let integer = b.convert(ConvertOp::FloatToSigned, Type::I64, sum);
                    truncated(b, element, integer)
                }
            };
        }
        Pattern::Function(_) => index,
    };
    truncated(b, element, bits)
}

/// The low bits of an `I64` as an element.
fn truncated(b: &mut Builder<'_>, element: Type, bits: Value) -> Value {
    if element == Type::Bool {
        let (one, zero) = (b.i64(1), b.i64(0));
        let lowest = b.and(bits, one);
        return b.compare(CompareOp::Ne, lowest, zero);
    }
    let integer = match element.bytes() {
        1 => Type::I8,
        2 => Type::I16,
        4 => Type::I32,
        _ => Type::I64,
    };
    let narrow = if integer == Type::I64 {
        bits
    } else {
        b.convert(ConvertOp::Truncate, integer, bits)
    };
    if integer == element {
        narrow
    } else {
        b.convert(ConvertOp::Bits, element, narrow)
    }
}

/// [`splitmix64`](crate::random::splitmix64) of an index.
fn splitmix64(b: &mut Builder<'_>, index: Value, seed: u64) -> Value {
    let mut z = index;
    for (op, constant) in [
        (BinaryOp::Add, 1),
        (BinaryOp::Mul, 0x9E37_79B9_7F4A_7C15),
        (BinaryOp::Add, seed),
    ] {
        let constant = b.constant(Type::I64, constant);
        z = b.binary(op, z, constant);
    }
    for (shift, factor) in [
        (30, Some(0xBF58_476D_1CE4_E5B9)),
        (27, Some(0x94D0_49BB_1331_11EB)),
        (31, None),
    ] {
        let shift = b.constant(Type::I64, shift);
        let shifted = b.binary(BinaryOp::ShrU, z, shift);
        z = b.binary(BinaryOp::Xor, z, shifted);
        if let Some(factor) = factor {
            let factor = b.constant(Type::I64, factor);
            z = b.binary(BinaryOp::Mul, z, factor);
        }
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::ptx::{Options, PtxTarget, emit};
    use crate::ir::verify;

    #[test]
    fn every_closed_form_becomes_a_verified_kernel() {
        let patterns = [
            Pattern::Constant(7),
            Pattern::Steps { first: 3, step: 5 },
            Pattern::below(1 << 28, 7),
            Pattern::Fractions { low: 1.0 },
            Pattern::Bits { seed: 1 },
        ];
        for pattern in patterns {
            for element in Type::ALL
                .into_iter()
                .filter(|&ty| ty != Type::Token && !ty.is_pointer())
            {
                let kernel = kernel(&pattern, element).expect("a closed form");
                verify(&kernel).unwrap_or_else(|error| panic!("{pattern:?} of {element}: {error}"));
                emit(&kernel, &Options::new(PtxTarget::Sm80)).expect("it can be emitted");
            }
        }
    }
}
