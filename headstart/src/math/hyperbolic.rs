//! `sinh`, `cosh` and `tanh`.
//!
//! With `|x| = k·ln 2 + r`, `e^±|x| = 2^±k·(cosh r ± sinh r)`: two short polynomials in `r²` give both, and
//! `sinh |x| = ½(2ᵏ - 2⁻ᵏ)·cosh r + ½(2ᵏ + 2⁻ᵏ)·sinh r` needs no division; for `k = 0` it is `sinh r`, so small
//! arguments lose nothing. `tanh |x| = E/(E + 2)` with `E = e²ˣ - 1`, accurate likewise.
//!
//! Polynomials by Sollya's `fpminimax(cosh(x), …, 1, relative)` and `sinh(x)` with `x` on `[0, ½ ln 2]`.

use super::arithmetic::{Arithmetic, Number};
use super::exponential;
use super::polynomial::polynomial;
use super::scale::{Exponent, clamp_f32, clamp_f64};

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

/// As [`COSH`]; relative error of the cosine 2⁻³³.
const COSH_F32: [f32; 3] = [0.5, 0.041_666_456, 0.001_393_576_3];

/// As [`SINH`]; relative error of the sine 2⁻²⁶.
const SINH_F32: [f32; 2] = [0.166_665_43, 0.008_366_54];

/// All that `sinh` and `cosh` share.
struct Halves<A: Arithmetic, T: super::Float> {
    /// `½(2ᵏ + 2⁻ᵏ)/f`.
    sum: Number<A, T>,
    /// `½(2ᵏ - 2⁻ᵏ)/f`.
    difference: Number<A, T>,
    /// `cosh r - 1`.
    cosh: Number<A, T>,
    /// `sinh r/r - 1`.
    slope: Number<A, T>,
    /// `r`.
    r: Number<A, T>,
    /// A power of two, so that the result may be near overflow.
    factor: Number<A, T>,
}

impl<A: Arithmetic, T: super::Float> Halves<A, T> {
    /// `sinh |x|` with the sign of `x`.
    #[inline(always)]
    fn sinh(self, x: Number<A, T>) -> Number<A, T> {
        let small = self.sum.mul_add(self.slope * self.r, self.difference * self.cosh);
        (self.sum.mul_add(self.r, small) + self.difference) * self.factor.copy_sign(x)
    }

    /// `cosh x`.
    #[inline(always)]
    fn cosh(self) -> Number<A, T> {
        let odd = self.difference * self.slope.mul_add(self.r, self.r);
        (self.sum.mul_add(self.cosh, odd) + self.sum) * self.factor
    }
}

/// `sinh x` in single precision.
pub fn sinh_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    halves_f32(x).sinh(x)
}

/// `cosh x` in single precision.
pub fn cosh_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    halves_f32(x).cosh()
}

/// `sinh x` in double precision.
pub fn sinh_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    halves_f64(x).sinh(x)
}

/// `cosh x` in double precision.
pub fn cosh_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    halves_f64(x).cosh()
}

/// `tanh x` in single precision.
pub fn tanh_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    // tanh 10 rounds to 1.
    let twice = clamp_f32(x.abs(), 10.0) * 2.0;
    let (exponent, m) = exponential::less_one_f32(twice);
    let scale = exponent.power(0);
    let e = scale.mul_add(m, scale - 1.0);
    e.copy_sign(x) / (e + 2.0)
}

/// `tanh x` in double precision.
pub fn tanh_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    // tanh 20 rounds to 1.
    let twice = clamp_f64(x.abs(), 20.0) * 2.0;
    let (exponent, m) = exponential::less_one_f64(twice);
    let scale = exponent.power(0);
    let e = scale.mul_add(m, scale - 1.0);
    e.copy_sign(x) / (e + 2.0)
}

#[inline(always)]
fn halves_f32<A: Arithmetic>(x: Number<A, f32>) -> Halves<A, f32> {
    // cosh 90 overflows.
    let (exponent, r) = exponential::reduce_f32(clamp_f32(x.abs(), 90.0));
    let square = r * r;
    let [above, below, factor] = powers_f32(exponent);
    Halves {
        sum: above + below,
        difference: above - below,
        cosh: square * polynomial(square, &COSH_F32),
        slope: square * polynomial(square, &SINH_F32),
        r,
        factor,
    }
}

#[inline(always)]
fn halves_f64<A: Arithmetic>(x: Number<A, f64>) -> Halves<A, f64> {
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
fn powers_f32<A: Arithmetic>(exponent: Exponent<A, f32>) -> [Number<A, f32>; 3] {
    let k = exponent.k();
    let j = k.shift_right_signed(1);
    let power = |field: Number<A, u32>| field.shift_left(23).float();
    let below = (k.same(126) - (k + j)).max_signed(0);
    [power(k - j + 126), power(below), power(j + 127)]
}

/// As [`powers_f32`].
#[inline(always)]
fn powers_f64<A: Arithmetic>(exponent: Exponent<A, f64>) -> [Number<A, f64>; 3] {
    let k = exponent.k();
    let j = k.shift_right_signed(1);
    let power = |field: Number<A, u32>| field.shift_left(20).as_high();
    let below = (k.same(1022) - (k + j)).max_signed(0);
    [power(k - j + 1022), power(below), power(j + 1023)]
}
