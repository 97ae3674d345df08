//! Mathematical functions, selection, bits: the device and the ordinary function have the same bits.

use headstart::prelude::*;

use crate::agree::{agree, noise};
use crate::conformance::Feature;

const ONE: Geometry = Geometry {
    groups: [1, 1, 1],
    group: [128, 1, 1],
    ..Geometry::new(1, 1)
};

/// Every function that is expanded, in one precision; arguments inside the functions' domains, for the bits
/// of NaNs are the platform's.
#[kernel]
fn functions<T: Float>(input: &[T], output: &mut [T]) {
    let i = global_id();
    let (x, y) = (input[i], input[(i + 5) % input.len()]);
    let small = x.sin();
    let first = i * 20;
    output[first] = small.asin();
    output[first + 1] = small.acos();
    output[first + 2] = x.atan();
    output[first + 3] = x.atan2(y);
    output[first + 4] = x.cbrt();
    output[first + 5] = small.cosh();
    output[first + 6] = x.erf();
    output[first + 7] = x.hypot(y);
    output[first + 8] = x.abs().powf(small);
    output[first + 9] = x.round();
    output[first + 10] = small.sinh();
    output[first + 11] = x.tanh();
    output[first + 12] = x % y;
    output[first + 13] = x.floor() + y.ceil();
    let mut z = x;
    z %= T::ONE;
    output[first + 14] = z;
    output[first + 15] = x.tan() + y.cos();
    output[first + 16] = small.exp() + small.exp2();
    output[first + 17] = x.abs().ln() + y.abs().log2() + y.abs().log10();
    output[first + 18] = select(x > y, x, y);
    output[first + 19] = select(x % y > small, small, x.hypot(small).powf(y % T::ONE));
}

#[test]
fn functions_agree() {
    let doubles: Vec<f64> = noise(128)
        .iter()
        .map(|&bits| f64::from(bits) / 4e7 - 50.0)
        .collect();
    let singles: Vec<f32> = doubles.iter().map(|&x| x as f32).collect();
    agree!(functions::<f64>, ONE, doubles, vec![0.0; 128 * 20]);
    agree!(functions::<f32>, ONE, singles, vec![0.0; 128 * 20]);
}

/// Infinities, zeros and subnormal numbers, where the results are numbers.
#[kernel]
fn odd_floats(input: &[f32], output: &mut [f32]) {
    let i = global_id();
    let x = input[i];
    let first = i * 8;
    output[first] = x.atan();
    output[first + 1] = x.tanh();
    output[first + 2] = x.erf();
    output[first + 3] = x.cbrt();
    output[first + 4] = x.signum();
    output[first + 5] = x.powf(0.0) + f32::hypot(x, 1.0);
    output[first + 6] = x.atan2(-0.0);
    output[first + 7] = if x.is_finite() {
        x.fract() + 5.5 % (x + 0.25)
    } else {
        1.0 % x
    };
}

#[test]
fn odd_floats_agree() {
    let mut input: Vec<f32> = noise(128).iter().map(|&bits| bits as f32 / 4e8 - 5.0).collect();
    let odd = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e-40,
        -1e-45,
        f32::MAX,
        f32::MIN_POSITIVE,
    ];
    input[..8].copy_from_slice(&odd);
    agree!(odd_floats, ONE, input, vec![0.0f32; 128 * 8]);
}

/// Counting, turning and exchanging bits in every width.
#[kernel]
fn bits(input: &[u64], output: &mut [u64]) {
    let i = global_id();
    let (x, y) = (input[i], input[(i + 3) % input.len()]);
    let count = y as u32;
    let mut hash = x.swap_bytes();
    hash = hash.wrapping_mul(31) ^ (x as u32).swap_bytes() as u64 ^ (x as i32).swap_bytes() as u64;
    hash = hash.wrapping_mul(31) ^ (x as u16).swap_bytes() as u64 ^ (x as i8).swap_bytes() as u64;
    hash = hash.wrapping_mul(31) ^ (x.leading_ones() + y.trailing_ones() * 64) as u64;
    hash = hash.wrapping_mul(31) ^ ((x as i16).leading_ones() + (y as u8).trailing_ones() * 16) as u64;
    hash = hash.wrapping_mul(31)
        ^ (x & y).is_power_of_two() as u64
        ^ (x as u32 & 0x8080).is_power_of_two() as u64;
    hash = hash.wrapping_mul(31) ^ x.funnel_shl(y, count) ^ x.funnel_shr(y, count).rotate_left(3);
    hash = hash.wrapping_mul(31) ^ (x as u32).funnel_shl(y as u32, count) as u64;
    hash = hash.wrapping_mul(31) ^ u32::funnel_shr(x as u32, y as u32, count) as u64;
    hash = hash.wrapping_mul(31) ^ (x as i8).funnel_shr(y as i8, count & 31) as u64;
    hash = hash.wrapping_mul(31) ^ (x as i64).funnel_shl(y as i64, 64) as u64;
    output[i] = select(x % 3 == 0, hash, !hash);
}

