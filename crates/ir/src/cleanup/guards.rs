//! One test for all guards of a loop body, except in the last iterations.
//!
//! Before, with `n - c` that stops at zero:
//!
//! ```text
//! c4 = lt.u i, n - 4; x = if c4 { load …; yield } else { yield 0 }
//! c5 = lt.u i, n - 5; y = if c5 { load …; yield } else { yield 0 }   …
//! ```
//!
//! After:
//!
//! ```text
//! all = lt.u i, n - 5
//! x, y, … = if all { load …; load …; yield } else {
//!   left = n - i
//!   c4 = lt.u 4, left; x' = if c4 { … }; c5 = lt.u 5, left; y' = if c5 { … }; yield x', y', … }
//! ```
//!
//! A ring in an unrolled loop guards each of its loads and copies. NVIDIA's GPUs have seven predicates. If more guards are
//! live, ptxas keeps the rest in registers (122 for `gather` under `unroll:16,values=rolling-async:16`, 64 with one test), and
//! loads the indices only behind the wait for the copies, so that the two latencies add up. In the last iterations the
//! remaining count is compared with constants, so that the limits need no registers.
//!
//! The cost falls on work-items in their last iterations whose neighbours are not: their sub-group takes both paths, and the
//! second path waits for the first one's loads into the same registers. On an H200 the fastest plan of eleven cases takes 0.71
//! (`pagerank`) to 1.02 times (`article`) as long with one test, but rings of few guards in loops of different lengths up to
//! 1.6 times (`results/guards-apart-h200.json`).

use std::mem;

use cranelift_entity::EntitySet;

use super::copied::Copied;
use super::saturated::Saturated;
use crate::analysis::definitions::Definitions;
use crate::ir::{BinaryOp, CompareOp, Kernel, Label, Op, OpKind, Place, Region, Type, Value};

/// The fewest guards that are worth a branch.
const FEWEST: usize = 4;

/// Gives guards that belong together one test, everywhere in the kernel.
pub(crate) fn unite(kernel: &mut Kernel) {
    let definitions = Definitions::of(kernel);
    let mut body = mem::take(&mut kernel.body);
    let mut uniter = Uniter {
        kernel,
        definitions: &definitions,
    };
    uniter.region(&mut body);
    kernel.body = body;
}

/// A guard's test. For two tests of the same kind, one implies the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TestKind {
    /// That `value` is below `end` less a number that does not change.
    Before { value: Value, end: Value, signed: bool },
    /// That `value` is below a constant.
    Below { value: Value },
    /// That a constant is below the remaining count.
    Left { left: Value },
}

#[derive(Clone, Copy)]
struct Test {
    kind: TestKind,
    /// The number or the constant.
    by: u64,
    /// The limit as it was computed.
    limit: Value,
}

impl Test {
    /// Of two tests of the same kind, the one with more holds only where the other does.
    fn strictness(self) -> u64 {
        match self.kind {
            TestKind::Before { .. } | TestKind::Left { .. } => self.by,
            TestKind::Below { .. } => !self.by,
        }
    }

    fn condition(self, kernel: &mut Kernel) -> OpKind {
        let mut constant = |like| kernel.constant(kernel.ty(like), self.by);
        let (op, a, b) = match self.kind {
            TestKind::Before { value, signed, .. } => {
                let op = if signed { CompareOp::LtS } else { CompareOp::LtU };
                (op, value, self.limit)
            }
            TestKind::Below { value } => (CompareOp::LtU, value, constant(value)),
            TestKind::Left { left } => (CompareOp::LtU, constant(left), left),
        };
        OpKind::Compare(op, a, b)
    }

    /// The operands of its condition.
    fn operands(self) -> [Value; 2] {
        match self.kind {
            TestKind::Before { value, .. } => [value, self.limit],
            TestKind::Below { value: only } | TestKind::Left { left: only } => [only, only],
        }
    }
}

/// An operation that is carried out where a test holds: an `if` with nothing else in it.
struct Guard {
    test: Test,
    op: Op,
}

/// Guards of one kind, and the pure operations between them, in order.
#[derive(Default)]
struct Group {
    ops: Vec<Op>,
    /// The tests of those that are guards.
    tests: Vec<Option<Test>>,
    /// The guards' results, and the values computed from them.
    given: EntitySet<Value>,
}

