//! Edited modules: what a plan makes of the planned loops of one entry stands in front of them.
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
//!     (what is fetched in front of the loop)
//! $headstart0_loop:
//!     (whole groups of iterations, or: to the loop as it was)
//!     (what is fetched ahead)
//!     { … the loop's own text … }                                           once for each iteration of a group
//!     bra $headstart0_loop;
//! }
//! // Headstart ends
//! $L__BB0_3:                                                                the loop, and all that follows, as it was
//!     …
//! }
//! ```
//!
//! Without what stands between the marks the text is the input's, but for the version, the entry's directives, jumps to planned
//! loops, and in modules beside a program's own the names of [variables](super::redirect).

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use super::drop_in::{DropIn, Needs, OLDEST_VERSION, commented, raised, said_of_registers, unused};
use super::edits::{BEGINS, ENDS, Edits};
use super::flattened::flattened;
use super::loop_copies::{CopyPlace, LoopCopies};
use super::piece::Around;
use super::redirect::redirected;
use crate::cleanup;
use crate::cut::cut;
use crate::error::{Error, Result};
use crate::front::ptx::{Cut, LoopInText, Original, Target, Undecided, never_written};
use crate::ir::{CacheLevel, Kernel, Label, OpKind};
use crate::prefetch::{self, Plan, PlanTarget, planned_loops};

/// Edits the entry that `own` was read from as a kernel was derived from `own`. `kept` has the variables whose addresses other
/// variables hold.
///
/// # Errors
/// The text of a planned loop cannot be copied: why.
pub(in crate::tune) fn edited(
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
        edits: Edits::default(),
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
        edited.needs = Needs::of(original, kernel);
        let (plan, target) = derivation(kernel)?;
        let flat = flattened(original, own, &plan, &target)?;
        let (from, own) = match &flat {
            Some(flat) => (&flat.read.original, &flat.read.kernel),
            None => (original, own),
        };
        let inner = plan.inner();
        let plan = flat.as_ref().map_or(plan, |flat| flat.plan.clone());
        let headers = match (&flat, plan.leaves_code()) {
            (Some(flat), true) => flat.around.clone(),
            _ => headers(own, planned_loops(own, &plan)?)?,
        };
        let is_left = |header: &String| flat.as_ref().is_some_and(|flat| flat.inner.contains(header));
        if headers.iter().any(is_left) {
            return Err(Error::input(
                "the loop cannot be edited: what is left of a loop inside is no loop to plan",
            )
            .accepted("plans without `inner:N`"));
        }
        let loops = planned(original, from, &headers)?;
        let inside = match &flat {
            Some(_) => with_redirects(from, kept)?,
            None => text.clone(),
        };
        // What is inside another planned loop is copied with it.
        let mut inner_first: Vec<usize> = (0..loops.len()).collect();
        inner_first.sort_by_key(|&number| loops[number].copied.own.span.len());
        let mut editor = Editor {
            original,
            from,
            plan: &plan,
            inner,
            target,
            loops: &loops,
            kept,
            labels: HashMap::new(),
            copied: Vec::new(),
            text,
            inside,
            edited,
        };
        for number in inner_first {
            editor.planned_loop(number)?;
        }
        Editor { text, edited, .. } = editor;
    }
    edited.added = text.insertions.values().flat_map(|own| own.chars()).collect();
    if let Some((place, target)) = raised(original, &edited.added)? {
        text.exchange(place, target.to_owned());
    }
    edited.text = text.of(&original.text, 0..original.text.len());
    edited.changed = text.exchanges.values().map(|(_, other)| other.clone()).collect();
    edited.edits = text;
    only_set_registers(original, &edited)?;
    Ok(edited)
}

