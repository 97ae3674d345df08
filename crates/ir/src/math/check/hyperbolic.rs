//! References for hyperbolic functions, and their errors.

use super::Random;
use super::double_double::{DoubleDouble, Reference, exp, exp_m1};
use super::errors::{check_f32, check_f64};
use crate::math::Function;

/// Half of `e^|x| ± e^-|x|`, with the exponent apart, for large `|x|`.
fn half_sum(x: f64, sign: f64) -> Reference {
    let large = exp(x.abs().into());
    let small = exp((-x.abs()).into());
    let small = small.value.scale((small.exponent - large.exponent).max(-1000)) * sign.into();
    Reference {
        value: large.value + small,
        exponent: large.exponent - 1,
    }
}

fn sinh(x: f64) -> Reference {
    if x.abs() > 1.0 {
        let Reference { value, exponent } = half_sum(x, -1.0);
        return Reference {
            value: if x < 0.0 { -value } else { value },
            exponent,
        };
    }
    // ½(E + E/(E + 1)) with E = eˣ - 1.
    let e = exp_m1(x.into());
    Reference {
        value: e + e / (e + 1.0.into()),
        exponent: -1,
    }
}

fn tanh(x: f64) -> DoubleDouble {
    let e = exp_m1(DoubleDouble::from(2.0 * x));
    e / (e + 2.0.into())
}

fn argument(random: &mut Random) -> f64 {
    match random.bits() % 4 {
        0 => random.between(-1.0, 1.0),
        1 => random.between(-711.0, 711.0),
        2 => random.between(-5.0, 5.0),
        _ => random.between(-1.0, 1.0) * f64::powi(2.0, -((random.bits() % 900) as i32)),
    }
}

#[test]
fn sinh_errors() {
    check_f32(Function::Sinh, f64::sinh);
    check_f64(Function::Sinh, argument, sinh);
}

#[test]
fn cosh_errors() {
    check_f32(Function::Cosh, f64::cosh);
    check_f64(Function::Cosh, argument, |x| half_sum(x, 1.0));
}

#[test]
fn tanh_errors() {
    check_f32(Function::Tanh, f64::tanh);
    check_f64(
        Function::Tanh,
        |random| argument(random).clamp(-300.0, 300.0),
        |x| tanh(x).into(),
    );
}
