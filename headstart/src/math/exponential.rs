//! `exp` and `exp2`.
//!
//! `x = k·ln 2 + r` with `|r| ≤ ½ ln 2`, and `eˣ = 2ᵏ·eʳ` with a minimax polynomial for `eʳ`; `exp2` splits
//! `x = k + r`, exactly. Arguments far outside are clamped first; a NaN passes that unchanged.
//!
//! Polynomials by Sollya's `fpminimax(exp(x), …, relative)` on `[-½ ln 2, ½ ln 2]`, and of `2^x` on
//! `[-½, ½]`.

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::polynomial;
use super::scale::{Exponent, clamp_f32, clamp_f64, split_f32, split_f64};

/// ln 2 to the nearest `f64`; with `k` of 11 bits, `x - k·LN_2_HIGH` is exact.
const LN_2_HIGH: f64 = std::f64::consts::LN_2;

/// What is missing from it.
const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;

/// `(eʳ - 1)/r`; relative error of `eʳ` 2⁻⁵⁷·⁸.
const EXP_F64: [f64; 11] = [
    1.0,
    0.500_000_000_000_001_1,
    0.166_666_666_666_664_24,
    0.041_666_666_666_527_03,
    0.008_333_333_333_487_042,
    0.001_388_888_894_431_946_3,
    0.000_198_412_695_225_089_6,
    2.480_149_247_525_293_5e-5,
    2.755_757_223_451_541_3e-6,
    2.763_044_758_776_021_4e-7,
    2.500_451_401_172_012_5e-8,
];

/// `(2ʳ - 1)/r`; relative error of `2ʳ` 2⁻⁵⁷·³.
const EXP2_F64: [f64; 11] = [
    std::f64::consts::LN_2,
    0.240_226_506_959_101_36,
    0.055_504_108_664_822_33,
    0.009_618_129_107_592_572,
    0.001_333_355_814_635_870_5,
    0.000_154_035_304_587_880_97,
    1.525_273_382_879_197e-5,
    1.321_543_454_107_482_8e-6,
    1.017_807_664_142_246_2e-7,
    7.073_898_733_637_242e-9,
    4.451_512_654_753_768e-10,
];

/// As for `f64`, in 24 bits.
const LN_2_HIGH_F32: f32 = std::f32::consts::LN_2;

/// What is missing from it.
const LN_2_LOW_F32: f32 = -1.904_654_2e-9;

/// `(eʳ - 1)/r`; relative error of `eʳ` 2⁻²⁸·¹.
const EXP_F32: [f32; 6] = [
    1.0,
    0.499_999_9,
    0.166_665_21,
    0.041_668_963,
    0.008_368_671,
    0.001_378_247_9,
];

/// `(2ʳ - 1)/r`; relative error of `2ʳ` 2⁻²⁸.
const EXP2_F32: [f32; 6] = [
    std::f32::consts::LN_2,
    0.240_226_45,
    0.055_503_584,
    0.009_618_829,
    0.001_339_147_3,
    0.000_152_433_96,
];

/// `eˣ = (1 + r·q)·2ᵏ` before it is put together.
pub(super) struct Parts<A: Arithmetic, T: super::Float> {
    /// `k`.
    pub exponent: Exponent<A, T>,
    /// `r`.
    pub rest: Number<A, T>,
    /// `q`.
    pub quotient: Number<A, T>,
}

/// `eˣ` in parts, for `|x|` up to 2¹³.
#[inline(always)]
pub(super) fn parts_f32<A: Arithmetic>(x: Number<A, f32>) -> Parts<A, f32> {
    let exponent = split_f32(x, std::f32::consts::LOG2_E);
    let k = exponent.integer;
    let rest = k.mul_add(-LN_2_LOW_F32, k.mul_add(-LN_2_HIGH_F32, x));
    Parts {
        exponent,
        rest,
        quotient: polynomial(rest, &EXP_F32),
    }
}

/// `eˣ` in parts, for `|x|` up to 2²⁰.
#[inline(always)]
pub(super) fn parts_f64<A: Arithmetic>(x: Number<A, f64>) -> Parts<A, f64> {
    let exponent = split_f64(x, std::f64::consts::LOG2_E);
    let k = exponent.integer;
    let rest = k.mul_add(-LN_2_LOW, k.mul_add(-LN_2_HIGH, x));
    Parts {
        exponent,
        rest,
        quotient: polynomial(rest, &EXP_F64),
    }
}

/// `eˣ` in single precision.
pub fn exp_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    // e^±104 overflows, and underflows to 0.
    let Parts {
        exponent,
        rest,
        quotient,
    } = parts_f32(clamp_f32(x, 104.0));
    exponent.scale(quotient.mul_add(rest, 1.0))
}

/// `eˣ` in double precision.
pub fn exp_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    // e^±1024 overflows, and underflows to 0.
    let Parts {
        exponent,
        rest,
        quotient,
    } = parts_f64(clamp_f64(x, 1024.0));
    exponent.scale(rest, quotient)
}

/// `2ˣ` in single precision.
pub fn exp2_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let x = clamp_f32(x, 160.0);
    let exponent = split_f32(x, 1.0);
    let rest = x - exponent.integer;
    exponent.scale(polynomial(rest, &EXP2_F32).mul_add(rest, 1.0))
}

/// `2ˣ` in double precision.
pub fn exp2_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let x = clamp_f64(x, 1536.0);
    let exponent = split_f64(x, 1.0);
    let rest = x - exponent.integer;
    exponent.scale(rest, polynomial(rest, &EXP2_F64))
}
