//! The operators.
//!
//! `+`, `-` and `*` on integers promise not to wrap: in Rust an overflow is an error, so a kernel must not have one (the
//! functional engine reports it, as a debug build would), and address analysis may rely on it. For intended wrapping, Rust has
//! `wrapping_add`.

use super::state::recorder;
use super::{At, Recorded};
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, NoWrapOp, Type, UnaryOp, Value, Wrap};
use crate::lang::scalar::{Bitwise, Integer, Number, Scalar, Signed};
use crate::math::Function;

/// Appends an operation with one operand.
pub(super) fn unary<T: Scalar>(at: At, op: UnaryOp, a: Recorded<T>) -> Recorded<T> {
    Recorded::new(recorder(|recorder| recorder.build(at, |b| b.unary(op, a.value))))
}

/// Appends an operation with two operands.
pub(super) fn binary<T: Scalar>(at: At, op: BinaryOp, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    build(at, |builder| builder.binary(op, a.value, b.value))
}

/// Appends the operations of `write`.
pub(super) fn build<T>(at: At, write: impl FnOnce(&mut Builder<'_>) -> Value) -> Recorded<T> {
    Recorded::new(recorder(|recorder| recorder.build(at, write)))
}

/// A function that is expanded. Halves compute it in single precision, and round again.
pub(super) fn function<T: Scalar>(at: At, function: Function, arguments: &[Value]) -> Recorded<T> {
    build(at, |builder| {
        if T::TYPE.bits() > 16 {
            return function.emit(builder, arguments);
        }
        let wide: Vec<Value> = arguments
            .iter()
            .map(|&argument| builder.convert(ConvertOp::FloatToFloat, Type::F32, argument))
            .collect();
        let result = function.emit(builder, &wide);
        builder.convert(ConvertOp::FloatToFloat, T::TYPE, result)
    })
}

/// In which reading an integer type must not wrap.
pub(super) fn wrap<T: Scalar>() -> Wrap {
    if T::SIGNED {
        Wrap::NotSigned
    } else {
        Wrap::NotUnsigned
    }
}

/// An operation of numbers: one for floats, or one that must not wrap for integers.
fn arithmetic<T: Number>(
    at: At,
    float: BinaryOp,
    integer: NoWrapOp,
    a: Recorded<T>,
    b: Recorded<T>,
) -> Recorded<T> {
    build(at, |builder| match T::TYPE.is_float() {
        true => builder.binary(float, a.value, b.value),
        false => builder.no_wrap(integer, wrap::<T>(), a.value, b.value),
    })
}

/// One of three operations, by the type: for floats, signed or unsigned integers.
pub(super) fn by_type<T: Scalar>(float: BinaryOp, signed: BinaryOp, unsigned: BinaryOp) -> BinaryOp {
    match (T::TYPE.is_float(), T::SIGNED) {
        (true, _) => float,
        (false, true) => signed,
        (false, false) => unsigned,
    }
}

/// `a + b`
pub fn add<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    arithmetic(at, BinaryOp::FAdd, NoWrapOp::Add, a, b)
}

/// `a - b`
pub fn sub<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    arithmetic(at, BinaryOp::FSub, NoWrapOp::Sub, a, b)
}

/// `a * b`
pub fn mul<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    arithmetic(at, BinaryOp::FMul, NoWrapOp::Mul, a, b)
}

/// `a / b`; 0 for an integer divided by 0, where Rust would stop.
pub fn div<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(
        at,
        by_type::<T>(BinaryOp::FDiv, BinaryOp::DivS, BinaryOp::DivU),
        a,
        b,
    )
}

/// `a % b`; `a` for an integer divided by 0, where Rust would stop. Of floats it is exact.
pub fn rem<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    if T::TYPE.is_float() {
        return function(at, Function::Rem, &[a.value, b.value]);
    }
    binary(
        at,
        by_type::<T>(BinaryOp::RemS, BinaryOp::RemS, BinaryOp::RemU),
        a,
        b,
    )
}

/// `a & b`
pub fn bit_and<T: Bitwise>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(at, BinaryOp::And, a, b)
}

/// `a | b`
pub fn bit_or<T: Bitwise>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(at, BinaryOp::Or, a, b)
}

/// `a ^ b`
pub fn bit_xor<T: Bitwise>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(at, BinaryOp::Xor, a, b)
}

/// `a << count`; everything is shifted out by a count of the width or more, where Rust would stop.
pub fn shl<T: Integer, C: Integer>(at: At, a: Recorded<T>, count: Recorded<C>) -> Recorded<T> {
    let count = shift_count::<T, C>(at, count);
    binary(at, BinaryOp::Shl, a, count)
}

