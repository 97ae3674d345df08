//! Counters of their own for what is compared and follows from a counter.
//!
//! ```text
//! before                                        after
//! loop (%i = 0: i64) {                          loop (%i = 0: i64, %low = 0: i32) {
//!   %next = add %i, 256                           %next = add %i, 256
//!   %low = truncate %next to i32                  %then = add %low, 256
//!   %more = lt.s %low, %bound                     %more = lt.s %then, %bound
//! ```
//!
//! Sums and differences with what the loop does not change, and low bits, grow in steps because the counter does.

use std::collections::HashMap;

use cranelift_entity::EntitySet;

use super::{Loop, MOST_OPERATIONS};
use crate::ir::{BinaryOp, CompareOp, ConvertOp, NoWrapOp, Op, OpKind, Type, Value};

/// How a value follows from a counter.
struct Chain {
    /// The parameter that counts, and its step.
    index: usize,
    step: Value,
    /// Whether the chain begins at its next value.
    is_ahead: bool,
    /// Each operation, which of its operands goes on from the one before, and the type that it makes.
    links: Vec<(OpKind, Value, Type)>,
    /// Whether a difference is among them.
    is_less: bool,
}

impl Loop<'_> {
    /// A comparison of what goes in steps because a counter does gets a counter of its own.
    pub(super) fn compare_companion(&mut self, comparison: Value) {
        let Some((op, a, b)) = self.operands(comparison) else {
            return;
        };
        let inside = self.inside();
        for (tested, bound, is_left) in [(a, b, true), (b, a, false)] {
            if inside.contains(bound) {
                continue;
            }
            let Some(chain) = self.chain(tested, &inside) else {
                continue;
            };
            // Low bits that must meet a bound, and sums, are seen through.
            let is_seen_through = matches!(op, CompareOp::Eq | CompareOp::Ne) && !chain.is_less;
            if chain.links.is_empty() || is_seen_through {
                continue;
            }
            let counter = self.companion(&chain);
            let kind = match is_left {
                true => OpKind::Compare(op, counter, bound),
                false => OpKind::Compare(op, bound, counter),
            };
            self.replace_comparison(comparison, kind);
            return;
        }
    }

    /// How a value follows from a counter, if by sums with what the loop does not change, and by low bits.
    fn chain(&self, value: Value, inside: &EntitySet<Value>) -> Option<Chain> {
        let (mut at, mut links, mut is_less) = (value, Vec::new(), false);
        loop {
            if let Some((index, step)) = self.stepped(at, inside) {
                links.reverse();
                return Some(Chain {
                    index,
                    step,
                    is_ahead: self.params[index] != at,
                    links,
                    is_less,
                });
            }
            let made = self.made(at).filter(|_| links.len() < MOST_OPERATIONS)?;
            let of = |a: Value, b: Value| match (inside.contains(a), inside.contains(b)) {
                (true, false) => Some(a),
                (false, true) => Some(b),
                _ => None,
            };
            at = match made.kind {
                OpKind::Convert(ConvertOp::Truncate, wide) => wide,
                OpKind::Binary(BinaryOp::Add, a, b) => of(a, b)?,
                OpKind::Binary(BinaryOp::Sub, a, b) => {
                    is_less = true;
                    of(a, b)?
                }
                _ => return None,
            };
            links.push((made.kind.clone(), at, self.kernel.ty(made.results[0])));
        }
    }

    /// A counter with the values at the end of a chain.
    fn companion(&mut self, chain: &Chain) -> Value {
        let (mut first, mut step, mut is_negative) = (self.initial[chain.index], chain.step, false);
        if chain.is_ahead {
            first = self.sum(BinaryOp::Add, first, step);
        }
        for (kind, from, ty) in &chain.links {
            match *kind {
                OpKind::Convert(..) => {
                    first = self.truncated(first, *ty);
                    step = self.truncated(step, *ty);
                }
                OpKind::Binary(op, a, b) => {
                    is_negative ^= op == BinaryOp::Sub && b == *from;
                    first = match b == *from {
                        true => self.sum(op, a, first),
                        false => self.sum(op, first, b),
                    };
                }
                _ => {}
            }
        }
        let ty = self.kernel.ty(first);
        let change = match (self.kernel.as_constant(step), is_negative) {
            (Some(bits), true) => {
                step = self.kernel.constant(ty, bits.wrapping_neg() & ty.mask());
                BinaryOp::Add
            }
            (None, true) => BinaryOp::Sub,
            (_, false) => BinaryOp::Add,
        };
        let (counter, next) = (self.kernel.value(ty), self.kernel.value(ty));
        self.params.push(counter);
        self.initial.push(first);
        let made = Op::new(OpKind::Binary(change, counter, step), vec![next], self.place);
        self.body.ops.insert(0, made);
        let label = self.label;
        self.body.walk_mut(&mut |op| match &mut op.kind {
            OpKind::Continue(to, args) if *to == label => args.push(next),
            _ => {}
        });
        counter
    }

    /// A sum or difference in front of the loop.
    pub(super) fn sum(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.kernel.ty(a);
        match (self.kernel.as_constant(a), self.kernel.as_constant(b)) {
            (Some(a), Some(b)) => {
                let bits = if op == BinaryOp::Sub {
                    a.wrapping_sub(b)
                } else {
                    a.wrapping_add(b)
                };
                self.kernel.constant(ty, bits & ty.mask())
            }
            _ => self.ahead(OpKind::Binary(op, a, b), ty),
        }
    }

    /// The parameter that a value is, or is the next value of, and its step.
    pub(super) fn stepped(&self, value: Value, inside: &EntitySet<Value>) -> Option<(usize, Value)> {
        let mut nexts: HashMap<usize, Vec<Value>> = HashMap::new();
        let label = self.label;
        self.body.walk(&mut |op| match &op.kind {
            OpKind::Continue(to, args) if *to == label => {
                for (index, &arg) in args.iter().enumerate() {
                    nexts.entry(index).or_default().push(arg);
                }
            }
            _ => {}
        });
        (0..self.params.len()).find_map(|index| {
            let [next, rest @ ..] = &nexts.get(&index)?[..] else {
                return None;
            };
            let is_one = rest.iter().all(|other| other == next);
            if !is_one || (value != self.params[index] && value != *next) {
                return None;
            }
            let (OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b)) =
                self.made(*next)?.kind
            else {
                return None;
            };
            let step = match (a == self.params[index], b == self.params[index]) {
                (true, false) => b,
                (false, true) => a,
                _ => return None,
            };
            (!inside.contains(step)).then_some((index, step))
        })
    }
}
