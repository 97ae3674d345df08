//! Counters that stop at zero, as Numba's ranges have them.
//!
//! ```text
//! before                                        after
//! loop (%left = %n, %at = …, %next = …) {       loop (%left = %n, %at = …, %next = …) {
//!   %p = lt.s 0, %left                            %p = lt.s 0, %left
//!   %one = add %left, select(%p, -1, 0)           …
//!   %at1 = select(%p, %next, 0)                   %at1 = select(%p, %next, 0)
//!   …                                             …
//!   %q = lt.s 0, %one                             %q = lt.s 1, %left
//!   %two = add %one, select(%q, -1, 0)            if %q { yield } else { break }
//!   %then = add %next, select(%q, 1, 0)           %two = add %left, -2
//!   if %q { yield } else { break }                %then = add %next, 1
//!   continue %two, …, %then                       continue %two, …, %then
//! }                                             }
//! ```
//!
//! A number that was counted down m times while it was positive is above k (k not negative) if and only if it was above k + m.
//! So tests of such numbers become tests of their initial values. If the loop continues, its last test held, and so does every
//! test of the same number against less: the values passed to the next iteration are simplified for that case. Both rewrites
//! are exact. The result counts in steps, the form that [`counters`](super::counters) and the analyses recognise.

use std::collections::HashMap;

use crate::ir::eval::signed;
use crate::ir::{BinaryOp, Builder, CompareOp, Kernel, Op, OpKind, Region, Type, Value};

/// Longest chain of operations that is written again for the case that the loop goes on.
const MOST_DEPTH: u32 = 64;

/// Rewrites tests of counters that stop at zero, and the values that loops with such tests pass on. Says whether there are any.
pub(crate) fn unwind(kernel: &mut Kernel) -> bool {
    let mut body = std::mem::take(&mut kernel.body);
    let mut found = Countdowns::default();
    found.tests(kernel, &mut body);
    if found.rewritten {
        found.region(kernel, &mut body);
    }
    kernel.body = body;
    found.rewritten
}

/// Values that are counted down, and the definitions behind them, by their results.
#[derive(Default)]
struct Countdowns {
    ops: HashMap<Value, OpKind>,
    /// Values that are another one counted down this many times while positive.
    counted: HashMap<Value, (Value, u64)>,
    rewritten: bool,
}

/// `number > least`, read as signed.
#[derive(Clone, Copy)]
struct Above {
    number: Value,
    least: i64,
}

impl Countdowns {
    /// Rewrites the tests, in the order of the text.
    fn tests(&mut self, kernel: &mut Kernel, region: &mut Region) {
        region.walk_mut(&mut |op| {
            let [result] = op.results[..] else { return };
            match op.kind {
                OpKind::Binary(BinaryOp::Add, a, b) => {
                    let down = self
                        .counted_down(kernel, a, b)
                        .or_else(|| self.counted_down(kernel, b, a));
                    if let Some(counted) = down {
                        self.counted.insert(result, counted);
                    }
                }
                OpKind::Compare(CompareOp::LtS, least, number) => {
                    if let Some(&(start, times)) = self.counted.get(&number)
                        && let Some(bits) = kernel.as_constant(least)
                    {
                        let ty = kernel.ty(number);
                        let least = signed(ty, bits) as u64;
                        let room = ty.mask() >> 1;
                        if least <= room && times <= room - least {
                            let least = kernel.constant(ty, least + times);
                            op.kind = OpKind::Compare(CompareOp::LtS, least, start);
                            self.rewritten = true;
                        }
                    }
                }
                _ => {}
            }
            if op.kind.is_pure() {
                self.ops.insert(result, op.kind.clone());
            }
        });
    }

    /// `number + (0 < number ? -1 : 0)`, as where it started and how often it was counted down.
    fn counted_down(&self, kernel: &Kernel, number: Value, step: Value) -> Option<(Value, u64)> {
        let ty = kernel.ty(number);
        let &OpKind::Select(cond, then, otherwise) = self.ops.get(&step)? else {
            return None;
        };
        if kernel.as_constant(then) != Some(ty.mask()) || kernel.as_constant(otherwise) != Some(0) {
            return None;
        }
        let above = self.above(kernel, cond)?;
        let (start, times) = self.counted.get(&number).copied().unwrap_or((number, 0));
        // `0 < number` is a test of where it started by now.
        (above.number == start && above.least == times as i64).then_some((start, times + 1))
    }

    fn above(&self, kernel: &Kernel, cond: Value) -> Option<Above> {
        match self.ops.get(&cond)? {
            OpKind::Compare(CompareOp::LtS, least, number) => {
                let bits = kernel.as_constant(*least)?;
                let least = signed(kernel.ty(*number), bits);
                Some(Above {
                    number: *number,
                    least,
                })
            }
            _ => None,
        }
    }

    fn region(&self, kernel: &mut Kernel, region: &mut Region) {
        for op in &mut region.ops {
            for inner in op.kind.regions_mut() {
                self.region(kernel, inner);
            }
            if let OpKind::Loop { body, .. } = &mut op.kind {
                self.passed_on(kernel, body);
            }
        }
    }

