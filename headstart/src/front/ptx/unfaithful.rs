//! What the IR cannot say back: instructions that are read and simulated, but that a rewritten entry would not have as they
//! were.
//!
//! A kernel with one of them may be looked at, timed and advised on. It is not written into its module.

use super::tree::{Body, Instruction, Operand, Register, Statement};
use crate::error::Error;

/// Single-precision instructions, beside arithmetic, that flush subnormals by themselves.
const FLUSHING: &[&str] = &["min", "max", "neg", "abs", "setp", "set", "slct", "cvt"];

/// Types of floats.
const FLOATS: &[&str] = &["f16", "bf16", "f32", "f64", "f16x2", "bf16x2"];

/// Why an entry cannot be written as it was; nothing if it can.
pub(super) fn lost(body: &Body<'_>, flushes: bool) -> Option<Error> {
    let instructions = || {
        body.statements.iter().filter_map(|statement| match statement {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        })
    };
    // Registers that hold nothing but a full mask.
    let mut full: Vec<Register> = Vec::new();
    let mut other: Vec<Register> = Vec::new();
    for instruction in instructions() {
        match (instruction.opcode, &instruction.operands[..]) {
            ("mov", [Operand::Register(to), from]) if is_minus_one(from) => full.push(*to),
            (_, [to, ..]) => to.for_each_register(&mut |register| other.push(register)),
            _ => {}
        }
    }
    let is_full = |mask: &Operand<'_>| match mask {
        Operand::Register(register) => full.contains(register) && !other.contains(register),
        mask => is_minus_one(mask),
    };
    instructions().find_map(|instruction| {
        let refuse = |why: &str, accepted: &str| {
            let spelling = instruction.spelling();
            let error = Error::input(format!("`{spelling}` cannot be written back: {why}"));
            Some(error.at(format!("line {}", instruction.line)).accepted(accepted))
        };
        if instruction.opcode == "activemask" || mask(instruction).is_some_and(|mask| !is_full(mask)) {
            return refuse(
                "who takes part is not kept",
                "a mask of the whole warp, 0xffffffff",
            );
        }
        // A conversion from or to an integer has no subnormal to flush.
        let floats = instruction
            .modifiers
            .iter()
            .filter(|word| FLOATS.contains(word))
            .count();
        let is_single = instruction.has("f32") && (instruction.opcode != "cvt" || floats == 2);
        let own = instruction.has("ftz");
        if is_single && FLUSHING.contains(&instruction.opcode) && own != flushes {
            return refuse(
                "it flushes subnormals where the entry's arithmetic does not, or the other way round",
                "`.ftz` everywhere or nowhere",
            );
        }
        if instruction.has("approx") && instruction.last() == "f64" {
            return refuse("it becomes an exact one", "`.rn`");
        }
        None
    })
}

/// The operand that says who takes part.
fn mask<'i, 't>(instruction: &'i Instruction<'t>) -> Option<&'i Operand<'t>> {
    match instruction.opcode {
        "shfl" | "vote" | "match" | "elect" => instruction.operands.last(),
        "bar" | "barrier" if instruction.has("warp") => instruction.operands.last(),
        _ => None,
    }
}

fn is_minus_one(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Integer(bits) if *bits as u32 == u32::MAX)
}
