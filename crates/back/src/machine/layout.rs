//! The finished program: steps attached, ends filled in, code addresses given.

use super::draft::{Draft, Virtual, Virtuals};
use super::intervals::Intervals;
use super::liveness::Scopes;
use super::program::{
    Class, Control, Instruction, InstructionStep, MachineProgram, Operands, Register, RegisterEstimate,
    RegisterList, Slot,
};
use super::target::INSTRUCTION_BYTES;
use super::{operands, registers};
use crate::ir::{Kernel, Value};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Lays drafts out as a program.
pub(crate) fn lay_out(
    kernel: Kernel,
    drafts: Vec<Draft>,
    virtuals: &Virtuals,
    register_estimate: RegisterEstimate,
    frame_bytes: u32,
) -> MachineProgram {
    let drafts = attach_free_steps(drafts);
    let (numbers, register_count) = registers::number(&drafts, virtuals);
    let mut instructions: Vec<Instruction> = Vec::with_capacity(drafts.len());
    let mut steps: Vec<InstructionStep> = Vec::new();
    let mut reads: Vec<Vec<(Register, u8)>> = Vec::with_capacity(drafts.len());
    let mut address = 0;
    for mut draft in drafts {
        // A wide move that could not be avoided takes an instruction for each half.
        let halves = match draft.move_ {
            Some(move_) if virtuals[move_.to].width == 2 => 2,
            _ => 1,
        };
        for half in 0..halves {
            let start = steps.len() as u32;
            if half + 1 == halves {
                steps.append(&mut draft.steps);
            }
            let own = if draft.class == Class::None {
                0
            } else {
                INSTRUCTION_BYTES
            };
            let bytes = own + draft.never_taken * INSTRUCTION_BYTES;
            let width = |register: Virtual| virtuals[register].width / halves;
            reads.push(
                draft
                    .uses
                    .iter()
                    .filter_map(|&register| Some((numbers[register]?, width(register))))
                    .collect(),
            );
            instructions.push(Instruction {
                class: draft.class,
                control: draft.control,
                steps: start..steps.len() as u32,
                share: draft.share,
                guard: draft.guard,
                defines: numbered(&draft.defines, &numbers),
                uses: numbered(&draft.uses, &numbers),
                operands: Operands::default(),
                address,
                bytes,
                spilled_at: draft.spilled_at,
                place: draft.place,
            });
            address += bytes;
        }
    }
    fill_in_ends(&mut instructions);
    operands::fill_in(&mut instructions, &reads);
    let (slots, slot_count) = slots(&kernel, &instructions, &steps);
    MachineProgram {
        kernel,
        instructions,
        steps,
        registers: register_count,
        slots,
        slot_count,
        register_estimate,
        frame_bytes,
        code_bytes: address,
    }
}

fn numbered(registers: &[Virtual], numbers: &SecondaryMap<Virtual, Option<Register>>) -> RegisterList {
    registers
        .iter()
        .filter_map(|&register| numbers[register])
        .collect()
}

/// Free steps are attached to the next instruction, or to the one before if the next has a guard.
fn attach_free_steps(drafts: Vec<Draft>) -> Vec<Draft> {
    let mut attached: Vec<Draft> = Vec::with_capacity(drafts.len());
    let mut waiting: Vec<Draft> = Vec::new();
    for mut draft in drafts {
        if draft.class == Class::None && draft.control == Control::Next && draft.guard.is_none() {
            waiting.push(draft);
            continue;
        }
        if !waiting.is_empty() {
            let free = waiting.drain(..);
            if draft.guard.is_none() {
                let steps = free
                    .flat_map(|free| free.steps)
                    .chain(draft.steps.drain(..))
                    .collect();
                draft.steps = steps;
            } else {
                match attached.last_mut() {
                    Some(before) if before.control == Control::Next && before.guard.is_none() => {
                        before.steps.extend(free.flat_map(|free| free.steps));
                    }
                    _ => attached.extend(free),
                }
            }
        }
        attached.push(draft);
    }
    attached
}

/// Controls learn where their ends are.
fn fill_in_ends(instructions: &mut [Instruction]) {
    let scopes = Scopes::of(instructions.iter().map(|instruction| instruction.control));
    let mut open: Vec<usize> = Vec::new();
    for (index, instruction) in instructions.iter_mut().enumerate() {
        let closing = scopes.closing[index] as u32;
        match &mut instruction.control {
            Control::Block { end, .. } | Control::Loop { end, .. } => {
                *end = closing;
                open.push(index);
            }
            Control::If { otherwise, end, .. } => {
                *otherwise = scopes.otherwise[index] as u32;
                *end = closing;
                open.push(index);
            }
            Control::Else { end, .. } => {
                *end = open.last().map_or(0, |&at| scopes.closing[at] as u32);
            }
            Control::End { .. } => {
                open.pop();
            }
            Control::EndLoop { body, .. } => {
                *body = scopes.opening[index] as u32 + 1;
                open.pop();
            }
            _ => {}
        }
    }
}

/// A slot for every value that a step reads or writes.
fn slots(
    kernel: &Kernel,
    instructions: &[Instruction],
    steps: &[InstructionStep],
) -> (SecondaryMap<Value, Option<Slot>>, u32) {
    let count = kernel.values.len();
    let mut intervals = Intervals::new(instructions.iter().map(|instruction| instruction.control), count);
    let mut noted = vec![false; count];
    let mut note = |intervals: &mut Intervals, value: Value, at: usize| {
        if kernel.as_constant(value).is_none() {
            // Parameters keep theirs: the next sub-group finds them there.
            if !noted[value.index()] && kernel.param_of(value).is_some() {
                intervals.note(value.index(), 0);
                intervals.note(value.index(), instructions.len() - 1);
            }
            noted[value.index()] = true;
            intervals.note(value.index(), at);
        }
    };
    // Where the scopes around start: results of a scope are in use from there on.
    let mut open: Vec<usize> = Vec::new();
    for (index, instruction) in instructions.iter().enumerate() {
        if let Some(guard) = instruction.guard {
            note(&mut intervals, guard.value, index);
        }
        if let Control::If { cond, .. } = instruction.control {
            note(&mut intervals, cond, index);
        }
        for step in &steps[instruction.steps.start as usize..instruction.steps.end as usize] {
            match step {
                InstructionStep::Op(op) => {
                    op.kind
                        .for_each_operand(|operand| note(&mut intervals, operand, index));
                    op.results
                        .iter()
                        .for_each(|&result| note(&mut intervals, result, index));
                }
                InstructionStep::Assign(pairs) => {
                    for &(to, from) in pairs {
                        note(&mut intervals, from, index);
                        note(&mut intervals, to, index);
                        if let Control::Break { depth } = instruction.control {
                            note(&mut intervals, to, open[depth as usize]);
                        }
                    }
                }
            }
        }
        match instruction.control {
            Control::Block { .. } | Control::If { .. } | Control::Loop { .. } => open.push(index),
            Control::End { .. } | Control::EndLoop { .. } => {
                open.pop();
            }
            _ => {}
        }
    }
    let (colours, slot_count) = intervals.colour();
    let mut slots = SecondaryMap::new();
    for (at, colour) in colours.into_iter().enumerate() {
        if let Some(colour) = colour {
            slots[Value::new(at)] = Some(Slot::from_u32(colour));
        }
    }
    (slots, slot_count)
}
