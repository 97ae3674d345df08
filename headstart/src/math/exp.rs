//! `exp`: e to the power `x`.
//!
//! `x = k·ln 2 + r` with `|r| ≤ ½ ln 2`, and `eˣ = 2ᵏ·p(r)` with a minimax polynomial `p`. The scale goes
//! on in two halves, `2ʲ` and `2ᵏ⁻ʲ`: subnormal results are then rounded once more only, and overflow is an
//! infinity, all without a branch. Arguments far outside are clamped first; a NaN passes that unchanged.
//!
//! Polynomials by Sollya's `fpminimax(exp(x), …, relative)` on `[-½ ln 2, ½ ln 2]`.

use std::f64::consts::LOG2_E;

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::polynomial;

/// ln 2 to the nearest `f64`; with `k` of 11 bits, `x - k·LN_2_HIGH` is exact.
const LN_2_HIGH: f64 = std::f64::consts::LN_2;

/// What is missing from it.
const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;

/// `(eʳ - 1)/r`; relative error of `eʳ` 2⁻⁵⁷·⁸.
const QUOTIENT_F64: [f64; 11] = [
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

/// As for `f64`, in 24 bits.
const LN_2_HIGH_F32: f32 = std::f32::consts::LN_2;

/// What is missing from it.
const LN_2_LOW_F32: f32 = -1.904_654_2e-9;

/// `eʳ`; relative error 2⁻²⁸·¹.
const EXP_F32: [f32; 7] = [
    1.0,
    1.0,
    0.499_999_9,
    0.166_665_21,
    0.041_668_963,
    0.008_368_671,
    0.001_378_247_9,
];

/// `eˣ` in single precision.
pub fn f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    // e^±104 overflows, and underflows to 0.
    let x = x.abs().greater(104.0).select(x.same(104.0).copy_sign(x), x);

    // Adding 1.5·2²³ rounds to an integer and leaves it in the lowest bits; twice the bias of an exponent
    // is added along, one for either half of the scale.
    let magic = 12_582_912.0 + 254.0;
    let shifted = x.mul_add(std::f32::consts::LOG2_E, magic);
    let k = shifted - magic;
    let r = k.mul_add(-LN_2_LOW_F32, k.mul_add(-LN_2_HIGH_F32, x));

    let p = polynomial(r, &EXP_F32);
    let k = shifted.bits();
    let j = k.shift_right(1);
    p * j.shift_left(23).float() * (k - j).shift_left(23).float()
}

/// `eˣ` in double precision.
pub fn f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    // e^±1024 overflows, and underflows to 0. The lower half may stay as it is.
    let high = x.high();
    let clamped = (high & 0x8000_0000) | 0x4090_0000;
    let x = x.abs().greater(1024.0).select(clamped, high).with_low(x.low());

    // Adding 1.5·2⁵² rounds to an integer and leaves it in the lowest bits, with two biases.
    let magic = 6_755_399_441_055_744.0 + 2046.0;
    let shifted = x.mul_add(LOG2_E, magic);
    let k = shifted - magic;
    let r = k.mul_add(-LN_2_LOW, k.mul_add(-LN_2_HIGH, x));

    // 2ʲ + (2ʲ·q)·r: scaling q by an integer addition costs no multiplication.
    let q = polynomial(r, &QUOTIENT_F64);
    let k = shifted.low();
    let j = k.shift_right(1);
    let two_to_j = j.shift_left(20);
    let scaled_q = (q.high() + (two_to_j - 0x3ff0_0000)).with_low(q.low());
    scaled_q.mul_add(r, two_to_j.as_high()) * (k - j).shift_left(20).as_high()
}
