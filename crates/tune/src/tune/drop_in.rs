//! Drop-in modules: only the body of one entry is replaced.
//!
//! ```text
//! // Headstart 0.1.0: entry `gather`, plan values=rolling-async:4          a note at the top
//! .version 9.0                                                              as it was
//! .visible .entry gather(.param .u64 gather_param_0, …)                     as it was
//! .maxnreg 168                                                              only where a plan says so
//! {
//!     (a launch that is not as the plan needs it: to the plain path)
//!     … the body as it was …                                                only where a plan needs something
//!     { … the planned body … }
//! }
//! ```
//!
//! The loading program cannot tell the difference: same entries, same parameters, same dynamic shared memory. The plan's
//! assumptions beyond the text (lengths, `readonly`, …) stand in the note.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::granted::Granted;
use crate::back::ptx::Handed;
use crate::back::ptx::{Block, HintReached, Options, PtxTarget, Within, emit_within};
use crate::error::{Error, Result};
use crate::front::ptx::{Origin, Original};
use crate::ir::{Kernel, Space, Value};
use crate::prefetch::{Plan, is_unseen};
use crate::report::Perturbed;

/// The oldest PTX version with the features of planned kernels.
const OLDEST_VERSION: (u32, u32) = (8, 0);
/// Registers of a work-group at most (CUDA's programming guide, compute capabilities 8.0 to 9.0).
const REGISTERS_OF_GROUP: u32 = 65_536;
/// The GPUs that planned kernels are for: asynchronous copies came with the first of them.
const OLDEST_TARGET: u32 = 80;

/// A module with one entry rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIn {
    /// The module's text.
    pub text: String,
    /// Additional shared memory of the entry, in bytes.
    pub added_shared_bytes: u64,
    /// The requirements of a launch for getting the plan.
    pub needs: Needs,
    /// The instruction of each cache hint.
    pub hints: Vec<HintReached>,
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
    fn of(original: &Original, kernel: &Kernel) -> Needs {
        let asks = original.reads_dynamic_shared_size;
        Needs {
            group: kernel.group_size.filter(|_| original.required_group.is_none()),
            dynamic_shared_bytes: asks.then_some(original.dynamic_shared_bytes),
        }
    }

    /// The special registers that are looked at, and their values.
    fn tests(&self) -> Vec<(&'static str, u32)> {
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

/// Puts a kernel that was derived from an entry into the entry's place, without a note.
///
/// # Errors
/// The module is for GPUs or of a PTX version that planned kernels cannot run on, or the kernel takes more shared memory
/// than an entry can declare.
pub fn drop_in(original: &Original, kernel: &Kernel) -> Result<DropIn> {
    check(original)?;
    let needs = Needs::of(original, kernel);
    let tests = needs.tests();
    let block = block(original, kernel, !tests.is_empty(), &HashMap::new())?;
    let body = &original.text[original.body.clone()];
    let mut inside = String::new();
    match tests.is_empty() {
        true => inside = alone(original, &block),
        false => {
            let planned = unused_label(&original.text);
            write_choice(&mut inside, &tests, &planned);
            // The block comes last: it names variables that the body declares.
            inside.push_str(body.trim_end());
            let _ = writeln!(inside, "\n\tret;\n{planned}:");
            inside.push_str(&block.text);
        }
    }
    let text = exchanged(original, kernel.max_registers, "", &inside)?;
    Ok(DropIn {
        text,
        added_shared_bytes: block.static_shared_bytes,
        needs,
        hints: block.hints,
    })
}

/// A module that is loaded beside the program's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The module.
    pub module: DropIn,
    /// Variables of constant memory that must be given addresses before the first launch.
    pub addresses: Vec<KeptAddress>,
}

/// A variable that holds the address of one of the program's own module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAddress {
    /// The variable, of 8 bytes, in the module beside.
    pub kept_in: String,
    /// The variable of the program's module whose address it holds.
    pub of: String,
}

