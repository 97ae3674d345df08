//! Results in every direction against exact arithmetic with big integers, which shares no code with the tested functions. A
//! result is correct if it lies on the right side of the exact number, and the next representable one lies beyond it.

use std::cmp::Ordering;

use super::*;
use crate::random::Random;

/// A natural number, its 32-bit digits from the lowest on, none of them zero at the end.
#[derive(Clone, PartialEq, Eq)]
struct Natural(Vec<u32>);

impl Natural {
    fn new(mut number: u128) -> Natural {
        let mut digits = Vec::new();
        while number != 0 {
            digits.push(number as u32);
            number >>= 32;
        }
        Natural(digits)
    }

    fn trimmed(mut digits: Vec<u32>) -> Natural {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Natural(digits)
    }

    fn digit(&self, at: usize) -> u32 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn compare(&self, other: &Natural) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    fn plus(&self, other: &Natural) -> Natural {
        let mut carry = 0;
        let length = self.0.len().max(other.0.len()) + 1;
        let digits = (0..length).map(|at| {
            let sum = u64::from(self.digit(at)) + u64::from(other.digit(at)) + carry;
            carry = sum >> 32;
            sum as u32
        });
        Natural::trimmed(digits.collect())
    }

    /// The difference to a number that is not greater.
    fn minus(&self, other: &Natural) -> Natural {
        let mut borrow = 0;
        let digits = (0..self.0.len()).map(|at| {
            let difference = i64::from(self.digit(at)) - i64::from(other.digit(at)) - borrow;
            borrow = i64::from(difference < 0);
            difference as u32
        });
        Natural::trimmed(digits.collect())
    }

    fn times(&self, other: &Natural) -> Natural {
        let mut digits = vec![0u32; self.0.len() + other.0.len()];
        for (i, &x) in self.0.iter().enumerate() {
            let mut carry = 0u64;
            for j in 0..=other.0.len() {
                if i + j < digits.len() {
                    let sum = u64::from(x) * u64::from(other.digit(j)) + u64::from(digits[i + j]) + carry;
                    digits[i + j] = sum as u32;
                    carry = sum >> 32;
                }
            }
        }
        Natural::trimmed(digits)
    }

    fn shifted(&self, by: u32) -> Natural {
        let mut digits = vec![0; by as usize / 32];
        digits.extend(&self.0);
        Natural(digits).times(&Natural::new(1 << (by % 32)))
    }
}

/// `±natural × 2^exponent`.
#[derive(Clone)]
struct Dyadic {
    negative: bool,
    natural: Natural,
    exponent: i32,
}

impl Dyadic {
    /// The exact value of a finite float, from its bits.
    fn of(ty: Type, bits: u64) -> Dyadic {
        let (digits, least) = format(ty);
        let negative = bits >> (ty.bits() - 1) & 1 == 1;
        let magnitude = bits & ((1 << (ty.bits() - 1)) - 1);
        let field = (magnitude >> (digits - 1)) as i32;
        let fraction = magnitude & ((1 << (digits - 1)) - 1);
        let hidden = u64::from(field > 0) << (digits - 1);
        Dyadic {
            negative,
            natural: Natural::new(u128::from(hidden | fraction)),
            exponent: least + (field - 1).max(0),
        }
    }

    fn aligned(&self, exponent: i32) -> Natural {
        self.natural.shifted((self.exponent - exponent).unsigned_abs())
    }

    fn plus(&self, other: &Dyadic) -> Dyadic {
        let exponent = self.exponent.min(other.exponent);
        let (x, y) = (self.aligned(exponent), other.aligned(exponent));
        let (negative, natural) = match (self.negative == other.negative, x.compare(&y)) {
            (true, _) => (self.negative, x.plus(&y)),
            (false, Ordering::Less) => (other.negative, y.minus(&x)),
            (false, _) => (self.negative, x.minus(&y)),
        };
        Dyadic {
            negative,
            natural,
            exponent,
        }
    }

    fn times(&self, other: &Dyadic) -> Dyadic {
        Dyadic {
            negative: self.negative != other.negative,
            natural: self.natural.times(&other.natural),
            exponent: self.exponent + other.exponent,
        }
    }

