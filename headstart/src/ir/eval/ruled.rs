//! Float operations with a [`FloatRule`]: what [`eval`](super) computes, of flushed operands, rounded as the rule says,
//! and flushed again.
//!
//! A result is flushed after it was rounded, as NVIDIA's GPUs do it: a product that rounds to the least normal number
//! stays.

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

/// [`OpKind::Unary`] with a rule.
pub fn unary(rule: FloatRule, op: UnaryOp, ty: Type, a: u64) -> u64 {
    let a = flushed_if(rule.flush, ty, a);
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
    let result = match (rule.rounding, op) {
        (Rounding::Nearest, _) => super::binary(op, ty, a, b),
        (rounding, BinaryOp::FAdd) => rounded::sum_of(ty, rounding, a, b, false),
        (rounding, BinaryOp::FSub) => rounded::sum_of(ty, rounding, a, b, true),
        (rounding, BinaryOp::FMul) => rounded::product(ty, rounding, a, b),
        (rounding, BinaryOp::FDiv) => rounded::quotient(ty, rounding, a, b),
        _ => super::binary(op, ty, a, b),
    };
    flushed_if(rule.flush, ty, result)
}

/// [`OpKind::Fma`] with a rule.
pub fn fma(rule: FloatRule, ty: Type, a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(|bits| flushed_if(rule.flush, ty, bits));
    let result = match rule.rounding {
        Rounding::Nearest => super::fma(ty, a, b, c),
        rounding => rounded::fma(ty, rounding, a, b, c),
    };
    flushed_if(rule.flush, ty, result)
}

/// [`OpKind::Compare`] with a rule.
pub fn compare(rule: FloatRule, op: CompareOp, ty: Type, a: u64, b: u64) -> bool {
    let [a, b] = [a, b].map(|bits| flushed_if(rule.flush, ty, bits));
    super::compare(op, ty, a, b)
}

/// [`OpKind::Convert`] with a rule. Only an `F32` is flushed.
pub fn convert(rule: FloatRule, op: ConvertOp, from: Type, to: Type, a: u64) -> u64 {
    let a = flushed_if(rule.flush && from == Type::F32, from, a);
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

/// What a [`OpKind::Ruled`] operation gives, from the types and bits of its operands; nothing if `plain` is none that a
/// rule can be for.
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
        // 2⁻¹²⁶ less a quarter of its last digit rounds to a normal number.
        let below = single(1.0) - 1;
        assert_eq!(
            fma(rule, Type::F32, least, below, 0),
            flushed(Type::F32, fma(FloatRule::EXACT, Type::F32, least, below, 0))
        );
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