/// The same for a module that is loaded beside the program's own, whose variables would be copies: the entry reads the addresses
/// of the program's from variables that whoever loads the module fills.
///
/// ```text
/// .visible .const .align 8 .u64 headstart_address_of_table;                  given the address of the program's `table`
/// .visible .entry gather(.param .u64 gather_param_0, …)                     as it was
/// { { … ld.const.u64 %rd1, [headstart_address_of_table]; … } }
/// ```
///
/// The body as it was is left out: only launches that are as the plan needs them may take the entry. `is_own` says of each of the
/// kernel's parameters whether the module's own copy of the variable will do.
///
/// # Errors
/// As for [`drop_in`].
pub fn beside(original: &Original, kernel: &Kernel, is_own: impl Fn(Value) -> bool) -> Result<Beside> {
    check(original)?;
    let mut kept: HashMap<Value, KeptAddress> = HashMap::new();
    for (param, origin) in kernel.params.iter().zip(&original.parameters) {
        let Origin::Variable { name, .. } = origin else {
            continue;
        };
        if !is_own(param.value) {
            // Names of PTX are made of letters, digits, `_` and `$`, so that this is one.
            let kept_in = unused(&original.text, &format!("headstart_address_of_{name}"));
            kept.insert(
                param.value,
                KeptAddress {
                    kept_in,
                    of: name.clone(),
                },
            );
        }
    }
    let block = block(original, kernel, false, &kept)?;
    let mut addresses: Vec<KeptAddress> = kept.into_values().collect();
    addresses.sort_by(|one, other| one.of.cmp(&other.of));
    let declarations: String = addresses
        .iter()
        .map(|own| format!(".visible .const .align 8 .u64 {};\n", own.kept_in))
        .collect();
    Ok(Beside {
        module: DropIn {
            text: exchanged(
                original,
                kernel.max_registers,
                &declarations,
                &alone(original, &block),
            )?,
            added_shared_bytes: block.static_shared_bytes,
            needs: Needs::default(),
            hints: block.hints,
        },
        addresses,
    })
}

/// A block in the place of the whole body.
fn alone(original: &Original, block: &Block) -> String {
    let (first, last) = labels_of_sections(original);
    format!("\n{}{}{}", first.concat(), block.text, last.concat())
}

/// The same for a kernel derived from `own`, the one that the entry was read as: where only the registers differ, the body stays
/// as it was.
///
/// # Errors
/// As for [`drop_in`].
pub fn placed(original: &Original, own: &Kernel, kernel: &Kernel) -> Result<DropIn> {
    match kernel.max_registers.filter(|_| kernel.body == own.body) {
        Some(registers) => with_registers(original, registers),
        None => drop_in(original, kernel),
    }
}

/// The module with the entry's body as it was, and this many registers of a work-item for the compiler to use.
///
/// ```text
/// .visible .entry gather(.param .u64 gather_param_0, …)                     as it was
/// .maxnreg 168
/// { … the body as it was … }
/// ```
fn with_registers(original: &Original, registers: u32) -> Result<DropIn> {
    check(original)?;
    Ok(DropIn {
        text: exchanged(
            original,
            Some(registers),
            "",
            &original.text[original.body.clone()],
        )?,
        added_shared_bytes: 0,
        needs: Needs::default(),
        hints: Vec::new(),
    })
}

/// The directive by which the author of an entry has told the compiler about registers, if there is one.
pub(super) fn said_of_registers(original: &Original) -> Option<&'static str> {
    let header = &original.text[original.start..original.body.start];
    let mut directives = [".maxnreg", ".minnctapersm"].into_iter();
    directives.find(|directive| header.contains(directive))
}

