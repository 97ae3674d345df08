//! The semantics of the pure operations: the specification, in code.
//!
//! Values travel as `u64`, zero-extended from their type's width ([`Type::mask`]); every function
//! returns them so. Operand types are those that the verifier demands: on others the result is 0, never
//! a panic. Engines may compute faster, never differently; constant folding calls these functions. [`ruled`] has the
//! operations that round or flush by a rule of their own.

mod float;
mod rounded;
pub mod ruled;
pub mod table;

pub use float::{LEAST_OF_NORMAL_SQRT, normal_reciprocal, normal_sqrt};

use super::op::{BinaryOp, CompareOp, ConvertOp, NoWrapOp, UnaryOp, Wrap};
use super::together::AtomicOp;
use super::types::Type;

/// The value as a signed number.
pub fn signed(ty: Type, bits: u64) -> i64 {
    let unused = 64 - ty.bits();
    ((bits << unused) as i64) >> unused
}

/// [`OpKind::Unary`](super::OpKind::Unary) on operand type `ty`.
pub fn unary(op: UnaryOp, ty: Type, a: u64) -> u64 {
    match op {
        UnaryOp::Not => !a & ty.mask(),
        UnaryOp::Neg => a.wrapping_neg() & ty.mask(),
        UnaryOp::CountLeadingZeros => u64::from((a & ty.mask()).leading_zeros() - (64 - ty.bits())),
        UnaryOp::CountOnes => u64::from((a & ty.mask()).count_ones()),
        UnaryOp::ReverseBits => a.reverse_bits() >> (64 - ty.bits()),
        UnaryOp::TableRow => table::row(a),
        UnaryOp::FNeg => a ^ sign_bit(ty),
        UnaryOp::FAbs => a & !sign_bit(ty),
        UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundEven => {
            float::unary(op, ty, a)
        }
        UnaryOp::NormalReciprocal
        | UnaryOp::NormalSqrt
        | UnaryOp::TableExp2
        | UnaryOp::TableLog2
        | UnaryOp::TableReciprocal => float::unary_of_single(op, a),
        _ => float::approximate_unary(op, ty, a),
    }
}

/// [`OpKind::Binary`](super::OpKind::Binary) on operand type `ty`.
pub fn binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> u64 {
    let (sa, sb) = (signed(ty, a), signed(ty, b));
    let width = u64::from(ty.bits());
    let result = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::MulHighS => ((i128::from(sa) * i128::from(sb)) >> width) as u64,
        BinaryOp::MulHighU => ((u128::from(a) * u128::from(b)) >> width) as u64,
        BinaryOp::DivS => sa.checked_div(sb).unwrap_or(if sb == 0 { 0 } else { sa }) as u64,
        BinaryOp::DivU => a.checked_div(b).unwrap_or(0),
        BinaryOp::RemS => sa.checked_rem(sb).unwrap_or(if sb == 0 { sa } else { 0 }) as u64,
        BinaryOp::RemU => a.checked_rem(b).unwrap_or(a),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => {
            if b < width {
                a << b
            } else {
                0
            }
        }
        BinaryOp::ShrS => (sa >> b.min(width - 1)) as u64,
        BinaryOp::ShrU => {
            if b < width {
                a >> b
            } else {
                0
            }
        }
        BinaryOp::MinS => sa.min(sb) as u64,
        BinaryOp::MaxS => sa.max(sb) as u64,
        BinaryOp::MinU => a.min(b),
        BinaryOp::MaxU => a.max(b),
        BinaryOp::Dot4S => dot4(a, b, |byte| i64::from(byte as i8), |byte| i64::from(byte as i8)),
        BinaryOp::Dot4U => dot4(a, b, i64::from, i64::from),
        BinaryOp::Dot4SU => dot4(a, b, |byte| i64::from(byte as i8), i64::from),
        BinaryOp::Dot2S => dot2(a, b, |half| i64::from(half as i16), |byte| i64::from(byte as i8)),
        BinaryOp::Dot2U => dot2(a, b, i64::from, i64::from),
        BinaryOp::Dot2SU => dot2(a, b, |half| i64::from(half as i16), i64::from),
        BinaryOp::Dot2US => dot2(a, b, i64::from, |byte| i64::from(byte as i8)),
        BinaryOp::CopySign => (a & !sign_bit(ty)) | (b & sign_bit(ty)),
        BinaryOp::FAdd
        | BinaryOp::FSub
        | BinaryOp::FMul
        | BinaryOp::FDiv
        | BinaryOp::FMin
        | BinaryOp::FMax
        | BinaryOp::FMinimum
        | BinaryOp::FMaximum => float::binary(op, ty, a, b),
        BinaryOp::ApproximateDiv | BinaryOp::ApproximateDivInRange => float::binary(BinaryOp::FDiv, ty, a, b),
        BinaryOp::LibraryPow
        | BinaryOp::LibraryAtan2
        | BinaryOp::LibraryHypot
        | BinaryOp::LibraryPowr
        | BinaryOp::LibraryPown
        | BinaryOp::NativePowr
        | BinaryOp::NativeDivide
        | BinaryOp::HalfPowr
        | BinaryOp::HalfDivide => float::library_binary(op, ty, a, b),
    };
    result & ty.mask()
}

