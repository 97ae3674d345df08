//! The floating-point half of [`eval`](super).
//!
//! `F16` and `Bf16` compute in wider types and round once: a binary32 has more than twice their
//! precision plus two, so its sums, products, quotients and roots round correctly when narrowed.

use half::{bf16, f16};

use super::{signed, table};
use crate::ir::op::{BinaryOp, CompareOp, ConvertOp, UnaryOp};
use crate::ir::types::Type;

/// The operations that both machine types share, written once.
macro_rules! machine_float {
    ($module:ident, $float:ident, $bits:ident) => {
        mod $module {
            use super::*;

            pub(super) fn made(x: $float) -> u64 {
                u64::from(if x.is_nan() { canonical() } else { x.to_bits() })
            }

            fn canonical() -> $bits {
                // Positive, quiet, no further payload.
                let exponent = $float::INFINITY.to_bits();
                exponent | (1 << (exponent.trailing_zeros() - 1))
            }

            pub(super) fn of(bits: u64) -> $float {
                $float::from_bits(bits as $bits)
            }

            pub(super) fn unary(op: UnaryOp, a: u64) -> u64 {
                let a = of(a);
                made(match op {
                    UnaryOp::Sqrt => a.sqrt(),
                    UnaryOp::Floor => a.floor(),
                    UnaryOp::Ceil => a.ceil(),
                    UnaryOp::Trunc => a.trunc(),
                    UnaryOp::RoundEven => a.round_ties_even(),
                    _ => 0.0,
                })
            }

            pub(super) fn binary(op: BinaryOp, a: u64, b: u64) -> u64 {
                let (a, b) = (of(a), of(b));
                made(match op {
                    BinaryOp::FAdd => a + b,
                    BinaryOp::FSub => a - b,
                    BinaryOp::FMul => a * b,
                    BinaryOp::FDiv => a / b,
                    BinaryOp::FMinimum | BinaryOp::FMaximum if a.is_nan() || b.is_nan() => $float::NAN,
                    BinaryOp::FMin | BinaryOp::FMinimum if a == b => {
                        if a.is_sign_negative() {
                            a
                        } else {
                            b
                        }
                    }
                    BinaryOp::FMax | BinaryOp::FMaximum if a == b => {
                        if a.is_sign_negative() {
                            b
                        } else {
                            a
                        }
                    }
                    BinaryOp::FMin | BinaryOp::FMinimum => {
                        if b.is_nan() || a < b {
                            a
                        } else {
                            b
                        }
                    }
                    BinaryOp::FMax | BinaryOp::FMaximum => {
                        if b.is_nan() || a > b {
                            a
                        } else {
                            b
                        }
                    }
                    _ => 0.0,
                })
            }

            pub(super) fn compare(op: CompareOp, a: u64, b: u64) -> bool {
                let (a, b) = (of(a), of(b));
                match op {
                    CompareOp::FEq => a == b,
                    CompareOp::FNe => a != b,
                    CompareOp::FLt => a < b,
                    CompareOp::FLe => a <= b,
                    CompareOp::FUnordered => a.is_nan() || b.is_nan(),
                    _ => false,
                }
            }
        }
    };
}

machine_float!(single, f32, u32);
machine_float!(double, f64, u64);

/// A half-precision value, exactly, as a binary32.
fn widen(ty: Type, a: u64) -> f32 {
    match ty {
        Type::F16 => f16::from_bits(a as u16).to_f32(),
        _ => bf16::from_bits(a as u16).to_f32(),
    }
}

/// A binary32 rounded to half precision.
fn narrow(ty: Type, x: f32) -> u64 {
    u64::from(match (ty, x.is_nan()) {
        (Type::F16, true) => 0x7e00,
        (_, true) => 0x7fc0,
        (Type::F16, false) => f16::from_f32(x).to_bits(),
        (_, false) => bf16::from_f32(x).to_bits(),
    })
}

pub(super) fn unary(op: UnaryOp, ty: Type, a: u64) -> u64 {
    match ty {
        Type::F32 => single::unary(op, a),
        Type::F64 => double::unary(op, a),
        Type::F16 | Type::Bf16 => narrow(
            ty,
            single::of(single::unary(op, u64::from(widen(ty, a).to_bits()))),
        ),
        _ => 0,
    }
}

/// 1/x where x and that are normal numbers; see [`UnaryOp::NormalReciprocal`].
pub fn normal_reciprocal(x: f32) -> f32 {
    const MOST: f32 = 1.0 / f32::MIN_POSITIVE;
    let magnitude = x.abs();
    if (f32::MIN_POSITIVE..=MOST).contains(&magnitude) {
        1.0 / x
    } else if magnitude < f32::INFINITY && magnitude > MOST {
        0.0f32.copysign(x)
    } else {
        f32::NAN
    }
}

/// 2⁻¹⁰¹: the least number of which [`UnaryOp::NormalSqrt`] takes the root.
pub const LEAST_OF_NORMAL_SQRT: f32 = f32::from_bits(26 << 23);