/// Makes sure that the edit reads no register that nothing writes, but for those that the module itself reads so: an assembler takes any
/// value for such a register, and the engine zero.
fn only_set_registers(original: &Original, edited: &DropIn) -> Result<()> {
    if edited.added.is_empty() {
        return Ok(());
    }
    let mut unset = never_written(&edited.text, &original.entry)?;
    if !unset.is_empty() {
        let before = never_written(&original.text, &original.entry)?;
        unset.retain(|name| !before.contains(name));
    }
    match unset.pop_first() {
        Some(name) => Err(Error::bug(format!(
            "the edit reads the register `{name}`, which nothing writes"
        ))),
        None => Ok(()),
    }
}

/// The changes of a text that is copied: accesses of variables that are another module's.
fn with_redirects(from: &Original, kept: &HashMap<String, String>) -> Result<Edits> {
    let mut edits = Edits::default();
    if !kept.is_empty() {
        for (span, other) in redirected(from, kept)?.0 {
            edits.exchange(span, other);
        }
    }
    Ok(edits)
}

/// The plan that a kernel was derived by, and for which launches.
fn derivation(kernel: &Kernel) -> Result<(Plan, PlanTarget)> {
    let derivation = kernel.derivation.as_ref();
    let derivation =
        derivation.ok_or_else(|| Error::bug("a kernel that no plan made is put into a module"))?;
    let target = PlanTarget {
        group_size: derivation.group_size,
        line: derivation.line,
    };
    Ok((derivation.plan.parse()?, target))
}

/// The label of a loop in the text.
pub(super) fn header(own: &Kernel, label: Label) -> Result<String> {
    own.labels[label].name.clone().ok_or_else(|| {
        Error::input("the loop cannot be edited: it begins at no label of the text")
            .accepted("loops of the entry itself")
    })
}

/// The labels of loops, each once.
fn headers(own: &Kernel, loops: impl IntoIterator<Item = Label>) -> Result<Vec<String>> {
    let mut headers = Vec::new();
    for label in loops {
        let name = header(own, label)?;
        if !headers.contains(&name) {
            headers.push(name);
        }
    }
    Ok(headers)
}

/// A planned loop.
struct PlannedLoop {
    /// As it stands in the module.
    own: Arc<Cut>,
    /// As it is copied: the same, or with iterations of the loops inside written out.
    copied: Arc<Cut>,
}

/// The planned loops, which are copied from another text of the entry.
fn planned(original: &Original, from: &Original, headers: &[String]) -> Result<Vec<PlannedLoop>> {
    let loops = headers.iter().map(|header| {
        Ok(PlannedLoop {
            own: original.cut(header)?,
            copied: from.cut(header)?,
        })
    });
    let loops = loops.collect::<Result<Vec<_>>>()?;
    let mut undecided = loops.iter().filter_map(|own| own.copied.own.undecided.as_ref());
    match undecided.next().filter(|_| original.facts.assembler.is_none()) {
        Some(undecided) => Err(undecided.why.clone()),
        None => Ok(loops),
    }
}

/// The number of the only edge in a kernel.
const EDGE: u32 = 0;

struct Editor<'a> {
    original: &'a Original,
    /// What loops are copied from.
    from: &'a Original,
    /// The plan, but for the loops inside.
    plan: &'a Plan,
    inner: Option<u32>,
    target: PlanTarget,
    loops: &'a [PlannedLoop],
    kept: &'a HashMap<String, String>,
    /// The labels of statements that had none.
    labels: HashMap<usize, String>,
    /// The planned loops so far that are copied.
    copied: Vec<Range<usize>>,
    /// The changes of the module.
    text: Edits,
    /// The same of what is copied.
    inside: Edits,
    edited: DropIn,
}