#[test]
fn bits_agree() {
    let high = noise(256);
    let mut input: Vec<u64> = high
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 32 | u64::from(pair[1]))
        .collect();
    input[..6].copy_from_slice(&[0, u64::MAX, 1, 1 << 63, 0x8000, 32]);
    agree!(bits, ONE, input, vec![0u64; 128]);
}

/// The funnel shifts are what they say: one number across the two.
#[test]
fn funnel_shifts_shift_across() {
    use headstart::front::lang::reference::{funnel_shl, funnel_shr};
    for count in 0..70 {
        let both = 0x1234_5678_9abc_def0_u64;
        let (high, low) = ((both >> 32) as u32, both as u32);
        assert_eq!(
            funnel_shl(high, low, count),
            ((both << (count % 32)) >> 32) as u32
        );
        assert_eq!(funnel_shr(high, low, count), (both >> (count % 32)) as u32);
        assert_eq!(
            funnel_shl(high as i32, low as i32, count) as u32,
            funnel_shl(high, low, count)
        );
    }
}

/// The approximations: of each, its result and how far it may be from the exact one, absolutely.
#[kernel]
fn approximations(input: &[f32], output: &mut [f32]) {
    let i = global_id();
    let x = input[i];
    let y = input[(i + 7) % input.len()];
    output[i * 9] = approximate_recip(x);
    output[i * 9 + 1] = approximate_rsqrt(x);
    output[i * 9 + 2] = approximate_sqrt(x);
    output[i * 9 + 3] = approximate_exp2(x);
    output[i * 9 + 4] = approximate_log2(x);
    output[i * 9 + 5] = approximate_sin(x);
    output[i * 9 + 6] = approximate_cos(x);
    output[i * 9 + 7] = approximate_tanh(x);
    output[i * 9 + 8] = approximate_div(x, y);
}

/// On every device they are within the errors that the documentation states; on the simulator they are rounded.
#[test]
fn approximations_are_close() {
    use headstart::device::TypedBuffer;
    let input: Vec<f32> = (0..128).map(|i| 0.05 + i as f32 * 0.049).collect();
    // How far OpenCL's native functions are from the exact results is their device's affair.
    for device in crate::agree::devices_but(Some(crate::agree::Family::OpenCl)) {
        let device = &*device;
        let queue = device.queue().expect("a queue");
        let compiled = approximations::compile(device).expect("the kernel is right");
        let source = TypedBuffer::from_slice(device, &input).expect("a buffer");
        let mut target = TypedBuffer::from_slice(device, &vec![0.0f32; 128 * 9]).expect("a buffer");
        let arguments = approximations::arguments(&source, &mut target);
        compiled.launch(&*queue, ONE, arguments).wait().expect("it runs");
        let found = target.read(&*queue).expect("the output is read");
        for (i, &x) in input.iter().enumerate() {
            let (x, y) = (f64::from(x), f64::from(input[(i + 7) % 128]));
            let relative = |exact: f64, bits: f64| (exact, exact.abs() * (-bits).exp2());
            let logarithm = x.log2().abs().max(f64::from(u8::from((0.5..=2.0).contains(&x))));
            let exact = [
                relative(1.0 / x, 23.0),
                relative(1.0 / x.sqrt(), 22.9),
                relative(x.sqrt(), 23.0),
                relative(x.exp2(), 22.0),
                (x.log2(), logarithm * (-22.0f64).exp2()),
                (x.sin(), (-20.5f64).exp2()),
                (x.cos(), (-20.5f64).exp2()),
                relative(x.tanh(), 11.0),
                relative(x / y, 22.0),
            ];
            for (number, (exact, error)) in exact.into_iter().enumerate() {
                let found = f64::from(found[i * 9 + number]);
                // Half a unit for the rounding of the result itself.
                let error = error + exact.abs() * (-24.0f64).exp2();
                assert!(
                    (found - exact).abs() <= error,
                    "{number} of {x}: {found}, not {exact}"
                );
            }
        }
    }
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "mathematical functions",
        spelled: "`x.sin()`, `x.powf(y)`, `x.erf()`, `x % y`",
        kernel: functions::kernel::<f64>,
        test: functions_agree,
    },
    Feature {
        name: "infinities, zeros, subnormal numbers",
        spelled: "`x.atan2(-0.0)`",
        kernel: odd_floats::kernel,
        test: odd_floats_agree,
    },
    Feature {
        name: "bits, funnel shifts, selection",
        spelled: "`x.swap_bytes()`, `x.funnel_shl(y, n)`, `select(c, a, b)`",
        kernel: bits::kernel,
        test: bits_agree,
    },
    Feature {
        name: "approximations of the hardware",
        spelled: "`approximate_rsqrt(x)`, `approximate_div(x, y)`",
        kernel: approximations::kernel,
        test: approximations_are_close,
    },
];
