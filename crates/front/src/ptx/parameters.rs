//! What an entry is given: its parameters and variables as the kernel has them, and the loads that read parameters.

use std::collections::HashMap;

use super::kinds::space_of;
use super::kinds::type_of;
use super::memory::{moved, parts};
use super::slots::From;
use super::translator::{At, Translator, register_kind};
use super::tree::{Instruction, Operand, Register, Statement, Variable};
use super::values::last_type;
use crate::error::{Error, Result};
use crate::ir::{ArrayData, BinaryOp, Kernel, Param, PointerFacts, Space, Type, limits};
use crate::suggest::quoted;

/// The element type of a copy: the type of the loads from shared memory, or else plain bits.
fn copied(translator: &Translator<'_, '_>, copy: &Instruction<'_>) -> Option<Type> {
    let bytes = copy.operands.iter().find_map(|operand| match operand {
        Operand::Integer(bytes) => u32::try_from(*bytes).ok(),
        _ => None,
    })?;
    let mut found: HashMap<Type, usize> = HashMap::new();
    for statement in &translator.source.body.statements {
        if let Statement::Instruction(load) = statement
            && load.opcode == "ld"
            && load.has("shared")
            && let Some(ty) = element(translator, load)
            && ty.bytes() <= bytes
        {
            *found.entry(ty).or_default() += 1;
        }
    }
    let commonest = found.into_iter().max_by_key(|&(ty, count)| (count, ty));
    let bits = if bytes == 8 { Type::I64 } else { Type::I32 };
    Some(commonest.map_or(bits, |(ty, _)| ty))
}

/// Gives the kernel its parameters and arrays.
pub(super) fn declare(translator: &mut Translator<'_, '_>, kernel: &mut Kernel) -> Result<()> {
    let source = translator.source;
    for (number, slot) in source.slots.all.iter().enumerate() {
        let name = &slot.name;
        let at = |error: Error| error.at(format!("parameter `{name}`"));
        let declared = type_of(slot.ty).filter(|ty| *ty != Type::Bool);
        let declared = declared.ok_or_else(|| {
            at(Error::input(format!(
                "parameters of type `.{}` are not supported",
                slot.ty
            )))
        })?;
        let is_pointer = source.kinds.pointers[number] && declared == Type::I64;
        let ty = match is_pointer {
            true => Type::Ptr(Space::Global),
            false => scalar_kind(translator, number).unwrap_or(declared),
        };
        let value = kernel.value(ty);
        kernel.values[value].name = Some(name.clone());
        let facts = is_pointer.then(|| pointer_facts(translator, kernel, number));
        kernel.params.push(Param {
            name: name.clone(),
            value,
            facts: facts.transpose().map_err(at)?,
        });
        translator.param_values.push(value);
    }
    let mut variables: Vec<&Variable<'_>> = source.variables.values().copied().collect();
    variables.sort_by_key(|variable| (variable.line, variable.name));
    let mut dynamic = None;
    for variable in variables {
        let Some(data) = array(translator, variable)? else {
            continue;
        };
        // All arrays whose size the launch gives begin at the same address.
        let is_dynamic = variable.length.is_none();
        let array = match dynamic.filter(|_| is_dynamic) {
            Some(first) => {
                let first_data: &mut ArrayData = &mut kernel.arrays[first];
                first_data.align = first_data.align.max(data.align);
                first
            }
            None => kernel.arrays.push(data),
        };
        if is_dynamic {
            dynamic = Some(array);
        }
        translator.arrays.insert(variable.name, array);
    }
    Ok(())
}

/// What the registers that a scalar parameter is loaded into hold.
fn scalar_kind(translator: &Translator<'_, '_>, number: usize) -> Option<Type> {
    let source = translator.source;
    let slot = &source.slots.all[number];
    let From::Parameter(name, start) = slot.from else {
        return None;
    };
    let mut found = None;
    for statement in &source.body.statements {
        if let Statement::Instruction(instruction) = statement
            && let [to, Operand::Address(base, offset)] = &instruction.operands[..]
            && u64::try_from(*offset) == Ok(start)
            && **base == Operand::Symbol(name)
        {
            let kind = register_kind(source.kinds, to).filter(|kind| !kind.is_pointer());
            let fits = type_of(instruction.last()).map(Type::bits) == kind.map(Type::bits);
            found = found.or(kind.filter(|_| fits));
        }
    }
    found.filter(|kind| Some(kind.bits()) == type_of(slot.ty).map(Type::bits))
}

