//! Loop rotation: a test at the top becomes one test before the loop and one at the bottom.
//!
//! Before: `loop p = a { test(p); if done { break } …; continue n }`
//! After:  `test(a); if done { } else { loop p = a { …; test(n); if done { break }; continue n } }`
//!
//! A wait on leaving the loop is done on both exits. An iteration has one jump instead of two, and the test can be scheduled
//! among the body's work. Values that the test computes and the body needs are carried as parameters.

use std::mem;

use super::copied::Copied;
use crate::ir::{Kernel, Label, Op, OpKind, Place, Region, Value};

/// The most operations that a test may have: they are written twice.
const LONGEST_TEST: usize = 24;

/// Rotates every loop of the kernel that can be.
pub(crate) fn rotate(kernel: &mut Kernel) {
    let mut body = mem::take(&mut kernel.body);
    region(kernel, &mut body);
    kernel.body = body;
}

fn region(kernel: &mut Kernel, region_: &mut Region) {
    let mut ops = Vec::with_capacity(region_.ops.len());
    for mut op in mem::take(&mut region_.ops) {
        for inner in op.kind.regions_mut() {
            region(kernel, inner);
        }
        match &op.kind {
            OpKind::Loop { label, body, .. } => match find_test(*label, body) {
                Some(test) => rotated(kernel, op, &test, &mut ops),
                None => ops.push(op),
            },
            _ => ops.push(op),
        }
    }
    region_.ops = ops;
}

/// The test at the top of a loop.
struct Test {
    /// How many operations compute it.
    length: usize,
    /// The condition.
    cond: Value,
    /// Whether the loop is left where the condition holds.
    exits_if: bool,
    /// The tokens awaited on leaving.
    waits: Vec<Op>,
    /// The values passed on leaving.
    results: Vec<Value>,
    /// Whether the rest of the body is the other region of the test's `if`.
    nested: bool,
    /// The values passed to the next iteration.
    next: Vec<Value>,
}

fn find_test(label: Label, body: &Region) -> Option<Test> {
    let length = body.ops.iter().position(|op| !op.kind.is_pure())?;
    let OpKind::If {
        label: own,
        cond,
        then,
        otherwise,
    } = &body.ops[length].kind
    else {
        return None;
    };
    if length > LONGEST_TEST || !body.ops[length].results.is_empty() {
        return None;
    }
    let (exits_if, (waits, results), other) = match (exit(label, then), exit(label, otherwise)) {
        (Some(exit), None) => (true, exit, otherwise),
        (None, Some(exit)) => (false, exit, then),
        _ => return None,
    };
    let nested = only_break(*own, other).is_none();
    if nested && other.breaks_to(*own) {
        return None;
    }
    let continues = body.continues(label);
    let last = if nested {
        other.terminator()?
    } else {
        body.terminator()?
    };
    match &last.kind {
        OpKind::Continue(to, next) if *to == label && continues == 1 => Some(Test {
            length,
            cond: *cond,
            exits_if,
            waits,
            results,
            nested,
            next: next.clone(),
        }),
        _ => None,
    }
}

/// The waits in front of a region's `Break` to `label`, and its values, if they are all of it.
fn exit(label: Label, region: &Region) -> Option<(Vec<Op>, Vec<Value>)> {
    let (last, waits) = region.ops.split_last()?;
    match &last.kind {
        OpKind::Break(to, values)
            if *to == label && waits.iter().all(|op| matches!(op.kind, OpKind::Wait(_))) =>
        {
            Some((waits.to_vec(), values.clone()))
        }
        _ => None,
    }
}

/// The values of the `Break` to `label` that is all of a region.
fn only_break(label: Label, region: &Region) -> Option<Vec<Value>> {
    match &region.ops[..] {
        [
            Op {
                kind: OpKind::Break(to, values),
                ..
            },
        ] if *to == label => Some(values.clone()),
        _ => None,
    }
}