    fn negated(&self) -> Dyadic {
        Dyadic {
            negative: !self.negative,
            ..self.clone()
        }
    }

    fn half(&self) -> Dyadic {
        Dyadic {
            exponent: self.exponent - 1,
            ..self.clone()
        }
    }

    fn sign(&self) -> Ordering {
        match (self.natural.0.is_empty(), self.negative) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        }
    }

    fn compare(&self, other: &Dyadic) -> Ordering {
        self.plus(&other.negated()).sign()
    }
}

/// A float's place in the order of all of its type; both zeros have one.
fn place(ty: Type, bits: u64) -> i64 {
    let magnitude = (bits & (sign(ty, true) - 1)) as i64;
    if bits & sign(ty, true) != 0 {
        -magnitude
    } else {
        magnitude
    }
}

fn at_place(ty: Type, place: i64) -> u64 {
    sign(ty, place < 0) | place.unsigned_abs()
}

/// Checks a result against an exact number that is not zero: `exact` says how a number compares with it.
fn check(ty: Type, rounding: Rounding, found: u64, exact: impl Fn(&Dyadic) -> Ordering, what: &str) {
    let what = format!("{what}, {} to {ty}: {found:#x}", rounding.name());
    let (at, end) = (place(ty, found), infinity(ty) as i64);
    assert!(at.abs() <= end, "{what}: a NaN");
    // How a float compares with the exact number; an infinity does as it does with all.
    let against = |place: i64| match place {
        _ if place >= end => Ordering::Greater,
        _ if place <= -end => Ordering::Less,
        _ => exact(&Dyadic::of(ty, at_place(ty, place))),
    };
    let zero = Dyadic::of(ty, 0);
    let negative = exact(&zero) == Ordering::Greater;
    assert_eq!(found & sign(ty, true) != 0, negative, "{what}: the sign");
    let down = match rounding {
        Rounding::Down => true,
        Rounding::Up => false,
        Rounding::Zero => !negative,
        Rounding::Nearest => {
            nearest(ty, at, end, &exact, &what);
            return;
        }
    };
    if down {
        assert_ne!(against(at), Ordering::Greater, "{what}: it lies above");
        assert_eq!(
            against(at + 1),
            Ordering::Greater,
            "{what}: the next one is no more above"
        );
    } else {
        assert_ne!(against(at), Ordering::Less, "{what}: it lies below");
        assert_eq!(
            against(at - 1),
            Ordering::Less,
            "{what}: the next one is no more below"
        );
    }
}

fn nearest(ty: Type, at: i64, end: i64, exact: &impl Fn(&Dyadic) -> Ordering, what: &str) {
    // What would follow the largest number if there were more counts as the infinity.
    let number = |place: i64| match place.abs() {
        magnitude if magnitude >= end => {
            let last = Dyadic::of(ty, at_place(ty, place.signum() * (end - 1)));
            let before = Dyadic::of(ty, at_place(ty, place.signum() * (end - 2)));
            last.plus(&last.plus(&before.negated()))
        }
        _ => Dyadic::of(ty, at_place(ty, place)),
    };
    let even = at & 1 == 0;
    for (other, beyond) in [(at - 1, Ordering::Greater), (at + 1, Ordering::Less)] {
        if other.abs() > end {
            continue;
        }
        let middle = number(at).plus(&number(other)).half();
        let compared = exact(&middle);
        let fits = compared == beyond.reverse() || compared == Ordering::Equal && even;
        assert!(fits, "{what}: {:#x} is nearer", at_place(ty, other));
    }
}

struct Numbers(Random);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// A finite number, often an edge, often of an exponent near `near`.
    fn number(&mut self, ty: Type, near: u64) -> u64 {
        let (digits, _) = format(ty);
        let fractions = (1u64 << (digits - 1)) - 1;
        let fraction = match self.bits() % 6 {
            0 => 0,
            1 => fractions,
            2 => 1,
            3 => self.bits() & self.bits() & self.bits() & fractions,
            _ => self.bits() & fractions,
        };
        let fields = infinity(ty) >> (digits - 1);
        let field = match self.bits() % 8 {
            0 => 0,
            1 => 1,
            2 => fields - 1,
            3..=5 => (near + self.bits() % u64::from(2 * digits + 3)) % fields,
            _ => self.bits() % fields,
        };
        sign(ty, self.bits() & 1 == 1) | field << (digits - 1) | fraction
    }
}

