//! References for functions of angles, and their errors.

use super::Random;
use super::double_double::{self, DoubleDouble, HALF_PI, Reference, two_product};
use super::errors::{check_f32, check_f64};
use crate::math::Function;
use crate::math::large::TWO_OVER_PI;

/// `x = k·π/2 + r`: `k` modulo 4 and `r`.
fn reduce(x: f64) -> (u64, DoubleDouble) {
    if x.abs() < f64::powi(2.0, 30) {
        let k = (x / HALF_PI.high).round();
        // π/2 in four parts, the products with k exact.
        let parts = [
            HALF_PI.high,
            HALF_PI.low,
            -1.497_384_904_859_17e-33,
            4.320_574_262_296_449e-50,
        ];
        let r = parts
            .iter()
            .fold(DoubleDouble::from(x), |r, &part| r - two_product(k, part));
        return (k as i64 as u64 & 3, r);
    }
    // Digit by digit: m × (2/π scaled by 2¹²¹⁶) as an integer, the lowest word first.
    let m = x.to_bits() & 0x000f_ffff_ffff_ffff | 0x0010_0000_0000_0000;
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1075;
    let mut product = Vec::new();
    let mut carry = 0u128;
    for &word in TWO_OVER_PI[1..].iter().rev() {
        let sum = u128::from(m) * u128::from(word) + carry;
        product.push(sum as u64);
        carry = sum >> 64;
    }
    product.extend([carry as u64, 0, 0]);
    let bit = |position: i32| (product[position as usize / 64] >> (position % 64)) & 1;
    let point = 1216 - exponent;
    let mut quadrant = bit(point + 1) * 2 + bit(point);
    let mut fraction = DoubleDouble::from(0.0);
    for n in (1..=180).rev() {
        fraction = (fraction + (bit(point - n) as f64).into()).scale(-1);
    }
    if fraction.high >= 0.5 {
        fraction = fraction - 1.0.into();
        quadrant += 1;
    }
    let r = fraction * HALF_PI;
    if x < 0.0 {
        (quadrant.wrapping_neg() & 3, -r)
    } else {
        (quadrant & 3, r)
    }
}

/// Sine and cosine of an angle.
fn sin_cos(x: f64) -> (DoubleDouble, DoubleDouble) {
    let (quadrant, r) = reduce(x);
    let (sin, cos) = double_double::sin_cos(r);
    match quadrant {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

fn tan(x: f64) -> Reference {
    let (sin, cos) = sin_cos(x);
    (sin / cos).into()
}

/// Small and large angles, and those next to multiples of π/2.
fn angle(random: &mut Random) -> f64 {
    let choice = random.bits() % 8;
    match choice {
        0 => random.between(-1.0, 1.0),
        1 => random.between(-1e10, 1e10),
        2 => {
            let magnitude = random.bits() % (0x7fe - 0x400);
            f64::from_bits(random.bits() >> 12 | (magnitude + 0x400) << 52)
        }
        3 => {
            let k = (random.bits() % 1_000_000) as f64;
            k * HALF_PI.high * (1.0 + random.between(-4.0, 4.0) * f64::EPSILON)
        }
        _ => random.between(-100.0, 100.0),
    }
}

#[test]
fn large_angles_agree_with_the_system() {
    // The table of 2/π has a second witness.
    for exponent in 30..1024 {
        let x = f64::powi(1.999, 1) * f64::powi(2.0, exponent - 1);
        let (sin, cos) = sin_cos(x);
        assert!((sin.high - x.sin()).abs() < 1e-14, "sin {x:e}");
        assert!((cos.high - x.cos()).abs() < 1e-14, "cos {x:e}");
    }
}

#[test]
fn sin() {
    check_f32(Function::Sin, f64::sin);
    check_f64(Function::Sin, angle, |x| sin_cos(x).0.into());
}

#[test]
fn cos() {
    check_f32(Function::Cos, f64::cos);
    check_f64(Function::Cos, angle, |x| sin_cos(x).1.into());
}

#[test]
fn tan_of_angles() {
    check_f32(Function::Tan, f64::tan);
    check_f64(Function::Tan, angle, tan);
}