impl Group {
    /// Whether a guard can be carried out together with those that are here.
    fn takes(&self, op: &Op, test: Test) -> bool {
        let same = self.tests.iter().flatten().all(|other| other.kind == test.kind);
        same && !reads(op, &self.given)
    }

    fn push(&mut self, op: Op, test: Option<Test>) {
        if test.is_some() || reads(&op, &self.given) {
            self.given.extend(op.results.iter().copied());
        }
        self.ops.push(op);
        self.tests.push(test);
    }

    /// The guards, the operations that they need before them, and those behind.
    fn sorted(self) -> (Vec<Op>, Vec<Guard>, Vec<Op>) {
        let (mut before, mut guards, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        let mut needed: EntitySet<Value> = EntitySet::new();
        for (op, test) in self.ops.into_iter().zip(self.tests).rev() {
            let gives_needed = op.results.iter().any(|&result| needed.contains(result));
            match test {
                Some(test) => {
                    needed.extend(test.operands());
                    each_operand(&op, &mut |operand| needed.extend([operand]));
                    guards.push(Guard { test, op });
                }
                None if gives_needed => {
                    op.kind.for_each_operand(|operand| needed.extend([operand]));
                    before.push(op);
                }
                None => behind.push(op),
            }
        }
        before.reverse();
        guards.reverse();
        behind.reverse();
        (before, guards, behind)
    }
}

struct Uniter<'k> {
    kernel: &'k mut Kernel,
    definitions: &'k Definitions,
}

