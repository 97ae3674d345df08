//! A captured launch as a subject; run again (`replays`); the assumptions of its tuned kernel (`exchanges`).
//!
//! A captured launch has no statements. What is known of it follows from where its parameters lead: how long the memory
//! is behind each pointer, and that different bytes are reached through two pointers. A plan that was derived under such a fact is
//! for launches that meet it, so that [`exchange`] writes the fact down for the launching side.
//!
//! A kernel that follows pointers which it loads, or is given among other numbers, may reach everything: nothing is said of it,
//! and it runs where the memory was. One whose pointers share an allocation, or lead nowhere, runs there, too.

pub(in crate::tune) mod data;
mod exchanges;
mod replays;
#[cfg(test)]
pub(in crate::tune) mod tests;

use self::data::{CapturedData, Value, WORKSPACE, follows_numbers};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use exchanges::{Exchange, exchange};
pub use replays::replay;
pub(in crate::tune) use replays::replay_on;

use super::file::FileSubject;
use super::reach::Reached;
use super::workload::{Placed, PlacedMemory};
use crate::analysis::messages;
use crate::capture::{Allocation, Captured, Contraction};
use crate::error::{Error, Result};
use crate::front::ptx::{Facts, Imported, Origin, ParameterFacts, WORKSPACE_BYTES, import};
use crate::ir::{Kernel, Param};
use crate::suggest::quoted;
use crate::tune::launch::file::LaunchFile;

/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
const CLUSTER: u32 = 4;

/// A captured launch as a subject.
///
/// # Errors
/// Its image has no PTX; the kernel cannot be read; the launch was of a kind that is not understood.
pub fn captured_subject(captured: Captured) -> Result<FileSubject> {
    read(Arc::new(captured), false)
}

/// The text of a captured launch's kernel, and its name in messages.
fn text_of(captured: &Captured) -> Result<(&str, String)> {
    let file = captured.folder.join(crate::capture::MODULE);
    let text = captured.module.as_deref().ok_or_else(|| {
        Error::input(format!(
            "kernel {} has no PTX, only machine code",
            quoted(&captured.kernel)
        ))
        .accepted("a program compiled with `-gencode arch=compute_90,code=compute_90`, or without `code=`")
    })?;
    Ok((text, file.to_string_lossy().into_owned()))
}

/// The facts about a captured launch's kernel that hold for any parameters.
fn shared_facts(captured: &Captured) -> Facts {
    let (fused, assembler) = match &captured.contraction {
        Contraction::Decided(fused) => (Some(fused.clone()), None),
        Contraction::Compared(assembler) => (None, Some(*assembler)),
        _ => (None, None),
    };
    Facts {
        dynamic_shared_bytes: Some(captured.shared_bytes),
        fused,
        assembler,
        ..Facts::default()
    }
}

/// A captured launch's kernel, for any parameters.
///
/// # Errors
/// Its image has no PTX; the kernel cannot be read.
pub(in crate::tune) fn captured_import(captured: &Captured) -> Result<Imported> {
    let (text, file) = text_of(captured)?;
    import(text, &file, Some(&captured.kernel), &shared_facts(captured))
}

/// `placed` says that the launch runs in its own address space in any case.
fn read(captured: Arc<Captured>, placed: bool) -> Result<FileSubject> {
    let (text, file) = text_of(&captured)?;
    if captured.attributes.contains(&CLUSTER) {
        return Err(
            Error::input("the launch has clusters of work-groups, which are not understood")
                .accepted("a launch without the attribute of a cluster's dimensions"),
        );
    }
    let plain = captured_import(&captured)?;
    let values = values(&captured, &plain)?;
    let is_open = follows_numbers(&plain.kernel);
    let shares = |number: usize| {
        values
            .values()
            .filter(|value| matches!(value, Value::Inside(other, _) if *other == number))
            .count()
            > 1
    };
    let reached = Reached::of(&captured, &plain);
    // The address that a parameter leads to, if it is one of the program's.
    let address = |param: &Param| match values.get(&param.name) {
        Some(Value::Inside(number, offset)) => Some(captured.memory[*number].address + offset),
        Some(Value::Nowhere(address)) if param.facts.is_some() => Some(*address),
        _ => None,
    };
    let is_apart = |index: usize| {
        let own = address(&plain.kernel.params[index]);
        let mut others = plain.kernel.params.iter().enumerate();
        others.all(|(other, param)| match (own, address(param)) {
            (Some(own), Some(address)) if other != index => {
                !reached.matters(index, other) || reached.are_apart((index, own), (other, address))
            }
            _ => true,
        })
    };
    let mut facts = shared_facts(&captured);
    for (index, param) in plain.kernel.params.iter().enumerate() {
        let (Some(known), Some(Value::Inside(number, offset))) = (param.facts, values.get(&param.name))
        else {
            continue;
        };
        let allocation = &captured.memory[*number];
        if is_open || allocation.is_foreign {
            continue;
        }
        let size = u64::from(known.element.bytes()).max(1);
        let is_elsewhere = reached.is_elsewhere((index, allocation.address + offset), allocation);
        let own = ParameterFacts {
            // A pointer into the middle, or one past the end of another array, may lead before where it points: how much is
            // behind it says too little.
            length: (*offset == 0 && !is_elsewhere).then(|| allocation.before.len() as u64 / size),
            unaliased: is_apart(index),
            ..ParameterFacts::default()
        };
        facts.parameters.insert(param.name.clone(), own);
    }
    let needs_place = |(index, param): (usize, &Param)| match values.get(&param.name) {
        Some(Value::Nowhere(_)) => true,
        Some(Value::Inside(number, offset)) => {
            let own = &captured.memory[*number];
            shares(*number) || reached.is_elsewhere((index, own.address + offset), own)
        }
        _ => false,
    };
    let params = plain.kernel.params.iter().enumerate();
    let is_placed = placed || is_open || params.into_iter().any(needs_place);
    let imported = import(text, &file, Some(&captured.kernel), &facts)?;
    let data = CapturedData {
        placed: is_placed.then(|| Arc::new(place(&captured, &imported.kernel, &values))),
        values,
        captured: Arc::clone(&captured),
    };
    let launch = LaunchFile::of_captured(captured.groups, captured.group, &facts, Arc::new(data));
    Ok(FileSubject::of_module(imported, launch))
}

