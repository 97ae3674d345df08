//! A captured launch as a subject, its replay, and the assumptions of its tuned kernel.
//!
//! Nobody states anything of a captured launch. What is known of it follows from where its parameters lead: how long the memory
//! is behind each pointer, and that two pointers lead into different allocations, or reach different bytes of one. A plan that
//! was derived under such a fact is for launches that meet it, so that [`exchange`] writes the fact down for whoever launches.
//!
//! A kernel that follows pointers which it loads, or is given among other numbers, may reach everything: nothing is said of it,
//! and it runs where the memory was. One whose pointers share an allocation, or lead nowhere, runs there, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::apart::Reached;
use super::bench::Bench;
use super::drop_in::{self, Note};
use super::file_subject::FileSubject;
use super::granted::Granted;
use super::launch_file::LaunchFile;
use super::modules::{PlannedModule, target_for};
use super::subject::Subject;
use super::workload::{Given, Placed, PlacedMemory, Workload};
use crate::analysis::definitions::Definitions;
use crate::analysis::{messages, roots};
use crate::capture::{Allocation, Captured, Contraction, Difference};
use crate::device::{Device, Fill};
use crate::error::{Error, Result};
use crate::front::ptx::{Facts, Imported, Origin, ParameterFacts, WORKSPACE_BYTES, import};
use crate::ir::{Fused, Kernel, OpKind, Param, Space};
use crate::prefetch;
use crate::suggest::quoted;

/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
const CLUSTER: u32 = 4;

/// The arguments of a captured launch.
#[derive(Debug)]
pub struct CapturedData {
    captured: Arc<Captured>,
    /// By the kernel's name of the parameter.
    values: BTreeMap<String, Value>,
    /// Where the launch means something only in its own address space.
    placed: Option<Arc<Placed>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// A scalar's bits.
    Scalar(u64),
    /// So many bytes inside the allocation of this number.
    Inside(usize, u64),
    /// A pointer that leads into no allocation.
    Nowhere(u64),
    /// The variable of this number.
    Variable(usize),
    /// Memory that is no allocation of the program's, and holds these bytes: a variable that was not captured, as the module
    /// says, or a structure as the launch passes it.
    Constant(Arc<[u8]>),
    /// A cooperative launch's workspace, which is the driver's.
    Workspace,
}

/// The address of a cooperative launch's workspace if the launch runs in its own address space. No allocation of a program is
/// there.
const WORKSPACE: u64 = 0x0f_0000_0000;

impl PartialEq for CapturedData {
    fn eq(&self, other: &CapturedData) -> bool {
        std::ptr::eq(self, other)
    }
}

impl CapturedData {
    /// A parameter's argument.
    pub(super) fn given(&self, kernel: &Kernel, param: &Param) -> Result<Given> {
        let value = self.values.get(&param.name);
        let value = value.ok_or_else(|| Error::bug("a parameter of a captured launch is lost"))?;
        let ty = kernel.ty(param.value);
        let Some(facts) = param.facts else {
            return match value {
                Value::Scalar(bits) => Ok(Given::Scalar(ty, *bits & ty.mask())),
                _ => Err(Error::bug("a scalar of a captured launch is a pointer")),
            };
        };
        let size = u64::from(facts.element.bytes()).max(1);
        let workspace: Arc<[u8]> = vec![0; WORKSPACE_BYTES as usize].into();
        let (bytes, offset) = match value {
            Value::Workspace => (&workspace, 0),
            Value::Inside(number, offset) => (&self.captured.memory[*number].before, *offset),
            Value::Variable(number) => (&self.captured.variables[*number].memory.before, 0),
            Value::Constant(bytes) => (bytes, 0),
            Value::Nowhere(_) | Value::Scalar(_) => {
                let nothing = Given::Input {
                    element: facts.element,
                    length: 0,
                    fill: Fill::Bytes(Arc::from([])),
                };
                return Ok(nothing);
            }
        };
        let length = (bytes.len() as u64 - offset) / size;
        let whole = offset == 0 && length * size == bytes.len() as u64;
        let fill = Fill::Bytes(match whole {
            true => Arc::clone(bytes),
            false => bytes[offset as usize..][..(length * size) as usize].into(),
        });
        Ok(Given::buffer(&facts, length, fill))
    }

