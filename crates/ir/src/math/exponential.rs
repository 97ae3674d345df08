//! `exp` and `exp2`.
//!
//! `x = k·ln 2 + r` with `|r| ≤ ½ ln 2`, and `eˣ = 2ᵏ·eʳ` with a minimax polynomial for `eʳ`; `exp2` splits
//! `x = k + r`, exactly. Arguments far outside are clamped first; a NaN passes that unchanged. In single precision
//! [`table`](crate::ir::eval::table) has the power of two, one instruction on a GPU, and the scale goes on by a
//! multiplication, so that subnormal results are rounded once more only.
//!
//! Polynomials by Sollya's `fpminimax(expm1(x), …, x, relative)` on `[-½ ln 2, ½ ln 2]`, and of `2^x` on
//! `[-½, ½]`.

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::{in_halves, polynomial};
use super::scale::{Exponent, split_f32, split_f64};

/// log₂ e to 21 bits: enough to choose `k`. Doubles whose lower half is zero are immediate operands on a
/// GPU; others take two instructions more each time.
const LOG2_E: f64 = 1.442_694_664_001_464_8;

/// ln 2 to 21 bits: `x - k·LN_2_HIGH` is exact.
const LN_2_HIGH: f64 = 0.693_146_705_627_441_4;

/// Its rounding error.
const LN_2_LOW: f64 = 4.749_325_039_031_672_6e-7;

/// `(eʳ - 1)/r`; relative error 2⁻⁵⁵·¹, in `eʳ` 2⁻⁵⁶·⁴. The last three
/// have zero lower halves.
const EXP_F64: [f64; 11] = [
    1.0,
    0.5,
    0.166_666_666_666_666_07,
    0.041_666_666_666_619_01,
    0.008_333_333_333_384_72,
    0.001_388_888_892_099_897_2,
    0.000_198_412_697_178_925_56,
    2.480_151_561_893_154e-5,
    2.755_741_661_530_919_4e-6,
    2.762_255_917_332_368e-7,
    2.504_890_517_229_796_4e-8,
];

/// `(2ʳ - 1)/r`; relative error of `2ʳ` 2⁻⁵⁷. The last four have zero lower halves.
const EXP2_F64: [f64; 11] = [
    std::f64::consts::LN_2,
    0.240_226_506_959_101_53,
    0.055_504_108_664_822_55,
    0.009_618_129_107_586_203,
    0.001_333_355_814_627_612_6,
    0.000_154_035_304_663_909_05,
    1.525_273_392_740_426_2e-5,
    1.321_543_095_400_557e-6,
    1.017_803_015_201_934_6e-7,
    7.074_483_221_458_649_5e-9,
    4.459_079_772_090_035_5e-10,
];

/// ln 2 to 24 bits: with `k` of 8 bits, `x - k·LN_2_HIGH_F32` is exact.
const LN_2_HIGH_F32: f32 = std::f32::consts::LN_2;

/// Its rounding error.
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

/// log₂ e to 24 bits, and its rounding error.
const LOG2_E_F32: f32 = std::f32::consts::LOG2_E;
const LOG2_E_LOW_F32: f32 = 1.925_963e-8;

/// `x = k·ln 2 + r`, for `|x|` up to 2¹³.
#[inline(always)]
pub(super) fn reduce_f32<A: Arithmetic>(x: Number<A, f32>) -> (Exponent<A, f32>, Number<A, f32>) {
    reduce_scaled_f32(x, 0)
}

/// As [`reduce_f32`], with `2ᵏ⁺ⁿ` as the exponent's power.
#[inline(always)]
pub(super) fn reduce_scaled_f32<A: Arithmetic>(
    x: Number<A, f32>,
    n: i16,
) -> (Exponent<A, f32>, Number<A, f32>) {
    let exponent = split_f32(x, std::f32::consts::LOG2_E, n);
    let k = exponent.integer;
    (exponent, k.mul_add(-LN_2_LOW_F32, k.mul_add(-LN_2_HIGH_F32, x)))
}

/// `x = k·ln 2 + r`, for `|x|` up to 2²⁰.
#[inline(always)]
pub(super) fn reduce_f64<A: Arithmetic>(x: Number<A, f64>) -> (Exponent<A, f64>, Number<A, f64>) {
    let exponent = split_f64(x, LOG2_E);
    let k = exponent.integer;
    (exponent, k.mul_add(-LN_2_LOW, k.mul_add(-LN_2_HIGH, x)))
}

/// `eˣ = 2ᵏ·(1 + m)` with `m = eʳ - 1` to full precision, for functions that subtract 1 again.
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

/// `¼eˣ` for `x` from 0 to 89.5, in single precision.
#[inline(always)]
pub(super) fn quarter_exp_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let (exponent, r) = reduce_scaled_f32(x, -2);
    polynomial(r, &EXP_F32).mul_add(r, 1.0) * exponent.power()
}

/// `eˣ` in single precision.
pub(crate) fn exp_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    // If log₂ eˣ - ½ is between -126 and 126, from 0 to 1; the excess stays in the remainder.
    const RANGE: f32 = 252.0;
    let place = x.mul_add(LOG2_E_F32 / RANGE, 0.5 - 0.5 / RANGE).max(0.0).min(1.0);
    // In the lowest bits then the integer with an exponent's bias.
    let magic = 12_582_912.0 + 1.0;
    let shifted = place.mul_add(RANGE, magic);
    let k = shifted - (magic + 126.0);
    let rest = x.mul_add(LOG2_E_LOW_F32, x.mul_add(LOG2_E_F32, -k));
    rest.table_exp2() * shifted.bits().shift_left(23).float()
}

/// `eˣ` in double precision.
pub(crate) fn exp_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    // e^±1024 overflows, and underflows to 0.
    let (exponent, r) = reduce_f64(x);
    let (exponent, r) = exponent.limited(r, x, 1024.0);
    exponent.scale(r, in_halves(r, &EXP_F64))
}

/// `eˣ⁺ˡ` for `|x|` up to 2²⁰ and a much smaller `l`, in double precision.
#[inline(always)]
pub(super) fn exp_of_sum<A: Arithmetic>(x: Number<A, f64>, low: Number<A, f64>) -> Number<A, f64> {
    let (exponent, r) = reduce_f64(x);
    let r = r + low;
    exponent.scale(r, polynomial(r, &EXP_F64))
}

/// `2ˣ` in single precision.
pub(crate) fn exp2_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    // Subnormal results: 2²⁴ times as large first, which is exact.
    let tiny = x.less(-126.0);
    let power = tiny.select(x + 24.0, x).table_exp2();
    tiny.select(power * (0.5 * f32::EPSILON), power)
}

/// `2ˣ` in double precision.
pub(crate) fn exp2_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let exponent = split_f64(x, 1.0);
    let (exponent, rest) = exponent.limited(x - exponent.integer, x, 1100.0);
    exponent.scale(rest, in_halves(rest, &EXP2_F64))
}