/// The module's text with declarations before the entry, the registers that it may have, and something else inside it.
fn exchanged(
    original: &Original,
    registers: Option<u32>,
    declarations: &str,
    inside: &str,
) -> Result<String> {
    let whole = &original.text;
    let mut header = whole[original.start..original.body.start].to_owned();
    if let Some(registers) = registers {
        if let Some(directive) = said_of_registers(original) {
            let error = Error::usage(format!("the entry has a `{directive}` of its own"));
            return Err(error.accepted("a plan without `registers:N`"));
        }
        let end = header.rfind('{').unwrap_or(header.len());
        header.insert_str(end, &format!(".maxnreg {registers}\n"));
    }
    let mut text = String::with_capacity(whole.len() + declarations.len() + inside.len());
    let mut start = 0;
    if let Some((version, place)) = &original.version
        && *version < OLDEST_VERSION
    {
        let (major, minor) = OLDEST_VERSION;
        let _ = write!(text, "{} {major}.{minor}", &whole[..place.start]);
        start = place.end;
    }
    text.push_str(&whole[start..original.start]);
    text.push_str(declarations);
    text.push_str(&header);
    text.push_str(inside);
    text.push_str(&whole[original.body.end..]);
    Ok(text)
}

/// Labels of a body that the module's debug sections mention, as lines: the one at its beginning, and all others. The lines of
/// an exchanged body come from its `.loc`; the sections' statements about its variables are no longer valid, and do not matter.
fn labels_of_sections(original: &Original) -> (Vec<String>, Vec<String>) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let after = &original.text[original.body.end..];
    if !after.contains(".section") {
        return (Vec::new(), Vec::new());
    }
    let mentioned: HashSet<&str> = after
        .split(|c: char| !is_part(c))
        .filter(|word| word.starts_with('$'))
        .collect();
    let body = &original.text[original.body.clone()];
    let labels = body.lines().filter_map(|line| line.trim().strip_suffix(':'));
    let labels = labels.filter(|label| mentioned.contains(label));
    let (first, last): (Vec<&str>, Vec<&str>) = labels.partition(|label| label.contains("begin"));
    let lines = |labels: Vec<&str>| labels.iter().map(|label| format!("{label}:\n")).collect();
    (lines(first), lines(last))
}

/// A label that the module does not have: it may have been rewritten before.
fn unused_label(text: &str) -> String {
    unused(text, "$headstart_planned")
}

/// A name that a text does not have: this one, or with a number behind it.
fn unused(text: &str, name: &str) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let is_free = |name: &String| !text.contains(name.as_str());
    names.find(is_free).unwrap_or_default()
}

/// Sends launches that pass these tests to the planned body.
fn write_choice(into: &mut String, tests: &[(&str, u32)], planned: &str) {
    let registers = tests.len() + 1;
    let _ = writeln!(
        into,
        "\n\t{{\n\t\t.reg .pred %headstart_p<{registers}>;\n\t\t.reg .b32 %headstart_r<{registers}>;"
    );
    for (before, (register, value)) in tests.iter().enumerate() {
        let number = before + 1;
        let _ = writeln!(into, "\t\tmov.u32 %headstart_r{number}, {register};");
        let _ = match before {
            0 => writeln!(into, "\t\tsetp.eq.u32 %headstart_p1, %headstart_r1, {value};"),
            _ => writeln!(
                into,
                "\t\tsetp.eq.and.u32 %headstart_p{number}, %headstart_r{number}, {value}, %headstart_p{before};"
            ),
        };
    }
    let _ = writeln!(into, "\t\t@%headstart_p{} bra {planned};\n\t}}", tests.len());
}