    /// The address space, where the launch needs it.
    pub(super) fn placed(&self) -> Option<Arc<Placed>> {
        self.placed.clone()
    }
}

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
    let fused = match &captured.contraction {
        Contraction::Decided(fused) => Some(fused.clone()),
        _ => None,
    };
    Facts {
        dynamic_shared_bytes: Some(captured.shared_bytes),
        fused,
        ..Facts::default()
    }
}

/// A captured launch's kernel, for any parameters.
///
/// # Errors
/// Its image has no PTX; the kernel cannot be read.
pub(super) fn captured_import(captured: &Captured) -> Result<Imported> {
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
    // A pointer's number among the parameters, and its address; none that leads elsewhere than into this allocation.
    let inside = |number: usize, param: &Param| match values.get(&param.name) {
        Some(Value::Inside(own, offset)) if *own == number => Some(captured.memory[number].address + offset),
        _ => None,
    };
    let is_apart = |index: usize, number: usize| {
        let own = inside(number, &plain.kernel.params[index]);
        let mut others = plain.kernel.params.iter().enumerate();
        others.all(|(other, param)| match (own, inside(number, param)) {
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
        let own = ParameterFacts {
            // A pointer into the middle may lead before where it points: how much is behind it says too little.
            length: (*offset == 0).then(|| allocation.before.len() as u64 / size),
            unaliased: is_apart(index, *number),
            ..ParameterFacts::default()
        };
        facts.parameters.insert(param.name.clone(), own);
    }
    let needs_place = |value: &Value| match value {
        Value::Nowhere(_) => true,
        Value::Inside(number, _) => shares(*number),
        _ => false,
    };
    let is_placed = placed || is_open || values.values().any(needs_place);
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
                    // Nobody can have changed a text that the kernel only hands to the driver.
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

/// Whether a kernel follows numbers as addresses: those that it loads, or is given among others.
fn follows_numbers(kernel: &Kernel) -> bool {
    let definitions = Definitions::of(kernel);
    let mut found = false;
    kernel.body.walk(&mut |op| {
        let pointer = match &op.kind {
            OpKind::Load { ptr, .. }
            | OpKind::Store { ptr, .. }
            | OpKind::Atomic { ptr, .. }
            | OpKind::Prefetch { ptr, .. } => *ptr,
            OpKind::Copy { from, .. } => *from,
            _ => return,
        };
        let is_global = !matches!(kernel.ty(pointer).space(), Some(Space::Shared | Space::Private));
        found |= is_global && roots::root(kernel, &definitions, pointer).is_none();
    });
    found
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

/// The outcome of running a captured launch again.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Bytes of memory that were compared.
    pub bytes: u64,
    /// Bytes that the captured launch changed.
    pub changed: u64,
    /// In each allocation that differs, where.
    pub differences: Vec<Difference>,
}

/// Runs a captured launch again on a simulated device, in its own address space, and compares all its memory with the contents
/// after the launch.
///
/// # Errors
/// As for [`captured_subject`]; the kernel goes wrong.
pub fn replay(captured: Captured, device: &dyn Device) -> Result<Replay> {
    let captured = Arc::new(captured);
    let workload = read(Arc::clone(&captured), true)?.workload()?;
    let kernel = Arc::clone(&workload.kernel);
    let (_, outputs) = workload.bind(device)?.run(device, &kernel)?;
    compared(&captured, &workload, &outputs)
}

/// The same on a device that runs kernels, with a choice for each of its open sums written into the kernel; none if the bench
/// does not return a kernel's outputs.
///
/// # Errors
/// As for [`replay`]; the memory cannot be where it was.
pub(super) fn replay_on(captured: &Captured, choice: &[Fused], bench: &dyn Bench) -> Result<Option<Replay>> {
    let with = |contraction: Contraction| {
        let captured = Captured {
            contraction,
            ..captured.clone()
        };
        read(Arc::new(captured), true)?.workload()
    };
    let open = with(Contraction::Unknown)?;
    let chosen = with(Contraction::Decided(choice.to_vec()))?;
    // The bench takes the module as it was for the kernel as it was read: that is the one that leaves the sums open.
    let kernel = Arc::clone(&chosen.kernel);
    let workload = Workload {
        kernel: open.kernel,
        ..chosen
    };
    let outputs = bench.outputs_of(&workload, &kernel)?;
    outputs
        .map(|outputs| compared(captured, &workload, &outputs))
        .transpose()
}

/// Compares a launch's memory, in its own address space, with the captured launch's.
fn compared(captured: &Captured, workload: &Workload, outputs: &[Vec<u8>]) -> Result<Replay> {
    let placed = workload.placed.as_ref();
    let placed = placed.ok_or_else(|| Error::bug("a launch that is run again is not where it was"))?;
    let all = || {
        captured
            .memory
            .iter()
            .chain(captured.variables.iter().map(|own| &own.memory))
    };
    let mut replay = Replay {
        bytes: 0,
        changed: 0,
        differences: Vec::new(),
    };
    for (PlacedMemory { address, .. }, now) in placed.memory.iter().zip(outputs) {
        // The driver's own memory is not compared.
        if *address == WORKSPACE {
            continue;
        }
        let own = all().find(|own| own.address == *address);
        let own = own.ok_or_else(|| Error::bug("memory of a captured launch is lost"))?;
        replay.bytes += now.len() as u64;
        if !Arc::ptr_eq(&own.before, &own.after) {
            let both = own.before.iter().zip(own.after.iter());
            replay.changed += both.filter(|(before, after)| before != after).count() as u64;
        }
        replay.differences.extend(own.difference(now));
    }
    Ok(replay)
}

/// How a better kernel is put in the place of a captured one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The module to be loaded beside the program's.
    pub module: String,
    /// Variables of it that must hold addresses of the program's: the variable here, and the program's.
    pub addresses: Vec<(String, String)>,
    /// The facts that every launch is checked for, as words separated by spaces, in the format of the preloaded library.
    pub facts: Vec<String>,
    /// The same for people.
    pub sentences: Vec<String>,
}

/// The facts that a launch must meet so that a rewritten module's entry computes the same as the captured kernel.
///
/// # Errors
/// It assumes a fact that cannot be checked when the program launches: which.
pub fn exchange(captured: &Captured, subject: &FileSubject, module: &PlannedModule) -> Result<Exchange> {
    let original = subject
        .original()
        .ok_or_else(|| Error::bug("a captured kernel came from no module"))?;
    let workload = subject.workload()?;
    let kernel = &workload.kernel;
    let refused = |what: &str| {
        Error::input(format!("the better kernel cannot be put in place: {what}"))
            .accepted("another plan; `headstart tune -o FILE` writes the module all the same")
    };
    let is_message = |value| messages::is_message(kernel, value);
    let origins = kernel.params.iter().zip(&original.parameters);
    let variables: Vec<&Param> = origins
        .filter(|(_, origin)| matches!(origin, Origin::Variable { .. }))
        .map(|(param, _)| param)
        .collect();
    let (text, addresses) = match variables.iter().all(|param| is_message(param.value)) {
        true => (module.text.clone(), Vec::new()),
        false => {
            let target = target_for(captured.group);
            let applied = prefetch::apply(kernel, &module.plan, &target)?;
            let beside = drop_in::beside(original, &applied.kernel, is_message)?;
            let note = Note {
                plan: &applied.plan,
                measured: None,
                checked: None,
                granted: &module.granted,
            };
            let addresses = beside.addresses.into_iter().map(|own| (own.kept_in, own.of));
            (beside.module.with_note(original, &note), addresses.collect())
        }
    };
    let plain = captured_import(captured)?;
    let reached = Reached::of(captured, &plain);
    let number_of = |name: &str| plain.kernel.params.iter().position(|param| param.name == name);
    let matters = |one: &str, other: &str| match (number_of(one), number_of(other)) {
        (Some(one), Some(other)) => reached.matters(one, other),
        _ => true,
    };
    let position = |name: &str| {
        let number = kernel.params.iter().position(|param| param.name == name)?;
        match &original.parameters[number] {
            Origin::Parameter { position, .. } => captured.place_of(*position),
            Origin::Structure { .. } | Origin::Variable { .. } | Origin::Workspace => None,
        }
    };
    let place =
        |name: &str| position(name).ok_or_else(|| Error::bug(format!("parameter `{name}` is nowhere")));
    let pointers = || kernel.params.iter().filter(|param| param.facts.is_some());
    let size = |name: &str| {
        let param = pointers().find(|param| param.name == name);
        param
            .and_then(|param| param.facts)
            .map_or(1, |facts| u64::from(facts.element.bytes()).max(1))
    };
    let mut exchange = Exchange {
        module: text,
        addresses,
        facts: Vec::new(),
        sentences: Vec::new(),
    };
    let mut add = |fact: String, sentence: String| {
        if !exchange.facts.contains(&fact) {
            exchange.facts.push(fact);
            // What only serves another fact has none.
            exchange
                .sentences
                .extend((!sentence.is_empty()).then_some(sentence));
        }
    };
    // Parameters of which whoever launches has to know what is reached through them.
    let mut computed = BTreeSet::new();
    let [x, y, z] = captured.group;
    // Even where the entry looks itself: a launch that takes the old body need not take the new module.
    add(
        format!("group {x} {y} {z}"),
        format!("work-groups have {x}×{y}×{z} work-items"),
    );
    if let Some(bytes) = module.drop_in.needs.dynamic_shared_bytes {
        add(
            format!("shared {bytes}"),
            Granted::DynamicSharedBytes(bytes).to_string(),
        );
    }
    for granted in &module.granted {
        match granted {
            Granted::Unaliased(name) => {
                let (index, inside) = place(name)?;
                let is_of_launch = |other: &Param| {
                    let number = kernel.params.iter().position(|param| param.name == other.name);
                    let origin = number.map(|at| &original.parameters[at]);
                    matches!(origin, Some(Origin::Structure { .. } | Origin::Workspace))
                };
                // No pointer of a program's leads into what a launch passes, nor into a workspace.
                // Nor does it matter what two lead to that are only read.
                let others = pointers().filter(|other| {
                    other.name != *name && !is_of_launch(other) && matters(name, &other.name)
                });
                for other in others {
                    if variables.iter().any(|variable| variable.name == other.name) {
                        add(
                            format!("known {index} {inside}"),
                            format!("`{name}` leads into an allocation, and to no variable of a module"),
                        );
                        continue;
                    }
                    let (other_index, other_inside) = place(&other.name)?;
                    // Each pair once.
                    let (first, second) = match (index, inside) <= (other_index, other_inside) {
                        true => (
                            (index, inside, name.as_str()),
                            (other_index, other_inside, other.name.as_str()),
                        ),
                        false => (
                            (other_index, other_inside, other.name.as_str()),
                            (index, inside, name.as_str()),
                        ),
                    };
                    let both = number_of(first.2).zip(number_of(second.2));
                    let both = both.filter(|&(one, other)| reached.is_known(one) && reached.is_known(other));
                    let apart = match both {
                        Some((one, other)) => {
                            computed.extend([one, other]);
                            "lead into different allocations, or to different bytes of one"
                        }
                        None => "lead into different allocations",
                    };
                    add(
                        format!("apart {} {} {} {}", first.0, first.1, second.0, second.1),
                        format!("`{}` and `{}` {apart}", first.2, second.2),
                    );
                }
            }
            Granted::Length(name, length) => {
                let (index, inside) = place(name)?;
                let size = size(name);
                add(
                    format!("ends {index} {inside} {length} {size}"),
                    format!(
                        "`{name}` leads to {length} elements of {size} bytes up to the end of its allocation"
                    ),
                );
            }
            Granted::Alignment(name, bytes) => {
                let (index, inside) = place(name)?;
                add(format!("aligned {index} {inside} {bytes}"), granted.to_string());
            }
            Granted::DynamicSharedBytes(bytes) => add(format!("shared {bytes}"), granted.to_string()),
            // Of the code, not of a launch: CUDA C++ has no accesses beyond a variable's end.
            Granted::Spaces | Granted::VariablesEnd => {}
            Granted::Fused(_) => add(
                format!("machine {} {}", captured.driver, captured.capability),
                format!(
                    "the driver is {}.{} and the GPU's compute capability {}.{}, as when the machine code's sums were compared",
                    captured.driver / 1000,
                    captured.driver % 1000 / 10,
                    captured.capability / 10,
                    captured.capability % 10
                ),
            ),
            Granted::ReadOnly(_) | Granted::NoOverflow => {
                return Err(refused(&granted.to_string()));
            }
        }
    }
    exchange.facts.extend(reached.lines(computed.into_iter()));
    Ok(exchange)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::device::sim::Simulator;
    use crate::tune::planned_module;

    /// `while (p) { s += p->value; p = p->next; } out[0] = s;`
    const LIST: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry sum(.param .u64 list, .param .u64 out)\n{\n\
        .reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<6>;\nld.param.u64 %rd1, [list];\nld.param.u64 %rd2, [out];\n\
        mov.u32 %r1, 0;\nL:\nsetp.eq.s64 %p1, %rd1, 0;\n@%p1 bra D;\nld.global.u32 %r2, [%rd1+8];\nadd.s32 %r1, %r1, %r2;\n\
        ld.global.u64 %rd1, [%rd1];\nbra L;\nD:\nst.global.u32 [%rd2], %r1;\nret;\n}\n";
    /// `while (i < n) { s += table[i]; out[tid] = s; if (s > 10⁵) break; i++; }`
    const SUMS: &str = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 table, .param .u64 out, \
        .param .u32 n)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<12>;\nld.param.u64 %rd2, [out];\n\
        ld.param.u32 %r1, [n];\nld.param.u64 %rd3, [table];\nmov.u32 %r6, %tid.x;\nmul.wide.u32 %rd8, %r6, 4;\n\
        add.s64 %rd9, %rd2, %rd8;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\nL:\nsetp.ge.s32 %p1, %r2, %r1;\n@%p1 bra D;\n\
        mul.wide.s32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd3, %rd4;\nld.global.u32 %r4, [%rd5];\nadd.s32 %r3, %r3, %r4;\n\
        st.global.u32 [%rd9], %r3;\nsetp.gt.s32 %p2, %r3, 100000;\n@%p2 bra D;\nadd.s32 %r2, %r2, 1;\nbra L;\nD:\nret;\n}\n";

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(in crate::tune) fn allocation(address: u64, before: Vec<u8>, after: Option<Vec<u8>>) -> Allocation {
        let before: Arc<[u8]> = before.into();
        Allocation {
            address,
            after: after.map_or_else(|| Arc::clone(&before), Arc::from),
            before,
            is_foreign: false,
        }
    }

    /// A launch of one work-group of 32 whose parameters are these words.
    pub(in crate::tune) fn captured(
        kernel: &str,
        module: &str,
        parameters: &[u64],
        memory: Vec<Allocation>,
    ) -> Captured {
        Captured {
            folder: "cap/k".into(),
            kernel: kernel.to_owned(),
            image: "ab".to_owned(),
            number: 0,
            device: "a GPU".to_owned(),
            capability: 90,
            driver: 13000,
            groups: [1; 3],
            group: [32, 1, 1],
            shared_bytes: 0,
            is_cooperative: false,
            attributes: Vec::new(),
            parameters: parameters.iter().flat_map(|word| word.to_le_bytes()).collect(),
            layout: (0..parameters.len() as u64)
                .map(|number| (8 * number, 8))
                .collect(),
            memory,
            variables: Vec::new(),
            has_run: true,
            module: Some(module.to_owned()),
            contraction: Contraction::Unknown,
        }
    }

    /// `SUMS` of 1, 2, … 40 by 32 work-items; its parameters lead to these addresses.
    fn sums(table: u64, out: u64, memory: Vec<Allocation>) -> Captured {
        Captured {
            layout: vec![(0, 8), (8, 8), (16, 4)],
            ..captured("k", SUMS, &[table, out, 40], memory)
        }
    }

    const TABLE: u64 = 0x7f00_0000_0000;
    const OUT: u64 = 0x7f00_0000_1000;

    fn apart() -> Captured {
        let table: Vec<u32> = (1..=40).collect();
        let memory = vec![
            allocation(TABLE, words(&table), None),
            allocation(OUT, vec![0; 128], Some(words(&[820; 32]))),
        ];
        sums(TABLE, OUT, memory)
    }

    #[test]
    fn what_is_known_follows_from_where_parameters_lead() {
        let subject = captured_subject(apart()).expect("a subject");
        let facts = subject.launch().facts();
        assert_eq!(facts.parameters["table"].length, Some(40));
        assert!(facts.parameters["table"].unaliased && facts.parameters["out"].unaliased);
        assert!(
            subject.workload().expect("a workload").placed.is_none(),
            "it may run anywhere"
        );
        // Into the middle of an allocation, and both into one: 40 words are read, and 32 written.
        for (table, out, is_apart) in [
            (TABLE + 16, OUT, true),
            (TABLE + 16, TABLE + 176, true),
            (TABLE + 16, TABLE + 172, false),
            (TABLE + 128, TABLE, true),
            (TABLE + 124, TABLE, false),
        ] {
            let one = allocation(TABLE, vec![0; 0x2000], None);
            let subject = captured_subject(sums(table, out, vec![one])).expect("a subject");
            let facts = subject.launch().facts();
            assert_eq!(facts.parameters["table"].length, None);
            for name in ["table", "out"] {
                assert_eq!(
                    facts.parameters[name].unaliased, is_apart,
                    "{name}, {table:#x} and {out:#x}"
                );
            }
            assert!(subject.workload().expect("a workload").placed.is_some());
        }
        // What others may write is known by nothing.
        let mut foreign = apart();
        foreign.memory[0].is_foreign = true;
        let subject = captured_subject(foreign).expect("a subject");
        assert!(!subject.launch().facts().parameters.contains_key("table"));
    }

    #[test]
    fn a_launch_that_is_run_again_leaves_what_it_left() {
        let device = Simulator::untimed();
        let ran = replay(apart(), &device).expect("it runs");
        assert_eq!((ran.bytes, ran.changed), (288, 64));
        assert_eq!(ran.differences, []);
        let mut other = apart();
        other.memory[1].after = words(&[821; 32]).into();
        let ran = replay(other, &device).expect("it runs");
        assert_eq!(ran.differences.len(), 1);
        assert_eq!((ran.differences[0].address, ran.differences[0].bytes), (OUT, 32));
    }

    #[test]
    fn a_kernel_that_follows_what_it_loads_runs_where_it_was_and_is_known_by_nothing() {
        let node = |next: u64, value: u64| [next.to_le_bytes(), value.to_le_bytes()].concat();
        let memory = vec![
            allocation(TABLE, node(TABLE + 0x200, 5), None),
            allocation(TABLE + 0x200, node(0, 70), None),
            allocation(OUT, vec![0; 4], Some(words(&[75]))),
        ];
        let list = Captured {
            group: [1; 3],
            ..captured("sum", LIST, &[TABLE, OUT], memory)
        };
        let subject = captured_subject(list.clone()).expect("a subject");
        assert!(subject.launch().facts().parameters.is_empty());
        assert!(subject.workload().expect("a workload").placed.is_some());
        assert_eq!(
            replay(list.clone(), &Simulator::untimed())
                .expect("it runs")
                .differences,
            []
        );
        let clusters = Captured {
            attributes: vec![CLUSTER],
            ..list.clone()
        };
        assert!(
            captured_subject(clusters)
                .expect_err("clusters")
                .to_string()
                .contains("clusters")
        );
        let code = Captured { module: None, ..list };
        assert!(
            captured_subject(code)
                .expect_err("no PTX")
                .to_string()
                .contains("only machine code")
        );
    }

    /// `for (i = 0; i < n; i++) out[tid] = s += taps.of[i] * table[i];`, with `taps` passed by value and indexed.
    const TAPS: &str = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .align 4 .b8 taps[160], \
        .param .u64 table, .param .u64 out, .param .u32 n)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<16>;\n\
        mov.b64 %rd1, taps;\nld.param.u64 %rd2, [out];\nld.param.u32 %r1, [n];\nld.param.u64 %rd3, [table];\n\
        mov.u32 %r6, %tid.x;\nmul.wide.u32 %rd8, %r6, 4;\nadd.s64 %rd9, %rd2, %rd8;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\nL:\n\
        setp.ge.s32 %p1, %r2, %r1;\n@%p1 bra D;\nmul.wide.s32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd3, %rd4;\nadd.s64 %rd6, %rd1, %rd4;\n\
        ld.global.u32 %r4, [%rd5];\nld.param.u32 %r5, [%rd6];\nmad.lo.s32 %r3, %r4, %r5, %r3;\nst.global.u32 [%rd9], %r3;\nadd.s32 %r2, %r2, 1;\nbra L;\nD:\n\
        ret;\n}\n";

    /// What launches have to meet, without what these facts are computed by.
    fn demands(exchange: &Exchange) -> Vec<&str> {
        let facts = exchange.facts.iter().map(String::as_str);
        facts
            .filter(|fact| !fact.starts_with("reach ") && !fact.starts_with("terms "))
            .collect()
    }

    #[test]
    fn a_structure_whose_address_is_taken_is_memory_of_the_launch() {
        let table: Vec<u32> = (1..=40).collect();
        let sum: u32 = table.iter().map(|value| value * (value + 5)).sum();
        let taps: Vec<u32> = table.iter().map(|value| value + 5).collect();
        let memory = vec![
            allocation(TABLE, words(&table), None),
            allocation(OUT, vec![0; 128], Some(words(&[sum; 32]))),
        ];
        let mut passed = words(&taps);
        passed.extend([TABLE, OUT, 40].iter().flat_map(|word: &u64| word.to_le_bytes()));
        let own = Captured {
            parameters: passed,
            layout: vec![(0, 160), (160, 8), (168, 8), (176, 4)],
            ..captured("k", TAPS, &[], memory)
        };
        let ran = replay(own.clone(), &Simulator::untimed()).expect("it runs");
        assert_eq!((ran.differences, ran.changed), (vec![], 64));
        // The better kernel rests on nothing about the structure: no pointer leads there.
        let subject = captured_subject(own.clone()).expect("a subject");
        let plan = "table=rolling-registers:3".parse().expect("a plan");
        let planned = planned_module(TAPS, "k.ptx", Some("k"), subject.launch(), &plan, None);
        let planned = planned.unwrap_or_else(|error| panic!("{error}"));
        let exchange = exchange(&own, &subject, &planned).expect("all of it can be looked at");
        assert_eq!(demands(&exchange), ["group 32 1 1", "apart 1 0 2 0"]);
        let short = Captured {
            parameters: vec![0; 100],
            ..own
        };
        let refused = captured_subject(short).expect_err("bytes are missing");
        assert!(refused.to_string().contains("have 100 bytes"), "{refused}");
    }

    #[test]
    fn what_a_better_kernel_rests_on_is_looked_at() {
        let captured = apart();
        let subject = captured_subject(captured.clone()).expect("a subject");
        let plan = "table=rolling-registers:3".parse().expect("a plan");
        let planned = planned_module(SUMS, "k.ptx", Some("k"), subject.launch(), &plan, None);
        let planned = planned.unwrap_or_else(|error| panic!("{error}"));
        let exchange = exchange(&captured, &subject, &planned).expect("all of it can be looked at");
        assert_eq!(
            demands(&exchange),
            ["group 32 1 1", "apart 0 0 1 0", "ends 0 0 40 4"]
        );
        assert_eq!(exchange.sentences.len(), 3);
        // What is reached goes by the third parameter.
        let reached = exchange.facts.iter().filter(|fact| fact.starts_with("reach "));
        assert_eq!(reached.count(), 2);
        let mut terms = exchange.facts.iter().filter(|fact| fact.starts_with("terms "));
        assert!(
            terms.next().is_some_and(|fact| fact.contains(" p:2:0:4")),
            "{:?}",
            exchange.facts
        );
    }
}
