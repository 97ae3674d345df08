//! The largest errors, measured and compared with the documented bounds.

use std::fmt::Debug;

use rayon::prelude::*;

use super::double_double::{self, DoubleDouble, LN_2, LN_10, Reference};
use super::{CONTRACTS, Random, exhaustive, seed};
use crate::math::Function;

/// The larger of two errors, and where it is.
fn worse<T>(one: (f64, T), other: (f64, T)) -> (f64, T) {
    if other.0 > one.0 || other.0.is_nan() {
        other
    } else {
        one
    }
}

/// The distance of a result from the exact one, in units in the last place.
fn distance_f32(got: f32, exact: f64) -> f64 {
    match exact.is_nan() {
        true if got.is_nan() => 0.0,
        true => f64::INFINITY,
        false if exact.is_infinite() && f64::from(got) == exact => 0.0,
        false => Reference::from(DoubleDouble::from(exact)).distance_f32(got),
    }
}

/// Compares the largest error with the contract.
fn judge(function: Function, is_single: bool, (error, at): (f64, impl Debug), tried: &str) {
    let mut contracts = CONTRACTS.iter();
    let contract = contracts.find(|contract| contract.function == function);
    let contract = contract.expect("every function has a contract");
    let (precision, most) = match is_single {
        true => ("single", contract.error_f32),
        false => ("double", contract.error_f64),
    };
    let name = function.name();
    println!("{name} in {precision} precision: {error:.4} ulp at {at:?} ({tried})");
    assert!(error <= most, "{name} of {at:?}: {error} ulp");
}

/// Measures in single precision, all arguments or one in about a thousand.
pub(crate) fn check_f32(function: Function, reference: fn(f64) -> f64) {
    let (first, step, tried) = match exhaustive() {
        true => (0, 1, "all arguments"),
        false => {
            let first = Random(seed()).bits() % 1021;
            (first, 1021, "a sample; HEADSTART_EXHAUSTIVE tries all arguments")
        }
    };
    let length = 1u64 << 22;
    let of_chunk = |chunk: u64| {
        let all = (chunk * length + first..(chunk + 1) * length).step_by(step);
        let errors = all.map(|bits| {
            let x = f32::from_bits(bits as u32);
            (distance_f32(function.f32(&[x]), reference(x.into())), x)
        });
        errors.fold((0.0, 0.0), worse)
    };
    let worst = (0..1 << 10).into_par_iter().map(of_chunk);
    judge(function, true, worst.reduce(|| (0.0, 0.0), worse), tried);
}

/// Measures in double precision on random arguments.
pub(crate) fn check_f64(
    function: Function,
    argument: impl Fn(&mut Random) -> f64 + Sync,
    reference: impl Fn(f64) -> Reference + Sync,
) {
    check_all_f64(function, |random| [argument(random)], |[x]| reference(x));
}

/// The same of a function of several arguments.
pub(crate) fn check_all_f64<const N: usize>(
    function: Function,
    arguments: impl Fn(&mut Random) -> [f64; N] + Sync,
    reference: impl Fn([f64; N]) -> Reference + Sync,
) {
    let seed = seed();
    let count: u64 = if exhaustive() { 20_000_000 } else { 50_000 };
    let of_part = |part: u64| {
        let mut random = Random(Random(seed ^ part).bits());
        let errors = (0..count / 64).map(|_| {
            let at = arguments(&mut random);
            (reference(at).distance_f64(function.f64(&at)), at)
        });
        errors.fold((0.0, [0.0; N]), worse)
    };
    let worst = (0..64).into_par_iter().map(of_part);
    let tried = format!("{count} random arguments");
    judge(function, false, worst.reduce(|| (0.0, [0.0; N]), worse), &tried);
}

/// Measures a function of two arguments in single precision, on random arguments.
pub(crate) fn check_two_f32(function: Function, reference: fn(f64, f64) -> f64) {
    let mut random = Random(seed());
    let count = if exhaustive() { 200_000_000 } else { 500_000 };
    let errors = (0..count).map(|n| {
        let bits = random.bits();
        // Half of them anywhere, half of like magnitude.
        let first = f32::from_bits(bits as u32);
        let second = match n % 2 {
            0 => f32::from_bits((bits >> 32) as u32),
            _ => first * random.between(-8.0, 8.0) as f32,
        };
        let exact = reference(first.into(), second.into());
        (
            distance_f32(function.f32(&[first, second]), exact),
            [first, second],
        )
    });
    let worst = errors.fold((0.0, [0.0; 2]), worse);
    judge(function, true, worst, &format!("{count} random arguments"));
}

#[test]
fn functions_without_another_file() {
    let references: [(Function, fn(f64) -> f64); 5] = [
        (Function::Exp, f64::exp),
        (Function::Exp2, f64::exp2),
        (Function::Log, f64::ln),
        (Function::Log2, f64::log2),
        (Function::Log10, f64::log10),
    ];
    for (function, reference) in references {
        check_f32(function, reference);
    }
}

#[test]
fn powers() {
    let argument = |random: &mut Random| match random.bits() % 4 {
        0 => random.between(-1.0, 1.0),
        1 => random.between(-745.2, -707.0),
        _ => random.between(-745.2, 709.9),
    };
    check_f64(Function::Exp, argument, |x| double_double::exp(x.into()));
    let argument = |random: &mut Random| match random.bits() % 4 {
        0 => random.between(-1.0, 1.0),
        1 => random.between(-1075.0, -1020.0),
        _ => random.between(-1075.0, 1024.1),
    };
    check_f64(Function::Exp2, argument, |x| double_double::exp(LN_2 * x.into()));
}

#[test]
fn logarithms() {
    let argument = |random: &mut Random| match random.bits() % 4 {
        0 => f64::from_bits(random.bits() % f64::INFINITY.to_bits()),
        1 => random.between(0.99, 1.01),
        _ => random.between(0.3, 3.0),
    };
    let one = DoubleDouble::from(1.0);
    for (function, base) in [
        (Function::Log, one),
        (Function::Log2, LN_2),
        (Function::Log10, LN_10),
    ] {
        check_f64(function, argument, |x| (double_double::log(x) / base).into());
    }
}
