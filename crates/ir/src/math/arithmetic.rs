//! The arithmetic that expansions are written in, generic over how operations are performed.
//!
//! An expansion is one generic function, `exp<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64>`. With [`Host`](super::Host)
//! it computes; with [`Emit`](super::Emit) it appends IR operations. Both take the operations' meaning from [`ir`](crate::ir),
//! so tests on the host hold for kernels.

use std::fmt;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use crate::ir::{BinaryOp, CompareOp, ConvertOp, Type, UnaryOp};

/// A Rust type that stands for an IR type. Integers are unsigned: signs live in operations.
pub trait Scalar: Copy + fmt::Debug + PartialEq + 'static {
    /// The IR type.
    const TYPE: Type;

    /// The meaning of `+`.
    const ADD: BinaryOp;

    /// The meaning of `-`.
    const SUBTRACT: BinaryOp;

    /// The meaning of `*`.
    const MULTIPLY: BinaryOp;

    /// The meaning of `min`.
    const MINIMUM: BinaryOp;

    /// The meaning of `max`.
    const MAXIMUM: BinaryOp;

    /// The meaning of equality.
    const EQUAL: CompareOp;

    /// The meaning of `<`.
    const LESS: CompareOp;

    /// The meaning of `<=`.
    const LESS_EQUAL: CompareOp;

    /// The value's bits, zero-filled.
    fn to_bits64(self) -> u64;

    /// The value with these bits.
    fn from_bits64(bits: u64) -> Self;
}

/// `f32` or `f64`.
pub trait Float: Scalar {
    /// The integer of the same size.
    type Bits: Integer;
}

/// `u32` or `u64`.
pub trait Integer: Scalar {}

/// Carries out operations. A copy refers to the same computation: [`Number`]s carry one each, so that
/// they can be written as formulas.
pub trait Arithmetic: Copy {
    /// A value of type `T`.
    type Raw<T: Scalar>: Copy;

    /// A constant.
    fn constant<T: Scalar>(self, value: T) -> Self::Raw<T>;

    /// One operand, same type out.
    fn unary<T: Scalar>(self, op: UnaryOp, a: Self::Raw<T>) -> Self::Raw<T>;

    /// Two operands of one type, same type out.
    fn binary<T: Scalar>(self, op: BinaryOp, a: Self::Raw<T>, b: Self::Raw<T>) -> Self::Raw<T>;

    /// `a × b + c`, rounded once.
    fn fma<T: Float>(self, a: Self::Raw<T>, b: Self::Raw<T>, c: Self::Raw<T>) -> Self::Raw<T>;

    /// Two operands of one type, a truth value out.
    fn compare<T: Scalar>(self, op: CompareOp, a: Self::Raw<T>, b: Self::Raw<T>) -> Self::Raw<bool>;

    /// `condition ? a : b`, without a branch.
    fn select<T: Scalar>(self, condition: Self::Raw<bool>, a: Self::Raw<T>, b: Self::Raw<T>) -> Self::Raw<T>;

    /// To another type.
    fn convert<S: Scalar, T: Scalar>(self, op: ConvertOp, a: Self::Raw<S>) -> Self::Raw<T>;

    /// One of two ways to compute values, by a branch: the first is the usual one, the second rarely needed, or costs
    /// much.
    fn when<T: Scalar, const N: usize>(
        self,
        condition: Self::Raw<bool>,
        then: impl FnOnce() -> [Self::Raw<T>; N],
        otherwise: impl FnOnce() -> [Self::Raw<T>; N],
    ) -> [Self::Raw<T>; N];

    /// Replaces `value` by `step(value)` while `condition(value)` holds.
    fn repeat_while<T: Scalar>(
        self,
        value: Self::Raw<T>,
        condition: impl Fn(Self::Raw<T>) -> Self::Raw<bool>,
        step: impl Fn(Self::Raw<T>) -> Self::Raw<T>,
    ) -> Self::Raw<T>;
}

/// A value of type `T` together with the arithmetic that computes with it.
pub struct Number<A: Arithmetic, T: Scalar> {
    arithmetic: A,
    raw: A::Raw<T>,
}

impl<A: Arithmetic, T: Scalar> Clone for Number<A, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Arithmetic, T: Scalar> Copy for Number<A, T> {}

