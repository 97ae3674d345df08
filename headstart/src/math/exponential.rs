//! `exp` and `exp2`.
//!
//! `x = k·ln 2 + r` with `|r| ≤ ½ ln 2`, and `eˣ = 2ᵏ·eʳ` with a minimax polynomial for `eʳ`; `exp2` splits
//! `x = k + r`, exactly. Arguments far outside are clamped first; a NaN passes that unchanged.
//!
//! Polynomials by Sollya's `fpminimax(expm1(x), …, x, relative)` on `[-½ ln 2, ½ ln 2]`, and of `2^x` on
//! `[-½, ½]`.

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::polynomial;
use super::scale::{Exponent, clamp_f32, clamp_f64, split_f32, split_f64};

/// ln 2 to the nearest `f64`; with `k` of 11 bits, `x - k·LN_2_HIGH` is exact.
const LN_2_HIGH: f64 = std::f64::consts::LN_2;

/// What is missing from it.
const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;

/// `(eʳ - 1)/r`; relative error 2⁻⁵⁵·⁵, in `eʳ` 2⁻⁵⁶·⁸.
const EXP_F64: [f64; 11] = [
    1.0,
    0.500_000_000_000_000_6,
    0.166_666_666_666_665_94,
    0.041_666_666_666_573_79,
    0.008_333_333_333_386_235,
    0.001_388_888_893_230_602,
    0.000_198_412_697_271_400_4,
    2.480_150_454_226_162_7e-5,
    2.755_739_960_654_980_8e-6,
    2.762_628_713_296_126e-7,
    2.505_645_784_453_612e-8,
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

/// `(eʳ - 1)/r`; relative error 2⁻²⁶, in `eʳ` 2⁻²⁷·³.
const EXP_F32: [f32; 6] = [
    1.0,
    0.499_999_97,
    0.166_665_43,
    0.041_667_502,
    0.008_366_534,
    0.001_386_452_8,
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

/// `x = k·ln 2 + r`, for `|x|` up to 2¹³.
#[inline(always)]
pub(super) fn reduce_f32<A: Arithmetic>(x: Number<A, f32>) -> (Exponent<A, f32>, Number<A, f32>) {
    let exponent = split_f32(x, std::f32::consts::LOG2_E);
    let k = exponent.integer;
    (exponent, k.mul_add(-LN_2_LOW_F32, k.mul_add(-LN_2_HIGH_F32, x)))
}

/// `x = k·ln 2 + r`, for `|x|` up to 2²⁰.
#[inline(always)]
pub(super) fn reduce_f64<A: Arithmetic>(x: Number<A, f64>) -> (Exponent<A, f64>, Number<A, f64>) {
    let exponent = split_f64(x, std::f64::consts::LOG2_E);
    let k = exponent.integer;
    (exponent, k.mul_add(-LN_2_LOW, k.mul_add(-LN_2_HIGH, x)))
}

/// `eˣ = 2ᵏ·(1 + m)` with `m = eʳ - 1` to full precision, for what subtracts 1 again.
#[inline(always)]
pub(super) fn less_one_f32<A: Arithmetic>(x: Number<A, f32>) -> (Exponent<A, f32>, Number<A, f32>) {
    let (exponent, r) = reduce_f32(x);
    (exponent, (polynomial(r, &EXP_F32[1..]) * r).mul_add(r, r))
}

/// As [`less_one_f32`].
#[inline(always)]
pub(super) fn less_one_f64<A: Arithmetic>(x: Number<A, f64>) -> (Exponent<A, f64>, Number<A, f64>) {
    let (exponent, r) = reduce_f64(x);
    (exponent, (polynomial(r, &EXP_F64[1..]) * r).mul_add(r, r))
}

/// `eˣ` in single precision.
pub fn exp_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    // e^±104 overflows, and underflows to 0.
    let (exponent, r) = reduce_f32(clamp_f32(x, 104.0));
    exponent.scale(polynomial(r, &EXP_F32).mul_add(r, 1.0))
}

/// `eˣ` in double precision.
pub fn exp_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    // e^±1024 overflows, and underflows to 0.
    let (exponent, r) = reduce_f64(clamp_f64(x, 1024.0));
    exponent.scale(r, polynomial(r, &EXP_F64))
}

/// `eˣ⁺ˡ` for `|x|` up to 2²⁰ and a much smaller `l`, in double precision.
#[inline(always)]
pub(super) fn exp_of_sum<A: Arithmetic>(x: Number<A, f64>, low: Number<A, f64>) -> Number<A, f64> {
    let (exponent, r) = reduce_f64(x);
    let r = r + low;
    exponent.scale(r, polynomial(r, &EXP_F64))
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
