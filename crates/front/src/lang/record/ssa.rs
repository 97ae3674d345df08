//! From variables to SSA, region by region.
//!
//! Before: `write x`, `if c { write x }`, `loop { read x; write x; leave }`. After: the `if` yields the values of the variables
//! that its sides assign, the loop carries those that its body assigns, and every exit passes their values at that point.
//! Redundant values (a loop parameter that never changes, a result that is the same on every path) are removed by
//! [`redundant`](super::redundant).

use std::collections::HashMap;

use super::tree::{Body, Node, TargetId, VariableData, VariableId};
use crate::ir::{Kernel, Label, Op, OpKind, Place, Region, Type, Value};

/// Turns a recorded body into the kernel's.
pub fn construct(kernel: &mut Kernel, variables: &[VariableData], body: Body) {
    let mut construction = Construction {
        kernel,
        variables,
        current: vec![None; variables.len()],
        values: HashMap::new(),
        targets: HashMap::new(),
    };
    let mut ops = Vec::new();
    if construction.nodes(body.nodes, &mut ops) {
        ops.push(terminator(OpKind::Return, Kernel::NOWHERE));
    }
    kernel.body = Region { ops };
}

struct Construction<'a> {
    kernel: &'a mut Kernel,
    variables: &'a [VariableData],
    /// The value that each variable has now; none before its first assignment.
    current: Vec<Option<Value>>,
    /// The values behind the results of reads.
    values: HashMap<Value, Value>,
    targets: HashMap<TargetId, JumpTarget>,
}

/// A block or loop around the point where construction is.
struct JumpTarget {
    label: Label,
    /// The values of `Break` and `Continue`.
    passed: Vec<VariableId>,
    /// Whether anything leaves it.
    left: bool,
}

