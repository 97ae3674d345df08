//! `pow`: `x` to the power `y`, as IEEE 754 recommends.
//!
//! `|x|ʸ = 2^(y·log₂|x|)`, with the logarithm so precise that the power's error stays small for the largest
//! products. Single precision computes inside in double precision: exact steps in pairs of `f32` would take
//! longer on a GPU with half-rate doubles, such as the H200. Double precision carries pairs of doubles.
//!
//! Polynomials by Sollya's `fpminimax` of `log2(1+x)` and `log(1+x)` on `[-0.2, 0.2]`, `2^x` on `[-½, ½]`.

use super::arithmetic::{Arithmetic, Number};
use super::exponential;
use super::polynomial::polynomial;
use super::scale::split_f64;

/// log₂ 4/3.
const LOG2_4_3: f64 = 0.415_037_499_278_843_8;

/// `(log₂(1 + f) - f/ln 2)/f²` and the terms before it; relative error 2⁻³⁵·⁴.
const LOG2: [f64; 10] = [
    std::f64::consts::LOG2_E,
    -0.721_347_520_531_648_2,
    0.480_898_321_230_508_63,
    -0.360_673_703_016_198_5,
    0.288_545_216_632_485_7,
    -0.240_458_071_523_004_64,
    0.205_635_363_077_462_1,
    -0.179_801_215_784_937_57,
    0.173_837_179_382_353_07,
    -0.157_933_301_327_677_3,
];

/// `2ʳ`; relative error 2⁻²⁸·⁹.
const EXP2: [f64; 7] = [
    1.0,
    0.693_147_202_880_962_9,
    0.240_226_479_102_999_93,
    0.055_503_324_096_201_96,
    0.009_618_437_604_342_603,
    0.001_339_890_019_432_907_8,
    0.000_153_533_415_944_629_75,
];

/// `(log(1 + f) - f + f²/2 - f³/3)/f⁴`; relative error of `log(1 + f)` 2⁻⁶⁵·³.
const LOG_TAIL: [f64; 16] = [
    -0.25,
    0.199_999_999_999_999_48,
    -0.166_666_666_666_817_18,
    0.142_857_142_857_548_5,
    -0.124_999_999_941_864_36,
    0.111_111_111_008_023_25,
    -0.100_000_008_772_784_59,
    0.090_909_103_538_979,
    -0.083_332_650_072_389_95,
    0.076_922_215_908_063_71,
    -0.071_458_603_987_408_39,
    0.066_701_065_243_989_24,
    -0.061_749_863_225_671_14,
    0.058_025_075_233_694_16,
    -0.065_394_176_407_731_04,
    0.062_501_445_500_119_24,
];

/// ⅓ in two parts.
const THIRD: [f64; 2] = [1.0 / 3.0, 1.850_371_707_708_594_3e-17];

/// ln 2 in two parts, the first of 41 bits after the point.
const LN_2: [f64; 2] = [0.693_147_180_559_663, 2.823_529_056_303_157_8e-13];

/// ln 4/3 in two parts, the first of 22 bits after the point.
const LN_4_3: [f64; 2] = [0.287_682_056_427_001_95, 1.602_477_897_431_421_7e-8];

/// `xʸ` in single precision.
pub(crate) fn pow_f32<A: Arithmetic>(x: Number<A, f32>, y: Number<A, f32>) -> Number<A, f32> {
    // For a NaN the largest number, so that the following steps produce no NaN.
    let Reduced { k, f, upper } = reduce(x.abs().min(f32::MAX).widen());
    let offset = upper.select(f.same(LOG2_4_3), 0.0);
    let logarithm = polynomial(f, &LOG2).mul_add(f, k + offset);
    let exponent = y.widen() * logarithm;
    // Where x is a positive number and the power is normal, nothing else counts.
    let usual = x.greater(0.0) & x.less_equal(f32::MAX) & exponent.abs().less(126.0);
    let [power] = usual.when(
        || {
            let split = split_f64(exponent, 1.0);
            let significand = polynomial(exponent - split.integer, &EXP2);
            [split.scaled(significand).narrow()]
        },
        || [rare_f32(x, y, logarithm)],
    );
    power
}

/// `xʸ` for any `x` and `y`, from the logarithm of finite ones but 0.
#[inline(always)]
fn rare_f32<A: Arithmetic>(
    x: Number<A, f32>,
    y: Number<A, f32>,
    logarithm: Number<A, f64>,
) -> Number<A, f32> {
    let logarithm = limits(x.abs(), logarithm, |limit| limit.widen());
    let exponent = y.widen() * logarithm;
    // 1 to an infinite power.
    let exponent = exponent.is_nan().select(exponent.same(0.0), exponent);
    let exponent = exponent
        .abs()
        .greater(200.0)
        .select(exponent.same(200.0).copy_sign(exponent), exponent);
    let split = split_f64(exponent, 1.0);
    let significand = polynomial(exponent - split.integer, &EXP2);
    complete_f32(x, y, split.scaled(significand).narrow())
}

