//! `log`, `log2` and `log10`.
//!
//! `x = 2ᵏ·m`, and `log x = k·log 2 + log m` with a minimax polynomial for `log(1 + f)`. Double precision first multiplies the
//! upper half of the range of `m` by ¾, which halves the range of `f` and saves seven degrees for a few integer operations,
//! which a GPU executes beside the arithmetic on doubles.
//!
//! Polynomials by Sollya's `fpminimax(log(1 + x), …, x - x²/2, relative)`, and with `x/ln 2` or `x/ln 10`
//! for the other bases.

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::polynomial;

/// A logarithm to one base, in double precision: `k·two + offset + f/ln b + f²·tail(f)`.
struct Base {
    /// log 2 to 21 bits, rounded down: its product with an exponent is exact, and its lower half is zero.
    /// Such doubles are immediate operands on a GPU; others take two instructions more each time.
    two_high: f64,
    /// Its rounding error: positive or zero, so that an infinite exponent stays one.
    two_low: f64,
    /// log 4/3 to 22 bits after the point: the lower half of the double is zero.
    offset_high: f64,
    /// Its rounding error.
    offset_low: f64,
    /// 1/ln b.
    slope_high: f64,
    /// Its rounding error.
    slope_low: f64,
    /// `(log(1 + f) - f/ln b)/f²` for `|f| ≤ 0.2`; relative error of `log(1 + f)` 2⁻⁵⁵·⁸. The
    /// last five have zero lower halves.
    tail: [f64; 15],
}

const NATURAL: Base = Base {
    two_high: 0.693_146_705_627_441_4,
    two_low: 4.749_325_039_031_672_6e-7,
    offset_high: 0.287_682_056_427_001_95,
    offset_low: 1.602_477_897_431_421_7e-8,
    slope_high: 1.0,
    slope_low: 0.0,
    tail: [
        -0.5,
        0.333_333_333_333_362_1,
        -0.250_000_000_000_072_44,
        0.199_999_999_981_324_12,
        -0.166_666_666_632_249_36,
        0.142_857_146_909_261_9,
        -0.125_000_006_098_570_76,
        0.111_110_696_700_541_97,
        -0.099_999_459_846_861_6,
        0.090_931_645_068_195_12,
        -0.083_359_718_322_753_9,
        0.076_253_116_130_828_86,
        -0.070_708_513_259_887_7,
        0.076_827_228_069_305_42,
        -0.072_692_096_233_367_92,
    ],
};

const BINARY: Base = Base {
    two_high: 1.0,
    two_low: 0.0,
    offset_high: 0.415_037_393_569_946_3,
    offset_low: 1.057_088_975_294_837_6e-7,
    slope_high: std::f64::consts::LOG2_E,
    slope_low: 2.035_527_374_093_103_3e-17,
    tail: [
        -0.721_347_520_444_481_6,
        0.480_898_346_963_031_4,
        -0.360_673_760_222_405,
        0.288_539_008_150_083_26,
        -0.240_449_173_420_951_82,
        0.206_099_297_505_060_23,
        -0.180_336_889_900_950_06,
        0.160_298_844_349_879_76,
        -0.144_268_675_032_911_33,
        0.131_186_864_362_851_98,
        -0.120_264_053_344_726_56,
        0.110_006_034_374_237_06,
        -0.101_990_103_721_618_65,
        0.110_865_175_724_029_54,
        -0.104_997_813_701_629_64,
    ],
};

const DECIMAL: Base = Base {
    two_high: 0.301_029_920_578_002_93,
    two_low: 7.508_597_826_552_624e-8,
    offset_high: 0.124_938_726_425_170_9,
    offset_low: 1.018_312_905_469_495e-8,
    slope_high: std::f64::consts::LOG10_E,
    slope_low: 1.098_319_650_216_765e-17,
    tail: [
        -0.217_147_240_951_625_88,
        0.144_764_827_301_097_08,
        -0.108_573_620_475_860_14,
        0.086_858_896_372_304_9,
        -0.072_382_413_632_818_05,
        0.062_042_070_634_956_1,
        -0.054_286_813_132_203_814,
        0.048_254_760_373_459_9,
        -0.043_429_201_571_205_26,
        0.039_491_182_811_752_804,
        -0.036_202_996_969_223_02,
        0.033_115_088_939_666_75,
        -0.030_703_514_814_376_83,
        0.033_373_922_109_603_88,
        -0.031_598_299_741_744_995,
    ],
};

