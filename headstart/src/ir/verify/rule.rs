//! Which operations round or flush by a rule of their own, on which types.

use super::types;
use super::violation::{Check, Rule};
use crate::ir::kernel::{Kernel, Value};
use crate::ir::op::{BinaryOp, CompareOp, ConvertOp, OpKind, UnaryOp};
use crate::ir::rule::{FloatRule, Rounding};
use crate::ir::types::Type;

/// What a rule may say of an operation.
#[derive(Clone, Copy, Default)]
struct Permitted {
    rounds: bool,
    flushes: bool,
    contracts: bool,
}

/// The operation behind a rule can have that rule.
pub(super) fn ruled(kernel: &Kernel, rule: FloatRule, plain: &OpKind, named: Option<Type>) -> Check<()> {
    let broken = |what: String| Err(Rule::Floats.broken(what));
    let ty = |value: Value| kernel.ty(value);
    let (name, of, permitted) = match *plain {
        OpKind::Unary(op, a) => (op.name(), ty(a), unary(op, ty(a))),
        OpKind::Binary(op, a, _) => (op.name(), ty(a), binary(op, ty(a))),
        OpKind::Fma(a, ..) => ("fma", ty(a), fused(ty(a))),
        OpKind::Compare(op, a, _) => (op.name(), ty(a), compared(op, ty(a))),
        OpKind::Convert(op, a) => {
            let to = named.ok_or_else(|| Rule::Pure.broken("a conversion has one result"))?;
            (op.name(), ty(a), converted(op, ty(a), to, rule.rounding))
        }
        _ => return broken(format!("only float operations have a rule `{rule}`")),
    };
    if rule == FloatRule::EXACT {
        return broken(format!("`{name}` has a rule that says nothing"));
    }
    let refused = [
        (
            rule.rounding != Rounding::Nearest && !permitted.rounds,
            "be rounded otherwise",
        ),
        (rule.flush && !permitted.flushes, "flush subnormal numbers"),
        (rule.contract && !permitted.contracts, "be fused with another"),
    ];
    match refused.iter().find(|(is, _)| *is) {
        Some((_, what)) => broken(format!("`{name}` of {of} cannot {what}")),
        None => Ok(()),
    }
}

/// The operation can do without a rule.
pub(super) fn exact(op: UnaryOp, ty: Type) -> Check<()> {
    let flushes_always = matches!(
        (op, ty),
        (UnaryOp::ApproximateReciprocal, Type::F64) | (UnaryOp::ApproximateExp2, Type::Bf16)
    );
    Rule::Floats.check(!flushes_always, || {
        format!(
            "`{}` of {ty} flushes subnormal numbers: write `{}.ftz`",
            op.name(),
            op.name()
        )
    })
}

/// The type that a conversion with a rule makes. Unlike a plain one it may be the operand's, which is then flushed.
pub(super) fn conversion(rule: FloatRule, op: ConvertOp, from: Type, to: Type) -> Check<Type> {
    match (op, from, to) {
        (ConvertOp::FloatToFloat, Type::F32, Type::F32) if rule.flush => Ok(to),
        _ => types::convert(op, from, to).map(|()| to),
    }
}

fn is_machine(ty: Type) -> bool {
    matches!(ty, Type::F32 | Type::F64)
}

/// Whether arithmetic on this type can flush.
fn can_flush(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F32)
}

fn unary(op: UnaryOp, ty: Type) -> Permitted {
    let flushes = match op {
        UnaryOp::FNeg | UnaryOp::FAbs => can_flush(ty),
        UnaryOp::ApproximateReciprocal | UnaryOp::ApproximateRsqrt => is_machine(ty),
        UnaryOp::ApproximateExp2 => matches!(ty, Type::F32 | Type::Bf16),
        UnaryOp::Sqrt
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Trunc
        | UnaryOp::RoundEven
        | UnaryOp::ApproximateSqrt
        | UnaryOp::ApproximateLog2
        | UnaryOp::ApproximateSin
        | UnaryOp::ApproximateCos => ty == Type::F32,
        _ => false,
    };
    Permitted {
        rounds: op == UnaryOp::Sqrt && is_machine(ty),
        flushes,
        contracts: false,
    }
}

fn binary(op: BinaryOp, ty: Type) -> Permitted {
    use BinaryOp as B;
    match op {
        B::FAdd | B::FSub | B::FMul => Permitted {
            rounds: is_machine(ty),
            flushes: can_flush(ty),
            contracts: is_machine(ty),
        },
        B::FDiv => Permitted {
            rounds: is_machine(ty),
            flushes: ty == Type::F32,
            contracts: false,
        },
        B::FMin | B::FMax | B::FMinimum | B::FMaximum => Permitted {
            flushes: can_flush(ty),
            ..Permitted::default()
        },
        B::ApproximateDiv | B::ApproximateDivInRange => Permitted {
            flushes: ty == Type::F32,
            ..Permitted::default()
        },
        _ => Permitted::default(),
    }
}

fn fused(ty: Type) -> Permitted {
    Permitted {
        rounds: is_machine(ty),
        flushes: can_flush(ty),
        contracts: false,
    }
}

fn compared(op: CompareOp, ty: Type) -> Permitted {
    use CompareOp::{FEq, FLe, FLt, FNe, FUnordered};
    Permitted {
        flushes: matches!(op, FEq | FNe | FLt | FLe | FUnordered) && can_flush(ty),
        ..Permitted::default()
    }
}

fn converted(op: ConvertOp, from: Type, to: Type, rounding: Rounding) -> Permitted {
    let (rounds, flushes) = match op {
        ConvertOp::FloatToFloat => {
            let narrows = match (from, to) {
                (Type::F64, Type::F32 | Type::F16) | (Type::F32, Type::F16) => true,
                // No device has the others.
                (Type::F32, Type::Bf16) => rounding == Rounding::Zero,
                _ => false,
            };
            (narrows, from == Type::F32 || to == Type::F32)
        }
        ConvertOp::SignedToFloat | ConvertOp::UnsignedToFloat => {
            (matches!(to, Type::F16 | Type::F32 | Type::F64), to == Type::F32)
        }
        ConvertOp::FloatToSigned | ConvertOp::FloatToUnsigned => (false, from == Type::F32),
        _ => (false, false),
    };
    Permitted {
        rounds,
        flushes,
        contracts: false,
    }
}
