//! Sums, products, quotients of integers and addresses. Those of floats are in [`float`](super::float).

use super::bytes::packed;
use super::float::half_of;
use super::memory::pointer_and_rest;
use super::translator::{At, Translator};
use super::tree::Operand;
use super::values::{Numeric, is_pointer, last_type, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, ConvertOp, Type, UnaryOp, Value};
use crate::middle::Values;

impl<'t> Translator<'_, 't> {
    /// Everything that computes and has no file of its own.
    pub(crate) fn arithmetic(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        if let Some(half) = half_of(instruction.last()) {
            return self.halves((b, values, instruction), half);
        }
        if let Some(half) = packed(instruction.last()) {
            return self.integer_halves((b, values, instruction), half);
        }
        let numeric = match instruction.opcode {
            "dp4a" | "dp2a" => return self.dot((b, values, instruction)),
            "mul24" | "mad24" => return self.product_of_24((b, values, instruction)),
            "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "neg" | "abs" | "min" | "max" | "sad"
            | "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "copysign" => {
                last_type(instruction)?
            }
            _ => return Err(refused(instruction)),
        };
        if numeric.ty == Type::Bool {
            return Err(refused(instruction));
        }
        if numeric.ty.is_float() {
            return self.float((b, values, instruction), numeric.ty);
        }
        match instruction.opcode {
            "add" | "sub" if instruction.has("sat") && numeric.ty == Type::I32 && numeric.signed => {
                only(instruction, &["sat"])?;
                self.saturating_sum((b, values, instruction))
            }
            "add" | "sub" => {
                only(instruction, &[])?;
                self.sum((b, values, instruction), numeric)
            }
            "mul" | "mad" => {
                only(instruction, &["lo", "hi", "wide"])?;
                self.product((b, values, instruction), numeric)
            }
            "neg" | "abs" => {
                only(instruction, &[])?;
                let [to, a] = operands::<2>(instruction)?;
                let a = self.value(b, values, a, numeric.ty)?;
                let negated = b.unary(UnaryOp::Neg, a);
                let result = match instruction.opcode {
                    "neg" => negated,
                    // The most negative number has no counterpart: it stays itself.
                    _ => b.binary(BinaryOp::MaxS, a, negated),
                };
                self.set(b, values, to, result, true)
            }
            "div" | "rem" | "min" | "max" => {
                only(instruction, &["relu"])?;
                let [to, x, y] = operands::<3>(instruction)?;
                let op = match (instruction.opcode, numeric.signed) {
                    ("div", true) => BinaryOp::DivS,
                    ("div", false) => BinaryOp::DivU,
                    ("rem", true) => BinaryOp::RemS,
                    ("rem", false) => BinaryOp::RemU,
                    ("min", true) => BinaryOp::MinS,
                    ("min", false) => BinaryOp::MinU,
                    (_, true) => BinaryOp::MaxS,
                    (_, false) => BinaryOp::MaxU,
                };
                let x = self.value(b, values, x, numeric.ty)?;
                let y = self.value(b, values, y, numeric.ty)?;
                let mut result = b.binary(op, x, y);
                if instruction.has("relu") {
                    let zero = b.constant(numeric.ty, 0);
                    result = b.binary(BinaryOp::MaxS, result, zero);
                }
                self.set(b, values, to, result, numeric.signed)
            }
            "sad" => {
                only(instruction, &[])?;
                let [to, x, y, c] = operands::<4>(instruction)?;
                let (least, most) = match numeric.signed {
                    true => (BinaryOp::MinS, BinaryOp::MaxS),
                    false => (BinaryOp::MinU, BinaryOp::MaxU),
                };
                let x = self.value(b, values, x, numeric.ty)?;
                let y = self.value(b, values, y, numeric.ty)?;
                let c = self.value(b, values, c, numeric.ty)?;
                let (low, high) = (b.binary(least, x, y), b.binary(most, x, y));
                let distance = b.sub(high, low);
                let result = b.add(distance, c);
                self.set(b, values, to, result, numeric.signed)
            }
            _ => Err(refused(instruction)),
        }
    }

    /// An operand of a sum: a pointer, where a register holds one.
    fn summand(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        operand: &Operand<'t>,
        ty: Type,
    ) -> Result<Value> {
        match operand {
            Operand::Register(register) => {
                let value = self.get(b, values, *register)?;
                let width = self.width(*register)?;
                match is_pointer(b, value) && width == ty.bits() {
                    true => Ok(value),
                    false => self.retyped(b, value, ty),
                }
            }
            Operand::Symbol(name)
                if self.arrays.contains_key(name) || self.source.slots.variable(name).is_some() =>
            {
                self.symbol(b, operand)
            }
            other => self.value(b, values, other, ty),
        }
    }

    /// `add` and `sub` of integers and addresses.
    fn sum(&mut self, (b, values, instruction): At<'_, '_, 't>, numeric: Numeric) -> Result<()> {
        let [to, x, y] = operands::<3>(instruction)?;
        let ty = numeric.ty;
        let x = self.summand(b, values, x, ty)?;
        let y = self.summand(b, values, y, ty)?;
        let adds = instruction.opcode == "add";
        let result = match pointer_and_rest(b, x, y) {
            Some((pointer, rest)) if adds => self.pointer_plus(b, pointer, rest),
            Some((pointer, rest)) if pointer == x => {
                let negated = b.unary(UnaryOp::Neg, rest);
                self.pointer_plus(b, pointer, negated)
            }
            _ => {
                let x = self.retyped(b, x, ty)?;
                let y = self.retyped(b, y, ty)?;
                let result = if adds { b.add(x, y) } else { b.sub(x, y) };
                if let (Type::I64, Some((index, factor, addend)), Some(bits)) =
                    (ty, self.scaled(x), b.kernel.as_constant(y))
                {
                    let bytes = if adds {
                        bits as i64
                    } else {
                        (bits as i64).wrapping_neg()
                    };
                    self.note_scaled(result, index, factor, addend.wrapping_add(bytes));
                }
                result
            }
        };
        self.set(b, values, to, result, numeric.signed)
    }

    /// `add.sat.s32` and `sub.sat.s32`: exact in 64 bits, then the nearest number of 32.
    fn saturating_sum(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        let [to, x, y] = operands::<3>(instruction)?;
        let x = self.value(b, values, x, Type::I32)?;
        let y = self.value(b, values, y, Type::I32)?;
        let [x, y] = [x, y].map(|value| b.convert(ConvertOp::ExtendS, Type::I64, value));
        let exact = match instruction.opcode {
            "add" => b.add(x, y),
            _ => b.sub(x, y),
        };
        let (least, most) = (b.i64(i64::from(i32::MIN)), b.i64(i64::from(i32::MAX)));
        let exact = b.binary(BinaryOp::MaxS, exact, least);
        let exact = b.binary(BinaryOp::MinS, exact, most);
        let result = b.convert(ConvertOp::Truncate, Type::I32, exact);
        self.set(b, values, to, result, true)
    }

    /// `mul` and `mad` of integers.
    fn product(&mut self, (b, values, instruction): At<'_, '_, 't>, numeric: Numeric) -> Result<()> {
        let (to, x, y, addend) = match &instruction.operands[..] {
            [to, x, y] if instruction.opcode == "mul" => (to, x, y, None),
            [to, x, y, c] if instruction.opcode == "mad" => (to, x, y, Some(c)),
            _ => {
                return Err(Error::input(format!(
                    "`{}` has too few or too many operands",
                    instruction.spelling()
                )));
            }
        };
        let x = self.value(b, values, x, numeric.ty)?;
        let y = self.value(b, values, y, numeric.ty)?;
        let product = match (instruction.has("wide"), instruction.has("hi")) {
            (true, _) => {
                let wide = match numeric.ty {
                    Type::I16 => Type::I32,
                    Type::I32 => Type::I64,
                    _ => return Err(refused(instruction)),
                };
                let op = if numeric.signed {
                    ConvertOp::ExtendS
                } else {
                    ConvertOp::ExtendU
                };
                let x = b.convert(op, wide, x);
                let y = b.convert(op, wide, y);
                self.scaling(b, x, y)
            }
            (_, true) => {
                let op = if numeric.signed {
                    BinaryOp::MulHighS
                } else {
                    BinaryOp::MulHighU
                };
                b.binary(op, x, y)
            }
            _ => self.scaling(b, x, y),
        };
        let result = match addend {
            None => product,
            Some(addend) => {
                let ty = b.kernel.ty(product);
                let addend = self.summand(b, values, addend, ty)?;
                match is_pointer(b, addend) {
                    true => self.pointer_plus(b, addend, product),
                    false => b.add(product, addend),
                }
            }
        };
        self.set(b, values, to, result, numeric.signed)
    }

    /// A product; one by a constant is remembered as an index of elements.
    pub(crate) fn scaling(&mut self, b: &mut Builder<'_>, x: Value, y: Value) -> Value {
        let product = b.mul(x, y);
        if b.kernel.ty(product) == Type::I64 {
            for (index, factor) in [(x, y), (y, x)] {
                let factor = b
                    .kernel
                    .as_constant(factor)
                    .and_then(|factor| u32::try_from(factor).ok());
                if let Some(factor) = factor.filter(|&factor| factor > 0)
                    && b.kernel.as_constant(index).is_none()
                {
                    self.note_scaled(product, index, factor, 0);
                }
            }
        }
        product
    }
}
