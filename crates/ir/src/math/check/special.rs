//! Special arguments: zeros, infinities, NaN, the ends of the range.

use crate::math::Function;

fn single(function: Function, cases: &[(f32, f32)]) {
    for &(x, expected) in cases {
        let got = function.f32(&[x]);
        assert_eq!(
            got.to_bits(),
            expected.to_bits(),
            "{}({x:e}) = {got:e}, not {expected:e}",
            function.name()
        );
    }
}

fn double(function: Function, cases: &[(f64, f64)]) {
    for &(x, expected) in cases {
        let got = function.f64(&[x]);
        assert_eq!(
            got.to_bits(),
            expected.to_bits(),
            "{}({x:e}) = {got:e}, not {expected:e}",
            function.name()
        );
    }
}

/// NaNs of both signs, quiet and signalling, with and without payload.
fn nans_give_the_canonical_one(function: Function) {
    for bits in [
        0x7fc0_0000,
        0xffc0_0000,
        0x7f80_0001,
        0xff80_0001,
        0x7fff_ffff,
        0xffff_ffff,
    ] {
        assert_eq!(
            function.f32(&[f32::from_bits(bits)]).to_bits(),
            0x7fc0_0000,
            "{} of {bits:x}",
            function.name()
        );
    }
    for high in [
        0x7ff8_0000u64,
        0xfff8_0000,
        0x7ff0_0000,
        0xfff0_0000,
        0x7fff_ffff,
        0xffff_ffff,
    ] {
        let got = function.f64(&[f64::from_bits(high << 32 | 1)]);
        assert_eq!(
            got.to_bits(),
            0x7ff8_0000_0000_0000,
            "{} of {high:x}",
            function.name()
        );
    }
}

#[test]
fn nan() {
    for &function in Function::ALL.iter().filter(|function| function.arguments() == 1) {
        nans_give_the_canonical_one(function);
    }
}

#[test]
fn exp() {
    let infinity = f32::INFINITY;
    let least = f32::from_bits(1);
    single(
        Function::Exp,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (least, 1.0),
            (-least, 1.0),
            (infinity, infinity),
            (-infinity, 0.0),
            (f32::MAX, infinity),
            (f32::MIN, 0.0),
            (88.722_84, infinity),
            (-103.972_084, 0.0),
            (-103.972_08, least),
            (-103.0, least),
            (104.0, infinity),
        ],
    );
    let infinity = f64::INFINITY;
    let least = f64::from_bits(1);
    double(
        Function::Exp,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (least, 1.0),
            (-least, 1.0),
            (infinity, infinity),
            (-infinity, 0.0),
            (f64::MAX, infinity),
            (f64::MIN, 0.0),
            (709.782_712_893_384_1, infinity),
            (-745.133_219_101_941_2, 0.0),
            (-745.133_219_101_941_1, least),
            (1024.0, infinity),
            (-1024.0, 0.0),
            (1e300, infinity),
            (-1e300, 0.0),
        ],
    );
}

#[test]
fn log() {
    let infinity = f32::INFINITY;
    single(
        Function::Log,
        &[
            (0.0, -infinity),
            (-0.0, -infinity),
            (1.0, 0.0),
            (infinity, infinity),
            (-infinity, f32::NAN),
            (-1.0, f32::NAN),
            (-f32::from_bits(1), f32::NAN),
            (f32::MIN, f32::NAN),
        ],
    );
    let infinity = f64::INFINITY;
    double(
        Function::Log,
        &[
            (0.0, -infinity),
            (-0.0, -infinity),
            (1.0, 0.0),
            (infinity, infinity),
            (-infinity, f64::NAN),
            (-1.0, f64::NAN),
            (-f64::from_bits(1), f64::NAN),
            (f64::MIN, f64::NAN),
        ],
    );
}

#[test]
fn exp2() {
    let infinity = f32::INFINITY;
    for n in -149..128 {
        assert_eq!(
            f64::from(Function::Exp2.f32(&[n as f32])),
            f64::powi(2.0, n),
            "2^{n}"
        );
    }
    single(
        Function::Exp2,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (infinity, infinity),
            (-infinity, 0.0),
            (128.0, infinity),
            (-150.0, 0.0),
            (f32::MAX, infinity),
            (f32::MIN, 0.0),
        ],
    );
    let infinity = f64::INFINITY;
    for n in -1022..1024 {
        assert_eq!(Function::Exp2.f64(&[f64::from(n)]), f64::powi(2.0, n), "2^{n}");
    }
    double(
        Function::Exp2,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (infinity, infinity),
            (-infinity, 0.0),
            (1024.0, infinity),
            (-1075.0, 0.0),
            (-1074.0, f64::from_bits(1)),
            (f64::MAX, infinity),
            (f64::MIN, 0.0),
        ],
    );
}

#[test]
fn log2_and_log10() {
    for n in -149..128 {
        let power = f64::powi(2.0, n);
        assert_eq!(Function::Log2.f32(&[power as f32]), n as f32, "log2 2^{n}");
        assert_eq!(Function::Log2.f64(&[power]), f64::from(n), "log2 2^{n}");
    }
    for function in [Function::Log2, Function::Log10] {
        let infinity = f32::INFINITY;
        single(
            function,
            &[
                (0.0, -infinity),
                (-0.0, -infinity),
                (1.0, 0.0),
                (infinity, infinity),
                (-infinity, f32::NAN),
                (-1.0, f32::NAN),
                (-f32::from_bits(1), f32::NAN),
            ],
        );
        let infinity = f64::INFINITY;
        double(
            function,
            &[
                (0.0, -infinity),
                (-0.0, -infinity),
                (1.0, 0.0),
                (infinity, infinity),
                (-infinity, f64::NAN),
                (-1.0, f64::NAN),
                (-f64::from_bits(1), f64::NAN),
            ],
        );
    }
}

#[test]
fn sin_cos_and_tan() {
    for x in [0.0f64, f64::from_bits(1), 1e-310, 1e-300, 1e-20] {
        double(Function::Sin, &[(x, x), (-x, -x)]);
        double(Function::Cos, &[(x, 1.0), (-x, 1.0)]);
        double(Function::Tan, &[(x, x), (-x, -x)]);
    }
    for x in [0.0f32, f32::from_bits(1), 1e-40, 1e-30] {
        single(Function::Sin, &[(x, x), (-x, -x)]);
        single(Function::Cos, &[(x, 1.0), (-x, 1.0)]);
        single(Function::Tan, &[(x, x), (-x, -x)]);
    }
    for function in [Function::Sin, Function::Cos, Function::Tan] {
        single(
            function,
            &[(f32::INFINITY, f32::NAN), (f32::NEG_INFINITY, f32::NAN)],
        );
        double(
            function,
            &[(f64::INFINITY, f64::NAN), (f64::NEG_INFINITY, f64::NAN)],
        );
    }
}
