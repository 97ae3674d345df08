//! Special arguments: zeros, infinities, NaN, the ends of the range.

use crate::math::Function::{self, *};

const INFINITY: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
/// The least positive numbers.
const LEAST: f64 = f64::from_bits(1);
const LEAST_SINGLE: f64 = 1.401_298_464_324_817e-45;
const MOST_SINGLE: f64 = f32::MAX as f64;

/// What a function gives for each of these arguments in single precision.
fn single(function: Function, arguments: &[f64], expected: f64) {
    let expected = if expected.is_nan() {
        f32::NAN
    } else {
        expected as f32
    };
    for &x in arguments {
        let (name, got) = (function.name(), function.f32(&[x as f32]));
        assert_eq!(
            got.to_bits(),
            expected.to_bits(),
            "{name}({x:e}) = {got:e}, not {expected:e}"
        );
    }
}

fn double(function: Function, arguments: &[f64], expected: f64) {
    for &x in arguments {
        let (name, got) = (function.name(), function.f64(&[x]));
        assert_eq!(
            got.to_bits(),
            expected.to_bits(),
            "{name}({x:e}) = {got:e}, not {expected:e}"
        );
    }
}

fn both(function: Function, arguments: &[f64], expected: f64) {
    single(function, arguments, expected);
    double(function, arguments, expected);
}

/// NaNs of both signs, quiet and signalling, with and without payload, give the canonical one.
#[test]
fn nan() {
    for &function in Function::ALL.iter().filter(|function| function.arguments() == 1) {
        for sign in [0u64, 1] {
            for payload in [1, 0x3f_ffff, 0x40_0000, 0x7f_ffff] {
                let of_single = f32::from_bits((sign << 31 | 0x7f80_0000 | payload) as u32);
                assert_eq!(
                    function.f32(&[of_single]).to_bits(),
                    f32::NAN.to_bits(),
                    "{}",
                    function.name()
                );
                let of_double = f64::from_bits(sign << 63 | 0x7ff << 52 | payload << 29 | 1);
                assert_eq!(
                    function.f64(&[of_double]).to_bits(),
                    NAN.to_bits(),
                    "{}",
                    function.name()
                );
            }
        }
    }
}

#[test]
fn exp() {
    both(Exp, &[0.0, -0.0], 1.0);
    both(Exp, &[INFINITY], INFINITY);
    both(Exp, &[-INFINITY], 0.0);
    single(Exp, &[LEAST_SINGLE, -LEAST_SINGLE], 1.0);
    single(Exp, &[MOST_SINGLE, 88.722_84, 104.0], INFINITY);
    single(Exp, &[-MOST_SINGLE, -103.972_084], 0.0);
    single(Exp, &[-103.972_08, -103.0], LEAST_SINGLE);
    double(Exp, &[LEAST, -LEAST], 1.0);
    double(Exp, &[f64::MAX, 709.782_712_893_384_1, 1024.0, 1e300], INFINITY);
    double(Exp, &[f64::MIN, -745.133_219_101_941_2, -1024.0, -1e300], 0.0);
    double(Exp, &[-745.133_219_101_941_1], LEAST);
}

#[test]
fn logarithms() {
    for n in -149..128 {
        let power = f64::powi(2.0, n);
        both(Log2, &[power], f64::from(n));
    }
    for function in [Log, Log2, Log10] {
        both(function, &[0.0, -0.0], -INFINITY);
        both(function, &[1.0], 0.0);
        both(function, &[INFINITY], INFINITY);
        both(function, &[-INFINITY, -1.0, f64::MIN], NAN);
        single(function, &[-LEAST_SINGLE, -MOST_SINGLE], NAN);
        double(function, &[-LEAST], NAN);
    }
}

#[test]
fn exp2() {
    (-149..128).for_each(|n| single(Exp2, &[f64::from(n)], f64::powi(2.0, n)));
    (-1022..1024).for_each(|n| double(Exp2, &[f64::from(n)], f64::powi(2.0, n)));
    both(Exp2, &[0.0, -0.0], 1.0);
    both(Exp2, &[INFINITY, 1024.0, f64::MAX], INFINITY);
    both(Exp2, &[-INFINITY, -1075.0, f64::MIN], 0.0);
    single(Exp2, &[128.0, MOST_SINGLE], INFINITY);
    single(Exp2, &[-150.0, -MOST_SINGLE], 0.0);
    double(Exp2, &[-1074.0], LEAST);
}

#[test]
fn sin_cos_and_tan() {
    let (singles, doubles) = (
        [0.0, LEAST_SINGLE, 1e-40, 1e-30],
        [0.0, LEAST, 1e-310, 1e-300, 1e-20],
    );
    for (check, tiny) in [
        (single as fn(Function, &[f64], f64), &singles[..]),
        (double, &doubles),
    ] {
        for &x in tiny {
            check(Cos, &[x, -x], 1.0);
            for function in [Sin, Tan] {
                check(function, &[x], x);
                check(function, &[-x], -x);
            }
        }
    }
    for function in [Sin, Cos, Tan] {
        both(function, &[INFINITY, -INFINITY], NAN);
    }
}