/// The other operand beside a [`Number`] in a formula: another one, or a constant.
pub trait Operand<A: Arithmetic, T: Scalar> {
    /// As a number.
    fn number(self, arithmetic: A) -> Number<A, T>;
}

impl<A: Arithmetic, T: Scalar> Operand<A, T> for Number<A, T> {
    #[inline(always)]
    fn number(self, _: A) -> Number<A, T> {
        self
    }
}

impl<A: Arithmetic, T: Scalar> Operand<A, T> for T {
    #[inline(always)]
    fn number(self, arithmetic: A) -> Number<A, T> {
        Number::constant(arithmetic, self)
    }
}

impl<A: Arithmetic, T: Scalar> Number<A, T> {
    /// A value that `arithmetic` made.
    #[inline(always)]
    pub fn new(arithmetic: A, raw: A::Raw<T>) -> Self {
        Number { arithmetic, raw }
    }

    /// A constant.
    #[inline(always)]
    pub(crate) fn constant(arithmetic: A, value: T) -> Self {
        Number::new(arithmetic, arithmetic.constant(value))
    }

    /// The value as the arithmetic knows it.
    #[inline(always)]
    pub fn raw(self) -> A::Raw<T> {
        self.raw
    }

    /// A constant of the same arithmetic, of any type.
    #[inline(always)]
    pub(crate) fn same<U: Scalar>(self, value: U) -> Number<A, U> {
        Number::constant(self.arithmetic, value)
    }

    /// The smaller one: of floats the other one of a NaN, of integers as unsigned.
    #[inline(always)]
    pub fn min(self, other: impl Operand<A, T>) -> Self {
        self.binary(T::MINIMUM, other)
    }

    /// The larger one: of floats the other one of a NaN, of integers as unsigned.
    #[inline(always)]
    pub fn max(self, other: impl Operand<A, T>) -> Self {
        self.binary(T::MAXIMUM, other)
    }

    /// Equal; false on NaN.
    #[inline(always)]
    pub(crate) fn equal(self, other: impl Operand<A, T>) -> Number<A, bool> {
        self.compare(T::EQUAL, other)
    }

    /// Below; false on NaN; integers as unsigned.
    #[inline(always)]
    pub(crate) fn less(self, other: impl Operand<A, T>) -> Number<A, bool> {
        self.compare(T::LESS, other)
    }

    /// Below or equal; false on NaN; integers as unsigned.
    #[inline(always)]
    pub(crate) fn less_equal(self, other: impl Operand<A, T>) -> Number<A, bool> {
        self.compare(T::LESS_EQUAL, other)
    }

    /// Above; false on NaN; integers as unsigned.
    #[inline(always)]
    pub(crate) fn greater(self, other: impl Operand<A, T>) -> Number<A, bool> {
        other.number(self.arithmetic).less(self)
    }

    /// Above or equal; false on NaN; integers as unsigned.
    #[inline(always)]
    pub(crate) fn greater_equal(self, other: impl Operand<A, T>) -> Number<A, bool> {
        other.number(self.arithmetic).less_equal(self)
    }

    /// Replaced by `step` of it while `condition` of it holds.
    #[inline(always)]
    pub(crate) fn repeat_while(
        self,
        condition: impl Fn(Self) -> Number<A, bool>,
        step: impl Fn(Self) -> Self,
    ) -> Self {
        let number = |raw| Number::new(self.arithmetic, raw);
        let result = self.arithmetic.repeat_while(
            self.raw,
            |raw| condition(number(raw)).raw,
            |raw| step(number(raw)).raw,
        );
        number(result)
    }

    #[inline(always)]
    fn unary(self, op: UnaryOp) -> Self {
        Number::new(self.arithmetic, self.arithmetic.unary(op, self.raw))
    }

    #[inline(always)]
    fn binary(self, op: BinaryOp, other: impl Operand<A, T>) -> Self {
        let other = other.number(self.arithmetic);
        Number::new(self.arithmetic, self.arithmetic.binary(op, self.raw, other.raw))
    }

    #[inline(always)]
    fn compare(self, op: CompareOp, other: impl Operand<A, T>) -> Number<A, bool> {
        let other = other.number(self.arithmetic);
        Number::new(self.arithmetic, self.arithmetic.compare(op, self.raw, other.raw))
    }

    #[inline(always)]
    fn convert<U: Scalar>(self, op: ConvertOp) -> Number<A, U> {
        Number::new(self.arithmetic, self.arithmetic.convert(op, self.raw))
    }
}

