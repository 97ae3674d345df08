//! The scalars that an entry is given: its parameters, the members of structures that it is passed by value, and the
//! addresses of the module's variables that it mentions.
//!
//! ```text
//! .global .align 4 .b8 table[64];
//! .entry k(.param .u64 k_p, .param .align 8 .b8 k_s[16])        slots: p, s_0, s_8, table
//! { ld.param.u64 %rd1, [k_s]; ld.param.v2.f32 {%f1, %f2}, [k_s+8]; … }         (s_8 and s_12 in truth)
//! ```
//!
//! A member is the part of a structure that the entry reads at one place; overlapping reads share one member, in parts. A
//! variable is passed as a hidden pointer: an IR kernel has no memory of its own.

use std::collections::HashMap;

use super::kinds::type_of;
use super::taken::taken;
use super::tree::{Body, Function, Instruction, Operand, Statement, Variable};
use super::workspace::{self, WORKSPACE};
use crate::error::{Error, Result};
use crate::ir::{Type, limits};
use crate::suggest::quoted;

/// A scalar that the entry is given.
#[derive(Clone, Debug)]
pub(super) struct Slot<'t> {
    /// What the kernel calls it.
    pub name: String,
    /// Its PTX type.
    pub ty: &'t str,
    /// Where it comes from.
    pub from: From<'t>,
    /// The space and alignment of its target, if the text declares it a pointer.
    pub pointer: Option<(&'t str, u64)>,
    /// The numbers that it points to, as the source declares them.
    pub element: Option<Type>,
}

/// Where a slot comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum From<'t> {
    /// A parameter, or the member of one that starts this many bytes in it.
    Parameter(&'t str, u64),
    /// The address of the module's variable of this name.
    Variable(&'t str),
    /// The address of a structure that is passed by value as this parameter, of this many bytes.
    Structure(&'t str, u64),
    /// The address of a cooperative launch's workspace.
    Workspace,
}

/// The slots of an entry, in the order of the kernel's parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots<'t> {
    /// All of them.
    pub all: Vec<Slot<'t>>,
    variables: HashMap<&'t str, usize>,
}

impl<'t> Slots<'t> {
    /// The slot that a read of this many bytes of a parameter touches, and how far in it the read starts.
    pub(crate) fn read(&self, parameter: &str, offset: i64, bytes: u32) -> Option<(usize, u32)> {
        let start = u64::try_from(offset).ok()?;
        let end = start + u64::from(bytes);
        let position = self.all.iter().position(|slot| match slot.from {
            From::Parameter(name, at) => {
                name == parameter && at <= start && end <= at + u64::from(slot.bytes())
            }
            From::Variable(_) | From::Structure(..) | From::Workspace => false,
        })?;
        let From::Parameter(_, at) = self.all[position].from else {
            return None;
        };
        Some((position, (start - at) as u32))
    }

    /// The slot of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<usize> {
        self.variables.get(name).copied()
    }
}

impl Slot<'_> {
    /// Its size.
    pub(crate) fn bytes(&self) -> u32 {
        type_of(self.ty).map_or(8, |ty| ty.bytes())
    }
}

