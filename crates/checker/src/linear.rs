//! Terms of integer sums and multiples: a pass may add an invariant four times or four times it at once.
//!
//! The term of an integer of `w` bits is read as 128 / w numbers of `w` bits each. Sums, differences and known multiples are
//! computed on these numbers, wrapping, as they are on the integer. So two ways to write one linear combination have one term.
//! A cell of memory, whose term is a random vector, counts as often as it is added. If everything cancels but a known number,
//! the term is known, too.

use super::terms::Term;
use crate::ir::{BinaryOp, Type};

/// An operation that is linear in its operands, where the others are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linear {
    Add,
    Sub,
    /// By a known operand.
    Mul,
    /// By a known count.
    Shl,
    Neg,
    /// The complement: `-a - 1`.
    Not,
    /// `base + index × scale + offset`.
    Address {
        scale: u64,
        offset: u64,
    },
}

impl Linear {
    /// The integer operations that are linear.
    pub(crate) fn of(op: BinaryOp) -> Option<Linear> {
        match op {
            BinaryOp::Add => Some(Linear::Add),
            BinaryOp::Sub => Some(Linear::Sub),
            BinaryOp::Mul => Some(Linear::Mul),
            BinaryOp::Shl => Some(Linear::Shl),
            _ => None,
        }
    }

    /// The result's term, for operands given by term and bits. `None` where it is not linear in them.
    pub(crate) fn term(self, ty: Type, operands: &[(Term, u64)]) -> Option<Term> {
        let minus = 1u64.wrapping_neg();
        let known = |number: u64| (Term::KNOWN, number);
        let sum = match (self, operands) {
            (Linear::Add, &[a, b]) => vec![(a, 1), (b, 1)],
            (Linear::Sub, &[a, b]) => vec![(a, 1), (b, minus)],
            (Linear::Mul, &[a, b]) if b.0.is_known() => vec![(a, b.1)],
            (Linear::Mul, &[a, b]) if a.0.is_known() => vec![(b, a.1)],
            (Linear::Shl, &[a, count]) if count.0.is_known() => {
                let factor = if count.1 < u64::from(ty.bits()) {
                    1 << count.1
                } else {
                    0
                };
                vec![(a, factor)]
            }
            (Linear::Neg, &[a]) => vec![(a, minus)],
            (Linear::Not, &[a]) => vec![(a, minus), (known(1), minus)],
            (Linear::Address { scale, offset }, &[base, index]) => {
                vec![(base, 1), (index, scale), (known(offset), 1)]
            }
            _ => return None,
        };
        let width = ty.bits();
        let mut total = Vector::default();
        let mut bits = 0u64;
        for ((term, number), factor) in sum {
            let vector = match term.is_known() {
                true => UNIT.times(number, width),
                false => Vector(term.0),
            };
            total = total.plus(vector.times(factor, width), width);
            bits = bits.wrapping_add(number.wrapping_mul(factor));
        }
        Some(match total == UNIT.times(bits & ty.mask(), width) {
            true => Term::KNOWN,
            // 0 is taken.
            false => Term(total.0.max(1)),
        })
    }
}

/// 128 bits, read as numbers of some width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Vector(u128);

/// What the number 1 is.
const UNIT: Vector = Vector(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);

impl Vector {
    fn times(self, factor: u64, width: u32) -> Vector {
        self.map(width, |number| number.wrapping_mul(factor))
    }

    fn plus(self, other: Vector, width: u32) -> Vector {
        let mut shift = 0;
        self.map(width, |number| {
            let sum = number.wrapping_add((other.0 >> shift) as u64);
            shift += width;
            sum
        })
    }

    /// Changes each number; the low `width` bits of what `change` gives count.
    fn map(self, width: u32, mut change: impl FnMut(u64) -> u64) -> Vector {
        let mask = u128::MAX >> (128 - width);
        let numbers = (0..128).step_by(width as usize);
        Vector(numbers.fold(0, |result, shift| {
            let number = (self.0 >> shift & mask) as u64;
            result | (u128::from(change(number)) & mask) << shift
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEGERS: [Type; 4] = [Type::I8, Type::I16, Type::I32, Type::I64];

    #[test]
    fn however_a_multiple_is_made_its_term_is_one() {
        for ty in INTEGERS {
            let x = (Term(0x0123_4567_89ab_cdef_1122_3344_5566_7788), 200 & ty.mask());
            let bits = |factor: u64| x.1.wrapping_mul(factor) & ty.mask();
            let known = |number: u64| (Term::KNOWN, number & ty.mask());
            let add = |a: (Term, u64), b: (Term, u64)| {
                let term = Linear::Add.term(ty, &[a, b]).expect("linear");
                (term, a.1.wrapping_add(b.1) & ty.mask())
            };
            let three_times = add(add(x, x), x);
            assert_eq!(three_times.1, bits(3));
            assert_eq!(Linear::Mul.term(ty, &[known(3), x]), Some(three_times.0));
            let four_times = (Linear::Shl.term(ty, &[x, known(2)]).expect("linear"), bits(4));
            assert_eq!(Linear::Sub.term(ty, &[four_times, x]), Some(three_times.0));
            // Modulo the width, minus one is the largest number.
            assert_eq!(
                Linear::Neg.term(ty, &[x]),
                Linear::Mul.term(ty, &[x, known(ty.mask())])
            );
            assert_eq!(
                Linear::Not.term(ty, &[x]),
                Some(
                    add(
                        (Linear::Neg.term(ty, &[x]).expect("linear"), bits(u64::MAX)),
                        known(u64::MAX)
                    )
                    .0
                )
            );
            assert_ne!(add(x, x).0, three_times.0);
            assert_ne!(add(x, known(1)).0, x.0);
        }
    }

    #[test]
    fn what_cancels_is_known() {
        let x = (Term(77), 5);
        assert_eq!(Linear::Sub.term(Type::I32, &[x, x]), Some(Term::KNOWN));
        let plus = (
            Linear::Add
                .term(Type::I32, &[x, (Term::KNOWN, 9)])
                .expect("linear"),
            14,
        );
        assert_eq!(Linear::Sub.term(Type::I32, &[plus, x]), Some(Term::KNOWN));
        assert_eq!(Linear::Mul.term(Type::I32, &[x, (Term(78), 6)]), None);
    }

    #[test]
    fn an_address_is_base_and_multiple_of_the_index() {
        let (base, index) = ((Term::KNOWN, 1 << 40), (Term(77), 6));
        let address = Linear::Address { scale: 4, offset: 8 }.term(Type::I64, &[base, index]);
        let bytes = (
            Linear::Shl
                .term(Type::I64, &[index, (Term::KNOWN, 2)])
                .expect("linear"),
            24,
        );
        assert_eq!(
            address,
            Linear::Add.term(Type::I64, &[bytes, (Term::KNOWN, (1 << 40) + 8)])
        );
    }
}