/// The known facts about the memory behind a pointer: from its loads, and from the caller.
fn pointer_facts(
    translator: &Translator<'_, '_>,
    kernel: &mut Kernel,
    number: usize,
) -> Result<PointerFacts> {
    let source = translator.source;
    let slot = &source.slots.all[number];
    let variable = match slot.from {
        From::Variable(name) => source.variables.get(name).copied(),
        From::Parameter(..) | From::Structure(..) | From::Workspace => None,
    };
    let mut elements: HashMap<Type, usize> = HashMap::new();
    // One such load says nothing about other reads and writes.
    let (mut constant, mut other) = (false, false);
    for statement in &source.body.statements {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        for operand in &instruction.operands {
            let Operand::Address(base, _) = operand else {
                continue;
            };
            let reached = match **base {
                Operand::Register(base) => reaches(translator, base, number),
                // A read at a place that the text names is a member.
                Operand::Symbol(name) => {
                    source.slots.variable(name) == Some(number) && !instruction.has("param")
                }
                _ => false,
            };
            if !reached || instruction.opcode == "mov" {
                continue;
            }
            let is_hint = matches!(instruction.opcode, "prefetch" | "prefetchu");
            let is_constant = instruction.opcode == "ld" && instruction.has("nc");
            constant |= is_constant;
            other |= !is_constant && !is_hint;
            if let Some(ty) = element(translator, instruction) {
                *elements.entry(ty).or_default() += 1;
            }
        }
    }
    let commonest = elements.into_iter().max_by_key(|&(ty, count)| (count, ty));
    let given = source.facts.parameters.get(&slot.name);
    let mut given = given.copied().unwrap_or_default();
    let accessed = commonest.map(|(ty, _)| ty);
    let element = given.element.or(accessed).or(slot.element).unwrap_or(Type::I8);
    given.length = given.elements(element.bytes());
    if let Some(variable) = variable {
        // How long it is the module says, if it is defined here; that a kernel cannot write it, its space.
        let bytes = type_of(variable.ty).map_or(1, |ty| u64::from(ty.bytes()));
        if let Some(length) = variable.length.filter(|_| !variable.is_common) {
            let length = length.saturating_mul(bytes) / u64::from(element.bytes()).max(1);
            given.length = (!source.facts.unbounded_variables).then_some(length);
        }
        if variable.space == "const" {
            (given.read_only, given.unaliased) = (true, true);
        }
    }
    if let From::Structure(_, bytes) = slot.from {
        given.length = Some(bytes / u64::from(element.bytes()).max(1));
        (given.read_only, given.unaliased) = (true, true);
    }
    // Nothing but the code that waits for all work-groups reaches it.
    given.unaliased |= matches!(slot.from, From::Workspace);
    let stated = slot
        .pointer
        .map_or(0, |(_, align)| align.min(u64::from(limits::ALIGNMENT)) as u32);
    let align = stated.max(given.align.unwrap_or(0)).max(element.bytes());
    let length = given
        .length
        .map(|length| i64::try_from(length).map_err(|_| Error::usage("no buffer is so long")))
        .transpose()?;
    Ok(PointerFacts {
        element,
        align: if align.is_power_of_two() {
            align
        } else {
            element.bytes()
        },
        length: length.map(|length| kernel.constant(Type::I64, length as u64)),
        read_only: given.read_only || constant && !other,
        unaliased: given.unaliased,
        is_constant: variable.is_some_and(|variable| variable.space == "const")
            || matches!(slot.from, From::Structure(..)),
        races: given.races.max(source.facts.races),
    })
}

/// Whether an address may lead into the memory of a parameter.
fn reaches(translator: &Translator<'_, '_>, base: Register, number: usize) -> bool {
    translator.source.kinds.roots[base as usize].contains(&number)
}

/// The type of what an access moves.
fn element(translator: &Translator<'_, '_>, instruction: &Instruction<'_>) -> Option<Type> {
    if instruction.opcode == "cp" {
        return copied(translator, instruction);
    }
    // Sixteen bytes at once are two numbers.
    if super::quads::is_whole(instruction) {
        return Some(Type::I64);
    }
    let ty = type_of(instruction.last())?;
    let value = match instruction.opcode {
        "st" => instruction.operands.get(1),
        _ => instruction.operands.first(),
    };
    let value = match value {
        Some(Operand::Vector(parts)) => parts.first(),
        other => other,
    };
    Some(moved(translator, value, ty))
}

