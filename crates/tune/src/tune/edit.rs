//! Edited modules: the planned loops of one entry are put in front of those that they were derived from.
//!
//! ```text
//! // Headstart 0.1.0: entry `gather`, plan values=rolling-async:4          a note at the top
//! .version 9.0                                                              as it was
//! .visible .entry gather(.param .u64 gather_param_0, …)                     as it was
//! .maxnreg 168                                                              only where a plan says so
//! {
//!     …                                                                     as it was
//! // Headstart begins
//! // Loop $L__BB0_3, values=rolling-async:4.
//! $headstart_0_:                                                            jumps to the loop lead here
//! {   (a launch that is not as the plan needs it: to the loop as it was)
//!     mov.b64 %hs_in0, %rd4; …                                              registers that the loop reads
//!     { … the planned loop … }
//! $hs_exit0:
//!     mov.f32 %f1, %hs_out0; …                                              registers that the code behind it reads
//!     bra $L__BB0_5;
//! }
//! // Headstart ends
//! $L__BB0_3:                                                                the loop, and all that follows, as it was
//!     …
//! }
//! ```
//!
//! Without what stands between the marks the text is the input's, but for the version, the entry's directives, jumps to planned
//! loops, and in modules beside a program's own the names of [variables](super::redirect).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::ops::Range;

use super::drop_in::{DropIn, Needs, OLDEST_VERSION, raised, said_of_registers, unused};
use super::piece::Around;
use super::redirect::redirected;
use crate::back::ptx::{Around as Register, Edges};
use crate::cleanup;
use crate::cut::cut;
use crate::error::{Error, Result};
use crate::front::ptx::{CutLoop, CutRegister, Original, Target};
use crate::ir::Kernel;
use crate::prefetch::{self, Plan, PlanTarget, planned_loops};

/// What stands in front of an insertion and behind it.
const BEGINS: &str = "// Headstart begins\n";
const ENDS: &str = "// Headstart ends\n";

/// Edits the entry that `own` was read from as a kernel was derived from `own`. `kept` has the variables whose addresses other
/// variables hold.
///
/// # Errors
/// A planned loop cannot be taken out of the entry: what goes over its edges besides registers.
pub(super) fn edited(
    original: &Original,
    own: &Kernel,
    kernel: &Kernel,
    kept: &HashMap<String, String>,
) -> Result<DropIn> {
    let mut text = Edits::default();
    if !kept.is_empty() {
        let (statements, first) = redirected(original, kept)?;
        for (span, other) in statements {
            text.exchange(span, other);
        }
        let mut names: Vec<&String> = kept.values().collect();
        names.sort();
        for name in names {
            text.insert(first, &format!(".visible .const .align 8 .u64 {name};\n"));
        }
    }
    if let Some(registers) = kernel.max_registers {
        if let Some(directive) = said_of_registers(original) {
            let error = Error::usage(format!("the entry has a `{directive}` of its own"));
            return Err(error.accepted("a plan without `registers:N`"));
        }
        let header = &original.text[original.start..original.body.start];
        let end = original.start + header.rfind('{').unwrap_or(header.len());
        text.insert(end, &format!(".maxnreg {registers}\n"));
    }
    let mut edited = DropIn {
        text: String::new(),
        added_shared_bytes: 0,
        needs: Needs::default(),
        hints: Vec::new(),
        added: String::new(),
        changed: Vec::new(),
    };
    if kernel.body != own.body {
        if let Some((version, place)) = &original.version
            && *version < OLDEST_VERSION
        {
            let (major, minor) = OLDEST_VERSION;
            text.exchange(place.clone(), format!(" {major}.{minor}"));
        }
        let (planned, plan, loops) = planned(original, own, kernel)?;
        edited.needs = Needs::of(original, &planned);
        let mut editor = Editor {
            original,
            planned: &planned,
            plan: &plan,
            loops: &loops,
            kept,
            labels: HashMap::new(),
            text,
            edited,
        };
        for number in 0..loops.len() {
            editor.planned_loop(number)?;
        }
        Editor { text, edited, .. } = editor;
    }
    edited.added = text.insertions.values().flat_map(|own| own.chars()).collect();
    if let Some((place, target)) = raised(original, &edited.added)? {
        text.exchange(place, target.to_owned());
    }
    edited.text = text.of(&original.text);
    edited.changed = text.exchanges.values().map(|(_, other)| other.clone()).collect();
    Ok(edited)
}

