//! The numbers of tensor cores, and the product of a row and a column.
//!
//! NVIDIA documents the operands and leaves the sums open ("the accumulation order, rounding and handling of subnormal inputs
//! is unspecified"). The rules below were found by running each instruction on random tiles on an H100 (compute capability 9.0,
//! driver 580), and give the bits of every tile tried, special values included:
//!
//! - `f16`, `bf16`, `tf32`: all products of the instruction and the accumulator are brought to the largest exponent among them, at
//!   least -133, and cut off 25 bits below it, then added exactly. The sum is cut off to `f32`, or rounded to the nearest `f16`. A product's
//!   exponent is the sum of its factors', whether or not its significand reaches 2; subnormal factors are not normalised. A sum
//!   that is 0 is +0, even of terms that are all -0.
//! - `e4m3`, `e5m2`: the factors become `f16`. The products whose `k` has bit 1 clear are added to 0 in one such step, the
//!   others to its result in a second, and the accumulator is added last, as by `add.rn.f32`.
//! - `f64`: fused multiplications and additions, `k` ascending. Of several operands of one that are no numbers, its second factor
//!   is kept before its summand, and that before its first factor.
//! - Integers: exact, and at the end modulo 2³², or with `satfinite` at the nearest bound. Single bits: the same, of `and`.
//!
//! Products of warp groups (`wgmma`; an H200, driver 580) follow the same rules, except those of 8-bit floats: all products
//! and the accumulator are cut off 13 bits below the largest exponent and added in one step, and of a sum in `f32` 13 bits of
//! the fraction are kept. Subnormal `e4m3` are not normalised there; as `f16` they are.
//!
//! `headstart/tests/tensor_cores` compares each again with the GPU at hand.

use half::f16;

/// How much below the largest exponent a term is cut off, in bits.
const KEPT: i32 = 25;
/// The same of 8-bit floats in products of warp groups.
const KEPT_OF_BYTES: i32 = 13;
/// The smallest exponent to which terms are brought.
const LEAST_EXPONENT: i32 = -133;
/// The bits of such a sum in single precision that are always clear.
const CLEARED: u64 = (1 << 10) - 1;

/// The result of every product that is NaN.
const NAN_F32: u32 = 0x7fff_ffff;
const NAN_F16: u16 = 0x7fff;

/// The type of an operand's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// Single precision, of which 10 bits of the fraction count.
    Tf32,
    /// 8 bits with 4 of exponent.
    E4m3,
    /// 8 bits with 5 of exponent.
    E5m2,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 8 bits.
    S8,
    /// An unsigned integer of 8 bits.
    U8,
    /// A signed integer of 4 bits.
    S4,
    /// An unsigned integer of 4 bits.
    U4,
    /// A bit.
    B1,
}

impl Element {
    /// The type that PTX calls so.
    pub fn named(name: &str) -> Option<Element> {
        Some(match name {
            "f16" => Element::F16,
            "bf16" => Element::Bf16,
            "tf32" => Element::Tf32,
            "e4m3" => Element::E4m3,
            "e5m2" => Element::E5m2,
            "f32" => Element::F32,
            "f64" => Element::F64,
            "s32" => Element::I32,
            "s8" => Element::S8,
            "u8" => Element::U8,
            "s4" => Element::S4,
            "u4" => Element::U4,
            "b1" => Element::B1,
            _ => return None,
        })
    }

    /// Bits of an element in a register.
    pub fn bits(self) -> u32 {
        match self {
            Element::B1 => 1,
            Element::S4 | Element::U4 => 4,
            Element::E4m3 | Element::E5m2 | Element::S8 | Element::U8 => 8,
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 | Element::F32 | Element::I32 => 32,
            Element::F64 => 64,
        }
    }

    /// Elements in a register: registers have 32 bits, or 64 for `f64`.
    pub fn per_register(self) -> u32 {
        (32 / self.bits()).max(1)
    }

