//! `round`: to the nearest integer, halves away from zero.
//!
//! The IR has the other roundings as operations. Adding the largest number below ½ and cutting off the
//! fraction is right everywhere: at a half the sum rounds up to the next integer, below it stays below, and
//! where there are no fractions the sum rounds to the argument.

use super::arithmetic::{Arithmetic, Number};

/// `x` rounded, in single precision.
pub(crate) fn round_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    (x + x.same(0.499_999_97).copy_sign(x)).trunc()
}

/// `x` rounded, in double precision.
pub(crate) fn round_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    (x + x.same(0.499_999_999_999_999_94).copy_sign(x)).trunc()
}