impl<A: Arithmetic, T: Float> Number<A, T> {
    /// `self × factor + term`, rounded once.
    #[inline(always)]
    pub(crate) fn mul_add(self, factor: impl Operand<A, T>, term: impl Operand<A, T>) -> Self {
        let (factor, term) = (factor.number(self.arithmetic), term.number(self.arithmetic));
        Number::new(
            self.arithmetic,
            self.arithmetic.fma(self.raw, factor.raw, term.raw),
        )
    }

    /// The sign bit cleared.
    #[inline(always)]
    pub(crate) fn abs(self) -> Self {
        self.unary(UnaryOp::FAbs)
    }

    /// The IEEE square root.
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        self.unary(UnaryOp::Sqrt)
    }

    /// The smaller one, or NaN if either is.
    #[inline(always)]
    pub(crate) fn minimum(self, other: impl Operand<A, T>) -> Self {
        self.binary(BinaryOp::FMinimum, other)
    }

    /// The larger one, or NaN if either is.
    #[inline(always)]
    pub(crate) fn maximum(self, other: impl Operand<A, T>) -> Self {
        self.binary(BinaryOp::FMaximum, other)
    }

    /// To an integer, towards zero.
    #[inline(always)]
    pub(crate) fn trunc(self) -> Self {
        self.unary(UnaryOp::Trunc)
    }

    /// The magnitude of `self`, the sign of `sign`.
    #[inline(always)]
    pub(crate) fn copy_sign(self, sign: impl Operand<A, T>) -> Self {
        self.binary(BinaryOp::CopySign, sign)
    }

    /// Not a number.
    #[inline(always)]
    pub(crate) fn is_nan(self) -> Number<A, bool> {
        self.compare(CompareOp::FUnordered, self)
    }

    /// The same bits as an integer. An expansion must not depend on the bits of a NaN.
    #[inline(always)]
    pub fn bits(self) -> Number<A, T::Bits> {
        self.convert(ConvertOp::Bits)
    }
}

impl<A: Arithmetic> Number<A, f32> {
    /// The sign bit is set.
    #[inline(always)]
    pub(crate) fn is_negative(self) -> Number<A, bool> {
        self.bits().less_signed(0)
    }

    /// 1/x where x and that are normal: see [`UnaryOp::NormalReciprocal`].
    #[inline(always)]
    pub(crate) fn normal_reciprocal(self) -> Self {
        self.unary(UnaryOp::NormalReciprocal)
    }

    /// √x for x from 2⁻¹⁰¹ on, NaN for zeros and below; x is never between: see [`UnaryOp::NormalSqrt`].
    #[inline(always)]
    pub(crate) fn normal_sqrt(self) -> Self {
        self.unary(UnaryOp::NormalSqrt)
    }

    /// 2ˣ to about 2⁻²³ of itself, 0 instead of subnormal results: see [`UnaryOp::TableExp2`].
    #[inline(always)]
    pub(crate) fn table_exp2(self) -> Self {
        self.unary(UnaryOp::TableExp2)
    }

    /// log₂ x to about 2⁻²²: see [`UnaryOp::TableLog2`].
    #[inline(always)]
    pub(crate) fn table_log2(self) -> Self {
        self.unary(UnaryOp::TableLog2)
    }

    /// 1/x within 1 ulp, 0 instead of subnormal results: see [`UnaryOp::TableReciprocal`].
    #[inline(always)]
    pub(crate) fn table_reciprocal(self) -> Self {
        self.unary(UnaryOp::TableReciprocal)
    }

    /// To double precision, exactly.
    #[inline(always)]
    pub(crate) fn widen(self) -> Number<A, f64> {
        self.convert(ConvertOp::FloatToFloat)
    }
}

impl<A: Arithmetic> Number<A, f64> {
    /// The sign bit is set.
    #[inline(always)]
    pub(crate) fn is_negative(self) -> Number<A, bool> {
        self.high().less_signed(0)
    }

    /// The sign, the exponent and the upper 20 bits of the significand.
    #[inline(always)]
    pub(crate) fn high(self) -> Number<A, u32> {
        self.bits().shift_right(32).truncate()
    }

    /// The lower 32 bits of the significand.
    #[inline(always)]
    pub fn low(self) -> Number<A, u32> {
        self.bits().truncate()
    }

