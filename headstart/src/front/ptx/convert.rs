//! `cvt`: between integers, between floats, and across.

use super::arithmetic::{clamped, half_of, put_together};
use super::structure::{Translator, Values};
use super::tree::Instruction;
use super::values::{Numeric, last_type, numeric, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, ConvertOp, Type, UnaryOp, Value};

impl<'t> Translator<'_, 't> {
    /// `cvt.rn.f32.s32 d, a`.
    pub fn convert(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(
            instruction,
            &["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "ftz", "sat"],
        )?;
        if let [to_type, "f32"] = instruction.modifiers[instruction.modifiers.len().saturating_sub(2)..]
            && let Some(half) = half_of(to_type)
        {
            return self.convert_to_halves(b, values, instruction, half);
        }
        let [to, from] = operands::<2>(instruction)?;
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
                if ["rz", "rm", "rp"]
                    .into_iter()
                    .any(|rounding| instruction.has(rounding))
                {
                    return Err(rounded_otherwise(instruction));
                }
                let op = match source.signed {
                    true => ConvertOp::SignedToFloat,
                    false => ConvertOp::UnsignedToFloat,
                };
                b.convert(op, target.ty, value)
            }
            (true, false) => {
                let whole = whole(b, instruction, value);
                let op = match target.signed {
                    true => ConvertOp::FloatToSigned,
                    false => ConvertOp::FloatToUnsigned,
                };
                b.convert(op, target.ty, whole)
            }
            (true, true) => float_to_float(b, instruction, target.ty, value)?,
        };
        self.set(b, values, to, result, target.signed)
    }
}

impl<'t> Translator<'_, 't> {
    /// `cvt.rn.f16x2.f32 d, high, low`.
    fn convert_to_halves(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
        half: Type,
    ) -> Result<()> {
        if !instruction.has("rn") || instruction.has("sat") {
            return Err(rounded_otherwise(instruction));
        }
        let [to, high, low] = operands::<3>(instruction)?;
        let mut halves = Vec::new();
        for operand in [low, high] {
            let single = self.value(b, values, operand, Type::F32)?;
            halves.push(b.convert(ConvertOp::FloatToFloat, half, single));
        }
        let whole = put_together(b, halves[0], halves[1]);
        self.set(b, values, to, whole, false)
    }
}

fn rounded_otherwise(instruction: &Instruction<'_>) -> Error {
    Error::input(format!("`{}` rounds as the IR cannot", instruction.spelling()))
        .accepted("`.rn`, and `.rni`, `.rzi`, `.rmi`, `.rpi` to whole numbers")
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
    // In the source's type: what both have.
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

/// The value rounded to a whole number, where the instruction says how.
fn whole(b: &mut Builder<'_>, instruction: &Instruction<'_>, value: Value) -> Value {
    let op = match instruction
        .modifiers
        .iter()
        .copied()
        .find(|word| word.starts_with('r'))
    {
        Some("rni") => UnaryOp::RoundEven,
        Some("rmi") => UnaryOp::Floor,
        Some("rpi") => UnaryOp::Ceil,
        // Towards zero is what the conversion to an integer does itself.
        _ => return value,
    };
    b.unary(op, value)
}

fn float_to_float(
    b: &mut Builder<'_>,
    instruction: &Instruction<'_>,
    target: Type,
    value: Value,
) -> Result<Value> {
    let source = b.kernel.ty(value);
    if ["rz", "rm", "rp"]
        .into_iter()
        .any(|rounding| instruction.has(rounding))
        && target.bits() < source.bits()
    {
        return Err(rounded_otherwise(instruction));
    }
    let mut result = match instruction.has("rzi") {
        true => b.unary(UnaryOp::Trunc, value),
        false => whole(b, instruction, value),
    };
    if target != source {
        result = b.convert(ConvertOp::FloatToFloat, target, result);
    }
    if instruction.has("sat") {
        if target != Type::F32 && target != Type::F64 {
            return Err(refused(instruction));
        }
        result = clamped(b, target, result, |b| match target {
            Type::F64 => b.f64(1.0),
            _ => b.f32(1.0),
        });
    }
    Ok(result)
}