/// √x where x is not small; see [`UnaryOp::NormalSqrt`].
pub fn normal_sqrt(x: f32) -> f32 {
    if (LEAST_OF_NORMAL_SQRT..f32::INFINITY).contains(&x) {
        x.sqrt()
    } else {
        f32::NAN
    }
}

/// The operations that binary32 alone has, with one operand.
pub(super) fn unary_of_single(op: UnaryOp, a: u64) -> u64 {
    let x = single::of(a);
    single::made(match op {
        UnaryOp::NormalReciprocal => normal_reciprocal(x),
        UnaryOp::NormalSqrt => normal_sqrt(x),
        UnaryOp::TableExp2 => table::exp2(x),
        UnaryOp::TableLog2 => table::log2(x),
        UnaryOp::TableReciprocal => table::reciprocal(x),
        _ => 0.0,
    })
}

/// Hardware approximations: the exact result, nearly always rounded to nearest, computed in binary64.
pub(super) fn approximate_unary(op: UnaryOp, ty: Type, a: u64) -> u64 {
    if !ty.is_float() {
        return 0;
    }
    let x = to_double(ty, a);
    from_double(
        ty,
        match op {
            UnaryOp::ApproximateReciprocal => 1.0 / x,
            UnaryOp::ApproximateRsqrt => 1.0 / x.sqrt(),
            UnaryOp::ApproximateSqrt => x.sqrt(),
            // One library for every host: the same bits everywhere.
            UnaryOp::ApproximateExp2 => libm::exp2(x),
            UnaryOp::ApproximateLog2 => libm::log2(x),
            UnaryOp::ApproximateSin => libm::sin(x),
            UnaryOp::ApproximateCos => libm::cos(x),
            UnaryOp::ApproximateTanh => libm::tanh(x),
            UnaryOp::LibraryExp => libm::exp(x),
            UnaryOp::LibraryExp2 => libm::exp2(x),
            UnaryOp::LibraryExp10 => libm::exp10(x),
            UnaryOp::LibraryLog => libm::log(x),
            UnaryOp::LibraryLog2 => libm::log2(x),
            UnaryOp::LibraryLog10 => libm::log10(x),
            UnaryOp::LibrarySin => libm::sin(x),
            UnaryOp::LibraryCos => libm::cos(x),
            UnaryOp::LibraryTan => libm::tan(x),
            UnaryOp::LibraryAsin => libm::asin(x),
            UnaryOp::LibraryAcos => libm::acos(x),
            UnaryOp::LibraryAtan => libm::atan(x),
            UnaryOp::LibrarySinh => libm::sinh(x),
            UnaryOp::LibraryCosh => libm::cosh(x),
            UnaryOp::LibraryTanh => libm::tanh(x),
            UnaryOp::LibraryErf => libm::erf(x),
            UnaryOp::LibraryCbrt => libm::cbrt(x),
            UnaryOp::LibraryRsqrt | UnaryOp::HalfRsqrt => 1.0 / x.sqrt(),
            UnaryOp::LibraryLog1p => libm::log1p(x),
            UnaryOp::LibraryExpm1 => libm::expm1(x),
            UnaryOp::LibraryErfc => libm::erfc(x),
            UnaryOp::LibrarySinOfBoth | UnaryOp::HalfSin => libm::sin(x),
            UnaryOp::LibraryCosOfBoth | UnaryOp::HalfCos => libm::cos(x),
            UnaryOp::NativeExp | UnaryOp::HalfExp => libm::exp(x),
            UnaryOp::HalfExp2 => libm::exp2(x),
            UnaryOp::NativeExp10 | UnaryOp::HalfExp10 => libm::exp10(x),
            UnaryOp::NativeLog | UnaryOp::HalfLog => libm::log(x),
            UnaryOp::HalfLog2 => libm::log2(x),
            UnaryOp::NativeLog10 | UnaryOp::HalfLog10 => libm::log10(x),
            UnaryOp::NativeTan | UnaryOp::HalfTan => libm::tan(x),
            UnaryOp::HalfReciprocal => 1.0 / x,
            UnaryOp::HalfSqrt => x.sqrt(),
            _ => 0.0,
        },
    )
}

/// A device library's function of two numbers: as [`approximate_unary`].
pub(super) fn library_binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> u64 {
    let (x, y) = (to_double(ty, a), to_double(ty, b));
    from_double(
        ty,
        match op {
            BinaryOp::LibraryPow => libm::pow(x, y),
            BinaryOp::LibraryAtan2 => libm::atan2(x, y),
            BinaryOp::LibraryHypot => libm::hypot(x, y),
            BinaryOp::LibraryPown => to_the_integer(x, signed(ty, b)),
            BinaryOp::NativeDivide | BinaryOp::HalfDivide => x / y,
            // `powr` is NaN wherever y ln x is (OpenCL C 3.0, 7.5.1, "Additional requirements beyond C99 TC2").
            // The base has no sign: it is 0 or more.
            _ if (y * libm::log(x)).is_nan() => f64::NAN,
            _ => libm::pow(x.abs(), y),
        },
    )
}

