//! Drop-in modules: one entry of a module edited (`edit.rs`), with a note at the top.
//!
//! The loading program cannot tell the difference: same entries, same parameters, same dynamic shared memory. The plan's
//! assumptions beyond the text (lengths, `readonly`, …) stand in the note.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use super::edit::edited;
use super::edits::Edits;
use super::granted::{Granted, without_names};
use crate::back::ptx::{HintReached, Ptx};
use crate::error::{Error, Result};
use crate::front::ptx::{Facts, Origin, Original};
use crate::ir::{Kernel, Value};
use crate::prefetch::{Plan, PlanTarget, apply};
use crate::report::Perturbed;
use crate::tune::subject::workload::Workload;

/// The oldest PTX version with the features of planned kernels.
pub(in crate::tune) const OLDEST_VERSION: (u32, u32) = (8, 0);
/// Registers of a work-group at most (CUDA's programming guide, compute capabilities 8.0 to 9.0).
const REGISTERS_OF_GROUP: u32 = 65_536;
/// The first GPU with asynchronous copies, by its number and as PTX spells it.
const COPIES: (u32, &str) = (80, "sm_80");
/// The first GPU whose lanes need not run in lockstep: raising a module to it may change what its other entries do.
const APART: u32 = 70;
/// What edits insert that needs asynchronous copies' GPU.
const NEWER: [&str; 3] = ["cp.async", "createpolicy", "L2::cache_hint"];

/// A module with one entry rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIn {
    /// The module's text without entries that this one does not need.
    pub text: String,
    /// What makes that text of the one that was read.
    pub(in crate::tune) edits: Edits,
    /// Additional shared memory of the entry, in bytes.
    pub(crate) added_shared_bytes: u64,
    /// The requirements of a launch for getting the plan.
    pub needs: Needs,
    /// The instruction of each cache hint.
    pub(crate) hints: Vec<HintReached>,
    /// The lines that were inserted.
    pub added: String,
    /// What other places say now: a word of a line each, or one of its statements.
    pub changed: Vec<String>,
}

impl DropIn {
    /// The whole module with this entry in it.
    pub fn module(&self, original: &Original) -> String {
        let whole = original.whole();
        let edits = self.edits.moved(|at| original.place_in_whole(at));
        edits.of(whole, 0..whole.len())
    }

    /// Whether this module says the same as another one of the same original, but for the names of registers.
    pub(in crate::tune) fn says_the_same(&self, other: &DropIn) -> bool {
        let plain = |own: &DropIn| (without_names(&own.added), own.changed.clone());
        plain(self) == plain(other)
    }
}

/// The entry's checks of a launch before it takes the planned body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The only work-group size that gets the plan; none where all do.
    pub group: Option<[u32; 3]>,
    /// The only size of dynamic shared memory that gets it, in bytes: that of the launch that the entry was read with. None
    /// where the entry does not ask for the size.
    pub dynamic_shared_bytes: Option<u32>,
}

impl Needs {
    pub(in crate::tune) fn of(original: &Original, kernel: &Kernel) -> Needs {
        let asks = original.reads_dynamic_shared_size;
        Needs {
            group: kernel.group_size.filter(|_| original.required_group.is_none()),
            dynamic_shared_bytes: asks.then_some(original.dynamic_shared_bytes),
        }
    }

    /// The special registers that are looked at, and their values.
    pub(in crate::tune) fn tests(&self) -> Vec<(&'static str, u32)> {
        let group = self
            .group
            .into_iter()
            .flat_map(|size| ["%ntid.x", "%ntid.y", "%ntid.z"].into_iter().zip(size));
        let bytes = self
            .dynamic_shared_bytes
            .map(|bytes| ("%dynamic_smem_size", bytes));
        group.chain(bytes).collect()
    }
}

/// A module that is loaded beside the program's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    /// The module.
    pub module: DropIn,
    /// Variables of constant memory that must be given addresses before the first launch.
    pub addresses: Vec<KeptAddress>,
}

/// A variable that holds the address of one of the program's own module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptAddress {
    /// The variable, of 8 bytes, in the module beside.
    pub kept_in: String,
    /// The variable of the program's module whose address it holds.
    pub of: String,
}

