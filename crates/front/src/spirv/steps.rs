//! Functions of `OpenCL.std` that take several operations each.

use rspirv::spirv::OpenclStd100Op as Std;

use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Type, UnaryOp, Value};

/// Half of a sum, rounded down or up, without its carry: the common bits, and half of the differing ones.
pub(super) fn halved_sum(b: &mut Builder<'_>, std: Std, x: Value, y: Value) -> Value {
    let one = b.constant(b.kernel.ty(x), 1);
    let differ = b.binary(BinaryOp::Xor, x, y);
    let down = match std {
        Std::u_hadd | Std::u_rhadd => BinaryOp::ShrU,
        _ => BinaryOp::ShrS,
    };
    let half = b.binary(down, differ, one);
    match std {
        Std::u_hadd | Std::s_hadd => {
            let both = b.and(x, y);
            b.add(both, half)
        }
        _ => {
            let either = b.binary(BinaryOp::Or, x, y);
            b.sub(either, half)
        }
    }
}

/// A signed sum or difference, as near as its type has it.
pub(super) fn saturated(b: &mut Builder<'_>, sum: bool, x: Value, y: Value) -> Value {
    let ty = b.kernel.ty(x);
    let zero = b.constant(ty, 0);
    let most = b.constant(ty, ty.mask() >> 1);
    let made = if sum { b.add(x, y) } else { b.sub(x, y) };
    // It went over where the signs of the operands let it, and the sign of the result is not that of the first.
    let same = b.binary(BinaryOp::Xor, x, y);
    let same = match sum {
        true => b.unary(UnaryOp::Not, same),
        false => same,
    };
    let turned = b.binary(BinaryOp::Xor, x, made);
    let over = b.and(same, turned);
    let over = b.compare(CompareOp::LtS, over, zero);
    let last = b.constant(ty, u64::from(ty.bits() - 1));
    let sign = b.binary(BinaryOp::ShrS, x, last);
    let limit = b.binary(BinaryOp::Xor, sign, most);
    b.select(over, limit, made)
}

/// `x × 2ⁿ`, in steps that are exact but for the last.
pub(super) fn scaled(b: &mut Builder<'_>, x: Value, n: Value) -> Value {
    let ty = b.kernel.ty(x);
    let (integer, bias, fraction, far) = match ty {
        Type::F64 => (Type::I64, 1023i64, 52u64, 2200i64),
        _ => (Type::I32, 127, 23, 300),
    };
    let n = match integer {
        Type::I64 => b.convert(ConvertOp::ExtendS, integer, n),
        _ => n,
    };
    let (low, high) = (
        b.constant(integer, (-far) as u64),
        b.constant(integer, far as u64),
    );
    let n = b.binary(BinaryOp::MaxS, n, low);
    let mut left = b.binary(BinaryOp::MinS, n, high);
    let mut made = x;
    // What is left after two full steps is at most one more; a step down stays clear of subnormals until the last.
    let (down, up) = (
        b.constant(integer, (-(bias - 1 - fraction as i64)) as u64),
        b.constant(integer, (bias - 1) as u64),
    );
    for last in [false, false, false, true] {
        let step = match last {
            true => {
                let least = b.constant(integer, (1 - bias) as u64);
                let step = b.binary(BinaryOp::MaxS, left, least);
                b.binary(BinaryOp::MinS, step, up)
            }
            false => {
                // A step is only taken as far as one step alone cannot go.
                let least = b.constant(integer, (1 - bias) as u64);
                let inside = b.binary(BinaryOp::MaxS, left, least);
                let inside = b.binary(BinaryOp::MinS, inside, up);
                let over = b.sub(left, inside);
                let over = b.binary(BinaryOp::MaxS, over, down);
                b.binary(BinaryOp::MinS, over, up)
            }
        };
        left = b.sub(left, step);
        let bias = b.constant(integer, bias as u64);
        let exponent = b.add(step, bias);
        let count = b.constant(integer, fraction);
        let bits = b.binary(BinaryOp::Shl, exponent, count);
        let factor = b.convert(ConvertOp::Bits, ty, bits);
        made = b.binary(BinaryOp::FMul, made, factor);
    }
    made
}

/// The parts that a mask's numbers choose, by their low bits.
pub(super) fn shuffled(b: &mut Builder<'_>, parts: &[Value], mask: &[Value]) -> Vec<Value> {
    let mut made = Vec::with_capacity(mask.len());
    for &number in mask {
        let ty = b.kernel.ty(number);
        let low = b.constant(ty, (parts.len().next_power_of_two() - 1) as u64);
        let number = b.and(number, low);
        let Some(&(mut one)) = parts.first() else { break };
        for (position, &part) in parts.iter().enumerate().skip(1) {
            let wanted = b.constant(ty, position as u64);
            let is = b.compare(CompareOp::Eq, number, wanted);
            one = b.select(is, part, one);
        }
        made.push(one);
    }
    made
}