/// A power. Integers that a binary64 does not have are so large that they alone decide the result, apart from their last bit.
fn to_the_integer(x: f64, power: i64) -> f64 {
    let result = libm::pow(x.abs(), power as f64);
    match x.is_sign_negative() && power % 2 != 0 {
        true => -result,
        false => result,
    }
}

/// The approximations in binary64 of which NVIDIA's GPUs compute the upper 32 bits, from the upper 32 bits.
pub(super) fn approximate_upper_half(op: UnaryOp, a: u64) -> u64 {
    const UPPER: u64 = !0 << 32;
    let a = if double::of(a).is_nan() { a } else { a & UPPER };
    approximate_unary(op, Type::F64, a) & UPPER
}

pub(super) fn binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> u64 {
    match ty {
        Type::F32 => single::binary(op, a, b),
        Type::F64 => double::binary(op, a, b),
        Type::F16 | Type::Bf16 => {
            let wide = |x| u64::from(widen(ty, x).to_bits());
            narrow(ty, single::of(single::binary(op, wide(a), wide(b))))
        }
        _ => 0,
    }
}

pub(super) fn compare(op: CompareOp, ty: Type, a: u64, b: u64) -> bool {
    match ty {
        Type::F32 => single::compare(op, a, b),
        Type::F64 => double::compare(op, a, b),
        Type::F16 | Type::Bf16 => {
            let wide = |x| u64::from(widen(ty, x).to_bits());
            single::compare(op, wide(a), wide(b))
        }
        _ => false,
    }
}

pub(super) fn fma(ty: Type, a: u64, b: u64, c: u64) -> u64 {
    match ty {
        Type::F32 => single::made(single::of(a).mul_add(single::of(b), single::of(c))),
        Type::F64 => double::made(double::of(a).mul_add(double::of(b), double::of(c))),
        Type::F16 | Type::Bf16 => {
            let wide = |x| f64::from(widen(ty, x));
            from_double(ty, add_to_odd(wide(a) * wide(b), wide(c)))
        }
        _ => 0,
    }
}

/// `a + b` rounded to odd: rounding once more, to at most 51 bits, then rounds correctly.
fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    // Knuth's two-sum: the exact error of the addition.
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    if error == 0.0 || sum.to_bits() & 1 == 1 {
        sum
    } else if (error > 0.0) == (sum > 0.0) {
        f64::from_bits(sum.to_bits() + 1)
    } else {
        f64::from_bits(sum.to_bits() - 1)
    }
}

/// A binary64 rounded once to any float type.
fn from_double(ty: Type, x: f64) -> u64 {
    match ty {
        Type::F16 if x.is_nan() => 0x7e00,
        Type::F16 => u64::from(f16::from_f64(upper_half_to_odd(x)).to_bits()),
        Type::Bf16 if x.is_nan() => 0x7fc0,
        Type::Bf16 => u64::from(bf16::from_f64(upper_half_to_odd(x)).to_bits()),
        Type::F32 => single::made(x as f32),
        _ => double::made(x),
    }
}

/// `x` rounded to odd, to the bits in its upper half. The crate `half` reads no others, and would round a number just beside a
/// tie as a tie.
fn upper_half_to_odd(x: f64) -> f64 {
    let bits = x.to_bits();
    f64::from_bits((bits >> 32 | u64::from(bits as u32 != 0)) << 32)
}

fn to_double(ty: Type, a: u64) -> f64 {
    match ty {
        Type::F32 => f64::from(single::of(a)),
        Type::F64 => double::of(a),
        _ => f64::from(widen(ty, a)),
    }
}

pub(super) fn convert(op: ConvertOp, from: Type, to: Type, a: u64) -> u64 {
    match op {
        ConvertOp::FloatToFloat => from_double(to, to_double(from, a)),
        ConvertOp::SignedToFloat => from_integer(to, i128::from(super::signed(from, a))),
        ConvertOp::UnsignedToFloat => from_integer(to, i128::from(a)),
        ConvertOp::FloatToSigned => {
            let limit = 1i128 << (to.bits() - 1);
            ((to_double(from, a) as i128).clamp(-limit, limit - 1)) as u64
        }
        ConvertOp::FloatToUnsigned => ((to_double(from, a) as i128).clamp(0, i128::from(to.mask()))) as u64,
        _ => 0,
    }
}

/// An integer of at most 64 bits, rounded once.
fn from_integer(to: Type, a: i128) -> u64 {
    match to {
        Type::F32 => u64::from((a as f32).to_bits()),
        Type::F64 => (a as f64).to_bits(),
        _ => {
            // Rounded to odd in binary64 first, so that the second rounding is the only one that counts.
            let high = (a >> 32) << 32;
            from_double(to, add_to_odd(high as f64, (a - high) as f64))
        }
    }
}
