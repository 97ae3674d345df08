//! `cbrt` and `hypot`.
//!
//! `cbrt`: in single precision `x^-⅔` comes from a logarithm and a power of two, and `x·x^-⅔` is the root up to a Newton step.
//! In double precision `r` near `x^-⅓` comes from the bits of `x` by a division by 3 and one or two Halley steps; then
//! `x^⅓ = x·r²·(1 - e)^-⅔` with `e = 1 - x·r³`, where rounding `x·r²` costs only a third of itself. No division. Double
//! precision takes `m` in `[1, 8)` with `x = 2³ᵏ·m`, and `r` needs only single precision.
//!
//! `hypot`: both lengths are scaled by the exponent of the longer.

use super::arithmetic::{Arithmetic, Number};

/// 2⁻¹⁰⁰: stands for 0 under a root; times the least scale it is 0 again.
const LEAST_SQUARE: f32 = f32::from_bits(27 << 23);

/// `cbrt x` in single precision.
pub(crate) fn cbrt_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let magnitude = x.abs();
    let tiny = magnitude.less(f32::MIN_POSITIVE);
    let logarithm = tiny.select(magnitude * 16_777_216.0, magnitude).table_log2();
    let logarithm = tiny.select(logarithm - 24.0, logarithm);
    // x^-⅔, and with it the root and, by a step of Newton's, what is missing from it.
    let power = (logarithm * (-2.0 / 3.0)).table_exp2();
    let root = x * power;
    let e = (-root).mul_add(power * root, 1.0);
    let root = (e * (1.0 / 3.0)).mul_add(root, root);
    // Zeros and infinities are their own roots.
    let twice = x + x;
    twice.equal(x).select(twice, root)
}

/// `cbrt x` in double precision.
pub(crate) fn cbrt_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    let tiny = (x.high() & 0x7fff_ffff).less(0x0010_0000);
    let scaled = x * 18_014_398_509_481_984.0;
    let high = tiny.select(scaled.high(), x.high()) & 0x7fff_ffff;
    let low = tiny.select(scaled.low(), x.low());
    // 1023 is a multiple of 3.
    let third = high.shift_right(20).multiply_high(0x5555_5556);
    let m_high = high - (third * 3 - 1023).shift_left(20);
    let m = m_high.with_low(low);
    // The upper bits of m as a float, and its result as a double again.
    let r = reciprocal_cube_root((m_high.shift_left(3) - (896 << 23)).float()).bits();
    let r = (r.shift_right(3) + (896 << 20)).with_low(r.shift_left(29));
    let root = m * (r * r);
    let e = (-root).mul_add(r, 1.0);
    let root = root.mul_add(e * e.mul_add(5.0 / 9.0, 2.0 / 3.0), root);
    let k = third - tiny.select(high.same(341 + 18), 341);
    let signed = (root.high() + k.shift_left(20)) | (x.high() & 0x8000_0000);
    let infinite_or_nan = high.same(0x7fef_ffff).less(high);
    let ordinary = x.equal(0.0) | infinite_or_nan;
    ordinary.select(x + x, signed.with_low(root.low()))
}

/// `m^-⅓` for `m` in `[1, 8)`, to about 2⁻²².
#[inline(always)]
fn reciprocal_cube_root<A: Arithmetic>(m: Number<A, f32>) -> Number<A, f32> {
    let first = (m.bits().same(0x54a1_f000) - m.bits().multiply_high(0x5555_5556)).float();
    // r·(1 + e/3 + 2e²/9), e = 1 - m·r³.
    let improve = |r: Number<A, f32>| {
        let e = (-(m * r)).mul_add(r * r, 1.0);
        r.mul_add(e * e.mul_add(2.0 / 9.0, 1.0 / 3.0), r)
    };
    improve(improve(first))
}

/// The length of `(x, y)`, in single precision: ∞ if either is infinite, else NaN if either is.
pub(crate) fn hypot_f32<A: Arithmetic>(x: Number<A, f32>, y: Number<A, f32>) -> Number<A, f32> {
    let (a, b) = (x.abs(), y.abs());
    let order = a.less(b);
    let (long, short) = (order.select(b, a), order.select(a, b));
    // A power of two near the longer, and its reciprocal, both normal.
    let field = (long.bits() & 0x7f80_0000).max(1 << 23).min(253 << 23);
    let (down, up) = ((field.same(254 << 23) - field).float(), field.float());
    let (long, short) = (long * down, short * down);
    let length = long
        .mul_add(long, short * short)
        .maximum(LEAST_SQUARE)
        .normal_sqrt()
        * up;
    let infinite = a.equal(f32::INFINITY) | b.equal(f32::INFINITY);
    infinite.select(x.same(f32::INFINITY), length)
}

/// The length of `(x, y)`, in double precision: ∞ if either is infinite, else NaN if either is.
pub(crate) fn hypot_f64<A: Arithmetic>(x: Number<A, f64>, y: Number<A, f64>) -> Number<A, f64> {
    let (a, b) = (x.abs(), y.abs());
    let order = a.less(b);
    let (long, short) = (order.select(b, a), order.select(a, b));
    let field = (long.high() & 0x7ff0_0000).max(1 << 20).min(2045 << 20);
    let (down, up) = ((field.same(2046 << 20) - field).as_high(), field.as_high());
    let (long, short) = (long * down, short * down);
    let length = long.mul_add(long, short * short).sqrt() * up;
    let infinite = a.equal(f64::INFINITY) | b.equal(f64::INFINITY);
    infinite.select(x.same(f64::INFINITY), length)
}
