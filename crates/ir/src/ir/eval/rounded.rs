//! Sums, products, quotients, roots and conversions, exact and then rounded once in any direction, in integers.
//!
//! A result is a magnitude of up to 128 bits with a weight, and a mark that something follows below its last bit. A
//! magnitude with that mark always has two bits more than the type keeps, so that the mark decides no tie by itself.

use super::super::rule::Rounding;
use super::super::types::Type;

/// An exact value: `magnitude × 2^exponent`, and less than one unit more if `more`.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    magnitude: u128,
    exponent: i32,
    more: bool,
}

/// A float taken apart.
#[derive(Clone, Copy)]
enum Parts {
    Nan,
    Infinite { negative: bool },
    Finite(Exact),
}

/// Binary digits of a float type, the hidden one included, and the exponent of the last digit of its least number.
fn format(ty: Type) -> (u32, i32) {
    match ty {
        Type::F16 => (11, -24),
        Type::Bf16 => (8, -133),
        Type::F32 => (24, -149),
        _ => (53, -1074),
    }
}

fn sign(ty: Type, negative: bool) -> u64 {
    u64::from(negative) << (ty.bits() - 1)
}

fn infinity(ty: Type) -> u64 {
    let (digits, _) = format(ty);
    let exponent_bits = ty.bits() - digits;
    ((1 << exponent_bits) - 1) << (digits - 1)
}

/// The canonical NaN.
fn nan(ty: Type) -> u64 {
    infinity(ty) | 1 << (format(ty).0 - 2)
}

fn parts(ty: Type, bits: u64) -> Parts {
    let (digits, least) = format(ty);
    let negative = bits & sign(ty, true) != 0;
    let bits = bits & (sign(ty, true) - 1);
    if bits > infinity(ty) {
        return Parts::Nan;
    }
    if bits == infinity(ty) {
        return Parts::Infinite { negative };
    }
    let (field, fraction) = (bits >> (digits - 1), bits & ((1 << (digits - 1)) - 1));
    let (magnitude, exponent) = match field {
        0 => (fraction, least),
        _ => (fraction | 1 << (digits - 1), least + field as i32 - 1),
    };
    Parts::Finite(Exact {
        negative,
        magnitude: u128::from(magnitude),
        exponent,
        more: false,
    })
}

fn width(magnitude: u128) -> i32 {
    128 - magnitude.leading_zeros() as i32
}

/// Rounds once.
fn round(ty: Type, rounding: Rounding, exact: Exact) -> u64 {
    let Exact {
        negative,
        magnitude,
        exponent,
        more,
    } = exact;
    if magnitude == 0 {
        return sign(ty, negative);
    }
    let (digits, least) = format(ty);
    // The exponent of the last digit that is kept.
    let last = (exponent + width(magnitude) - digits as i32).max(least);
    let dropped = last - exponent;
    let (kept, half, below) = match dropped {
        ..=0 => (magnitude << -dropped, false, more),
        1..=127 => (
            magnitude >> dropped,
            magnitude >> (dropped - 1) & 1 == 1,
            more || magnitude & ((1 << (dropped - 1)) - 1) != 0,
        ),
        128 => (0, magnitude >> 127 == 1, more || magnitude << 1 != 0),
        _ => (0, false, more || magnitude != 0),
    };
    let away = match rounding {
        Rounding::Nearest => half && (below || kept & 1 == 1),
        Rounding::Zero => false,
        Rounding::Down => negative && (half || below),
        Rounding::Up => !negative && (half || below),
    };
    // A carry out of the significand is one more in the exponent.
    let bits = (u128::from((last - least).unsigned_abs()) << (digits - 1)) + kept + u128::from(away);
    let largest = infinity(ty) - 1;
    let bits = match (bits <= u128::from(largest), rounding, negative) {
        (true, ..) => bits as u64,
        (_, Rounding::Zero, _) | (_, Rounding::Down, false) | (_, Rounding::Up, true) => largest,
        _ => infinity(ty),
    };
    sign(ty, negative) | bits
}

/// The sign of an exact zero that two numbers of different signs add up to.
fn zero_is_negative(rounding: Rounding) -> bool {
    rounding == Rounding::Down
}

/// The sum of two that are not zero.
fn sum(ty: Type, rounding: Rounding, x: Exact, y: Exact) -> u64 {
    let top = |x: Exact| x.exponent + width(x.magnitude);
    let (high, low) = if top(x) >= top(y) { (x, y) } else { (y, x) };
    // The larger one, with two bits free above it. The bits that the smaller one then loses are so far below that the
    // difference still has many more bits than a type keeps.
    let room = 126 - width(high.magnitude);
    let (magnitude, exponent) = (high.magnitude << room, high.exponent - room);
    let (aligned, lost) = match low.exponent - exponent {
        up @ 0.. => (low.magnitude << up, false),
        down @ -127..0 => {
            let kept = low.magnitude >> -down;
            (kept, kept << -down != low.magnitude)
        }
        _ => (0, true),
    };
    let (negative, magnitude) = if high.negative == low.negative {
        (high.negative, magnitude + aligned)
    } else if magnitude >= aligned {
        (high.negative, magnitude - aligned - u128::from(lost))
    } else {
        (low.negative, aligned - magnitude)
    };
    if magnitude == 0 && !lost {
        return sign(ty, zero_is_negative(rounding));
    }
    let exact = Exact {
        negative,
        magnitude,
        exponent,
        more: lost,
    };
    round(ty, rounding, exact)
}