const CASES: usize = 6_000;

/// Three numbers for every case, and every direction.
fn for_each(mut visit: impl FnMut(Type, Rounding, [u64; 3])) {
    for ty in [Type::F32, Type::F64] {
        let mut numbers = Numbers(Random::new(u64::from(ty.bits())));
        for case in 0..CASES {
            let near = numbers.bits() % (infinity(ty) >> (format(ty).0 - 1));
            let operands = [(); 3].map(|()| numbers.number(ty, near));
            visit(ty, Rounding::ALL[case % 4], operands);
        }
    }
}

#[test]
fn sums() {
    for_each(|ty, rounding, [a, b, _]| {
        for subtracts in [false, true] {
            let other = b ^ sign(ty, subtracts);
            let exact = Dyadic::of(ty, a).plus(&Dyadic::of(ty, other));
            if exact.sign() != Ordering::Equal {
                let found = sum_of(ty, rounding, a, b, subtracts);
                check(
                    ty,
                    rounding,
                    found,
                    |x| x.compare(&exact),
                    &format!("{a:#x} + {other:#x}"),
                );
            }
        }
    });
}

#[test]
fn products_and_fused_sums() {
    for_each(|ty, rounding, [a, b, c]| {
        let exact = Dyadic::of(ty, a).times(&Dyadic::of(ty, b));
        if exact.sign() != Ordering::Equal {
            let found = product(ty, rounding, a, b);
            check(
                ty,
                rounding,
                found,
                |x| x.compare(&exact),
                &format!("{a:#x} × {b:#x}"),
            );
        }
        // The sum often cancels: the summand is the rounded product.
        for c in [c, product(ty, Rounding::Nearest, a, b) ^ sign(ty, true)] {
            if matches!(parts(ty, c), Parts::Infinite { .. }) {
                continue;
            }
            let exact = exact.plus(&Dyadic::of(ty, c));
            if exact.sign() != Ordering::Equal {
                let found = fma(ty, rounding, a, b, c);
                let what = format!("{a:#x} × {b:#x} + {c:#x}");
                check(ty, rounding, found, |x| x.compare(&exact), &what);
            }
        }
    });
}

#[test]
fn quotients() {
    for_each(|ty, rounding, [a, b, _]| {
        let (dividend, divisor) = (Dyadic::of(ty, a), Dyadic::of(ty, b));
        if dividend.sign() != Ordering::Equal && divisor.sign() != Ordering::Equal {
            // x is below a ÷ b where x × b is below a, or above if b is negative.
            let against = |x: &Dyadic| {
                let compared = x.times(&divisor).compare(&dividend);
                if divisor.negative {
                    compared.reverse()
                } else {
                    compared
                }
            };
            let found = quotient(ty, rounding, a, b);
            check(ty, rounding, found, against, &format!("{a:#x} ÷ {b:#x}"));
        }
    });
}

#[test]
fn roots() {
    for_each(|ty, rounding, [a, b, _]| {
        let squared = product(ty, Rounding::Nearest, b, b);
        for a in [a, squared] {
            let a = a & (sign(ty, true) - 1);
            if a == 0 || a >= infinity(ty) {
                continue;
            }
            let exact = Dyadic::of(ty, a);
            // x is below √a where it is negative or x² is below a.
            let against = |x: &Dyadic| match x.sign() {
                Ordering::Less => Ordering::Less,
                _ => x.times(x).compare(&exact),
            };
            check(ty, rounding, root(ty, rounding, a), against, &format!("√{a:#x}"));
        }
    });
}

