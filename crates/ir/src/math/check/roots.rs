//! References for roots, and their errors.

use super::Random;
use super::double_double::{DoubleDouble, Reference, two_product};
use super::errors::{check_all_f64, check_f32, check_f64, check_two_f32};
use crate::math::Function;

/// The system's root, and one step of Newton.
fn cbrt(x: f64) -> DoubleDouble {
    // Exact: a tiny number is made larger first.
    let (x, shift) = if x.abs() < 1e-290 {
        (x * f64::powi(2.0, 300), -100)
    } else {
        (x, 0)
    };
    let first = DoubleDouble::from(x.cbrt());
    let square = first * first;
    (first + (DoubleDouble::from(x) - square * first) / (square * 3.0.into())).scale(shift)
}

fn hypot([x, y]: [f64; 2]) -> Reference {
    (two_product(x, x) + two_product(y, y)).sqrt().into()
}

#[test]
fn cbrt_errors() {
    check_f32(Function::Cbrt, f64::cbrt);
    let any = |random: &mut Random| {
        let x = f64::from_bits(random.bits());
        if x.is_finite() { x } else { 1.0 }
    };
    check_f64(Function::Cbrt, any, |x| cbrt(x).into());
}

#[test]
fn hypot_errors() {
    check_two_f32(Function::Hypot, f64::hypot);
    check_all_f64(
        Function::Hypot,
        |random| [random.between(-9.0, 9.0), random.between(-9.0, 9.0)],
        hypot,
    );
}

#[test]
fn special_arguments() {
    for x in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Function::Cbrt.f64(&[x]).to_bits(), x.to_bits());
        assert_eq!(Function::Cbrt.f32(&[x as f32]).to_bits(), (x as f32).to_bits());
    }
    let special = [
        0.0,
        -1.0,
        f64::INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        1e300,
        -1e-300,
    ];
    for x in special {
        for y in special {
            let same = |got: f64, expected: f64, error: f64| {
                let close = got == expected || (got - expected).abs() <= expected * error;
                assert!(close, "hypot({x:e}, {y:e}) = {got:e}");
            };
            same(Function::Hypot.f64(&[x, y]), x.hypot(y), 2.3e-16);
            let (x, y) = (x as f32, y as f32);
            same(Function::Hypot.f32(&[x, y]).into(), x.hypot(y).into(), 1.2e-7);
        }
        let expected = if x.is_infinite() { f64::INFINITY } else { f64::NAN };
        for arguments in [[x, f64::NAN], [-f64::NAN, x]] {
            assert_eq!(Function::Hypot.f64(&arguments).to_bits(), expected.to_bits());
            let arguments = arguments.map(|x| x as f32);
            let expected = if arguments.iter().any(|x| x.is_infinite()) {
                f32::INFINITY
            } else {
                f32::NAN
            };
            assert_eq!(Function::Hypot.f32(&arguments).to_bits(), expected.to_bits());
        }
    }
}
