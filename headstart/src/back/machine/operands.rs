//! What instructions read of the register file.
//!
//! An operand that the last instruction of the same kind read too is still at hand (`.reuse` in SASS), unless the
//! scheduler has gone on with another sub-group in between. Arithmetic in double precision has places of its own for it.
//! (On an H200, `docs/simulator.md`: fma of doubles with operands in common take 2.2 cycles, whatever stands between them,
//! and 3 without; logic and fma of floats in turns have nothing at hand.)

use super::program::{Class, Control, Instruction, Operands, Register};

/// How far behind an instruction others look for what it read.
const REACH: usize = 4;

/// Works out what each instruction reads. `reads` has the registers of each with their widths in 32-bit words.
pub fn fill_in(instructions: &mut [Instruction], reads: &[Vec<(Register, u8)>]) {
    for at in 0..instructions.len() {
        let words = reads[at].iter().map(|&(_, width)| width).sum();
        let (kept, kept_since) = kept(instructions, reads, at);
        instructions[at].operands = Operands {
            words,
            kept,
            kept_since,
        };
    }
}

/// How many words are still at hand, and how many instructions ago they were read.
fn kept(instructions: &[Instruction], reads: &[Vec<(Register, u8)>], at: usize) -> (u8, u8) {
    let Some(kind) = Kind::of(instructions[at].class) else {
        return (0, 0);
    };
    let mut written: Vec<Register> = Vec::new();
    for distance in 1..=REACH.min(at) {
        let before = &instructions[at - distance];
        if before.class == Class::None && before.control == Control::Next {
            continue;
        }
        if before.control != Control::Next || Kind::ends(before.class) {
            break;
        }
        written.extend(before.defines.iter());
        if Kind::of(before.class) == Some(kind) {
            let common = reads[at].iter().filter(|read| {
                reads[at - distance].contains(read) && !written.contains(&read.0)
            });
            return (common.map(|&(_, width)| width).sum(), distance as u8);
        }
    }
    (0, 0)
}

/// Instructions that keep operands for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Double,
    Other,
}

impl Kind {
    fn of(class: Class) -> Option<Kind> {
        match class {
            Class::Fp64 => Some(Kind::Double),
            Class::Int32 | Class::IntMultiply | Class::Int64 | Class::Fp32 | Class::Fp16 => Some(Kind::Other),
            _ => None,
        }
    }

    /// Whether nothing is kept beyond it.
    fn ends(class: Class) -> bool {
        matches!(class, Class::Branch | Class::Reconverge | Class::Barrier | Class::Exit)
    }
}