/// Edits an entry as a kernel was derived from `own`, the one that the entry was read as.
///
/// # Errors
/// The module is for GPUs or of a PTX version that planned kernels cannot run on, the kernel takes more shared memory than an
/// entry can declare, or a planned loop cannot be taken out of the entry.
pub fn placed(original: &Original, own: &Kernel, kernel: &Kernel) -> Result<DropIn> {
    edited(original, own, kernel, &HashMap::new())
}

/// The module that a workload's kernel was read from, as a launch of it, with this kernel in its place.
///
/// # Errors
/// As for [`placed`].
pub fn in_place(original: &Original, workload: &Workload, kernel: &Kernel) -> Result<Ptx> {
    if workload.is_own(kernel) {
        return Ok(as_it_was(original));
    }
    let placed = placed(original, &workload.kernel, kernel)?;
    Ok(Ptx {
        text: placed.text,
        static_shared_bytes: placed.added_shared_bytes as u32,
        hints: placed.hints,
        ..as_it_was(original)
    })
}

/// The module that a workload's kernel was read from, as a launch of it.
pub fn as_it_was(original: &Original) -> Ptx {
    Ptx {
        text: original.text.to_string(),
        entry: original.entry.clone(),
        dynamic_shared_bytes: original.dynamic_shared_bytes,
        static_shared_bytes: 0,
        hints: Vec::new(),
    }
}

/// The same as [`placed`] for an entry that is read with other facts, and a plan.
///
/// # Errors
/// As for [`placed`], or the plan is not legal under these facts.
pub(in crate::tune) fn placed_under(
    original: &Original,
    facts: &Facts,
    plan: &Plan,
    target: &PlanTarget,
) -> Result<DropIn> {
    let imported = original.again(facts)?;
    let applied = apply(&imported.kernel, plan, target)?;
    placed(&imported.original, &imported.kernel, &applied.kernel)
}

/// The same as [`placed`] for a module that is loaded beside the program's own, whose variables would be copies: its code reads the addresses of
/// the program's from variables that the loader fills. `is_own` says of each of the kernel's parameters whether the module's own
/// copy of the variable will do.
///
/// # Errors
/// As for [`placed`], or the code does something else with a variable than read its address or access it.
pub(crate) fn beside(
    original: &Original,
    own: &Kernel,
    kernel: &Kernel,
    is_own: impl Fn(Value) -> bool,
) -> Result<Beside> {
    let parameters = own.params.iter().zip(&original.parameters);
    let variables = parameters.filter_map(|(param, origin)| match origin {
        Origin::Variable { name, .. } if !is_own(param.value) => Some(name.clone()),
        _ => None,
    });
    let kept: HashMap<String, String> = variables
        .map(|name| {
            // Names of PTX are made of letters, digits, `_` and `$`, so that this is one.
            let kept_in = unused(&original.text, &format!("headstart_address_of_{name}"));
            (name, kept_in)
        })
        .collect();
    let module = edited(original, own, kernel, &kept)?;
    let addresses = kept.into_iter().map(|(of, kept_in)| KeptAddress { kept_in, of });
    let mut addresses: Vec<KeptAddress> = addresses.collect();
    addresses.sort_by(|one, other| one.of.cmp(&other.of));
    Ok(Beside { module, addresses })
}

/// The directive by which the author of an entry has told the compiler about registers, if there is one.
pub(in crate::tune) fn said_of_registers(original: &Original) -> Option<&'static str> {
    let header = &original.text[original.start..original.body.start];
    let mut directives = [".maxnreg", ".minnctapersm"].into_iter();
    directives.find(|directive| header.contains(directive))
}

/// A name that a text does not have: this one, or with a number behind it.
pub(in crate::tune) fn unused(text: &str, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let is_free = |name: &String| !text.contains(name.as_str());
    names.find(is_free).unwrap_or_default()
}

/// The number of `sm_90a`.
pub(in crate::tune) fn capability(target: &str) -> Option<u32> {
    let digits = target.strip_prefix("sm_")?;
    digits
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .parse()
        .ok()
}

