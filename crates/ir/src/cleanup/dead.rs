//! Dead code elimination.
//!
//! Before: operations, `if`s without effect, loop parameters and results that nothing needs, or that only need each other.
//! After: none of them. Operations with an effect stay: stores, copies, waits, hints, barriers, jumps, and loops, which may not
//! end.
//!
//! A loop parameter that every iteration passes on unchanged is replaced by its initial value.

use std::mem;

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};

use crate::ir::{Kernel, Label, OpClass, OpKind, Region, Value};

/// Removes unused operations in the whole kernel.
pub(super) fn remove(kernel: &mut Kernel) {
    let mut body = mem::take(&mut kernel.body);
    forward_invariants(&mut body);
    let mut effects = EntitySet::new();
    find_effects(&body, None, &mut effects);
    let used = used(&body, &effects, |label| kernel.is_edge(label));
    let mut kept = SecondaryMap::new();
    collect(&body, &used, &mut kept);
    sweep(&mut body, &used, &effects, &kept);
    for (label, kept) in kept.iter() {
        if let Some(keep) = &kept.results {
            retain(&mut kernel.labels[label].results, keep);
        }
    }
    kernel.body = body;
}

/// Uses of parameters that never change become uses of their initial values.
fn forward_invariants(body: &mut Region) {
    let mut changes: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut params: SecondaryMap<Label, Vec<Value>> = SecondaryMap::new();
    let mut initials: SecondaryMap<Value, PackedOption<Value>> = SecondaryMap::new();
    body.walk(&mut |op| match &op.kind {
        OpKind::Loop {
            label,
            params: own,
            initial,
            ..
        } => {
            params[*label] = own.clone();
            for (&param, &initial) in own.iter().zip(initial) {
                initials[param] = initial.into();
            }
        }
        OpKind::Continue(label, values) => {
            for (&param, &value) in params[*label].iter().zip(values) {
                changes[param] |= param != value;
            }
        }
        _ => {}
    });
    let replacement = |mut value: Value| {
        while let Some(initial) = initials[value].expand()
            && !changes[value]
        {
            value = initial;
        }
        value
    };
    body.walk_mut(&mut |op| op.kind.map_operands(replacement));
}

/// Finds the `if`s that do more than compute their results; says whether a region of the `if` labelled `own` does.
fn find_effects(region: &Region, own: Option<Label>, effects: &mut EntitySet<Label>) -> bool {
    let mut any = false;
    for op in &region.ops {
        any |= match &op.kind {
            OpKind::If {
                label,
                then,
                otherwise,
                ..
            } => {
                // Both sides are visited, whatever the first one contains.
                let sides = [then, otherwise].map(|side| find_effects(side, Some(*label), effects));
                let has_effect = sides.contains(&true);
                if has_effect {
                    effects.insert(*label);
                }
                has_effect
            }
            OpKind::Break(label, _) => own != Some(*label),
            kind => {
                for inner in kind.regions() {
                    find_effects(inner, None, effects);
                }
                !is_removable(kind)
            }
        };
    }
    any
}

/// The values that something with an effect needs, directly or not.
fn used(body: &Region, effects: &EntitySet<Label>, is_edge: impl Fn(Label) -> bool) -> EntitySet<Value> {
    // The definition of each value: operands, or the values passed to it.
    let mut sources: SecondaryMap<Value, Vec<Value>> = SecondaryMap::new();
    let mut params: SecondaryMap<Label, Vec<Value>> = SecondaryMap::new();
    let mut results: SecondaryMap<Label, Vec<Value>> = SecondaryMap::new();
    let mut work: Vec<Value> = Vec::new();
    body.walk(&mut |op| {
        if let Some(label) = op.kind.label() {
            results[label] = op.results.clone();
            if is_edge(label) {
                work.extend(&op.results);
            }
        }
        match &op.kind {
            OpKind::Loop {
                label,
                params: own,
                initial,
                ..
            } => {
                pass(own, initial, &mut sources);
                params[*label] = own.clone();
            }
            OpKind::Break(label, values) => pass(&results[*label], values, &mut sources),
            OpKind::Continue(label, values) => pass(&params[*label], values, &mut sources),
            // Which way it goes matters only to its results.
            OpKind::If { label, cond, .. } if !effects.contains(*label) => {
                for &result in &op.results {
                    sources[result].push(*cond);
                }
            }
            kind if is_removable(kind) => {
                for &result in &op.results {
                    kind.for_each_operand(|operand| sources[result].push(operand));
                }
            }
            kind => kind.for_each_operand(|operand| work.push(operand)),
        }
    });
    let mut used = EntitySet::new();
    while let Some(value) = work.pop() {
        if used.insert(value) {
            work.extend(sources[value].iter().copied());
        }
    }
    used
}

/// Each second value becomes a source of the first.
fn pass(to: &[Value], from: &[Value], sources: &mut SecondaryMap<Value, Vec<Value>>) {
    for (&to, &from) in to.iter().zip(from) {
        sources[to].push(from);
    }
}

/// May go if its results are unused. A plain load may: it has no effect but its value.
fn is_removable(kind: &OpKind) -> bool {
    matches!(kind.class(), OpClass::Pure | OpClass::Effect) && kind.effects().is_removable()
}

/// Which of a label's results and parameters stay.
#[derive(Clone, Default)]
struct Kept {
    results: Option<Vec<bool>>,
    params: Option<Vec<bool>>,
}

fn collect(body: &Region, used: &EntitySet<Value>, kept: &mut SecondaryMap<Label, Kept>) {
    let keep = |values: &[Value]| values.iter().map(|&value| used.contains(value)).collect();
    body.walk(&mut |op| {
        if let Some(label) = op.kind.label() {
            kept[label].results = Some(keep(&op.results));
        }
        if let OpKind::Loop { label, params, .. } = &op.kind {
            kept[*label].params = Some(keep(params));
        }
    });
}

fn sweep(
    region: &mut Region,
    used: &EntitySet<Value>,
    effects: &EntitySet<Label>,
    kept: &SecondaryMap<Label, Kept>,
) {
    region.ops.retain(|op| {
        let removable = match &op.kind {
            OpKind::If { label, .. } => !effects.contains(*label),
            kind => is_removable(kind),
        };
        !removable || op.results.iter().any(|&result| used.contains(result))
    });
    for op in &mut region.ops {
        if let Some(label) = op.kind.label()
            && let Some(keep) = &kept[label].results
        {
            retain(&mut op.results, keep);
        }
        match &mut op.kind {
            OpKind::Loop {
                label,
                params,
                initial,
                ..
            } => {
                if let Some(keep) = &kept[*label].params {
                    retain(params, keep);
                    retain(initial, keep);
                }
            }
            OpKind::Break(label, values) => {
                if let Some(keep) = &kept[*label].results {
                    retain(values, keep);
                }
            }
            OpKind::Continue(label, values) => {
                if let Some(keep) = &kept[*label].params {
                    retain(values, keep);
                }
            }
            _ => {}
        }
        for inner in op.kind.regions_mut() {
            sweep(inner, used, effects, kept);
        }
    }
}

fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    items.retain(|_| keep.next().copied().unwrap_or(true));
}
