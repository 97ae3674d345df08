//! The scalar types of the kernel language, and the traits for kernels that are generic over them.

use std::fmt::Debug;
use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign, Mul,
    MulAssign, Neg, Not, Rem, RemAssign, Shl, Shr, Sub, SubAssign,
};

use half::{bf16, f16};

use crate::ir::{BinaryOp, Element, UnaryOp, eval};
use crate::math::Function;

/// A type whose values a kernel can compute with: integers of 8 to 64 bits, `usize`, `isize`, `f32`, `f64`,
/// `f16`, `bf16`, `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scalar type of the kernel language",
    label = "not a scalar of the kernel language",
    note = "accepted: i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f16, bf16, f32, f64, bool; a struct is a value with \
            `#[derive(Clone, Copy, Data)]`"
)]
pub trait Scalar: Element + Default + PartialEq + Debug {
    /// Whether it is a signed integer.
    const SIGNED: bool;
}

/// A scalar with arithmetic: any but `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arithmetic in the kernel language",
    note = "accepted: integers, `f16`, `bf16`, `f32`, `f64`; a generic type needs the bound `Number`, `Integer` or `Float`, and \
            has `T::ZERO` and `T::ONE` for its literals"
)]
pub trait Number:
    Scalar
    + PartialOrd
    + NumberMethods
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + RemAssign
{
    /// 0.
    const ZERO: Self;

    /// 1.
    const ONE: Self;
}

/// An integer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer type of the kernel language",
    note = "accepted: i8 to i64, isize, u8 to u64, usize; a generic type needs the bound `Integer`"
)]
pub trait Integer:
    Number
    + Bitwise
    + IntegerMethods
    + Not<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + BitAndAssign
    + BitOrAssign
    + BitXorAssign
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
}

/// A binary floating-point number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point type of the kernel language",
    note = "accepted: f16, bf16, f32, f64; a generic type needs the bound `Float`"
)]
pub trait Float: Signed + FloatMethods {}

/// A number with a sign: signed integers and floats.
#[diagnostic::on_unimplemented(message = "`{Self}` has no sign, so no negation and no absolute value")]
pub trait Signed: Number + Neg<Output = Self> {}

/// Types with the operators `!`, `&`, `|`, `^`: integers and `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bit operations",
    note = "accepted: integers and `bool`; a generic type needs the bound `Integer`"
)]
pub trait Bitwise: Scalar {}

/// `x as To` is accepted for an `x` of this type.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be cast to `{To}` with `as`")]
pub trait CastTo<To: Scalar>: Scalar {}

/// Methods of a generic number. They are a trait apart, in no prelude, so that `a.min(b)` on a `u32` stays
/// unambiguous.
pub trait NumberMethods: Sized {
    /// The lesser.
    fn min(self, other: Self) -> Self;

    /// The greater.
    fn max(self, other: Self) -> Self;
}

/// Methods of a generic integer, apart for the same reason.
pub trait IntegerMethods: Sized {
    /// Shifted right by less than the width, filled with zeros regardless of the sign.
    fn logical_shr(self, count: u32) -> Self;
}

/// Methods of a generic float, apart for the same reason.
pub trait FloatMethods: Sized {
    /// The magnitude.
    fn abs(self) -> Self;

    /// The square root, correctly rounded.
    fn sqrt(self) -> Self;

    /// `self × a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;

    /// The largest integer that is not greater.
    fn floor(self) -> Self;

    /// The least integer that is not less.
    fn ceil(self) -> Self;

    /// A function that is expanded into basic operations, with exactly the bits that a kernel computes. It takes as many
    /// arguments as the function has.
    fn apply(function: Function, arguments: &[Self]) -> Self;
}

macro_rules! integers {
    ($($rust:ident: $signed:literal;)+) => {$(
        impl Scalar for $rust {
            const SIGNED: bool = $signed;
        }

        impl NumberMethods for $rust {
            fn min(self, other: Self) -> Self {
                Ord::min(self, other)
            }

            fn max(self, other: Self) -> Self {
                Ord::max(self, other)
            }
        }

        impl Number for $rust {
            const ZERO: Self = 0;
            const ONE: Self = 1;
        }

        impl IntegerMethods for $rust {
            fn logical_shr(self, count: u32) -> Self {
                // The bits come back as the type reads them.
                ((self as u64 & Self::TYPE.mask()) >> count) as $rust
            }
        }

        impl Integer for $rust {}

        impl Bitwise for $rust {}
    )+};
}

integers! {
    i8: true;
    i16: true;
    i32: true;
    i64: true;
    isize: true;
    u8: false;
    u16: false;
    u32: false;
    u64: false;
    usize: false;
}