/// A logarithm to one base, in single precision: `k·two + f/ln b + f²·tail(f)`.
struct BaseF32 {
    /// log 2; of base 10 to 12 bits after the point, so that its product with an exponent is exact.
    two_high: f32,
    /// The rounding error, if it matters: positive or zero.
    two_low: f32,
    /// 1/ln b.
    slope_high: f32,
    /// Its rounding error.
    slope_low: f32,
    /// `(log(1 + f) - f/ln b)/f²` over the range of `f`; relative error of `log(1 + f)` 2⁻²⁷·⁵.
    tail: [f32; 9],
    /// The bits of the least `m`; the largest is below twice as much.
    least: u32,
}

/// The bits of ⅔, rounded up.
const TWO_THIRDS: u32 = 0x3f2a_aaab;

/// The bits of √½: with `m` from here on the last sum loses no bits to cancellation.
const SQUARE_ROOT_HALF: u32 = 0x3f35_04f3;

const NATURAL_F32: BaseF32 = BaseF32 {
    two_high: std::f32::consts::LN_2,
    two_low: 0.0,
    slope_high: 1.0,
    slope_low: 0.0,
    tail: [
        -0.5,
        0.333_332_15,
        -0.249_997_97,
        0.200_104_46,
        -0.166_805_06,
        0.140_053_06,
        -0.121_839_724,
        0.139_868_97,
        -0.128_930_32,
    ],
    least: TWO_THIRDS,
};

const BINARY_F32: BaseF32 = BaseF32 {
    two_high: 1.0,
    two_low: 0.0,
    slope_high: std::f32::consts::LOG2_E,
    slope_low: 1.925_963e-8,
    tail: [
        -0.721_347_33,
        0.480_898_2,
        -0.360_697_87,
        0.288_570_23,
        -0.239_596_38,
        0.204_541_24,
        -0.191_152_36,
        0.186_550_4,
        -0.110_205_79,
    ],
    least: SQUARE_ROOT_HALF,
};

const DECIMAL_F32: BaseF32 = BaseF32 {
    two_high: 0.301_025_4,
    two_low: 4.605_039e-6,
    slope_high: std::f32::consts::LOG10_E,
    slope_low: -1.010_305e-8,
    tail: [
        -0.217_147_19,
        0.144_764_8,
        -0.108_580_746,
        0.086_867_54,
        -0.072_127_596,
        0.061_586_928,
        -0.057_543_024,
        0.056_077_42,
        -0.033_078_484,
    ],
    least: SQUARE_ROOT_HALF,
};

/// `ln x` in single precision. -∞ for zeros, NaN for negative numbers.
pub(crate) fn log_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    single(x, &NATURAL_F32)
}

/// `ln x` in double precision. -∞ for zeros, NaN for negative numbers.
pub(crate) fn log_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    double(x, &NATURAL)
}

/// `log₂ x` in single precision. -∞ for zeros, NaN for negative numbers.
pub(crate) fn log2_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    single(x, &BINARY_F32)
}

/// `log₂ x` in double precision. -∞ for zeros, NaN for negative numbers.
pub(crate) fn log2_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    double(x, &BINARY)
}

/// `log₁₀ x` in single precision. -∞ for zeros, NaN for negative numbers.
pub(crate) fn log10_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    single(x, &DECIMAL_F32)
}

/// `log₁₀ x` in double precision. -∞ for zeros, NaN for negative numbers.
pub(crate) fn log10_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    double(x, &DECIMAL)
}

/// `x × factor + term`, where a factor of 1 or 0 costs nothing more than it must.
#[inline(always)]
fn scaled<A: Arithmetic, T: super::Float + From<f32> + PartialEq>(
    x: Number<A, T>,
    factor: T,
    term: Number<A, T>,
) -> Number<A, T> {
    match factor {
        f if f == T::from(0.0) => term,
        f if f == T::from(1.0) => x + term,
        f => x.mul_add(f, term),
    }
}

