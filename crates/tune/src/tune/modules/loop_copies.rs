//! Copies of a planned loop: its own text in a block, with what the plan knows.
//!
//! ```text
//! {
//!     mov.b32 %f1, %headstart0_f3;           a load whose value is there
//!     add.f32 %f2, %f2, %f1;                 as it was; `add.rn.f32` if it is known that the program's machine code rounds it
//!     setp.gt.f32 %p2, %f2, %f9;
//!     @%p2 bra $headstart0_out0;             where copies are in flight they are waited for on the way out
//!     …
//! $headstart0_out0:
//!     cp.async.wait_all;
//!     bra $L__BB0_7;
//! $L__BB0_3:                                 the way back leads behind the copy
//! }
//! ```

use std::collections::{HashMap, HashSet};

use super::edits::{BEGINS, ENDS, Edits};
use crate::back::ptx::given;
use crate::error::{Error, Result};
use crate::front::ptx::{LoopInText, NEXT_LINE, line_at};
use crate::ir::carried::Carried;
use crate::ir::{Kernel, OpKind, Place, Type};
use crate::prefetch::LoopText;

/// The most that copies of one loop may be together, in bytes: some 10,000 instructions, far beyond a core's cache of them.
const MOST_BYTES: usize = 512 << 10;

/// The copies that a plan makes of a loop.
pub(in crate::tune) struct LoopCopies<'l> {
    own: &'l LoopInText,
    /// Places of statements that are one load of the kernel, and no more.
    single: HashSet<Place>,
    copies: Vec<OneCopy>,
}

/// What a copy has instead of the text.
#[derive(PartialEq)]
struct OneCopy {
    replaced: Vec<(Place, Vec<Type>)>,
    test: Option<Test>,
}

/// What is known of the test at a place.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::tune) enum Test {
    /// It stays in the loop.
    Stays(Place),
    /// It leaves the loop.
    Leaves(Place),
}

impl LoopText for LoopCopies<'_> {
    fn loads(&self, place: Place, types: &[Type]) -> bool {
        let load = self
            .own
            .loads
            .get(&place)
            .filter(|_| self.single.contains(&place));
        load.is_some_and(|load| load.exchanged(types, given).is_some())
    }

    fn copy(&mut self, replaced: Vec<(Place, Vec<Type>)>, passes: Option<Place>) -> usize {
        let test = passes.map(Test::Stays);
        self.numbered(OneCopy { replaced, test })
    }
}

impl LoopCopies<'_> {
    /// The number of a copy that replaces no load.
    pub(crate) fn of_test(&mut self, test: Option<Test>) -> usize {
        let replaced = Vec::new();
        self.numbered(OneCopy { replaced, test })
    }

    fn numbered(&mut self, copy: OneCopy) -> usize {
        let known = self.copies.iter().position(|other| *other == copy);
        known.unwrap_or_else(|| {
            self.copies.push(copy);
            self.copies.len() - 1
        })
    }
}

/// Where a copy stands.
pub(in crate::tune) struct CopyPlace<'p> {
    /// The module's text.
    pub text: &'p str,
    /// Its changes so far.
    pub edits: &'p Edits,
    /// What the labels of the copy begin with, behind `$`.
    pub stem: &'p str,
    /// Where the way out behind the loop's last statement leads, if there is one.
    pub end: Option<&'p str>,
    /// Asynchronous copies may be in flight.
    pub drains: bool,
    /// Copies say which lines they are of.
    pub says_lines: bool,
}

