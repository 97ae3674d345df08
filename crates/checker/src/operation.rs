//! What tells one operation from another in a term, and which operations a pass may rewrite or drop.

use super::linear::Linear;
use super::terms::OPERATION;
use crate::ir::{BinaryOp, ConvertOp, FloatRule, Type, UnaryOp};

/// What tells one operation from another.
pub(super) struct Operation {
    pub number: u64,
    pub name: String,
    /// The order of the operands does not matter.
    pub commutes: bool,
    /// A known operand that makes the operation give the other one as it is: which, and its bits.
    pub neutral: Option<(usize, u64)>,
    /// A known operand with these bits makes the operation give them, whatever the other one is.
    pub absorbing: Option<u64>,
    /// It gives its operand as it is.
    pub is_identity: bool,
    /// It is an integer operation that is linear, on this type.
    pub linear: Option<(Linear, Type)>,
    /// It changes the width of an integer: which conversion, from and to which type.
    pub width: Option<(ConvertOp, Type, Type)>,
}

impl Operation {
    pub(crate) fn new(kind: u64, code: u64, ty: Type, name: &str) -> Operation {
        Operation {
            number: OPERATION + (kind << 16 | code << 8 | type_number(ty)),
            name: name.to_owned(),
            commutes: false,
            neutral: None,
            absorbing: None,
            is_identity: false,
            linear: None,
            width: None,
        }
    }

    /// The operation with this rule: another one than without.
    pub(crate) fn ruled(mut self, rule: FloatRule) -> Operation {
        self.number |= (rule.rounding as u64) << 24 | u64::from(rule.flush) << 26;
        if rule != FloatRule::EXACT {
            self.name.push_str(&rule.to_string());
        }
        self
    }

    /// Whether a known operand decides the result alone.
    pub(crate) fn is_decided(&self, mut known: impl Iterator<Item = Option<u64>>) -> bool {
        self.absorbing
            .is_some_and(|absorbing| known.any(|bits| bits == Some(absorbing)))
    }

    /// The operand whose term is the result's. `known` gives the bits of an operand if they say everything.
    pub(crate) fn passes_on(&self, known: impl Fn(usize) -> Option<u64>) -> Option<usize> {
        if self.is_identity {
            return Some(0);
        }
        let (operand, bits) = self.neutral?;
        if known(operand) == Some(bits) {
            return Some(1 - operand);
        }
        (self.commutes && known(1 - operand) == Some(bits)).then_some(operand)
    }
}

pub(super) fn type_number(ty: Type) -> u64 {
    Type::ALL.iter().position(|&other| other == ty).unwrap_or(0) as u64
}

pub(super) fn binary(op: BinaryOp, ty: Type) -> Operation {
    let code = BinaryOp::ALL.iter().position(|&other| other == op).unwrap_or(0);
    Operation {
        // Sums have a linear form, which does not know an order.
        commutes: op.commutes() && op != BinaryOp::Add,
        // Operations that the builder folds away.
        neutral: match op {
            BinaryOp::Or | BinaryOp::Xor | BinaryOp::ShrS | BinaryOp::ShrU => Some((1, 0)),
            BinaryOp::DivU => Some((1, 1)),
            BinaryOp::And => Some((1, ty.mask())),
            _ => None,
        },
        // That of a product is its linear form's.
        absorbing: (op == BinaryOp::And).then_some(0),
        linear: Linear::of(op).map(|linear| (linear, ty)),
        ..Operation::new(2, code as u64, ty, op.name())
    }
}

pub(super) fn unary(op: UnaryOp, ty: Type) -> Operation {
    Operation {
        linear: match op {
            UnaryOp::Neg => Some((Linear::Neg, ty)),
            UnaryOp::Not if ty.is_integer() => Some((Linear::Not, ty)),
            _ => None,
        },
        ..Operation::new(1, op as u64, ty, op.name())
    }
}

pub(super) fn address(scale: u32, offset: i64) -> Operation {
    let linear = Linear::Address {
        scale: u64::from(scale),
        offset: offset as u64,
    };
    Operation {
        linear: Some((linear, Type::I64)),
        ..Operation::new(32, 0, Type::I64, "address")
    }
}