    /// To single precision, rounded to nearest even.
    #[inline(always)]
    pub(crate) fn narrow(self) -> Number<A, f32> {
        self.convert(ConvertOp::FloatToFloat)
    }
}

impl<A: Arithmetic, T: Integer> Number<A, T> {
    /// Towards higher bits.
    #[inline(always)]
    pub(crate) fn shift_left(self, count: impl Operand<A, T>) -> Self {
        self.binary(BinaryOp::Shl, count)
    }

    /// Towards lower bits, zero-filled.
    #[inline(always)]
    pub(crate) fn shift_right(self, count: impl Operand<A, T>) -> Self {
        self.binary(BinaryOp::ShrU, count)
    }

    /// Towards lower bits, sign-filled.
    #[inline(always)]
    pub(crate) fn shift_right_signed(self, count: impl Operand<A, T>) -> Self {
        self.binary(BinaryOp::ShrS, count)
    }

    /// The upper half of the unsigned double-width product.
    #[inline(always)]
    pub(crate) fn multiply_high(self, other: impl Operand<A, T>) -> Self {
        self.binary(BinaryOp::MulHighU, other)
    }

    /// Other bits.
    #[inline(always)]
    pub(crate) fn not_equal(self, other: impl Operand<A, T>) -> Number<A, bool> {
        self.compare(CompareOp::Ne, other)
    }

    /// Below, both taken as signed.
    #[inline(always)]
    pub(crate) fn less_signed(self, other: impl Operand<A, T>) -> Number<A, bool> {
        self.compare(CompareOp::LtS, other)
    }

    /// The larger one, both taken as signed.
    #[inline(always)]
    pub(crate) fn max_signed(self, other: impl Operand<A, T>) -> Self {
        self.binary(BinaryOp::MaxS, other)
    }

    /// Leading zero bits; the width for 0.
    #[inline(always)]
    pub(crate) fn leading_zeros(self) -> Self {
        self.unary(UnaryOp::CountLeadingZeros)
    }

    /// The nearest float, taken as signed.
    #[inline(always)]
    pub(crate) fn signed_to_float<F: Float>(self) -> Number<A, F> {
        self.convert(ConvertOp::SignedToFloat)
    }
}

impl<A: Arithmetic> Number<A, u32> {
    /// The float with these bits.
    #[inline(always)]
    pub(crate) fn float(self) -> Number<A, f32> {
        self.convert(ConvertOp::Bits)
    }

    /// To 64 bits, zero-filled.
    #[inline(always)]
    pub(crate) fn widen(self) -> Number<A, u64> {
        self.convert(ConvertOp::ExtendU)
    }

    /// The double whose upper half this is, with the lower half `low`.
    #[inline(always)]
    pub(crate) fn with_low(self, low: impl Operand<A, u32>) -> Number<A, f64> {
        let low = low.number(self.arithmetic).widen();
        (self.widen().shift_left(32) | low).float()
    }

    /// The double whose upper half this is, with zeros below.
    #[inline(always)]
    pub(crate) fn as_high(self) -> Number<A, f64> {
        self.widen().shift_left(32).float()
    }
}

impl<A: Arithmetic> Number<A, u64> {
    /// The float with these bits.
    #[inline(always)]
    pub(crate) fn float(self) -> Number<A, f64> {
        self.convert(ConvertOp::Bits)
    }

    /// Coefficients of a quadratic: see [`UnaryOp::TableRow`].
    #[inline(always)]
    pub(crate) fn table_row(self) -> Self {
        self.unary(UnaryOp::TableRow)
    }

    /// The lower 32 bits.
    #[inline(always)]
    pub(crate) fn truncate(self) -> Number<A, u32> {
        self.convert(ConvertOp::Truncate)
    }
}

impl<A: Arithmetic> Number<A, bool> {
    /// `then` where this is true, as usual, `otherwise` where it is not, by a branch.
    #[inline(always)]
    pub(crate) fn when<T: Scalar, const N: usize>(
        self,
        then: impl FnOnce() -> [Number<A, T>; N],
        otherwise: impl FnOnce() -> [Number<A, T>; N],
    ) -> [Number<A, T>; N] {
        let raw = |numbers: [Number<A, T>; N]| numbers.map(|number| number.raw);
        let results = self
            .arithmetic
            .when(self.raw, || raw(then()), || raw(otherwise()));
        results.map(|raw| Number::new(self.arithmetic, raw))
    }

