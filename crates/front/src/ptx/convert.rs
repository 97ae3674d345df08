//! `cvt`: between integers, between floats, and across.

use super::float::{clamped, half_of, put_together, rule_of, ruled};
use super::kinds::keeps_addresses;
use super::translator::{At, Translator};
use super::tree::{Instruction, Operand};
use super::values::{Numeric, is_pointer, last_type, numeric, only, operands, refused};
use crate::error::Result;
use crate::ir::{BinaryOp, Builder, ConvertOp, FloatRule, OpKind, Rounding, Type, UnaryOp, Value};

impl<'t> Translator<'_, 't> {
    /// `cvt.rn.f32.s32 d, a`.
    pub(crate) fn convert(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(
            instruction,
            &["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "ftz", "sat"],
        )?;
        if let [to_type, "f32"] = instruction.modifiers[instruction.modifiers.len().saturating_sub(2)..]
            && let Some(half) = half_of(to_type)
        {
            return self.convert_to_halves((b, values, instruction), half);
        }
        let [to, from] = operands::<2>(instruction)?;
        if let (true, Operand::Register(register)) = (keeps_addresses(instruction), from) {
            let value = self.get(b, values, *register)?;
            if is_pointer(b, value) {
                return self.set(b, values, to, value, false);
            }
        }
        let source = last_type(instruction)?;
        let count = instruction.modifiers.len();
        let target = count
            .checked_sub(2)
            .and_then(|at| numeric(instruction.modifiers[at]));
        let target = target.ok_or_else(|| refused(instruction))?;
        let value = self.value(b, values, from, source.ty)?;
        let result = match (source.ty.is_float(), target.ty.is_float()) {
            (false, false) => integer_to_integer(b, instruction, source, target, value)?,
            (false, true) => {
                let op = match source.signed {
                    true => ConvertOp::SignedToFloat,
                    false => ConvertOp::UnsignedToFloat,
                };
                let kind = OpKind::Convert(op, value);
                let result = ruled(b, instruction, rule_of(instruction)?, kind, target.ty)?;
                saturated_float(b, instruction, target.ty, result)?
            }
            (true, false) => {
                let (whole, rule) = whole(b, instruction, value, true)?;
                let op = match target.signed {
                    true => ConvertOp::FloatToSigned,
                    false => ConvertOp::FloatToUnsigned,
                };
                let rule = FloatRule {
                    // PTX ISA 9.0, `cvt`: 0 between singles or halves and at most 32 bits.
                    nan_high: source.ty == Type::F64 || target.ty == Type::I64,
                    ..rule
                };
                ruled(b, instruction, rule, OpKind::Convert(op, whole), target.ty)?
            }
            (true, true) => float_to_float(b, instruction, target.ty, value)?,
        };
        self.set(b, values, to, result, target.signed)
    }
}

impl<'t> Translator<'_, 't> {
    /// `cvt.rn.f16x2.f32 d, high, low`.
    fn convert_to_halves(&mut self, (b, values, instruction): At<'_, '_, 't>, half: Type) -> Result<()> {
        if instruction.has("sat") {
            return Err(refused(instruction));
        }
        let [to, high, low] = operands::<3>(instruction)?;
        let mut halves = Vec::new();
        for operand in [low, high] {
            let single = self.value(b, values, operand, Type::F32)?;
            let kind = OpKind::Convert(ConvertOp::FloatToFloat, single);
            halves.push(ruled(b, instruction, rule_of(instruction)?, kind, half)?);
        }
        let whole = put_together(b, halves[0], halves[1]);
        self.set(b, values, to, whole, false)
    }
}

fn integer_to_integer(
    b: &mut Builder<'_>,
    instruction: &Instruction<'_>,
    source: Numeric,
    target: Numeric,
    value: Value,
) -> Result<Value> {
    if source.ty == Type::Bool || target.ty == Type::Bool {
        return Err(refused(instruction));
    }
    let value = match instruction.has("sat") {
        true => saturated(b, source, target, value),
        false => value,
    };
    Ok(match target.ty.bits().cmp(&source.ty.bits()) {
        std::cmp::Ordering::Equal => value,
        std::cmp::Ordering::Less => b.convert(ConvertOp::Truncate, target.ty, value),
        std::cmp::Ordering::Greater => {
            let op = if source.signed {
                ConvertOp::ExtendS
            } else {
                ConvertOp::ExtendU
            };
            b.convert(op, target.ty, value)
        }
    })
}

/// The nearest number that the target has too, still in the source's type.
fn saturated(b: &mut Builder<'_>, source: Numeric, target: Numeric, value: Value) -> Value {
    // In the source's type: the common range.
    let highest = |numeric: Numeric| numeric.ty.mask() >> u32::from(numeric.signed);
    let mut value = value;
    if highest(target) < highest(source) {
        let most = b.constant(source.ty, highest(target));
        let op = if source.signed {
            BinaryOp::MinS
        } else {
            BinaryOp::MinU
        };
        value = b.binary(op, value, most);
    }
    if source.signed && !(target.signed && target.ty.bits() >= source.ty.bits()) {
        let least = match target.signed {
            true => !highest(target) & source.ty.mask(),
            false => 0,
        };
        let least = b.constant(source.ty, least);
        value = b.binary(BinaryOp::MaxS, value, least);
    }
    value
}

/// The value rounded to a whole number, if the instruction requests it, and the rule for the remaining rounding: a value that
/// was flushed once need not be flushed again.
fn whole(
    b: &mut Builder<'_>,
    instruction: &Instruction<'_>,
    value: Value,
    to_integer: bool,
) -> Result<(Value, FloatRule)> {
    let rule = rule_of(instruction)?;
    let op = match instruction.modifiers.iter().find(|word| word.starts_with('r')) {
        Some(&"rni") => UnaryOp::RoundEven,
        Some(&"rmi") => UnaryOp::Floor,
        Some(&"rpi") => UnaryOp::Ceil,
        // The conversion to an integer itself rounds towards zero.
        Some(&"rzi") if !to_integer => UnaryOp::Trunc,
        _ => return Ok((value, rule)),
    };
    let ty = b.kernel.ty(value);
    let flush = rule.flush && ty == Type::F32;
    let on_value = FloatRule {
        flush,
        ..FloatRule::EXACT
    };
    let whole = ruled(b, instruction, on_value, OpKind::Unary(op, value), ty)?;
    let rest = FloatRule {
        flush: rule.flush && !flush,
        ..rule
    };
    Ok((whole, rest))
}

fn float_to_float(
    b: &mut Builder<'_>,
    instruction: &Instruction<'_>,
    target: Type,
    value: Value,
) -> Result<Value> {
    let (value, mut rule) = whole(b, instruction, value, false)?;
    let source = b.kernel.ty(value);
    // A conversion to a wider type is exact in any direction.
    if target == source || target.bits() > source.bits() {
        rule.rounding = Rounding::Nearest;
    }
    let result = match (target == source, rule) {
        (true, FloatRule::EXACT) => value,
        _ => ruled(
            b,
            instruction,
            rule,
            OpKind::Convert(ConvertOp::FloatToFloat, value),
            target,
        )?,
    };
    saturated_float(b, instruction, target, result)
}

/// A float from 0 to 1, if the instruction says `.sat`.
fn saturated_float(
    b: &mut Builder<'_>,
    instruction: &Instruction<'_>,
    target: Type,
    value: Value,
) -> Result<Value> {
    match (instruction.has("sat"), target) {
        (false, _) => Ok(value),
        (true, Type::F32 | Type::F64) => Ok(clamped(b, target, value)),
        _ => Err(refused(instruction)),
    }
}
