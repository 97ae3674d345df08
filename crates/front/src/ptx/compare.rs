//! Comparisons and selections: `setp`, `set`, `selp`, `slct`, `testp`.

use super::float::{half_of, rule_of, ruled, taken_apart};
use super::translator::{At, Translator, register_kind};
use super::tree::{Instruction, Operand};
use super::values::{Numeric, last_type, numeric, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, CompareOp, OpKind, Type, UnaryOp, Value};
use crate::suggest::quoted;

/// A comparison by name: the IR's operation, whether the operands are exchanged, whether the result is negated.
fn integer_comparison(name: &str, signed: bool) -> Option<(CompareOp, bool, bool)> {
    let (below, below_equal) = match signed {
        true => (CompareOp::LtS, CompareOp::LeS),
        false => (CompareOp::LtU, CompareOp::LeU),
    };
    Some(match name {
        "eq" => (CompareOp::Eq, false, false),
        "ne" => (CompareOp::Ne, false, false),
        "lt" => (below, false, false),
        "le" => (below_equal, false, false),
        "gt" => (below, true, false),
        "ge" => (below_equal, true, false),
        "lo" => (CompareOp::LtU, false, false),
        "ls" => (CompareOp::LeU, false, false),
        "hi" => (CompareOp::LtU, true, false),
        "hs" => (CompareOp::LeU, true, false),
        _ => return None,
    })
}

fn float_comparison(name: &str) -> Option<(CompareOp, bool, bool)> {
    Some(match name {
        "eq" => (CompareOp::FEq, false, false),
        "lt" => (CompareOp::FLt, false, false),
        "le" => (CompareOp::FLe, false, false),
        "gt" => (CompareOp::FLt, true, false),
        "ge" => (CompareOp::FLe, true, false),
        // With a `u` a NaN makes the result true.
        "neu" => (CompareOp::FNe, false, false),
        "ltu" => (CompareOp::FLe, true, true),
        "leu" => (CompareOp::FLt, true, true),
        "gtu" => (CompareOp::FLe, false, true),
        "geu" => (CompareOp::FLt, false, true),
        "nan" => (CompareOp::FUnordered, false, false),
        "num" => (CompareOp::FUnordered, false, true),
        _ => return None,
    })
}