fn array(translator: &Translator<'_, '_>, variable: &Variable<'_>) -> Result<Option<ArrayData>> {
    let at = |error: Error| error.at(format!("line {}", variable.line));
    let space = match space_of(variable.space) {
        Some(space @ (Space::Shared | Space::Private)) => space,
        _ => return Ok(None),
    };
    let element = type_of(variable.ty).ok_or_else(|| {
        at(Error::input(format!(
            "variables of type `.{}` are not supported",
            variable.ty
        )))
    })?;
    let length = match (variable.length, translator.source.facts.dynamic_shared_bytes) {
        (Some(length), _) => length,
        (None, Some(bytes)) => u64::from(bytes / element.bytes().max(1)),
        (None, None) => {
            return Err(at(Error::input(format!(
                "how large the dynamic shared memory {} is depends on the launch",
                quoted(variable.name)
            ))
            .accepted("`shared_bytes = …` in the launch file")));
        }
    };
    let length = u32::try_from(length).map_err(|_| at(Error::input("a variable is too large")))?;
    let align = u32::try_from(variable.align)
        .unwrap_or(u32::MAX)
        .max(element.bytes());
    // An array of no bytes may be declared, and is never touched.
    Ok((length > 0).then(|| ArrayData {
        name: variable.name.to_owned(),
        space,
        element,
        length,
        align,
    }))
}

impl<'t> Translator<'_, 't> {
    /// Whether an address is that of a structure that is passed by value, at a place that only the run tells.
    fn leads_into_structure(&self, from: &Operand<'t>) -> bool {
        match from {
            Operand::Address(base, _) => match **base {
                Operand::Symbol(name) => self.source.slots.variable(name).is_some(),
                Operand::Register(register) => !self.source.kinds.roots[register as usize].is_empty(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether members of a structure cover a read whose values have `bytes` bytes each.
    fn reads_members(&self, to: &Operand<'t>, from: &Operand<'t>, bytes: u32) -> bool {
        let Operand::Address(base, offset) = from else {
            return false;
        };
        let Operand::Symbol(name) = **base else {
            return false;
        };
        (0..parts(to).len()).all(|position| {
            let offset = offset.wrapping_add((bytes as usize * position) as i64);
            self.source.slots.read(name, offset, bytes).is_some()
        })
    }

    /// `ld.param.u32 d, [p+4]`, also of several at once.
    pub(crate) fn load_parameter(
        &mut self,
        (b, values, instruction): At<'_, '_, 't>,
        to: &Operand<'t>,
        from: &Operand<'t>,
    ) -> Result<()> {
        let numeric = last_type(instruction)?;
        if self.leads_into_structure(from) && !self.reads_members(to, from, numeric.ty.bytes()) {
            return self.load_memory((b, values, instruction), to, from);
        }
        let (name, offset) = match from {
            Operand::Address(base, offset) => match **base {
                Operand::Symbol(name) => (name, *offset),
                _ => return Err(odd_read(instruction)),
            },
            _ => return Err(odd_read(instruction)),
        };
        let bytes = numeric.ty.bytes();
        for (position, part) in parts(to).iter().enumerate() {
            let offset = offset.wrapping_add((bytes as usize * position) as i64);
            let found = self.source.slots.read(name, offset, bytes);
            let (slot, inside) = found.ok_or_else(|| odd_read(instruction))?;
            let mut value = self.param_values[slot];
            if inside > 0 {
                let whole = self.as_integer(b, value)?;
                let count = b.constant(b.kernel.ty(whole), u64::from(8 * inside));
                value = b.binary(BinaryOp::ShrU, whole, count);
            }
            let value = match b.kernel.ty(value).bits() == numeric.ty.bits() {
                true => value,
                false => self.retyped(b, value, numeric.ty)?,
            };
            self.set(b, values, part, value, numeric.signed)?;
        }
        Ok(())
    }
}

fn odd_read(instruction: &Instruction<'_>) -> Error {
    Error::input(format!(
        "`{}` reads no parameter of the entry, or one at a place that only the run tells",
        instruction.spelling()
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn arrays_that_a_launch_sizes_are_one_memory() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 4 .b8 one[];\n\
                    .extern .shared .align 16 .b8 other[];\n.visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<4>;\n\
                    .reg .b64 %rd<2>;\n.shared .align 4 .b8 own[8];\nld.param.u64 %rd1, [out];\nst.shared.u32 [one], 5;\n\
                    ld.shared.u32 %r1, [other];\nst.shared.u32 [own], %r1;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
        let facts = super::super::Facts {
            dynamic_shared_bytes: Some(64),
            ..Default::default()
        };
        let imported = super::super::import(text, "test.ptx", None, &facts).expect("it is read");
        let arrays: Vec<_> = imported.kernel.arrays.values().collect();
        let [one, own] = &arrays[..] else {
            panic!("{arrays:?}");
        };
        assert_eq!((one.name.as_str(), one.align, one.bytes()), ("one", 16, 64));
        assert_eq!(own.name, "own");
    }
}