impl<'l> LoopCopies<'l> {
    /// None so far.
    pub(crate) fn of(own: &'l LoopInText, kernel: &Kernel) -> LoopCopies<'l> {
        let mut loads: HashMap<Place, u32> = HashMap::new();
        kernel.body.walk(&mut |op| {
            if matches!(op.kind, OpKind::Load { .. }) {
                *loads.entry(op.place).or_default() += 1;
            }
        });
        let single = loads.into_iter().filter(|(_, count)| *count == 1);
        LoopCopies {
            own,
            single: single.map(|(place, _)| place).collect(),
            copies: Vec::new(),
        }
    }

    /// Whether the plan makes none.
    pub(crate) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Refuses a piece whose copies are too much code: each contains what the plan makes of loops inside the loop.
    pub(crate) fn fit(&self, piece: &Kernel, edits: &Edits) -> Result<()> {
        let inside = edits.insertions.range(self.own.span.clone());
        let one = self.own.span.len() + inside.map(|(_, text)| text.len()).sum::<usize>();
        let mut copies = 0;
        piece.body.walk(&mut |op| {
            let is_copy =
                matches!(&op.kind, OpKind::Opaque(what, _) if matches!(*what.does, Carried::Copy(_)));
            copies += usize::from(is_copy);
        });
        let bytes = copies * one;
        if copies <= 1 || bytes <= MOST_BYTES {
            return Ok(());
        }
        Err(Error::usage(format!(
            "the loop cannot be edited: {copies} copies of it would be {} KiB of text",
            bytes >> 10
        ))
        .accepted(format!("at most {} KiB", MOST_BYTES >> 10)))
    }

    /// Their texts, by number.
    ///
    /// # Errors
    /// A copy cannot have all that is inserted.
    pub(crate) fn texts(&self, at: &CopyPlace<'_>) -> Result<Vec<String>> {
        let mut inside = at.edits.insertions.range(self.own.span.clone());
        if inside.any(|(_, text)| text.contains("\t.shared ")) {
            return Err(Error::input(
                "the loop cannot be edited: slots in shared memory of a loop inside it would be in each copy",
            )
            .accepted("plans without slots in shared memory for the inner loop, or for that loop alone"));
        }
        self.copies.iter().map(|copy| self.text(copy, at)).collect()
    }

    fn text(&self, copy: &OneCopy, at: &CopyPlace<'_>) -> Result<String> {
        let own = self.own;
        let (stem, back) = (at.stem, &own.label);
        let mut edits = at.edits.clone();
        let (mut before, mut behind) = (String::new(), String::new());
        let mut header = String::new();
        if own.header.start > own.span.start {
            header = match own.falls_in {
                true => format!("bra {back}; ${stem}start:"),
                false => format!("${stem}start:"),
            };
            before = format!("\tbra ${stem}start;\n");
        }
        if at.says_lines {
            let line = line_at(at.text, own.span.start);
            before.push_str(&format!("{NEXT_LINE}{line}\n"));
            let lines = at.text[own.header.clone()].matches('\n').count();
            header.push_str(&"\n".repeat(lines));
        }
        edits.exchange(own.header.clone(), header);
        let mut first = 0;
        for (place, types) in &copy.replaced {
            let load = own.loads.get(place);
            let text = load.and_then(|load| load.exchanged(types, |number| given(first + number)));
            let (load, text) = load
                .zip(text)
                .ok_or_else(|| Error::bug("a load is no statement"))?;
            edits.exchange(load.span.clone(), text);
            first += types.len();
        }
        for sum in &own.rounded {
            edits.exchange(sum.clone(), format!("{}.rn", &at.text[sum.clone()]));
        }
        let known = match copy.test {
            Some(Test::Stays(place)) => own.tests.get(&place),
            _ => None,
        };
        // A jump to the header leads behind the copy, where the text ends anyway; one to a latch in front of the header does not.
        let leads_behind = |staying: &str| staying.is_empty() || staying == format!("bra {back};");
        let is_last = known.is_some_and(|test| test.span.end == own.span.end && leads_behind(&test.staying));
        if let Some(test) = known {
            let staying = if is_last {
                String::new()
            } else {
                test.staying.clone()
            };
            edits.exchange(test.span.clone(), staying);
        }
        if let Some(Test::Leaves(place)) = copy.test {
            let test = own.tests.get(&place);
            let test = test.ok_or_else(|| Error::bug("a test is no statement"))?;
            edits.exchange(test.span.clone(), test.leaving.clone());
        }
        let wait = if at.drains { "cp.async.wait_all;" } else { "" };
        for &behind in own.falls_out.iter().filter(|_| at.drains) {
            edits.insert(behind, &format!("\n\t{wait}"));
        }
        match at.end {
            Some(end) if !is_last => behind.push_str(&format!("\t{wait}\n\tbra {end};\n")),
            _ if is_last && at.drains => behind.push_str(&format!("\tbra {back};\n")),
            _ => {}
        }
        let leaves = own
            .leaves
            .iter()
            .filter(|leaves| known.is_none_or(|test| test.span != leaves.span));
        for (number, leaves) in leaves.enumerate().filter(|_| at.drains) {
            match &leaves.label {
                Some(label) => {
                    let target = at.edits.exchanged(label.start).unwrap_or(&at.text[label.clone()]);
                    behind.push_str(&format!("${stem}out{number}:\n\t{wait}\n\tbra {target};\n"));
                    edits.exchange(label.clone(), format!("${stem}out{number}"));
                }
                None => {
                    let statement = &at.text[leaves.span.clone()];
                    edits.exchange(leaves.span.clone(), format!("{}{wait} {statement}", leaves.guard));
                }
            }
        }
        // What is inserted in a loop inside is a part of this insertion.
        let text = edits.of(at.text, own.span.clone());
        let text = text.replace(BEGINS, "").replace(ENDS, "");
        // A line more or less would make what follows another line.
        let text = match at.says_lines {
            true => text,
            false => format!("\t{}", without_lines(&text).trim_start()),
        };
        Ok(format!("{{\n{before}{text}\n{behind}{back}:\n\t}}"))
    }
}

/// A text that says no longer which lines it is of.
fn without_lines(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.starts_with(NEXT_LINE)).collect()
}
