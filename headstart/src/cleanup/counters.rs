//! Counters that are only compared become 32-bit counts of iterations.
//!
//! Before: `loop (%i = %a) { …; %n = add %i, 128; %g = lt.u %n, %b; if %g { } else { break }; continue %n }`,
//! with 64-bit values.
//! After: `%t = max(0, ⌈(%b − %a) ÷ 128⌉)` in front, in 64 bits, then in 32:
//! `loop (%c = 0) { …; %n = add %c, 1; %g = lt.u %n, %t; … }`.
//!
//! A GPU adds and compares 32 bits at a time. Where addresses have become pointers, a 64-bit counter of the source
//! is left with the loop's test and the guards of early loads: four instructions and a register more than they need.
//!
//! May assume reduced addresses. Does nothing where the bounds are not known to be
//! near enough: a bound of 64 unknown bits stays one.

use std::mem;

use cranelift_entity::EntitySet;

use super::hoist::defined;
use super::rotate::exit;
use crate::analysis::definitions::Definitions;
use crate::analysis::ranges::{Range, range};
use crate::ir::{
    BinaryOp, CompareOp, ConvertOp, Kernel, Label, NoWrapOp, Op, OpKind, Place, Region, Type, Value, Wrap,
};

/// Bounds and starts up to here neither wrap nor have a sign, whatever 32-bit step is added to them.
const FAR: u64 = 1 << 62;

/// Narrows every counter of the kernel that can be.
pub fn narrow(kernel: &mut Kernel) {
    let definitions = Definitions::of(kernel);
    let mut body = mem::take(&mut kernel.body);
    region(kernel, &definitions, &mut body);
    kernel.body = body;
}

fn region(kernel: &mut Kernel, definitions: &Definitions, region_: &mut Region) {
    let mut ops = Vec::with_capacity(region_.ops.len());
    for mut op in mem::take(&mut region_.ops) {
        for inner in op.kind.regions_mut() {
            region(kernel, definitions, inner);
        }
        if let OpKind::Loop { params, .. } = &op.kind {
            for index in 0..params.len() {
                if let Some(counter) = Counter::find(kernel, definitions, &op, index) {
                    counter.narrow(kernel, definitions, &mut op, &mut ops);
                }
            }
        }
        ops.push(op);
    }
    region_.ops = ops;
}

/// A parameter of a loop that grows by a constant and is only compared.
struct Counter {
    index: usize,
    param: Value,
    /// The parameter plus the step.
    next: Value,
    initial: Value,
    step: u64,
}

/// A comparison of a counter with a bound.
struct Test {
    /// The counter's next value is compared.
    next: bool,
    bound: Value,
    /// The counter is on the left.
    left: bool,
    /// Equality satisfies it.
    or_equal: bool,
}

impl Test {
    /// What has to be added to the bound for a strict comparison with the counter on the left, which may be negated.
    fn slack(&self) -> u64 {
        u64::from(self.left == self.or_equal)
    }
}

impl Counter {
    fn find(kernel: &Kernel, definitions: &Definitions, op: &Op, index: usize) -> Option<Counter> {
        let OpKind::Loop {
            label,
            params,
            initial,
            body,
            ..
        } = &op.kind
        else {
            return None;
        };
        let param = params[index];
        if kernel.ty(param) != Type::I64 {
            return None;
        }
        let next = only_next(body, *label, index)?;
        let step = step(kernel, body, param, next)?;
        let counter = Counter {
            index,
            param,
            next,
            initial: initial[index],
            step,
        };
        let inside = defined(params, body);
        let tests = counter.tests(body, *label, &inside)?;
        let ends = counter.ends(body, *label, &inside)?;
        let start = range(kernel, definitions, counter.initial);
        let fits = tests.iter().chain([&ends]).all(|test| {
            let bound = range(kernel, definitions, test.bound);
            let most = (bound.max.saturating_add(1).saturating_sub(start.min)).div_ceil(step);
            bound.max < FAR && start.max < FAR && most <= u64::from(u32::MAX)
        });
        fits.then_some(counter)
    }