/// The sum of the products of four bytes.
fn dot4(a: u64, b: u64, of_a: impl Fn(u8) -> i64, of_b: impl Fn(u8) -> i64) -> u64 {
    let bytes = a.to_le_bytes().into_iter().zip(b.to_le_bytes()).take(4);
    bytes.map(|(a, b)| of_a(a) * of_b(b)).sum::<i64>() as u64
}

/// The sum of the products of two halves and two bytes.
fn dot2(a: u64, b: u64, of_a: impl Fn(u16) -> i64, of_b: impl Fn(u8) -> i64) -> u64 {
    let [low, high] = [0, 1].map(|index| of_a((a >> (16 * index)) as u16) * of_b((b >> (8 * index)) as u8));
    (low + high) as u64
}

/// [`OpKind::NoWrap`](super::OpKind::NoWrap): the wrapped result, and whether the promise held.
#[doc(hidden)]
pub fn no_wrap(op: NoWrapOp, wrap: Wrap, ty: Type, a: u64, b: u64) -> (u64, bool) {
    let exact = |a: i128, b: i128| match op {
        NoWrapOp::Add => a + b,
        NoWrapOp::Sub => a - b,
        // 64-bit factors: the product of unsigned ones may exceed an i128, and is then out of range anyway.
        NoWrapOp::Mul => a.checked_mul(b).unwrap_or(i128::MAX),
    };
    let result = binary(op.into(), ty, a, b);
    let unsigned_holds = exact(i128::from(a), i128::from(b)) == i128::from(result);
    let signed_exact = exact(i128::from(signed(ty, a)), i128::from(signed(ty, b)));
    let signed_holds = signed_exact == i128::from(signed(ty, result));
    let holds = match wrap {
        Wrap::NotSigned => signed_holds,
        Wrap::NotUnsigned => unsigned_holds,
        Wrap::Neither => signed_holds && unsigned_holds,
    };
    (result, holds)
}

/// [`OpKind::Compare`](super::OpKind::Compare) on operand type `ty`.
pub fn compare(op: CompareOp, ty: Type, a: u64, b: u64) -> bool {
    match op {
        CompareOp::Eq => a == b,
        CompareOp::Ne => a != b,
        CompareOp::LtS => signed(ty, a) < signed(ty, b),
        CompareOp::LeS => signed(ty, a) <= signed(ty, b),
        CompareOp::LtU => a < b,
        CompareOp::LeU => a <= b,
        CompareOp::FEq | CompareOp::FNe | CompareOp::FLt | CompareOp::FLe | CompareOp::FUnordered => {
            float::compare(op, ty, a, b)
        }
    }
}

/// [`OpKind::Fma`](super::OpKind::Fma) on operand type `ty`.
pub fn fma(ty: Type, a: u64, b: u64, c: u64) -> u64 {
    float::fma(ty, a, b, c)
}

/// [`OpKind::Convert`](super::OpKind::Convert) from type `from` to type `to`.
pub fn convert(op: ConvertOp, from: Type, to: Type, a: u64) -> u64 {
    let result = match op {
        ConvertOp::ExtendU
        | ConvertOp::Truncate
        | ConvertOp::Bits
        | ConvertOp::ToGeneric
        | ConvertOp::FromGeneric => a,
        ConvertOp::ExtendS => signed(from, a) as u64,
        ConvertOp::FloatToFloat
        | ConvertOp::SignedToFloat
        | ConvertOp::UnsignedToFloat
        | ConvertOp::FloatToSigned
        | ConvertOp::FloatToUnsigned => float::convert(op, from, to, a),
    };
    result & to.mask()
}

/// [`OpKind::Address`](super::OpKind::Address).
pub fn address(base: u64, index: u64, scale: u32, offset: i64) -> u64 {
    base.wrapping_add(index.wrapping_mul(u64::from(scale)))
        .wrapping_add(offset as u64)
}

/// The value that [`OpKind::Atomic`](super::OpKind::Atomic) leaves in memory in place of `old`; absent operands are not read.
pub fn atomic(op: AtomicOp, ty: Type, old: u64, [a, b]: [u64; 2]) -> u64 {
    let op = match op {
        AtomicOp::Load => return old,
        AtomicOp::Store | AtomicOp::Exchange => return a,
        AtomicOp::CompareExchange => return if old == a { b } else { old },
        AtomicOp::Add => BinaryOp::Add,
        AtomicOp::Sub => BinaryOp::Sub,
        AtomicOp::And => BinaryOp::And,
        AtomicOp::Or => BinaryOp::Or,
        AtomicOp::Xor => BinaryOp::Xor,
        AtomicOp::MinS => BinaryOp::MinS,
        AtomicOp::MinU => BinaryOp::MinU,
        AtomicOp::MaxS => BinaryOp::MaxS,
        AtomicOp::MaxU => BinaryOp::MaxU,
        AtomicOp::FAdd => BinaryOp::FAdd,
        AtomicOp::FAddHalves | AtomicOp::FAddBrainHalves => {
            let half = match op {
                AtomicOp::FAddHalves => Type::F16,
                _ => Type::Bf16,
            };
            let [low, high] =
                [0, 16].map(|bit| binary(BinaryOp::FAdd, half, old >> bit & 0xffff, a >> bit & 0xffff));
            return low | high << 16;
        }
        AtomicOp::IncrementU => return if old >= a { 0 } else { old + 1 },
        AtomicOp::DecrementU => return if old == 0 || old > a { a } else { old - 1 },
    };
    binary(op, ty, old, a)
}

