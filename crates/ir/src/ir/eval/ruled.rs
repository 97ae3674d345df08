//! Float operations with a [`FloatRule`]: the operation of [`eval`](super) on flushed operands, rounded by the rule, and
//! flushed again.
//!
//! A single-precision result is flushed if it is below the least normal number after rounding to 24 bits with unbounded
//! exponent, as on NVIDIA's GPUs: (1 − 2⁻²⁴) · 2⁻¹²⁶ is flushed, although it would round to 2⁻¹²⁶ among subnormal numbers.
//! (Measured on an H100, driver 580.159: `mul`, `fma` and `div` to nearest, down and up.)

use super::{float, rounded};
use crate::ir::op::{BinaryOp, CompareOp, ConvertOp, OpKind, UnaryOp};
use crate::ir::{FloatRule, Rounding, Type, Value};

/// A float's bits, a zero of its sign if it is subnormal.
#[inline]
pub fn flushed(ty: Type, bits: u64) -> u64 {
    let (exponent, sign) = match ty {
        Type::F16 => (0x7c00, 0x8000),
        Type::Bf16 => (0x7f80, 0x8000),
        Type::F32 => (0x7f80_0000, 0x8000_0000),
        Type::F64 => (0x7ff << 52, 1 << 63),
        _ => return bits,
    };
    match bits & exponent {
        0 => bits & sign,
        _ => bits,
    }
}

fn flushed_if(flush: bool, ty: Type, bits: u64) -> u64 {
    match flush {
        true => flushed(ty, bits),
        false => bits,
    }
}

/// The least normal single.
const LEAST_NORMAL: u64 = 0x0080_0000;
/// 2⁶⁴: the scale of a factor that moves a result near the least normal number far from it, so that it rounds by its own bits.
const FAR: u64 = 0x5f80_0000;

/// A result that was rounded to the least normal single, flushed if it is below when it rounds by its own bits. `scaled`
/// is the same operation with a result 2⁶⁴ times as large.
fn tiny_flushed(rule: FloatRule, ty: Type, result: u64, scaled: impl FnOnce() -> u64) -> u64 {
    let is_least = ty == Type::F32 && result & 0x7fff_ffff == LEAST_NORMAL;
    // 2⁻⁶² = 2⁻¹²⁶ · 2⁶⁴.
    const LIMIT: u64 = 0x2080_0000;
    match rule.flush && is_least && scaled() & 0x7fff_ffff < LIMIT {
        true => result & 0x8000_0000,
        false => flushed_if(rule.flush, ty, result),
    }
}

/// A single, 2⁶⁴ times as large: exact for normal numbers that leave room for it.
fn far(bits: u64) -> u64 {
    super::binary(BinaryOp::FMul, Type::F32, bits, FAR)
}

/// Two factors of a product, 2⁶⁴ times as large: the smaller one grows, which has room for it where the product is small.
fn far_factors(a: u64, b: u64) -> (u64, u64) {
    match a & 0x7fff_ffff <= b & 0x7fff_ffff {
        true => (far(a), b),
        false => (a, far(b)),
    }
}

/// [`OpKind::Unary`] with a rule.
pub fn unary(rule: FloatRule, op: UnaryOp, ty: Type, a: u64) -> u64 {
    let a = flushed_if(rule.flush, ty, a);
    let is_not_a_number = ty == Type::F16 && a & 0x7fff > 0x7c00;
    if rule.flush && is_not_a_number && matches!(op, UnaryOp::FNeg | UnaryOp::FAbs) {
        // Flushed, they are arithmetic, which has one NaN (measured on an H100).
        return 0x7fff;
    }
    let result = match (rule.rounding, op) {
        (Rounding::Nearest, UnaryOp::ApproximateReciprocal | UnaryOp::ApproximateRsqrt)
            if ty == Type::F64 && rule.flush =>
        {
            float::approximate_upper_half(op, a)
        }
        (Rounding::Nearest, _) => super::unary(op, ty, a),
        (rounding, UnaryOp::Sqrt) => rounded::root(ty, rounding, a),
        _ => super::unary(op, ty, a),
    };
    flushed_if(rule.flush, ty, result)
}

