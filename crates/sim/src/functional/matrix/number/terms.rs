//! Terms of a tensor core's sum: how they are aligned, cut off, added and packed.
//!
//! The parent's documentation has the rules and how they were found.

use super::Element;

/// Terms are cut off this many bits below the largest exponent.
pub(super) const KEPT: i32 = 25;
/// The same for 8-bit floats in products of warp groups.
pub(super) const KEPT_OF_BYTES: i32 = 13;
/// The smallest exponent to which terms are aligned.
const LEAST_EXPONENT: i32 = -133;
/// The bits of such a sum in single precision that are always clear.
const CLEARED: u64 = (1 << 10) - 1;

/// Every result that is NaN has these bits.
pub(super) const NAN_F32: u32 = 0x7fff_ffff;
pub(super) const NAN_F16: u16 = 0x7fff;

/// A number as tensor cores decompose it: `significand × 2^(exponent − fraction)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    is_negative: bool,
    exponent: i32,
    significand: u64,
    fraction: i32,
    class: Class,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Finite,
    Infinite,
    Nan,
}

impl Term {
    pub(super) const ZERO: Term = Term {
        is_negative: false,
        exponent: 0,
        significand: 0,
        fraction: 0,
        class: Class::Finite,
    };

    /// The number with these bits in an IEEE 754 format.
    pub(super) fn of(bits: u64, exponent_bits: u32, fraction_bits: u32) -> Term {
        let fraction = bits & ((1 << fraction_bits) - 1);
        let top = (1 << exponent_bits) - 1;
        let biased = bits >> fraction_bits & top;
        let bias = (top >> 1) as i32;
        let class = match (biased == top, fraction) {
            (true, 0) => Class::Infinite,
            (true, _) => Class::Nan,
            (false, _) => Class::Finite,
        };
        let (exponent, significand) = match biased {
            0 => (1 - bias, fraction),
            _ => (biased as i32 - bias, fraction | 1 << fraction_bits),
        };
        Term {
            is_negative: bits >> (exponent_bits + fraction_bits) & 1 == 1,
            exponent,
            significand,
            fraction: fraction_bits as i32,
            class,
        }
    }

    /// The number with these bits: 4 of exponent, 3 of fraction, no infinities.
    pub(super) fn of_e4m3(bits: u64) -> Term {
        let (biased, fraction) = (bits >> 3 & 15, bits & 7);
        Term {
            is_negative: bits >> 7 & 1 == 1,
            exponent: biased.max(1) as i32 - 7,
            significand: fraction | u64::from(biased != 0) << 3,
            fraction: 3,
            class: match (biased, fraction) {
                (15, 7) => Class::Nan,
                _ => Class::Finite,
            },
        }
    }

    pub(super) fn times(self, other: Term) -> Term {
        let classes = [self.class, other.class];
        let is_zero = |term: Term| term.class == Class::Finite && term.significand == 0;
        let class = if classes.contains(&Class::Nan) {
            Class::Nan
        } else if classes.contains(&Class::Infinite) {
            match is_zero(self) || is_zero(other) {
                true => Class::Nan,
                false => Class::Infinite,
            }
        } else {
            Class::Finite
        };
        Term {
            is_negative: self.is_negative != other.is_negative,
            exponent: self.exponent + other.exponent,
            significand: self.significand * other.significand,
            fraction: self.fraction + other.fraction,
            class,
        }
    }
}

/// A sum in single precision, without the bits of its fraction that are not kept. A sum that becomes 0 is +0.
pub(super) fn shortened(bits: u64) -> u64 {
    let kept = bits & !CLEARED;
    match bits {
        _ if bits == u64::from(NAN_F32) => bits,
        _ if bits != kept && kept << 33 == 0 => 0,
        _ => kept,
    }
}

/// One step of a tensor core: the products plus the old sum, as bits of `sum`. Each term is cut off `kept` bits below the
/// largest exponent.
pub(super) fn step(
    products: impl Iterator<Item = Term> + Clone,
    start: Term,
    sum: Element,
    kept: i32,
) -> u64 {
    let terms = products.chain([start]);
    let is_half = sum == Element::F16;
    let (mut largest, mut all_finite, mut all_zero) = (LEAST_EXPONENT, true, true);
    for term in terms.clone() {
        all_finite &= term.class == Class::Finite;
        // The exponent of a zero says nothing.
        if term.significand != 0 {
            largest = largest.max(term.exponent);
            all_zero = false;
        }
    }
    if !all_finite {
        return special(terms, is_half);
    }
    if all_zero {
        // Zeros alone, of whatever signs.
        return 0;
    }
    let last = largest - kept;
    let total: i64 = terms
        .filter(|term| term.significand != 0)
        .map(|term| {
            let up = term.exponent - term.fraction - last;
            // A significand has 24 bits at most, and its exponent is no more than the largest.
            let part = match up >= 0 {
                true => term.significand << up,
                false => term.significand.checked_shr(up.unsigned_abs()).unwrap_or(0),
            } as i64;
            if term.is_negative { -part } else { part }
        })
        .sum();
    packed(total, last, is_half)
}

/// The result of terms that are not all finite: NaN if one is NaN or infinities differ.
fn special(terms: impl Iterator<Item = Term>, is_half: bool) -> u64 {
    let mut infinite = [false; 2];
    for term in terms {
        match term.class {
            Class::Finite => {}
            Class::Infinite => infinite[usize::from(term.is_negative)] = true,
            Class::Nan => infinite = [true; 2],
        }
    }
    match infinite {
        [true, true] if is_half => NAN_F16.into(),
        [true, true] => NAN_F32.into(),
        [_, is_negative] => pack(is_negative, if is_half { 0x7c00 } else { 0x7f80_0000 }, is_half),
    }
}

fn pack(is_negative: bool, magnitude: u64, is_half: bool) -> u64 {
    let sign = if is_half { 15 } else { 31 };
    u64::from(is_negative) << sign | magnitude
}

/// `total × 2^last`: cut off towards zero in single precision, rounded to the nearest in half, ties to even. It is infinite
/// beyond the range. A result of 0 is +0.
fn packed(total: i64, last: i32, is_half: bool) -> u64 {
    let (fraction, bias, infinity) = if is_half {
        (10, 15, 0x7c00)
    } else {
        (23, 127, 0x7f80_0000)
    };
    let size = total.unsigned_abs();
    if size == 0 {
        return 0;
    }
    let exponent = last + 63 - size.leading_zeros() as i32;
    // The weight of the lowest bit that is kept.
    let unit = exponent.max(1 - bias) - fraction;
    let significand = match unit - last {
        down @ 1.. => {
            let kept = size.checked_shr(down as u32).unwrap_or(0);
            let half = 1u64.checked_shl(down as u32 - 1).unwrap_or(0);
            let rest = size - (kept << down.min(63));
            let is_up = is_half && (rest > half || rest == half && kept & 1 == 1) && half != 0;
            kept + u64::from(is_up)
        }
        up => size << -up,
    };
    if significand == 0 {
        return 0;
    }
    // A significand that rounding made longer carries into the exponent.
    let biased = match significand >> fraction {
        0 => 0,
        _ => (unit + fraction + bias - 1) as u64,
    };
    let magnitude = ((biased << fraction) + significand).min(infinity);
    pack(total < 0, magnitude, is_half)
}
