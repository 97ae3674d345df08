//! Registers of 128 bits, as two of 64: the IR has no wider integers.
//!
//! ```text
//! before                              after
//! mov.b128     %q, {%rd1, %rd2};      mov.b64          %q, %rd1;  mov.b64 %q', %rd2;
//! ld.weak.b128 %q, [a];               ld.weak.v2.b64   {%q, %q'}, [a];
//! atom.cas.b128 %p, [a], %q, %r;      atom.cas.b128    {%p, %p'}, [a], {%q, %q'}, {%r, %r'};
//! ```
//!
//! A plain access of 16 bytes is one of two values. Accesses that are one operation for others keep their type, and are
//! [carried as text](super::opaque).

use std::collections::HashMap;

use super::tree::{Body, Instruction, Operand, Register, RegisterData, Statement};

/// Whether an instruction is one operation on 16 bytes.
pub(super) fn is_whole(instruction: &Instruction<'_>) -> bool {
    instruction.last() == "b128"
        && match instruction.opcode {
            "atom" => instruction.has("exch") || instruction.has("cas"),
            "ld" | "st" => instruction.is_atomic_access(),
            _ => false,
        }
}

/// Halves the registers of 128 bits, and the instructions that move them.
pub(super) fn halve(body: &mut Body<'_>) {
    let wide: Vec<Register> = (0..)
        .zip(&body.registers)
        .filter(|(_, data)| data.ty == "b128")
        .map(|(register, _)| register)
        .collect();
    if wide.is_empty() {
        return;
    }
    let mut upper: HashMap<Register, Register> = HashMap::new();
    for register in wide {
        let data = &mut body.registers[register as usize];
        data.ty = "b64";
        let half = data.clone();
        upper.insert(register, body.registers.len() as Register);
        body.registers.push(RegisterData { ..half });
    }
    let statements = std::mem::take(&mut body.statements);
    for statement in statements {
        match statement {
            Statement::Instruction(instruction) if instruction.last() == "b128" => {
                let mut instruction = instruction;
                instruction
                    .operands
                    .iter_mut()
                    .for_each(|operand| pair(operand, &upper));
                let halves = halves(instruction).into_iter();
                body.statements.extend(halves.map(Statement::Instruction));
            }
            other => body.statements.push(other),
        }
    }
}

/// A register of 128 bits becomes the pair of its halves.
fn pair(operand: &mut Operand<'_>, upper: &HashMap<Register, Register>) {
    if let Operand::Register(low) = *operand
        && let Some(&high) = upper.get(&low)
    {
        *operand = Operand::Vector(vec![Operand::Register(low), Operand::Register(high)]);
    }
}

/// The instructions that an instruction on pairs becomes.
fn halves<'t>(mut instruction: Instruction<'t>) -> Vec<Instruction<'t>> {
    let is_plain = !is_whole(&instruction);
    match (instruction.opcode, &instruction.operands[..]) {
        ("mov", [Operand::Vector(to), Operand::Vector(from)]) if to.len() == 2 && from.len() == 2 => {
            let (to, from) = (to.clone(), from.clone());
            // Both are read before either is written.
            let swaps = to[0] == from[1];
            let mut moves: Vec<Instruction<'t>> = to
                .into_iter()
                .zip(from)
                .filter(|(to, _)| *to != Operand::Sink)
                .map(|(to, from)| Instruction {
                    modifiers: vec!["b64"],
                    operands: vec![to, from],
                    ..instruction.clone()
                })
                .collect();
            if swaps {
                moves.reverse();
            }
            moves
        }
        ("ld" | "ldu" | "st", _) if is_plain => {
            instruction.modifiers.pop();
            instruction.modifiers.extend(["v2", "b64"]);
            vec![instruction]
        }
        _ => vec![instruction],
    }
}
