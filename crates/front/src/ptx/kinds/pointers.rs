//! Which parameters are pointers: those that the addresses of accesses, and operands of `cvta`, are made of.
//!
//! An address is followed backwards to the parameters. Of a sum with one candidate that is the pointer; of a sum with two nothing
//! is known. All alternatives of a selection or of copies into one register are addresses, and so is all that a table in shared or
//! local memory may hold where one is loaded from it:
//!
//! ```text
//! selp.b64 %s, %p, %q, %c;        st.local.v2.u64 [table], {%p, %q};
//! ld.global.u32 %r, [%s];         ld.local.u64 %s, [table+%i];    ld.global.u32 %r, [%s];
//! ```

use std::collections::HashMap;

use super::{Finder, passed, space_of, type_of};
use crate::ir::{Space, Type};
use crate::ptx::tree::{Instruction, Operand, Register};

/// A place in a variable: how many bytes after its start, if the text says that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'t> {
    variable: &'t str,
    offset: Option<i64>,
}

/// What is known of the place that a register leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leads<'t> {
    To(Place<'t>),
    /// To one of several variables, or elsewhere.
    Anywhere,
}

/// The tables of a body.
struct Tables<'t> {
    /// The registers of 64 bits that are stored in each variable, and where.
    stored: HashMap<&'t str, Vec<(Option<i64>, Register)>>,
    /// Where each register is loaded from.
    loaded: HashMap<Register, Vec<Place<'t>>>,
    /// Whether a register is made of a loaded one, by additions and copies.
    made: Vec<bool>,
}

