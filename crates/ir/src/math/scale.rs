//! Splitting a power into integer and fraction, and applying the integer as an exponent.
//!
//! The scale `2ᵏ` goes on in two halves, `2ʲ` and `2ᵏ⁻ʲ`: subnormal results are then rounded once more
//! only, and overflow is an infinity, all without a branch. In single precision `k` is even, and the halves are one.

use super::arithmetic::{Arithmetic, Number};

/// An integer, as a float and in the lowest bits of a word: for `f32` with an exponent's bias added, which an immediate
/// operand holds; for `f64` without, because a double's lower half would be one more.
#[derive(Clone, Copy)]
pub(crate) struct Exponent<A: Arithmetic, T: super::Float> {
    /// The integer `k`.
    pub integer: Number<A, T>,
    word: Number<A, u32>,
}

/// The integer nearest to `x × factor`, for `|x × factor|` up to 2²¹; its [`power`](Exponent::power) will be `2ᵏ⁺ⁿ`.
///
/// Adding 1.5·2²³ rounds to an integer and leaves it in the lowest bits; `n` and the bias are added along.
#[inline(always)]
pub(crate) fn split_f32<A: Arithmetic>(x: Number<A, f32>, factor: f32, n: i16) -> Exponent<A, f32> {
    let magic = 12_582_912.0 + 127.0 + f32::from(n);
    let shifted = x.mul_add(factor, magic);
    Exponent {
        integer: shifted - magic,
        word: shifted.bits(),
    }
}

/// The integer nearest to `x × factor`, for `|x × factor|` up to 2³⁰.
#[inline(always)]
pub(crate) fn split_f64<A: Arithmetic>(x: Number<A, f64>, factor: f64) -> Exponent<A, f64> {
    let magic = 6_755_399_441_055_744.0;
    let shifted = if factor == 1.0 {
        x + magic
    } else {
        x.mul_add(factor, magic)
    };
    Exponent {
        integer: shifted - magic,
        word: shifted.low(),
    }
}

impl<A: Arithmetic> Exponent<A, f32> {
    /// `2ᵏ⁺ⁿ`, where that is normal or infinite.
    #[inline(always)]
    pub(crate) fn power(self) -> Number<A, f32> {
        self.word.shift_left(23).float()
    }
}

impl<A: Arithmetic> Exponent<A, f64> {
    /// `k` as an integer.
    #[inline(always)]
    pub(crate) fn k(self) -> Number<A, u32> {
        self.word
    }

    /// With `2^±1500` and no rest instead of `2ᵏ` and `rest` where `|x|` is above `limit`; a NaN stays.
    ///
    /// Clamping the result for `x`, and not `x`, takes the comparison off the critical path. The remainder's lower half keeps
    /// its bits, which saves a select: its contribution is below 2⁻¹⁰²².
    #[inline(always)]
    pub(crate) fn limited(
        self,
        rest: Number<A, f64>,
        x: Number<A, f64>,
        limit: f64,
    ) -> (Self, Number<A, f64>) {
        let beyond = x.abs().greater(limit);
        let far = x.high().shift_right_signed(31) ^ 1500;
        let limited = Exponent {
            integer: self.integer,
            word: beyond.select(far, self.word),
        };
        let high = beyond.select(rest.high().same(0), rest.high());
        (limited, high.with_low(rest.low()))
    }

    /// `(1 + r·q)·2ᵏ` for `|k|` up to 2040 and a sum from ¼ to 4.
    #[inline(always)]
    pub(crate) fn scale(self, r: Number<A, f64>, q: Number<A, f64>) -> Number<A, f64> {
        // The first half goes on by an integer addition, which costs no multiplication; the second one rounds.
        let j = self.word.shift_right_signed(1);
        let sum = q.mul_add(r, 1.0);
        let half = (sum.high() + j.shift_left(20)).with_low(sum.low());
        half * (((self.word - j).shift_left(20) + 0x3ff0_0000).as_high())
    }

    /// `x·2ᵏ`, where `x` and that are normal.
    #[inline(always)]
    pub(crate) fn scaled(self, x: Number<A, f64>) -> Number<A, f64> {
        (x.high() + self.word.shift_left(20)).with_low(x.low())
    }

    /// `2ᵏ⁺ⁿ`, for results that are normal.
    #[inline(always)]
    pub(crate) fn power(self, n: i32) -> Number<A, f64> {
        (self.word.shift_left(20) + (((n + 1023) as u32) << 20)).as_high()
    }
}

/// `x` limited to about `±limit`; a NaN stays. The lower half keeps its bits, which saves a select:
/// `limit` is exceeded by less than 2⁻²⁰ of itself.
#[inline(always)]
pub(crate) fn clamp_f64<A: Arithmetic>(x: Number<A, f64>, limit: f64) -> Number<A, f64> {
    let high = x.high();
    let clamped = (high & 0x8000_0000) | (limit.to_bits() >> 32) as u32;
    x.abs().greater(limit).select(clamped, high).with_low(x.low())
}