/// `a × b + c`, rounded once.
pub(super) fn fma(ty: Type, rounding: Rounding, a: u64, b: u64, c: u64) -> u64 {
    let product = match (parts(ty, a), parts(ty, b)) {
        (Parts::Nan, _) | (_, Parts::Nan) => return nan(ty),
        (Parts::Infinite { negative }, Parts::Infinite { negative: other }) => Parts::Infinite {
            negative: negative != other,
        },
        (Parts::Infinite { negative }, Parts::Finite(x))
        | (Parts::Finite(x), Parts::Infinite { negative }) => {
            if x.magnitude == 0 {
                return nan(ty);
            }
            Parts::Infinite {
                negative: negative != x.negative,
            }
        }
        (Parts::Finite(x), Parts::Finite(y)) => Parts::Finite(Exact {
            negative: x.negative != y.negative,
            magnitude: x.magnitude * y.magnitude,
            exponent: x.exponent + y.exponent,
            more: false,
        }),
    };
    add(ty, rounding, product, parts(ty, c))
}

fn add(ty: Type, rounding: Rounding, x: Parts, y: Parts) -> u64 {
    match (x, y) {
        (Parts::Nan, _) | (_, Parts::Nan) => nan(ty),
        (Parts::Infinite { negative }, Parts::Infinite { negative: other }) if negative != other => nan(ty),
        (Parts::Infinite { negative }, _) | (_, Parts::Infinite { negative }) => {
            sign(ty, negative) | infinity(ty)
        }
        (Parts::Finite(x), Parts::Finite(y)) => match (x.magnitude, y.magnitude) {
            (0, 0) if x.negative == y.negative => sign(ty, x.negative),
            (0, 0) => sign(ty, zero_is_negative(rounding)),
            (0, _) => round(ty, rounding, y),
            (_, 0) => round(ty, rounding, x),
            _ => sum(ty, rounding, x, y),
        },
    }
}

/// `a + b`, or `a - b`.
pub(super) fn sum_of(ty: Type, rounding: Rounding, a: u64, b: u64, subtracts: bool) -> u64 {
    add(ty, rounding, parts(ty, a), parts(ty, b ^ sign(ty, subtracts)))
}

/// `a × b`.
pub(super) fn product(ty: Type, rounding: Rounding, a: u64, b: u64) -> u64 {
    // A zero of the product's sign leaves the product as it is, its own zero included.
    let zero = (a ^ b) & sign(ty, true);
    fma(ty, rounding, a, b, zero)
}

/// `a / b`.
pub(super) fn quotient(ty: Type, rounding: Rounding, a: u64, b: u64) -> u64 {
    let negative = (a ^ b) & sign(ty, true) != 0;
    let (zero, infinite) = (sign(ty, negative), sign(ty, negative) | infinity(ty));
    match (parts(ty, a), parts(ty, b)) {
        (Parts::Nan, _) | (_, Parts::Nan) | (Parts::Infinite { .. }, Parts::Infinite { .. }) => nan(ty),
        (Parts::Infinite { .. }, _) => infinite,
        (_, Parts::Infinite { .. }) => zero,
        (Parts::Finite(x), Parts::Finite(y)) => match (x.magnitude, y.magnitude) {
            (0, 0) => nan(ty),
            (0, _) => zero,
            (_, 0) => infinite,
            (dividend, divisor) => {
                // 74 bits of the quotient at least.
                let room = 127 - width(dividend);
                let dividend = dividend << room;
                let exact = Exact {
                    negative,
                    magnitude: dividend / divisor,
                    exponent: x.exponent - room - y.exponent,
                    more: !dividend.is_multiple_of(divisor),
                };
                round(ty, rounding, exact)
            }
        },
    }
}

/// `√a`.
pub(super) fn root(ty: Type, rounding: Rounding, a: u64) -> u64 {
    match parts(ty, a) {
        Parts::Nan | Parts::Infinite { negative: true } => nan(ty),
        Parts::Infinite { negative: false } => a,
        Parts::Finite(Exact { magnitude: 0, .. }) => a,
        Parts::Finite(Exact { negative: true, .. }) => nan(ty),
        Parts::Finite(x) => {
            // 63 bits of the root, of a number whose exponent is even.
            let room = 126 - width(x.magnitude);
            let room = room - (x.exponent - room).rem_euclid(2);
            let square = x.magnitude << room;
            let magnitude = square.isqrt();
            let exact = Exact {
                negative: false,
                magnitude,
                exponent: (x.exponent - room) / 2,
                more: magnitude * magnitude != square,
            };
            round(ty, rounding, exact)
        }
    }
}

/// A float as one of another type.
pub(super) fn converted(from: Type, to: Type, rounding: Rounding, a: u64) -> u64 {
    match parts(from, a) {
        Parts::Nan => nan(to),
        Parts::Infinite { negative } => sign(to, negative) | infinity(to),
        Parts::Finite(exact) => round(to, rounding, exact),
    }
}

/// An integer as a float.
pub(super) fn from_integer(to: Type, rounding: Rounding, a: i128) -> u64 {
    let exact = Exact {
        negative: a < 0,
        magnitude: a.unsigned_abs(),
        exponent: 0,
        more: false,
    };
    round(to, rounding, exact)
}

#[cfg(test)]
mod tests;
