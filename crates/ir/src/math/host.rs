//! Expansions computed on the host, at the host's speed.
//!
//! The operations follow [`ir::eval`](crate::ir::eval) (a test compares the two), on native types, so that a function can be
//! tested on every one of its 2³² arguments. Only the operations that expansions use exist here.

use crate::ir::{BinaryOp, CompareOp, ConvertOp, Type, UnaryOp, eval};

use super::arithmetic::{Arithmetic, Float, Number, Scalar};

/// Computes at once.
#[derive(Clone, Copy, Debug)]
pub struct Host;

/// A number on the host.
pub type HostNumber<T> = Number<Host, T>;

impl<T: Scalar> HostNumber<T> {
    /// A number that [`Host`] computes with.
    #[inline(always)]
    pub fn on_host(value: T) -> Self {
        Number::new(Host, value)
    }
}

impl Arithmetic for Host {
    type Raw<T: Scalar> = T;

    #[inline(always)]
    fn constant<T: Scalar>(self, value: T) -> T {
        value
    }

    #[inline(always)]
    fn unary<T: Scalar>(self, op: UnaryOp, a: T) -> T {
        match T::TYPE {
            Type::F32 => from_f32(float::unary_f32(op, to_f32(a))),
            Type::F64 => from_f64(float::unary_f64(op, to_f64(a))),
            ty => T::from_bits64(eval::unary(op, ty, a.to_bits64())),
        }
    }

    #[inline(always)]
    fn binary<T: Scalar>(self, op: BinaryOp, a: T, b: T) -> T {
        match T::TYPE {
            Type::F32 => from_f32(float::binary_f32(op, to_f32(a), to_f32(b))),
            Type::F64 => from_f64(float::binary_f64(op, to_f64(a), to_f64(b))),
            Type::I32 => T::from_bits64(u64::from(integer_u32(
                op,
                a.to_bits64() as u32,
                b.to_bits64() as u32,
            ))),
            Type::I64 => T::from_bits64(integer_u64(op, a.to_bits64(), b.to_bits64())),
            ty => T::from_bits64(eval::binary(op, ty, a.to_bits64(), b.to_bits64())),
        }
    }

    #[inline(always)]
    fn fma<T: Float>(self, a: T, b: T, c: T) -> T {
        match T::TYPE {
            Type::F32 => from_f32(float::made_f32(to_f32(a).mul_add(to_f32(b), to_f32(c)))),
            _ => from_f64(float::made_f64(to_f64(a).mul_add(to_f64(b), to_f64(c)))),
        }
    }

    #[inline(always)]
    fn compare<T: Scalar>(self, op: CompareOp, a: T, b: T) -> bool {
        // Widening a float is exact and keeps the order.
        let float = |a: f64, b: f64| match op {
            CompareOp::FEq => a == b,
            CompareOp::FNe => a != b,
            CompareOp::FLt => a < b,
            CompareOp::FLe => a <= b,
            _ => a.is_nan() || b.is_nan(),
        };
        match T::TYPE {
            Type::F32 => float(f64::from(to_f32(a)), f64::from(to_f32(b))),
            Type::F64 => float(to_f64(a), to_f64(b)),
            ty => {
                let (x, y) = (a.to_bits64(), b.to_bits64());
                let (signed_x, signed_y) = (eval::signed(ty, x), eval::signed(ty, y));
                match op {
                    CompareOp::Eq => x == y,
                    CompareOp::Ne => x != y,
                    CompareOp::LtS => signed_x < signed_y,
                    CompareOp::LeS => signed_x <= signed_y,
                    CompareOp::LtU => x < y,
                    _ => x <= y,
                }
            }
        }
    }

    #[inline(always)]
    fn select<T: Scalar>(self, condition: bool, a: T, b: T) -> T {
        if condition { a } else { b }
    }

    #[inline(always)]
    fn when<T: Scalar, const N: usize>(
        self,
        condition: bool,
        then: impl FnOnce() -> [T; N],
        otherwise: impl FnOnce() -> [T; N],
    ) -> [T; N] {
        if condition { then() } else { otherwise() }
    }

    #[inline(always)]
    fn repeat_while<T: Scalar>(
        self,
        mut value: T,
        condition: impl Fn(T) -> bool,
        step: impl Fn(T) -> T,
    ) -> T {
        while condition(value) {
            value = step(value);
        }
        value
    }

    #[inline(always)]
    fn convert<S: Scalar, T: Scalar>(self, op: ConvertOp, a: S) -> T {
        match (op, S::TYPE, T::TYPE) {
            (ConvertOp::Bits | ConvertOp::ExtendU | ConvertOp::Truncate, ..) => T::from_bits64(a.to_bits64()),
            (ConvertOp::FloatToFloat, Type::F32, _) => from_f64(float::made_f64(f64::from(to_f32(a)))),
            (ConvertOp::FloatToFloat, ..) => from_f32(float::made_f32(to_f64(a) as f32)),
            (ConvertOp::SignedToFloat, Type::I32, Type::F32) => from_f32(a.to_bits64() as i32 as f32),
            (ConvertOp::SignedToFloat, Type::I32, Type::F64) => from_f64(f64::from(a.to_bits64() as i32)),
            (_, from, to) => T::from_bits64(eval::convert(op, from, to, a.to_bits64())),
        }
    }
}

