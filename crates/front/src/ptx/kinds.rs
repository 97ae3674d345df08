//! The kind of value in each register: PTX states only its width; the IR needs to know whether it is an integer, a float or a
//! pointer, and into which space.
//!
//! Floats and integers follow from the instructions that touch a register; a `mov` or a load of plain bits follows its
//! neighbours. Addresses start at parameters, variables and `cvta`, and go through additions; a register is a pointer only if
//! all of its definitions agree on the form of the address ([`Held`]). A 64-bit parameter is a pointer if it says so, or if
//! addresses are made of it ([`pointers`]). It leads to global memory: an address of shared or local memory means nothing in
//! another launch.
//!
//! A choice limits what the passes see. It changes no result: where a value is needed as another kind its bits are
//! reinterpreted, and only `cvta` gives an address another form.

mod pointers;

use std::collections::{BTreeSet, HashMap};

use super::opaque::is_carried;
use super::slots::Slots;
use super::tree::{Body, Instruction, Operand, Register, Statement, TOKEN, Variable};
use crate::ir::{Space, Type};

/// The kinds of a body.
#[derive(Debug)]
pub(super) struct Kinds {
    /// The IR's type of each register; nothing for widths that the IR does not have.
    pub registers: Vec<Option<Type>>,
    /// Whether each slot is a pointer.
    pub pointers: Vec<bool>,
    /// The slots that each register's value may be made of, by addition alone.
    pub roots: Vec<BTreeSet<usize>>,
}

/// The IR's type of a PTX type: `u32`, `b64`, `f16`, `pred`.
pub(super) fn type_of(name: &str) -> Option<Type> {
    Some(match name {
        "pred" => Type::Bool,
        "b8" | "u8" | "s8" => Type::I8,
        "b16" | "u16" | "s16" => Type::I16,
        // Two halves are bits until something computes with them.
        "b32" | "u32" | "s32" | "f16x2" | "bf16x2" | "s16x2" | "u16x2" => Type::I32,
        "b64" | "u64" | "s64" => Type::I64,
        "f16" => Type::F16,
        "bf16" => Type::Bf16,
        "f32" => Type::F32,
        "f64" => Type::F64,
        TOKEN => Type::Token,
        _ => return None,
    })
}

/// The space that a word of PTX names. Constant memory is global memory that nothing writes.
pub(super) fn space_of(name: &str) -> Option<Space> {
    Some(match name {
        "global" | "const" => Space::Global,
        "shared" | "shared::cta" => Space::Shared,
        "local" => Space::Private,
        _ => return None,
    })
}

/// Works out what each register holds.
pub(super) fn kinds<'t>(
    slots: &Slots<'t>,
    body: &Body<'t>,
    variables: &HashMap<&'t str, &Variable<'t>>,
) -> Kinds {
    let instructions: Vec<&Instruction<'t>> = body
        .statements
        .iter()
        .filter_map(|statement| match statement {
            Statement::Instruction(instruction) => Some(instruction),
            Statement::Label(_) | Statement::KeepLoop => None,
        })
        .collect();
    let mut finder = Finder {
        slots,
        variables,
        instructions,
        roots: vec![BTreeSet::new(); body.registers.len()],
        may_be_address: vec![false; body.registers.len()],
        held: vec![Held::Undefined; body.registers.len()],
        pointers: slots.all.iter().map(|slot| slot.pointer.is_some()).collect(),
    };
    finder.find_roots();
    finder.find_pointers();
    finder.spread_addresses();
    let numbers = finder.numbers(body);
    let registers = body
        .registers
        .iter()
        .enumerate()
        .map(|(register, data)| {
            let declared = type_of(data.ty)?;
            Some(match (declared, finder.held[register]) {
                (Type::I64, Held::Address(space)) => Type::Ptr(space),
                (Type::I32, Held::Address(space @ (Space::Shared | Space::Private))) => Type::Ptr(space),
                (Type::I16 | Type::I32 | Type::I64, _) => numbers[register].unwrap_or(declared),
                _ => declared,
            })
        })
        .collect();
    Kinds {
        registers,
        pointers: finder.pointers,
        roots: finder.roots,
    }
}