fn rotated(kernel: &mut Kernel, op: Op, test: &Test, outside: &mut Vec<Op>) {
    let Op { kind, results, place } = op;
    let OpKind::Loop {
        label,
        mut params,
        mut initial,
        body,
        wishes,
    } = kind
    else {
        return;
    };
    let mut ops = body.ops;
    let mut rest = ops.split_off(test.length + 1);
    let test_place = ops[test.length].place;
    if test.nested
        && let Some(Op {
            kind: OpKind::If { then, otherwise, .. },
            ..
        }) = ops.pop()
    {
        rest = if test.exits_if { otherwise.ops } else { then.ops };
    }
    ops.truncate(test.length);
    rest.pop(); // The `Continue`.

    // The test in front and the test at the bottom.
    let first = copy(kernel, &ops, &params, &initial);
    let again = copy(kernel, &ops, &params, &test.next);

    // The values of the test that the body needs: carried along, or computed again if that is cheaper.
    let mut next = test.next.clone();
    let mut recomputed = Vec::new();
    for op in ops {
        if matches!(
            op.kind,
            OpKind::Convert(..) | OpKind::ArrayAddress(_) | OpKind::Id(_)
        ) {
            recomputed.push(op);
            continue;
        }
        for result in op.results {
            params.push(result);
            initial.push(first.of(result));
            next.push(again.of(result));
        }
    }

    let leave = |kernel: &mut Kernel, copied: &Copied| {
        let own = kernel.label(None, Vec::new());
        let cond = copied.of(test.cond);
        let exit = leaving(copied, test, label, test_place);
        let stay = jump(OpKind::Break(own, Vec::new()), test_place);
        let (then, otherwise) = if test.exits_if { (exit, stay) } else { (stay, exit) };
        Op {
            kind: OpKind::if_(own, cond, then, otherwise),
            results: Vec::new(),
            place: test_place,
        }
    };
    let mut body_ops = recomputed;
    body_ops.append(&mut rest);
    body_ops.extend(again.ops.iter().cloned());
    body_ops.push(leave(kernel, &again));
    body_ops.push(Op::new(OpKind::Continue(label, next), Vec::new(), place));
    let loop_results: Vec<Value> = results.iter().map(|&result| kernel.value_like(result)).collect();
    let body = Region { ops: body_ops };
    let rotated_loop = Op {
        kind: OpKind::Loop {
            label,
            params,
            initial,
            body,
            wishes,
        },
        results: loop_results.clone(),
        place,
    };

    // The test in front decides whether the loop runs at all.
    let types = kernel.labels[label].results.clone();
    let guard = kernel.label(None, types);
    let skip = leaving(&first, test, guard, place);
    let run = Region {
        ops: vec![
            rotated_loop,
            Op::new(OpKind::Break(guard, loop_results), Vec::new(), place),
        ],
    };
    let cond = first.of(test.cond);
    let (then, otherwise) = if test.exits_if { (skip, run) } else { (run, skip) };
    outside.extend(first.ops);
    outside.push(Op {
        kind: OpKind::if_(guard, cond, then, otherwise),
        results,
        place,
    });
}

fn jump(kind: OpKind, place: Place) -> Region {
    Region {
        ops: vec![Op::new(kind, Vec::new(), place)],
    }
}

/// The region that leaves by a break to `label`, with the copied operations of the test.
fn leaving(copied: &Copied, test: &Test, label: Label, place: Place) -> Region {
    let mut ops: Vec<Op> = test.waits.iter().map(|wait| copied.renamed(wait)).collect();
    let results = test.results.iter().map(|&value| copied.of(value)).collect();
    ops.extend(jump(OpKind::Break(label, results), place).ops);
    Region { ops }
}

/// Pure operations with other values for a loop's parameters.
fn copy(kernel: &mut Kernel, ops: &[Op], params: &[Value], values: &[Value]) -> Copied {
    let mut copied = Copied::with(params, values);
    for op in ops {
        copied.push(kernel, op);
    }
    copied
}
