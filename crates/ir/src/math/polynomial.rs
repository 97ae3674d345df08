//! Polynomials in Horner's form, one fused multiplication and addition a degree; or in two such halves.

use super::arithmetic::{Arithmetic, Float, Number};

/// `c[0] + c[1]·x + c[2]·x² + …`, evaluated from the highest degree down. `c` must not be empty.
#[inline(always)]
pub(crate) fn polynomial<A: Arithmetic, T: Float>(x: Number<A, T>, coefficients: &[T]) -> Number<A, T> {
    let (&highest, lower) = coefficients.split_last().expect("a polynomial has a coefficient");
    lower
        .iter()
        .rev()
        .fold(x.same(highest), |sum, &coefficient| sum.mul_add(x, coefficient))
}

/// As [`polynomial`], the even and the odd degrees apart but for the lowest, whose rounding counts: one multiplication
/// more, and two thirds of the latency. For a function that a loop waits for.
#[inline(always)]
pub(crate) fn in_halves<A: Arithmetic, T: Float>(x: Number<A, T>, coefficients: &[T]) -> Number<A, T> {
    let (&lowest, higher) = coefficients
        .split_first()
        .expect("a polynomial has a coefficient");
    let square = x * x;
    let half = |first: usize| {
        let mut terms = higher[first..].iter().step_by(2).rev();
        let highest = *terms.next().expect("a half has a coefficient");
        terms.fold(x.same(highest), |sum, &coefficient| {
            sum.mul_add(square, coefficient)
        })
    };
    half(1).mul_add(x, half(0)).mul_add(x, lowest)
}

/// The polynomial with these coefficients, the one of the highest degree first.
#[inline(always)]
pub(crate) fn horner<A: Arithmetic, T: Float, const N: usize>(
    x: Number<A, T>,
    coefficients: [Number<A, T>; N],
) -> Number<A, T> {
    let mut sum = coefficients[0];
    for coefficient in &coefficients[1..] {
        sum = sum.mul_add(x, *coefficient);
    }
    sum
}
