//! `cbrt` and `hypot`.
//!
//! `cbrt`: `r` near `x^-⅓` comes from the bits of `x` by a division by 3 and a step or two of Halley's kind; then
//! `x^⅓ = x·r²·(1 - e)^-⅔` with `e = 1 - x·r³`, where rounding `x·r²` costs only a third of itself. No division.
//! Double precision takes `m` in `[1, 8)` with `x = 2³ᵏ·m`, and `r` needs only single precision.
//!
//! `hypot`: both lengths are scaled by the exponent of the longer.

use super::arithmetic::{Arithmetic, Number};
use super::polynomial::polynomial;

/// 2⁻¹⁰⁰: stands for 0 under a root; times the least scale it is 0 again.
const LEAST_SQUARE: f32 = f32::from_bits(27 << 23);

/// Where `x^-⅓` starts in single precision, and `(1 - e)^-⅓ - 1` by powers of `e` from -0.1 to 0.1, both improved by trying
/// neighbours, for the least error of the root.
const START_F32: u32 = 0x54a2_1c86;
const STEP_F32: [f32; 3] = [0.333_333_4, 0.222_179_32, 0.172_839_9];

/// `cbrt x` in single precision.
pub fn cbrt_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let tiny = x.abs().less(f32::MIN_POSITIVE);
    let normal = tiny.select(x * 16_777_216.0, x);
    let magnitude = normal.abs();
    // The exponent's field divided by 3 divides the logarithm by 3, nearly.
    let first = (x.bits().same(START_F32) - magnitude.bits().multiply_high(0x5555_5556)).float();
    let e = (-(first * first)).mul_add(magnitude * first, 1.0);
    let r = (e * polynomial(e, &STEP_F32)).mul_add(first, first);
    let root = normal * (r * r);
    let e = (-root.abs()).mul_add(r, 1.0);
    // The next term, 5e²/9, is too small to count.
    let root = (root * e).mul_add(2.0 / 3.0, root);
    let root = tiny.select(root * 0.003_906_25, root);
    // Infinities and NaN are their own roots; a zero is one already.
    x.abs().less(f32::INFINITY).select(root, x + x)
}

/// `cbrt x` in double precision.
pub fn cbrt_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
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
pub fn hypot_f32<A: Arithmetic>(x: Number<A, f32>, y: Number<A, f32>) -> Number<A, f32> {
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
pub fn hypot_f64<A: Arithmetic>(x: Number<A, f64>, y: Number<A, f64>) -> Number<A, f64> {
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
