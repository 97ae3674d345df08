//! Words taken as bytes or halves of integers: permutations, dot products, the same operation on each part.

use super::bits::joined;
use super::translator::{At, Translator};
use super::values::{Numeric, last_type, numeric, only, operands, refused};
use crate::error::Result;
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Type, Value};

/// The type of the halves that `s16x2` and `u16x2` pack.
pub(super) fn packed(name: &str) -> Option<Numeric> {
    match name {
        "s16x2" => numeric("s16"),
        "u16x2" => numeric("u16"),
        _ => None,
    }
}

/// A part of a word, widened with its sign or without.
fn part(b: &mut Builder<'_>, word: Value, first_bit: u64, bits: Type, signed: bool) -> Value {
    let count = b.constant(Type::I32, first_bit);
    let moved = b.binary(BinaryOp::ShrU, word, count);
    let low = b.convert(ConvertOp::Truncate, bits, moved);
    let op = match signed {
        true => ConvertOp::ExtendS,
        false => ConvertOp::ExtendU,
    };
    b.convert(op, Type::I32, low)
}

impl<'t> Translator<'_, 't> {
    /// `prmt.b32 d, a, b, selector`: four bytes out of eight; with a mode, which ones follows from a number below four.
    pub(crate) fn permutation(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        let modes = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
        only(instruction, &modes)?;
        let [to, low, high, selector] = operands::<4>(instruction)?;
        let low = self.value(b, values, low, Type::I32)?;
        let high = self.value(b, values, high, Type::I32)?;
        let selector = self.value(b, values, selector, Type::I32)?;
        let both = joined(b, low, high);
        let mode = modes.into_iter().find(|mode| instruction.has(mode));
        let (three, seven, eight) = (b.i32(3), b.i32(7), b.i32(8));
        let mut result = b.i32(0);
        for position in 0..4 {
            let chosen = match mode {
                Some(mode) => {
                    let number = b.and(selector, three);
                    chosen(b, mode, number, position)
                }
                None => {
                    let count = b.i32(4 * position);
                    b.binary(BinaryOp::ShrU, selector, count)
                }
            };
            let which = b.and(chosen, seven);
            let bits = b.binary(BinaryOp::Shl, which, three);
            let bits = b.convert(ConvertOp::ExtendU, Type::I64, bits);
            let byte = b.binary(BinaryOp::ShrU, both, bits);
            let mut byte = b.convert(ConvertOp::Truncate, Type::I8, byte);
            if mode.is_none() {
                // With its fourth bit a choice means the byte's sign, eight times.
                let width = b.constant(Type::I8, 7);
                let sign = b.binary(BinaryOp::ShrS, byte, width);
                let signs = b.and(chosen, eight);
                let zero = b.i32(0);
                let plain = b.compare(CompareOp::Eq, signs, zero);
                byte = b.select(plain, byte, sign);
            }
            let wide = b.convert(ConvertOp::ExtendU, Type::I32, byte);
            let place = b.i32(8 * position);
            let placed = b.binary(BinaryOp::Shl, wide, place);
            result = b.binary(BinaryOp::Or, result, placed);
        }
        self.set(b, values, to, result, false)
    }

    /// `dp4a.s32.u32 d, a, b, c` and `dp2a.lo.s32.u32 d, a, b, c`: the types are those of the parts of `a` and `b`.
    pub(crate) fn dot(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["lo", "hi"])?;
        let [to, x, y, c] = operands::<4>(instruction)?;
        let count = instruction.modifiers.len();
        let signs: Vec<bool> = instruction.modifiers[count.saturating_sub(2)..]
            .iter()
            .filter_map(|name| numeric(name).filter(|numeric| numeric.ty == Type::I32))
            .map(|numeric| numeric.signed)
            .collect();
        let [x_signed, y_signed] = signs[..] else {
            return Err(refused(instruction));
        };
        let x = self.value(b, values, x, Type::I32)?;
        let y = self.value(b, values, y, Type::I32)?;
        let c = self.value(b, values, c, Type::I32)?;
        let product = match instruction.opcode {
            "dp4a" => {
                let (op, x, y) = match (x_signed, y_signed) {
                    (true, true) => (BinaryOp::Dot4S, x, y),
                    (false, false) => (BinaryOp::Dot4U, x, y),
                    (true, false) => (BinaryOp::Dot4SU, x, y),
                    (false, true) => (BinaryOp::Dot4SU, y, x),
                };
                b.binary(op, x, y)
            }
            _ => {
                let op = match (x_signed, y_signed) {
                    (true, true) => BinaryOp::Dot2S,
                    (false, false) => BinaryOp::Dot2U,
                    (true, false) => BinaryOp::Dot2SU,
                    (false, true) => BinaryOp::Dot2US,
                };
                let y = match instruction.has("hi") {
                    true => {
                        let count = b.i32(16);
                        b.binary(BinaryOp::ShrU, y, count)
                    }
                    false => y,
                };
                b.binary(op, x, y)
            }
        };
        let result = b.add(product, c);
        self.set(b, values, to, result, x_signed || y_signed)
    }

    /// `mul24.lo.u32 d, a, b` and `mad24.hi.s32 d, a, b, c`: of the low 24 bits of the factors.
    pub(crate) fn product_of_24(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["lo", "hi"])?;
        let numeric = last_type(instruction)?;
        let (to, x, y, addend) = match (&instruction.operands[..], instruction.opcode) {
            ([to, x, y], "mul24") => (to, x, y, None),
            ([to, x, y, c], "mad24") => (to, x, y, Some(c)),
            _ => return Err(refused(instruction)),
        };
        if numeric.ty != Type::I32 {
            return Err(refused(instruction));
        }
        let shift = match numeric.signed {
            true => BinaryOp::ShrS,
            false => BinaryOp::ShrU,
        };
        let mut factors = [b.i32(0); 2];
        for (factor, operand) in factors.iter_mut().zip([x, y]) {
            let whole = self.value(b, values, operand, Type::I32)?;
            let eight = b.i32(8);
            let top = b.binary(BinaryOp::Shl, whole, eight);
            let low = b.binary(shift, top, eight);
            let op = match numeric.signed {
                true => ConvertOp::ExtendS,
                false => ConvertOp::ExtendU,
            };
            *factor = b.convert(op, Type::I64, low);
        }
        let mut product = b.mul(factors[0], factors[1]);
        if instruction.has("hi") {
            let sixteen = b.i64(16);
            product = b.binary(BinaryOp::ShrU, product, sixteen);
        }
        let mut result = b.convert(ConvertOp::Truncate, Type::I32, product);
        if let Some(addend) = addend {
            let addend = self.value(b, values, addend, Type::I32)?;
            result = b.add(result, addend);
        }
        self.set(b, values, to, result, numeric.signed)
    }

    /// `min.s16x2 d, a, b` and the like: the same for two halves.
    pub(crate) fn integer_halves(
        &mut self,
        (b, values, instruction): At<'_, '_, 't>,
        half: Numeric,
    ) -> Result<()> {
        only(instruction, &["s16x2", "u16x2", "relu"])?;
        let [to, x, y] = operands::<3>(instruction)?;
        let op = match (instruction.opcode, half.signed) {
            ("add", _) => BinaryOp::Add,
            ("min", true) => BinaryOp::MinS,
            ("min", false) => BinaryOp::MinU,
            ("max", true) => BinaryOp::MaxS,
            ("max", false) => BinaryOp::MaxU,
            _ => return Err(refused(instruction)),
        };
        let x = self.value(b, values, x, Type::I32)?;
        let y = self.value(b, values, y, Type::I32)?;
        let mut result = b.i32(0);
        for first_bit in [0, 16] {
            let x = part(b, x, first_bit, Type::I16, half.signed);
            let y = part(b, y, first_bit, Type::I16, half.signed);
            let mut both = b.binary(op, x, y);
            if instruction.has("relu") {
                let zero = b.i32(0);
                both = b.binary(BinaryOp::MaxS, both, zero);
            }
            let low = b.convert(ConvertOp::Truncate, Type::I16, both);
            let wide = b.convert(ConvertOp::ExtendU, Type::I32, low);
            let count = b.constant(Type::I32, first_bit);
            let placed = b.binary(BinaryOp::Shl, wide, count);
            result = b.binary(BinaryOp::Or, result, placed);
        }
        self.set(b, values, to, result, false)
    }
}

/// Which byte of eight a mode of `prmt` puts at a position; the number is below four.
fn chosen(b: &mut Builder<'_>, mode: &str, number: Value, position: i32) -> Value {
    let here = b.i32(position);
    match mode {
        "f4e" => b.add(number, here),
        "b4e" => b.sub(number, here),
        "rc8" => number,
        "ecl" => b.binary(BinaryOp::MaxU, number, here),
        "ecr" => b.binary(BinaryOp::MinU, number, here),
        _ => {
            let one = b.i32(1);
            let second = b.and(number, one);
            let first = b.binary(BinaryOp::Shl, second, one);
            let own = b.i32(position & 1);
            b.add(first, own)
        }
    }
}
