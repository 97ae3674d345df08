//! `sin`, `cos` and `tan`, of radians.
//!
//! `x = k·π/2 + r` with `|r| ≤ π/4`: subtracting three parts of `k·π/2`, each in one rounding, is exact enough up to the limit
//! below, beyond which a branch leads to `large`. `k` selects the function of `r` and its sign. In double precision sine and
//! cosine share one evaluation: the coefficients are selected, by integer operations that a GPU executes beside those on
//! doubles. In single precision both are evaluated: a GPU selects at half the rate at which it multiplies and adds.
//!
//! Polynomials by Sollya's `fpminimax(sin(x), …, x, relative)` and `cos(x)` with 1, on `[0, π/4]`.

use super::arithmetic::{Arithmetic, Number};
use super::large;
use super::polynomial::{horner, polynomial};

/// π/2 in three parts. All are positive, so that -0 stays -0 when nothing of them is subtracted.
const HALF_PI: [f64; 3] = [
    std::f64::consts::FRAC_PI_2,
    6.123_233_995_736_765e-17,
    1.082_856_673_921_914e-32,
];

/// π/2 in three parts.
const HALF_PI_F32: [f32; 3] = [f32::from_bits(0x3fc9_0fda), 7.549_789_4e-8, 5.390_303e-15];

/// From here on the argument is reduced with more digits of π.
const LIMIT: f64 = 1_073_741_824.0;

/// From here on the argument is reduced with more digits of π.
const LIMIT_F32: f32 = 65_536.0;

/// `(sin r/r - 1)/r²` in powers of `r²`; relative error of the sine 2⁻⁵⁷·⁹. The lower halves of the last two
/// are zero, as those of the cosine, so that selecting them costs half.
const SIN: [f64; 6] = [
    -0.166_666_666_666_666_3,
    0.008_333_333_333_321_868,
    -0.000_198_412_698_293_999_8,
    2.755_731_355_874_088e-6,
    -2.505_073_837_255_622_5e-8,
    1.589_570_697_291_265e-10,
];

/// `(cos r - 1)/r²` in powers of `r²`; relative error of the cosine 2⁻⁶⁰.
const COS: [f64; 7] = [
    -0.5,
    0.041_666_666_666_666_095,
    -0.001_388_888_888_879_712_5,
    2.480_158_724_619_377_6e-5,
    -2.755_730_292_847_147e-7,
    2.087_428_896_402_343_5e-9,
    -1.129_045_468_228_895_3e-11,
];

/// As [`SIN`]; relative error of the sine 2⁻²⁷·⁹.
const SIN_F32: [f32; 3] = [-0.166_666_55, 0.008_332_189, -0.000_195_182_85];

/// As [`COS`]; relative error of the cosine 2⁻³³.
const COS_F32: [f32; 4] = [-0.5, 0.041_666_646, -0.001_388_731_1, 2.443_256_2e-5];

/// `(tan r/r - 1)/r²` in powers of `r²`; relative error of the tangent 2⁻²⁵·⁷.
const TAN_F32: [f32; 6] = [
    0.333_331_56,
    0.133_388_36,
    0.053_408_2,
    0.024_441_393,
    0.003_101_473_4,
    0.009_396_536,
];

/// `sin x` in single precision.
pub(crate) fn sin_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let (k, r) = reduce_f32(x);
    sine_f32(r, k)
}

/// `cos x` in single precision.
pub(crate) fn cos_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let (k, r) = reduce_f32(x);
    sine_f32(r, k + 1)
}

/// `sin x` in double precision.
pub(crate) fn sin_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let (k, r) = reduce_f64(x);
    sine_f64(r, k)
}

/// `cos x` in double precision.
pub(crate) fn cos_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let (k, r) = reduce_f64(x);
    sine_f64(r, k + 1)
}

/// `tan x` in single precision.
pub(crate) fn tan_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let (k, r) = reduce_f32(x);
    let square = r * r;
    let tan = square.mul_add(polynomial(square, &TAN_F32), 0.0).mul_add(r, r);
    // tan(r + π/2) = -1/tan r.
    (k & 1).not_equal(0).select((-tan).normal_reciprocal(), tan)
}

/// `tan x` in double precision.
pub(crate) fn tan_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let (k, r) = reduce_f64(x);
    let square = r * r;
    let sin = square.mul_add(polynomial(square, &SIN), 0.0).mul_add(r, r);
    let cos = polynomial(square, &COS).mul_add(square, 1.0);
    let odd = (k & 1).equal(1);
    odd.select(-cos, sin) / odd.select(sin, cos)
}

/// The sine of `r + k·π/2`, for `|r| ≤ π/4`.
#[inline(always)]
fn sine_f32<A: Arithmetic>(r: Number<A, f32>, k: Number<A, u32>) -> Number<A, f32> {
    let square = r * r;
    // Adding 0 keeps the sign of a zero.
    let sine = square.mul_add(polynomial(square, &SIN_F32), 0.0).mul_add(r, r);
    let cosine = polynomial(square, &COS_F32).mul_add(square, 1.0);
    let result = (k & 1).not_equal(0).select(cosine, sine);
    // The sign by a multiplication: a NaN is then the canonical one.
    (k & 2).not_equal(0).select(result * -1.0, result)
}

/// The sine of `r + k·π/2`, for `|r| ≤ π/4`.
#[inline(always)]
fn sine_f64<A: Arithmetic>(r: Number<A, f64>, k: Number<A, u32>) -> Number<A, f64> {
    let cosine = (k & 1).equal(1);
    let coefficient = |n: usize| cosine.select(r.same(COS[n]), SIN.get(n).copied().unwrap_or(0.0));
    let square = r * r;
    let p = horner(square, [6, 5, 4, 3, 2, 1, 0].map(coefficient));
    let factor = cosine.select(r.same(1.0), r);
    let factor = (factor.high() ^ (k & 2).shift_left(30)).with_low(factor.low());
    square.mul_add(p, 0.0).mul_add(factor, factor)
}

/// `k` modulo 4 in the lowest bits of a word, and `r`.
#[inline(always)]
fn reduce_f32<A: Arithmetic>(x: Number<A, f32>) -> (Number<A, u32>, Number<A, f32>) {
    let [quadrant, r] = x.abs().less_equal(LIMIT_F32).when(
        || {
            // Adding 1.5·2²³ rounds to an integer and leaves it in the lowest bits.
            let magic = 12_582_912.0;
            let shifted = x.mul_add(std::f32::consts::FRAC_2_PI, magic);
            let k = shifted - magic;
            let r = HALF_PI_F32.iter().fold(x, |r, &part| k.mul_add(-part, r));
            [shifted.bits(), r.bits()]
        },
        || large::reduce_f32(x),
    );
    (quadrant, r.float())
}

/// `k` modulo 4 in the lowest bits of a word, and `r`.
#[inline(always)]
fn reduce_f64<A: Arithmetic>(x: Number<A, f64>) -> (Number<A, u32>, Number<A, f64>) {
    let [quadrant, r] = x.abs().less_equal(LIMIT).when(
        || {
            let magic = 6_755_399_441_055_744.0;
            let shifted = x.mul_add(std::f64::consts::FRAC_2_PI, magic);
            let k = shifted - magic;
            let r = HALF_PI.iter().fold(x, |r, &part| k.mul_add(-part, r));
            [shifted.bits(), r.bits()]
        },
        || large::reduce_f64(x),
    );
    (quadrant.truncate(), r.float())
}