fn sign_bit(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_rounded_once() {
        // 39504, a tie, and a little more; computed by an H200.
        assert_eq!(fma(Type::F16, 0xf66e, 0xbe00, 0x1419), 0x78d3);
        assert_eq!(fma(Type::Bf16, 0x4020, 0x714a, 0x4060), 0x71fd);
    }

    #[test]
    fn division_is_total() {
        assert_eq!(binary(BinaryOp::DivS, Type::I32, 7, 0), 0);
        assert_eq!(binary(BinaryOp::RemS, Type::I32, 7, 0), 7);
        assert_eq!(
            binary(BinaryOp::DivS, Type::I32, 0x8000_0000, 0xffff_ffff),
            0x8000_0000
        );
        assert_eq!(binary(BinaryOp::RemS, Type::I32, 0x8000_0000, 0xffff_ffff), 0);
        assert_eq!(binary(BinaryOp::DivS, Type::I64, 1 << 63, u64::MAX), 1 << 63);
        assert_eq!(binary(BinaryOp::RemS, Type::I64, 1 << 63, u64::MAX), 0);
        assert_eq!(binary(BinaryOp::RemU, Type::I8, 200, 0), 200);
    }

    #[test]
    fn oversized_shifts_shift_everything_out() {
        assert_eq!(binary(BinaryOp::Shl, Type::I32, 1, 32), 0);
        assert_eq!(binary(BinaryOp::ShrU, Type::I64, u64::MAX, 64), 0);
        assert_eq!(binary(BinaryOp::ShrS, Type::I16, 0x8000, 99), 0xffff);
    }

    #[test]
    fn high_products() {
        assert_eq!(
            binary(BinaryOp::MulHighU, Type::I32, 0xffff_ffff, 0xffff_ffff),
            0xffff_fffe
        );
        assert_eq!(binary(BinaryOp::MulHighS, Type::I32, 0xffff_ffff, 0xffff_ffff), 0);
        assert_eq!(
            binary(BinaryOp::MulHighU, Type::I64, u64::MAX, u64::MAX),
            u64::MAX - 1
        );
    }

    #[test]
    fn minimum_prefers_numbers_and_orders_zeros() {
        let nan = u64::from(f32::NAN.to_bits());
        let (zero, minus_zero) = (0, u64::from((-0.0f32).to_bits()));
        let one = u64::from(1.0f32.to_bits());
        assert_eq!(binary(BinaryOp::FMin, Type::F32, nan, one), one);
        assert_eq!(binary(BinaryOp::FMax, Type::F32, one, nan), one);
        assert_eq!(binary(BinaryOp::FMin, Type::F32, zero, minus_zero), minus_zero);
        assert_eq!(binary(BinaryOp::FMax, Type::F32, minus_zero, zero), zero);
    }

    #[test]
    fn float_to_integer_clamps() {
        let bits = |x: f64| x.to_bits();
        assert_eq!(
            convert(ConvertOp::FloatToSigned, Type::F64, Type::I8, bits(-1e9)),
            0x80
        );
        assert_eq!(
            convert(ConvertOp::FloatToUnsigned, Type::F64, Type::I16, bits(1e9)),
            0xffff
        );
        assert_eq!(
            convert(ConvertOp::FloatToUnsigned, Type::F64, Type::I64, bits(-1.0)),
            0
        );
        assert_eq!(
            convert(ConvertOp::FloatToSigned, Type::F64, Type::I32, bits(f64::NAN)),
            0
        );
    }

    #[test]
    fn made_nans_are_canonical() {
        let infinity = u64::from(f32::INFINITY.to_bits());
        assert_eq!(binary(BinaryOp::FSub, Type::F32, infinity, infinity), 0x7fc0_0000);
        let minus_one = (-1.0f64).to_bits();
        assert_eq!(unary(UnaryOp::Sqrt, Type::F64, minus_one), 0x7ff8_0000_0000_0000);
    }

    #[test]
    fn promises() {
        assert_eq!(
            no_wrap(
                NoWrapOp::Add,
                Wrap::NotUnsigned,
                Type::I32,
                u64::from(u32::MAX),
                1
            ),
            (0, false)
        );
        assert_eq!(
            no_wrap(NoWrapOp::Add, Wrap::NotSigned, Type::I32, u64::from(u32::MAX), 1),
            (0, true)
        );
        assert!(!no_wrap(NoWrapOp::Mul, Wrap::Neither, Type::I64, u64::MAX, u64::MAX).1);
    }
}
