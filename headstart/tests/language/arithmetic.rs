//! Operators, casts and methods, on ordinary numbers and on the odd ones.

use headstart::prelude::*;

use crate::agree::{agree, noise};
use crate::conformance::Feature;

const ONE: Geometry = Geometry {
    groups: [1, 1, 1],
    group: [128, 1, 1],
    ..Geometry::new(1, 1)
};

/// Numbers at the ends of types and around zero, then noise.
fn odd_bits() -> Vec<u64> {
    let mut bits = vec![
        0,
        1,
        2,
        u64::MAX,
        i64::MAX as u64,
        i64::MIN as u64,
        i32::MAX as u64,
        i32::MIN as u64,
        0x7f,
        0x80,
        0xff,
        0x100,
        0x7fff,
        0x8000,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x1_0000_0001,
    ];
    let high = noise(300);
    bits.extend(
        high.chunks(2)
            .map(|pair| u64::from(pair[0]) << 32 | u64::from(pair[1])),
    );
    bits.truncate(128);
    bits
}

/// What wraps, in the types where it does so soonest.
#[kernel]
fn wrapping(input: &[u64], output: &mut [u64]) {
    let i = global_id();
    let (x, y) = (input[i], input[(i * 5 + 1) % input.len()]);
    let (a, b) = (x as u8, y as u8);
    let (c, d) = (x as i16, y as i16);
    let mut hash = 0u64;
    hash = hash.wrapping_mul(31) ^ a.wrapping_add(b) as u64;
    hash = hash.wrapping_mul(31) ^ a.wrapping_sub(b) as u64;
    hash = hash.wrapping_mul(31) ^ a.wrapping_mul(b) as u64;
    hash = hash.wrapping_mul(31) ^ a.wrapping_neg() as u64;
    hash = hash.wrapping_mul(31) ^ c.wrapping_add(d) as u64;
    hash = hash.wrapping_mul(31) ^ c.wrapping_sub(d) as u64;
    hash = hash.wrapping_mul(31) ^ c.wrapping_mul(d) as u64;
    hash = hash.wrapping_mul(31) ^ c.wrapping_neg() as u64;
    hash = hash.wrapping_mul(31) ^ (c >> (a % 16)) as u64;
    hash = hash.wrapping_mul(31) ^ (a >> (b % 8)) as u64;
    hash = hash.wrapping_mul(31) ^ (a << (b & 7)) as u64;
    hash = hash.wrapping_mul(31) ^ x.wrapping_shl(y as u32);
    hash = hash.wrapping_mul(31) ^ c.wrapping_shr(y as u32) as u64;
    hash = hash.wrapping_mul(31) ^ a.rotate_left(y as u32 % 100) as u64;
    hash = hash.wrapping_mul(31) ^ (c.rotate_right(y as u32 % 64) as u64);
    hash = hash.wrapping_mul(31) ^ x.rotate_left(y as u32 & 63);
    hash =
        hash.wrapping_mul(31) ^ (a.count_ones() + b.leading_zeros() * 16 + c.trailing_zeros() * 256) as u64;
    hash = hash.wrapping_mul(31) ^ (d.leading_zeros() + x.trailing_zeros() + y.count_zeros()) as u64;
    hash = hash.wrapping_mul(31) ^ x.reverse_bits() ^ b.reverse_bits() as u64;
    output[i] = hash;
}

#[test]
fn wrapping_agrees() {
    agree!(wrapping, ONE, odd_bits(), vec![0u64; 128]);
}