// The type is known where these are inlined: the detours through bits cost nothing.

#[inline(always)]
fn to_f32<T: Scalar>(a: T) -> f32 {
    f32::from_bits64(a.to_bits64())
}

#[inline(always)]
fn to_f64<T: Scalar>(a: T) -> f64 {
    f64::from_bits64(a.to_bits64())
}

#[inline(always)]
fn from_f32<T: Scalar>(a: f32) -> T {
    T::from_bits64(a.to_bits64())
}

#[inline(always)]
fn from_f64<T: Scalar>(a: f64) -> T {
    T::from_bits64(a.to_bits64())
}

macro_rules! integer {
    ($name:ident, $unsigned:ty, $signed:ty) => {
        #[inline(always)]
        fn $name(op: BinaryOp, a: $unsigned, b: $unsigned) -> $unsigned {
            let count = b as u32;
            match op {
                BinaryOp::Add => a.wrapping_add(b),
                BinaryOp::Sub => a.wrapping_sub(b),
                BinaryOp::Mul => a.wrapping_mul(b),
                BinaryOp::MulHighU => ((a as u128 * b as u128) >> <$unsigned>::BITS) as $unsigned,
                BinaryOp::And => a & b,
                BinaryOp::Or => a | b,
                BinaryOp::Xor => a ^ b,
                BinaryOp::Shl if b < <$unsigned>::BITS as $unsigned => a << count,
                BinaryOp::ShrU if b < <$unsigned>::BITS as $unsigned => a >> count,
                BinaryOp::ShrS if b < <$unsigned>::BITS as $unsigned => {
                    ((a as $signed) >> count) as $unsigned
                }
                BinaryOp::MinS => (a as $signed).min(b as $signed) as $unsigned,
                BinaryOp::MaxS => (a as $signed).max(b as $signed) as $unsigned,
                BinaryOp::MinU => a.min(b),
                BinaryOp::MaxU => a.max(b),
                _ => eval::binary(op, <$unsigned>::TYPE, a as u64, b as u64) as $unsigned,
            }
        }
    };
}

integer!(integer_u32, u32, i32);
integer!(integer_u64, u64, i64);

mod float {
    use super::{BinaryOp, Scalar, UnaryOp, eval};

    macro_rules! float {
        ($float:ident, $unary:ident, $binary:ident, $made:ident) => {
            /// A result of arithmetic: every NaN is the canonical one.
            #[inline(always)]
            pub fn $made(x: $float) -> $float {
                if x.is_nan() { $float::NAN } else { x }
            }

            #[inline(always)]
            pub fn $unary(op: UnaryOp, a: $float) -> $float {
                match op {
                    UnaryOp::FNeg => -a,
                    UnaryOp::FAbs => a.abs(),
                    UnaryOp::Sqrt => $made(a.sqrt()),
                    UnaryOp::Floor => $made(a.floor()),
                    UnaryOp::Ceil => $made(a.ceil()),
                    UnaryOp::Trunc => $made(a.trunc()),
                    UnaryOp::RoundEven => $made(a.round_ties_even()),
                    UnaryOp::NormalReciprocal => $made(eval::normal_reciprocal(a as f32) as $float),
                    UnaryOp::NormalSqrt => $made(eval::normal_sqrt(a as f32) as $float),
                    UnaryOp::TableExp2 => $made(eval::table::exp2(a as f32) as $float),
                    UnaryOp::TableLog2 => $made(eval::table::log2(a as f32) as $float),
                    UnaryOp::TableReciprocal => $made(eval::table::reciprocal(a as f32) as $float),
                    _ => a,
                }
            }

            #[inline(always)]
            pub fn $binary(op: BinaryOp, a: $float, b: $float) -> $float {
                match op {
                    BinaryOp::FAdd => $made(a + b),
                    BinaryOp::FSub => $made(a - b),
                    BinaryOp::FMul => $made(a * b),
                    BinaryOp::FDiv => $made(a / b),
                    BinaryOp::CopySign => a.copysign(b),
                    // Of two zeros the one that is below, or above.
                    BinaryOp::FMinimum | BinaryOp::FMaximum if a.is_nan() || b.is_nan() => $float::NAN,
                    BinaryOp::FMinimum if a < b => a,
                    BinaryOp::FMinimum if b < a => b,
                    BinaryOp::FMaximum if a < b => b,
                    BinaryOp::FMaximum if b < a => a,
                    _ => $float::from_bits64(eval::binary(op, $float::TYPE, a.to_bits64(), b.to_bits64())),
                }
            }
        };
    }

    float!(f32, unary_f32, binary_f32, made_f32);
    float!(f64, unary_f64, binary_f64, made_f64);
}
