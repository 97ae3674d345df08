//! Spills of our own machine programs, to be compared with a compiler's.

use crate::back::machine::{Class, Instruction, MachineProgram};
use crate::ir::Space;

/// Bytes that a work-item stores for want of registers, an instruction counting once.
pub fn spilled(program: &MachineProgram) -> u32 {
    let bytes = |instruction: &Instruction| match instruction.class {
        Class::Store {
            space: Space::Private,
            bytes,
        } => u32::from(bytes),
        _ => 0,
    };
    program.instructions.iter().map(bytes).sum()
}
