//! `sinh`, `cosh` and `tanh`.
//!
//! With `|x| = k·ln 2 + r`, `e^±|x| = 2^±k·(cosh r ± sinh r)`: two short polynomials in `r²` give both, and
//! `sinh |x| = ½(2ᵏ - 2⁻ᵏ)·cosh r + ½(2ᵏ + 2⁻ᵏ)·sinh r` needs no division; for `k = 0` it is `sinh r`, so small
//! arguments lose nothing. `tanh |x| = E/(E + 2)` with `E = e²ˣ - 1`, accurate likewise.
//!
//! Single precision takes `½eˣ ± ½/eˣ` and `1 - 2/(e²ˣ + 1)`, with a polynomial for small arguments.
//!
//! Polynomials by Sollya's `fpminimax(cosh(x), …, 1, relative)` and `sinh(x)` with `x` on `[0, ½ ln 2]`.

use super::arithmetic::{Arithmetic, Number};
use super::exponential;
use super::polynomial::polynomial;
use super::scale::{Exponent, clamp_f64};

/// `cosh 89.5` overflows, and a quarter of `e^89.5` does not.
const MOST_F32: f32 = 89.5;

/// `(cosh r - 1)/r²` in powers of `r²`; relative error of the cosine 2⁻⁵⁸.
const COSH: [f64; 5] = [
    0.500_000_000_000_001_2,
    0.041_666_666_666_519_254,
    0.001_388_888_894_611_811_3,
    2.480_149_078_558_797_3e-5,
    2.763_100_443_506_813_5e-7,
];

/// `(sinh r/r - 1)/r²` in powers of `r²`; relative error of the sine 2⁻⁶¹.
const SINH: [f64; 5] = [
    0.166_666_666_666_666_77,
    0.008_333_333_333_321_456,
    0.000_198_412_698_865_140_97,
    2.755_724_385_584_514e-6,
    2.510_915_105_098_615_7e-8,
];

/// `(sinh x/x - 1)/x²` in powers of `x²` for `|x| < 1`; relative error of the sine 2⁻²⁵·³.
const SINH_F32: [f32; 3] = [0.166_667_16, 0.008_330_271, 0.000_203_733_4];

/// `(tanh x/x - 1)/x²` in powers of `x²` for `|x| < 0.57`; relative error of the tangent 2⁻²⁴. They are
/// improved by trying neighbours, for the least error of the whole function.
const TANH_F32: [f32; 4] = [-0.333_328_3, 0.133_180_35, -0.052_499_432, 0.016_110_925];

/// All that `sinh` and `cosh` share in double precision.
struct Halves<A: Arithmetic> {
    /// `½(2ᵏ + 2⁻ᵏ)/f`.
    sum: Number<A, f64>,
    /// `½(2ᵏ - 2⁻ᵏ)/f`.
    difference: Number<A, f64>,
    /// `cosh r - 1`.
    cosh: Number<A, f64>,
    /// `sinh r/r - 1`.
    slope: Number<A, f64>,
    /// `r`.
    r: Number<A, f64>,
    /// A power of two, so that the result may be near overflow.
    factor: Number<A, f64>,
}

impl<A: Arithmetic> Halves<A> {
    /// `sinh |x|` with the sign of `x`.
    #[inline(always)]
    fn sinh(self, x: Number<A, f64>) -> Number<A, f64> {
        let small = self.sum.mul_add(self.slope * self.r, self.difference * self.cosh);
        (self.sum.mul_add(self.r, small) + self.difference) * self.factor.copy_sign(x)
    }

    /// `cosh x`.
    #[inline(always)]
    fn cosh(self) -> Number<A, f64> {
        let odd = self.difference * self.slope.mul_add(self.r, self.r);
        (self.sum.mul_add(self.cosh, odd) + self.sum) * self.factor
    }
}

/// `sinh x` in single precision.
pub(crate) fn sinh_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let quarter = exponential::quarter_exp_f32(x.abs().minimum(MOST_F32));
    let half = quarter.table_reciprocal().mul_add(-0.0625, quarter);
    // The sign by a multiplication: a NaN is then the canonical one.
    let large = half * x.same(2.0).copy_sign(x);
    x.abs().less(1.0).select(odd(x, &SINH_F32), large)
}

/// `cosh x` in single precision.
pub(crate) fn cosh_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    let quarter = exponential::quarter_exp_f32(x.abs().minimum(MOST_F32));
    quarter.mul_add(2.0, quarter.table_reciprocal() * 0.125)
}

/// `sinh x` in double precision.
pub(crate) fn sinh_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    halves_f64(x).sinh(x)
}

/// `cosh x` in double precision.
pub(crate) fn cosh_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    halves_f64(x).cosh()
}

/// `tanh x` in single precision.
pub(crate) fn tanh_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    // 1 - 2/(e^2|x| + 1), also where the power is infinite.
    let power = (x.abs() * (2.0 * std::f32::consts::LOG2_E)).table_exp2();
    let large = (power + 1.0).table_reciprocal().mul_add(-2.0, 1.0);
    let large = large * x.same(1.0).copy_sign(x);
    x.abs().less(0.57).select(odd(x, &TANH_F32), large)
}

/// `tanh x` in double precision.
pub(crate) fn tanh_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    // tanh 20 rounds to 1.
    let twice = clamp_f64(x.abs(), 20.0) * 2.0;
    let (exponent, m) = exponential::less_one_f64(twice);
    let scale = exponent.power(0);
    let e = scale.mul_add(m, scale - 1.0);
    e.copy_sign(x) / (e + 2.0)
}

/// `x + x·(x²·p(x²))`.
#[inline(always)]
fn odd<A: Arithmetic>(x: Number<A, f32>, coefficients: &[f32]) -> Number<A, f32> {
    let square = x * x;
    // Adding 0 keeps the sign of a zero.
    square
        .mul_add(polynomial(square, coefficients), 0.0)
        .mul_add(x, x)
}

#[inline(always)]
fn halves_f64<A: Arithmetic>(x: Number<A, f64>) -> Halves<A> {
    // cosh 720 overflows.
    let (exponent, r) = exponential::reduce_f64(clamp_f64(x.abs(), 720.0));
    let square = r * r;
    let [above, below, factor] = powers_f64(exponent);
    Halves {
        sum: above + below,
        difference: above - below,
        cosh: square * polynomial(square, &COSH),
        slope: square * polynomial(square, &SINH),
        r,
        factor,
    }
}

/// `2ᵏ⁻¹⁻ʲ`, `2⁻ᵏ⁻¹⁻ʲ` or 0 if that is not normal, and `2ʲ`, where `j` is about `k/2`.
#[inline(always)]
fn powers_f64<A: Arithmetic>(exponent: Exponent<A, f64>) -> [Number<A, f64>; 3] {
    let k = exponent.k();
    let j = k.shift_right_signed(1);
    let power = |field: Number<A, u32>| field.shift_left(20).as_high();
    let below = (k.same(1022) - (k + j)).max_signed(0);
    [power(k - j + 1022), power(below), power(j + 1023)]
}
