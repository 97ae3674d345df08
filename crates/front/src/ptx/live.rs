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

use super::tree::{Body, Instruction, Operand, Register, Statement};

/// Registers as bits.
type Set = Vec<u64>;

/// What is live in front of each statement.
pub(super) struct Live {
    /// By statement.
    before: Vec<Set>,
}

impl Live {
    /// Of a body as it was read.
    pub fn of(body: &Body<'_>) -> Live {
        let words = body.registers.len().div_ceil(64);
        let count = body.statements.len();
        let mut at_label = vec![count; body.labels.len()];
        for (number, statement) in body.statements.iter().enumerate() {
            if let Statement::Label(label) = statement {
                at_label[*label as usize] = number;
            }
        }
        let all_labels: Vec<usize> = at_label.iter().copied().filter(|&at| at < count).collect();
        let mut before = vec![vec![0; words]; count + 1];
        let mut changed = true;
        while changed {
            changed = false;
            for number in (0..count).rev() {
                let mut live = vec![0; words];
                let mut join = |at: usize| {
                    for (into, from) in live.iter_mut().zip(&before[at]) {
                        *into |= from;
                    }
                };
                match &body.statements[number] {
                    Statement::Label(_) | Statement::KeepLoop => join(number + 1),
                    Statement::Instruction(instruction) => {
                        if instruction.guard.is_some() || !ends(instruction) {
                            join(number + 1);
                        }
                        match (instruction.opcode, &instruction.operands[..]) {
                            ("bra", [Operand::Label(label)]) => join(at_label[*label as usize]),
                            // Jumps that are computed, and those of forms that are not known.
                            ("bra" | "brx", _) => all_labels.iter().for_each(|&at| join(at)),
                            _ => {}
                        }
                        transfer(instruction, &mut live);
                    }
                }
                if live != before[number] {
                    before[number] = live;
                    changed = true;
                }
            }
        }
        Live { before }
    }

    /// Whether a register may be read before it is written, from this statement on.
    pub fn is_live(&self, statement: u32, register: Register) -> bool {
        let (word, bit) = (register as usize / 64, register % 64);
        self.before
            .get(statement as usize)
            .and_then(|set| set.get(word))
            .is_some_and(|bits| bits >> bit & 1 == 1)
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
        let is_live = |statement: u32, name: &str| live.is_live(statement, number(name));
        let header = body.labels[0].number.unwrap();
        let at_header: Vec<bool> = ["%r1", "%r2", "%r3", "%p2", "%p1"]
            .map(|name| is_live(header, name))
            .into();
        assert_eq!(at_header, [true, true, true, true, false]);
        // What an unknown instruction names first may be read.
        assert!(is_live(header, "%r4"));
        let behind = header + 6;
        assert!(is_live(behind, "%r1") && is_live(behind, "%r3") && !is_live(behind, "%r2"));
    }
}