#[test]
fn conversions() {
    let mut numbers = Numbers(Random::new(7));
    for from in [Type::F64, Type::F32] {
        for to in [Type::F32, Type::F16, Type::Bf16] {
            for case in 0..CASES {
                // Most are numbers that the other type has about.
                let a = match case % 3 {
                    0 => numbers.number(from, 0),
                    _ => converted(to, from, Rounding::Nearest, numbers.number(to, 1)) ^ (numbers.bits() % 8),
                };
                let exact = Dyadic::of(from, a);
                if exact.sign() != Ordering::Equal {
                    let rounding = Rounding::ALL[case % 4];
                    let found = converted(from, to, rounding, a);
                    check(to, rounding, found, |x| x.compare(&exact), &format!("{a:#x}"));
                }
            }
        }
    }
    for to in [Type::F16, Type::Bf16, Type::F32, Type::F64] {
        for case in 0..CASES {
            let number = numbers.bits() as i64 >> (numbers.bits() % 64);
            let rounding = Rounding::ALL[case % 4];
            let found = from_integer(to, rounding, i128::from(number));
            if number == 0 {
                assert_eq!(found, 0);
                continue;
            }
            let exact = Dyadic {
                negative: number < 0,
                natural: Natural::new(u128::from(number.unsigned_abs())),
                exponent: 0,
            };
            check(to, rounding, found, |x| x.compare(&exact), &number.to_string());
        }
    }
}

#[test]
fn to_nearest_it_is_what_the_host_does() {
    let mut numbers = Numbers(Random::new(3));
    for case in 0..200_000u64 {
        let near = numbers.bits() % 2047;
        let [a, b, c] = [(); 3].map(|()| match case % 50 {
            // NaNs and infinities among them.
            0 => numbers.bits() | 0x7ff << 52,
            1 => [f64::INFINITY.to_bits(), (-0.0f64).to_bits()][numbers.bits() as usize & 1],
            _ => numbers.number(Type::F64, near),
        });
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        // By its bits: what an optimizing compiler makes of `is_nan` of a root can leave a NaN its payload (Rust 1.95).
        let made = |x: f64| match x.to_bits() & (u64::MAX >> 1) > f64::INFINITY.to_bits() {
            true => nan(Type::F64),
            false => x.to_bits(),
        };
        let n = Rounding::Nearest;
        assert_eq!(sum_of(Type::F64, n, a, b, false), made(x + y), "{x:e} + {y:e}");
        assert_eq!(sum_of(Type::F64, n, a, b, true), made(x - y), "{x:e} - {y:e}");
        assert_eq!(product(Type::F64, n, a, b), made(x * y), "{x:e} × {y:e}");
        assert_eq!(quotient(Type::F64, n, a, b), made(x / y), "{x:e} ÷ {y:e}");
        assert_eq!(root(Type::F64, n, a), made(x.sqrt()), "√{x:e}");
        assert_eq!(
            fma(Type::F64, n, a, b, c),
            made(x.mul_add(y, z)),
            "{x:e} × {y:e} + {z:e}"
        );
        let single = x as f32;
        let expected = if single.is_nan() {
            0x7fc0_0000
        } else {
            single.to_bits()
        };
        assert_eq!(
            converted(Type::F64, Type::F32, n, a),
            u64::from(expected),
            "{x:e}"
        );
    }
}

#[test]
fn exact_zeros_have_the_sign_of_the_direction() {
    let one = 1.0f64.to_bits();
    let (zero, minus_zero) = (0, 1 << 63);
    for rounding in Rounding::ALL {
        let expected = if rounding == Rounding::Down {
            minus_zero
        } else {
            zero
        };
        assert_eq!(sum_of(Type::F64, rounding, one, one, true), expected);
        assert_eq!(sum_of(Type::F64, rounding, zero, minus_zero, false), expected);
        assert_eq!(fma(Type::F64, rounding, one, one, one | minus_zero), expected);
        assert_eq!(
            sum_of(Type::F64, rounding, minus_zero, minus_zero, false),
            minus_zero
        );
        assert_eq!(product(Type::F64, rounding, minus_zero, one), minus_zero);
        assert_eq!(product(Type::F64, rounding, zero, one), zero);
        assert_eq!(root(Type::F64, rounding, minus_zero), minus_zero);
        assert_eq!(converted(Type::F16, Type::F32, rounding, 0x8000), 0x8000_0000);
    }
}
