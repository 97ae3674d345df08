//! The methods of scalars, each with the meaning that Rust's own method of that name has.
//!
//! If Rust leaves a result to the platform (which zero `min` returns, a NaN's bits), the IR's operations define it.

use half::{bf16, f16};

use super::arithmetic::{bits, build, by_type, select, unary};
use super::convert::{reinterpret, resize};
use super::state::recorder;
use super::{At, Recorded, cast, div, eq, ge, gt, literal, lt, ne, neg, rem, shl, shr, sub};
use crate::ir::{BinaryOp, Type, UnaryOp};
use crate::lang::mathematics::for_each_function;
use crate::lang::scalar::{Float, Half, Integer, Number, Scalar, Signed};
use crate::math::Function;

/// The scalar type that has the same bits as a float.
pub trait FloatBits: Float {
    /// `u32` for `f32`, `u64` for `f64`.
    type Bits: Integer;
}

impl FloatBits for f32 {
    type Bits = u32;
}

impl FloatBits for f64 {
    type Bits = u64;
}

impl FloatBits for f16 {
    type Bits = u16;
}

impl FloatBits for bf16 {
    type Bits = u16;
}

/// The unsigned type of the same size.
pub trait SignedInteger: Integer + Signed {
    /// `u32` for `i32`.
    type Unsigned: Integer;
}

macro_rules! signed_integers {
    ($($signed:ident: $unsigned:ident;)+) => {$(
        impl SignedInteger for $signed {
            type Unsigned = $unsigned;
        }
    )+};
}

signed_integers! { i8: u8; i16: u16; i32: u32; i64: u64; isize: usize; }

fn binary<T: Scalar>(at: At, op: BinaryOp, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    super::arithmetic::binary(at, op, a, b)
}

/// `a.min(b)`
pub fn min<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(
        at,
        by_type::<T>(BinaryOp::FMin, BinaryOp::MinS, BinaryOp::MinU),
        a,
        b,
    )
}

/// `a.max(b)`
pub fn max<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(
        at,
        by_type::<T>(BinaryOp::FMax, BinaryOp::MaxS, BinaryOp::MaxU),
        a,
        b,
    )
}

/// `a.clamp(least, greatest)`; a NaN stays one.
pub fn clamp<T: Number>(at: At, a: Recorded<T>, least: Recorded<T>, greatest: Recorded<T>) -> Recorded<T> {
    let raised = select(at, lt(at, a, least), least, a);
    select(at, gt(at, raised, greatest), greatest, raised)
}

/// `a.abs()`; the least integer stays as it is, where Rust would stop.
pub fn abs<T: Signed>(at: At, a: Recorded<T>) -> Recorded<T> {
    if T::TYPE.is_float() {
        return unary(at, UnaryOp::FAbs, a);
    }
    max(at, a, neg(at, a))
}

/// `a.abs_diff(b)` of unsigned integers.
pub fn abs_diff<T: Integer>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    refuse_signed::<T>(at, "abs_diff");
    binary(at, BinaryOp::Sub, max(at, a, b), min(at, a, b))
}

/// `a.saturating_sub(b)` of unsigned integers.
pub fn saturating_sub<T: Integer>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    refuse_signed::<T>(at, "saturating_sub");
    binary(at, BinaryOp::Sub, max(at, a, b), b)
}

/// `a.div_ceil(b)` of unsigned integers.
pub fn div_ceil<T: Integer>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    refuse_signed::<T>(at, "div_ceil");
    let more = ne(at, rem(at, a, b), bits(0));
    let (whole, more) = (div(at, a, b), select(at, more, bits(1), bits::<T>(0)));
    binary(at, BinaryOp::Add, whole, more)
}

/// Rust has these methods for signed integers too (or not on stable), with other types or meanings.
fn refuse_signed<T: Scalar>(at: At, name: &str) {
    if T::SIGNED {
        let error = crate::Error::input(format!(
            "`{name}` of a signed integer is not in the kernel language"
        ))
        .accepted("cast to an unsigned integer first");
        recorder(|recorder| recorder.fail(at, error));
    }
}

/// `a.is_multiple_of(b)` of unsigned integers: for a `b` of 0, whether `a` is 0.
pub fn is_multiple_of<T: Integer>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<bool> {
    refuse_signed::<T>(at, "is_multiple_of");
    eq(at, rem(at, a, b), bits(0))
}

/// `a.unsigned_abs()`
pub fn unsigned_abs<T: SignedInteger>(at: At, a: Recorded<T>) -> Recorded<T::Unsigned> {
    Recorded::new(abs(at, a).value)
}

/// `a.mul_add(b, c)`: `a × b + c` rounded once.
pub fn mul_add<T: Float>(at: At, a: Recorded<T>, b: Recorded<T>, c: Recorded<T>) -> Recorded<T> {
    build(at, |builder| builder.fma(a.value, b.value, c.value))
}

/// `a.sqrt()`
pub fn sqrt<T: Float>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(at, UnaryOp::Sqrt, a)
}

/// `a.recip()`
pub fn recip<T: Float>(at: At, a: Recorded<T>) -> Recorded<T> {
    div(at, literal(T::ONE), a)
}