/// Division, comparison and the rest on signed and unsigned numbers.
#[kernel]
fn integers(input: &[u64], output: &mut [u64]) {
    let i = global_id();
    let (x, y) = (input[i], input[(i * 3 + 1) % input.len()]);
    let (a, b) = (x as i32, (y as i32) | 1);
    let (c, d) = (x as u32, (y as u32) | 1);
    let (e, f) = (x as i64 >> 1, (y as i64) | 1);
    let mut hash = 0u64;
    // The one division that overflows is left out.
    let a = if a == i32::MIN && b == -1 { 5 } else { a };
    hash = hash.wrapping_mul(31) ^ (a / b) as u64;
    hash = hash.wrapping_mul(31) ^ (a % b) as u64;
    hash = hash.wrapping_mul(31) ^ (c / d) as u64;
    hash = hash.wrapping_mul(31) ^ (c % d) as u64;
    hash = hash.wrapping_mul(31) ^ (e / f) as u64;
    hash = hash.wrapping_mul(31) ^ (e % f) as u64;
    hash = hash.wrapping_mul(31)
        ^ ((a < b) as u64 + 2 * (c < d) as u64 + 4 * (a >= b) as u64 + 8 * (c > d) as u64);
    hash = hash.wrapping_mul(31) ^ ((e <= f) as u64 + 2 * (x == y) as u64 + 4 * (a != b) as u64);
    hash = hash.wrapping_mul(31) ^ (a.min(b) as u64) ^ (c.max(d) as u64);
    hash = hash.wrapping_mul(31)
        ^ (a / 2).abs() as u64
        ^ c.is_multiple_of(d) as u64
        ^ e.unsigned_abs()
        ^ (!a & b | a ^ 0x55) as u64;
    hash = hash.wrapping_mul(31) ^ c.abs_diff(d) as u64 ^ c.saturating_sub(d) as u64;
    hash = hash.wrapping_mul(31) ^ c.div_ceil(d) as u64 ^ a.clamp(-1000, 99_999) as u64;
    hash = hash.wrapping_mul(31) ^ u32::min(c, 17) as u64 ^ u64::from(d) ^ -(a / 3) as u64;
    let mut s = c;
    s &= 0xffff;
    s |= 0x30;
    s ^= 0x11;
    s <<= 3;
    s >>= 1;
    s %= 1009;
    s -= s / 3;
    s *= 5;
    output[i] = hash ^ s as u64;
}

#[test]
fn integers_agree() {
    agree!(integers, ONE, odd_bits(), vec![0u64; 128]);
}

/// Casts between all kinds of numbers.
#[kernel]
fn casts(input: &[u64], output: &mut [u64]) {
    let i = global_id();
    let x = input[i];
    let f = f32::from_bits(x as u32);
    let g = f64::from_bits(x);
    let s = x as i64;
    let mut hash = 0u64;
    hash = hash.wrapping_mul(31) ^ (x as u8 as i8 as i32 as u64);
    hash = hash.wrapping_mul(31) ^ (x as i8 as u32 as u64);
    hash = hash.wrapping_mul(31) ^ (x as u16 as i64 as u64) ^ (x as i16 as i64 as u64);
    hash = hash.wrapping_mul(31) ^ (f as i8 as u64) ^ ((f as u8 as u64) << 8) ^ ((f as i32 as u64) << 16);
    hash = hash.wrapping_mul(31)
        ^ (f as u32 as u64)
        ^ (f as i64 as u64).rotate_left(5)
        ^ (f as u64).rotate_left(9);
    hash = hash.wrapping_mul(31) ^ (g as i16 as u64) ^ ((g as u16 as u64) << 16) ^ (g as i32 as u64);
    hash = hash.wrapping_mul(31)
        ^ (g as u32 as u64)
        ^ (g as i64 as u64).rotate_left(5)
        ^ (g as u64).rotate_left(9);
    hash = hash.wrapping_mul(31) ^ (x as f32).to_bits() as u64 ^ (s as f32).to_bits() as u64;
    hash = hash.wrapping_mul(31) ^ (x as f64).to_bits() ^ (s as f64).to_bits().rotate_left(1);
    hash = hash.wrapping_mul(31) ^ (x as u32 as f32).to_bits() as u64 ^ (x as i32 as f32).to_bits() as u64;
    hash = hash.wrapping_mul(31) ^ ((x % 3 == 1) as u8 as u64) ^ (x as usize as u64) ^ (s as isize as u64);
    hash = hash.wrapping_mul(31) ^ f64::from(x as u32 as f32).to_bits();
    if !f.is_nan() {
        hash = hash.wrapping_mul(31) ^ (f as f64).to_bits();
    }
    if !g.is_nan() {
        hash = hash.wrapping_mul(31) ^ (g as f32).to_bits() as u64;
    }
    hash = hash.wrapping_mul(31) ^ (3_000_000_000 as u64) ^ (-1 as i8 as u64) ^ (1.5 as f32).to_bits() as u64;
    output[i] = hash;
}

