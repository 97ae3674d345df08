//! Sums in several words: the carry flag, which no operand names, becomes a register like all others.
//!
//! ```text
//! before                          after
//! add.cc.u32  a0, b0, c0;         add.cc.u32  a0|%carry, b0, c0;
//! addc.u32    a1, b1, c1;         addc.u32    a1, b1, c1, %carry;
//! ```
//!
//! After a difference it holds the borrow.

use super::translator::{At, Translator};
use super::tree::{Body, Operand, Register, RegisterData, Statement};
use super::values::{last_type, only, refused};
use crate::error::Result;
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Type, Value};

/// Names the flag where it is read and written.
pub(super) fn name_flag(body: &mut Body<'_>) {
    let carrying = |statement: &Statement<'_>| matches!(statement, Statement::Instruction(instruction) if instruction.is_carrying());
    if !body.statements.iter().any(carrying) {
        return;
    }
    let flag = body.registers.len() as Register;
    body.registers.push(RegisterData {
        name: "%carry",
        ty: "pred",
    });
    for statement in &mut body.statements {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        if !instruction.is_carrying() || instruction.operands.is_empty() {
            continue;
        }
        if instruction.has("cc") {
            let to = std::mem::replace(&mut instruction.operands[0], Operand::Sink);
            instruction.operands[0] = Operand::Pair(Box::new(to), Box::new(Operand::Register(flag)));
        }
        if instruction.opcode.ends_with('c') {
            instruction.operands.push(Operand::Register(flag));
        }
    }
}

impl<'t> Translator<'_, 't> {
    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.lo.cc`, `madc.hi` and the like.
    pub(crate) fn carried(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &["cc", "lo", "hi"])?;
        let numeric = last_type(instruction)?;
        let ty = numeric.ty;
        if !matches!(ty, Type::I32 | Type::I64) {
            return Err(refused(instruction));
        }
        let is_product = instruction.opcode.starts_with("mad");
        let (to, read, rest) = match (&instruction.operands[..], is_product) {
            ([to, x, y, rest @ ..], false) => (to, vec![x, y], rest),
            ([to, x, y, z, rest @ ..], true) => (to, vec![x, y, z], rest),
            _ => return Err(refused(instruction)),
        };
        let flag = match (rest, instruction.opcode.ends_with('c')) {
            ([flag], true) => Some(self.value(b, values, flag, Type::Bool)?),
            ([], false) => None,
            _ => return Err(refused(instruction)),
        };
        let mut given = Vec::with_capacity(read.len());
        for operand in read {
            given.push(self.value(b, values, operand, ty)?);
        }
        let (x, y) = match (&given[..], instruction.has("hi"), numeric.signed) {
            (&[x, y], ..) => (x, y),
            (&[x, y, z], false, _) => (b.mul(x, y), z),
            (&[x, y, z], true, true) => (b.binary(BinaryOp::MulHighS, x, y), z),
            (&[x, y, z], true, false) => (b.binary(BinaryOp::MulHighU, x, y), z),
            _ => return Err(refused(instruction)),
        };
        let subtracts = instruction.opcode.starts_with("sub");
        let step = |b: &mut Builder<'_>, x: Value, y: Value| match subtracts {
            true => (b.sub(x, y), b.compare(CompareOp::LtU, x, y)),
            false => {
                let sum = b.add(x, y);
                (sum, b.compare(CompareOp::LtU, sum, x))
            }
        };
        let (mut result, mut carry) = step(b, x, y);
        if let Some(flag) = flag {
            let flag = b.convert(ConvertOp::ExtendU, ty, flag);
            let (whole, again) = step(b, result, flag);
            result = whole;
            carry = b.binary(BinaryOp::Or, carry, again);
        }
        match to {
            Operand::Pair(to, flag) => {
                self.set(b, values, flag, carry, false)?;
                self.set(b, values, to, result, numeric.signed)
            }
            to => self.set(b, values, to, result, numeric.signed),
        }
    }
}
