//! Bits: logic, shifts, fields, counts, permutations.

use super::translator::{At, Translator};
use super::tree::Operand;
use super::values::{last_type, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Type, UnaryOp, Value};
use crate::middle::Values;

impl<'t> Translator<'_, 't> {
    /// One of the instructions of this file.
    pub(crate) fn bit_operation(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        match instruction.opcode {
            "and" | "or" | "xor" | "not" | "cnot" => self.logic((b, values, instruction)),
            "shl" | "shr" => self.shift((b, values, instruction)),
            "clz" | "popc" | "brev" | "bfind" => self.count((b, values, instruction)),
            "bfe" | "bfi" => self.field((b, values, instruction)),
            "lop3" => self.table((b, values, instruction)),
            "shf" => self.funnel((b, values, instruction)),
            "bmsk" | "szext" => self.mask((b, values, instruction)),
            _ => self.permutation((b, values, instruction)),
        }
    }

    fn logic(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &[])?;
        let ty = last_type(instruction)?.ty;
        if ty.is_float() {
            return Err(refused(instruction));
        }
        let Some((to, arguments)) = instruction.operands.split_first() else {
            return Err(refused(instruction));
        };
        let mut read = Vec::with_capacity(arguments.len());
        for argument in arguments {
            read.push(self.value(b, values, argument, ty)?);
        }
        let result = match (instruction.opcode, &read[..]) {
            ("and", &[x, y]) => b.and(x, y),
            ("or", &[x, y]) => b.binary(BinaryOp::Or, x, y),
            ("xor", &[x, y]) => b.binary(BinaryOp::Xor, x, y),
            ("not", &[x]) => b.unary(UnaryOp::Not, x),
            ("cnot", &[x]) if ty != Type::Bool => {
                let (zero, one) = (b.constant(ty, 0), b.constant(ty, 1));
                let none = b.compare(CompareOp::Eq, x, zero);
                b.select(none, one, zero)
            }
            _ => return Err(refused(instruction)),
        };
        self.set(b, values, to, result, false)
    }

    fn shift(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &[])?;
        let [to, x, count] = operands::<3>(instruction)?;
        let numeric = last_type(instruction)?;
        let x = self.value(b, values, x, numeric.ty)?;
        // The count has 32 bits, whatever the shifted type.
        let count = self.value(b, values, count, Type::I32)?;
        let count = match numeric.ty {
            Type::I64 => b.convert(ConvertOp::ExtendU, Type::I64, count),
            Type::I16 => {
                let most = b.i32(16);
                let count = b.binary(BinaryOp::MinU, count, most);
                b.convert(ConvertOp::Truncate, Type::I16, count)
            }
            _ => count,
        };
        let op = match (instruction.opcode, numeric.signed) {
            ("shl", _) => BinaryOp::Shl,
            (_, true) => BinaryOp::ShrS,
            (_, false) => BinaryOp::ShrU,
        };
        let result = match (op, b.kernel.as_constant(count)) {
            // An index of elements: as a product, addresses can be read off it.
            (BinaryOp::Shl, Some(count @ 1..=16)) if numeric.ty == Type::I64 => {
                let factor = b.i64(1 << count);
                self.scaling(b, x, factor)
            }
            _ => b.binary(op, x, count),
        };
        self.set(b, values, to, result, numeric.signed)
    }

    fn count(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["shiftamt"])?;
        let [to, x] = operands::<2>(instruction)?;
        let numeric = last_type(instruction)?;
        let ty = numeric.ty;
        let x = self.value(b, values, x, ty)?;
        if instruction.opcode == "brev" {
            let result = b.unary(UnaryOp::ReverseBits, x);
            return self.set(b, values, to, result, false);
        }
        let small = |b: &mut Builder<'_>, value: Value| match ty {
            Type::I64 => b.convert(ConvertOp::Truncate, Type::I32, value),
            _ => value,
        };
        let result = match instruction.opcode {
            "clz" => {
                let zeros = b.unary(UnaryOp::CountLeadingZeros, x);
                small(b, zeros)
            }
            "popc" => {
                let ones = b.unary(UnaryOp::CountOnes, x);
                small(b, ones)
            }
            // The highest bit that is not the sign; all ones if there is none.
            _ => {
                let x = match numeric.signed {
                    true => {
                        let width = b.constant(ty, u64::from(ty.bits() - 1));
                        let sign = b.binary(BinaryOp::ShrS, x, width);
                        b.binary(BinaryOp::Xor, x, sign)
                    }
                    false => x,
                };
                let zeros = b.unary(UnaryOp::CountLeadingZeros, x);
                let zeros = small(b, zeros);
                let highest = b.i32(ty.bits() as i32 - 1);
                let position = b.sub(highest, zeros);
                match instruction.has("shiftamt") {
                    false => position,
                    true => {
                        let none = b.i32(-1);
                        let nothing = b.compare(CompareOp::Eq, position, none);
                        b.select(nothing, none, zeros)
                    }
                }
            }
        };
        self.set(b, values, to, result, false)
    }

    /// A position or length: the low byte of an operand, in the type of what it goes into.
    fn byte(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        operand: &Operand<'t>,
        ty: Type,
    ) -> Result<Value> {
        let value = self.value(b, values, operand, Type::I32)?;
        let mask = b.i32(0xff);
        let value = b.and(value, mask);
        Ok(b.convert(ConvertOp::ExtendU, ty, value))
    }

    fn field(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &[])?;
        let numeric = last_type(instruction)?;
        let ty = numeric.ty;
        if !matches!(ty, Type::I32 | Type::I64) {
            return Err(refused(instruction));
        }
        let (one, zero, all) = (b.constant(ty, 1), b.constant(ty, 0), b.constant(ty, u64::MAX));
        let width = b.constant(ty, u64::from(ty.bits()));
        // Shifts by the width or more shift everything out, so lengths beyond it make a mask of ones.
        let mask = |b: &mut Builder<'_>, length: Value| {
            let power = b.binary(BinaryOp::Shl, one, length);
            b.add(power, all)
        };
        if instruction.opcode == "bfi" {
            let [to, from, into, position, length] = operands::<5>(instruction)?;
            let from = self.value(b, values, from, ty)?;
            let into = self.value(b, values, into, ty)?;
            let position = self.byte(b, values, position, ty)?;
            let length = self.byte(b, values, length, ty)?;
            let mask = mask(b, length);
            let mask = b.binary(BinaryOp::Shl, mask, position);
            let keep = b.unary(UnaryOp::Not, mask);
            let moved = b.binary(BinaryOp::Shl, from, position);
            let (kept, moved) = (b.and(into, keep), b.and(moved, mask));
            let result = b.binary(BinaryOp::Or, kept, moved);
            return self.set(b, values, to, result, false);
        }
        let [to, from, position, length] = operands::<4>(instruction)?;
        let from = self.value(b, values, from, ty)?;
        let position = self.byte(b, values, position, ty)?;
        let length = self.byte(b, values, length, ty)?;
        let result = match numeric.signed {
            false => {
                let moved = b.binary(BinaryOp::ShrU, from, position);
                let mask = mask(b, length);
                b.and(moved, mask)
            }
            true => {
                // Up to the top, then down with the sign.
                let end = b.add(position, length);
                let end = b.binary(BinaryOp::MinU, end, width);
                let up = b.sub(width, end);
                let top = b.binary(BinaryOp::Shl, from, up);
                let down = b.add(up, position);
                let field = b.binary(BinaryOp::ShrS, top, down);
                let empty = b.compare(CompareOp::Eq, length, zero);
                b.select(empty, zero, field)
            }
        };
        self.set(b, values, to, result, numeric.signed)
    }

    /// `bmsk.clamp.b32 d, position, length`: ones from a position on. `szext.wrap.s32 d, a, length`: the low bits, with
    /// their sign in the others.
    fn mask(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["clamp", "wrap"])?;
        let [to, first, length] = operands::<3>(instruction)?;
        let first = self.value(b, values, first, Type::I32)?;
        let length = self.value(b, values, length, Type::I32)?;
        let clamps = instruction.has("clamp");
        let limited = |b: &mut Builder<'_>, count: Value| match clamps {
            true => {
                let most = b.i32(32);
                b.binary(BinaryOp::MinU, count, most)
            }
            false => {
                let low = b.i32(31);
                b.and(count, low)
            }
        };
        let length = limited(b, length);
        let all = b.i32(-1);
        // Everything from here on; nothing from 32 on.
        let result = match instruction.opcode {
            "bmsk" => {
                let position = limited(b, first);
                let end = b.add(position, length);
                let from_position = b.binary(BinaryOp::Shl, all, position);
                let from_end = b.binary(BinaryOp::Shl, all, end);
                let before_end = b.unary(UnaryOp::Not, from_end);
                b.and(from_position, before_end)
            }
            _ => {
                let above = b.binary(BinaryOp::Shl, all, length);
                let below = b.unary(UnaryOp::Not, above);
                let low = b.and(first, below);
                match last_type(instruction)?.signed {
                    false => low,
                    true => {
                        let one = b.i32(1);
                        let position = b.sub(length, one);
                        let sign = b.binary(BinaryOp::ShrU, first, position);
                        let sign = b.and(sign, one);
                        let zero = b.i32(0);
                        let signs = b.sub(zero, sign);
                        let signs = b.and(signs, above);
                        b.binary(BinaryOp::Or, low, signs)
                    }
                }
            }
        };
        self.set(b, values, to, result, false)
    }

    /// `lop3.b32 d, a, b, c, table`: any function of three bits.
    fn table(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &[])?;
        let [to, x, y, z, table] = operands::<5>(instruction)?;
        let Operand::Integer(table) = *table else {
            return Err(Error::input("`lop3` takes a constant table"));
        };
        let x = self.value(b, values, x, Type::I32)?;
        let y = self.value(b, values, y, Type::I32)?;
        let z = self.value(b, values, z, Type::I32)?;
        // Bit 4 of the table's index is the first operand's.
        let set = two_bits(b, y, z, table >> 4 & 15);
        let clear = two_bits(b, y, z, table & 15);
        let result = match set == clear {
            true => set,
            false => {
                let not = b.unary(UnaryOp::Not, x);
                let (set, clear) = (b.and(x, set), b.and(not, clear));
                b.binary(BinaryOp::Or, set, clear)
            }
        };
        self.set(b, values, to, result, false)
    }

    /// `shf.l.wrap.b32 d, low, high, count`.
    fn funnel(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["l", "r", "wrap", "clamp"])?;
        let [to, low, high, count] = operands::<4>(instruction)?;
        let low = self.value(b, values, low, Type::I32)?;
        let high = self.value(b, values, high, Type::I32)?;
        let count = self.value(b, values, count, Type::I32)?;
        let count = match instruction.has("wrap") {
            true => {
                let mask = b.i32(31);
                b.and(count, mask)
            }
            false => {
                let most = b.i32(32);
                b.binary(BinaryOp::MinU, count, most)
            }
        };
        let count = b.convert(ConvertOp::ExtendU, Type::I64, count);
        let both = joined(b, low, high);
        let shifted = match instruction.has("l") {
            true => {
                let shifted = b.binary(BinaryOp::Shl, both, count);
                let half = b.i64(32);
                b.binary(BinaryOp::ShrU, shifted, half)
            }
            false => b.binary(BinaryOp::ShrU, both, count),
        };
        let result = b.convert(ConvertOp::Truncate, Type::I32, shifted);
        self.set(b, values, to, result, false)
    }
}