    /// Writes the values that a loop passes on, for the case that its last test, with nothing behind it, held.
    fn passed_on(&self, kernel: &mut Kernel, body: &mut Region) {
        let Some(test) = body
            .ops
            .iter()
            .rposition(|op| matches!(op.kind, OpKind::If { .. }))
        else {
            return;
        };
        let (
            Some(Op {
                kind: OpKind::Continue(label, args),
                place,
                ..
            }),
            true,
        ) = (
            body.ops.last().cloned(),
            body.ops[test + 1..]
                .iter()
                .rev()
                .skip(1)
                .all(|op| op.kind.is_pure()),
        )
        else {
            return;
        };
        let OpKind::If {
            label: own,
            cond,
            then,
            otherwise,
        } = &body.ops[test].kind
        else {
            return;
        };
        let leaves =
            |region: &Region| matches!(&region.ops[..], [Op { kind: OpKind::Break(to, _), .. }] if to != own);
        let Some(known) = self.above(kernel, *cond) else {
            return;
        };
        if leaves(then) || !leaves(otherwise) {
            return;
        }
        let mut b = Builder::new(kernel, place);
        let mut case = Case {
            found: self,
            known,
            written: HashMap::new(),
        };
        let args = args.iter().map(|&arg| case.value(&mut b, arg, 0)).collect();
        let ops = b.finish().ops;
        body.ops.pop();
        body.ops.extend(ops);
        body.ops
            .push(Op::new(OpKind::Continue(label, args), Vec::new(), place));
    }
}

/// Values, written for a case in which a test is known.
struct Case<'f> {
    found: &'f Countdowns,
    known: Above,
    written: HashMap<Value, Value>,
}

impl Case<'_> {
    fn value(&mut self, b: &mut Builder<'_>, value: Value, depth: u32) -> Value {
        if let Some(&written) = self.written.get(&value) {
            return written;
        }
        let written = self.write(b, value, depth);
        self.written.insert(value, written);
        written
    }

    fn write(&mut self, b: &mut Builder<'_>, value: Value, depth: u32) -> Value {
        if depth > MOST_DEPTH {
            return value;
        }
        match self.found.ops.get(&value) {
            Some(&OpKind::Select(cond, then, otherwise)) => match self.found.above(b.kernel, cond) {
                Some(above) if above.number == self.known.number && above.least <= self.known.least => {
                    self.value(b, then, depth + 1)
                }
                _ => {
                    let (x, y) = (
                        self.value(b, then, depth + 1),
                        self.value(b, otherwise, depth + 1),
                    );
                    match (x, y) == (then, otherwise) {
                        true => value,
                        false => b.select(cond, x, y),
                    }
                }
            },
            Some(&OpKind::Binary(BinaryOp::Add, a, c)) if b.kernel.ty(value) != Type::Bool => {
                let (x, y) = (self.value(b, a, depth + 1), self.value(b, c, depth + 1));
                match (x, y) == (a, c) {
                    true => value,
                    false => b.add(x, y),
                }
            }
            _ => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::definitions::Definitions;
    use crate::analysis::loops::{Step, summarize};
    use crate::cleanup;
    use crate::ir::{parse, verify};

    /// What a loop counts down by, twice an iteration.
    const RANGE: &str = "hsir 1\nkernel @k(%p: ptr.global i32[] align 4 readonly, %o: ptr.global i32[] align 4 unaliased, %n: i32) {\n  load @p\n  \
        loop 'l (%at = 0:i32, %next = 1:i32, %left = %n) {\n    \
        %a = lt.s 0:i32, %left\n    %as = select %a, -1:i32, 0:i32\n    %one = add %left, %as\n    \
        %au = select %a, 1:i32, 0:i32\n    %next1 = add %next, %au\n    %at1 = select %a, %next, 0:i32\n    \
        %i = extend.s %at to i64\n    %q = address %p + %i * 4\n    %x = load i32 %q, @p\n    store %o, %x\n    \
        %b = lt.s 0:i32, %one\n    %bs = select %b, -1:i32, 0:i32\n    %two = add %one, %bs\n    \
        %bu = select %b, 1:i32, 0:i32\n    %next2 = add %next1, %bu\n    %at2 = select %b, %next1, 0:i32\n    \
        if %b { yield } else { break }\n    continue %at2, %next2, %two\n  }\n  return\n}\n";

    #[test]
    fn what_stops_at_zero_counts_in_steps() {
        let mut kernel = parse(RANGE, "k.hsir").expect("the test's kernel is right");
        unwind(&mut kernel);
        cleanup::tidy(&mut kernel);
        verify(&kernel).expect("it stays right");
        let definitions = Definitions::of(&kernel);
        let looped = kernel
            .body
            .ops
            .iter()
            .find(|op| matches!(op.kind, OpKind::Loop { .. }));
        let summary = summarize(&kernel, &definitions, looped.expect("there is a loop"));
        assert!(
            matches!(summary.steps[0], Step::Derived(_)),
            "{:?}",
            summary.steps
        );
        assert_eq!(summary.steps[1..], [Step::Constant(2), Step::Constant(-2)]);
        assert_eq!(summary.exit.expect("it counts").param, 2);
    }

    /// Every test, against counting by hand, around zero and at the ends of the type.
    #[test]
    fn tests_of_counted_numbers_are_exact() {
        let down = |number: i32, times: u32| (0..times).fold(number, |n, _| if n > 0 { n - 1 } else { n });
        let numbers = (-5..12).chain([i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX]);
        for number in numbers {
            for times in 0..5 {
                for least in 0..5 {
                    let rewritten = i64::from(least) + i64::from(times) < i64::from(number);
                    assert_eq!(least < down(number, times), rewritten, "{number} {times} {least}");
                }
            }
        }
    }
}