impl Editor<'_> {
    /// Puts what the plan makes of a loop in front of it.
    fn planned_loop(&mut self, number: usize) -> Result<()> {
        let PlannedLoop { own: place, copied } = &self.loops[number];
        let place = &place.own;
        let Cut { kernel, own, .. } = &**copied;
        let mut copies = LoopCopies::of(own, kernel);
        let looped = (loop_at(kernel, &own.label)?, EDGE);
        let (planned, plan) = prefetch::apply_in_text(kernel, self.plan, &self.target, looped, &mut copies)?;
        if copies.is_empty() {
            return Ok(());
        }
        let mut piece = cut(&planned, EDGE)?;
        copies.fit(&piece, &self.inside)?;
        cleanup::tidy(&mut piece);
        let stem = unused(&self.original.text, &format!("headstart{number}_"));
        for data in piece.arrays.values_mut() {
            if !self.original.arrays.iter().any(|array| array.name == data.name) {
                data.name = format!("{stem}{}", data.name);
            }
        }
        if let Some(undecided) = &own.undecided {
            is_decided_ahead(&piece, undecided)?;
        }
        let flights = Flights::of(&piece);
        if flights.counted && own.copies {
            return Err(Error::input(
                "the loop cannot be edited: it counts groups of asynchronous copies, and the plan's would be among them",
            )
            .accepted("plans without `rolling-async`"));
        }
        let drains = flights.counted || flights.uncounted;
        if drains && self.is_left_from_inside(own) {
            return Err(Error::input(
                "the loop cannot be edited: a planned loop inside it leaves it where copies are in flight",
            )
            .accepted("plans without asynchronous copies and hints for L1, or for one of the two loops"));
        }
        self.copied.push(own.span.clone());
        let entry = self.entry_label(number);
        for jump in place.jumps.clone() {
            self.text.exchange(jump, entry.clone());
        }
        for jump in own.jumps.clone() {
            self.inside.exchange(jump, entry.clone());
        }
        let ends = place.end.as_ref().zip(own.end.as_ref());
        let end = ends.map(|(target, copied)| self.target(target, copied));
        let texts = copies.texts(&CopyPlace {
            text: &self.from.text,
            edits: &self.inside,
            stem: &stem,
            end: end.as_deref(),
            drains,
            says_lines: false,
        })?;
        let around = Around {
            original: self.original,
            kernel,
            kept: self.kept,
            stem: stem.clone(),
            declared_bytes: self.edited.added_shared_bytes,
        };
        let block = around.block(&piece, own, texts)?;
        self.edited.added_shared_bytes += block.static_shared_bytes;
        self.edited.hints.extend(block.hints);

        let plan = match (self.inner, &plan[..]) {
            (Some(inner), "") => format!("inner:{inner}"),
            (Some(inner), plan) => format!("inner:{inner},{}", commented(plan)),
            (None, plan) => commented(plan),
        };
        let choice = choice(&self.edited.needs.tests(), &stem, &own.label);
        // What belongs to the loop in front of its label goes round, and does not enter.
        let around = match own.falls_in {
            true => format!("\tbra {};\n", own.label),
            false => String::new(),
        };
        let plan = if plan.is_empty() {
            "what is left over"
        } else {
            &plan
        };
        let text = format!(
            "// Loop {}, {plan}.\n{around}{entry}:\n{choice}{}",
            own.label, block.text
        );
        self.insert((place.header.start, own.header.start), &text);
        Ok(())
    }

    /// Whether copies of a planned loop inside this one leave both: they do not wait for what this one has in flight.
    fn is_left_from_inside(&self, own: &LoopInText) -> bool {
        let mut leaves = own.leaves.iter();
        leaves.any(|leaves| {
            let mut inside = self.copied.iter();
            inside.any(|span| span.contains(&leaves.span.start))
        })
    }

    /// The label of a planned loop. Labels of the text end otherwise, or it is another number.
    fn entry_label(&self, number: usize) -> String {
        unused(&self.original.text, &format!("$headstart_{number}_"))
    }

    /// The label of what follows a loop, in the module and in what is copied.
    fn target(&mut self, target: &Target, copied: &Target) -> String {
        match (target, copied) {
            // From one planned loop into another.
            (Target::Label(label), _) => {
                match self
                    .loops
                    .iter()
                    .position(|planned| planned.own.own.label == *label)
                {
                    Some(number) => self.entry_label(number),
                    None => label.clone(),
                }
            }
            (Target::Statement(_), Target::Label(label)) => label.clone(),
            (Target::Statement(at), Target::Statement(inside)) => {
                if let Some(label) = self.labels.get(at) {
                    return label.clone();
                }
                let name = format!("$headstart_behind_{}_", self.labels.len());
                let label = unused(&self.original.text, &name);
                let text = format!("// A planned loop ends here.\n{label}:\n");
                self.insert((*at, *inside), &text);
                self.labels.insert(*at, label.clone());
                label
            }
        }
    }

    /// Inserts lines in front of a statement of the module, which stands there in what is copied.
    fn insert(&mut self, (at, inside): (usize, usize), lines: &str) {
        insert(&mut self.text, &self.original.text, at, lines);
        insert(&mut self.inside, &self.from.text, inside, lines);
    }
}

