//! The reference for powers, their errors, and their many special cases.

use super::Random;
use super::double_double::{Reference, exp, log};
use super::errors::{check_two_f32, check_two_f64};
use crate::math::Function;

fn pow([x, y]: [f64; 2]) -> Reference {
    exp(log(x) * y.into())
}

/// A positive base, and an exponent that keeps the power in range.
fn arguments(random: &mut Random) -> [f64; 2] {
    let x = match random.bits() % 4 {
        0 => f64::from_bits(random.bits() % f64::INFINITY.to_bits()).max(1e-300),
        1 => random.between(0.99, 1.01),
        _ => random.between(0.1, 10.0),
    };
    let power = random.between(-740.0, 709.0);
    let y = match random.bits() % 4 {
        0 => random.between(-4.0, 4.0),
        _ => power / x.ln(),
    };
    if (y * x.ln()).abs() < 740.0 && y * x.ln() < 709.0 {
        [x, y]
    } else {
        [1.5, 2.5]
    }
}

#[test]
fn pow_errors() {
    check_two_f32(Function::Pow, |x, y| x.powf(y));
    check_two_f64(Function::Pow, arguments, pow);
}

#[test]
fn special_arguments() {
    let special = [
        0.0,
        0.5,
        1.0,
        2.0,
        3.0,
        1.5,
        1e9 + 1.0,
        9_007_199_254_740_991.0,
        1e300,
        f64::INFINITY,
        f64::NAN,
        f64::from_bits(1),
        f64::MAX,
        0.999,
    ];
    let signed: Vec<f64> = special.iter().flat_map(|&x| [x, -x]).collect();
    for &x in &signed {
        for &y in &signed {
            let expected = x.powf(y);
            let got = Function::Pow.f64(&[x, y]);
            let same =
                got.to_bits() == expected.to_bits() || (got - expected).abs() <= expected.abs() * 1e-15;
            let canonical = got.to_bits() == f64::NAN.to_bits();
            assert!(
                if expected.is_nan() { canonical } else { same },
                "pow({x:e}, {y:e}) = {got:e}, not {expected:e}"
            );
            let (x, y) = (x as f32, y as f32);
            let expected = x.powf(y);
            let got = Function::Pow.f32(&[x, y]);
            let same = got.to_bits() == expected.to_bits() || (got - expected).abs() <= expected.abs() * 1e-6;
            let canonical = got.to_bits() == f32::NAN.to_bits();
            assert!(
                if expected.is_nan() { canonical } else { same },
                "pow({x:e}, {y:e}) = {got:e}, not {expected:e}"
            );
        }
    }
}
