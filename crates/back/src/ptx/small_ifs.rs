//! Small `if`s: an `if` with short sides that only compute, load, store, copy or hint is written without a branch. Operations with an effect
//! run under a predicate; pure ones always run, which is allowed because every operation is total. Results are selected; a load
//! writes the result's register itself.
//!
//! The register of a load under a predicate has a value before it, 0 if nothing else, where anything computes with it. If it had
//! none, ptxas 13.0 could take the register of an earlier load from the same address for it, which ran under another predicate
//! (seen on an H200 from -O2 on).

use super::emitter::{Emitter, Guard};
use super::registers::Class;
use crate::Result;
use crate::ir::{BinaryOp, Kernel, Label, Op, OpKind, Region, Type, UnaryOp, Value};

/// How much an `if` without a branch may do, both sides together.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Operations that run even where the condition fails, in machine instructions, roughly.
    computing: u32,
    /// Operations under a predicate.
    guarded: u32,
}

impl Budget {
    const SMALL: Budget = Budget {
        computing: 12,
        guarded: 16,
    };
}

impl<'k> Emitter<'k> {
    /// Writes an `if` whose sides fit the budget.
    pub(super) fn without_branch(
        &mut self,
        op: &'k Op,
        cond: Value,
        then: &'k Region,
        otherwise: &'k Region,
    ) -> Result<()> {
        let cond = self.operand(cond);
        let outer = self.guard.clone();
        let values = [yielded(then), yielded(otherwise)];
        // Loads whose only use is to be yielded write the result's register. Tokens need none.
        let mut selected = Vec::new();
        for (index, &result) in op.results.iter().enumerate() {
            let Some(class) = Class::of(self.ty(result)) else {
                continue;
            };
            let register = self.register(result);
            let direct = [(then, values[0][index]), (otherwise, values[1][index])]
                .map(|(side, v)| self.is_own_load(side, v));
            for (side, &direct) in direct.iter().enumerate() {
                if direct {
                    self.share(values[side][index], register.clone());
                }
            }
            for (side, v) in [(then, values[0][index]), (otherwise, values[1][index])] {
                // Nothing computes with what is only selected.
                if self.is_only_yielded(side, v) {
                    self.initialized.insert(v);
                }
            }
            if direct[1] && outer.is_some() {
                self.zero(class, &register);
            }
            selected.push((class, register, values[0][index], values[1][index], direct));
        }

        if has_guarded(otherwise) {
            self.guard = Some(match &outer {
                None => Guard {
                    register: cond.clone(),
                    negated: true,
                },
                Some(_) => {
                    let not = self.temporary(Class::Predicate);
                    self.ins(format!("not.pred {not}, {cond}"));
                    self.also(not)
                }
            });
        }
        self.straight(otherwise)?;
        self.guard.clone_from(&outer);
        for (class, register, _, otherwise, direct) in &selected {
            if direct[0] && !direct[1] {
                let otherwise = self.operand(*otherwise);
                self.ins(format!("mov.{} {register}, {otherwise}", class.ptx()));
            }
        }
        if has_guarded(then) {
            self.guard = Some(self.also(cond.clone()));
        }
        self.straight(then)?;
        self.guard = outer;
        for (class, register, then, otherwise, direct) in selected {
            match direct {
                [false, false] => {
                    let (x, y) = (self.operand(then), self.operand(otherwise));
                    self.selection(class, &register, &cond, &x, &y);
                }
                [false, true] => {
                    let x = self.operand(then);
                    self.ins(format!("@{cond} mov.{} {register}, {x}", class.ptx()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a region without its terminator.
    fn straight(&mut self, region: &'k Region) -> Result<()> {
        let Some((_, ops)) = region.ops.split_last() else {
            return Ok(());
        };
        ops.iter().try_for_each(|op| self.op(op))
    }

    /// Whether a value is loaded in this region, and only given back by it.
    fn is_only_yielded(&self, region: &Region, value: Value) -> bool {
        let is_load = |op: &Op| matches!(op.kind, OpKind::Load { .. }) && op.results.contains(&value);
        self.uses.get(&value) == Some(&1) && region.ops.iter().any(is_load)
    }

    /// Whether a value is loaded in this region, by a load that writes one register, and used once.
    fn is_own_load(&self, region: &Region, value: Value) -> bool {
        let plain = !matches!(self.ty(value), Type::Bool | Type::Ptr(_));
        plain
            && self.uses.get(&value) == Some(&1)
            && region
                .ops
                .iter()
                .any(|op| matches!(op.kind, OpKind::Load { .. }) && op.results == [value])
    }
}

/// A region's results.
fn yielded(region: &Region) -> &[Value] {
    match region.ops.last().map(|op| &op.kind) {
        Some(OpKind::Break(_, values)) => values,
        _ => &[],
    }
}

/// Whether a region has operations that run under its guard.
fn has_guarded(region: &Region) -> bool {
    let mut guarded = false;
    region.walk(&mut |op| {
        guarded |= !op.kind.is_pure() && op.kind.label().is_none() && !op.kind.is_terminator()
    });
    guarded
}

/// Whether the sides of an `if` can run without a branch.
pub(super) fn are_small(kernel: &Kernel, sides: [&Region; 2], own: Label) -> bool {
    let mut budget = Budget::SMALL;
    sides.into_iter().all(|side| fits(kernel, side, own, &mut budget))
}

/// Subtracts a region's operations from the budget. False if they are too many, or may not run under a predicate.
fn fits(kernel: &Kernel, region: &Region, own: Label, budget: &mut Budget) -> bool {
    let take = |from: &mut u32, cost: u32| {
        let fits = *from >= cost;
        *from = from.saturating_sub(cost);
        fits
    };
    region.ops.iter().all(|op| match &op.kind {
        OpKind::Break(label, _) => *label == own,
        OpKind::Load { .. } | OpKind::Store { .. } | OpKind::Copy { .. } | OpKind::Prefetch { .. } => {
            take(&mut budget.guarded, 1)
        }
        OpKind::Join(_) => true,
        OpKind::If {
            label,
            then,
            otherwise,
            ..
        } => {
            // Its guards hold where both conditions do.
            take(&mut budget.computing, 2)
                && fits(kernel, then, *label, budget)
                && fits(kernel, otherwise, *label, budget)
        }
        kind if kind.is_pure() => take(&mut budget.computing, cost(kernel, kind)),
        _ => false,
    })
}

/// About how many machine instructions a pure operation takes.
pub(super) fn cost(kernel: &Kernel, kind: &OpKind) -> u32 {
    match kind.plain() {
        OpKind::Unary(UnaryOp::Sqrt, _) => 20,
        OpKind::Unary(UnaryOp::NormalReciprocal | UnaryOp::TableRow, _) => 3,
        OpKind::Unary(UnaryOp::NormalSqrt, _) => 5,
        OpKind::Binary(BinaryOp::FDiv, ..) => 20,
        OpKind::Binary(BinaryOp::DivS | BinaryOp::DivU | BinaryOp::RemS | BinaryOp::RemU, ..) => 20,
        OpKind::Binary(_, a, _) if kernel.ty(*a) == Type::F64 => 3,
        OpKind::Fma(a, ..) if kernel.ty(*a) == Type::F64 => 3,
        OpKind::Address { index, .. } if kernel.as_constant(*index).is_some() => 0,
        OpKind::ArrayAddress(_) => 0,
        _ => 1,
    }
}
