//! What the IR cannot say back: instructions that are read and simulated, but that a rewritten entry would not have as they
//! were.
//!
//! A kernel with one of them may be looked at, timed and advised on. It is not written into its module.

use super::tree::{Body, Statement};
use crate::error::Error;

/// Single-precision instructions, beside arithmetic, that flush subnormals by themselves.
const FLUSHING: &[&str] = &["min", "max", "neg", "abs", "setp", "set", "slct", "cvt"];

/// Types of floats.
const FLOATS: &[&str] = &["f16", "bf16", "f32", "f64", "f16x2", "bf16x2"];

/// Why an entry cannot be written as it was; nothing if it can.
pub(super) fn lost(body: &Body<'_>, flushes: bool) -> Option<Error> {
    let mut instructions = body.statements.iter().filter_map(|statement| match statement {
        Statement::Instruction(instruction) => Some(instruction),
        _ => None,
    });
    instructions.find_map(|instruction| {
        let refuse = |why: &str, accepted: &str| {
            let spelling = instruction.spelling();
            let error = Error::input(format!("`{spelling}` cannot be written back: {why}"));
            Some(error.at(format!("line {}", instruction.line)).accepted(accepted))
        };
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
