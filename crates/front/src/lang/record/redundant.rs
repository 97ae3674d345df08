//! Removes values that construction passed unnecessarily.
//!
//! ```text
//! before                                            after
//! loop 'i (%n2 = %n) { … continue %n2 }             loop 'i () { … continue }      (%n2 is %n)
//! %x2 = if %c { return } else { break %x }          if %c { return } else { break }   (%x2 is %x)
//! ```
//!
//! A loop's parameter is redundant if every way into the loop gives it one and the same value (or itself);
//! a result, if every way out gives it one value that was there before. Both become that value.

use std::collections::HashMap;

use crate::ir::{Kernel, Label, Op, OpKind, Region, Value};

/// Takes redundant parameters and results out of a kernel.
pub fn remove(kernel: &mut Kernel) {
    let body = std::mem::take(&mut kernel.body);
    let mut ways = Ways::default();
    ways.region(&body);
    let known = ways.redundant(kernel);
    let mut body = body;
    Removal {
        kernel,
        ways: &ways,
        known: &known,
    }
    .region(&mut body);
    kernel.body = body;
}

/// Where every parameter and result gets its value from.
#[derive(Default)]
struct Ways {
    /// When each value was defined, counted in operations, outer ones first.
    defined: HashMap<Value, usize>,
    joins: HashMap<Label, Join>,
    time: usize,
}

/// A block, `if` or loop.
#[derive(Default)]
struct Join {
    start: usize,
    params: Vec<Value>,
    results: Vec<Value>,
    /// The initial values and those of every `Continue`.
    entering: Vec<Vec<Value>>,
    /// Those of every `Break`.
    leaving: Vec<Vec<Value>>,
}

impl Ways {
    fn region(&mut self, region: &Region) {
        for op in &region.ops {
            self.op(op);
        }
    }

    fn op(&mut self, op: &Op) {
        self.time += 1;
        let start = self.time;
        if let Some(label) = op.kind.label() {
            let mut join = Join {
                start,
                results: op.results.clone(),
                ..Join::default()
            };
            if let OpKind::Loop { params, initial, .. } = &op.kind {
                join.params.clone_from(params);
                join.entering.push(initial.clone());
                for &param in params {
                    self.defined.insert(param, start);
                }
            }
            self.joins.insert(label, join);
        }
        for region in op.kind.regions() {
            self.region(region);
        }
        match &op.kind {
            OpKind::Break(label, values) => {
                if let Some(join) = self.joins.get_mut(label) {
                    join.leaving.push(values.clone());
                }
            }
            OpKind::Continue(label, values) => {
                if let Some(join) = self.joins.get_mut(label) {
                    join.entering.push(values.clone());
                }
            }
            _ => {}
        }
        // The results of an operation with regions are defined only after them.
        self.time += 1;
        for &result in &op.results {
            self.defined.insert(result, self.time);
        }
    }

    /// Every redundant parameter and result, with the value that it is.
    fn redundant(&self, kernel: &Kernel) -> HashMap<Value, Value> {
        let mut known = HashMap::new();
        loop {
            let before = known.len();
            for join in self.joins.values() {
                self.find(kernel, join.start, &join.params, &join.entering, &mut known);
                self.find(kernel, join.start, &join.results, &join.leaving, &mut known);
            }
            if known.len() == before {
                return known;
            }
        }
    }

    fn find(
        &self,
        kernel: &Kernel,
        start: usize,
        values: &[Value],
        ways: &[Vec<Value>],
        known: &mut HashMap<Value, Value>,
    ) {
        for (index, &value) in values.iter().enumerate() {
            if known.contains_key(&value) {
                continue;
            }
            let mut incoming = ways
                .iter()
                .map(|way| resolve(known, way[index]))
                .filter(|&other| other != value);
            let Some(first) = incoming.next() else { continue };
            let before = kernel.as_constant(first).is_some()
                || self.defined.get(&first).is_none_or(|&defined| defined < start);
            if before && incoming.all(|other| same(kernel, first, other)) {
                known.insert(value, first);
            }
        }
    }
}

/// A value's replacement, through any number of steps.
fn resolve(known: &HashMap<Value, Value>, mut value: Value) -> Value {
    while let Some(&next) = known.get(&value) {
        value = next;
    }
    value
}

fn same(kernel: &Kernel, one: Value, other: Value) -> bool {
    one == other
        || kernel
            .as_constant(one)
            .is_some_and(|bits| kernel.as_constant(other) == Some(bits))
}

struct Removal<'a> {
    kernel: &'a mut Kernel,
    ways: &'a Ways,
    known: &'a HashMap<Value, Value>,
}

impl Removal<'_> {
    fn region(&mut self, region: &mut Region) {
        for op in &mut region.ops {
            self.op(op);
        }
    }

    fn op(&mut self, op: &mut Op) {
        match &mut op.kind {
            OpKind::Break(label, values) => {
                if let Some(join) = self.ways.joins.get(label) {
                    keep(values, &self.kept(&join.results));
                }
            }
            OpKind::Continue(label, values) => {
                if let Some(join) = self.ways.joins.get(label) {
                    keep(values, &self.kept(&join.params));
                }
            }
            OpKind::Loop { params, initial, .. } => {
                let kept = self.kept(params);
                keep(params, &kept);
                keep(initial, &kept);
            }
            _ => {}
        }
        if let Some(label) = op.kind.label() {
            let kept = self.kept(&op.results);
            keep(&mut op.results, &kept);
            keep(&mut self.kernel.labels[label].results, &kept);
        }
        op.kind.map_operands(|value| resolve(self.known, value));
        for region in op.kind.regions_mut() {
            self.region(region);
        }
    }

    fn kept(&self, values: &[Value]) -> Vec<bool> {
        values
            .iter()
            .map(|value| !self.known.contains_key(value))
            .collect()
    }
}

/// Keeps the elements whose flag is set.
fn keep<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut flags = kept.iter();
    values.retain(|_| flags.next().copied().unwrap_or(true));
}