impl Construction<'_> {
    /// Appends the nodes' operations. False if their end is never reached: then they end with a terminator.
    fn nodes(&mut self, nodes: Vec<Node>, ops: &mut Vec<Op>) -> bool {
        for node in nodes {
            if !self.node(node, ops) {
                return false;
            }
        }
        true
    }

    fn node(&mut self, node: Node, ops: &mut Vec<Op>) -> bool {
        match node {
            Node::Op(mut op) => {
                self.resolve_operands(&mut op);
                ops.push(op);
                true
            }
            Node::Read { variable, result } => {
                let value = self.value_of(variable);
                self.values.insert(result, value);
                true
            }
            Node::Write { variable, value } => {
                let value = self.resolve(value);
                self.name(value, variable);
                self.current[variable] = Some(value);
                true
            }
            Node::If {
                cond,
                then,
                otherwise,
                place,
            } => self.conditional(cond, then, otherwise, place, ops),
            Node::Block { target, body, place } => self.block(target, body, place, ops),
            Node::Loop {
                target,
                body,
                place,
                name,
                wishes,
            } => {
                let passed: Vec<VariableId> = body.assigned.iter().copied().collect();
                let initial = self.values_of(&passed);
                let types = self.types_of(&passed);
                let label = self.kernel.label(name, types);
                let params = self.fresh(&passed);
                self.targets.insert(
                    target,
                    JumpTarget {
                        label,
                        passed: passed.clone(),
                        left: false,
                    },
                );
                let mut inner = Vec::new();
                if self.nodes(body.nodes, &mut inner) {
                    let values = self.values_of(&passed);
                    inner.push(terminator(OpKind::Continue(label, values), place));
                }
                let body = Region { ops: inner };
                let left = self.left(target);
                let results = self.fresh(&passed);
                let kind = OpKind::Loop {
                    label,
                    params,
                    initial,
                    body,
                    wishes,
                };
                self.finish(kind, results, place, left, ops)
            }
            Node::Leave { target, place } => {
                let Some(JumpTarget { label, passed, left }) = self.targets.get_mut(&target) else {
                    return true;
                };
                *left = true;
                let (label, passed) = (*label, passed.clone());
                let values = self.values_of(&passed);
                ops.push(terminator(OpKind::Break(label, values), place));
                false
            }
            Node::Next { target, place } => {
                let Some(JumpTarget { label, passed, .. }) = self.targets.get(&target) else {
                    return true;
                };
                let (label, passed) = (*label, passed.clone());
                let values = self.values_of(&passed);
                ops.push(terminator(OpKind::Continue(label, values), place));
                false
            }
            Node::Return { place } => {
                ops.push(terminator(OpKind::Return, place));
                false
            }
        }
    }

    fn conditional(
        &mut self,
        cond: Value,
        then: Body,
        otherwise: Body,
        place: Place,
        ops: &mut Vec<Op>,
    ) -> bool {
        let cond = self.resolve(cond);
        // A condition that is known now decides now: const generics select code.
        if let Some(bits) = self.kernel.as_constant(cond) {
            return self.nodes(if bits == 0 { otherwise.nodes } else { then.nodes }, ops);
        }
        let assigned: Vec<VariableId> = then.assigned.union(&otherwise.assigned).copied().collect();
        let before = self.current.clone();
        let side = |construction: &mut Self, body: Body| {
            construction.current.clone_from(&before);
            let mut ops = Vec::new();
            let completes = construction.nodes(body.nodes, &mut ops);
            let after: Vec<Option<Value>> = assigned
                .iter()
                .map(|&variable| construction.current[variable])
                .collect();
            (ops, completes.then_some(after))
        };
        let (mut then, then_after) = side(self, then);
        let (mut otherwise, otherwise_after) = side(self, otherwise);
        self.current = before;
        // A variable that every completed side leaves unchanged need not be passed.
        let changed: Vec<usize> = (0..assigned.len())
            .filter(|&index| {
                let same = |after: &Option<Vec<Option<Value>>>| {
                    after
                        .as_ref()
                        .is_none_or(|after| after[index] == self.current[assigned[index]])
                };
                !(same(&then_after) && same(&otherwise_after))
            })
            .collect();
        let variables: Vec<VariableId> = changed.iter().map(|&index| assigned[index]).collect();
        let types = self.types_of(&variables);
        let label = self.kernel.label(None, types);
        for (ops, after) in [(&mut then, &then_after), (&mut otherwise, &otherwise_after)] {
            if let Some(after) = after {
                let values = changed
                    .iter()
                    .map(|&index| after[index].unwrap_or_else(|| self.nothing(assigned[index])))
                    .collect();
                ops.push(terminator(OpKind::Break(label, values), place));
            }
        }
        let completes = then_after.is_some() || otherwise_after.is_some();
        let results = self.fresh(&variables);
        let kind = OpKind::If {
            label,
            cond,
            then: Region { ops: then },
            otherwise: Region { ops: otherwise },
        };
        self.finish(kind, results, place, completes, ops)
    }

    fn block(&mut self, target: TargetId, mut body: Body, place: Place, ops: &mut Vec<Op>) -> bool {
        // A function whose only `return` is its last word needs no block.
        if matches!(body.nodes.last(), Some(Node::Leave { target: last, .. }) if *last == target) {
            body.nodes.pop();
        }
        if !leaves(&body.nodes, target) {
            return self.nodes(body.nodes, ops);
        }
        let passed: Vec<VariableId> = body.assigned.iter().copied().collect();
        let types = self.types_of(&passed);
        let label = self.kernel.label(None, types);
        self.targets.insert(
            target,
            JumpTarget {
                label,
                passed: passed.clone(),
                left: false,
            },
        );
        let mut inner = Vec::new();
        let completes = self.nodes(body.nodes, &mut inner);
        if completes {
            let values = self.values_of(&passed);
            inner.push(terminator(OpKind::Break(label, values), place));
        }
        let left = self.left(target) || completes;
        let results = self.fresh(&passed);
        self.finish(
            OpKind::Block {
                label,
                body: Region { ops: inner },
            },
            results,
            place,
            left,
            ops,
        )
    }

    /// Appends an operation with regions. If no path leaves it, the end of the enclosing region is not reached either, but the
    /// region still needs a terminator.
    fn finish(
        &mut self,
        kind: OpKind,
        results: Vec<Value>,
        place: Place,
        completes: bool,
        ops: &mut Vec<Op>,
    ) -> bool {
        ops.push(Op { kind, results, place });
        if !completes {
            ops.push(terminator(OpKind::Return, place));
        }
        completes
    }

    fn left(&mut self, target: TargetId) -> bool {
        self.targets.remove(&target).is_some_and(|target| target.left)
    }

    /// New values for variables, which have them from now on.
    fn fresh(&mut self, variables: &[VariableId]) -> Vec<Value> {
        variables
            .iter()
            .map(|&variable| {
                let value = self.kernel.value(self.variables[variable].ty);
                self.name(value, variable);
                self.current[variable] = Some(value);
                value
            })
            .collect()
    }

    fn name(&mut self, value: Value, variable: VariableId) {
        let data = &mut self.kernel.values[value];
        if data.name.is_none() && data.constant.is_none() {
            data.name.clone_from(&self.variables[variable].name);
        }
    }

    fn types_of(&self, variables: &[VariableId]) -> Vec<Type> {
        variables
            .iter()
            .map(|&variable| self.variables[variable].ty)
            .collect()
    }

    fn values_of(&mut self, variables: &[VariableId]) -> Vec<Value> {
        variables
            .iter()
            .map(|&variable| self.value_of(variable))
            .collect()
    }

    fn value_of(&mut self, variable: VariableId) -> Value {
        match self.current[variable] {
            Some(value) => value,
            None => self.nothing(variable),
        }
    }

    /// The value of a variable that has none on this path. Rust has checked that it is not read.
    fn nothing(&mut self, variable: VariableId) -> Value {
        self.kernel.constant(self.variables[variable].ty, 0)
    }

    fn resolve(&self, value: Value) -> Value {
        self.values.get(&value).copied().unwrap_or(value)
    }

    fn resolve_operands(&self, op: &mut Op) {
        op.kind.map_operands(|value| self.resolve(value));
        for region in op.kind.regions_mut() {
            for op in &mut region.ops {
                self.resolve_operands(op);
            }
        }
    }
}

fn terminator(kind: OpKind, place: Place) -> Op {
    Op::new(kind, Vec::new(), place)
}

fn leaves(nodes: &[Node], target: TargetId) -> bool {
    nodes.iter().any(|node| match node {
        Node::Leave { target: left, .. } => *left == target,
        Node::If { then, otherwise, .. } => leaves(&then.nodes, target) || leaves(&otherwise.nodes, target),
        Node::Block { body, .. } | Node::Loop { body, .. } => leaves(&body.nodes, target),
        _ => false,
    })
}