    /// Whether it is an integer.
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1
        )
    }

    fn is_of_eight_bits(self) -> bool {
        matches!(self, Element::E4m3 | Element::E5m2)
    }

    /// The bit of the sign of a float.
    pub fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// The value of an integer's bits.
    fn integer(self, bits: u64) -> i64 {
        match self {
            Element::S8 => i64::from(bits as u8 as i8),
            Element::U8 => i64::from(bits as u8),
            Element::S4 => i64::from((bits as u8) << 4) << 56 >> 60,
            Element::U4 => (bits & 15) as i64,
            Element::B1 => (bits & 1) as i64,
            _ => i64::from(bits as u32 as i32),
        }
    }

    /// A factor as a term, in who multiplies.
    fn factor(self, unit: Unit, bits: u64) -> Term {
        match (self, unit) {
            (Element::E4m3, Unit::WarpGroup) => Term::of_e4m3(bits),
            _ => self.term(bits),
        }
    }

    /// A factor or an accumulator as a term.
    fn term(self, bits: u64) -> Term {
        match self {
            Element::F16 => Term::of(bits, 5, 10),
            Element::Bf16 => Term::of(bits, 8, 7),
            Element::Tf32 => Term::of(bits >> 13, 8, 10),
            Element::E4m3 => Term::of(u64::from(half_of_e4m3(bits as u8)), 5, 10),
            // The same exponents, and two of the ten bits of the fraction.
            Element::E5m2 => Term::of((bits & 0xff) << 8, 5, 10),
            _ => Term::of(bits, 8, 23),
        }
    }
}

/// Who multiplies: it decides how sums of 8-bit floats are made, and which types there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A sub-group: `mma`, `wmma.mma`.
    SubGroup,
    /// Four sub-groups: `wgmma.mma_async`.
    WarpGroup,
}

/// The factors, and the summand of their products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// The elements of A.
    pub a: Element,
    /// The elements of B.
    pub b: Element,
    /// The elements of C and D.
    pub sum: Element,
    /// Whether integers stay at the bounds of 32 bits.
    pub saturates: bool,
    /// Who multiplies.
    pub unit: Unit,
}

impl Kinds {
    /// Whether the bits of its results are known.
    pub fn are_known(self) -> bool {
        let is_group = self.unit == Unit::WarpGroup;
        match (self.a, self.b, self.sum) {
            (Element::F16, Element::F16, Element::F16 | Element::F32) => true,
            (Element::Bf16 | Element::Tf32, b, Element::F32) => self.a == b,
            (a, b, Element::F32) => a.is_of_eight_bits() && b.is_of_eight_bits(),
            (a, b, Element::F16) => is_group && a.is_of_eight_bits() && b.is_of_eight_bits(),
            (Element::B1, Element::B1, Element::I32) => is_group,
            (a, b, Element::I32) => {
                let are_integers = a.is_integer() && b.is_integer() && a.bits() == b.bits();
                are_integers && (!is_group || a.bits() == 8)
            }
            (Element::F64, Element::F64, Element::F64) => !is_group,
            _ => false,
        }
    }

