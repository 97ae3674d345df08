//! Which parameter a pointer was derived from.
//!
//! Loop-carried pointers are followed, too: a pointer that advances each iteration still points into its first buffer. A
//! pointer has no root if it comes from memory or from an integer, has an offset computed from addresses, or may come from
//! several parameters.

use std::collections::HashMap;

use crate::analysis::definitions::Definitions;
use crate::analysis::roots::holds_address;
use crate::ir::{ConvertOp, Kernel, Label, OpKind, Value};

/// What breaks and continues pass values to, by label.
#[derive(Default)]
pub(super) struct Targets<'k> {
    /// The results of scopes.
    pub results: HashMap<Label, &'k [Value]>,
    /// The parameters of loops.
    pub params: HashMap<Label, &'k [Value]>,
}

impl Targets<'_> {
    pub(super) fn of(kernel: &Kernel) -> Targets<'_> {
        let mut targets = Targets::default();
        kernel.body.walk(&mut |op| {
            if let Some(label) = op.kind.label() {
                targets.results.insert(label, &op.results);
            }
            if let OpKind::Loop { label, params, .. } = &op.kind {
                targets.params.insert(*label, params);
            }
        });
        targets
    }
}

/// The parameter behind each pointer value that has one.
#[derive(Debug, Default)]
pub(super) struct Roots {
    roots: HashMap<Value, Value>,
    strays: bool,
}

impl Roots {
    /// The parameter's value that this pointer was derived from.
    pub(super) fn of(&self, pointer: Value) -> Option<Value> {
        self.roots.get(&pointer).copied()
    }

    /// Whether some pointer is made of numbers: of another pointer's bits, of a distance between two, or of what memory
    /// holds. It may lead into memory of which a parameter's facts say that no other pointer accesses it, and a compiler
    /// that follows where pointers come from would take those facts for more than they say.
    pub(super) fn strays(&self) -> bool {
        self.strays
    }

    /// Finds the roots of a verified kernel's pointers.
    pub(super) fn find(kernel: &Kernel) -> Roots {
        let mut sources: HashMap<Value, Vec<Value>> = HashMap::new();
        let Targets { results, params } = Targets::of(kernel);
        let mut flow = |targets: &[Value], values: &[Value]| {
            for (&target, &value) in targets.iter().zip(values) {
                if kernel.ty(target).is_pointer() {
                    sources.entry(target).or_default().push(value);
                }
            }
        };
        let definitions = Definitions::of(kernel);
        let mut strays = false;
        kernel.body.walk(&mut |op| match &op.kind {
            // An offset that is made of addresses may lead to any of them.
            OpKind::Address { index, .. } if holds_address(kernel, &definitions, *index) => {
                strays = true;
                flow(&op.results, &[*index]);
            }
            OpKind::Address { base, .. } => flow(&op.results, &[*base]),
            OpKind::Select(_, a, b) => {
                flow(&op.results, &[*a]);
                flow(&op.results, &[*b]);
            }
            OpKind::Break(label, values) => flow(results[label], values),
            OpKind::Continue(label, values) => flow(params[label], values),
            OpKind::Loop { params, initial, .. } => flow(params, initial),
            OpKind::Load { .. } | OpKind::Atomic { .. } | OpKind::Convert(ConvertOp::Bits, _) => {
                strays |= op.results.iter().any(|&made| kernel.ty(made).is_pointer());
            }
            _ => {}
        });

        // Optimistic: a value without an entry may yet have any root. `None` is certain.
        let mut roots: HashMap<Value, Option<Value>> = HashMap::new();
        for param in &kernel.params {
            roots.insert(param.value, param.facts.is_some().then_some(param.value));
        }
        loop {
            let mut changed = false;
            for (&value, from) in &sources {
                let mut root = None;
                for source in from {
                    let own = if sources.contains_key(source) {
                        let Some(&known) = roots.get(source) else { continue };
                        known
                    } else {
                        roots.get(source).copied().flatten()
                    };
                    root = match root {
                        None => Some(own),
                        Some(met) if met == own => root,
                        Some(_) => Some(None),
                    };
                }
                if let Some(root) = root {
                    changed |= roots.insert(value, root) != Some(root);
                }
            }
            if !changed {
                break;
            }
        }
        let roots = roots
            .into_iter()
            .filter_map(|(value, root)| Some((value, root?)))
            .collect();
        Roots { roots, strays }
    }
}