/// The kernel as a block inside the module; `kept` says of variables where their addresses are read.
fn block(
    original: &Original,
    kernel: &Kernel,
    beside_the_plain: bool,
    kept: &HashMap<Value, KeptAddress>,
) -> Result<Block> {
    let all = kernel.params.iter().zip(&original.parameters);
    let parameters = all.map(|(param, origin)| match origin {
        Origin::Variable { .. } if kept.contains_key(&param.value) => Handed::Kept {
            name: kept[&param.value].kept_in.clone(),
        },
        Origin::Parameter { name, offset, .. } => Handed::Parameter {
            name: name.clone(),
            offset: *offset,
        },
        Origin::Structure { name, .. } => Handed::Structure { name: name.clone() },
        Origin::Workspace => Handed::Workspace,
        Origin::Variable {
            name, is_constant, ..
        } => Handed::Variable {
            name: name.clone(),
            is_constant: *is_constant,
        },
    });
    let around = original
        .arrays
        .iter()
        .filter(|array| array.is_global || beside_the_plain && array.is_visible);
    let arrays: Vec<String> = around.clone().map(|array| array.name.clone()).collect();
    // The entry's own shared variables: those that the block declares instead, and those that it finds declared.
    let (mut instead, mut declared) = (0, 0);
    let own = |name: &str| original.arrays.iter().find(|array| array.name == name);
    let shared = kernel.arrays.values().filter(|data| data.space == Space::Shared);
    for (data, own) in shared.filter_map(|data| Some((data, own(&data.name)?))) {
        match arrays.contains(&data.name) {
            false => instead += data.bytes(),
            // What the launch asks for is not declared.
            true if own.is_dynamic => {}
            true => declared += data.bytes(),
        }
    }
    let body = &original.text[original.body.clone()];
    let within = Within {
        parameters: parameters.collect(),
        static_shared_bytes: declared,
        dynamic_shared_bytes: u64::from(original.dynamic_shared_bytes),
        arrays,
        files: original.files.clone(),
        fuses_addresses: body.matches("mad.wide").count() > body.matches("mul.wide").count(),
    };
    let target = match capability(&original.target) {
        Some(90..) => PtxTarget::Sm90,
        _ => PtxTarget::Sm80,
    };
    let mut block = emit_within(kernel, &Options::new(target), &within)?;
    block.static_shared_bytes = block.static_shared_bytes.saturating_sub(instead);
    // Hints for L1 take some, too.
    if block.static_shared_bytes > 0 {
        is_unseen(kernel)?;
    }
    Ok(block)
}

/// The number of `sm_90a`.
fn capability(target: &str) -> Option<u32> {
    let digits = target.strip_prefix("sm_")?;
    digits
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .parse()
        .ok()
}

/// Whether an entry can be rewritten at all.
fn check(original: &Original) -> Result<()> {
    if let Some(undecided) = &original.undecided {
        return Err(undecided.clone());
    }
    match capability(&original.target) {
        Some(capability) if capability >= OLDEST_TARGET => Ok(()),
        _ => Err(Error::device(format!(
            "the module is for `{}`, which has no asynchronous copies",
            original.target
        ))
        .accepted("a module that was compiled for sm_80 or a later GPU")),
    }
}

/// The note above a rewritten module.
#[derive(Clone, Debug)]
pub struct Note<'n> {
    /// The plan that was carried out.
    pub plan: &'n Plan,
    /// The outcome, in a sentence, if it was measured.
    pub measured: Option<&'n str>,
    /// The launches on which it was checked, if it was.
    pub checked: Option<&'n Perturbed>,
    /// The requirements of every launch.
    pub granted: &'n [Granted],
}

impl DropIn {
    /// The module with a note at its top.
    pub(crate) fn with_note(&self, original: &Original, note: &Note<'_>) -> String {
        let mut lines = vec![format!(
            "Headstart {}: entry `{}` of {} was rewritten with the plan {}",
            env!("CARGO_PKG_VERSION"),
            original.entry,
            original.file,
            note.plan
        )];
        lines.extend(note.measured.map(str::to_owned));
        lines.extend(note.checked.into_iter().flat_map(Perturbed::sentences));
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
            // Names come from outside: a note must not end where it likes.
            let line: String = line.chars().filter(|c| !c.is_control()).collect();
            let _ = writeln!(text, "// {line}");
        }
        text.push_str(&self.text);
        text
    }
}

/// Whether a plan keeps more values at once than the entry did.
fn takes_registers(plan: &Plan) -> bool {
    plan.unroll().is_some() || plan.loads().iter().any(|(_, strategy)| !strategy.is_hint())
}
