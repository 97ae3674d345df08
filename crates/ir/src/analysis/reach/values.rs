//! The intervals of a kernel's values, as terms.

use super::Walk;
use super::term::Term;
use crate::analysis::definitions::Definition;
use crate::ir::{BinaryOp, ConvertOp, Id, NoWrapOp, OpKind, Type, UnaryOp, Value, eval};

/// Operations between a value and what it is made of.
const MOST_DEPTH: u32 = 400;

impl Walk<'_> {
    /// The interval of a value: an integer's, read as signed; of a pointer's distance in bytes from its root.
    pub(super) fn value(&mut self, value: Value) -> usize {
        if let Some(&(_, number)) = self.known.iter().rev().find(|(own, _)| *own == value) {
            return number;
        }
        if let Some(&number) = self.seen.get(&value) {
            return number;
        }
        self.visits = self.visits.saturating_sub(1);
        self.depth += 1;
        let number = self.defined(value);
        self.depth -= 1;
        self.seen.insert(value, number);
        number
    }

    fn defined(&mut self, value: Value) -> usize {
        let ty = self.kernel.ty(value);
        let bits = if ty.is_pointer() { 64 } else { ty.bits() };
        if let Some(number) = self.kernel.as_constant(value) {
            return match ty.is_integer() {
                true => self.constant(eval::signed(ty, number)),
                false => self.any(bits),
            };
        }
        if let Some(param) = self.kernel.params.iter().position(|param| param.value == value) {
            return match ty {
                Type::Ptr(_) => self.constant(0),
                _ if ty.is_integer() => self.term(Term::Scalar(param)),
                _ => self.any(bits),
            };
        }
        if self.visits == 0 || self.depth > MOST_DEPTH {
            return self.any(bits);
        }
        let definitions = self.definitions;
        match definitions.get(value) {
            Some(Definition::LoopParam { .. }) => match self.carried.get(&value) {
                Some(&number) => number,
                None => self.any(bits),
            },
            Some(Definition::Result { kind, passed, .. }) => self.result(kind, passed, ty, bits),
            None => self.any(bits),
        }
    }

    fn result(&mut self, kind: &OpKind, passed: &[Value], ty: Type, bits: u32) -> usize {
        match kind {
            OpKind::Id(id) => self.id(*id),
            OpKind::ArrayAddress(_) => self.constant(0),
            OpKind::Binary(op, a, b) if ty.is_integer() => self.binary(*op, *a, *b, bits),
            OpKind::NoWrap(op, _, a, b) => {
                let op = match op {
                    NoWrapOp::Add => BinaryOp::Add,
                    NoWrapOp::Sub => BinaryOp::Sub,
                    NoWrapOp::Mul => BinaryOp::Mul,
                };
                self.binary(op, *a, *b, bits)
            }
            OpKind::Unary(UnaryOp::Neg, a) => {
                let (zero, a) = (self.constant(0), self.value(*a));
                let less = self.term(Term::Sub(zero, a));
                self.term(Term::Signed(bits, less))
            }
            OpKind::Select(_, a, b) if ty.is_integer() || ty.is_pointer() => {
                let (a, b) = (self.value(*a), self.value(*b));
                self.term(Term::Join(a, b))
            }
            OpKind::Convert(op, a) => {
                let from = self.kernel.ty(*a);
                match op {
                    ConvertOp::ExtendS if from.is_integer() => self.value(*a),
                    ConvertOp::ExtendU if from.is_integer() => {
                        let a = self.value(*a);
                        self.term(Term::Unsigned(from.bits(), a))
                    }
                    ConvertOp::ExtendU => {
                        let two = self.constant(2);
                        self.below(two)
                    }
                    ConvertOp::Truncate if from.is_integer() => {
                        let a = self.value(*a);
                        self.term(Term::Signed(bits, a))
                    }
                    ConvertOp::ToGeneric | ConvertOp::FromGeneric => self.value(*a),
                    _ => self.any(bits),
                }
            }
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } => {
                let (base, index) = (self.value(*base), self.value(*index));
                let (scale, offset) = (self.constant(i64::from(*scale)), self.constant(*offset));
                let way = self.term(Term::Mul(index, scale));
                let there = self.term(Term::Add(base, way));
                self.term(Term::Add(there, offset))
            }
            OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. }
                if (ty.is_integer() || ty.is_pointer()) && !passed.is_empty() =>
            {
                let mut all = self.value(passed[0]);
                for &other in &passed[1..] {
                    let other = self.value(other);
                    all = self.term(Term::Join(all, other));
                }
                all
            }
            _ => self.any(bits),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value, bits: u32) -> usize {
        let shift = |walk: &Self| {
            walk.kernel
                .as_constant(b)
                .filter(|&count| count < u64::from(bits).min(63))
        };
        let unsigned = |walk: &mut Self, value: Value| {
            let own = walk.value(value);
            walk.term(Term::Unsigned(bits, own))
        };
        let plain = |walk: &mut Self, make: fn(usize, usize) -> Term| {
            let (a, b) = (walk.value(a), walk.value(b));
            walk.term(make(a, b))
        };
        let of_bits = |walk: &mut Self, make: fn(usize, usize) -> Term| {
            let (a, b) = (unsigned(walk, a), unsigned(walk, b));
            walk.term(make(a, b))
        };
        let exact = match op {
            BinaryOp::Add => plain(self, Term::Add),
            BinaryOp::Sub => plain(self, Term::Sub),
            BinaryOp::Mul => plain(self, Term::Mul),
            BinaryOp::DivS => plain(self, Term::Div),
            BinaryOp::RemS => plain(self, Term::Rem),
            BinaryOp::MinS => plain(self, Term::Min),
            BinaryOp::MaxS => plain(self, Term::Max),
            BinaryOp::And => plain(self, Term::And),
            BinaryOp::Or | BinaryOp::Xor => plain(self, Term::Or),
            BinaryOp::DivU => of_bits(self, Term::Div),
            BinaryOp::RemU => of_bits(self, Term::Rem),
            BinaryOp::MinU => of_bits(self, Term::Min),
            BinaryOp::MaxU => of_bits(self, Term::Max),
            BinaryOp::Shl => {
                let Some(count) = shift(self) else {
                    return self.any(bits);
                };
                let (a, factor) = (self.value(a), self.constant(1 << count));
                self.term(Term::Mul(a, factor))
            }
            BinaryOp::ShrU => {
                let Some(count) = shift(self) else {
                    return self.any(bits);
                };
                let (a, divisor) = (unsigned(self, a), self.constant(1 << count));
                self.term(Term::Div(a, divisor))
            }
            BinaryOp::ShrS => {
                let Some(count) = shift(self) else {
                    return self.any(bits);
                };
                let (a, divisor) = (self.value(a), self.constant(1 << count));
                self.term(Term::Div(a, divisor))
            }
            _ => return self.any(bits),
        };
        self.term(Term::Signed(bits, exact))
    }

    fn id(&mut self, id: Id) -> usize {
        let own = |dimension: u8| i64::from(self.group[usize::from(dimension.min(2))]);
        let all = self.group.iter().map(|&size| i64::from(size)).product::<i64>();
        let (low, high) = match id {
            Id::GroupSize(dimension) => (own(dimension), own(dimension)),
            Id::Local(dimension) => (0, own(dimension) - 1),
            Id::GroupCount(dimension) => return self.term(Term::Groups(dimension)),
            Id::Group(dimension) => {
                let count = self.term(Term::Groups(dimension));
                return self.below(count);
            }
            Id::Lane => (0, 31),
            Id::SubGroupSize | Id::MaxSubGroupSize => (1, 32),
            Id::SubGroup => (0, all),
            Id::SubGroupCount => (1, all),
        };
        let (low, high) = (self.constant(low), self.constant(high));
        self.term(Term::Between(low, high))
    }
}