#[inline(always)]
fn single<A: Arithmetic>(x: Number<A, f32>, base: &BaseF32) -> Number<A, f32> {
    let normal = x.greater_equal(f32::MIN_POSITIVE) & x.less_equal(f32::MAX);
    let [result] = normal.when(
        || [of_normal(x, base, |exponent| exponent, 1.0 / 8_388_608.0)],
        || {
            let k = |exponent: Number<A, f32>| exponent.mul_add(1.0 / 8_388_608.0, -23.0);
            let subnormal = of_normal(x * 8_388_608.0, base, k, 1.0);
            // ∞ for ∞, NaN for NaN and below zero.
            let limit = x.mul_add(f32::INFINITY, f32::INFINITY);
            let limit = x.equal(0.0).select(x.same(f32::NEG_INFINITY), limit);
            [(x.greater(0.0) & x.less(f32::INFINITY)).select(subnormal, limit)]
        },
    );
    result
}

/// `log x` for a normal `x` above 0, where `k` makes of the exponent, 2²³ times too large, one that is `1/unit` times
/// too large.
#[inline(always)]
fn of_normal<A: Arithmetic>(
    x: Number<A, f32>,
    base: &BaseF32,
    k: impl Fn(Number<A, f32>) -> Number<A, f32>,
    unit: f32,
) -> Number<A, f32> {
    // `exponent` is k shifted to its place in the bits.
    let bits = x.bits();
    let exponent = (bits - base.least) & 0xff80_0000;
    let f = (bits - exponent).float() - 1.0;
    let k = k(exponent.signed_to_float::<f32>());

    let tail = f * polynomial(f, &base.tail);
    let log_m = if base.slope_high == 1.0 {
        tail.mul_add(f, f)
    } else {
        let low = scaled(k, base.two_low * unit, f * base.slope_low);
        f.mul_add(base.slope_high, tail.mul_add(f, low))
    };
    k.mul_add(base.two_high * unit, log_m)
}

#[inline(always)]
fn double<A: Arithmetic>(x: Number<A, f64>, base: &Base) -> Number<A, f64> {
    let tiny = x.high().less_signed(0x0010_0000);
    let scaled_up = x * 18_014_398_509_481_984.0;
    let high = tiny.select(scaled_up.high(), x.high());
    let low = tiny.select(scaled_up.low(), x.low());

    // m in [0.8, 1.6), k plus its bias in the lowest bits. A double of 2⁵² and an integer is their sum.
    const LEAST: u32 = 0x3fe9_999a;
    let biased = high + (0x3ff0_0000 - LEAST);
    let two_to_52 = high.same(0x4330_0000);
    let bias = tiny.select(high.same(1023 + 54), 1023);
    let k = two_to_52.with_low(biased.shift_right(20)) - two_to_52.with_low(bias);
    let m_high = (biased & 0x000f_ffff) + LEAST;
    let m = m_high.with_low(low);

    // What has no finite logarithm travels as k: -∞ for 0, NaN below, x itself for ∞ and NaN.
    let finite = (high - 0x0010_0000).less(0x7fe0_0000);
    let limit = high.less_signed(0).select(high.same(0x7ff8_0000), high);
    let limit = high.shift_left(1).equal(0).select(high.same(0xfff0_0000), limit);
    let k = finite
        .select(k.high(), limit)
        .with_low(finite.select(k.low(), low));

    // f = m - 1 or ¾m - 1, both exact. Above 1.1875 the last sum loses no bits to cancellation.
    let upper = high.same(0x3ff3_0000).less(m_high);
    let factor = upper.select(high.same(0x3fe8_0000), 0x3ff0_0000).as_high();
    let offset_high = upper
        .select(high.same((base.offset_high.to_bits() >> 32) as u32), 0)
        .as_high();
    let offset_low = upper.select(x.same(base.offset_low), 0.0);
    let f = m.mul_add(factor, -1.0);

    let low = scaled(k, base.two_low, offset_low);
    let low = scaled(f, base.slope_low, low);
    let low = (f * f).mul_add(polynomial(f, &base.tail), low);
    scaled(k, base.two_high, offset_high) + scaled(f, base.slope_high, low)
}