impl<'t> Translator<'_, 't> {
    /// One of the instructions of this file.
    pub(crate) fn comparison(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        match instruction.opcode {
            "setp" | "set" => self.set_on((b, values, instruction)),
            "selp" => self.selection((b, values, instruction)),
            "slct" => self.selection_by_sign((b, values, instruction)),
            _ => self.test((b, values, instruction)),
        }
    }

    /// `x` compared with `y` as the instruction does it, flushed if that says so.
    fn compared(
        &mut self,
        b: &mut Builder<'_>,
        instruction: &Instruction<'t>,
        name: &str,
        numeric: Numeric,
        [x, y]: [Value; 2],
    ) -> Result<Value> {
        let rule = rule_of(instruction)?;
        let compare = |b: &mut Builder<'_>, op: CompareOp, x: Value, y: Value| {
            ruled(b, instruction, rule, OpKind::Compare(op, x, y), Type::Bool)
        };
        let unknown = || Error::input(format!("comparison {} is not supported", quoted(name)));
        if numeric.ty.is_float() {
            match name {
                // False where either is a NaN, unlike the IR's.
                "ne" => {
                    let (below, above) = (
                        compare(b, CompareOp::FLt, x, y)?,
                        compare(b, CompareOp::FLt, y, x)?,
                    );
                    return Ok(b.binary(BinaryOp::Or, below, above));
                }
                "equ" => {
                    let (equal, odd) = (
                        compare(b, CompareOp::FEq, x, y)?,
                        compare(b, CompareOp::FUnordered, x, y)?,
                    );
                    return Ok(b.binary(BinaryOp::Or, equal, odd));
                }
                _ => {}
            }
        }
        let found = match numeric.ty.is_float() {
            true => float_comparison(name),
            false => integer_comparison(name, numeric.signed),
        };
        let (op, exchanged, negated) = found.ok_or_else(unknown)?;
        let (x, y) = if exchanged { (y, x) } else { (x, y) };
        let result = compare(b, op, x, y)?;
        Ok(if negated {
            b.unary(UnaryOp::Not, result)
        } else {
            result
        })
    }

    /// `setp.lt.and.s32 p|q, a, b, c` and `set.lt.u32.s32 d, a, b`.
    fn set_on(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        let numeric_of = last_type(instruction)?;
        let Some((&name, rest)) = instruction.modifiers.split_first() else {
            return Err(refused(instruction));
        };
        let combined = rest
            .iter()
            .copied()
            .find(|word| matches!(*word, "and" | "or" | "xor"));
        only(instruction, &[name, "and", "or", "xor", "ftz"])?;
        let (to, x, y, c) = match (&instruction.operands[..], combined) {
            ([to, x, y], None) => (to, x, y, None),
            ([to, x, y, c], Some(_)) => (to, x, y, Some(c)),
            _ => {
                return Err(Error::input(format!(
                    "`{}` has too few or too many operands",
                    instruction.spelling()
                )));
            }
        };
        let x = self.value(b, values, x, numeric_of.ty)?;
        let y = self.value(b, values, y, numeric_of.ty)?;
        if let (Some(half), Operand::Pair(p, q), None) = (half_of(instruction.last()), to, &c) {
            // The two halves, each with a predicate of its own.
            let numeric_of = Numeric {
                ty: half,
                signed: false,
            };
            let (x, y) = (taken_apart(b, x, half), taken_apart(b, y, half));
            for (side, to) in [&**p, &**q].into_iter().enumerate() {
                let holds = self.compared(b, instruction, name, numeric_of, [x[side], y[side]])?;
                self.set(b, values, to, holds, false)?;
            }
            return Ok(());
        }
        if half_of(instruction.last()).is_some() {
            return Err(refused(instruction));
        }
        let holds = self.compared(b, instruction, name, numeric_of, [x, y])?;
        let c = match c {
            Some(c) => Some(self.value(b, values, c, Type::Bool)?),
            None => None,
        };
        let with = |b: &mut Builder<'_>, holds: Value| match (c, combined) {
            (Some(c), Some("and")) => b.binary(BinaryOp::And, holds, c),
            (Some(c), Some("or")) => b.binary(BinaryOp::Or, holds, c),
            (Some(c), _) => b.binary(BinaryOp::Xor, holds, c),
            (None, _) => holds,
        };
        if instruction.opcode == "set" {
            let result_type = rest.iter().rev().skip(1).find_map(|word| numeric(word));
            let result_type = result_type.ok_or_else(|| refused(instruction))?.ty;
            let holds = with(b, holds);
            let yes = match result_type {
                Type::F32 => b.f32(1.0),
                ty => b.constant(ty, u64::MAX),
            };
            let no = b.constant(result_type, 0);
            let result = b.select(holds, yes, no);
            return self.set(b, values, to, result, true);
        }
        match to {
            Operand::Pair(p, q) => {
                let not = b.unary(UnaryOp::Not, holds);
                let (first, second) = (with(b, holds), with(b, not));
                self.set(b, values, p, first, false)?;
                self.set(b, values, q, second, false)
            }
            p => {
                let result = with(b, holds);
                self.set(b, values, p, result, false)
            }
        }
    }

    /// `selp.b32 d, a, b, p`.
    fn selection(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &[])?;
        let [to, x, y, p] = operands::<4>(instruction)?;
        let ty = last_type(instruction)?.ty;
        let kind = register_kind(self.source.kinds, to);
        let ty = kind.filter(|kind| kind.bits() == ty.bits()).unwrap_or(ty);
        let x = self.value(b, values, x, ty)?;
        let y = self.value(b, values, y, ty)?;
        let p = self.value(b, values, p, Type::Bool)?;
        let result = b.select(p, x, y);
        self.set(b, values, to, result, false)
    }

    /// `slct.f32.s32 d, a, b, c`: `a` where `c` is not negative.
    fn selection_by_sign(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["ftz"])?;
        let [to, x, y, c] = operands::<4>(instruction)?;
        let by = last_type(instruction)?;
        let modifiers = instruction.modifiers.iter();
        let ty = modifiers
            .copied()
            .find_map(numeric)
            .ok_or_else(|| refused(instruction))?
            .ty;
        let x = self.value(b, values, x, ty)?;
        let y = self.value(b, values, y, ty)?;
        let c = self.value(b, values, c, by.ty)?;
        let zero = b.constant(by.ty, 0);
        let op = if by.ty.is_float() {
            CompareOp::FLe
        } else {
            CompareOp::LeS
        };
        let rule = rule_of(instruction)?;
        let holds = ruled(b, instruction, rule, OpKind::Compare(op, zero, c), Type::Bool)?;
        let result = b.select(holds, x, y);
        self.set(b, values, to, result, false)
    }

    /// `testp.finite.f32 p, a`.
    fn test(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        let [to, x] = operands::<2>(instruction)?;
        let ty = last_type(instruction)?.ty;
        let (infinity, least_normal) = match ty {
            Type::F32 => (
                u64::from(f32::INFINITY.to_bits()),
                u64::from(f32::MIN_POSITIVE.to_bits()),
            ),
            Type::F64 => (f64::INFINITY.to_bits(), f64::MIN_POSITIVE.to_bits()),
            _ => return Err(refused(instruction)),
        };
        let x = self.value(b, values, x, ty)?;
        let magnitude = b.unary(UnaryOp::FAbs, x);
        let infinity = b.constant(ty, infinity);
        let least_normal = b.constant(ty, least_normal);
        let zero = b.constant(ty, 0);
        let result = match instruction.modifiers.first().copied() {
            Some("finite") => b.compare(CompareOp::FLt, magnitude, infinity),
            Some("infinite") => b.compare(CompareOp::FEq, magnitude, infinity),
            Some("number") => {
                let odd = b.compare(CompareOp::FUnordered, x, x);
                b.unary(UnaryOp::Not, odd)
            }
            Some("notanumber") => b.compare(CompareOp::FUnordered, x, x),
            Some("normal") => {
                let large = b.compare(CompareOp::FLe, least_normal, magnitude);
                let finite = b.compare(CompareOp::FLt, magnitude, infinity);
                b.and(large, finite)
            }
            Some("subnormal") => {
                let small = b.compare(CompareOp::FLt, magnitude, least_normal);
                let some = b.compare(CompareOp::FLt, zero, magnitude);
                b.and(small, some)
            }
            _ => return Err(refused(instruction)),
        };
        self.set(b, values, to, result, false)
    }
}
