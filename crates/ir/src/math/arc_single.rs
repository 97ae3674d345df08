//! `asin`, `acos`, `atan` and `atan2` in single precision.
//!
//! `atan`: above 1, `atan x = π/2 - atan(1/x)`. `asin`: above ½, `asin x = π/2 - 2·asin √((1-x)/2)`. Signs go on by a
//! multiplication, or a result is put together by arithmetic last: both make a NaN the canonical one.
//!
//! Polynomials by Remez' algorithm for `atan x` on `[0, 1]` and `asin x` on `[0, ½]`, rounded, and improved by trying
//! neighbours, for the least error of the whole function.

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::polynomial;

/// π/2 as a product: in a fused multiplication it has twice the digits.
const HALF_PI: [f32; 2] = [0.933_189_45, 1.683_255_6];

/// 2⁶⁴ and 2⁻⁶⁴: between them lengths need no scale.
const HUGE: f32 = f32::from_bits(191 << 23);
const TINY: f32 = f32::from_bits(63 << 23);

/// 2⁻¹⁰⁰: stands for 0 under a root.
const LEAST_SQUARE: f32 = f32::from_bits(27 << 23);

/// Stands for a divisor of 0.
const LEAST: f32 = 7.888_609e-31;

/// `(atan t/t - 1)/t²` in powers of `t²`; relative error of the result 2⁻²⁵·⁸.
const ATAN: [f32; 8] = [
    -0.333_331_53,
    0.199_937_67,
    -0.142_110_02,
    0.106_657_69,
    -0.075_516_604,
    0.043_204_732,
    -0.016_363_192,
    0.002_919_422_7,
];

/// `(asin s/s - 1)/s²` in powers of `s²`; relative error of the result 2⁻²⁷.
const ASIN: [f32; 5] = [
    0.166_667_24,
    0.074_952_185,
    0.045_477_074,
    0.024_179_384,
    0.042_165_037,
];

/// As [`ASIN`], for the cosine.
const ACOS: [f32; 5] = [
    0.166_667_55,
    0.074_953_07,
    0.045_468_77,
    0.024_181_534,
    0.042_164_19,
];

/// `asin x`: NaN outside of `[-1, 1]`.
pub(crate) fn asin_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let large = x.abs().greater(0.5);
    // (1-|x|)/2 is 0 or not below 2⁻²⁵, or negative; 0 becomes something that has a reciprocal root.
    let half = x.abs().mul_add(-0.5, 0.5);
    let root = (half + LEAST_SQUARE).normal_sqrt();
    let square = large.select(half, x * x);
    let factor = large.select(root * -2.0, x);
    let angle = polynomial(square, &ASIN)
        .mul_add(square, 0.0)
        .mul_add(factor, factor);
    let mirrored = x.same(HALF_PI[0]).mul_add(HALF_PI[1], angle);
    large.select(mirrored * x.same(1.0).copy_sign(x), angle)
}

/// `acos x`: NaN outside of `[-1, 1]`.
pub(crate) fn acos_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let (large, s) = reduce(x);
    let angle = odd(s.copy_sign(x), &ACOS);
    // π/2 - angle, or twice angle, or twice π/2 + angle.
    let turned = large.select(angle, -angle);
    let from_half_pi = x.same(HALF_PI[0]).mul_add(HALF_PI[1], turned);
    let result = x.greater(0.5).select(angle, from_half_pi);
    large.select(result + result, result)
}

/// `atan x`.
pub(crate) fn atan_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let magnitude = x.abs();
    let large = magnitude.greater(1.0);
    let inverse = magnitude.table_reciprocal();
    let angle = odd(large.select(inverse, magnitude), &ATAN);
    let mirrored = x.same(HALF_PI[0]).mul_add(HALF_PI[1], -angle);
    large.select(mirrored, angle) * x.same(1.0).copy_sign(x)
}

/// The angle of the point `(x, y)`, from -π to π; of an origin with signed zeros as IEEE 754 recommends.
pub(crate) fn atan2_f32<A: Arithmetic>(y: Number<A, f32>, x: Number<A, f32>) -> Number<A, f32> {
    // An angle in the first octant. A NaN stays, on either side.
    let (a, b) = (y.abs(), x.abs());
    let steep = a.greater(b);
    let (long, short) = (a.maximum(b), a.minimum(b));
    // Only the ratio counts: neither overflow nor subnormals, but an infinity, and a zero that becomes something.
    let down = long.greater(HUGE);
    let up = long.less(TINY);
    let scale = down.select(x.same(TINY), up.select(x.same(HUGE), 1.0));
    let unit = (long * scale).maximum(LEAST).minimum(f32::MAX);
    let dividend = short * scale;
    let inverse = unit.normal_reciprocal();
    let ratio = dividend * inverse;
    let ratio = (-ratio).mul_add(unit, dividend).mul_add(inverse, ratio);
    let ratio = short.equal(f32::INFINITY).select(x.same(1.0), ratio);
    let angle = odd(ratio, &ATAN);

    // Mirrored: π/2 - angle, then π - angle, then -angle.
    let left = x.is_negative();
    let offset = steep.select(x.same(HALF_PI[0]), left.select(x.same(2.0 * HALF_PI[0]), 0.0));
    let mirrored = (steep ^ left).select(-angle, angle);
    offset.mul_add(HALF_PI[1], mirrored) * y.same(1.0).copy_sign(y)
}

/// Whether `|x|` is above ½, and `√((1-|x|)/2)` or `|x|`.
#[inline(always)]
fn reduce<A: Arithmetic>(x: Number<A, f32>) -> (Number<A, bool>, Number<A, f32>) {
    let magnitude = x.abs();
    let large = magnitude.greater(0.5);
    // Never between 0 and 2⁻²⁶; below 0 it gives NaN.
    let root = magnitude.mul_add(-0.5, 0.5).normal_sqrt();
    let root = magnitude.equal(1.0).select(x.same(0.0), root);
    (large, large.select(root, magnitude))
}

/// `t + t·(t²·p(t²))`.
#[inline(always)]
fn odd<A: Arithmetic>(t: Number<A, f32>, coefficients: &[f32]) -> Number<A, f32> {
    let square = t * t;
    // Adding 0 keeps the sign of a zero.
    square
        .mul_add(polynomial(square, coefficients), 0.0)
        .mul_add(t, t)
}