    /// D, row by row: A times B plus C. `left` has the rows of A, `right` the columns of B, `inner` elements each; `start` the rows of
    /// C. All are bits.
    pub fn multiply(self, left: &[u64], right: &[u64], start: &[u64], inner: usize) -> Vec<u64> {
        match self.sum {
            Element::I32 => {
                let left: Vec<i64> = left.iter().map(|&bits| self.a.integer(bits)).collect();
                let right: Vec<i64> = right.iter().map(|&bits| self.b.integer(bits)).collect();
                each(&left, &right, start, inner, |row, column, start| {
                    let products = row.iter().zip(column).map(|(a, b)| a * b);
                    let sum = Element::I32.integer(start) + products.sum::<i64>();
                    let sum = match self.saturates {
                        true => sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)),
                        false => sum,
                    };
                    u64::from(sum as u32)
                })
            }
            Element::F64 => each(left, right, start, inner, |row, column, start| {
                let pairs = row.iter().zip(column);
                pairs.fold(start, |sum, (&a, &b)| fused(a, b, sum))
            }),
            sum => {
                let left: Vec<Term> = left.iter().map(|&bits| self.a.factor(self.unit, bits)).collect();
                let right: Vec<Term> = right.iter().map(|&bits| self.b.factor(self.unit, bits)).collect();
                each(&left, &right, start, inner, |row, column, start| {
                    let pairs = row.iter().zip(column).map(|(&a, &b)| a.times(b));
                    if !self.a.is_of_eight_bits() {
                        return step(pairs, sum.term(start), sum, KEPT);
                    }
                    if self.unit == Unit::WarpGroup {
                        let bits = step(pairs, sum.term(start), sum, KEPT_OF_BYTES);
                        return if sum == Element::F32 {
                            shortened(bits)
                        } else {
                            bits
                        };
                    }
                    let half = |odd: usize| {
                        let of_half = pairs.clone().enumerate().filter(move |(k, _)| k >> 1 & 1 == odd);
                        of_half.map(|(_, product)| product)
                    };
                    let first = step(half(0), Term::ZERO, sum, KEPT);
                    let both = step(half(1), sum.term(first), sum, KEPT);
                    let total = f32::from_bits(both as u32) + f32::from_bits(start as u32);
                    u64::from(if total.is_nan() { NAN_F32 } else { total.to_bits() })
                })
            }
        }
    }
}

/// Calls with each row, each column, and its summand.
fn each<T>(
    left: &[T],
    right: &[T],
    start: &[u64],
    inner: usize,
    dot: impl Fn(&[T], &[T], u64) -> u64,
) -> Vec<u64> {
    let rows = left.chunks(inner);
    let pairs = rows.flat_map(|row| right.chunks(inner).map(move |column| (row, column)));
    let starts = start.iter();
    pairs
        .zip(starts)
        .map(|((row, column), &start)| dot(row, column, start))
        .collect()
}

/// The bits in half precision of a number with 4 bits of exponent and 3 of fraction, which has no infinity.
pub fn half_of_e4m3(bits: u8) -> u16 {
    let sign = u16::from(bits >> 7) << 15;
    let rest = bits & 0x7f;
    if rest == 0x7f {
        return sign | NAN_F16;
    }
    // As the fraction and exponent of a half they are 2⁻⁸ of what is meant.
    let scaled = f16::from_bits(u16::from(rest) << 7).to_f32() * 256.0;
    sign | f16::from_f32(scaled).to_bits()
}