/// The target that inserted lines need, and where the module's stands in its text; none where its own will do.
///
/// # Errors
/// They need asynchronous copies, and the module is for GPUs from which it cannot be raised to those that have them.
pub(in crate::tune) fn raised(
    original: &Original,
    added: &str,
) -> Result<Option<(Range<usize>, &'static str)>> {
    let is_new = capability(&original.target).is_some_and(|own| own >= COPIES.0);
    if is_new || !NEWER.iter().any(|newer| added.contains(newer)) {
        return Ok(None);
    }
    let from = original.version.as_ref().map_or(0, |(_, place)| place.end);
    let place = original.text[from..].find(&original.target).map(|at| from + at);
    match (capability(&original.target), place) {
        (Some(APART..), Some(start)) => Ok(Some((start..start + original.target.len(), COPIES.1))),
        _ => Err(Error::input(format!(
            "the module is for `{}`, which has no asynchronous copies, and is not raised: lanes of GPUs from sm_70 on may run apart",
            original.target
        ))
        .accepted("plans that load into registers or give hints to L2, or a module for sm_70 or later")),
    }
}

/// The note above a rewritten module.
#[derive(Clone, Debug)]
pub(crate) struct Note<'n> {
    /// The plan that was carried out.
    pub plan: &'n Plan,
    /// The outcome, in a sentence, if it was measured.
    pub measured: Option<&'n str>,
    /// The launches on which it was checked, if the note is to say so.
    pub checked: Option<&'n Perturbed>,
    /// The requirements of every launch.
    pub granted: &'n [Granted],
}

impl DropIn {
    /// The whole module with a note at its top.
    pub(crate) fn with_note(&self, original: &Original, note: &Note<'_>) -> String {
        let mut lines = vec![format!(
            "Headstart {}: entry `{}` of {} was rewritten with the plan {}",
            env!("CARGO_PKG_VERSION"),
            original.entry,
            original.file,
            note.plan
        )];
        let changed = match self.changed.len() {
            1 => "1 place in others".to_owned(),
            count => format!("{count} places in others"),
        };
        lines.push(format!(
            "{} lines were added, between `Headstart begins` and `Headstart ends`, and {changed} changed.",
            self.added.lines().count()
        ));
        lines.extend(note.measured.map(str::to_owned));
        lines.extend(note.checked.into_iter().flat_map(Perturbed::sentences));
        lines.extend(note.checked.and_then(Perturbed::weakness));
        if let Some(bytes) = self.needs.dynamic_shared_bytes {
            lines.push(format!(
                "The plan is for launches with {bytes} bytes of dynamic shared memory; others take the body as it was."
            ));
        }
        if let Some([x, y, z]) = self.needs.group {
            lines.push(format!(
                "The plan is for work-groups of {x} x {y} x {z}; a launch with others takes the body as it was."
            ));
        }
        if self.added_shared_bytes > 0 {
            lines.push(format!(
                "It declares {} bytes of shared memory more than before.",
                self.added_shared_bytes
            ));
        }
        if self.changed.iter().any(|change| change == COPIES.1) {
            lines.push(format!(
                "The target was {}; the plan's asynchronous copies need {}.",
                original.target, COPIES.1
            ));
        }
        if let Some((version, _)) = original
            .version
            .as_ref()
            .filter(|(version, _)| *version < OLDEST_VERSION)
        {
            let (old, new) = (version, OLDEST_VERSION);
            lines.push(format!(
                "The PTX version was {}.{}; the plan needs {}.{}.",
                old.0, old.1, new.0, new.1
            ));
        }
        lines.extend(
            note.granted
                .iter()
                .map(|granted| format!("Taken for granted: {granted}.")),
        );
        if let Some(registers) = note.plan.registers() {
            lines.push(format!(
                "It may take {registers} registers: the driver may refuse launches of more than {} work-items in a work-group.",
                REGISTERS_OF_GROUP / registers / 32 * 32
            ));
        } else if takes_registers(note.plan) {
            lines.push(
                "It may need more registers than before: the driver may refuse launches with larger work-groups.".to_owned(),
            );
        }
        let mut text = String::new();
        for line in lines {
            let _ = writeln!(text, "// {}", commented(&line));
        }
        text.push_str(&self.module(original));
        text
    }
}

/// A line as a comment of PTX can have it: names come from outside, and may not end it. And ptxas refuses what is not ASCII.
pub(super) fn commented(line: &str) -> String {
    let line = line.replace('µ', "u");
    line.chars().filter(|c| c.is_ascii() && !c.is_control()).collect()
}

/// Whether a plan keeps more values at once than the entry did.
fn takes_registers(plan: &Plan) -> bool {
    let groups = plan.unroll().is_some() || plan.inner().is_some();
    groups || plan.loads().iter().any(|(_, strategy)| !strategy.is_hint())
}