    /// The comparison of a value of this counter with a bound from outside.
    fn test(&self, kind: &OpKind, inside: &EntitySet<Value>) -> Option<Test> {
        let OpKind::Compare(op, a, b) = *kind else {
            return None;
        };
        // Below `FAR`, signed and unsigned are the same.
        let or_equal = match op {
            CompareOp::LtU | CompareOp::LtS => false,
            CompareOp::LeU | CompareOp::LeS => true,
            _ => return None,
        };
        let own = |value: Value| value == self.param || value == self.next;
        let (left, counter, bound) = match (own(a), own(b)) {
            (true, false) => (true, a, b),
            (false, true) => (false, b, a),
            _ => return None,
        };
        (!inside.contains(bound)).then_some(Test {
            next: counter == self.next,
            bound,
            left,
            or_equal,
        })
    }

    /// All comparisons, if nothing else uses the counter.
    fn tests(&self, body: &Region, label: Label, inside: &EntitySet<Value>) -> Option<Vec<Test>> {
        let mut tests = Vec::new();
        let mut only_compared = true;
        body.walk(&mut |op| {
            let mut uses = 0;
            op.kind.for_each_operand(|operand| {
                uses += usize::from(operand == self.param || operand == self.next)
            });
            let expected = match &op.kind {
                _ if op.results.first() == Some(&self.next) => 1,
                OpKind::Continue(to, _) if *to == label => 1,
                kind => match self.test(kind, inside) {
                    Some(test) => {
                        tests.push(test);
                        1
                    }
                    None => 0,
                },
            };
            only_compared &= uses == expected;
        });
        only_compared.then_some(tests)
    }

    /// The comparison, at the top or the bottom, without which the loop does not go on: it keeps the counter below
    /// a bound.
    fn ends(&self, body: &Region, label: Label, inside: &EntitySet<Value>) -> Option<Test> {
        let mut found = bottom_test(body, label);
        body.walk(&mut |op| {
            for inner in op.kind.regions() {
                found = found.or(bottom_test(inner, label));
            }
        });
        let at_bottom = found.is_some();
        let (cond, stays_if) = found.or(top_test(body, label))?;
        let mut test = None;
        body.walk(&mut |op| {
            if op.results.first() == Some(&cond) {
                test = self.test(&op.kind, inside);
            }
        });
        // What holds while the loop goes on must bound the value from above.
        test.filter(|test| test.next == at_bottom && test.left == stays_if)
    }

    /// Rewrites the loop; the counts are computed by `before`.
    fn narrow(&self, kernel: &mut Kernel, definitions: &Definitions, op: &mut Op, before: &mut Vec<Op>) {
        let place = op.place;
        let OpKind::Loop {
            params,
            initial,
            body,
            ..
        } = &mut op.kind
        else {
            return;
        };
        let inside = defined(params, body);
        let count = kernel.value(Type::I32);
        let next = kernel.value(Type::I32);
        kernel.values[next].name = kernel.values[self.next].name.clone();
        kernel.values[count].name = kernel.values[self.param].name.clone();
        params[self.index] = count;
        initial[self.index] = kernel.constant(Type::I32, 0);
        let one = kernel.constant(Type::I32, 1);
        let mut counts: Vec<((Value, u64), Value)> = Vec::new();
        body.walk_mut(&mut |op| {
            if op.results.first() == Some(&self.next) {
                op.kind = OpKind::NoWrap(NoWrapOp::Add, Wrap::NotUnsigned, count, one);
                op.results[0] = next;
            } else if let Some(test) = self.test(&op.kind, &inside) {
                let key = (test.bound, test.slack());
                let known = counts.iter().find(|(other, _)| *other == key);
                let bound = match known {
                    Some(&(_, bound)) => bound,
                    None => {
                        let bound = self.count(kernel, definitions, key, place, before);
                        counts.push((key, bound));
                        bound
                    }
                };
                let own = if test.next { next } else { count };
                op.kind = match test.left {
                    true => OpKind::Compare(CompareOp::LtU, own, bound),
                    false => OpKind::Compare(CompareOp::LeU, bound, own),
                };
            } else if let OpKind::Continue(_, values) = &mut op.kind {
                for value in values {
                    if *value == self.next {
                        *value = next;
                    }
                }
            }
        });
    }