/// `a >> count`, filled with the sign for signed types; as [`shl`] for large counts.
pub fn shr<T: Integer, C: Integer>(at: At, a: Recorded<T>, count: Recorded<C>) -> Recorded<T> {
    let count = shift_count::<T, C>(at, count);
    binary(
        at,
        by_type::<T>(BinaryOp::ShrS, BinaryOp::ShrS, BinaryOp::ShrU),
        a,
        count,
    )
}

/// A count in the type of the shifted value, as the IR requires. A wide count that is too large stays too large.
fn shift_count<T: Integer, C: Integer>(at: At, count: Recorded<C>) -> Recorded<T> {
    let count = if C::TYPE.bits() > T::TYPE.bits() {
        build(at, |b| {
            let width = b.constant(C::TYPE, u64::from(T::TYPE.bits()));
            b.binary(BinaryOp::MinU, count.value, width)
        })
    } else {
        count
    };
    super::convert::resize::<T, C>(at, count)
}

/// `-a`
pub fn neg<T: Signed>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(
        at,
        if T::TYPE.is_float() {
            UnaryOp::FNeg
        } else {
            UnaryOp::Neg
        },
        a,
    )
}

/// `!a`
pub fn not<T: Bitwise>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(at, UnaryOp::Not, a)
}

fn compare<T: Scalar>(at: At, op: CompareOp, a: Recorded<T>, b: Recorded<T>) -> Recorded<bool> {
    build(at, |builder| builder.compare(op, a.value, b.value))
}

/// The comparison of an order, by the type.
fn order<T: Scalar>(float: CompareOp, signed: CompareOp, unsigned: CompareOp) -> CompareOp {
    match (T::TYPE.is_float(), T::SIGNED) {
        (true, _) => float,
        (false, true) => signed,
        (false, false) => unsigned,
    }
}

fn equality<T: Scalar>(float: CompareOp, bits: CompareOp) -> CompareOp {
    order::<T>(float, bits, bits)
}

/// `a == b`
pub fn eq<T: Scalar>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<bool> {
    compare(at, equality::<T>(CompareOp::FEq, CompareOp::Eq), a, b)
}

/// `a != b`
pub fn ne<T: Scalar>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<bool> {
    compare(at, equality::<T>(CompareOp::FNe, CompareOp::Ne), a, b)
}

/// `a < b`
pub fn lt<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<bool> {
    compare(
        at,
        order::<T>(CompareOp::FLt, CompareOp::LtS, CompareOp::LtU),
        a,
        b,
    )
}

/// `a <= b`
pub fn le<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<bool> {
    compare(
        at,
        order::<T>(CompareOp::FLe, CompareOp::LeS, CompareOp::LeU),
        a,
        b,
    )
}

/// `a > b`
pub fn gt<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<bool> {
    lt(at, b, a)
}

/// `a >= b`
pub fn ge<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<bool> {
    le(at, b, a)
}

/// `cond ? a : b`, both of which are there.
pub(in crate::lang) fn select<T: Scalar>(
    at: At,
    cond: Recorded<bool>,
    a: Recorded<T>,
    b: Recorded<T>,
) -> Recorded<T> {
    build(at, |builder| builder.select(cond.value, a.value, b.value))
}

/// A constant of type `T` from its bits.
pub(super) fn bits<T: Scalar>(bits: u64) -> Recorded<T> {
    Recorded::new(recorder(|recorder| recorder.kernel.constant(T::TYPE, bits)))
}

/// A function as the hardware approximates it.
pub(in crate::lang) fn approximate(at: At, op: UnaryOp, x: Recorded<f32>) -> Recorded<f32> {
    unary(at, op, x)
}

/// A quotient as the hardware approximates it.
pub(in crate::lang) fn approximate_div(at: At, x: Recorded<f32>, y: Recorded<f32>) -> Recorded<f32> {
    binary(at, BinaryOp::ApproximateDiv, x, y)
}

/// `sum` plus the dot product of the bytes of `a` and `b`, wrapping.
pub(in crate::lang) fn dot4<T: Integer>(
    at: At,
    op: BinaryOp,
    a: Recorded<u32>,
    b: Recorded<u32>,
    sum: Recorded<T>,
) -> Recorded<T> {
    build(at, |builder| {
        let dot = builder.binary(op, a.value, b.value);
        builder.binary(BinaryOp::Add, dot, sum.value)
    })
}
