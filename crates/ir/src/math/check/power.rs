//! The reference for powers, their errors, and their many special cases.

use super::Random;
use super::double_double::{Reference, exp, log};
use super::errors::{check_all_f64, check_two_f32};
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
    check_all_f64(Function::Pow, arguments, pow);
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
            let same = |got: f64, expected: f64, error: f64| {
                let same = match expected.is_nan() {
                    true => got.is_nan(),
                    false => {
                        got.to_bits() == expected.to_bits()
                            || (got - expected).abs() <= expected.abs() * error
                    }
                };
                assert!(same, "pow({x:e}, {y:e}) = {got:e}, not {expected:e}");
            };
            let got = Function::Pow.f64(&[x, y]);
            same(got, x.powf(y), 1e-15);
            assert!(
                !got.is_nan() || got.to_bits() == f64::NAN.to_bits(),
                "pow({x:e}, {y:e})"
            );
            let (x, y) = (x as f32, y as f32);
            let got = Function::Pow.f32(&[x, y]);
            same(got.into(), x.powf(y).into(), 1e-6);
            assert!(
                !got.is_nan() || got.to_bits() == f32::NAN.to_bits(),
                "pow({x:e}, {y:e})"
            );
        }
    }
}