/// `a.floor()`
pub fn floor<T: Float>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(at, UnaryOp::Floor, a)
}

/// `a.ceil()`
pub fn ceil<T: Float>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(at, UnaryOp::Ceil, a)
}

/// `a.trunc()`
pub fn trunc<T: Float>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(at, UnaryOp::Trunc, a)
}

/// `a.round_ties_even()`
pub fn round_ties_even<T: Float>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(at, UnaryOp::RoundEven, a)
}

/// `a.copysign(b)`
pub fn copysign<T: Float>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(at, BinaryOp::CopySign, a, b)
}

/// `a.fract()`: the fractional part, with the sign of `a`.
pub fn fract<T: Float>(at: At, a: Recorded<T>) -> Recorded<T> {
    sub(at, a, trunc(at, a))
}

/// `a.signum()`: 1 with the sign of `a`, also of a zero; a NaN stays one.
pub fn signum<T: Float>(at: At, a: Recorded<T>) -> Recorded<T> {
    let signed = copysign(at, literal(T::ONE), a);
    select(at, is_nan(at, a), a, signed)
}

macro_rules! functions {
    ($($name:ident($first:ident $(, $second:ident)?): $function:ident;)+) => {$(
        #[doc = concat!("`", stringify!($first), ".", stringify!($name), "(", $(stringify!($second),)? ")`, expanded into basic operations")]
        pub fn $name<T: Float>(at: At, $first: Recorded<T> $(, $second: Recorded<T>)?) -> Recorded<T> {
            super::arithmetic::function(at, Function::$function, &[$first.value $(, $second.value)?])
        }
    )+};
}

for_each_function!(functions);

/// `a.is_nan()`
pub fn is_nan<T: Float>(at: At, a: Recorded<T>) -> Recorded<bool> {
    ne(at, a, a)
}

/// `a.is_infinite()`
pub fn is_infinite<T: Float>(at: At, a: Recorded<T>) -> Recorded<bool> {
    ge(at, unary(at, UnaryOp::FAbs, a), infinity())
}

/// `a.is_finite()`
pub fn is_finite<T: Float>(at: At, a: Recorded<T>) -> Recorded<bool> {
    lt(at, unary(at, UnaryOp::FAbs, a), infinity())
}

fn infinity<T: Float>() -> Recorded<T> {
    bits(match T::TYPE {
        Type::F16 => u64::from(f16::INFINITY.to_bits()),
        Type::Bf16 => u64::from(bf16::INFINITY.to_bits()),
        Type::F32 => u64::from(f32::INFINITY.to_bits()),
        _ => f64::INFINITY.to_bits(),
    })
}

/// `a.to_f32()` of a half: exact.
pub fn to_f32<T: Half>(at: At, a: Recorded<T>) -> Recorded<f32> {
    cast(at, a)
}

/// `a.to_f64()` of a half: exact.
pub fn to_f64<T: Half>(at: At, a: Recorded<T>) -> Recorded<f64> {
    cast(at, a)
}

/// `a.to_bits()`
pub fn to_bits<T: FloatBits>(at: At, a: Recorded<T>) -> Recorded<T::Bits> {
    reinterpret(at, a)
}

/// `f32::from_bits(a)`
pub fn from_bits<T: FloatBits>(at: At, a: Recorded<T::Bits>) -> Recorded<T> {
    reinterpret(at, a)
}

/// `a.wrapping_add(b)`
pub fn wrapping_add<T: Integer>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(at, BinaryOp::Add, a, b)
}

/// `a.wrapping_sub(b)`
pub fn wrapping_sub<T: Integer>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(at, BinaryOp::Sub, a, b)
}

/// `a.wrapping_mul(b)`
pub fn wrapping_mul<T: Integer>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    binary(at, BinaryOp::Mul, a, b)
}

/// `a.wrapping_neg()`
pub fn wrapping_neg<T: Integer>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(at, UnaryOp::Neg, a)
}

/// `a.wrapping_shl(count)`: the count is taken modulo the width.
pub fn wrapping_shl<T: Integer>(at: At, a: Recorded<T>, count: Recorded<u32>) -> Recorded<T> {
    shl(at, a, modulo_width::<T>(at, count))
}

/// `a.wrapping_shr(count)`: the count is taken modulo the width.
pub fn wrapping_shr<T: Integer>(at: At, a: Recorded<T>, count: Recorded<u32>) -> Recorded<T> {
    shr(at, a, modulo_width::<T>(at, count))
}

/// `a.rotate_left(count)`
pub fn rotate_left<T: Integer>(at: At, a: Recorded<T>, count: Recorded<u32>) -> Recorded<T> {
    let left = modulo_width::<T>(at, count);
    // 0 rotates by the width to the right, which shifts everything out: right for the `or`.
    let right = sub(at, literal(T::TYPE.bits()), left);
    let right = shift_right_unsigned(at, a, right);
    binary(at, BinaryOp::Or, shl(at, a, left), right)
}

