//! Removes operations without effect whose results nobody uses, and loop parameters that only feed
//! themselves.

use std::collections::HashSet;

use crate::ir::{Kernel, Label, Op, OpKind, Region, Value};

/// Removes what is dead in a whole kernel.
pub(super) fn remove(kernel: &mut Kernel) {
    let live = Liveness::of(kernel);
    let mut body = std::mem::take(&mut kernel.body);
    sweep(&mut body, &live);
    for (label, kept) in kept_results(&live, &body) {
        let old = &kernel.labels[label].results;
        kernel.labels[label].results = old
            .iter()
            .zip(&kept)
            .filter(|(_, keep)| **keep)
            .map(|(ty, _)| *ty)
            .collect();
    }
    drop_results(&mut body, &live);
    kernel.body = body;
}

/// Which values matter, by following uses back from what has an effect.
struct Liveness {
    live: HashSet<Value>,
}

impl Liveness {
    fn of(kernel: &Kernel) -> Liveness {
        let mut feeds = Feeds::default();
        feeds.region(&kernel.body);
        let mut live = HashSet::new();
        let mut work = feeds.roots;
        while let Some(value) = work.pop() {
            if live.insert(value) {
                work.extend(feeds.of.get(&value).into_iter().flatten());
            }
        }
        Liveness { live }
    }

    fn has(&self, value: Value) -> bool {
        self.live.contains(&value)
    }
}

/// For each value, the values it is made from; and the values that effects need.
#[derive(Default)]
struct Feeds {
    of: std::collections::HashMap<Value, Vec<Value>>,
    roots: Vec<Value>,
    targets: Vec<(Label, Vec<Value>, Vec<Value>)>,
}

impl Feeds {
    fn region(&mut self, region: &Region) {
        for op in &region.ops {
            self.op(op);
        }
    }

    fn op(&mut self, op: &Op) {
        match &op.kind {
            OpKind::Break(label, values) => {
                let found = self.targets.iter().rev().find(|(target, ..)| target == label);
                if let Some((_, results, _)) = found {
                    let pairs: Vec<_> = results.iter().copied().zip(values.iter().copied()).collect();
                    self.feed(pairs);
                }
            }
            OpKind::Continue(label, values) => {
                let found = self.targets.iter().rev().find(|(target, ..)| target == label);
                if let Some((.., params)) = found {
                    let pairs: Vec<_> = params.iter().copied().zip(values.iter().copied()).collect();
                    self.feed(pairs);
                }
            }
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => {
                // Which way it goes matters only if something inside does; that is not worth finding out
                // here: an `if` without effects and used results goes as a whole, below.
                if has_effect(op) {
                    self.roots.push(*cond);
                } else {
                    self.feed(op.results.iter().map(|&result| (result, *cond)).collect());
                }
                self.targets.push((*label, op.results.clone(), Vec::new()));
                self.region(then);
                self.region(otherwise);
                self.targets.pop();
            }
            OpKind::Block { label, body } => {
                self.targets.push((*label, op.results.clone(), Vec::new()));
                self.region(body);
                self.targets.pop();
            }
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                ..
            } => {
                self.feed(params.iter().copied().zip(initial.iter().copied()).collect());
                self.targets.push((*label, op.results.clone(), params.clone()));
                self.region(body);
                self.targets.pop();
            }
            kind if removable(kind) => {
                let mut operands = Vec::new();
                kind.for_each_operand(|value| operands.push(value));
                for &result in &op.results {
                    self.of.entry(result).or_default().extend(&operands);
                }
            }
            kind => kind.for_each_operand(|value| self.roots.push(value)),
        }
    }

    fn feed(&mut self, pairs: Vec<(Value, Value)>) {
        for (to, from) in pairs {
            self.of.entry(to).or_default().push(from);
        }
    }
}

/// May go if its results are unused. A plain load may: it has no effect but its value.
fn removable(kind: &OpKind) -> bool {
    use crate::ir::CacheUse;
    kind.is_pure()
        || matches!(kind, OpKind::Join(_))
        || matches!(kind, OpKind::Load { cache, .. } if *cache != CacheUse::Volatile)
}

/// Whether an operation does more than compute its results. Loops may not end, and leaving is an effect.
fn has_effect(op: &Op) -> bool {
    match &op.kind {
        OpKind::If {
            label,
            then,
            otherwise,
            ..
        } => {
            let own = |region: &Region| {
                region.ops.iter().any(|inner| {
                    !matches!(&inner.kind, OpKind::Break(target, _) if target == label) && has_effect(inner)
                })
            };
            own(then) || own(otherwise)
        }
        kind => !removable(kind),
    }
}

/// Removes dead operations and loop parameters.
fn sweep(region: &mut Region, live: &Liveness) {
    region.ops.retain(|op| {
        let unused = op.results.iter().all(|&result| !live.has(result));
        !(unused && !op.kind.is_terminator() && !has_effect(op))
    });
    for op in &mut region.ops {
        if let OpKind::Loop {
            label,
            params,
            initial,
            body,
            ..
        } = &mut op.kind
        {
            let kept: Vec<bool> = params.iter().map(|&param| live.has(param)).collect();
            if kept.contains(&false) {
                keep(params, &kept);
                keep(initial, &kept);
                let label = *label;
                body.walk_mut(&mut |inner| match &mut inner.kind {
                    OpKind::Continue(target, values) if *target == label => keep(values, &kept),
                    _ => {}
                });
            }
        }
        for inner in op.kind.regions_mut() {
            sweep(inner, live);
        }
    }
}

/// Which results of which labels stay.
fn kept_results(live: &Liveness, body: &Region) -> Vec<(Label, Vec<bool>)> {
    let mut kept = Vec::new();
    body.walk(&mut |op| {
        if let Some(label) = op.kind.label() {
            kept.push((label, op.results.iter().map(|&result| live.has(result)).collect()));
        }
    });
    kept
}

/// Removes dead results of blocks, `if`s and loops, and what breaks pass for them.
fn drop_results(region: &mut Region, live: &Liveness) {
    for op in &mut region.ops {
        if let Some(label) = op.kind.label() {
            let kept: Vec<bool> = op.results.iter().map(|&result| live.has(result)).collect();
            if kept.contains(&false) {
                keep(&mut op.results, &kept);
                for inner in op.kind.regions_mut() {
                    inner.walk_mut(&mut |op| match &mut op.kind {
                        OpKind::Break(target, values) if *target == label => keep(values, &kept),
                        _ => {}
                    });
                }
            }
        }
        for inner in op.kind.regions_mut() {
            drop_results(inner, live);
        }
    }
}

/// Keeps the elements whose flag is set.
fn keep(values: &mut Vec<Value>, kept: &[bool]) {
    let mut flags = kept.iter();
    values.retain(|_| flags.next().copied().unwrap_or(true));
}
