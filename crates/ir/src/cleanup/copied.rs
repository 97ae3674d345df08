//! Operations written a second time, under new names.

use std::collections::HashMap;

use crate::ir::{Kernel, Op, Value};

/// Consecutive copies of operations, and the names of their results and operands in them. The operations contain no others.
#[derive(Default)]
pub(super) struct Copied {
    /// The copies.
    pub(super) ops: Vec<Op>,
    names: HashMap<Value, Value>,
}

impl Copied {
    /// Nothing yet; the copies use `values` instead of `params`.
    pub(super) fn with(params: &[Value], values: &[Value]) -> Copied {
        Copied {
            ops: Vec::new(),
            names: params.iter().copied().zip(values.iter().copied()).collect(),
        }
    }

    /// A value's name in the copies.
    pub(super) fn of(&self, value: Value) -> Value {
        self.names.get(&value).copied().unwrap_or(value)
    }

    /// An operation in the copies; its results are those of the original.
    pub(super) fn renamed(&self, op: &Op) -> Op {
        let mut op = op.clone();
        op.kind.map_operands(|operand| self.of(operand));
        op
    }

    /// Appends a copy of an operation.
    pub(super) fn push(&mut self, kernel: &mut Kernel, op: &Op) {
        let mut copy = self.renamed(op);
        for result in &mut copy.results {
            let fresh = kernel.value_like(*result);
            self.names.insert(*result, fresh);
            *result = fresh;
        }
        self.ops.push(copy);
    }
}
