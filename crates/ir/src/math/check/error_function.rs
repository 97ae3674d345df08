//! The reference for the error function, and its errors.

use super::Random;
use super::double_double::{DoubleDouble, exp};
use super::errors::{check_f32, check_f64};
use crate::math::Function;

/// 2/√π.
const FACTOR: DoubleDouble = DoubleDouble {
    high: std::f64::consts::FRAC_2_SQRT_PI,
    low: 1.533_545_961_316_588e-17,
};

/// 2/√π·e^-x²·Σ 2ⁿ·x²ⁿ⁺¹/(2n+1)!!, whose terms are all positive.
fn erf(x: f64) -> DoubleDouble {
    let x = DoubleDouble::from(x.clamp(-6.5, 6.5));
    let square = x * x;
    let mut sum = DoubleDouble::from(1.0);
    for n in (1..=200).rev() {
        sum = DoubleDouble::from(1.0) + sum * square * 2.0.into() / f64::from(2 * n + 1).into();
    }
    let power = exp(-square);
    FACTOR * x * sum * power.value.scale(power.exponent)
}

fn argument(random: &mut Random) -> f64 {
    match random.bits() % 4 {
        0 => random.between(-1.0, 1.0) * f64::powi(2.0, -((random.bits() % 900) as i32)),
        1 => random.between(-7.0, 7.0),
        _ => random.between(-2.0, 2.0),
    }
}

#[test]
fn erf_errors() {
    // The system has no error function: ours in double precision, checked here too, is the reference.
    check_f32(Function::Erf, |x| Function::Erf.f64(&[x]));
    check_f64(Function::Erf, argument, |x| erf(x).into());
}
