//! A GPU's steps for [`UnaryOp::NormalReciprocal`](crate::ir::UnaryOp::NormalReciprocal) and
//! [`UnaryOp::NormalSqrt`](crate::ir::UnaryOp::NormalSqrt) round to nearest for any approximation, except for the starts named
//! here.

use super::exhaustive;
use crate::ir::eval::{normal_reciprocal, normal_sqrt};

/// Every significand, or one in seven.
fn significands() -> impl Iterator<Item = u32> {
    (0..1 << 23).step_by(if exhaustive() { 1 } else { 7 })
}

/// The numbers from `low` to `high`.
fn between(low: f64, high: f64) -> impl Iterator<Item = f32> {
    let first = (low as f32).to_bits() - 1;
    (first..)
        .map(f32::from_bits)
        .skip_while(move |&x| f64::from(x) < low)
        .take_while(move |&x| f64::from(x) <= high)
}

/// `rcp.approx.ftz.f32` is within 1 ulp (PTX ISA, `rcp`). The largest significand is left out: from one of the two
/// numbers beside its reciprocal the step ends half way between two; `rcp.rn` takes the same step from the same start.
#[test]
fn reciprocals_do_not_depend_on_the_approximation() {
    for bits in significands().filter(|&bits| bits != 0x7f_ffff) {
        let x = f32::from_bits(bits | 127 << 23);
        let exact = 1.0 / f64::from(x);
        let ulp = f64::from(f32::EPSILON) / 2.0;
        for start in between(exact - ulp, (exact + ulp).min(1.0)) {
            let found = start.mul_add((-x).mul_add(start, 1.0), start);
            assert_eq!(found, normal_reciprocal(x), "of {x} from {start}");
        }
    }
}

/// The numbers from 1 to 4, by their bits, and the starts within the stated error of `rsqrt.approx.ftz.f32` from which the
/// steps round the wrong way: all there are, and none is within 2⁻²³·³ of the reciprocal root. A GPU never starts there:
/// ptxas makes the same steps, from the same instruction, of `sqrt.rn.f32` for numbers from 2⁻¹⁰¹ on, which must be rounded
/// to nearest. (`cuda.rs` compares every significand on a GPU.)
const WRONG_STARTS: [(u32, u32); 2] = [(0x3ffc_114a, 0x3f36_6d09), (0x406e_9372, 0x3f04_9780)];

/// `rsqrt.approx.ftz.f32` is within 2⁻²²·⁹ of the result (PTX ISA, `rsqrt`). Powers of four only scale the steps.
#[test]
fn roots_do_not_depend_on_the_approximation() {
    let largest = 0.5f64.powf(22.9);
    let mut wrong = Vec::new();
    for exponent in [127u32, 128] {
        for x in significands().map(|bits| f32::from_bits(bits | exponent << 23)) {
            let exact = 1.0 / f64::from(x).sqrt();
            for start in between(exact * (1.0 - largest), exact * (1.0 + largest)) {
                let (first, half) = (x * start, start * 0.5);
                let found = (-first).mul_add(first, x).mul_add(half, first);
                if found != normal_sqrt(x) {
                    assert!((f64::from(start) / exact - 1.0).abs() > 0.5f64.powf(23.3));
                    wrong.push((x.to_bits(), start.to_bits()));
                }
            }
        }
    }
    if exhaustive() {
        assert_eq!(wrong, WRONG_STARTS);
    } else {
        assert!(wrong.iter().all(|pair| WRONG_STARTS.contains(pair)), "{wrong:x?}");
    }
}

#[test]
fn outside_of_the_range_results_are_those_of_the_steps() {
    let most = 2.0f32.powi(126);
    for x in [
        0.0,
        -0.0,
        1e-40,
        -1e-40,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ] {
        assert!(normal_reciprocal(x).is_nan(), "{x}");
    }
    assert_eq!(normal_reciprocal(most), f32::MIN_POSITIVE);
    for x in [f32::from_bits(most.to_bits() + 1), f32::MAX] {
        assert_eq!(normal_reciprocal(x).to_bits(), 0);
        assert_eq!(normal_reciprocal(-x).to_bits(), 1 << 31);
    }
    for x in [0.0, -0.0, 1e-40, -1.0, f32::INFINITY, f32::NAN] {
        assert!(normal_sqrt(x).is_nan(), "{x}");
    }
}