#[test]
fn casts_agree() {
    let mut input = odd_bits();
    // Floats that clamp, round half, or are no numbers.
    let floats = [
        300.7f32,
        -300.7,
        1e20,
        -1e20,
        f32::NAN,
        f32::INFINITY,
        0.5,
        -0.5,
        2147483648.0,
        255.5,
        -0.0,
    ];
    for (slot, float) in input.iter_mut().skip(30).zip(floats) {
        *slot = u64::from(float.to_bits());
    }
    let doubles = [
        300.7f64,
        -300.7,
        1e30,
        f64::NAN,
        f64::NEG_INFINITY,
        4294967295.5,
        1.0 + f64::EPSILON,
        1e-310,
    ];
    for (slot, double) in input.iter_mut().skip(50).zip(doubles) {
        *slot = double.to_bits();
    }
    agree!(casts, ONE, input, vec![0u64; 128]);
}

/// Floats whose results are no NaN: the bits agree.
#[kernel]
fn floats(input: &[f32], output: &mut [f32]) {
    let i = global_id();
    let (x, y) = (input[i], input[(i + 7) % input.len()]);
    let z = x as f64;
    let first = i * 10;
    output[first] = x * y + x / (y * y + 1.0) - (x - y);
    output[first + 1] = x.mul_add(y, 0.25).abs().sqrt();
    output[first + 2] = if x == y { 0.0 } else { x.min(y) - x.max(y) };
    output[first + 3] = x.floor() + y.ceil() * 3.0 + (x * 0.1).trunc() + y.round_ties_even();
    output[first + 4] = (-x * x * 0.01).exp() + (x * x + 1.0).ln();
    output[first + 5] = ((-z * z * 0.01).exp() + (z * z + 1.0).ln()).sqrt() as f32;
    output[first + 6] = x.copysign(y) + (y + 100.0).recip() + x.clamp(-2.0, 2.0);
    output[first + 8] = x.sin() * y.cos() + (x * 0.02).tan() + (x * 0.1).exp2();
    output[first + 9] = (z.abs() + 1.0).log2() as f32 + (y * y + 0.5).log10() + z.sin() as f32;
    let kinds = 2.0 * x.is_finite() as u8 as f32 + 4.0 * (x * 1e38).is_infinite() as u8 as f32;
    output[first + 7] = (x < y) as u32 as f32 + kinds + f32::sqrt(x * x) - -x;
}

#[test]
fn floats_agree() {
    let input: Vec<f32> = noise(128).iter().map(|&bits| bits as f32 / 4e7 - 50.0).collect();
    agree!(floats, ONE, input, vec![0.0f32; 128 * 10]);
}

/// Index arithmetic in `i32`, with offsets below zero, cast where Rust wants `usize`.
#[kernel]
fn signed_indices(input: &[i32], output: &mut [i32], width: i32) {
    let here = global_id() as i32;
    let mut sum = 0;
    for dy in -1..2 {
        for dx in -2..=2 {
            let at = here + dy * width + dx;
            if at >= 0 && at < input.len() as i32 {
                sum += input[at as usize] * (dy * 3 + dx);
            }
        }
    }
    output[here as usize] = sum;
}

#[test]
fn signed_indices_agree() {
    let input: Vec<i32> = noise(128)
        .iter()
        .map(|&bits| (bits >> 20) as i32 - 2000)
        .collect();
    agree!(signed_indices, ONE, input, vec![0i32; 128], 16);
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "integers of 8 to 64 bits, wrapping and not",
        spelled: "`a + b`, `a.wrapping_mul(b)`, `a.rotate_left(n)`",
        kernel: wrapping::kernel,
        test: wrapping_agrees,
    },
    Feature {
        name: "division, remainder, comparison",
        spelled: "`a / b`, `a % b`, `a.abs_diff(b)`",
        kernel: integers::kernel,
        test: integers_agree,
    },
    Feature {
        name: "casts",
        spelled: "`x as i16`, `f32::from_bits(x)`",
        kernel: casts::kernel,
        test: casts_agree,
    },
    Feature {
        name: "floats",
        spelled: "`x.mul_add(y, z)`, `x.sqrt()`",
        kernel: floats::kernel,
        test: floats_agree,
    },
];