impl Uniter<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut ops = Vec::with_capacity(region.ops.len());
        let mut group = Group::default();
        for mut op in mem::take(&mut region.ops) {
            if let Some(test) = self.test_of(&op) {
                if !group.takes(&op, test) {
                    self.close(&mut group, &mut ops);
                }
                group.push(op, Some(test));
                continue;
            }
            if op.kind.is_pure() {
                group.push(op, None);
                continue;
            }
            self.close(&mut group, &mut ops);
            for inner in op.kind.regions_mut() {
                self.region(inner);
            }
            ops.push(op);
        }
        self.close(&mut group, &mut ops);
        region.ops = ops;
    }

    /// The test of an operation that is a guard.
    fn test_of(&self, op: &Op) -> Option<Test> {
        let OpKind::If {
            label,
            cond,
            then,
            otherwise,
        } = &op.kind
        else {
            return None;
        };
        let (last, guarded) = then.ops.split_last()?;
        let leaves = |op: &Op| matches!(op.kind, OpKind::Break(to, _) if to == *label);
        let is_access = |op: &Op| {
            use OpKind::{Copy, Load, Prefetch};
            matches!(op.kind, Load { .. } | Copy { .. } | Prefetch { .. })
        };
        let is_guard = leaves(last)
            && guarded.iter().all(is_access)
            && matches!(&otherwise.ops[..], [only] if leaves(only));
        let test = match *self.definitions.op(*cond)? {
            OpKind::Compare(op @ (CompareOp::LtU | CompareOp::LtS), a, b) => self.kind_of(op, a, b)?,
            _ => return None,
        };
        is_guard.then_some(test)
    }

    /// The consequence of `a` being below `b`.
    fn kind_of(&self, op: CompareOp, a: Value, b: Value) -> Option<Test> {
        if !self.kernel.ty(a).is_integer() {
            return None;
        }
        let constant = |value| self.kernel.as_constant(value);
        let limit = Saturated::find(self.kernel, self.definitions, b);
        let signed = op == CompareOp::LtS;
        let (kind, by) = match (constant(a), constant(b), limit) {
            // `of` minus `by` is above `more` if `of` is above both.
            (
                Some(more),
                None,
                Some(Saturated {
                    of,
                    by,
                    signed: false,
                }),
            ) if !signed => {
                let both = by?.checked_add(more)?;
                (both <= self.kernel.ty(of).mask()).then_some((TestKind::Left { left: of }, both))?
            }
            (Some(by), None, _) if !signed => (TestKind::Left { left: b }, by),
            (None, Some(by), _) if !signed => (TestKind::Below { value: a }, by),
            (None, None, Some(limit)) if limit.signed == signed => {
                let (value, end) = (a, limit.of);
                (TestKind::Before { value, end, signed }, limit.by?)
            }
            (None, None, _) => {
                let (value, end) = (a, b);
                (TestKind::Before { value, end, signed }, 0)
            }
            _ => return None,
        };
        Some(Test { kind, by, limit: b })
    }

    /// Writes the collected operations: unchanged, or with one test if there are enough guards.
    fn close(&mut self, group: &mut Group, ops: &mut Vec<Op>) {
        let group = mem::take(group);
        let tests = group.tests.iter().flatten();
        let (count, strictest) = (tests.clone().count(), tests.max_by_key(|test| test.strictness()));
        let (Some(&test), true) = (strictest, count >= FEWEST) else {
            ops.extend(group.ops);
            return;
        };
        let (before, guards, behind) = group.sorted();
        ops.extend(before);
        let place = guards[0].op.place;
        let results: Vec<Value> = guards.iter().flat_map(|guard| guard.op.results.clone()).collect();
        let types = results.iter().map(|&result| self.kernel.ty(result)).collect();
        let label = self.kernel.label(None, types);
        let condition = test.condition(self.kernel);
        let all = self.compute(condition, Type::Bool, place, ops);
        let then = self.unguarded(&guards, label, place);
        let otherwise = self.guarded(guards, test.kind, label, place);
        ops.push(Op {
            kind: OpKind::if_(label, all, then, otherwise),
            results,
            place,
        });
        ops.extend(behind);
    }

    /// The guarded operations without their guards.
    fn unguarded(&mut self, guards: &[Guard], label: Label, place: Place) -> Region {
        let mut ops = Vec::new();
        let mut results = Vec::new();
        for guard in guards {
            let OpKind::If { then, .. } = &guard.op.kind else {
                continue;
            };
            let mut copied = Copied::default();
            for op in &then.ops {
                match &op.kind {
                    OpKind::Break(_, values) => results.extend(values.iter().map(|&value| copied.of(value))),
                    _ => copied.push(self.kernel, op),
                }
            }
            ops.extend(copied.ops);
        }
        ops.push(leave(label, results, place));
        Region { ops }
    }

    /// The guards, each behind its own test; all tests are of one kind.
    fn guarded(&mut self, guards: Vec<Guard>, kind: TestKind, label: Label, place: Place) -> Region {
        let mut ops = Vec::new();
        let kind = match kind {
            TestKind::Before { value, end, signed } => {
                let ty = self.kernel.ty(value);
                let max = if signed { BinaryOp::MaxS } else { BinaryOp::MaxU };
                let later = self.compute(OpKind::Binary(max, end, value), ty, place, &mut ops);
                let left = self.compute(OpKind::Binary(BinaryOp::Sub, later, value), ty, place, &mut ops);
                TestKind::Left { left }
            }
            TestKind::Below { .. } | TestKind::Left { .. } => kind,
        };
        let mut results = Vec::new();
        for Guard { test, mut op } in guards {
            let condition = Test { kind, ..test }.condition(self.kernel);
            let holds = self.compute(condition, Type::Bool, op.place, &mut ops);
            if let OpKind::If { cond, .. } = &mut op.kind {
                *cond = holds;
            }
            for result in &mut op.results {
                *result = self.kernel.value_like(*result);
            }
            results.extend(op.results.iter().copied());
            ops.push(op);
        }
        ops.push(leave(label, results, place));
        Region { ops }
    }

    /// Appends an operation with one result.
    fn compute(&mut self, kind: OpKind, ty: Type, place: Place, ops: &mut Vec<Op>) -> Value {
        let result = self.kernel.value(ty);
        ops.push(Op::new(kind, vec![result], place));
        result
    }
}

/// Whether an operation reads one of these.
fn reads(op: &Op, values: &EntitySet<Value>) -> bool {
    let mut reads = false;
    each_operand(op, &mut |operand| reads |= values.contains(operand));
    reads
}

/// Calls `visit` on each operand of an operation and of those inside.
fn each_operand(op: &Op, visit: &mut impl FnMut(Value)) {
    op.kind.for_each_operand(&mut *visit);
    for region in op.kind.regions() {
        region.walk(&mut |op| op.kind.for_each_operand(&mut *visit));
    }
}

fn leave(label: Label, values: Vec<Value>, place: Place) -> Op {
    Op::new(OpKind::Break(label, values), Vec::new(), place)
}
