//! Copying operations with their regions, and replacing terminators.

use std::collections::{HashMap, HashSet};

use super::kernel::{Kernel, Label, Region, Value};
use super::op::{Op, OpKind};

/// Copies operations: their definitions and labels become new; values defined elsewhere stay, unless they are mapped.
#[derive(Clone, Debug, Default)]
pub struct Copier {
    values: HashMap<Value, Value>,
    labels: HashMap<Label, Label>,
    left_out: HashSet<Value>,
}

impl Copier {
    /// Uses of `from` become uses of `to`.
    pub fn map(&mut self, from: Value, to: Value) {
        self.values.insert(from, to);
    }

    /// The operation that defines `result` is not copied; its results must be mapped.
    pub fn leave_out(&mut self, result: Value) {
        self.left_out.insert(result);
    }

    /// A value's copy.
    pub(crate) fn value(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }

    /// Copies operations in order.
    pub fn ops(&mut self, kernel: &mut Kernel, ops: &[Op]) -> Vec<Op> {
        let kept = ops
            .iter()
            .filter(|op| !op.results.first().is_some_and(|r| self.left_out.contains(r)));
        let kept: Vec<&Op> = kept.collect();
        kept.into_iter().map(|op| self.op(kernel, op)).collect()
    }

    /// Copies one operation.
    pub fn op(&mut self, kernel: &mut Kernel, op: &Op) -> Op {
        let mut kind = op.kind.without_regions();
        kind.map_operands(|value| self.value(value));
        match (&mut kind, &op.kind) {
            (OpKind::Block { label, body }, OpKind::Block { body: old, .. }) => {
                *label = self.label(kernel, *label);
                *body = self.region(kernel, old);
            }
            (
                OpKind::If {
                    label,
                    then,
                    otherwise,
                    ..
                },
                OpKind::If {
                    then: old_then,
                    otherwise: old_otherwise,
                    ..
                },
            ) => {
                *label = self.label(kernel, *label);
                *then = self.region(kernel, old_then);
                *otherwise = self.region(kernel, old_otherwise);
            }
            (
                OpKind::Loop {
                    label, params, body, ..
                },
                OpKind::Loop { body: old, .. },
            ) => {
                *label = self.label(kernel, *label);
                for param in params.iter_mut() {
                    *param = self.fresh(kernel, *param);
                }
                *body = self.region(kernel, old);
            }
            (OpKind::Break(label, _) | OpKind::Continue(label, _), _) => {
                *label = self.labels.get(label).copied().unwrap_or(*label);
            }
            _ => {}
        }
        let results = op
            .results
            .iter()
            .map(|&result| self.fresh(kernel, result))
            .collect();
        Op::new(kind, results, op.place)
    }

    /// Copies a region.
    pub(crate) fn region(&mut self, kernel: &mut Kernel, region: &Region) -> Region {
        Region {
            ops: self.ops(kernel, &region.ops),
        }
    }

    fn fresh(&mut self, kernel: &mut Kernel, old: Value) -> Value {
        let new = kernel.value_like(old);
        self.values.insert(old, new);
        new
    }

    fn label(&mut self, kernel: &mut Kernel, old: Label) -> Label {
        let data = kernel.labels[old].clone();
        let new = kernel.labels.push(data);
        self.labels.insert(old, new);
        new
    }
}

/// Exchanges terminators anywhere in `ops`: where `exchange` gives operations, they take its place.
pub fn exchange_terminators(ops: &mut Vec<Op>, exchange: &mut impl FnMut(&Op) -> Option<Vec<Op>>) {
    for op in ops.iter_mut() {
        for region in op.kind.regions_mut() {
            exchange_terminators(&mut region.ops, exchange);
        }
    }
    if let Some(new) = ops.last().filter(|op| op.kind.is_terminator()).and_then(exchange) {
        ops.pop();
        ops.extend(new);
    }
}
