//! Which registers an entry's own text may still read, statement by statement.
//!
//! ```text
//! 3  $L3: …                     live: %r1, %f2, %rd4
//! 9  @%p1 bra $L3;              live: %p1, %r1, %f2, %rd4
//! 10 st.global.f32 [%rd4], %f2; live: %f2, %rd4
//! ```
//!
//! It is about the text, not about what is read from it: an instruction that is not understood reads all of its registers and
//! writes none for certain. Too many registers may be live, never too few.

use std::collections::BTreeSet;

use super::tree::{Body, Instruction, Operand, Register, Statement};
use super::{body, entries_of, parse};
use crate::error::{Error, Result};
use crate::suggest::quoted;

/// Registers as bits.
type Set = Vec<u64>;

/// What is live at each label; in between it follows from the statements.
pub(super) struct Live<'b, 't> {
    body: &'b Body<'t>,
    /// By label; of one that stands nowhere nothing is.
    at_labels: Vec<Set>,
}

impl<'b, 't> Live<'b, 't> {
    /// Of a body as it was read.
    pub(super) fn of(body: &'b Body<'t>) -> Live<'b, 't> {
        let words = body.registers.len().div_ceil(64);
        let mut found = Live {
            body,
            at_labels: vec![vec![0; words]; body.labels.len()],
        };
        let mut changed = true;
        while changed {
            changed = false;
            let mut live = vec![0; words];
            for statement in body.statements.iter().rev() {
                found.step(statement, &mut live);
                if let Statement::Label(label) = statement
                    && found.at_labels[*label as usize] != live
                {
                    found.at_labels[*label as usize].clone_from(&live);
                    changed = true;
                }
            }
        }
        found
    }

    /// The registers that may be read before they are written, from this statement on.
    pub(crate) fn before(&self, statement: u32) -> Registers {
        let rest = &self.body.statements[statement as usize..];
        let label = rest.iter().enumerate().find_map(|(at, own)| match own {
            Statement::Label(label) => Some((at, &self.at_labels[*label as usize])),
            _ => None,
        });
        let (end, mut live) = match label {
            Some((at, live)) => (at, live.clone()),
            None => (rest.len(), vec![0; self.body.registers.len().div_ceil(64)]),
        };
        for statement in rest[..end].iter().rev() {
            self.step(statement, &mut live);
        }
        Registers(live)
    }

    /// What is live behind a statement becomes what is live in front of it.
    fn step(&self, statement: &Statement<'_>, live: &mut Set) {
        let Statement::Instruction(instruction) = statement else {
            return;
        };
        if instruction.guard.is_none() && ends(instruction) {
            live.fill(0);
        }
        let mut join = |from: &Set| {
            for (into, from) in live.iter_mut().zip(from) {
                *into |= from;
            }
        };
        match (instruction.opcode, &instruction.operands[..]) {
            ("bra", [Operand::Label(label)]) => join(&self.at_labels[*label as usize]),
            // Jumps that are computed, and those of forms that are not known.
            ("bra" | "brx", _) => self.at_labels.iter().for_each(join),
            _ => {}
        }
        transfer(instruction, live);
    }
}

/// The registers, by name, that an entry may read before anything writes them.
///
/// # Errors
/// There is no such entry, or its body cannot be read.
pub fn read_unset(text: &str, entry: &str) -> Result<BTreeSet<String>> {
    let module = parse::module(text)?;
    let function = entries_of(&module).find(|own| own.name == entry);
    let function = function.ok_or_else(|| Error::input(format!("there is no entry {}", quoted(entry))))?;
    let body = body::body(text, function)?;
    let at_start = Live::of(&body).before(0);
    let registers = body.registers.iter().zip(0..);
    let unset = registers.filter(|(_, number)| at_start.contains(*number));
    Ok(unset.map(|(own, _)| own.name.to_owned()).collect())
}

/// Some of a body's registers.
pub(super) struct Registers(Set);

impl Registers {
    /// Whether a register is one of them.
    pub(crate) fn contains(&self, register: Register) -> bool {
        let word = self.0.get(register as usize / 64).copied().unwrap_or(0);
        word >> (register % 64) & 1 == 1
    }
}

/// Whether nothing runs behind an instruction without a guard.
fn ends(instruction: &Instruction<'_>) -> bool {
    matches!(instruction.opcode, "bra" | "brx" | "ret" | "exit" | "trap")
}

/// What is live behind an instruction becomes what is live in front of it.
fn transfer(instruction: &Instruction<'_>, live: &mut Set) {
    let written = match instruction.has_result_first() {
        true => instruction.written().len(),
        false => 0,
    };
    let (written, read) = instruction.operands.split_at(written);
    if instruction.guard.is_none() {
        for operand in written {
            operand
                .for_each_register(&mut |register| live[register as usize / 64] &= !(1 << (register % 64)));
        }
    }
    for operand in read {
        operand.for_each_register(&mut |register| live[register as usize / 64] |= 1 << (register % 64));
    }
    if let Some((register, _)) = instruction.guard {
        live[register as usize / 64] |= 1 << (register % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{body, parse};
    use super::*;

    #[test]
    fn what_a_loop_needs_is_live_at_its_header() {
        let text = "
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry t(.param .u64 a)
            {
                .reg .pred %p<3>; .reg .b32 %r<5>;
                mov.u32 %r1, 0;
                mov.u32 %r2, 1;
            $L1:
                add.s32 %r1, %r1, %r2;
                @%p2 mov.u32 %r3, 4;
                odd.u32 %r4, %r1;
                setp.lt.s32 %p1, %r1, 9;
                @%p1 bra $L1;
                st.global.u32 [%r3], %r1;
                ret;
            }";
        let module = parse::module(text).unwrap();
        let body = body::body(text, &module.functions[0]).unwrap();
        let live = Live::of(&body);
        let number = |name: &str| body.registers.iter().position(|own| own.name == name).unwrap() as Register;
        let is_live = |statement: u32, name: &str| live.before(statement).contains(number(name));
        let header = body.labels[0].number.unwrap();
        let at_header: Vec<bool> = ["%r1", "%r2", "%r3", "%p2", "%p1"]
            .map(|name| is_live(header, name))
            .into();
        assert_eq!(at_header, [true, true, true, true, false]);
        // What an unknown instruction names first may be read.
        assert!(is_live(header, "%r4"));
        let behind = header + 6;
        assert!(is_live(behind, "%r1") && is_live(behind, "%r3") && !is_live(behind, "%r2"));
        // Nothing has written a guard, a result under a guard, and what an unknown instruction names.
        let unset = read_unset(text, "t").unwrap();
        assert_eq!(unset.iter().collect::<Vec<_>>(), ["%p2", "%r3", "%r4"]);
        assert!(read_unset(text, "other").is_err());
    }
}
