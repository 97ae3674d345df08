//! `erf`, the error function.
//!
//! `erf |x| = 1 - e⁻ᵘ` with `u = -ln erfc |x| = |x| + |x|·p(|x|)`, one polynomial for the whole range; `1 - e⁻ᵘ`
//! is accurate where `u` is small. Errors of `p` count the less the larger `x` is.
//!
//! Polynomials by Remez' algorithm for `-ln erfc(x)/x - 1` with the weight `x·erfc(x)/erf(x)`, on `[0, 3.93]`
//! and `[0, 5.93]`, rounded.

use super::arithmetic::{Arithmetic, Number};
use super::exponential;
use super::polynomial::polynomial;
use super::scale::clamp_f64;

/// `u/|x| - 1`; the error of `erf` that follows is 2⁻⁵⁶ of it.
const EXPONENT: [f64; 25] = [
    0.128_379_167_095_512_56,
    0.636_619_772_367_583_6,
    0.102_772_603_301_788_76,
    -0.019_128_447_005_070_53,
    -0.000_209_194_694_839_882_87,
    0.001_696_206_385_722_72,
    -0.000_590_125_552_765_354_5,
    2.587_860_375_275_818e-5,
    6.449_186_245_001_756e-5,
    -2.972_404_984_243_672_6e-5,
    3.407_271_991_008_947e-6,
    2.835_131_466_170_499_4e-6,
    -1.741_538_442_264_575e-6,
    3.363_575_075_737_955_6e-7,
    1.371_864_697_153_527_6e-7,
    -1.417_640_257_229_519_2e-7,
    6.573_427_272_943_094e-8,
    -2.096_289_022_689_121_7e-8,
    4.997_762_967_089_806e-9,
    -9.082_344_305_035_108e-10,
    1.248_428_497_766_101e-10,
    -1.261_122_573_265_119_4e-11,
    8.845_769_909_062_736e-13,
    -3.850_631_615_165_454e-14,
    7.834_449_357_269_758e-16,
];

/// `u/|x| - 1`; the error of `erf` that follows is 2⁻²⁶·⁸ of it.
const EXPONENT_F32: [f32; 9] = [
    0.128_379_17,
    0.636_619_4,
    0.102_777_83,
    -0.019_153_064,
    -0.000_160_395_58,
    0.001_667_026_8,
    -0.000_632_836_4,
    0.000_117_641_124,
    -9.256_247e-6,
];

/// `erf x` in single precision.
pub(crate) fn erf_f32<A: Arithmetic>(x: Number<A, f32>) -> Number<A, f32> {
    // erf 3.93 rounds to 1.
    let magnitude = x.abs().minimum(3.93);
    let u = polynomial(magnitude, &EXPONENT_F32).mul_add(magnitude, magnitude);
    let (exponent, m) = exponential::less_one_f32(-u);
    // 1 - 2ᵏ·(1 + m), with the sign of x.
    let scale = exponent.power();
    let constant = (scale.same(1.0) - scale).copy_sign(x);
    (-scale.copy_sign(x)).mul_add(m, constant)
}

/// `erf x` in double precision.
pub(crate) fn erf_f64<A: Arithmetic>(x: Number<A, f64>) -> Number<A, f64> {
    // erf 5.93 rounds to 1.
    let magnitude = clamp_f64(x.abs(), 5.93);
    let u = polynomial(magnitude, &EXPONENT).mul_add(magnitude, magnitude);
    let (exponent, m) = exponential::less_one_f64(-u);
    let scale = exponent.power(0);
    let constant = (scale.same(1.0) - scale).copy_sign(x);
    (-scale.copy_sign(x)).mul_add(m, constant)
}