/// The kernel with edges at its planned loops, the plan with the parents that it carries, and those loops as the text has them.
fn planned(original: &Original, own: &Kernel, kernel: &Kernel) -> Result<(Kernel, Plan, Vec<CutLoop>)> {
    let derivation = kernel.derivation.as_ref();
    let derivation =
        derivation.ok_or_else(|| Error::bug("a kernel that no plan made is put into a module"))?;
    let plan: Plan = derivation.plan.parse()?;
    let target = PlanTarget {
        group_size: derivation.group_size,
        line: derivation.line,
    };
    let mut headers = Vec::new();
    for label in planned_loops(own, &plan)? {
        let name = own.labels[label].name.clone();
        let name = name.ok_or_else(|| {
            Error::input("the loop cannot be edited: it begins at no label of the text")
                .accepted("loops of the entry itself")
        })?;
        if !headers.contains(&name) {
            headers.push(name);
        }
    }
    let (imported, loops) = original.cut(&headers)?;
    match loops.iter().find_map(|own| own.undecided.clone()) {
        Some(undecided) => Err(undecided),
        None => {
            let applied = prefetch::apply(&imported.kernel, &plan, &target)?;
            Ok((applied.kernel, applied.plan, loops))
        }
    }
}

struct Editor<'a> {
    original: &'a Original,
    planned: &'a Kernel,
    plan: &'a Plan,
    loops: &'a [CutLoop],
    kept: &'a HashMap<String, String>,
    /// The labels of statements that had none.
    labels: HashMap<usize, String>,
    text: Edits,
    edited: DropIn,
}

impl Editor<'_> {
    /// Puts a planned loop in front of the one that it was derived from.
    fn planned_loop(&mut self, number: usize) -> Result<()> {
        let own = &self.loops[number];
        let mut piece = cut(self.planned, number as u32)?;
        cleanup::tidy(&mut piece);
        let stem = unused(&self.original.text, &format!("headstart{number}_"));
        for data in piece.arrays.values_mut() {
            if !self.original.arrays.iter().any(|array| array.name == data.name) {
                data.name = format!("{stem}{}", data.name);
            }
        }
        let edges = edges(own);
        let around = Around {
            original: self.original,
            kernel: self.planned,
            kept: self.kept,
            stem,
            declared_bytes: self.edited.added_shared_bytes,
        };
        let block = around.block(&piece, edges.clone())?;
        self.edited.added_shared_bytes += block.static_shared_bytes;
        self.edited.hints.extend(block.hints);

        // Names come from outside: a comment must not end where they like.
        let plan: String = self
            .plan
            .to_string()
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        let mut text = format!(
            "// Loop {}, {plan}.\n{}:\n{{\n",
            own.label,
            self.entry_label(number)
        );
        let given = own.inputs.iter().zip(&edges.enter);
        let taken = own.exits.iter().flat_map(|way| &way.outputs);
        let taken = taken.zip(edges.leave.iter().flat_map(|(_, outputs)| outputs));
        for (_, around) in given.clone().chain(taken) {
            let _ = writeln!(text, "\t.reg .{} {};", class(around), around.name);
        }
        write_choice(&mut text, &self.edited.needs.tests(), &own.label);
        for (register, around) in given {
            let _ = writeln!(
                text,
                "\tmov.{} {}, {};",
                class(around),
                around.name,
                register.name
            );
        }
        text.push_str(&block.text);
        for (way, (label, around)) in own.exits.iter().zip(&edges.leave) {
            let _ = writeln!(text, "{label}:");
            for (register, around) in way.outputs.iter().zip(around) {
                let _ = writeln!(
                    text,
                    "\tmov.{} {}, {};",
                    class(around),
                    register.name,
                    around.name
                );
            }
            let _ = writeln!(text, "\tbra {};", self.target(&way.target));
        }
        text.push_str("}\n");
        self.insert(own.header, &text);
        for jump in own.jumps.clone() {
            let label = self.entry_label(number);
            self.text.exchange(jump, label);
        }
        Ok(())
    }

    /// The label of a planned loop. Labels of the text end otherwise, or it is another number.
    fn entry_label(&self, number: usize) -> String {
        unused(&self.original.text, &format!("$headstart_{number}_"))
    }

    /// The label that a way out leads to.
    fn target(&mut self, target: &Target) -> String {
        match target {
            // From one planned loop into another.
            Target::Label(label) => match self.loops.iter().position(|own| own.label == *label) {
                Some(number) => self.entry_label(number),
                None => label.clone(),
            },
            Target::Statement(at) => {
                if let Some(label) = self.labels.get(at) {
                    return label.clone();
                }
                let name = format!("$headstart_behind_{}_", self.labels.len());
                let label = unused(&self.original.text, &name);
                self.insert(*at, &format!("// A planned loop ends here.\n{label}:\n"));
                self.labels.insert(*at, label.clone());
                label
            }
        }
    }

    /// Inserts lines in front of a statement, between marks: in front of its whole line, if nothing but space comes before it.
    fn insert(&mut self, at: usize, lines: &str) {
        let before = &self.original.text[..at];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        let at = match before[line..].trim().is_empty() {
            true => line,
            false => at,
        };
        self.text.insert(at, &format!("{BEGINS}{lines}{ENDS}"));
    }
}

