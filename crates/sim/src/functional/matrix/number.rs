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

mod terms;
#[cfg(test)]
mod tests;

use terms::{KEPT, KEPT_OF_BYTES, NAN_F32, Term, shortened, step};

use crate::ir::carried::{Element, Multiplier, half_of_e4m3};

/// What the elements of an operand are to a product.
trait Multiplied {
    /// Whether it is a float of 8 bits.
    fn is_of_eight_bits(&self) -> bool;
    /// The value of an integer's bits.
    fn integer(self, bits: u64) -> i64;
    /// A factor as a term of this unit.
    fn factor(self, unit: Multiplier, bits: u64) -> Term;
    /// A factor or an accumulator as a term.
    fn term(self, bits: u64) -> Term;
}

impl Multiplied for Element {
    fn is_of_eight_bits(&self) -> bool {
        matches!(self, Element::E4m3 | Element::E5m2)
    }

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

    fn factor(self, unit: Multiplier, bits: u64) -> Term {
        match (self, unit) {
            (Element::E4m3, Multiplier::WarpGroup) => Term::of_e4m3(bits),
            _ => self.term(bits),
        }
    }

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

/// The types of the factors and of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// The elements of A.
    pub a: Element,
    /// The elements of B.
    pub b: Element,
    /// The elements of C and D.
    pub sum: Element,
    /// Whether sums of integers saturate at the bounds of 32 bits.
    pub saturates: bool,
    /// Who multiplies: it decides how 8-bit floats are summed, and which types exist.
    pub unit: Multiplier,
}

impl Kinds {
    /// Whether the bits of its results are known.
    pub(crate) fn are_known(self) -> bool {
        let is_group = self.unit == Multiplier::WarpGroup;
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
    pub(crate) fn multiply(self, left: &[u64], right: &[u64], start: &[u64], inner: usize) -> Vec<u64> {
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
                    if self.unit == Multiplier::WarpGroup {
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

/// Calls `dot` with each row, each column, and their summand.
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

/// A fused multiplication and addition of doubles. If several operands are NaN, the second factor is kept, or else the sum.
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
