//! Where groups of asynchronous copies are closed, on NVIDIA's GPUs.
//!
//! A copy's token is *open* until a commit follows it. The commit comes as late as it can: not inside
//! the `if` that guards a copy but after it, not after each copy of a [`Join`](OpKind::Join) but after
//! the join. So a ring commits once an iteration whether its guard held or not, and counts stay the
//! same on every path. As soon as a token is used otherwise (waited for, carried around a loop, used
//! twice), the commit follows the operation that made it.

use std::collections::{HashMap, HashSet};

use crate::ir::{Kernel, Label, Op, OpKind, Type, Value};

/// Where a token goes.
enum Use {
    /// Into another token that stands for it from there on: the result of a join, an `if`, a block.
    Into(Value),
    /// Anywhere else.
    Elsewhere,
}

/// The block, `if` or loop of each label.
pub(super) fn labelled(kernel: &Kernel) -> HashMap<Label, &Op> {
    let mut labelled = HashMap::new();
    kernel.body.walk(&mut |op| {
        if let Some(label) = op.kind.label() {
            labelled.insert(label, op);
        }
    });
    labelled
}

/// The tokens of a verified kernel with the labels `labelled`, after whose operations a group is closed.
pub(super) fn commits(kernel: &Kernel, labelled: &HashMap<Label, &Op>) -> HashSet<Value> {
    let mut uses: HashMap<Value, Vec<Use>> = HashMap::new();
    let mut open: Vec<Value> = Vec::new();
    kernel.body.walk(&mut |op| match &op.kind {
        OpKind::Copy { .. } => open.push(op.results[0]),
        OpKind::Join(tokens) => {
            for &token in tokens {
                uses.entry(token).or_default().push(Use::Into(op.results[0]));
            }
        }
        OpKind::Break(label, values) => {
            let target = labelled[label];
            let around = matches!(target.kind, OpKind::Loop { .. });
            for (&value, &result) in values.iter().zip(&target.results) {
                let place = if around { Use::Elsewhere } else { Use::Into(result) };
                uses.entry(value).or_default().push(place);
            }
        }
        other => other.for_each_operand(|value| {
            if kernel.ty(value) == Type::Token {
                uses.entry(value).or_default().push(Use::Elsewhere);
            }
        }),
    });

    // A copy's token is open, and so is one that stands for an open one. Each is followed until it is
    // used otherwise.
    let mut commit_after = HashSet::new();
    let mut seen = HashSet::new();
    while let Some(token) = open.pop() {
        if !seen.insert(token) {
            continue;
        }
        match uses.get(&token).map(Vec::as_slice) {
            Some([Use::Into(next)]) => open.push(*next),
            Some([]) | None => {}
            Some(_) => {
                commit_after.insert(token);
            }
        }
    }
    commit_after
}
