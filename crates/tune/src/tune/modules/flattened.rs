//! The text of an entry in which iterations of loops inside are part of the loops around them: planned loops are copied from it.
//!
//! ```text
//! before                              after
//! $L__BB0_3:                          $L__BB0_3:
//! $L__BB0_5:                          { … an iteration of $L__BB0_5 … }
//!     …                               { … an iteration of $L__BB0_5 … }
//!     @%p3 bra $L__BB0_5;             $L__BB0_5:           only if there may be more of them
//!     bar.sync 0;                         …
//!     @%p6 bra $L__BB0_3;                 @%p3 bra $L__BB0_5;
//!                                         bar.sync 0;
//!                                         @%p6 bra $L__BB0_3;
//! ```
//!
//! It is right for launches of the plan's work-groups alone, and never left a module: copies of it run behind a test of their size.

use std::sync::Arc;

use super::drop_in::unused;
use super::edit::{header, loop_at};
use super::edits::Edits;
use super::loop_copies::{CopyPlace, LoopCopies, Test};
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::summarize;
use crate::error::{Error, Result};
use crate::front::ptx::{Cut, Imported, LoopInText, NEXT_LINE, Original, Target, line_at};
use crate::ir::{Kernel, OpKind, Place};
use crate::prefetch::{InnerLoop, Loads, Plan, PlanTarget};

/// An entry in such a text.
pub(super) struct Flattened {
    /// As it is read.
    pub read: Arc<Imported>,
    /// The labels of the loops around.
    pub around: Vec<String>,
    /// Those of the loops inside: what is left of them runs where iterations before have run, and is no loop to plan.
    pub inner: Vec<String>,
    /// The other parts of the plan.
    pub plan: Plan,
}

/// The entry as a plan needs it, if it makes iterations of loops inside part of those around.
///
/// # Errors
/// There is no such loop, or its text cannot be copied.
pub(super) fn flattened(
    original: &Original,
    own: &Kernel,
    plan: &Plan,
    target: &PlanTarget,
) -> Result<Option<Flattened>> {
    if plan.inner().is_none() {
        return Ok(None);
    }
    let (mut inner, mut around) = (Vec::new(), Vec::new());
    for found in Loads::of(own).inner_loops(plan, target)? {
        inner.push((header(own, found.label)?, found));
        let outer = header(own, found.around)?;
        if !around.contains(&outer) {
            around.push(outer);
        }
    }
    let shown = inner
        .iter()
        .map(|(name, found)| format!("{name}:{}:{}", found.iterations, found.are_all));
    let key = shown.collect::<Vec<_>>().join(",");
    let facts = original.facts.clone().with_elements_of(own);
    let read = original.variant(&key, facts, |text| {
        let mut edits = Edits::default();
        for (number, (name, found)) in inner.iter().enumerate() {
            let cut = original.cut(name)?;
            if let Some(undecided) = &cut.own.undecided
                && original.facts.assembler.is_none()
            {
                return Err(undecided.why.clone());
            }
            write_out(&mut edits, text, number, &cut, found)?;
        }
        Ok(edits.of(text, 0..text.len()))
    })?;
    let plan = Loads::of(own).in_loops_around(plan, target, &Loads::of(&read.kernel))?;
    let inner = inner.into_iter().map(|(name, _)| name).collect();
    Ok(Some(Flattened {
        read,
        around,
        inner,
        plan,
    }))
}

/// Writes iterations of a loop in front of it.
fn write_out(edits: &mut Edits, text: &str, number: usize, cut: &Cut, found: &InnerLoop) -> Result<()> {
    let Cut { kernel, own, .. } = cut;
    let mut copies = LoopCopies::of(own, kernel);
    // Sums that are known to be rounded are counted in the order of the text: none may go.
    let are_all = found.are_all && own.rounded.is_empty();
    let test = match are_all {
        true => Some(counting_test(kernel, own)?),
        false => None,
    };
    let numbers: Vec<usize> = (1..=found.iterations)
        .map(|iteration| {
            let last = iteration == found.iterations;
            copies.of_test(test.map(|place| {
                if last {
                    Test::Leaves(place)
                } else {
                    Test::Stays(place)
                }
            }))
        })
        .collect();
    let stem = unused(text, &format!("headstart_inner{number}_"));
    let end = match &own.end {
        None => None,
        Some(Target::Label(label)) => Some(label.clone()),
        Some(Target::Statement(at)) => {
            let label = format!("${stem}behind");
            edits.insert(*at, &format!("{label}:\n{}", says_line(text, *at)));
            Some(label)
        }
    };
    let texts = copies.texts(&CopyPlace {
        text,
        edits: &Edits::default(),
        stem: &stem,
        end: end.as_deref(),
        drains: false,
        says_lines: true,
    })?;
    let entry = format!("${stem}first");
    for jump in own.jumps.clone() {
        edits.exchange(jump, entry.clone());
    }
    // What belongs to the loop in front of its label goes round.
    let around = match own.falls_in && !are_all {
        true => format!("\tbra {};\n", own.label),
        false => String::new(),
    };
    let mut written = format!("\n{around}{entry}:\n");
    for number in numbers {
        written.push_str(&texts[number]);
        written.push('\n');
    }
    // Nothing is left of a loop all of whose iterations are written.
    match are_all {
        true => {
            written.push_str(&says_line(text, own.span.end));
            edits.exchange(own.span.clone(), written);
        }
        false => {
            written.push_str(&says_line(text, own.header.start));
            edits.insert(own.header.start, &written);
        }
    }
    Ok(())
}

/// Says that what follows is the line of this byte.
fn says_line(text: &str, at: usize) -> String {
    format!("{NEXT_LINE}{}\n", line_at(text, at))
}

/// Where the test stands that counts a loop's iterations.
fn counting_test(kernel: &Kernel, own: &LoopInText) -> Result<Place> {
    let label = loop_at(kernel, &own.label)?;
    let definitions = Definitions::of(kernel);
    let mut place = None;
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop {
            label: other, body, ..
        } = &op.kind
            && *other == label
        {
            let summary = summarize(kernel, &definitions, op);
            place = summary.counting().map(|exit| body.ops[exit.position].place);
        }
    });
    // The way on from a test that only leaves at the loop's end is its end.
    let is_clear = |place: &Place| {
        let test = own.tests.get(place);
        test.is_some_and(|test| !test.leaving.is_empty() || test.span.end == own.span.end)
    };
    place.filter(is_clear).ok_or_else(|| {
        Error::input("the loop cannot be edited: its counting test is no jump of its own")
            .accepted("plans without `inner:N`")
    })
}
