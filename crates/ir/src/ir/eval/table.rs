//! Functions that NVIDIA's GPUs have as instructions, in integer arithmetic: the same bits on every device.
//!
//! The unit evaluates a quadratic in the argument's lower bits, with coefficients chosen by the upper bits: the design of
//! Oberman and Siu, "A High-Performance Area-Efficient Multifunction Interpolator" (ARITH 2005). `x` is the lower bits and `s`
//! their square, without the columns of partial products below 2¹⁸. The integer `C0·2ᵃ + C1·x + C2·s + rounding` is truncated
//! to the significand.
//!
//! | function | instruction | coefficients | largest error |
//! |---|---|---|---|
//! | [`exp2`] | `ex2.approx.ftz.f32` | 64 × (26, 16, 10 bits) | 2.06 ulp |
//! | [`log2`] | `lg2.approx.ftz.f32` | 64 × (26, 16, 10 bits) | 2⁻²² absolute between ½ and 2 |
//! | [`reciprocal`] | `rcp.approx.ftz.f32` | 128 × (26, 16, 10 bits) | 1 ulp |
//!
//! The coefficients were derived from an H200's results (driver 580.159.04, nvcc 13.0, 2026-11-22): for each of the 256
//! quadratics exactly one set of three gives the bits of all 2¹⁷ or 2¹⁶ arguments. They equal those that the envytools project
//! found in the first such unit, the G80's of 2006 (`nvhw/sfu.c`); only that one rounds the argument of `exp2`, in a separate
//! instruction, and the H200's truncates it. Compared with the H200's bits, without a difference: `exp2` of all arguments from
//! ±2⁻⁴ to ±2, `log2` of all from ½ to 2, `reciprocal` of all from 1 to 2, and of each 2¹⁴ with every exponent and sign.
//! `tests/cuda.rs` compares all 2³² if it finds a GPU.
//!
//! A back end uses the instruction on GPUs of compute capability 9.0 and later. Elsewhere, including 8.0, whose bits have not been
//! compared, [`math::table`](crate::math::table) expands the computation.

mod rows;
#[cfg(test)]
mod tests;

use rows::{EXP2, LOG2, RECIPROCAL};

/// The coefficients of a quadratic; their signs are the function's.
type Row = [u32; 3];

/// The tables one behind the other.
pub const ROWS: usize = RECIPROCAL_ROWS as usize + RECIPROCAL.len();

/// The first row of [`exp2`].
pub(crate) const EXP2_ROWS: u32 = 0;

/// The first row of [`log2`].
pub(crate) const LOG2_ROWS: u32 = EXP2_ROWS + EXP2.len() as u32;

/// The first row of [`reciprocal`].
pub(crate) const RECIPROCAL_ROWS: u32 = LOG2_ROWS + LOG2.len() as u32;

/// [`UnaryOp::TableRow`](crate::ir::UnaryOp::TableRow).
pub fn row(index: u64) -> u64 {
    let index = index as usize % ROWS;
    let row = match index.checked_sub(RECIPROCAL_ROWS as usize) {
        Some(index) => RECIPROCAL[index],
        None if index < LOG2_ROWS as usize => EXP2[index],
        None => LOG2[index - LOG2_ROWS as usize],
    };
    let [c0, c1, c2] = row.map(u64::from);
    c0 << 26 | c1 << 10 | c2
}

/// The rounding summand before truncation.
pub(crate) const EXP2_ROUNDING: u32 = 0x77e2;

/// The rounding summand before truncation.
pub(crate) const LOG2_ROUNDING: u32 = 0x3345;

/// The rounding summand before truncation.
pub(crate) const RECIPROCAL_ROUNDING: u32 = 0x47e7;

/// Bits of a binary32's stored significand.
const FRACTION: u32 = 0x7f_ffff;

/// The square of a number of 17 bits divided by 2¹⁹, without the carries from below: of the products of two bits those that
/// are less than 2¹⁸ are left out. Those of the upper eight bits among themselves are all there.
#[inline(always)]
pub(crate) fn square(x: u32) -> u32 {
    let (upper, lower) = (x >> 9, x & 0x1ff);
    let mut sum = (upper * upper) >> 1;
    let mut bit = 0;
    while bit < 8 {
        sum += ((upper >> bit) & 1) * (lower >> (9 - bit));
        bit += 1;
    }
    sum
}