/// A number as tensor cores take it apart: `significand × 2^(exponent − fraction)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
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
    const ZERO: Term = Term {
        is_negative: false,
        exponent: 0,
        significand: 0,
        fraction: 0,
        class: Class::Finite,
    };

    /// The number of these bits, as IEEE 754 lays them out.
    fn of(bits: u64, exponent_bits: u32, fraction_bits: u32) -> Term {
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

    /// Of 4 bits of exponent and 3 of fraction, without infinities.
    fn of_e4m3(bits: u64) -> Term {
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

    fn times(self, other: Term) -> Term {
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

/// A sum in single precision without the bits of its fraction that are not kept. Where nothing is left, 0 has no sign.
fn shortened(bits: u64) -> u64 {
    let kept = bits & !CLEARED;
    match bits {
        _ if bits == u64::from(NAN_F32) => bits,
        _ if bits != kept && kept << 33 == 0 => 0,
        _ => kept,
    }
}

/// One step of a tensor core: the products plus the old sum, as bits of `sum`. Each term is cut `kept` bits below the largest
/// exponent.
fn step(products: impl Iterator<Item = Term> + Clone, start: Term, sum: Element, kept: i32) -> u64 {
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

/// `total × 2^last`, cut off towards zero in single precision, rounded to the nearest in half, ties to even; infinite beyond the
/// range. Where nothing is left, 0 has no sign.
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

/// A fused multiplication and addition of doubles. Of several operands that are no numbers the second factor is kept, or else
/// the sum.
fn fused(a: u64, b: u64, sum: u64) -> u64 {
    const QUIET: u64 = 1 << 51;
    const NO_NUMBER: u64 = 0xfff8 << 48;
    let is_nan = |bits: &&u64| f64::from_bits(**bits).is_nan();
    if let Some(bits) = [b, sum, a].iter().find(is_nan) {
        return bits | QUIET;
    }
    let made = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(sum));
    if made.is_nan() { NO_NUMBER } else { made.to_bits() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(values: &[f32]) -> Vec<u64> {
        let bits = values.iter().map(|&value| f16::from_f32(value).to_bits());
        bits.map(u64::from).collect()
    }

    fn bf16_bits(value: f32) -> u64 {
        u64::from(half::bf16::from_f32(value).to_bits())
    }

    fn single(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    impl Kinds {
        /// One element.
        fn dot(self, row: &[u64], column: &[u64], start: u64) -> u64 {
            self.multiply(row, column, &[start], row.len())[0]
        }
    }

    const HALF: Kinds = Kinds {
        a: Element::F16,
        b: Element::F16,
        sum: Element::F32,
        saturates: false,
        unit: Unit::SubGroup,
    };

    #[test]
    fn small_sums_are_exact() {
        let dot = HALF.dot(
            &halves(&[1.5, -2.0, 0.25]),
            &halves(&[4.0, 0.5, 8.0]),
            single(0.5),
        );
        assert_eq!(dot, single(6.0 - 1.0 + 2.0 + 0.5));
        let brains = Kinds {
            a: Element::Bf16,
            b: Element::Bf16,
            ..HALF
        };
        assert_eq!(
            brains.dot(&[bf16_bits(3.0)], &[bf16_bits(-0.5)], single(1.0)),
            single(-0.5)
        );
    }

    #[test]
    fn what_is_far_below_the_largest_term_is_cut_off() {
        // 2^-25 of the largest is kept, 2^-26 is not, however many there are.
        let tiny = |exponent: i32| f16::from_f32(2f32.powi(exponent)).to_bits();
        let column = vec![u64::from(tiny(-13)); 16];
        let dot = |exponent: i32| {
            let row = vec![u64::from(tiny(exponent)); 16];
            f32::from_bits(HALF.dot(&row, &column, single(1.0)) as u32)
        };
        assert_eq!(dot(-12), 1.0 + 16.0 * 2f32.powi(-25));
        assert_eq!(dot(-13), 1.0);
    }

    #[test]
    fn terms_are_cut_off_somewhere_below_subnormal_numbers() {
        let brains = Kinds {
            a: Element::Bf16,
            b: Element::Bf16,
            ..HALF
        };
        // 2^-158 takes part in the sum, 2^-159 does not: what is left of 2^-149 is a subnormal number, or none.
        let power = |exponent| bf16_bits(2f32.powi(exponent));
        let less = |exponent: i32| {
            let row = [power(-75), bf16_bits(-2f32.powi(exponent))];
            brains.dot(&row, &[power(-74), power(-79)], 0)
        };
        assert_eq!(less(-79), 0);
        assert_eq!(less(-80), 1);
    }

    #[test]
    fn sums_are_cut_off_and_not_rounded() {
        let row = halves(&[1.0, 2f32.powi(-12)]);
        let column = halves(&[1.0, 1.5 * 2f32.powi(-12)]);
        // 1 + 1.5 * 2^-24: the nearest single is 1 + 2^-23.
        assert_eq!(HALF.dot(&row, &column, 0), single(1.0));
        let to_half = Kinds {
            sum: Element::F16,
            ..HALF
        };
        let row = halves(&[1.0, 1.5 * 2f32.powi(-11)]);
        assert_eq!(
            to_half.dot(&row, &halves(&[1.0, 1.0]), 0),
            halves(&[1.0 + 2f32.powi(-10)])[0]
        );
    }

    #[test]
    fn infinities_and_what_is_no_number() {
        let inf = f32::INFINITY;
        let dot = |row: &[f32], column: &[f32], start: f32| {
            HALF.dot(&halves(row), &halves(column), single(start)) as u32
        };
        assert_eq!(dot(&[inf], &[-1.0], 0.0), f32::NEG_INFINITY.to_bits());
        assert_eq!(dot(&[inf], &[0.0], 0.0), NAN_F32);
        assert_eq!(dot(&[inf], &[1.0], -inf), NAN_F32);
        assert_eq!(dot(&[f32::NAN], &[1.0], 0.0), NAN_F32);
        // A sum that is 0 has no sign, whatever the terms have.
        assert_eq!(dot(&[-0.0], &[1.0], -0.0), 0);
        assert_eq!(dot(&[-1.0], &[1.0], 1.0), 0);
    }

    #[test]
    fn integers_wrap_or_stay_at_their_bounds() {
        let kinds = |saturates| Kinds {
            a: Element::S8,
            b: Element::U8,
            sum: Element::I32,
            saturates,
            unit: Unit::SubGroup,
        };
        let start = i32::MAX as u64;
        assert_eq!(kinds(false).dot(&[1], &[1], start), i32::MIN as u32 as u64);
        assert_eq!(kinds(true).dot(&[1], &[1], start), start);
        assert_eq!(kinds(true).dot(&[0xff], &[0xff], 0) as u32 as i32, -255);
        assert_eq!(Element::S4.integer(0xf8), -8);
        assert_eq!(Element::U4.integer(0xf8), 8);
    }

    #[test]
    fn of_doubles_that_are_no_numbers_the_second_factor_comes_first() {
        let nan = |payload: u64| 0x7ff0 << 48 | payload;
        let quiet = |payload: u64| nan(payload) | 1 << 51;
        let one = 1f64.to_bits();
        assert_eq!(fused(nan(1), nan(2), nan(3)), quiet(2));
        assert_eq!(fused(nan(1), one, nan(3)), quiet(3));
        assert_eq!(fused(nan(1), one, one), quiet(1));
        // Of several products the last that says so: each is the summand of the next.
        let kinds = Kinds {
            a: Element::F64,
            b: Element::F64,
            sum: Element::F64,
            ..HALF
        };
        assert_eq!(kinds.dot(&[one, one], &[nan(1), nan(2)], one), quiet(2));
        assert_eq!(kinds.dot(&[nan(4), nan(5)], &[nan(1), one], one), quiet(1));
    }

    #[test]
    fn warp_groups_keep_fewer_bits_of_eight_bit_floats() {
        let kinds = |unit| Kinds {
            a: Element::E5m2,
            b: Element::E5m2,
            unit,
            ..HALF
        };
        let e5m2 = |value: f32| u64::from(f16::from_f32(value).to_bits() >> 8);
        let row: Vec<u64> = [1.0, 2f32.powi(-7), 2f32.powi(-7)].map(e5m2).to_vec();
        let column: Vec<u64> = [1.0, 2f32.powi(-6), 2f32.powi(-7)].map(e5m2).to_vec();
        // 2^-13 of the largest is kept, 2^-14 is not.
        let dot = |unit| f32::from_bits(kinds(unit).dot(&row, &column, 0) as u32);
        assert_eq!(dot(Unit::WarpGroup), 1.0 + 2f32.powi(-13));
        assert_eq!(dot(Unit::SubGroup), 1.0 + 2f32.powi(-13) + 2f32.powi(-14));
        // Nor is more of the fraction of a sum.
        let start = 1.0 + 2f32.powi(-13) + 2f32.powi(-14);
        let dot = kinds(Unit::WarpGroup).dot(&[0], &[0], single(start));
        assert_eq!(dot, single(1.0 + 2f32.powi(-13)));
        assert_eq!(
            kinds(Unit::WarpGroup).dot(&[0], &[0], NAN_F32.into()),
            NAN_F32.into()
        );
    }

    #[test]
    fn numbers_of_eight_bits_are_halves() {
        let value = |bits| f16::from_bits(half_of_e4m3(bits)).to_f32();
        assert_eq!(value(0x38), 1.0);
        assert_eq!(value(0xb8), -1.0);
        assert_eq!(value(0x7e), 448.0);
        assert_eq!(value(0x01), 2f32.powi(-9));
        assert!(value(0x7f).is_nan());
    }
}
