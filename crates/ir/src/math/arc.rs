//! `asin`, `acos`, `atan` and `atan2` in double precision.
//!
//! `atan`: above 1, `atan x = π/2 - atan(1/x)`. `asin`: above ½, `asin x = π/2 - 2·asin √((1-x)/2)`. A result is
//! put together by arithmetic last, which makes a NaN the canonical one.
//!
//! Polynomials by Sollya's `fpminimax(atan(x), …, x, relative)` on `[0, 1]` and `asin(x)` on `[0, ½]`.

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::polynomial;

/// π/2 in two parts.
const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];

/// `(atan t/t - 1)/t²` in powers of `t²`; relative error of the result 2⁻⁵⁵. The last three have
/// zero lower halves: as immediate operands they save a GPU two instructions each.
const ATAN: [f64; 19] = [
    -0.333_333_333_333_318_6,
    0.199_999_999_997_552_1,
    -0.142_857_142_713_433_64,
    0.111_111_106_789_514_87,
    -0.090_909_012_383_428_74,
    0.076_922_129_593_194_28,
    -0.066_658_605_618_720_28,
    0.058_773_087_779_254_9,
    -0.052_392_368_326_473_066,
    0.046_739_607_322_777_26,
    -0.040_926_630_850_512_08,
    0.034_068_240_058_029_69,
    -0.025_827_367_307_195_512,
    0.016_978_614_482_006_9,
    -0.009_184_998_463_208_707,
    0.003_856_216_407_141_789_5,
    -0.001_164_162_531_495_094_3,
    0.000_223_043_258_301_913_74,
    -2.026_076_253_969_222_3e-5,
];

/// `(asin s/s - 1)/s²` in powers of `s²`; relative error of the result 2⁻⁵⁵·⁹.
const ASIN: [f64; 12] = [
    0.166_666_666_666_654_03,
    0.075_000_000_003_385_96,
    0.044_642_856_826_933_905,
    0.030_381_959_197_391_17,
    0.022_371_756_542_936_744,
    0.017_359_728_264_131_354,
    0.013_884_996_590_069_032,
    0.012_170_820_363_462_278,
    0.006_520_856_171_846_39,
    0.019_548_162_817_955_017,
    -0.016_256_093_978_881_836,
    0.031_934_499_740_600_586,
];

/// `asin x`: NaN outside of `[-1, 1]`.
pub(crate) fn asin_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let magnitude = x.abs();
    let large = magnitude.greater(0.5);
    let half = magnitude.mul_add(-0.5, 0.5);
    let square = large.select(half, magnitude * magnitude);
    let s = large.select(half.sqrt(), magnitude).copy_sign(x);
    // s, or π/2 - 2s.
    let offset = |part: f64| large.select(x.same(part), 0.0).copy_sign(x);
    let factor = large.select(x.same(-2.0), 1.0);
    let low = asin_rest(s, square).mul_add(factor, offset(HALF_PI[1]));
    s.mul_add(factor, offset(HALF_PI[0])) + low
}

/// `acos x`: NaN outside of `[-1, 1]`.
pub(crate) fn acos_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let magnitude = x.abs();
    let large = magnitude.greater(0.5);
    let half = magnitude.mul_add(-0.5, 0.5);
    let square = large.select(half, magnitude * magnitude);
    let s = large.select(half.sqrt(), x);
    // π/2 - s, or 2s, or π - 2s.
    let negative = x.is_negative();
    let offset = |part: f64| large.select(negative.select(x.same(2.0 * part), 0.0), part);
    let factor = large.select(negative.select(x.same(-2.0), 2.0), -1.0);
    let low = asin_rest(s, square).mul_add(factor, offset(HALF_PI[1]));
    s.mul_add(factor, offset(HALF_PI[0])) + low
}

/// `atan x`.
pub(crate) fn atan_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let magnitude = x.abs();
    let one = x.same(1.0).copy_sign(x);
    let large = magnitude.greater(1.0);
    let t = large.select(-one, x) / large.select(magnitude, 1.0);
    let offset = |part: f64| large.select(x.same(part), 0.0).copy_sign(x);
    offset(HALF_PI[0]) + small_atan(t, offset(HALF_PI[1]))
}

/// The angle of the point `(x, y)`, from -π to π; of an origin with signed zeros as IEEE 754
/// recommends.
pub(crate) fn atan2_f64<A: Arithmetic>(y: Number<A, f64>, x: Number<A, f64>) -> Number<A, f64> {
    // An angle in the first octant. A NaN stays, on either side.
    let (a, b) = (y.abs(), x.abs());
    let steep = a.greater(b);
    let (long, short) = (steep.select(a, b), steep.select(b, a));
    // Of infinite and huge lengths only the ratio counts; so it does of zeros.
    let infinite = long.equal(f64::INFINITY);
    let scale = infinite.select(x.same(0.0), long.greater(1e307).select(x.same(0.25), 1.0));
    let unit = infinite.select(x.same(1.0), long.equal(0.0).select(x.same(1.0), long * scale));
    let short = short.equal(f64::INFINITY).select(x.same(1.0), short * scale);
    let angle = small_atan(short / unit, x.same(0.0));

    // Mirrored: π/2 - angle, then π - angle, then -angle.
    let left = x.is_negative();
    let offset = |part: f64| {
        steep
            .select(x.same(part), left.select(x.same(2.0 * part), 0.0))
            .copy_sign(y)
    };
    let mirrored = (steep ^ left).select(-angle, angle);
    let sign = y.same(1.0).copy_sign(y);
    offset(HALF_PI[0]) + mirrored.mul_add(sign, offset(HALF_PI[1]))
}

/// `atan t + low` for `|t| ≤ 1`.
#[inline(always)]
fn small_atan<A: Arithmetic>(t: Number<A, f64>, low: Number<A, f64>) -> Number<A, f64> {
    let square = t * t;
    // Adding 0 keeps the sign of a zero.
    t + square.mul_add(polynomial(square, &ATAN), 0.0).mul_add(t, low)
}

/// `asin s - s` for `|s| ≤ ½`, given `s²`.
#[inline(always)]
fn asin_rest<A: Arithmetic>(s: Number<A, f64>, square: Number<A, f64>) -> Number<A, f64> {
    // Adding 0 keeps the sign of a zero.
    square.mul_add(polynomial(square, &ASIN), 0.0) * s
}