/// 2ˣ; 0 instead of subnormal results.
#[inline]
pub fn exp2(x: f32) -> f32 {
    let magnitude = x.abs();
    if x.is_nan() {
        return f32::NAN;
    }
    if magnitude >= 128.0 {
        return if x < 0.0 { 0.0 } else { f32::INFINITY };
    }
    // 7 bits before the point, 23 behind it.
    let fixed = (magnitude * 8_388_608.0) as u32;
    // What has a fraction loses another unit with its sign, as its complement.
    let signed = match (x < 0.0, fixed & FRACTION) {
        (false, _) => fixed,
        (true, 0) => fixed.wrapping_neg(),
        (true, _) => !fixed,
    };
    let [c0, c1, c2] = EXP2[(signed >> 17 & 0x3f) as usize].map(u64::from);
    let lower = signed & 0x1_ffff;
    let sum = (c0 << 13) + c1 * u64::from(lower) + c2 * u64::from(square(lower));
    let significand = ((sum + u64::from(EXP2_ROUNDING)) >> 15) as i32;
    // The significand's first bit is one more in the exponent.
    let bits = (((signed as i32 >> 23) + 126) << 23) + significand;
    if bits < f32::MIN_POSITIVE.to_bits() as i32 {
        return 0.0;
    }
    f32::from_bits(bits as u32)
}

/// log₂ x: -∞ for zeros and subnormals, NaN below.
#[inline]
pub fn log2(x: f32) -> f32 {
    let bits = x.to_bits();
    let (exponent, fraction) = (bits >> 23 & 0xff, bits & FRACTION);
    if exponent == 0 {
        return f32::NEG_INFINITY;
    }
    if bits >= f32::INFINITY.to_bits() {
        return if x == f32::INFINITY { x } else { f32::NAN };
    }
    let whole = (i64::from(exponent) - 127) << 36;
    let part = if bits == 1.0f32.to_bits() {
        0
    } else {
        let [c0, c1, c2] = LOG2[(fraction >> 17) as usize].map(i64::from);
        let lower = fraction & 0x1_ffff;
        let sum = (c0 << 12) + c1 * i64::from(lower) - 2 * c2 * i64::from(square(lower));
        (sum + i64::from(LOG2_ROUNDING)) >> 2
    };
    let fixed = whole + part;
    // The complement of negative values, truncated to 24 bits.
    let magnitude = (fixed ^ (fixed >> 63)) as u64;
    let first = magnitude.leading_zeros();
    if first == 64 {
        return 0.0;
    }
    let significand = ((magnitude << first) >> 40) as u32;
    let exponent = 127 + 27 - 1 - first;
    let sign = ((fixed >> 63) as u32) << 31;
    f32::from_bits(sign | ((exponent << 23) + significand))
}

/// 1/x: infinite for zeros and subnormals, 0 instead of subnormal results, all with the sign.
#[inline]
pub fn reciprocal(x: f32) -> f32 {
    let bits = x.to_bits();
    let (exponent, fraction) = (bits >> 23 & 0xff, bits & FRACTION);
    if x.is_nan() {
        return f32::NAN;
    }
    if exponent == 0 {
        return f32::INFINITY.copysign(x);
    }
    let [c0, c1, c2] = RECIPROCAL[(fraction >> 16) as usize].map(u64::from);
    let lower = fraction & 0xffff;
    let sum = (c0 << 13) - c1 * u64::from(lower) + c2 * u64::from(square(lower << 1));
    let significand = ((sum + u64::from(RECIPROCAL_ROUNDING)) >> 15) as i32;
    let magnitude = ((252 - exponent as i32) << 23) + significand;
    if magnitude < f32::MIN_POSITIVE.to_bits() as i32 {
        return 0.0f32.copysign(x);
    }
    f32::from_bits(magnitude as u32).copysign(x)
}
