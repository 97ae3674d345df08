//! `rem`: the remainder of the truncated division of `x` by `y`, with the sign of `x`; exact.
//!
//! Each turn of a loop takes away a multiple of `y·2ⁿ`, a quotient that a float holds exactly, so that the
//! difference is exact too. One turn does for quotients below 2²² or 2⁵¹, and none for those below 1.

use super::arithmetic::{Arithmetic, Number};

macro_rules! remainder {
    ($name:ident, $float:ident, $bits:ident, $mantissa_bits:literal, $exponents:literal, $turn:literal) => {
        /// `x` modulo `y`: NaN for an infinite `x` or a zero `y`; `x` for an infinite `y`.
        pub fn $name<A: Arithmetic>(x: Number<A, $float>, y: Number<A, $float>) -> Number<A, $float> {
            let field = |number: Number<A, $float>| number.bits().shift_right($mantissa_bits) & $exponents;
            let divisor = y.abs();
            // A subnormal divisor is made normal, and its exponent counts on below 1.
            let subnormal = divisor.less($float::MIN_POSITIVE);
            let power = ((1 as $bits) << ($mantissa_bits + 2)) as $float;
            let normal = subnormal.select(divisor * power, divisor);
            let shift = subnormal.select(normal.bits().same($mantissa_bits + 2), 0);
            let exponent = field(normal) - shift;
            let fraction = normal.bits() & (((1 as $bits) << $mantissa_bits) - 1);

            // A zero would go for ever; as NaN it ends the loop at once, and the result with it.
            let nan = x.same($float::NAN);
            let limit = divisor.equal(0.0).select(nan, divisor);
            let rest = x.abs().repeat_while(
                |rest| limit.less_equal(rest),
                |rest| {
                    // y·2ⁿ, normal, about 2²² or 2⁵¹ times below the rest; or else y itself.
                    let target = (field(rest) - $turn).max_signed(1);
                    let multiple = (fraction | target.shift_left($mantissa_bits)).float();
                    let larger = exponent.less_signed(target) & multiple.less_equal(rest);
                    let multiple = larger.select(multiple, divisor);
                    let quotient = (rest / multiple).trunc();
                    // The quotient may have been rounded up.
                    let rest = quotient.mul_add(-multiple, rest);
                    rest.less(0.0).select(rest + multiple, rest)
                },
            );
            let signed = rest.copy_sign(x);
            (rest.is_nan() | limit.is_nan()).select(nan, signed)
        }
    };
}

remainder!(rem_f32, f32, u32, 23, 0xff, 22);
remainder!(rem_f64, f64, u64, 52, 0x7ff, 51);