    /// `a` where this is true, `b` where it is not, without a branch.
    #[inline(always)]
    pub fn select<T: Scalar>(self, a: impl Operand<A, T>, b: impl Operand<A, T>) -> Number<A, T> {
        let (a, b) = (a.number(self.arithmetic), b.number(self.arithmetic));
        Number::new(self.arithmetic, self.arithmetic.select(self.raw, a.raw, b.raw))
    }
}

macro_rules! operator {
    ($bound:ident, $trait:ident, $method:ident, $op:expr) => {
        impl<A: Arithmetic, T: $bound> $trait<Number<A, T>> for Number<A, T> {
            type Output = Number<A, T>;
            #[inline(always)]
            fn $method(self, other: Number<A, T>) -> Number<A, T> {
                self.binary($op, other)
            }
        }

        impl<A: Arithmetic, T: $bound> $trait<T> for Number<A, T> {
            type Output = Number<A, T>;
            #[inline(always)]
            fn $method(self, other: T) -> Number<A, T> {
                self.binary($op, other)
            }
        }
    };
}

operator!(Scalar, Add, add, T::ADD);
operator!(Scalar, Sub, sub, T::SUBTRACT);
operator!(Scalar, Mul, mul, T::MULTIPLY);
operator!(Float, Div, div, BinaryOp::FDiv);
operator!(Scalar, BitAnd, bitand, BinaryOp::And);
operator!(Scalar, BitOr, bitor, BinaryOp::Or);
operator!(Scalar, BitXor, bitxor, BinaryOp::Xor);

impl<A: Arithmetic, T: Float> Neg for Number<A, T> {
    type Output = Number<A, T>;
    #[inline(always)]
    fn neg(self) -> Number<A, T> {
        self.unary(UnaryOp::FNeg)
    }
}

impl<A: Arithmetic, T: Scalar> Not for Number<A, T> {
    type Output = Number<A, T>;
    #[inline(always)]
    fn not(self) -> Number<A, T> {
        self.unary(UnaryOp::Not)
    }
}

macro_rules! scalar {
    ($rust:ty, $ir:ident, [$add:ident, $subtract:ident, $multiply:ident, $minimum:ident, $maximum:ident],
     [$equal:ident, $less:ident, $less_equal:ident],
     $value:ident => $to:expr, $bits:ident => $from:expr) => {
        impl Scalar for $rust {
            const TYPE: Type = Type::$ir;
            const ADD: BinaryOp = BinaryOp::$add;
            const SUBTRACT: BinaryOp = BinaryOp::$subtract;
            const MULTIPLY: BinaryOp = BinaryOp::$multiply;
            const MINIMUM: BinaryOp = BinaryOp::$minimum;
            const MAXIMUM: BinaryOp = BinaryOp::$maximum;
            const EQUAL: CompareOp = CompareOp::$equal;
            const LESS: CompareOp = CompareOp::$less;
            const LESS_EQUAL: CompareOp = CompareOp::$less_equal;
            #[inline(always)]
            fn to_bits64(self) -> u64 {
                let $value = self;
                $to
            }
            #[inline(always)]
            fn from_bits64($bits: u64) -> Self {
                $from
            }
        }
    };
}

scalar!(f32, F32, [FAdd, FSub, FMul, FMin, FMax], [FEq, FLt, FLe],
    value => u64::from(value.to_bits()), bits => f32::from_bits(bits as u32));
scalar!(f64, F64, [FAdd, FSub, FMul, FMin, FMax], [FEq, FLt, FLe],
    value => value.to_bits(), bits => f64::from_bits(bits));
scalar!(u32, I32, [Add, Sub, Mul, MinU, MaxU], [Eq, LtU, LeU], value => u64::from(value), bits => bits as u32);
scalar!(u64, I64, [Add, Sub, Mul, MinU, MaxU], [Eq, LtU, LeU], value => value, bits => bits);
// Truth values have no arithmetic; the bitwise operations that agree with it keep the trait uniform.
scalar!(bool, Bool, [Xor, Xor, And, And, Or], [Eq, LtU, LeU], value => u64::from(value), bits => bits & 1 != 0);

impl Float for f32 {
    type Bits = u32;
}

impl Float for f64 {
    type Bits = u64;
}

impl Integer for u32 {}

impl Integer for u64 {}
