//! Which operations round or flush by a rule of their own, on which types.

use super::types;
use super::violation::{Check, Rule};
use crate::ir::kernel::{Kernel, Value};
use crate::ir::op::{ConvertOp, OpKind, UnaryOp};
use crate::ir::rule::{FloatRule, Rounding};
use crate::ir::table::Rules;
use crate::ir::types::Type;

/// The rules that [`OpKind::Fma`] can have.
const FUSED: Rules = Rules {
    rounds: &[Type::F32, Type::F64],
    flushes: &[Type::F16, Type::F32],
    contracts: &[],
    flushes_always: &[],
};

/// The operation behind a rule can have that rule.
pub(super) fn ruled(kernel: &Kernel, rule: FloatRule, plain: &OpKind, named: Option<Type>) -> Check<()> {
    let broken = |what: String| Err(Rule::Floats.broken(what));
    let ty = |value: Value| kernel.ty(value);
    let (name, of, rules) = match *plain {
        OpKind::Unary(op, a) => (op.name(), ty(a), op.rules()),
        OpKind::Binary(op, a, _) => (op.name(), ty(a), op.rules()),
        OpKind::Fma(a, ..) => ("fma", ty(a), FUSED),
        OpKind::Compare(op, a, _) => (op.name(), ty(a), op.rules()),
        OpKind::Convert(op, a) => {
            let to = named.ok_or_else(|| Rule::Pure.broken("a conversion has one result"))?;
            (op.name(), ty(a), converted(op, ty(a), to, rule.rounding))
        }
        _ => return broken(format!("only float operations have a rule `{rule}`")),
    };
    let makes_integer = matches!(
        plain,
        OpKind::Convert(ConvertOp::FloatToSigned | ConvertOp::FloatToUnsigned, _)
    );
    if rule.nan_high && !makes_integer {
        return broken(format!("`{name}` of {of} makes no integer of a NaN"));
    }
    if rule == FloatRule::EXACT {
        return broken(format!("`{name}` has a rule that says nothing"));
    }
    match rules.refused(rule, of) {
        Some(what) => broken(format!("`{name}` of {of} cannot {what}")),
        None => Ok(()),
    }
}

/// The operation can do without a rule.
pub(super) fn exact(op: UnaryOp, ty: Type) -> Check<()> {
    Rule::Floats.check(!op.rules().flushes_always.contains(&ty), || {
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

/// The rules that a conversion from operands of type `from` can have: they depend on both types.
fn converted(op: ConvertOp, from: Type, to: Type, rounding: Rounding) -> Rules {
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
    let of = |is: bool| if is { &Type::ALL[..] } else { &[] };
    Rules {
        rounds: of(rounds),
        flushes: of(flushes),
        ..Rules::default()
    }
}
