//! `log`: the natural logarithm.
//!
//! `x = 2ᵏ·m`, and `log x = k·ln 2 + log m` with a minimax polynomial for `log(1 + f)`. Double precision
//! first multiplies the upper half of the range of `m` by ¾, which halves the range of `f` and saves seven
//! degrees for a few integer operations: the exponent's unit is the cheaper one on a GPU.
//!
//! Polynomials by Sollya's `fpminimax(log(1 + x), …, x - x²/2, relative)`.

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::polynomial;

/// ln 2 to 41 bits after the point, rounded down: its product with an exponent is exact.
const LN_2_HIGH: f64 = 0.693_147_180_559_663;

/// What is missing from it; positive, so that an infinite exponent stays one.
const LN_2_LOW: f64 = 2.823_529_056_303_157_8e-13;

/// -ln ¾ to 22 bits after the point: the lower half of the double is zero.
const LN_4_3_HIGH: f64 = 0.287_682_056_427_001_95;

/// What is missing from it.
const LN_4_3_LOW: f64 = 1.602_477_897_431_421_7e-8;

/// `(log(1 + f) - f)/f²` for `|f| ≤ 0.2`; relative error of `log(1 + f)` 2⁻⁵⁵·⁸.
const TAIL_F64: [f64; 15] = [
    -0.5,
    0.333_333_333_333_362_1,
    -0.250_000_000_000_072_2,
    0.199_999_999_981_325,
    -0.166_666_666_632_317_88,
    0.142_857_146_909_023_62,
    -0.125_000_006_090_741_08,
    0.111_110_696_723_485,
    -0.099_999_460_287_603,
    0.090_931_644_050_663_1,
    -0.083_359_705_134_703_03,
    0.076_253_137_293_906_06,
    -0.070_708_715_012_592_35,
    0.076_827_060_823_482_04,
    -0.072_690_851_728_997_4,
];

/// `(log(1 + f) - f)/f²` for `|f| ≤ ⅓`; relative error of `log(1 + f)` 2⁻²⁷·⁶.
const TAIL_F32: [f32; 9] = [
    -0.5,
    0.333_332_15,
    -0.249_997_97,
    0.200_104_46,
    -0.166_805_06,
    0.140_053_06,
    -0.121_839_724,
    0.139_868_97,
    -0.128_930_32,
];

/// `ln x` in single precision. -∞ for zeros, NaN for what is below.
pub fn f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let tiny = x.less(f32::MIN_POSITIVE);
    let normal = tiny.select(x * 8_388_608.0, x);

    // m in [⅔, 4/3); `exponent` is k shifted to its place in the bits.
    let bits = normal.bits();
    let exponent = (bits - 0x3f2a_aaab) & 0xff80_0000;
    let m = (bits - exponent).float();
    let k = exponent
        .signed_to_float::<f32>()
        .mul_add(1.0 / 8_388_608.0, tiny.select(x.same(-23.0), 0.0));

    let f = m - 1.0;
    let log_m = (f * polynomial(f, &TAIL_F32)).mul_add(f, f);
    let finite = k.mul_add(std::f32::consts::LN_2, log_m);

    // ∞ for ∞, NaN for NaN and below zero.
    let limit = normal.mul_add(f32::INFINITY, f32::INFINITY);
    let result = bits.less(0x7f80_0000).select(finite, limit);
    x.equal(0.0).select(x.same(f32::NEG_INFINITY), result)
}

/// `ln x` in double precision. -∞ for zeros, NaN for what is below.
pub fn f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let tiny = x.high().less_signed(0x0010_0000);
    let scaled = x * 18_014_398_509_481_984.0;
    let high = tiny.select(scaled.high(), x.high());
    let low = tiny.select(scaled.low(), x.low());

    // m in [0.8, 1.6), k plus its bias in the lowest bits. A double of 2⁵² and an integer is their sum.
    const LEAST: u32 = 0x3fe9_999a;
    let biased = high + (0x3ff0_0000 - LEAST);
    let two_to_52 = 0x4330_0000;
    let k = high.same(two_to_52).with_low(biased.shift_right(20))
        - high
            .same(two_to_52)
            .with_low(tiny.select(high.same(1023 + 54), 1023));
    let m_high = (biased & 0x000f_ffff) + LEAST;
    let m = m_high.with_low(low);

    // What has no finite logarithm travels as k: -∞ for 0, NaN below, x itself for ∞ and NaN.
    let finite = (high - 0x0010_0000).less(0x7fe0_0000);
    let limit = high.less_signed(0).select(high.same(0x7ff8_0000), high);
    let limit = high.shift_left(1).equal(0).select(high.same(0xfff0_0000), limit);
    let k = finite
        .select(k.high(), limit)
        .with_low(finite.select(k.low(), low));

    // f = m - 1 or ¾m - 1, both exact. Above 1.1875 the sum below never loses bits to cancellation.
    let upper = high.same(0x3ff3_0000).less(m_high);
    let factor = upper.select(high.same(0x3fe8_0000), 0x3ff0_0000).as_high();
    let offset_high = upper.select(high.same(word_high(LN_4_3_HIGH)), 0).as_high();
    let offset_low = upper.select(x.same(LN_4_3_LOW), 0.0);
    let f = m.mul_add(factor, -1.0);

    let low = k.mul_add(LN_2_LOW, offset_low);
    let low = (f * f).mul_add(polynomial(f, &TAIL_F64), low);
    k.mul_add(LN_2_HIGH, offset_high) + (f + low)
}

/// The upper half of a double.
const fn word_high(x: f64) -> u32 {
    (x.to_bits() >> 32) as u32
}
