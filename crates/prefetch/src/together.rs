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

use std::collections::{HashMap, HashSet};

use crate::analysis::uniform::Divergence;
use crate::error::{Error, Result};
use crate::ir::{Kernel, Label, Op, OpKind, Place, Value};

/// Refuses copies of a loop with such values that work-items leave at different times.
pub(super) fn may_be_copied(kernel: &Kernel, label: Label, own: &Op) -> Result<()> {
    let mut ops: Vec<&Op> = Vec::new();
    for region in own.kind.regions() {
        region.walk(&mut |op| ops.push(op));
    }
    let asks = ops.iter().any(|op| matches!(op.kind, OpKind::Active));
    let shown = match asks && Divergence::of(kernel).parts(label) {
        true => Told::new(&ops).shown(&ops),
        false => None,
    };
    match shown {
        Some(place) => {
            let why =
                "the loop depends on which work-items run it together, and they leave it at different times";
            Err(Error::usage(why)
                .at(kernel.describe_place(place))
                .accepted("a loop with as many iterations for all work-items of a sub-group"))
        }
        None => Ok(()),
    }
}

/// The values of a loop's iteration that tell which work-items run it together.
struct Told<'k> {
    values: HashSet<Value>,
    /// The results and parameters of what has a label inside.
    inside: HashMap<Label, (&'k [Value], &'k [Value])>,
}

impl<'k> Told<'k> {
    fn new(ops: &[&'k Op]) -> Told<'k> {
        let labelled = |op: &&'k Op| {
            let params: &[Value] = match &op.kind {
                OpKind::Loop { params, .. } => params,
                _ => &[],
            };
            Some((op.kind.label()?, (op.results.as_slice(), params)))
        };
        Told {
            values: HashSet::new(),
            inside: ops.iter().filter_map(labelled).collect(),
        }
    }

    /// Where the first one is stored, leaves the iteration, or says who meets.
    fn shown(&mut self, ops: &[&'k Op]) -> Option<Place> {
        let mut before = usize::MAX;
        while before != self.values.len() {
            before = self.values.len();
            for op in ops {
                if self.is_shown_by(op) {
                    return Some(op.place);
                }
            }
        }
        None
    }

    /// Follows the values through an operation.
    fn is_shown_by(&mut self, op: &Op) -> bool {
        let mut told = matches!(op.kind, OpKind::Active);
        op.kind
            .for_each_operand(|operand| told |= self.values.contains(&operand));
        match &op.kind {
            OpKind::Break(label, values) | OpKind::Continue(label, values) => {
                let Some(&(results, params)) = self.inside.get(label) else {
                    return told;
                };
                let to = match op.kind {
                    OpKind::Break(..) => results,
                    _ => params,
                };
                for (&to, value) in to.iter().zip(values) {
                    if self.values.contains(value) {
                        self.values.insert(to);
                    }
                }
                false
            }
            OpKind::Store { values, .. } | OpKind::Print { values, .. } => {
                values.iter().any(|value| self.values.contains(value))
            }
            OpKind::Meet(_) => told,
            _ => {
                if told {
                    self.values.extend(&op.results);
                }
                false
            }
        }
    }
}
