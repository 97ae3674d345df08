//! The increment of a value of the body from one iteration to the next.
//!
//! ```text
//! %at = add %first, %j        grows by 1
//! %p = address %v + %at * 4   grows by 4: the address of four iterations later is %p + 16
//! ```

use std::cell::RefCell;
use std::collections::HashMap;

use crate::analysis::loops::{LoopSummary, Relation, Step};
use crate::ir::eval::signed;
use crate::ir::{BinaryOp, ConvertOp, Kernel, NoWrapOp, OpKind, Type, Value, Wrap};

/// Longest chain of operations that an early value repeats.
pub(super) const MAX_SLICE_DEPTH: u32 = 400;

/// How a value's bits are read when it is said to grow.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reading {
    /// In 64 bits, where wrapping commutes with everything that addresses do.
    Wrapping,
    /// As a signed number that is widened later.
    Signed,
    /// As an unsigned number that is widened later.
    Unsigned,
}

/// The growths of one loop's values; each is found once.
pub(super) struct Growths<'s> {
    summary: &'s LoopSummary,
    found: RefCell<HashMap<(Value, Reading), Option<i64>>>,
}

impl<'s> Growths<'s> {
    /// Of the values of this loop.
    pub(super) fn new(summary: &'s LoopSummary) -> Growths<'s> {
        Growths {
            summary,
            found: RefCell::default(),
        }
    }

    /// By how much a 64-bit value, or by how many bytes a pointer, grows each iteration, if always by as much.
    pub(super) fn of(&self, kernel: &Kernel, value: Value) -> Option<i64> {
        self.growth(kernel, value, 0)
    }

    /// By how much a 64-bit value or a pointer grows each iteration, if always by the same constant.
    fn growth(&self, kernel: &Kernel, value: Value, depth: u32) -> Option<i64> {
        self.remembered(value, Reading::Wrapping, || {
            self.find_growth(kernel, value, depth)
        })
    }

    /// Each value is looked at once: expressions that share parts would take exponential time.
    fn remembered(&self, value: Value, reading: Reading, find: impl FnOnce() -> Option<i64>) -> Option<i64> {
        if let Some(&found) = self.found.borrow().get(&(value, reading)) {
            return found;
        }
        let found = find();
        self.found.borrow_mut().insert((value, reading), found);
        found
    }

    fn find_growth(&self, kernel: &Kernel, value: Value, depth: u32) -> Option<i64> {
        if depth > MAX_SLICE_DEPTH {
            return None;
        }
        if let Some(index) = self.summary.params.iter().position(|&param| param == value) {
            return match self.summary.steps[index] {
                Step::Invariant => Some(0),
                Step::Constant(step) => Some(step),
                _ => None,
            };
        }
        let Some(inside) = self.summary.inside.get(&value) else {
            return Some(0);
        };
        let ty = kernel.ty(value);
        if inside.in_inner_loop || !(ty == Type::I64 || ty.is_pointer()) {
            return None;
        }
        let of = |value: Value| self.growth(kernel, value, depth + 1);
        let constant = |value: Value| kernel.as_constant(value).map(|bits| bits as i64);
        match inside.kind {
            OpKind::Binary(BinaryOp::Add, a, c) | OpKind::NoWrap(NoWrapOp::Add, _, a, c) => {
                Some(of(a)?.wrapping_add(of(c)?))
            }
            OpKind::Binary(BinaryOp::Sub, a, c) | OpKind::NoWrap(NoWrapOp::Sub, _, a, c) => {
                Some(of(a)?.wrapping_sub(of(c)?))
            }
            OpKind::Binary(BinaryOp::Mul, a, c) | OpKind::NoWrap(NoWrapOp::Mul, _, a, c) => {
                match (constant(a), constant(c)) {
                    (_, Some(factor)) => Some(of(a)?.wrapping_mul(factor)),
                    (Some(factor), _) => Some(of(c)?.wrapping_mul(factor)),
                    _ if of(a)? == 0 && of(c)? == 0 => Some(0),
                    _ => None,
                }
            }
            OpKind::Binary(BinaryOp::Shl, a, count) => match constant(count) {
                Some(count @ 0..64) => Some(of(a)?.wrapping_shl(count as u32)),
                _ => None,
            },
            OpKind::Address {
                base, index, scale, ..
            } => Some(of(base)?.wrapping_add(of(index)?.wrapping_mul(i64::from(scale)))),
            OpKind::Convert(op @ (ConvertOp::ExtendU | ConvertOp::ExtendS), narrow) => {
                self.exact_growth(kernel, narrow, op == ConvertOp::ExtendS, depth + 1)
            }
            _ => None,
        }
    }

    /// Like [`Early::growth`] for a narrow value that is then widened: only where nothing can wrap in the
    /// iterations that happen, so that widening and growing commute.
    fn exact_growth(&self, kernel: &Kernel, value: Value, is_signed: bool, depth: u32) -> Option<i64> {
        let reading = if is_signed {
            Reading::Signed
        } else {
            Reading::Unsigned
        };
        self.remembered(value, reading, || {
            self.find_exact_growth(kernel, value, is_signed, depth)
        })
    }

    fn find_exact_growth(&self, kernel: &Kernel, value: Value, is_signed: bool, depth: u32) -> Option<i64> {
        if depth > MAX_SLICE_DEPTH {
            return None;
        }
        if let Some(index) = self.summary.params.iter().position(|&param| param == value) {
            let exit = self.summary.exit.as_ref().ok()?;
            // Widening the first value and growing commute only if the first step does not wrap.
            if exit.steps_ahead > 0 && !exit.first_step_fits {
                return match self.summary.steps[index] {
                    Step::Invariant => Some(0),
                    _ => None,
                };
            }
            let same_reading = match exit.relation {
                Relation::Less { signed, .. } | Relation::Greater { signed, .. } => signed == is_signed,
                Relation::NotEqual => false,
            };
            return match self.summary.steps[index] {
                Step::Invariant => Some(0),
                Step::Constant(step) if exit.param == index && same_reading => Some(step),
                _ => None,
            };
        }
        let Some(inside) = self.summary.inside.get(&value) else {
            return Some(0);
        };
        if inside.in_inner_loop {
            return None;
        }
        let of = |value: Value| self.exact_growth(kernel, value, is_signed, depth + 1);
        let constant = |value: Value| {
            kernel.as_constant(value).map(|bits| {
                if is_signed {
                    signed(kernel.ty(value), bits)
                } else {
                    bits as i64
                }
            })
        };
        match inside.kind {
            OpKind::NoWrap(op, wrap, a, c) => {
                // The promise must hold in this iteration, too, for its value is what grows.
                let promised = !inside.conditional
                    && match wrap {
                        Wrap::Neither => true,
                        Wrap::NotSigned => is_signed,
                        Wrap::NotUnsigned => !is_signed,
                    };
                if !promised {
                    return None;
                }
                match op {
                    NoWrapOp::Add => Some(of(a)?.wrapping_add(of(c)?)),
                    NoWrapOp::Sub => Some(of(a)?.wrapping_sub(of(c)?)),
                    NoWrapOp::Mul => match (constant(a), constant(c)) {
                        (_, Some(factor)) => Some(of(a)?.wrapping_mul(factor)),
                        (Some(factor), _) => Some(of(c)?.wrapping_mul(factor)),
                        _ => None,
                    },
                }
            }
            _ => None,
        }
    }
}