/// `xʸ` in double precision.
pub(crate) fn pow_f64<A: Arithmetic>(x: Number<A, f64>, y: Number<A, f64>) -> Number<A, f64> {
    let magnitude = x.abs();
    let tiny = magnitude.less(f64::MIN_POSITIVE);
    let normal = tiny.select(magnitude * 18_014_398_509_481_984.0, magnitude);
    let Reduced { k, f, upper } = reduce(normal);
    let k = k - tiny.select(k.same(54.0), 0.0);

    // f - f²/2 + f³·(⅓ + f·tail), every part in two.
    let (square, square_low) = product(f, f);
    let (slope, slope_low) = product(f, polynomial(f, &LOG_TAIL));
    let (cubic, cubic_low) = ordered_sum(f.same(THIRD[0]), slope);
    let cubic_low = cubic_low + (slope_low + THIRD[1]);
    let (cube, cube_low) = product(square, f);
    let cube_low = square_low.mul_add(f, cube_low);
    let (third, third_low) = product(cube, cubic);
    let third_low = cube.mul_add(cubic_low, cube_low.mul_add(cubic, third_low));
    let first = square.mul_add(-0.5, f);
    let first_low = square_low.mul_add(-0.5, square.mul_add(-0.5, f - first));
    let (log_m, log_m_low) = ordered_sum(first, third);
    let log_m_low = log_m_low + (first_low + third_low);

    // k·ln 2 + ln 4/3 is exact in its first part.
    let base = k.mul_add(LN_2[0], upper.select(f.same(LN_4_3[0]), 0.0));
    let base_low = k.mul_add(LN_2[1], upper.select(f.same(LN_4_3[1]), 0.0));
    let (logarithm, low) = ordered_sum(base, log_m);
    let (logarithm, low) = ordered_sum(logarithm, low + (log_m_low + base_low));
    let finite = magnitude.less(f64::INFINITY) & magnitude.greater(0.0);
    let low = finite.select(low, 0.0);
    let logarithm = limits(magnitude, logarithm, |limit| limit);

    let (exponent, exponent_low) = product(y, logarithm);
    let exponent_low = y.mul_add(low, exponent_low);
    let exponent = exponent.is_nan().select(exponent.same(0.0), exponent);
    let beyond = exponent.abs().greater(1024.0);
    let exponent_low = (beyond | exponent_low.is_nan()).select(exponent.same(0.0), exponent_low);
    let exponent = beyond.select(exponent.same(1024.0).copy_sign(exponent), exponent);
    let power = exponential::exp_of_sum(exponent, exponent_low);
    complete_f64(x, y, power)
}

/// `x = 2ᵏ·m`, `f = m - 1` or, in the upper part of the range of `m`, `¾m - 1`, exactly.
struct Reduced<A: Arithmetic> {
    k: Number<A, f64>,
    f: Number<A, f64>,
    upper: Number<A, bool>,
}

/// For normal positive numbers; something finite for others. `m` is from 0.8 to 1.6.
#[inline(always)]
fn reduce<A: Arithmetic>(x: Number<A, f64>) -> Reduced<A> {
    const LEAST: u32 = 0x3fe9_999a;
    let high = x.high();
    let biased = high + (0x3ff0_0000 - LEAST);
    let two_to_52 = high.same(0x4330_0000);
    let k = two_to_52.with_low(biased.shift_right(20)) - (4_503_599_627_370_496.0 + 1023.0);
    let m_high = (biased & 0x000f_ffff) + LEAST;
    let upper = high.same(0x3ff3_0000).less(m_high);
    let factor = upper.select(high.same(0x3fe8_0000), 0x3ff0_0000).as_high();
    Reduced {
        k,
        f: m_high.with_low(x.low()).mul_add(factor, -1.0),
        upper,
    }
}

/// The logarithm, or -∞ of 0, ∞ of ∞, NaN of NaN.
#[inline(always)]
fn limits<A: Arithmetic, T: super::Float + From<f32>>(
    magnitude: Number<A, T>,
    logarithm: Number<A, f64>,
    widen: impl Fn(Number<A, T>) -> Number<A, f64>,
) -> Number<A, f64> {
    let finite = magnitude.less(T::from(f32::INFINITY));
    let logarithm = finite.select(logarithm, widen(magnitude));
    magnitude
        .equal(T::from(0.0))
        .select(logarithm.same(f64::NEG_INFINITY), logarithm)
}

/// `a × b` in two parts.
#[inline(always)]
fn product<A: Arithmetic>(a: Number<A, f64>, b: Number<A, f64>) -> (Number<A, f64>, Number<A, f64>) {
    let high = a * b;
    (high, a.mul_add(b, -high))
}

/// `a + b` in two parts, where `a` is 0 or not smaller than `b` in magnitude.
#[inline(always)]
fn ordered_sum<A: Arithmetic>(a: Number<A, f64>, b: Number<A, f64>) -> (Number<A, f64>, Number<A, f64>) {
    let high = a + b;
    (high, b - (high - a))
}

/// The result from `|x|ʸ`, the sign of `x`, the kind of `y`, and NaN.
macro_rules! complete {
    ($name:ident, $float:ident) => {
        #[inline(always)]
        fn $name<A: Arithmetic>(
            x: Number<A, $float>,
            y: Number<A, $float>,
            power: Number<A, $float>,
        ) -> Number<A, $float> {
            let integer = y.trunc().equal(y);
            let half = y * 0.5;
            let odd = integer & !half.trunc().equal(half);
            let sign = (odd & x.is_negative()).select(x.same(-1.0), 1.0);
            let result = power * sign;
            let negative = x.less(0.0) & x.greater($float::NEG_INFINITY);
            let invalid = (negative & !integer) | x.is_nan() | y.is_nan();
            let result = invalid.select(x.same($float::NAN), result);
            (x.equal(1.0) | y.equal(0.0)).select(x.same(1.0), result)
        }
    };
}

complete!(complete_f32, f32);
complete!(complete_f64, f64);