/// Finds the slots of an entry.
///
/// # Errors
/// A structure whose members overlap in ways that no scalar holds, or a parameter of an unknown type.
pub(super) fn slots<'t>(
    function: &Function<'t>,
    body: &Body<'t>,
    variables: &HashMap<&'t str, &Variable<'t>>,
) -> Result<Slots<'t>> {
    let mut slots = Slots::default();
    let taken = taken(body, function);
    for param in &function.params {
        let name = parameter_name(function.name, param.name);
        let Some(length) = param.array else {
            slots.all.push(Slot {
                name: name.to_owned(),
                ty: param.ty,
                from: From::Parameter(param.name, 0),
                pointer: param.pointer,
                element: None,
            });
            continue;
        };
        let length = length.saturating_mul(type_of(param.ty).map_or(1, |ty| u64::from(ty.bytes())));
        if taken.contains(param.name) {
            slots.variables.insert(param.name, slots.all.len());
            slots.all.push(Slot {
                name: name.to_owned(),
                ty: "u64",
                from: From::Structure(param.name, length),
                pointer: Some(("global", param.align)),
                element: None,
            });
        }
        let found = match members(body, param.name, length) {
            // As memory it can be read in any way.
            Err(_) if taken.contains(param.name) => Vec::new(),
            found => found?,
        };
        for (offset, ty) in found {
            slots.all.push(Slot {
                name: format!("{name}_{offset}"),
                ty,
                from: From::Parameter(param.name, offset),
                pointer: None,
                element: None,
            });
        }
    }
    let mut mentioned: Vec<&Variable<'t>> = variables
        .values()
        .copied()
        .filter(|variable| matches!(variable.space, "global" | "const"))
        .collect();
    mentioned.sort_by_key(|variable| (variable.line, variable.name));
    for variable in mentioned {
        slots.variables.insert(variable.name, slots.all.len());
        slots.all.push(Slot {
            name: variable.name.to_owned(),
            ty: "u64",
            from: From::Variable(variable.name),
            pointer: Some(("global", variable.align)),
            element: None,
        });
    }
    if workspace::is_named(body) {
        slots.variables.insert(WORKSPACE, slots.all.len());
        slots.all.push(Slot {
            name: "grid_workspace".to_owned(),
            ty: "u64",
            from: From::Workspace,
            pointer: Some(("global", 8)),
            element: None,
        });
    }
    // Two things of one name would be one thing in plans and launch files.
    let mut names: HashMap<String, u32> = HashMap::new();
    for slot in &mut slots.all {
        let count = names.entry(slot.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            slot.name = format!("{}_{count}", slot.name);
        }
    }
    if slots.all.len() > limits::PARAMETERS {
        return Err(Error::input("the entry reads too many parameters")
            .accepted(format!("at most {}", limits::PARAMETERS)));
    }
    Ok(slots)
}

/// The members of a structure that a body reads: where each starts, and its type.
fn members<'t>(body: &Body<'t>, param: &str, length: u64) -> Result<Vec<(u64, &'t str)>> {
    let mut found: Vec<(u64, u64, &'t str)> = Vec::new();
    for statement in &body.statements {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        let Some((offset, count)) = read_of(instruction, param) else {
            continue;
        };
        let ty = instruction.modifiers.last().copied().unwrap_or_default();
        let Some(bytes) = type_of(ty).map(|ty| u64::from(ty.bytes())) else {
            continue;
        };
        for part in 0..count {
            let start = u64::try_from(offset)
                .unwrap_or(u64::MAX)
                .saturating_add(part * bytes);
            if start.saturating_add(bytes) > length {
                return Err(Error::input(format!(
                    "`{}` reads beyond the end of parameter {}",
                    instruction.spelling(),
                    quoted(param)
                ))
                .at(format!("line {}", instruction.line)));
            }
            found.push((start, start + bytes, ty));
        }
    }
    found.sort_by_key(|&(start, end, _)| (start, std::cmp::Reverse(end)));
    let mut members: Vec<(u64, u64, &'t str)> = Vec::new();
    for (start, end, ty) in found {
        match members.last_mut() {
            Some(last) if start < last.1 => {
                if (start, end) != (last.0, last.1) {
                    // Read in several ways: bits that are taken apart.
                    last.1 = last.1.max(end);
                    last.2 = bits_of(last.1 - last.0, last.0).ok_or_else(|| {
                        Error::input(format!("members of structure {} overlap", quoted(param)))
                            .accepted("reads of whole members, or of parts of one of 2, 4 or 8 bytes")
                    })?;
                }
            }
            _ => members.push((start, end, ty)),
        }
    }
    Ok(members.into_iter().map(|(start, _, ty)| (start, ty)).collect())
}

/// The type of this many bits in a structure, where they lie as a number would.
fn bits_of(bytes: u64, start: u64) -> Option<&'static str> {
    let ty = match bytes {
        2 => "b16",
        4 => "b32",
        8 => "b64",
        _ => return None,
    };
    start.is_multiple_of(bytes).then_some(ty)
}

/// Where a load reads a parameter, and how many values.
fn read_of(instruction: &Instruction<'_>, param: &str) -> Option<(i64, u64)> {
    let [to, Operand::Address(base, offset)] = &instruction.operands[..] else {
        return None;
    };
    let count = match to {
        Operand::Vector(parts) => parts.len() as u64,
        _ => 1,
    };
    let reads = instruction.opcode == "ld" && **base == Operand::Symbol(param);
    reads.then_some((*offset, count))
}

/// What a parameter is called in the kernel: the PTX name without the entry's.
pub(super) fn parameter_name<'t>(entry: &str, name: &'t str) -> &'t str {
    let rest = name.strip_prefix(entry).and_then(|rest| rest.strip_prefix('_'));
    rest.filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
        .unwrap_or(name)
}