/// `a.rotate_right(count)`
pub fn rotate_right<T: Integer>(at: At, a: Recorded<T>, count: Recorded<u32>) -> Recorded<T> {
    let right = modulo_width::<T>(at, count);
    let left = sub(at, literal(T::TYPE.bits()), right);
    let right = shift_right_unsigned(at, a, right);
    binary(at, BinaryOp::Or, shl(at, a, left), right)
}

fn modulo_width<T: Integer>(at: At, count: Recorded<u32>) -> Recorded<u32> {
    binary(at, BinaryOp::And, count, literal(T::TYPE.bits() - 1))
}

fn shift_right_unsigned<T: Integer>(at: At, a: Recorded<T>, count: Recorded<u32>) -> Recorded<T> {
    let count: Recorded<T> = resize(at, count);
    binary(at, BinaryOp::ShrU, a, count)
}

/// `high.funnel_shl(low, count)`: the upper half of the two, shifted left by `count` modulo the width.
pub fn funnel_shl<T: Integer>(
    at: At,
    high: Recorded<T>,
    low: Recorded<T>,
    count: Recorded<u32>,
) -> Recorded<T> {
    let left = modulo_width::<T>(at, count);
    // As in a rotation: by the width to the right is nothing for the `or`.
    let right = sub(at, literal(T::TYPE.bits()), left);
    let right = shift_right_unsigned(at, low, right);
    binary(at, BinaryOp::Or, shl(at, high, left), right)
}

/// `high.funnel_shr(low, count)`: the lower half of the two, shifted right by `count` modulo the width.
pub fn funnel_shr<T: Integer>(
    at: At,
    high: Recorded<T>,
    low: Recorded<T>,
    count: Recorded<u32>,
) -> Recorded<T> {
    let right = modulo_width::<T>(at, count);
    let left = sub(at, literal(T::TYPE.bits()), right);
    let right = shift_right_unsigned(at, low, right);
    binary(at, BinaryOp::Or, shl(at, high, left), right)
}

/// `a.swap_bytes()`: neighbours change places, halves first, then quarters, down to bytes.
pub fn swap_bytes<T: Integer>(at: At, a: Recorded<T>) -> Recorded<T> {
    let mut swapped = a;
    let width = T::TYPE.bits();
    // Halves, then quarters, …, down to bytes.
    let mut size = width / 2;
    while size >= 8 {
        let low = (0..width / (2 * size)).fold(0u64, |mask, pair| {
            mask | (((1u64 << size) - 1) << (2 * size * pair))
        });
        let up = binary(at, BinaryOp::And, swapped, bits(low));
        let down = shift_right_unsigned(at, swapped, literal(size));
        let down = binary(at, BinaryOp::And, down, bits(low));
        swapped = binary(at, BinaryOp::Or, shl(at, up, literal(size)), down);
        size /= 2;
    }
    swapped
}

/// `a.leading_ones()`
pub fn leading_ones<T: Integer>(at: At, a: Recorded<T>) -> Recorded<u32> {
    leading_zeros(at, unary(at, UnaryOp::Not, a))
}

/// `a.trailing_ones()`
pub fn trailing_ones<T: Integer>(at: At, a: Recorded<T>) -> Recorded<u32> {
    trailing_zeros(at, unary(at, UnaryOp::Not, a))
}

/// `a.is_power_of_two()` of unsigned integers.
pub fn is_power_of_two<T: Integer>(at: At, a: Recorded<T>) -> Recorded<bool> {
    refuse_signed::<T>(at, "is_power_of_two");
    eq(at, count_ones(at, a), literal(1))
}

/// `a.count_ones()`
pub fn count_ones<T: Integer>(at: At, a: Recorded<T>) -> Recorded<u32> {
    count(at, UnaryOp::CountOnes, a)
}

/// `a.count_zeros()`
pub fn count_zeros<T: Integer>(at: At, a: Recorded<T>) -> Recorded<u32> {
    count_ones(at, unary(at, UnaryOp::Not, a))
}

/// `a.leading_zeros()`
pub fn leading_zeros<T: Integer>(at: At, a: Recorded<T>) -> Recorded<u32> {
    count(at, UnaryOp::CountLeadingZeros, a)
}

/// `a.trailing_zeros()`
pub fn trailing_zeros<T: Integer>(at: At, a: Recorded<T>) -> Recorded<u32> {
    count(at, UnaryOp::CountLeadingZeros, reverse_bits(at, a))
}

/// `a.reverse_bits()`
pub fn reverse_bits<T: Integer>(at: At, a: Recorded<T>) -> Recorded<T> {
    unary(at, UnaryOp::ReverseBits, a)
}

/// A count has its argument's type here; in Rust it has 32 bits. It is never negative, so it is zero-extended.
fn count<T: Integer>(at: At, op: UnaryOp, a: Recorded<T>) -> Recorded<u32> {
    let count = unary(at, op, a);
    match T::TYPE {
        Type::I8 => resize::<u32, u8>(at, Recorded::new(count.value)),
        Type::I16 => resize::<u32, u16>(at, Recorded::new(count.value)),
        _ => resize(at, count),
    }
}
