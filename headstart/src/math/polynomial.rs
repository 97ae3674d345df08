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

/// The polynomial with these coefficients, the one of the highest degree first.
#[inline(always)]
pub fn horner<A: Arithmetic, T: Float, const N: usize>(
    x: Number<A, T>,
    coefficients: [Number<A, T>; N],
) -> Number<A, T> {
    let mut sum = coefficients[0];
    for coefficient in &coefficients[1..] {
        sum = sum.mul_add(x, *coefficient);
    }
    sum
}
