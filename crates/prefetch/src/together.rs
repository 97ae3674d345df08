//! Loops that depend on which work-items run them together.
//!
//! ```text
//! loop 'j (%i, %s) {
//!   %mask = active               in the last iterations some lanes are in the loop that is left, and others in copies
//!   %many = popcount %mask
//!   %t = add %s, %many           another sum with copies
//!   continue %next, %t
//! }
//! ```
//!
//! The mask of `activemask` may go into addresses, conditions and atomic operations, as where one lane adds for all that are there: the
//! sum is the same however they are parted. Values that are made of it and stored, or handed to another iteration, are not; nor do
//! lanes in lockstep see each other's accesses in copies of their own.

use std::collections::HashSet;

use crate::analysis::definitions::Definitions;
use crate::analysis::uniform::Divergence;
use crate::error::{Error, Result};
use crate::ir::{Kernel, Label, Op, OpKind, Value};

/// Refuses copies of a loop with such values that work-items leave at different times.
pub(super) fn may_be_copied(
    kernel: &Kernel,
    definitions: &Definitions,
    label: Label,
    own: &Op,
) -> Result<()> {
    let mut ops: Vec<&Op> = Vec::new();
    for region in own.kind.regions() {
        region.walk(&mut |op| ops.push(op));
    }
    let masks = ops.iter().filter(|op| matches!(op.kind, OpKind::Active));
    let masks: HashSet<Value> = masks.flat_map(|op| op.results.iter().copied()).collect();
    if masks.is_empty() || !Divergence::of(kernel).parts(label) {
        return Ok(());
    }
    // What goes to the next iteration is shown there already.
    let handed_on: &[Value] = match &own.kind {
        OpKind::Loop { params, .. } => params,
        _ => &[],
    };
    let tells = definitions.spread(kernel, |_, value| match masks.contains(&value) {
        true => Some(true),
        false => handed_on.contains(&value).then_some(false),
    });
    let inside: HashSet<Label> = ops.iter().filter_map(|op| op.kind.label()).collect();
    // Where one is stored, leaves the iteration, or says who meets.
    let shown = ops.iter().find(|op| {
        let mut seen = false;
        match &op.kind {
            OpKind::Store { values, .. } | OpKind::Print { values, .. } => {
                seen = values.iter().any(|&value| tells[value]);
            }
            OpKind::Break(to, _) | OpKind::Continue(to, _) if inside.contains(to) => {}
            OpKind::Break(..) | OpKind::Continue(..) | OpKind::Meet(_) => {
                op.kind.for_each_operand(|operand| seen |= tells[operand]);
            }
            _ => {}
        }
        seen
    });
    match shown {
        Some(op) => {
            let why =
                "the loop depends on which work-items run it together, and they leave it at different times";
            Err(Error::usage(why)
                .at(kernel.describe_place(op.place))
                .accepted("a loop with as many iterations for all work-items of a sub-group"))
        }
        None => Ok(()),
    }
}