/// The role of each parameter of the kernel.
fn values(captured: &Captured, imported: &Imported) -> Result<BTreeMap<String, Value>> {
    let mut values = BTreeMap::new();
    for (param, origin) in imported.kernel.params.iter().zip(&imported.original.parameters) {
        let ty = imported.kernel.ty(param.value);
        let value = match origin {
            Origin::Variable { name, bytes, .. } => {
                let number = captured.variables.iter().position(|own| own.name == *name);
                match (number, bytes) {
                    (Some(number), _) => Value::Variable(number),
                    // Nothing can have changed a text that the kernel only hands to the driver.
                    (None, Some(bytes)) if messages::is_message(&imported.kernel, param.value) => {
                        Value::Constant(Arc::clone(bytes))
                    }
                    (None, _) => {
                        return Err(Error::input(format!(
                            "variable {} was not captured",
                            quoted(name)
                        )));
                    }
                }
            }
            Origin::Workspace => Value::Workspace,
            Origin::Structure { position, bytes, .. } => {
                let passed = captured.passed(*position, *bytes);
                Value::Constant(passed.ok_or_else(|| too_few(captured, *position + bytes))?.into())
            }
            Origin::Parameter { position, .. } => {
                let bits = captured
                    .parameter(*position, u64::from(ty.bytes()))
                    .ok_or_else(|| too_few(captured, *position))?;
                let is_pointer = param.facts.is_some();
                let size = param
                    .facts
                    .map_or(1, |facts| u64::from(facts.element.bytes()).max(1));
                match captured.allocation_of(bits) {
                    Some(number) if is_pointer => {
                        let offset = bits - captured.memory[number].address;
                        match offset.is_multiple_of(size) {
                            true => Value::Inside(number, offset),
                            false => Value::Nowhere(bits),
                        }
                    }
                    _ if is_pointer => Value::Nowhere(bits),
                    _ => Value::Scalar(bits),
                }
            }
        };
        values.insert(param.name.clone(), value);
    }
    Ok(values)
}

fn too_few(captured: &Captured, wanted: u64) -> Error {
    Error::input(format!(
        "the captured parameters have {} bytes, and the kernel reads byte {wanted}",
        captured.parameters.len()
    ))
}

fn place(captured: &Captured, kernel: &Kernel, values: &BTreeMap<String, Value>) -> Placed {
    let variable = |number: usize| &captured.variables[number].memory;
    let used = values.values().filter_map(|value| match value {
        Value::Variable(number) => Some(variable(*number)),
        _ => None,
    });
    let contents = |own: &Allocation| PlacedMemory {
        name: format!("memory at {:#x}", own.address),
        address: own.address,
        bytes: Arc::clone(&own.before),
    };
    let mut memory: Vec<_> = captured.memory.iter().chain(used).map(contents).collect();
    if values.values().any(|value| matches!(value, Value::Workspace)) {
        memory.push(PlacedMemory {
            name: "the workspace of a cooperative launch".to_owned(),
            address: WORKSPACE,
            bytes: vec![0; WORKSPACE_BYTES as usize].into(),
        });
    }
    memory.sort_by_key(|own| own.address);
    let pointer = |param: &Param| match values.get(&param.name)? {
        Value::Inside(number, offset) => Some(captured.memory[*number].address + offset),
        Value::Nowhere(address) => Some(*address),
        Value::Workspace => Some(WORKSPACE),
        Value::Variable(number) => Some(variable(*number).address),
        // No memory of the program's leads there: any address will do.
        Value::Scalar(_) | Value::Constant(_) => None,
    };
    Placed {
        memory,
        pointers: kernel.params.iter().map(pointer).collect(),
    }
}