/// [`OpKind::Binary`] with a rule.
pub fn binary(rule: FloatRule, op: BinaryOp, ty: Type, a: u64, b: u64) -> u64 {
    let [a, b] = [a, b].map(|bits| flushed_if(rule.flush, ty, bits));
    let rounded = |a, b| match (rule.rounding, op) {
        (Rounding::Nearest, _) => super::binary(op, ty, a, b),
        (rounding, BinaryOp::FAdd) => rounded::sum_of(ty, rounding, a, b, false),
        (rounding, BinaryOp::FSub) => rounded::sum_of(ty, rounding, a, b, true),
        (rounding, BinaryOp::FMul) => rounded::product(ty, rounding, a, b),
        (rounding, BinaryOp::FDiv) => rounded::quotient(ty, rounding, a, b),
        _ => super::binary(op, ty, a, b),
    };
    let result = rounded(a, b);
    match op {
        BinaryOp::FMul => tiny_flushed(rule, ty, result, || {
            let (a, b) = far_factors(a, b);
            rounded(a, b)
        }),
        BinaryOp::FDiv => tiny_flushed(rule, ty, result, || rounded(far(a), b)),
        // Sums of normal numbers are exact where they are small.
        _ => flushed_if(rule.flush, ty, result),
    }
}

/// [`OpKind::Fma`] with a rule.
pub fn fma(rule: FloatRule, ty: Type, a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(|bits| flushed_if(rule.flush, ty, bits));
    let rounded = |a, b, c| match rule.rounding {
        Rounding::Nearest => super::fma(ty, a, b, c),
        rounding => rounded::fma(ty, rounding, a, b, c),
    };
    // Where the result is small and not exact, product and sum are below 2⁻⁷⁸: there is room.
    tiny_flushed(rule, ty, rounded(a, b, c), || {
        let (a, b) = far_factors(a, b);
        rounded(a, b, far(c))
    })
}

/// [`OpKind::Compare`] with a rule.
pub fn compare(rule: FloatRule, op: CompareOp, ty: Type, a: u64, b: u64) -> bool {
    let [a, b] = [a, b].map(|bits| flushed_if(rule.flush, ty, bits));
    super::compare(op, ty, a, b)
}

/// [`OpKind::Convert`] with a rule. Only an `F32` is flushed, and none that becomes a half (measured on an H100).
pub fn convert(rule: FloatRule, op: ConvertOp, from: Type, to: Type, a: u64) -> u64 {
    let a = flushed_if(rule.flush && from == Type::F32 && to != Type::F16, from, a);
    if rule.nan_high && super::compare(CompareOp::FUnordered, from, a, a) {
        return 1 << (to.bits() - 1);
    }
    let result = match (rule.rounding, op) {
        (Rounding::Nearest, _) => super::convert(op, from, to, a),
        (rounding, ConvertOp::FloatToFloat) => rounded::converted(from, to, rounding, a),
        (rounding, ConvertOp::SignedToFloat) => {
            rounded::from_integer(to, rounding, i128::from(super::signed(from, a)))
        }
        (rounding, ConvertOp::UnsignedToFloat) => rounded::from_integer(to, rounding, i128::from(a)),
        _ => super::convert(op, from, to, a),
    };
    flushed_if(rule.flush && to == Type::F32, to, result)
}

