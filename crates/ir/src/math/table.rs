//! [`eval::table`](crate::ir::eval::table) as an expansion, for devices without these instructions.
//!
//! Each takes a function of one operation, `y = table.exp2 x`, to operations on the bits of `x` and a look-up
//! ([`UnaryOp::TableRow`](crate::ir::UnaryOp::TableRow)), 60 to 80 of them.

use super::arithmetic::{Arithmetic, Number};
use crate::ir::eval::table::{self, EXP2_ROUNDING, LOG2_ROUNDING, RECIPROCAL_ROUNDING};

/// Bits of a binary32's stored significand.
const FRACTION: u32 = 0x7f_ffff;

/// 2ˣ.
pub fn exp2<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let bits = x.bits();
    let magnitude = bits & 0x7fff_ffff;
    let exponent = magnitude.shift_right(23);
    let significand = (bits & FRACTION) | (1 << 23);
    // 23 bits behind the point. A count below 0 is a large one, which leaves nothing.
    let up = significand.shift_left(exponent - 127);
    let fixed = up | significand.shift_right(bits.same(127) - exponent);
    let whole = (fixed & FRACTION).equal(0);
    let negated = whole.select(fixed.same(0) - fixed, !fixed);
    let negative = bits.less_signed(0);
    let signed = negative.select(negated, fixed);
    let lower = signed & 0x1_ffff;
    let [c0, c1, c2] = row(signed.shift_right(17) & 0x3f, table::EXP2_ROWS);
    let sum = c0.shift_left(13) + c1 * lower.widen() + c2 * square(lower).widen();
    let significand = (sum + u64::from(EXP2_ROUNDING)).shift_right(15).truncate();
    let result = (signed.shift_right_signed(23) + 126).shift_left(23) + significand;
    let result = result.less_signed(1 << 23).select(result.same(0), result);
    let limit = negative.select(bits.same(0), f32::INFINITY.to_bits());
    let result = magnitude.less(134 << 23).select(result, limit).float();
    x.is_nan().select(x.same(f32::NAN), result)
}

/// log₂ x.
pub fn log2<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let bits = x.bits();
    let exponent = bits.shift_right(23) & 0xff;
    let fraction = bits & FRACTION;
    let lower = fraction & 0x1_ffff;
    let [c0, c1, c2] = row(fraction.shift_right(17), table::LOG2_ROWS);
    let sum = c0.shift_left(12) + c1 * lower.widen() - (c2 * square(lower).widen()).shift_left(1);
    let part = (sum + u64::from(LOG2_ROUNDING)).shift_right(2);
    let part = bits.equal(1.0f32.to_bits()).select(part.same(0), part);
    let fixed = (exponent.widen() - 127).shift_left(36) + part;
    let sign = fixed.shift_right_signed(63);
    let magnitude = fixed ^ sign;
    let first = magnitude.leading_zeros();
    let significand = magnitude.shift_left(first).shift_right(40).truncate();
    let word = (bits.same(153) - first.truncate()).shift_left(23) + significand;
    let word = word | (sign.truncate() & 0x8000_0000);
    let word = magnitude.equal(0).select(bits.same(0), word);
    let tiny = exponent.equal(0);
    let word = tiny.select(bits.same(f32::NEG_INFINITY.to_bits()), word);
    // Infinities and NaN, negative numbers. An infinity is its own logarithm.
    let ordinary = bits.less(f32::INFINITY.to_bits()) | tiny;
    let rest = x.equal(f32::INFINITY).select(x, f32::NAN);
    ordinary.select(word.float(), rest)
}

/// 1/x.
pub fn reciprocal<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let bits = x.bits();
    let exponent = bits.shift_right(23) & 0xff;
    let fraction = bits & FRACTION;
    let lower = fraction & 0xffff;
    let [c0, c1, c2] = row(fraction.shift_right(16), table::RECIPROCAL_ROWS);
    let square = square(lower.shift_left(1)).widen();
    let sum = c0.shift_left(13) - c1 * lower.widen() + c2 * square;
    let significand = (sum + u64::from(RECIPROCAL_ROUNDING)).shift_right(15).truncate();
    let result = (bits.same(252) - exponent).shift_left(23) + significand;
    let result = result.less_signed(1 << 23).select(result.same(0), result);
    let result = exponent
        .equal(0)
        .select(bits.same(f32::INFINITY.to_bits()), result);
    let result = (result | (bits & 0x8000_0000)).float();
    x.is_nan().select(x.same(f32::NAN), result)
}

/// The coefficients of a row, counted from a function's first.
#[inline(always)]
fn row<A: Arithmetic>(index: Number<A, u32>, first: u32) -> [Number<A, u64>; 3] {
    let row = (index + first).widen().table_row();
    [row.shift_right(26), row.shift_right(10) & 0xffff, row & 0x3ff]
}

/// [`table::square`].
#[inline(always)]
fn square<A: Arithmetic>(x: Number<A, u32>) -> Number<A, u32> {
    let (upper, lower) = (x.shift_right(9), x & 0x1ff);
    (0..8).fold((upper * upper).shift_right(1), |sum, bit| {
        sum + (upper.shift_right(bit) & 1) * lower.shift_right(9 - bit)
    })
}