/// The registers among some operands.
fn registers<'o>(operands: &'o [Operand<'_>]) -> impl Iterator<Item = Register> + 'o {
    operands.iter().filter_map(|operand| match operand {
        Operand::Register(register) => Some(*register),
        _ => None,
    })
}

/// The registers that an access of 64-bit words moves, each with its distance from the first.
fn words(moved: &Operand<'_>) -> impl Iterator<Item = (i64, Register)> {
    let parts = super::super::memory::parts(moved);
    let parts = parts.iter().zip(0..);
    parts.filter_map(|(part, position)| match part {
        Operand::Register(register) => Some((8 * position, *register)),
        _ => None,
    })
}

impl<'t> Finder<'_, 't> {
    pub(super) fn find_pointers(&mut self) {
        let tables = self.tables();
        let definitions = self.definitions();
        let mut work = self.addresses();
        let mut seen = vec![false; self.roots.len()];
        while let Some(register) = work.pop() {
            if std::mem::replace(&mut seen[register as usize], true) {
                continue;
            }
            let roots = &self.roots[register as usize];
            if roots.len() == 1 {
                roots.iter().for_each(|&root| self.pointers[root] = true);
            }
            for &at in &definitions[register as usize] {
                work.extend(self.addresses_in(self.instructions[at], &tables.made));
            }
            work.extend(tables.may_hold(register));
        }
        self.read_tables(&tables);
        for (roots, may_be_address) in self.roots.iter_mut().zip(&mut self.may_be_address) {
            *may_be_address = !roots.is_empty();
            // An offset that was added to a pointer is none: only pointers stay roots.
            roots.retain(|&root| self.pointers[root]);
        }
    }

    /// What is stored in a table is loaded from it.
    fn read_tables(&mut self, tables: &Tables<'t>) {
        let mut changed = true;
        while changed {
            changed = false;
            for &register in tables.loaded.keys() {
                let before = self.roots[register as usize].len();
                for from in tables.may_hold(register) {
                    let found = self.roots[from as usize].clone();
                    self.roots[register as usize].extend(found);
                }
                changed |= self.roots[register as usize].len() != before;
            }
            if changed {
                self.find_roots();
            }
        }
    }

    /// Registers that must hold addresses.
    fn addresses(&self) -> Vec<Register> {
        let mut found = Vec::new();
        for instruction in &self.instructions {
            if instruction.opcode == "cvta" {
                found.extend(registers(instruction.operands.get(1..2).unwrap_or_default()));
            }
            for operand in &instruction.operands {
                if let Operand::Address(base, _) = operand
                    && let Operand::Register(base) = **base
                {
                    found.push(base);
                }
            }
        }
        found
    }

    /// The instructions that pass an address to each register, by number.
    fn definitions(&self) -> Vec<Vec<usize>> {
        let mut definitions = vec![Vec::new(); self.roots.len()];
        for (at, instruction) in self.instructions.iter().enumerate() {
            if let Some(&Operand::Register(to)) = instruction.operands.first()
                && !passed(instruction).is_empty()
            {
                definitions[to as usize].push(at);
            }
        }
        definitions
    }

    /// The operands that are addresses if the result is one.
    fn addresses_in(&self, instruction: &Instruction<'t>, made: &[bool]) -> Vec<Register> {
        let may_be = |register: &Register| {
            let register = *register as usize;
            !self.roots[register].is_empty() || made[register]
        };
        let found: Vec<Register> = registers(passed(instruction)).filter(may_be).collect();
        match instruction.opcode {
            "add" if found.len() > 1 => Vec::new(),
            _ => found,
        }
    }

    fn tables(&self) -> Tables<'t> {
        let leads = self.leads();
        let mut tables = Tables {
            stored: HashMap::new(),
            loaded: HashMap::new(),
            made: vec![false; self.roots.len()],
        };
        for instruction in &self.instructions {
            let is_word = type_of(instruction.last()) == Some(Type::I64);
            let (moved, address) = match (instruction.opcode, &instruction.operands[..]) {
                ("ld", [moved, address]) | ("st", [address, moved]) if is_word => (moved, address),
                _ => continue,
            };
            let Some(Leads::To(place)) = self.leads_of(address, &leads) else {
                continue;
            };
            for (distance, register) in words(moved) {
                let offset = place.offset.map(|offset| offset.wrapping_add(distance));
                if instruction.opcode == "st" {
                    let stored = tables.stored.entry(place.variable).or_default();
                    stored.push((offset, register));
                } else {
                    let loaded = tables.loaded.entry(register).or_default();
                    loaded.push(Place { offset, ..place });
                    tables.made[register as usize] = true;
                }
            }
        }
        let mut changed = !tables.loaded.is_empty();
        while changed {
            changed = false;
            for instruction in &self.instructions {
                if let Some(&Operand::Register(to)) = instruction.operands.first()
                    && !tables.made[to as usize]
                    && registers(passed(instruction)).any(|from| tables.made[from as usize])
                {
                    tables.made[to as usize] = true;
                    changed = true;
                }
            }
        }
        tables
    }

    /// The place in a variable of shared or local memory that each register leads to.
    fn leads(&self) -> Vec<Option<Leads<'t>>> {
        let mut leads = vec![None; self.roots.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for instruction in &self.instructions {
                let Some(&Operand::Register(to)) = instruction.operands.first() else {
                    continue;
                };
                let Some(now) = self.leads_after(instruction, &leads) else {
                    continue;
                };
                let known = &mut leads[to as usize];
                let both = match (*known, now) {
                    (None, now) => now,
                    (Some(Leads::To(one)), Leads::To(other)) if one.variable == other.variable => {
                        let offset = one.offset.filter(|_| one == other);
                        Leads::To(Place { offset, ..one })
                    }
                    _ => Leads::Anywhere,
                };
                changed |= *known != Some(both);
                *known = Some(both);
            }
        }
        leads
    }

    /// Where an instruction's result leads, as far as its operands are known to lead into variables.
    fn leads_after(&self, instruction: &Instruction<'t>, leads: &[Option<Leads<'t>>]) -> Option<Leads<'t>> {
        let from = passed(instruction);
        let mut known = from.iter().filter_map(|operand| self.leads_of(operand, leads));
        let first = known.next()?;
        match (first, known.next(), instruction.opcode) {
            (Leads::To(place), None, "add") => {
                let constant = from.iter().find_map(|operand| match operand {
                    Operand::Integer(number) => Some(*number as i64),
                    _ => None,
                });
                let offset = place.offset.zip(constant);
                let offset = offset.map(|(offset, constant)| offset.wrapping_add(constant));
                Some(Leads::To(Place { offset, ..place }))
            }
            (Leads::To(_), None, "mov" | "cvta" | "cvt") => Some(first),
            (Leads::To(place), None, "sub" | "mad") => Some(Leads::To(Place {
                offset: None,
                ..place
            })),
            _ => Some(Leads::Anywhere),
        }
    }

    /// Where an operand leads, if it is known to lead into a variable.
    fn leads_of(&self, operand: &Operand<'t>, leads: &[Option<Leads<'t>>]) -> Option<Leads<'t>> {
        match operand {
            Operand::Register(register) => leads[*register as usize],
            Operand::Symbol(variable) => {
                let space = self.variables.get(variable).and_then(|own| space_of(own.space));
                matches!(space, Some(Space::Shared | Space::Private)).then_some(Leads::To(Place {
                    variable,
                    offset: Some(0),
                }))
            }
            Operand::Address(base, more) => Some(match self.leads_of(base, leads)? {
                Leads::To(place) => Leads::To(Place {
                    offset: place.offset.map(|offset| offset.wrapping_add(*more)),
                    ..place
                }),
                Leads::Anywhere => Leads::Anywhere,
            }),
            _ => None,
        }
    }
}

impl Tables<'_> {
    /// The registers that were stored where a register is loaded from.
    fn may_hold(&self, register: Register) -> Vec<Register> {
        let mut found = Vec::new();
        for place in self.loaded.get(&register).into_iter().flatten() {
            let stored = self.stored.get(place.variable).into_iter().flatten();
            let is_there = |(offset, _): &&(Option<i64>, Register)| match (offset, place.offset) {
                (Some(stored), Some(loaded)) => *stored == loaded,
                _ => true,
            };
            found.extend(stored.filter(is_there).map(|&(_, register)| register));
        }
        found
    }
}