struct Finder<'f, 't> {
    slots: &'f Slots<'t>,
    variables: &'f HashMap<&'t str, &'f Variable<'t>>,
    instructions: Vec<&'f Instruction<'t>>,
    roots: Vec<BTreeSet<usize>>,
    /// Whether a register is made of a number of the host's that may be an address.
    may_be_address: Vec<bool>,
    held: Vec<Held>,
    pointers: Vec<bool>,
}

/// What the definitions of a register have in common. Undefined is below addresses, global addresses are below generic ones,
/// bits are above all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// No definition is known yet, or only constants.
    Undefined,
    /// An address in the form that accesses to this space take. Generic: the form that accesses to no space take.
    Address(Space),
    /// Anything else.
    Bits,
}

impl Held {
    /// What holds of either.
    fn join(self, other: Held) -> Held {
        use Space::{Generic, Global};
        match (self, other) {
            (Held::Undefined, known) | (known, Held::Undefined) => known,
            (a, b) if a == b => a,
            // A global address is its own generic address.
            (Held::Address(Global | Generic), Held::Address(Global | Generic)) => Held::Address(Generic),
            _ => Held::Bits,
        }
    }

    /// The sum with another one.
    fn plus(self, other: Held) -> Held {
        match (self, other) {
            (Held::Undefined, _) | (_, Held::Undefined) => Held::Undefined,
            (pointer @ Held::Address(_), Held::Bits) | (Held::Bits, pointer @ Held::Address(_)) => pointer,
            _ => Held::Bits,
        }
    }

    /// The difference to another one.
    fn minus(self, other: Held) -> Held {
        match (self, other) {
            (Held::Undefined, _) | (_, Held::Undefined) => Held::Undefined,
            (pointer @ Held::Address(_), Held::Bits) => pointer,
            _ => Held::Bits,
        }
    }
}

/// Whether a conversion leaves an address as it is: to 64 bits, of 64 or of the 32 that shared and local addresses have.
pub(super) fn keeps_addresses(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.modifiers[..],
        ["u64" | "s64" | "b64", "u64" | "s64" | "b64"] | ["u64", "u32"]
    )
}

/// The operands that a sum, copy or selection of pointers takes its pointer from.
fn passed<'i, 't>(instruction: &'i Instruction<'t>) -> &'i [Operand<'t>] {
    let operands = &instruction.operands;
    let range = match instruction.opcode {
        "mov" | "cvta" => 1..2,
        "add" => 1..3,
        "sub" => 1..2,
        "selp" => 1..3,
        // The multiplied factors make no pointer; the addend may be one.
        "mad" => 3..4,
        "cvt" if keeps_addresses(instruction) => 1..2,
        _ => return &[],
    };
    operands.get(range).unwrap_or_default()
}