/// The registers between a block and the code around it.
fn edges(own: &CutLoop) -> Edges {
    let mut outputs = 0;
    let ways = own.exits.iter().enumerate().map(|(exit, way)| {
        let around = between("out", outputs, &way.outputs);
        outputs += way.outputs.len();
        (format!("$hs_exit{exit}"), around)
    });
    Edges {
        enter: between("in", 0, &own.inputs),
        leave: ways.collect(),
    }
}

fn between(kind: &str, first: usize, registers: &[CutRegister]) -> Vec<Register> {
    let numbered = (first..).zip(registers);
    let all = numbered.map(|(number, register)| Register {
        name: format!("%hs_{kind}{number}"),
        // `pred` has no number.
        bits: register
            .ty
            .trim_start_matches(|c: char| c.is_ascii_alphabetic())
            .parse()
            .ok(),
    });
    all.collect()
}

/// The type of a register of so many bits.
fn class(register: &Register) -> String {
    register
        .bits
        .map_or_else(|| "pred".to_owned(), |bits| format!("b{bits}"))
}

/// Sends launches that do not pass these tests to a loop as it was.
fn write_choice(into: &mut String, tests: &[(&str, u32)], own: &str) {
    if tests.is_empty() {
        return;
    }
    let registers = tests.len() + 1;
    let _ = writeln!(
        into,
        "\t.reg .pred %hs_p<{registers}>;\n\t.reg .b32 %hs_r<{registers}>;"
    );
    for (before, (register, value)) in tests.iter().enumerate() {
        let number = before + 1;
        let _ = writeln!(into, "\tmov.u32 %hs_r{number}, {register};");
        let _ = match before {
            0 => writeln!(into, "\tsetp.eq.u32 %hs_p1, %hs_r1, {value};"),
            _ => writeln!(
                into,
                "\tsetp.eq.and.u32 %hs_p{number}, %hs_r{number}, {value}, %hs_p{before};"
            ),
        };
    }
    let _ = writeln!(into, "\t@!%hs_p{} bra {own};", tests.len());
}

/// Changes of a text.
#[derive(Default)]
struct Edits {
    /// By the byte in front of which they stand.
    insertions: BTreeMap<usize, String>,
    /// By the byte where something starts, where it ends and what takes its place.
    exchanges: BTreeMap<usize, (usize, String)>,
}

impl Edits {
    /// Inserts behind what is inserted there already.
    fn insert(&mut self, at: usize, text: &str) {
        self.insertions.entry(at).or_default().push_str(text);
    }

    fn exchange(&mut self, span: Range<usize>, text: String) {
        self.exchanges.insert(span.start, (span.end, text));
    }

    /// The text with all changes.
    fn of(&self, whole: &str) -> String {
        let mut places: Vec<usize> = self
            .insertions
            .keys()
            .chain(self.exchanges.keys())
            .copied()
            .collect();
        places.sort_unstable();
        places.dedup();
        let mut text = String::with_capacity(whole.len());
        let mut from = 0;
        for at in places {
            text.push_str(&whole[from..at]);
            from = at;
            text.extend(self.insertions.get(&at).map(String::as_str));
            if let Some((end, other)) = self.exchanges.get(&at) {
                text.push_str(other);
                from = *end;
            }
        }
        text.push_str(&whole[from..]);
        text
    }
}
