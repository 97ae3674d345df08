//! Polynomials in Horner's form: one fused multiplication and addition a degree, nothing else.

use super::arithmetic::{Arithmetic, Float, Number};

/// `c[0] + c[1]·x + c[2]·x² + …`, evaluated from the highest degree down. `c` must not be empty.
#[inline(always)]
pub fn polynomial<A: Arithmetic, T: Float>(x: Number<A, T>, coefficients: &[T]) -> Number<A, T> {
    let (&highest, lower) = coefficients.split_last().expect("a polynomial has a coefficient");
    lower
        .iter()
        .rev()
        .fold(x.same(highest), |sum, &coefficient| sum.mul_add(x, coefficient))
}