impl<'t> Finder<'_, 't> {
    /// The slots of 64 bits that a load of the parameter space reads, with the registers that they go to.
    fn loaded<'i>(&self, instruction: &'i Instruction<'t>) -> Vec<(Register, usize)> {
        let [to, Operand::Address(base, offset)] = &instruction.operands[..] else {
            return Vec::new();
        };
        let Operand::Symbol(name) = **base else {
            return Vec::new();
        };
        let is_long = type_of(instruction.last()) == Some(Type::I64);
        if instruction.opcode != "ld" || !instruction.has("param") || !is_long {
            return Vec::new();
        }
        let parts = match to {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let read = |(position, part): (usize, &'i Operand<'t>)| match part {
            Operand::Register(register) => {
                let (slot, inside) = self.slots.read(name, offset + 8 * position as i64, 8)?;
                let whole = inside == 0 && type_of(self.slots.all[slot].ty) == Some(Type::I64);
                whole.then_some((*register, slot))
            }
            _ => None,
        };
        parts.iter().enumerate().filter_map(read).collect()
    }

    /// The slot of a variable whose address an operand is.
    fn address_of(&self, operand: &Operand<'t>) -> Option<usize> {
        match operand {
            Operand::Symbol(name) => self.slots.variable(name),
            Operand::Address(base, _) => match &**base {
                Operand::Symbol(name) => self.slots.variable(name),
                _ => None,
            },
            _ => None,
        }
    }

    fn find_roots(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for &instruction in &self.instructions {
                for (to, slot) in self.loaded(instruction) {
                    changed |= self.roots[to as usize].insert(slot);
                }
                let Some(&Operand::Register(to)) = instruction.operands.first() else {
                    continue;
                };
                let before = self.roots[to as usize].len();
                for operand in passed(instruction) {
                    if let Some(slot) = self.address_of(operand) {
                        self.roots[to as usize].insert(slot);
                    }
                    if let Operand::Register(from) = operand
                        && *from != to
                    {
                        let found = std::mem::take(&mut self.roots[*from as usize]);
                        self.roots[to as usize].extend(&found);
                        self.roots[*from as usize] = found;
                    }
                }
                changed |= self.roots[to as usize].len() != before;
            }
        }
    }

    fn spread_addresses(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..self.instructions.len() {
                for (to, held) in self.defined(self.instructions[at]) {
                    let known = &mut self.held[to as usize];
                    let both = known.join(held);
                    changed |= both != *known;
                    *known = both;
                }
            }
        }
    }

    /// The registers that an instruction writes, with what they are then.
    fn defined(&self, instruction: &Instruction<'t>) -> Vec<(Register, Held)> {
        let is_pointer = |slot: usize| match self.pointers[slot] {
            true => Held::Address(Space::Global),
            false => Held::Bits,
        };
        let loaded = self.loaded(instruction);
        let mut defined: Vec<_> = loaded.iter().map(|&(to, slot)| (to, is_pointer(slot))).collect();
        let result = self.result(instruction);
        for operand in instruction.written() {
            operand.for_each_register(&mut |register| {
                if !loaded.iter().any(|&(to, _)| to == register) {
                    defined.push((register, result));
                }
            });
        }
        defined
    }

    /// The space of a variable, or of a structure that is passed by value and has an address.
    fn space_of_symbol(&self, name: &str) -> Option<Space> {
        match self.variables.get(name) {
            Some(variable) => space_of(variable.space),
            None => self.slots.variable(name).map(|_| Space::Global),
        }
    }

    /// What an operand is.
    fn of(&self, operand: &Operand<'t>) -> Held {
        let symbol = |name: &str| self.space_of_symbol(name).map_or(Held::Bits, Held::Address);
        match operand {
            Operand::Register(register) => self.held[*register as usize],
            Operand::Symbol(name) => symbol(name),
            Operand::Address(base, _) => match &**base {
                Operand::Symbol(name) => symbol(name),
                _ => Held::Bits,
            },
            _ => Held::Bits,
        }
    }

    /// The same of an operand that becomes the result as it is. A constant has no form.
    fn copied(&self, operand: &Operand<'t>) -> Held {
        match operand {
            Operand::Integer(_) => Held::Undefined,
            other => self.of(other),
        }
    }

    /// What an instruction's result is.
    fn result(&self, instruction: &Instruction<'t>) -> Held {
        let operands = &instruction.operands[..];
        match (instruction.opcode, operands) {
            ("cvta", _) => {
                let space = instruction.modifiers.iter().find_map(|word| space_of(word));
                match space {
                    Some(space) if instruction.has("to") || space == Space::Global => Held::Address(space),
                    Some(_) => Held::Address(Space::Generic),
                    None => Held::Bits,
                }
            }
            ("mov", [Operand::Register(_), from]) => self.copied(from),
            ("cvt", [_, from]) if keeps_addresses(instruction) => self.of(from),
            ("add", [_, a, b]) => self.of(a).plus(self.of(b)),
            // The distance of an address to another one is a number.
            ("sub", [_, _, Operand::Register(b)]) if self.may_be_address[*b as usize] => Held::Bits,
            ("sub", [_, a, b]) => self.of(a).minus(self.of(b)),
            ("mad", [_, _, _, addend]) => self.of(addend),
            ("selp", [_, a, b, _]) => self.copied(a).join(self.copied(b)),
            _ => Held::Bits,
        }
    }

    /// What registers of plain bits hold, told by the instructions around them.
    fn numbers(&self, body: &Body<'t>) -> Vec<Option<Type>> {
        let mut votes: Vec<(u32, u32, Option<Type>)> = vec![(0, 0, None); body.registers.len()];
        let mut vote = |operand: &Operand<'t>, ty: &str| {
            let Some(ty) = type_of(ty) else { return };
            operand.for_each_register(&mut |register| {
                let vote = &mut votes[register as usize];
                if type_of(body.registers[register as usize].ty).map(Type::bits) != Some(ty.bits()) {
                    return;
                }
                match ty.is_float() {
                    true => {
                        vote.0 += 1;
                        vote.2 = Some(ty);
                    }
                    false => vote.1 += 1,
                }
            });
        };
        let mut copies: Vec<(Register, Register)> = Vec::new();
        for instruction in &self.instructions {
            let last = instruction.last();
            match instruction.opcode {
                "mov" | "ld" | "st" | "selp" | "atom" | "red" | "shfl" => {
                    let untyped = last.starts_with('b') && last != "bf16";
                    for operand in &instruction.operands {
                        if !matches!(operand, Operand::Address(..))
                            && (!untyped || last == "pred")
                            && last.starts_with(['f', 'b'])
                        {
                            vote(operand, last);
                        }
                    }
                    if let ("mov", [Operand::Register(to), Operand::Register(from)]) =
                        (instruction.opcode, &instruction.operands[..])
                        && type_of(body.registers[*to as usize].ty).map(Type::bits)
                            == type_of(body.registers[*from as usize].ty).map(Type::bits)
                    {
                        copies.push((*to, *from));
                    }
                    if let ("selp", [Operand::Register(to), Operand::Register(a), ..]) =
                        (instruction.opcode, &instruction.operands[..])
                    {
                        copies.push((*to, *a));
                    }
                }
                "cvt" if is_carried(instruction) => {}
                "cvt" => {
                    let count = instruction.modifiers.len();
                    if let ([to, from], Some(to_type)) = (
                        &instruction.operands[..],
                        count.checked_sub(2).map(|at| instruction.modifiers[at]),
                    ) {
                        vote(to, to_type);
                        vote(from, last);
                    }
                }
                "cvta" => {}
                // The result is a truth value, the operands are compared.
                "setp" | "testp" => instruction
                    .operands
                    .iter()
                    .for_each(|operand| vote(operand, last)),
                "mul" | "mad" if instruction.has("wide") => {
                    instruction
                        .operands
                        .iter()
                        .skip(1)
                        .take(2)
                        .for_each(|operand| vote(operand, last));
                }
                "bra" | "call" => {}
                // The registers of one are of several types.
                _ if is_carried(instruction) => {}
                _ => instruction
                    .operands
                    .iter()
                    .for_each(|operand| vote(operand, last)),
            }
        }
        let mut kinds: Vec<Option<Type>> = votes
            .iter()
            .map(|&(floats, integers, ty)| ty.filter(|_| floats > integers))
            .collect();
        let mut decided: Vec<bool> = votes
            .iter()
            .map(|&(floats, integers, _)| floats + integers > 0)
            .collect();
        // Bit copies have the kind of their source, or of their target.
        for _ in 0..4 {
            for &(a, b) in copies.iter().chain(copies.iter().rev()) {
                for (from, to) in [(a as usize, b as usize), (b as usize, a as usize)] {
                    if decided[from] && !decided[to] {
                        decided[to] = true;
                        kinds[to] = kinds[from];
                    }
                }
            }
        }
        kinds
    }
}

#[cfg(test)]
mod tests;