/// Inserts lines in front of a statement, between marks: in front of its whole line, if nothing but space comes before it.
fn insert(edits: &mut Edits, text: &str, at: usize, lines: &str) {
    let before = &text[..at];
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let at = match before[line..].trim().is_empty() {
        true => line,
        false => at,
    };
    edits.insert(at, &format!("{BEGINS}{lines}{ENDS}"));
}

/// The loop that begins at a label of the text.
pub(super) fn loop_at(kernel: &Kernel, label: &str) -> Result<Label> {
    let name = label.trim_start_matches('$');
    let mut found = None;
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, .. } = op.kind
            && kernel.labels[label].name.as_deref() == Some(name)
        {
            found = found.or(Some(label));
        }
    });
    found.ok_or_else(|| Error::bug("a planned loop is not there"))
}

/// An address that is computed ahead must not depend on a sum that may be fused otherwise there: another byte would be loaded.
fn is_decided_ahead(piece: &Kernel, undecided: &Undecided) -> Result<()> {
    let mut ahead = false;
    piece
        .body
        .walk(&mut |op| ahead |= undecided.places.contains(&op.place));
    match ahead {
        true => Err(undecided.why.clone()),
        false => Ok(()),
    }
}

/// What a plan may have in flight where a loop is left.
struct Flights {
    /// Asynchronous copies, in groups that are counted.
    counted: bool,
    /// Hints for L1, which may become copies.
    uncounted: bool,
}

impl Flights {
    fn of(piece: &Kernel) -> Flights {
        let (mut counted, mut uncounted) = (false, false);
        piece.body.walk(&mut |op| match op.kind {
            OpKind::Copy { .. } => counted = true,
            OpKind::Prefetch { hint, .. } => uncounted |= hint.level == CacheLevel::L1,
            _ => {}
        });
        Flights { counted, uncounted }
    }
}

/// Sends launches that do not pass these tests to a loop as it was.
fn choice(tests: &[(&str, u32)], stem: &str, own: &str) -> String {
    if tests.is_empty() {
        return String::new();
    }
    let registers = tests.len() + 1;
    let mut text = format!("{{\n\t.reg .pred %{stem}p<{registers}>;\n\t.reg .b32 %{stem}r<{registers}>;\n");
    for (before, (register, value)) in tests.iter().enumerate() {
        let number = before + 1;
        let _ = writeln!(text, "\tmov.u32 %{stem}r{number}, {register};");
        let _ = match before {
            0 => writeln!(text, "\tsetp.eq.u32 %{stem}p1, %{stem}r1, {value};"),
            _ => writeln!(
                text,
                "\tsetp.eq.and.u32 %{stem}p{number}, %{stem}r{number}, {value}, %{stem}p{before};"
            ),
        };
    }
    let _ = writeln!(text, "\t@!%{stem}p{} bra {own};\n}}", tests.len());
    text
}