macro_rules! floats {
    ($($rust:ident)+) => {$(
        impl Scalar for $rust {
            const SIGNED: bool = false;
        }

        impl NumberMethods for $rust {
            fn min(self, other: Self) -> Self {
                <$rust>::min(self, other)
            }

            fn max(self, other: Self) -> Self {
                <$rust>::max(self, other)
            }
        }

        impl Number for $rust {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
        }

        impl FloatMethods for $rust {
            fn abs(self) -> Self {
                <$rust>::abs(self)
            }

            fn sqrt(self) -> Self {
                <$rust>::sqrt(self)
            }

            fn mul_add(self, a: Self, b: Self) -> Self {
                <$rust>::mul_add(self, a, b)
            }

            fn floor(self) -> Self {
                <$rust>::floor(self)
            }

            fn ceil(self) -> Self {
                <$rust>::ceil(self)
            }

            fn apply(function: Function, arguments: &[Self]) -> Self {
                function.$rust(arguments)
            }
        }

        impl Float for $rust {}

        impl Signed for $rust {}
    )+};
}

floats!(f32 f64);

macro_rules! casts {
    ($($from:ident)+) => {$(
        casts!(@from $from to i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);
    )+};
    (@from $from:ident to $($to:ident)+) => {$(
        impl CastTo<$to> for $from {}
    )+};
}

/// The value with these bits.
fn computed<T: Element>(bits: u64) -> T {
    T::from_bits(bits)
}

/// `f16` and `bf16` compute as the IR specifies: each operation rounds once.
macro_rules! halves {
    ($($rust:ident)+) => {$(
        impl Scalar for $rust {
            const SIGNED: bool = false;
        }

        impl NumberMethods for $rust {
            fn min(self, other: Self) -> Self {
                computed(eval::binary(BinaryOp::FMin, Self::TYPE, Element::to_bits(self), Element::to_bits(other)))
            }

            fn max(self, other: Self) -> Self {
                computed(eval::binary(BinaryOp::FMax, Self::TYPE, Element::to_bits(self), Element::to_bits(other)))
            }
        }

        impl Number for $rust {
            const ZERO: Self = $rust::ZERO;
            const ONE: Self = $rust::ONE;
        }

        impl FloatMethods for $rust {
            fn abs(self) -> Self {
                computed(eval::unary(UnaryOp::FAbs, Self::TYPE, Element::to_bits(self)))
            }

            fn sqrt(self) -> Self {
                computed(eval::unary(UnaryOp::Sqrt, Self::TYPE, Element::to_bits(self)))
            }

            fn mul_add(self, a: Self, b: Self) -> Self {
                let [x, a, b] = [self, a, b].map(Element::to_bits);
                computed(eval::fma(Self::TYPE, x, a, b))
            }

            fn floor(self) -> Self {
                computed(eval::unary(UnaryOp::Floor, Self::TYPE, Element::to_bits(self)))
            }

            fn ceil(self) -> Self {
                computed(eval::unary(UnaryOp::Ceil, Self::TYPE, Element::to_bits(self)))
            }

            fn apply(function: Function, arguments: &[Self]) -> Self {
                let arguments: Vec<f32> = arguments.iter().map(|&x| f32::from(x)).collect();
                $rust::from_f32(function.f32(&arguments))
            }
        }

        impl Float for $rust {}

        impl Signed for $rust {}

        impl Half for $rust {}

        casts!(@from $rust to f32 f64);
    )+};
}

/// A float of 16 bits: it is stored and computed with, and becomes another type by `f32::from(x)`,
/// `x.to_f32()`, `f16::from_f32(x)` and their like, for Rust's `as` does not know it.
///
/// ```
/// use headstart::device::sim::Simulator;
/// use headstart::device::{Device, TypedBuffer};
/// use headstart::prelude::*;
///
/// /// Four halves at a time, computed with in single precision.
/// #[kernel]
/// fn norms(points: &[[f16; 4]], result: &mut [f32]) {
///     let [x, y, z, w] = points[global_id()];
///     let (x, y, z, w) = (f32::from(x), f32::from(y), f32::from(z), w.to_f32());
///     result[global_id()] = (x * x + y * y + z * z + w * w).sqrt();
/// }
///
/// let device = Simulator::untimed();
/// let queue = device.queue()?;
/// let points = [1.0f32, 2.0, 2.0, 4.0, 0.5, 0.5, 0.5, 0.5].map(f16::from_f32);
/// let points = TypedBuffer::from_slice(&device, &points)?;
/// let mut result = TypedBuffer::uninitialized(&device, 2)?;
/// let arguments = norms::arguments(&points, &mut result);
/// norms::compile(&device)?.launch(&*queue, Geometry::new(1, 2), arguments).wait()?;
/// assert_eq!(result.read(&*queue)?, [5.0, 1.0]);
/// # Ok::<(), headstart::Error>(())
/// ```
#[diagnostic::on_unimplemented(message = "`{Self}` is not a 16-bit float", note = "accepted: f16, bf16")]
pub trait Half: Float + CastTo<f32> + CastTo<f64> {}

halves!(f16 bf16);
casts!(@from f32 to f16 bf16);
casts!(@from f64 to f16 bf16);

impl Scalar for bool {
    const SIGNED: bool = false;
}

impl Bitwise for bool {}

macro_rules! signed {
    ($($rust:ident)+) => {$(
        impl Signed for $rust {}
    )+};
}

signed!(i8 i16 i32 i64 isize);

casts!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);
casts!(@from bool to i8 i16 i32 i64 isize u8 u16 u32 u64 usize bool);
