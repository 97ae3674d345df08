//! References for functions that give angles, and their errors.

use super::Random;
use super::double_double::{DoubleDouble, HALF_PI, Reference, sin_cos};
use super::errors::{check_all_f64, check_f32, check_f64, check_two_f32};
use crate::math::Function;

/// The angle of `(x, y)`, `x` and `y` of moderate size: the system's, and one step of Newton.
fn angle(y: DoubleDouble, x: DoubleDouble) -> DoubleDouble {
    let first = y.high.atan2(x.high);
    // The remaining angle has the sine (y·cos - x·sin)/√(x² + y²), and is tiny.
    let turns = (first / HALF_PI.high).round();
    let (s, c) = sin_cos(DoubleDouble::from(first) - HALF_PI * turns.into());
    let (sin, cos) = match turns as i64 & 3 {
        0 => (s, c),
        1 => (c, -s),
        2 => (-s, -c),
        _ => (-c, s),
    };
    DoubleDouble::from(first) + (y * cos - x * sin) / (x * cos + y * sin)
}

/// `√(1 - x²)`.
fn complement(x: f64) -> DoubleDouble {
    let one = DoubleDouble::from(1.0);
    ((one - x.into()) * (one + x.into())).sqrt()
}

fn asin(x: f64) -> DoubleDouble {
    if x.abs() == 1.0 {
        HALF_PI * x.into()
    } else {
        angle(x.into(), complement(x))
    }
}

fn acos(x: f64) -> DoubleDouble {
    match x {
        1.0 => 0.0.into(),
        -1.0 => HALF_PI * 2.0.into(),
        _ => angle(complement(x), x.into()),
    }
}

fn atan2(y: f64, x: f64) -> Reference {
    angle(y.into(), x.into()).into()
}

fn unit(random: &mut Random) -> f64 {
    match random.bits() % 4 {
        0 => random.between(0.999, 1.0),
        1 => random.between(-1.0, 1.0) * f64::powi(2.0, -((random.bits() % 40) as i32)),
        _ => random.between(-1.0, 1.0),
    }
}

fn any(random: &mut Random) -> f64 {
    random.between(-2.0, 2.0) * f64::powi(2.0, (random.bits() % 40) as i32 - 20)
}

#[test]
fn asin_errors() {
    check_f32(Function::Asin, f64::asin);
    check_f64(Function::Asin, unit, |x| asin(x).into());
}

#[test]
fn acos_errors() {
    check_f32(Function::Acos, f64::acos);
    check_f64(Function::Acos, unit, |x| acos(x).into());
}

#[test]
fn atan_errors() {
    check_f32(Function::Atan, f64::atan);
    check_f64(Function::Atan, any, |x| atan2(x, 1.0));
}

#[test]
fn atan2_errors() {
    check_two_f32(Function::Atan2, f64::atan2);
    check_all_f64(
        Function::Atan2,
        |random| [any(random), any(random)],
        |[y, x]| atan2(y, x),
    );
}

#[test]
fn atan2_of_special_points() {
    let special = [
        0.0,
        1.0,
        f64::INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        1e300,
        1e-300,
    ];
    for &a in &special {
        for &b in &special {
            for (y, x) in [(a, b), (a, -b), (-a, b), (-a, -b)] {
                let same = |got: f64, expected: f64, error: f64| {
                    let close = (got - expected).abs() <= error;
                    let same = close && got.is_sign_negative() == expected.is_sign_negative();
                    assert!(same, "atan2({y:e}, {x:e}) = {got:e}");
                };
                let expected = y.atan2(x);
                same(Function::Atan2.f64(&[y, x]), expected, expected.abs() * 4e-16);
                let (y, x) = (y as f32, x as f32);
                let expected = f64::from(y).atan2(x.into());
                same(
                    Function::Atan2.f32(&[y, x]).into(),
                    expected,
                    expected.abs() * 3e-7 + 1e-45,
                );
            }
        }
        for (y, x) in [(a, f64::NAN), (f64::NAN, a), (-a, -f64::NAN)] {
            assert_eq!(Function::Atan2.f64(&[y, x]).to_bits(), f64::NAN.to_bits());
            assert_eq!(
                Function::Atan2.f32(&[y as f32, x as f32]).to_bits(),
                f32::NAN.to_bits()
            );
        }
    }
}
