//! `for` over ranges of every integer type, up to the ends of the types.

use headstart::prelude::*;

use crate::agree::agree;
use crate::conformance::Feature;

const ONE: Geometry = Geometry {
    groups: [1, 1, 1],
    group: [64, 1, 1],
    ..Geometry::new(1, 1)
};

/// Every form of a range, from bounds that the compiler does not know; hashes what the counter was.
macro_rules! forms {
    ($($name:ident: $ty:ident;)+) => {$(
        #[kernel]
        fn $name(input: &[$ty], output: &mut [u64]) {
            let i = global_id();
            let (a, b) = (input[2 * i], input[2 * i + 1]);
            let step = i % 5 + 1;
            let mut hash = 7u64;
            let mut rounds = 0;
            for x in a..b {
                hash = hash.wrapping_mul(31).wrapping_add(x as u64);
                rounds += 1;
                if rounds == 40 {
                    break;
                }
            }
            for x in (a..b).rev() {
                hash = hash.wrapping_mul(31).wrapping_add(x as u64);
                rounds += 1;
                if rounds >= 80 {
                    break;
                }
            }
            for x in (a..b).step_by(step) {
                if rounds % 3 == 1 {
                    rounds += 1;
                    continue;
                }
                hash = hash.wrapping_mul(31).wrapping_add(x as u64);
                rounds += 1;
                if rounds >= 120 {
                    break;
                }
            }
            for x in (a..b).rev().step_by(step) {
                hash = hash.wrapping_mul(31).wrapping_add(x as u64);
                rounds += 1;
                if rounds >= 160 {
                    break;
                }
            }
            output[i] = hash ^ rounds;
        }
    )+};
}

forms! {
    forms_u8: u8;
    forms_i8: i8;
    forms_u16: u16;
    forms_i16: i16;
    forms_u32: u32;
    forms_i32: i32;
    forms_u64: u64;
    forms_i64: i64;
}

/// Pairs of bounds: empty, reversed, one long, and at both ends of the type.
macro_rules! bounds {
    ($ty:ident) => {{
        let (least, most) = ($ty::MIN, $ty::MAX);
        let middle = least / 2 + most / 2;
        let pairs = [
            (least, least),
            (most, most),
            (most, least),
            (least, least + 1),
            (most - 1, most),
            (least, least + 9),
            (most - 9, most),
            (middle, middle + 20),
            (middle, middle - 1),
            (0, 3),
            (3, 0),
            (least, most),
        ];
        let pairs: Vec<$ty> = (0..64)
            .flat_map(|i| {
                let (a, b) = pairs[i % pairs.len()];
                [a, b]
            })
            .collect();
        pairs
    }};
}

#[test]
fn every_form_agrees_in_every_narrow_type() {
    agree!(forms_u8, ONE, bounds!(u8), vec![0u64; 64]);
    agree!(forms_i8, ONE, bounds!(i8), vec![0u64; 64]);
    agree!(forms_u16, ONE, bounds!(u16), vec![0u64; 64]);
    agree!(forms_i16, ONE, bounds!(i16), vec![0u64; 64]);
    agree!(forms_u32, ONE, bounds!(u32), vec![0u64; 64]);
    agree!(forms_i32, ONE, bounds!(i32), vec![0u64; 64]);
}

/// A 64-bit counter promises not to come within a step of its type's end.
#[test]
fn every_form_agrees_in_64_bits_away_from_the_end() {
    let near =
        |bounds: Vec<i64>| -> Vec<i64> { bounds.into_iter().map(|bound| bound.min(i64::MAX - 8)).collect() };
    agree!(forms_i64, ONE, near(bounds!(i64)), vec![0u64; 64]);
    let near =
        |bounds: Vec<u64>| -> Vec<u64> { bounds.into_iter().map(|bound| bound.min(u64::MAX - 8)).collect() };
    agree!(forms_u64, ONE, near(bounds!(u64)), vec![0u64; 64]);
}

/// Bounds and steps that are known, so that the counter may keep its type; inclusive ends.
#[kernel]
fn known_bounds(input: &[u32], output: &mut [u64]) {
    let i = global_id();
    let mut hash = input[i] as u64;
    for x in 0..=255u8 {
        hash = hash.wrapping_mul(31).wrapping_add(x as u64);
    }
    for x in (0..250u8).step_by(100) {
        hash = hash.wrapping_mul(31).wrapping_add(x as u64);
    }
    for x in (-128..=127i8).rev() {
        hash = hash.wrapping_mul(31).wrapping_add(x as u64);
    }
    for x in (0..10u8).step_by(300) {
        hash = hash.wrapping_mul(31).wrapping_add(x as u64);
    }
    for x in (0..100).step_by(7) {
        hash = hash.wrapping_mul(31).wrapping_add(input[x] as u64);
    }
    for x in 5..=5usize {
        hash = hash.wrapping_mul(31).wrapping_add(x as u64);
    }
    for x in 6..=5i32 {
        hash = hash.wrapping_mul(31).wrapping_add(x as u64);
    }
    for mut x in 0..4u64 {
        x *= 10;
        hash = hash.wrapping_mul(31).wrapping_add(x);
    }
    for _ in 0..3 {
        hash = hash.wrapping_mul(3);
    }
    output[i] = hash;
}

#[test]
fn known_bounds_agree() {
    agree!(known_bounds, ONE, crate::agree::noise(128), vec![0u64; 64]);
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[Feature {
    name: "counted loops",
    spelled: "`for i in (a..b).rev().step_by(3)`",
    kernel: known_bounds::kernel,
    test: known_bounds_agree,
}];