/// The result of a [`OpKind::Ruled`] operation, from the types and bits of its operands; none if a rule cannot apply to
/// `plain`.
pub fn ruled(
    rule: FloatRule,
    plain: &OpKind,
    result: Type,
    ty: impl Fn(Value) -> Type,
    bits: impl Fn(Value) -> u64,
) -> Option<u64> {
    Some(match *plain {
        OpKind::Unary(op, a) => unary(rule, op, ty(a), bits(a)),
        OpKind::Binary(op, a, b) => binary(rule, op, ty(a), bits(a), bits(b)),
        OpKind::Fma(a, b, c) => fma(rule, ty(a), bits(a), bits(b), bits(c)),
        OpKind::Compare(op, a, b) => u64::from(compare(rule, op, ty(a), bits(a), bits(b))),
        OpKind::Convert(op, a) => convert(rule, op, ty(a), result, bits(a)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(x: f32) -> u64 {
        u64::from(x.to_bits())
    }

    const SUBNORMAL: u64 = 0x0000_0001;
    const MINUS: u64 = 0x8000_0000;

    #[test]
    fn operands_and_results_are_flushed_with_their_signs() {
        let rule = FloatRule::FLUSHED;
        let least = single(f32::MIN_POSITIVE);
        let add = |a, b| binary(rule, BinaryOp::FAdd, Type::F32, a, b);
        assert_eq!(add(SUBNORMAL, SUBNORMAL), 0);
        assert_eq!(add(MINUS | SUBNORMAL, MINUS | SUBNORMAL), MINUS);
        // Normal operands, a subnormal difference.
        assert_eq!(
            binary(rule, BinaryOp::FSub, Type::F32, least, least + 1),
            MINUS,
            "the sign of what is flushed stays"
        );
        assert_eq!(
            binary(rule, BinaryOp::FMul, Type::F32, least, single(-0.5)),
            MINUS
        );
        // Among subnormal numbers this rounds to the least normal one; by its own bits it is below.
        let below = single(1.0) - 1;
        assert_eq!(fma(FloatRule::EXACT, Type::F32, least, below, 0), least);
        assert_eq!(fma(rule, Type::F32, least, below, 0), 0);
        let exact = |op, a, b| binary(FloatRule::EXACT, op, Type::F32, a, b);
        assert_eq!(exact(BinaryOp::FMul, MINUS | below, least), MINUS | least);
        assert_eq!(
            binary(rule, BinaryOp::FMul, Type::F32, MINUS | below, least),
            MINUS
        );
        // By its own bits, too, this rounds to the least normal number: (1 − 2⁻²²)(1 + 2⁻²² + 2⁻²³·…) is just below 1.
        let (low, high) = (single(1.0) - 4, single(1.0) + 2);
        let product = f64::from(f32::from_bits(low as u32)) * f64::from(f32::from_bits(high as u32));
        assert!(product < 1.0 && product > 1.0 - 2.0f64.powi(-25));
        let half = single(f32::from_bits(low as u32) * f32::MIN_POSITIVE * 2.0);
        let small = single(f32::from_bits(high as u32) / 2.0);
        assert_eq!(binary(rule, BinaryOp::FMul, Type::F32, half, small), least);
        let up = FloatRule {
            rounding: Rounding::Up,
            ..rule
        };
        let quotient = |rule| binary(rule, BinaryOp::FDiv, Type::F32, least, single(1.0) + 1);
        assert_eq!(quotient(FloatRule { flush: false, ..up }), least);
        assert_eq!((quotient(up), quotient(rule)), (0, 0));
        assert_eq!(fma(up, Type::F32, below, least, 0), 0);
        assert_eq!(
            binary(rule, BinaryOp::FMax, Type::F32, SUBNORMAL, MINUS | SUBNORMAL),
            0
        );
        assert_eq!(
            binary(rule, BinaryOp::FMin, Type::F32, SUBNORMAL, MINUS | SUBNORMAL),
            MINUS
        );
        assert_eq!(unary(rule, UnaryOp::FNeg, Type::F32, SUBNORMAL), MINUS);
        assert_eq!(unary(rule, UnaryOp::FAbs, Type::F32, MINUS | SUBNORMAL), 0);
        assert_eq!(unary(rule, UnaryOp::Ceil, Type::F32, SUBNORMAL), 0);
        assert_eq!(
            unary(FloatRule::EXACT, UnaryOp::Ceil, Type::F32, SUBNORMAL),
            single(1.0)
        );
    }

    #[test]
    fn comparisons_flush_and_infinities_come_of_flushed_divisors() {
        let rule = FloatRule::FLUSHED;
        assert!(!compare(rule, CompareOp::FLt, Type::F32, 0, SUBNORMAL));
        assert!(compare(FloatRule::EXACT, CompareOp::FLt, Type::F32, 0, SUBNORMAL));
        assert!(compare(
            rule,
            CompareOp::FEq,
            Type::F32,
            SUBNORMAL,
            MINUS | SUBNORMAL
        ));
        let infinity = single(f32::INFINITY);
        assert_eq!(
            binary(rule, BinaryOp::FDiv, Type::F32, single(1.0), SUBNORMAL),
            infinity
        );
        assert_eq!(
            unary(rule, UnaryOp::ApproximateReciprocal, Type::F32, MINUS | SUBNORMAL),
            MINUS | infinity
        );
    }

    #[test]
    fn conversions_flush_what_is_single_precision() {
        let rule = FloatRule::FLUSHED;
        let to = |from, into, bits| convert(rule, ConvertOp::FloatToFloat, from, into, bits);
        assert_eq!(to(Type::F32, Type::F64, MINUS | SUBNORMAL), 1 << 63);
        assert_eq!(to(Type::F64, Type::F32, 1e-40f64.to_bits()), 0);
        assert_eq!(to(Type::F64, Type::F32, (-1e-40f64).to_bits()), MINUS);
        // The least half is a normal number in single precision.
        assert_eq!(to(Type::F16, Type::F32, 1), single(2.0f32.powi(-24)));
        assert_eq!(to(Type::F32, Type::F32, SUBNORMAL), 0);
        // A value that becomes a half is not flushed before it is rounded.
        let down = FloatRule {
            rounding: Rounding::Down,
            ..rule
        };
        let half = convert(
            down,
            ConvertOp::FloatToFloat,
            Type::F32,
            Type::F16,
            MINUS | SUBNORMAL,
        );
        assert_eq!(half, 0x8001);
    }

    #[test]
    fn halves_are_flushed_as_halves() {
        let rule = FloatRule::FLUSHED;
        assert_eq!(binary(rule, BinaryOp::FAdd, Type::F16, 0x03ff, 0x0001), 0);
        assert_eq!(
            binary(FloatRule::EXACT, BinaryOp::FAdd, Type::F16, 0x03ff, 0x0001),
            0x0400
        );
        assert_eq!(unary(rule, UnaryOp::FAbs, Type::F16, 0x8001), 0);
        assert_eq!(unary(rule, UnaryOp::FNeg, Type::F16, 0x7e05), 0x7fff);
        assert_eq!(unary(FloatRule::EXACT, UnaryOp::FNeg, Type::F16, 0x7e05), 0xfe05);
    }

    #[test]
    fn double_approximations_are_of_upper_halves() {
        let rule = FloatRule::FLUSHED;
        for x in [3.0f64, 1e-300, -7.25e120, 1.0000001] {
            let y = unary(rule, UnaryOp::ApproximateReciprocal, Type::F64, x.to_bits());
            assert_eq!(y as u32, 0);
            assert!((f64::from_bits(y) * x - 1.0).abs() < 2.0f64.powi(-19), "{x}");
            let y = unary(rule, UnaryOp::ApproximateRsqrt, Type::F64, x.abs().to_bits());
            assert!(
                (f64::from_bits(y) * x.abs().sqrt() - 1.0).abs() < 2.0f64.powi(-19),
                "{x}"
            );
        }
        let tiny = 1u64;
        let infinity = f64::INFINITY.to_bits();
        assert_eq!(
            unary(rule, UnaryOp::ApproximateReciprocal, Type::F64, tiny),
            infinity
        );
        let kept = unary(FloatRule::EXACT, UnaryOp::ApproximateRsqrt, Type::F64, tiny);
        assert_eq!(f64::from_bits(kept), 2.0f64.powi(537));
    }

    #[test]
    fn constants_are_folded_by_the_rule_and_approximations_never() {
        let mut kernel = crate::ir::Kernel::new("k");
        let [one, tiny, third] = [1.0, 1e-40, 1e-20].map(|x: f32| kernel.constant(Type::F32, single(x)));
        let up = FloatRule {
            rounding: Rounding::Up,
            ..FloatRule::EXACT
        };
        let folded = |kind: OpKind, rule: FloatRule| kind.folded(rule, &kernel, Type::F32);
        let sum = OpKind::Binary(BinaryOp::FAdd, one, third);
        assert_eq!(folded(sum.clone(), up), Some(single(1.0) + 1));
        assert_eq!(folded(sum.clone(), FloatRule::EXACT), Some(single(1.0)));
        let scaled = OpKind::Binary(BinaryOp::FMul, one, tiny);
        assert_eq!(folded(scaled.clone(), FloatRule::FLUSHED), Some(0));
        assert_eq!(folded(scaled, FloatRule::EXACT), Some(single(1e-40)));
        let open = FloatRule {
            contract: true,
            ..FloatRule::EXACT
        };
        assert_eq!(folded(sum, open), None);
        let approximate = OpKind::Unary(UnaryOp::ApproximateReciprocal, one);
        assert_eq!(folded(approximate, FloatRule::FLUSHED), None);
    }
}
