//! Range reduction of large trigonometric arguments, with as many digits of π as necessary.
//!
//! `x = m·2ᵉ` with an integer `m`. Only the value of `x·2/π` modulo 4 matters. Digits of 2/π that contribute multiples of 4 are
//! omitted, and so are those far below the result's precision; the window between is multiplied by `m` exactly (Payne and
//! Hanek, 1983). The bits of `e` select it from constants. This is long, but runs only for large arguments.

use super::arithmetic::{Arithmetic, Integer, Number};

/// 64 zeros, then 2/π after the point.
pub(super) const TWO_OVER_PI: [u64; 20] = [
    0x0000_0000_0000_0000,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// 32 zeros, then 2/π after the point.
const TWO_OVER_PI_F32: [u32; 8] = [
    0x0000_0000,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
];

/// π/2 in two parts.
const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];

/// π/2 in two parts.
const HALF_PI_F32: [f32; 2] = [std::f32::consts::FRAC_PI_2, -4.371_139e-8];

/// Words `first`, `first + 1`, … of a table, `N` of them; `first` is below a power of two, `count`.
fn window<A: Arithmetic, T: Integer, const N: usize>(
    table: &[T],
    first: Number<A, u32>,
    count: usize,
    of: impl Fn(T) -> Number<A, T>,
) -> [Number<A, T>; N] {
    let mut words: Vec<Number<A, T>> = table.iter().map(|&word| of(word)).collect();
    let mut step = count / 2;
    while step > 0 {
        // Afterwards `first` counts only modulo `step`.
        let far = (first & step as u32).not_equal(0);
        words = (0..words.len().min(step + N - 1))
            .map(|i| {
                words
                    .get(i + step)
                    .map_or(words[i], |&other| far.select(other, words[i]))
            })
            .collect();
        step /= 2;
    }
    std::array::from_fn(|i| words[i])
}

/// `N` words of a sequence of bits, `shift` bits after the start of `words`.
fn shifted<A: Arithmetic, T: Integer, const N: usize>(
    words: &[Number<A, T>],
    shift: Number<A, T>,
    rest: Number<A, T>,
) -> [Number<A, T>; N] {
    std::array::from_fn(|i| words[i].shift_left(shift) | words[i + 1].shift_right(rest))
}

/// As in `trigonometric`, for `x` of at least 2⁷, infinite or NaN: the quadrant in the
/// lowest bits, and the bits of the rest.
pub(super) fn reduce_f32<A: Arithmetic>(x: Number<A, f32>) -> [Number<A, u32>; 2] {
    let bits = x.bits();
    let m = ((bits & 0x007f_ffff) | 0x0080_0000).widen();
    // e = field - 150; the window starts at bit e - 2 of 2/π, e + 30 of the table.
    let start = (bits.shift_right(23) & 0xff) - 120;
    let words = window::<A, u32, 4>(&TWO_OVER_PI_F32, start.shift_right(5), 8, |word| bits.same(word));
    let shift = start & 31;
    let [high, middle, low] = shifted::<A, u32, 3>(&words, shift, shift.same(32) - shift);

    // m × window modulo 2⁹⁶, its upper 64 bits; in units of 2⁻⁶² quadrants.
    let product = (m * high.widen()).shift_left(32) + m * middle.widen() + (m * low.widen()).shift_right(32);
    let quadrant = (product + (1 << 61)).shift_right(62).truncate();
    let fraction = product.shift_left(2);
    let negative = fraction.shift_right_signed(63);
    let magnitude = fraction ^ negative;
    let zeros = magnitude.leading_zeros();
    let normal = magnitude.shift_left(zeros);

    // 48 bits of it, times π/2, rounded once.
    let upper = normal.shift_right(40).truncate().signed_to_float::<f32>();
    let lower = (normal.shift_right(16).truncate() & 0x00ff_ffff).signed_to_float::<f32>() * 5.960_464_5e-8;
    let product = upper.mul_add(
        HALF_PI_F32[0],
        upper.mul_add(HALF_PI_F32[1], lower * HALF_PI_F32[0]),
    );
    // Times 2⁻²⁴⁻ᶻ.
    let scale = (bits.same(127 - 24) - zeros.truncate()).shift_left(23).float();

    let sign = negative.truncate() ^ bits.shift_right_signed(31);
    let r = ((product * scale).bits() ^ (sign & 0x8000_0000)).float();
    // ∞ has no sine, nor has NaN.
    let r = x.abs().less(f32::INFINITY).select(r, x.same(f32::NAN));
    let signed_quadrant = bits.less_signed(0).select(quadrant.same(0) - quadrant, quadrant);
    [signed_quadrant, r.bits()]
}

/// As in `trigonometric`, for `x` of at least 2³⁰, infinite or NaN: the quadrant in the
/// lowest bits, and the bits of the rest.
pub(super) fn reduce_f64<A: Arithmetic>(x: Number<A, f64>) -> [Number<A, u64>; 2] {
    let bits = x.bits();
    let m = (bits & 0x000f_ffff_ffff_ffff) | 0x0010_0000_0000_0000;
    // e = field - 1075; the window starts at bit e - 2 of 2/π, e + 62 of the table.
    let start = (x.high().shift_right(20) & 0x7ff) - 1013;
    let words = window::<A, u64, 4>(&TWO_OVER_PI, start.shift_right(6), 32, |word| bits.same(word));
    let shift = (start & 63).widen();
    let [high, middle, low] = shifted::<A, u64, 3>(&words, shift, shift.same(64) - shift);

    // m × window modulo 2¹⁹², its upper 128 bits; in units of 2⁻¹²⁶ quadrants.
    let carry_from = m.multiply_high(low);
    let lower = m * middle + carry_from;
    let carry = lower.less(carry_from).select(lower.same(1), 0);
    let upper = m * high + m.multiply_high(middle) + carry;
    let quadrant = (upper + (1 << 61)).shift_right(62);
    let fraction = upper.shift_left(2) | lower.shift_right(62);
    let negative = fraction.shift_right_signed(63);
    let magnitude = fraction ^ negative;
    let below = lower.shift_left(2) ^ negative;
    let zeros = magnitude.leading_zeros();
    let normal = magnitude.shift_left(zeros) | below.shift_right(zeros.same(64) - zeros);

    // 64 bits of it, times π/2, rounded once.
    let upper = normal.shift_right(11).signed_to_float::<f64>();
    let lower = (normal & 0x7ff).signed_to_float::<f64>() * 4.882_812_5e-4;
    let product = upper.mul_add(HALF_PI[0], upper.mul_add(HALF_PI[1], lower * HALF_PI[0]));
    // Times 2⁻⁵³⁻ᶻ.
    let scale = (x.high().same(1023 - 53) - zeros.truncate())
        .shift_left(20)
        .as_high();

    let sign = negative ^ bits.shift_right_signed(63);
    let r = ((product * scale).bits() ^ (sign & (1 << 63))).float();
    let r = x.abs().less(f64::INFINITY).select(r, x.same(f64::NAN));
    let signed_quadrant = bits.less_signed(0).select(quadrant.same(0) - quadrant, quadrant);
    [signed_quadrant, r.bits()]
}
