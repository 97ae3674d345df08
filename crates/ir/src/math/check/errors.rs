//! The largest errors, measured and compared with the documented bounds.

use rayon::prelude::*;

use super::double_double::{self, DoubleDouble, LN_2, LN_10, Reference};
use super::{CONTRACTS, Contract, Random, seed};
use crate::math::Function;

/// The largest error over single-precision arguments, and where it is; bits are tried from `first` on in
/// steps of `step`.
fn worst_f32(first: u32, step: usize, function: Function, reference: fn(f64) -> f64) -> (f64, f32) {
    let chunks = 1u64 << 10;
    let length = (1u64 << 32) / chunks;
    (0..chunks)
        .into_par_iter()
        .map(|chunk| {
            let mut worst = (0.0, 0.0);
            let start = chunk * length + u64::from(first) % step as u64;
            for bits in (start..(chunk + 1) * length).step_by(step) {
                let x = f32::from_bits(bits as u32);
                let error = distance_f32(function.f32(&[x]), reference(x.into()));
                if error > worst.0 || error.is_nan() {
                    worst = (error, x);
                }
            }
            worst
        })
        .reduce(|| (0.0, 0.0), |a, b| if a.0 >= b.0 { a } else { b })
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

fn contract(function: Function) -> &'static Contract {
    let mut contracts = CONTRACTS.iter();
    contracts
        .find(|c| c.function == function)
        .expect("every function has a contract")
}

/// Measures in single precision, all arguments or one in about a thousand.
pub(crate) fn check_f32(function: Function, reference: fn(f64) -> f64) {
    let exhaustive = std::env::var_os("HEADSTART_EXHAUSTIVE").is_some();
    let (first, step) = if exhaustive {
        (0, 1)
    } else {
        (Random(seed()).bits() as u32, 1021)
    };
    let (error, x) = worst_f32(first, step, function, reference);
    let contract = contract(function);
    let what = if exhaustive {
        "all arguments"
    } else {
        "a sample; HEADSTART_EXHAUSTIVE tries all arguments"
    };
    println!(
        "{} in single precision: {error:.4} ulp at {x:e} ({what})",
        function.name()
    );
    assert!(
        error <= contract.error_f32,
        "{} of {x:e}: {error} ulp",
        function.name()
    );
}

/// Measures in double precision on random arguments.
pub(crate) fn check_f64(
    function: Function,
    argument: fn(&mut Random) -> f64,
    reference: fn(f64) -> Reference,
) {
    let seed = seed();
    let count: u64 = if std::env::var_os("HEADSTART_EXHAUSTIVE").is_some() {
        20_000_000
    } else {
        50_000
    };
    let (error, x) = (0..64u64)
        .into_par_iter()
        .map(|part| {
            let mut random = Random(Random(seed ^ part).bits());
            let mut worst = (0.0, 0.0);
            for _ in 0..count / 64 {
                let x = argument(&mut random);
                let error = reference(x).distance_f64(function.f64(&[x]));
                if error > worst.0 || error.is_nan() {
                    worst = (error, x);
                }
            }
            worst
        })
        .reduce(|| (0.0, 0.0), |a, b| if a.0 >= b.0 { a } else { b });
    let contract = contract(function);
    println!(
        "{} in double precision: {error:.4} ulp at {x:e} ({count} random arguments)",
        function.name()
    );
    assert!(
        error <= contract.error_f64,
        "{} of {x:e}: {error} ulp",
        function.name()
    );
}

/// Measures a function of two arguments in single precision, on random arguments.
pub(crate) fn check_two_f32(function: Function, reference: fn(f64, f64) -> f64) {
    let mut random = Random(seed());
    let count = if std::env::var_os("HEADSTART_EXHAUSTIVE").is_some() {
        200_000_000
    } else {
        500_000
    };
    let mut worst = (0.0, [0.0; 2]);
    for n in 0..count {
        let bits = random.bits();
        // Half of them anywhere, half of like magnitude.
        let first = f32::from_bits(bits as u32);
        let second = match n % 2 {
            0 => f32::from_bits((bits >> 32) as u32),
            _ => first * random.between(-8.0, 8.0) as f32,
        };
        let exact = reference(first.into(), second.into());
        let error = distance_f32(function.f32(&[first, second]), exact);
        if error > worst.0 || error.is_nan() {
            worst = (error, [first, second]);
        }
    }
    let (error, at) = worst;
    println!(
        "{} in single precision: {error:.4} ulp at {at:?} ({count} random arguments)",
        function.name()
    );
    assert!(
        error <= contract(function).error_f32,
        "{} of {at:?}: {error} ulp",
        function.name()
    );
}

/// Measures a function of two arguments in double precision, on random arguments.
pub(crate) fn check_two_f64(
    function: Function,
    arguments: fn(&mut Random) -> [f64; 2],
    reference: fn([f64; 2]) -> Reference,
) {
    let mut random = Random(seed());
    let count = if std::env::var_os("HEADSTART_EXHAUSTIVE").is_some() {
        20_000_000
    } else {
        50_000
    };
    let mut worst = (0.0, [0.0; 2]);
    for _ in 0..count {
        let at = arguments(&mut random);
        let error = reference(at).distance_f64(function.f64(&at));
        if error > worst.0 || error.is_nan() {
            worst = (error, at);
        }
    }
    let (error, at) = worst;
    println!(
        "{} in double precision: {error:.4} ulp at {at:?} ({count} random arguments)",
        function.name()
    );
    assert!(
        error <= contract(function).error_f64,
        "{} of {at:?}: {error} ulp",
        function.name()
    );
}

#[test]
fn exp_f32() {
    check_f32(Function::Exp, f64::exp);
}

#[test]
fn exp_f64() {
    let argument = |random: &mut Random| match random.bits() % 4 {
        0 => random.between(-1.0, 1.0),
        1 => random.between(-745.2, -707.0),
        _ => random.between(-745.2, 709.9),
    };
    check_f64(Function::Exp, argument, |x| double_double::exp(x.into()));
}

#[test]
fn log_f32() {
    check_f32(Function::Log, f64::ln);
}

#[test]
fn log_f64() {
    check_f64(Function::Log, logarithm_argument, |x| {
        double_double::log(x).into()
    });
}

fn logarithm_argument(random: &mut Random) -> f64 {
    match random.bits() % 4 {
        0 => f64::from_bits(random.bits() % f64::INFINITY.to_bits()),
        1 => random.between(0.99, 1.01),
        _ => random.between(0.3, 3.0),
    }
}

#[test]
fn exp2_f32() {
    check_f32(Function::Exp2, f64::exp2);
}

#[test]
fn exp2_f64() {
    let argument = |random: &mut Random| match random.bits() % 4 {
        0 => random.between(-1.0, 1.0),
        1 => random.between(-1075.0, -1020.0),
        _ => random.between(-1075.0, 1024.1),
    };
    check_f64(Function::Exp2, argument, |x| double_double::exp(LN_2 * x.into()));
}

#[test]
fn log2_f32() {
    check_f32(Function::Log2, f64::log2);
}

#[test]
fn log2_f64() {
    check_f64(Function::Log2, logarithm_argument, |x| {
        (double_double::log(x) / LN_2).into()
    });
}

#[test]
fn log10_f32() {
    check_f32(Function::Log10, f64::log10);
}

#[test]
fn log10_f64() {
    check_f64(Function::Log10, logarithm_argument, |x| {
        (double_double::log(x) / LN_10).into()
    });
}
