//! Functions of OpenCL that neither the IR nor a device's library has: they are written out.

use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Type, UnaryOp, Value};

/// `nextafter(x, y)`: the number next to `x` on the way to `y`.
pub(super) fn next_after(b: &mut Builder<'_>, x: Value, y: Value) -> Value {
    let ty = b.kernel.ty(x);
    let integer = match ty {
        Type::F16 => Type::I16,
        Type::F64 => Type::I64,
        _ => Type::I32,
    };
    let (zero, one) = (b.constant(ty, 0), b.constant(integer, 1));
    let bits = b.convert(ConvertOp::Bits, integer, x);
    // Away from zero, and towards it.
    let (away, towards) = (b.add(bits, one), b.sub(bits, one));
    let (above, below) = (b.compare(CompareOp::FLt, x, y), b.compare(CompareOp::FLt, y, x));
    let of_positive = b.select(above, away, towards);
    let of_negative = b.select(below, away, towards);
    let positive = b.compare(CompareOp::FLt, zero, x);
    let stepped = b.select(positive, of_positive, of_negative);
    let stepped = b.convert(ConvertOp::Bits, ty, stepped);
    let least = b.convert(ConvertOp::Bits, ty, one);
    let least = b.binary(BinaryOp::CopySign, least, y);
    let is_zero = b.compare(CompareOp::FEq, x, zero);
    let made = b.select(is_zero, least, stepped);
    let same = b.compare(CompareOp::FEq, x, y);
    let made = b.select(same, y, made);
    let sum = b.binary(BinaryOp::FAdd, x, y);
    let unordered = b.compare(CompareOp::FUnordered, x, y);
    b.select(unordered, sum, made)
}

/// `sinpi(x)` or `cospi(x)`, of `F32` and `F64`: the sine or cosine of πx. What is left of x after whole turns and quarters is exact, and
/// at most a quarter: its sine or cosine comes from the device's library.
pub(super) fn of_pi(b: &mut Builder<'_>, x: Value, is_sine: bool) -> Value {
    let ty = b.kernel.ty(x);
    let number = |b: &mut Builder<'_>, number: f64| match ty {
        Type::F64 => b.f64(number),
        _ => b.f32(number as f32),
    };
    let (half, two, one) = (number(b, 0.5), number(b, 2.0), number(b, 1.0));
    let halves = b.binary(BinaryOp::FMul, x, half);
    let turns = b.unary(UnaryOp::RoundEven, halves);
    let turns = b.binary(BinaryOp::FMul, turns, two);
    let left = b.binary(BinaryOp::FSub, x, turns);
    let quarters = b.binary(BinaryOp::FMul, left, two);
    let quarters = b.unary(UnaryOp::RoundEven, quarters);
    let whole = b.binary(BinaryOp::FMul, quarters, half);
    let rest = b.binary(BinaryOp::FSub, left, whole);
    let pi = number(b, std::f64::consts::PI);
    let angle = b.binary(BinaryOp::FMul, rest, pi);
    let (sine, cosine) = (
        b.unary(UnaryOp::LibrarySin, angle),
        b.unary(UnaryOp::LibraryCos, angle),
    );
    let (negative_sine, negative_cosine) = (b.unary(UnaryOp::FNeg, sine), b.unary(UnaryOp::FNeg, cosine));
    // Of no quarter, of two in either direction, of one forwards, of one backwards.
    let [none, half_turn, forwards, backwards] = match is_sine {
        true => [sine, negative_sine, cosine, negative_cosine],
        false => [cosine, negative_cosine, negative_sine, sine],
    };
    let size = b.unary(UnaryOp::FAbs, quarters);
    let (is_two, is_one) = (
        b.compare(CompareOp::FEq, size, two),
        b.compare(CompareOp::FEq, quarters, one),
    );
    let is_odd = b.compare(CompareOp::FEq, size, one);
    let odd = b.select(is_one, forwards, backwards);
    let even = b.select(is_two, half_turn, none);
    let made = b.select(is_odd, odd, even);
    // The sine of a whole number is a zero of its sign, a cosine's zero is positive.
    let zero = number(b, 0.0);
    let own = match is_sine {
        true => b.binary(BinaryOp::CopySign, zero, x),
        false => zero,
    };
    let is_zero = b.compare(CompareOp::FEq, made, zero);
    b.select(is_zero, own, made)
}