    /// How many iterations start below a bound, plus slack: `max(0, ⌈(bound + slack − initial) ÷ step⌉)`.
    fn count(
        &self,
        kernel: &mut Kernel,
        definitions: &Definitions,
        (bound, slack): (Value, u64),
        place: Place,
        before: &mut Vec<Op>,
    ) -> Value {
        let mut push = |kernel: &mut Kernel, kind: OpKind, ty: Type| {
            let result = kernel.value(ty);
            before.push(Op {
                kind,
                results: vec![result],
                place,
            });
            result
        };
        let Range { min, max } = range(kernel, definitions, self.initial);
        let mut distance = bound;
        if max > 0 {
            let least = range(kernel, definitions, bound).min;
            distance = push(
                kernel,
                OpKind::Binary(BinaryOp::Sub, bound, self.initial),
                Type::I64,
            );
            if least < max {
                let below = push(
                    kernel,
                    OpKind::Compare(CompareOp::LtU, bound, self.initial),
                    Type::Bool,
                );
                // Below, there is no slack either: `−slack` makes up for it.
                let none = kernel.constant(Type::I64, slack.wrapping_neg());
                distance = push(kernel, OpKind::Select(below, none, distance), Type::I64);
            }
        }
        debug_assert!(min <= max);
        let rounded = slack + (self.step - 1);
        if rounded > 0 {
            let rounded = kernel.constant(Type::I64, rounded);
            distance = push(
                kernel,
                OpKind::Binary(BinaryOp::Add, distance, rounded),
                Type::I64,
            );
        }
        if self.step > 1 {
            let shift = kernel.constant(Type::I64, u64::from(self.step.trailing_zeros()));
            distance = push(kernel, OpKind::Binary(BinaryOp::ShrU, distance, shift), Type::I64);
        }
        push(kernel, OpKind::Convert(ConvertOp::Truncate, distance), Type::I32)
    }
}

/// What the only way around a loop passes for a parameter.
fn only_next(body: &Region, label: Label, index: usize) -> Option<Value> {
    let mut found = Vec::new();
    body.walk(&mut |op| {
        if let OpKind::Continue(to, values) = &op.kind
            && *to == label
        {
            found.push((
                values[index],
                values.iter().filter(|&&value| value == values[index]).count(),
            ));
        }
    });
    match found[..] {
        [(next, 1)] => Some(next),
        _ => None,
    }
}

/// By how much the parameter grows: a power of two, so that counting needs no division.
fn step(kernel: &Kernel, body: &Region, param: Value, next: Value) -> Option<u64> {
    let mut found = None;
    body.walk(&mut |op| {
        if op.results.first() == Some(&next)
            && let OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b) = op.kind
        {
            let by = if a == param { b } else { a };
            if a == param || b == param {
                found = kernel.as_constant(by);
            }
        }
    });
    found.filter(|&step| step.is_power_of_two() && step <= u64::from(u32::MAX))
}

/// The condition at the top of a loop, and whether the loop goes on where it holds.
fn top_test(body: &Region, label: Label) -> Option<(Value, bool)> {
    let OpKind::If {
        label: own,
        cond,
        then,
        otherwise,
    } = &body.ops.iter().find(|op| !op.kind.is_pure())?.kind
    else {
        return None;
    };
    let stays = |region: &Region| exit(*own, region).is_some();
    let leaves = |region: &Region| {
        let mut leaves = true;
        region.walk(&mut |op| match &op.kind {
            OpKind::Break(to, _) => leaves &= to != own,
            OpKind::Continue(to, _) => leaves &= *to != label,
            _ => {}
        });
        leaves
    };
    if stays(then) && leaves(otherwise) {
        Some((*cond, true))
    } else if stays(otherwise) && leaves(then) {
        Some((*cond, false))
    } else {
        None
    }
}

/// The condition in front of a region's `continue`, and whether the loop goes on where it holds.
fn bottom_test(region: &Region, label: Label) -> Option<(Value, bool)> {
    let [.., test, last] = &region.ops[..] else {
        return None;
    };
    let (
        OpKind::If {
            label: own,
            cond,
            then,
            otherwise,
        },
        OpKind::Continue(to, _),
    ) = (&test.kind, &last.kind)
    else {
        return None;
    };
    let breaks = |region: &Region, label: Label| exit(label, region).is_some();
    if *to != label {
        None
    } else if breaks(then, *own) && breaks(otherwise, label) {
        Some((*cond, true))
    } else if breaks(otherwise, *own) && breaks(then, label) {
        Some((*cond, false))
    } else {
        None
    }
}
