//! 64-bit integers and pointers as sums: a constant, plus other values times constants.
//!
//! All arithmetic is modulo 2⁶⁴, as addresses are, so every sum here is exact without knowing that
//! nothing wraps. Only looking through a widening needs a promise of the narrow addition.

use std::collections::{BTreeMap, HashMap};

use crate::ir::{BinaryOp, ConvertOp, Kernel, NoWrapOp, Op, OpKind, Type, Value, Wrap};

/// Something that a sum multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Atom {
    /// A 64-bit value.
    Whole(Value),
    /// A narrower integer, zero-filled.
    Unsigned(Value),
    /// A narrower integer, sign-filled.
    Signed(Value),
}

impl Atom {
    /// The value, without its widening.
    pub(crate) fn value(self) -> Value {
        match self {
            Atom::Whole(value) | Atom::Unsigned(value) | Atom::Signed(value) => value,
        }
    }

    /// The same widening of another value.
    pub(crate) fn with_value(self, value: Value) -> Atom {
        match self {
            Atom::Whole(_) => Atom::Whole(value),
            Atom::Unsigned(_) => Atom::Unsigned(value),
            Atom::Signed(_) => Atom::Signed(value),
        }
    }
}

/// A sum of atoms with coefficients, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// Never 0.
    pub terms: BTreeMap<Atom, u64>,
    /// The constant part.
    pub constant: u64,
}

impl Sum {
    fn constant(constant: u64) -> Sum {
        Sum {
            terms: BTreeMap::new(),
            constant,
        }
    }

    fn atom(atom: Atom) -> Sum {
        Sum {
            terms: BTreeMap::from([(atom, 1)]),
            constant: 0,
        }
    }

    /// Adds `factor × other`.
    pub(crate) fn add(&mut self, other: &Sum, factor: u64) {
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        for (&atom, &coefficient) in &other.terms {
            let sum = self.terms.entry(atom).or_insert(0);
            *sum = sum.wrapping_add(coefficient.wrapping_mul(factor));
        }
        self.terms.retain(|_, coefficient| *coefficient != 0);
    }
}

/// A pointer as another pointer plus a sum of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PointerSum {
    /// No `Address` made this one.
    pub root: Value,
    /// The summand.
    pub bytes: Sum,
}

/// How integers and pointers were made, as far as sums can use it.
#[derive(Default)]
pub(crate) struct Sums {
    made_by: HashMap<Value, OpKind>,
}

/// How many operations a sum looks through, at most.
const DEPTH: u32 = 16;

impl Sums {
    /// Remembers how an operation's result was made.
    pub(crate) fn note(&mut self, op: &Op) {
        let useful = match &op.kind {
            OpKind::Address { .. } => true,
            OpKind::NoWrap(..) => true,
            OpKind::Binary(binary, ..) => {
                matches!(
                    binary,
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl
                )
            }
            OpKind::Convert(convert, _) => matches!(convert, ConvertOp::ExtendU | ConvertOp::ExtendS),
            _ => false,
        };
        if useful {
            self.made_by.insert(op.results[0], op.kind.clone());
        }
    }

    /// A pointer as a root and bytes.
    pub(crate) fn pointer(&self, kernel: &Kernel, pointer: Value) -> PointerSum {
        let mut root = pointer;
        let mut bytes = Sum::default();
        while let Some(OpKind::Address {
            base,
            index,
            scale,
            offset,
        }) = self.made_by.get(&root)
        {
            bytes.add(&self.integer(kernel, *index), u64::from(*scale));
            bytes.add(&Sum::constant(*offset as u64), 1);
            root = *base;
        }
        PointerSum { root, bytes }
    }

    /// An `I64` as a sum.
    pub(crate) fn integer(&self, kernel: &Kernel, value: Value) -> Sum {
        self.sum(kernel, value, Widening::None, DEPTH)
    }

    fn sum(&self, kernel: &Kernel, value: Value, widening: Widening, depth: u32) -> Sum {
        if let Some(bits) = kernel.as_constant(value) {
            return Sum::constant(widening.of(kernel.ty(value), bits));
        }
        let itself = || Sum::atom(widening.atom(value));
        if depth == 0 {
            return itself();
        }
        let part = |value: Value| self.sum(kernel, value, widening, depth - 1);
        let combine = |a: Value, b: Value, factor: u64| {
            let mut sum = part(a);
            sum.add(&part(b), factor);
            sum
        };
        let scaled = |a: Value, factor: u64| {
            let mut sum = Sum::default();
            sum.add(&part(a), factor);
            sum
        };
        match self.made_by.get(&value) {
            Some(&OpKind::NoWrap(op, wrap, a, b)) if widening.allowed_by(wrap) => match op {
                NoWrapOp::Add => combine(a, b, 1),
                NoWrapOp::Sub => combine(a, b, u64::MAX),
                NoWrapOp::Mul => match (kernel.as_constant(a), kernel.as_constant(b)) {
                    (_, Some(bits)) => scaled(a, widening.of(kernel.ty(b), bits)),
                    (Some(bits), _) => scaled(b, widening.of(kernel.ty(a), bits)),
                    _ => itself(),
                },
            },
            Some(&OpKind::Binary(op, a, b)) if widening == Widening::None => {
                match (op, kernel.as_constant(a), kernel.as_constant(b)) {
                    (BinaryOp::Add, ..) => combine(a, b, 1),
                    (BinaryOp::Sub, ..) => combine(a, b, u64::MAX),
                    (BinaryOp::Mul, _, Some(bits)) => scaled(a, bits),
                    (BinaryOp::Mul, Some(bits), _) => scaled(b, bits),
                    (BinaryOp::Shl, _, Some(bits)) if bits < 64 => scaled(a, 1 << bits),
                    _ => itself(),
                }
            }
            Some(&OpKind::Convert(ConvertOp::ExtendU, narrow))
                if widening == Widening::None && kernel.ty(narrow) == Type::I32 =>
            {
                self.sum(kernel, narrow, Widening::Unsigned, depth - 1)
            }
            Some(&OpKind::Convert(ConvertOp::ExtendS, narrow))
                if widening == Widening::None && kernel.ty(narrow) == Type::I32 =>
            {
                self.sum(kernel, narrow, Widening::Signed, depth - 1)
            }
            _ => itself(),
        }
    }
}

/// The extension of an operand to 64 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Widening {
    None,
    Unsigned,
    Signed,
}

impl Widening {
    fn atom(self, value: Value) -> Atom {
        match self {
            Widening::None => Atom::Whole(value),
            Widening::Unsigned => Atom::Unsigned(value),
            Widening::Signed => Atom::Signed(value),
        }
    }

    fn of(self, ty: Type, bits: u64) -> u64 {
        match self {
            Widening::Signed => crate::ir::eval::signed(ty, bits) as u64,
            Widening::None | Widening::Unsigned => bits,
        }
    }

    /// Whether the widened result is the sum of the widened operands.
    fn allowed_by(self, wrap: Wrap) -> bool {
        match self {
            Widening::None => true,
            Widening::Unsigned => matches!(wrap, Wrap::NotUnsigned | Wrap::Neither),
            Widening::Signed => matches!(wrap, Wrap::NotSigned | Wrap::Neither),
        }
    }
}