/// Two halves of 32 bits as one `I64`.
pub(super) fn joined(b: &mut Builder<'_>, low: Value, high: Value) -> Value {
    let low = b.convert(ConvertOp::ExtendU, Type::I64, low);
    let high = b.convert(ConvertOp::ExtendU, Type::I64, high);
    let half = b.i64(32);
    let high = b.binary(BinaryOp::Shl, high, half);
    b.binary(BinaryOp::Or, low, high)
}

/// Any function of two bits, for all bits of two values: bit `2y + z` of the table.
fn two_bits(b: &mut Builder<'_>, y: Value, z: Value, table: u64) -> Value {
    let negated = |b: &mut Builder<'_>, value: Value| b.unary(UnaryOp::Not, value);
    match table {
        0b0000 => b.i32(0),
        0b1111 => b.i32(-1),
        0b1100 => y,
        0b1010 => z,
        0b1000 => b.and(y, z),
        0b1110 => b.binary(BinaryOp::Or, y, z),
        0b0110 => b.binary(BinaryOp::Xor, y, z),
        0b0100 => {
            let not = negated(b, z);
            b.and(y, not)
        }
        0b0010 => {
            let not = negated(b, y);
            b.and(not, z)
        }
        // The other half of the tables are these, negated.
        _ => {
            let value = two_bits(b, y, z, !table & 15);
            negated(b, value)
        }
    }
}
