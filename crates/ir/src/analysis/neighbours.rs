//! By how much a value grows from one work-item to the next.
//!
//! ```text
//! %local = id.local.x                  grows by 1
//! %at = add.nuw %first, %local         grows by 1, if %first is the same for all
//! %p = address %values + %at * 4       grows by 4: 32 work-items read 128 bytes side by side
//! ```
//!
//! Among the work-items of a sub-group, or of a whole work-group. Uniform values grow by 0.

use std::collections::HashMap;

use super::definitions::{Definition, Definitions};
use super::multiples::low_zeros;
use super::uniform::Divergence;
use crate::ir::{BinaryOp, ConvertOp, Id, Kernel, NoWrapOp, OpKind, Value, Wrap, eval};

/// Values looked at before nothing is known.
const VISITS: u32 = 2_000;

/// How a value's bits are read when it is said to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reading {
    /// In as many bits as it has, wrapping.
    Wrapping,
    /// As an unsigned number.
    Unsigned,
    /// As a signed number.
    Signed,
}

/// The facts about the neighbours of a work-item.
pub struct Neighbours<'k> {
    kernel: &'k Kernel,
    definitions: &'k Definitions,
    divergence: Divergence,
    work_group: bool,
    found: HashMap<(Value, Reading), Option<i64>>,
    visits: u32,
}

impl<'k> Neighbours<'k> {
    /// Among the work-items of a sub-group, or of a work-group.
    pub fn of(kernel: &'k Kernel, definitions: &'k Definitions, work_group: bool) -> Neighbours<'k> {
        Neighbours {
            kernel,
            definitions,
            divergence: match work_group {
                true => Divergence::of_work_group(kernel),
                false => Divergence::of(kernel),
            },
            work_group,
            found: HashMap::new(),
            visits: VISITS,
        }
    }

    /// By how much a 64-bit value, or by how many bytes a pointer, grows from each work-item to the next, if always by
    /// as much.
    pub fn growth(&mut self, value: Value) -> Option<i64> {
        self.slope(value, Reading::Wrapping)
    }

    fn slope(&mut self, value: Value, reading: Reading) -> Option<i64> {
        if !self.divergence.differs(value) {
            return Some(0);
        }
        if let Some(&found) = self.found.get(&(value, reading)) {
            return found;
        }
        self.visits = self.visits.checked_sub(1)?;
        let found = self.find(value, reading);
        self.found.insert((value, reading), found);
        found
    }

    fn find(&mut self, value: Value, reading: Reading) -> Option<i64> {
        let kind = match self.definitions.get(value)? {
            Definition::LoopParam { initial, next, .. } => {
                let first = self.slope(*initial, reading)?;
                // If it grows so in one iteration, it does in the next.
                self.found.insert((value, reading), Some(first));
                let same = next.iter().all(|&next| self.slope(next, reading) == Some(first));
                return same.then_some(first);
            }
            Definition::Result { kind, .. } => kind,
        };
        match *kind {
            OpKind::Id(Id::Lane) if !self.work_group => Some(1),
            OpKind::Id(Id::Local(0)) => self.is_one_row().then_some(1),
            OpKind::Id(Id::Local(_)) => self.is_one_row().then_some(0),
            OpKind::NoWrap(op, wrap, a, b) => {
                let exact = match reading {
                    Reading::Wrapping => true,
                    Reading::Unsigned => wrap != Wrap::NotSigned,
                    Reading::Signed => wrap != Wrap::NotUnsigned,
                };
                exact.then(|| self.arithmetic(op.into(), a, b, reading))?
            }
            OpKind::Binary(op @ (BinaryOp::DivU | BinaryOp::ShrU), a, b) => self.quotient(op, a, b),
            OpKind::Binary(op, a, b) if reading == Reading::Wrapping => self.arithmetic(op, a, b, reading),
            OpKind::Convert(ConvertOp::ExtendU, a) => self.slope(a, Reading::Unsigned),
            OpKind::Convert(ConvertOp::ExtendS, a) => self.slope(a, Reading::Signed),
            OpKind::Convert(ConvertOp::Truncate, a) if reading == Reading::Wrapping => self.slope(a, reading),
            OpKind::Address {
                base, index, scale, ..
            } => {
                let (base, index) = (self.slope(base, reading)?, self.slope(index, Reading::Wrapping)?);
                base.checked_add(index.checked_mul(i64::from(scale))?)
            }
            // The work-items of a sub-group that load together see the same.
            OpKind::Load { ptr, .. } if !self.work_group => {
                (self.slope(ptr, Reading::Wrapping)? == 0).then_some(0)
            }
            ref kind if kind.is_pure() && !matches!(kind, OpKind::Id(_) | OpKind::ArrayAddress(_)) => {
                let mut operands = Vec::new();
                kind.for_each_operand(|operand| operands.push(operand));
                let same = operands
                    .iter()
                    .all(|&operand| self.slope(operand, reading) == Some(0));
                same.then_some(0)
            }
            _ => None,
        }
    }

    fn arithmetic(&mut self, op: BinaryOp, a: Value, b: Value, reading: Reading) -> Option<i64> {
        let constant = |value: Value| {
            let bits = self.kernel.as_constant(value)?;
            Some(eval::signed(self.kernel.ty(value), bits))
        };
        let (constant_a, constant_b) = (constant(a), constant(b));
        let (slope_a, slope_b) = (self.slope(a, reading)?, self.slope(b, reading)?);
        match op {
            BinaryOp::Add => slope_a.checked_add(slope_b),
            BinaryOp::Sub => slope_a.checked_sub(slope_b),
            _ if slope_a == 0 && slope_b == 0 => Some(0),
            BinaryOp::Mul => match (constant_a, constant_b) {
                (Some(times), _) => slope_b.checked_mul(times),
                (_, Some(times)) => slope_a.checked_mul(times),
                _ => None,
            },
            BinaryOp::Shl => slope_a.checked_mul(1i64.checked_shl(u32::try_from(constant_b?).ok()?)?),
            _ => None,
        }
    }

    /// The number of a sub-group: a work-item's id, divided by the sub-group size.
    fn quotient(&mut self, op: BinaryOp, a: Value, b: Value) -> Option<i64> {
        let (slope_a, slope_b) = (
            self.slope(a, Reading::Unsigned)?,
            self.slope(b, Reading::Unsigned)?,
        );
        if slope_a == 0 && slope_b == 0 {
            return Some(0);
        }
        let by = self.kernel.as_constant(b)?;
        let divisor = match op {
            BinaryOp::DivU => by,
            _ => 1u64.checked_shl(u32::try_from(by).ok()?)?,
        };
        let size = u64::from(self.kernel.sub_group_size?);
        let whole = size.is_power_of_two() && divisor.is_multiple_of(size) && !self.work_group;
        (whole && slope_a == 1 && self.starts_at_multiple(a, size.trailing_zeros())).then_some(0)
    }

    /// Whether a value that grows by 1 is a multiple of 2ᵏ for the first work-item of each sub-group of that size.
    fn starts_at_multiple(&self, value: Value, zeros: u32) -> bool {
        if !self.divergence.differs(value) {
            return self.zeros(value, 0) >= zeros;
        }
        match self.definitions.op(value) {
            Some(OpKind::Id(Id::Lane)) => true,
            Some(OpKind::Id(Id::Local(0))) => self.is_one_row(),
            Some(&(OpKind::NoWrap(NoWrapOp::Add, _, a, b) | OpKind::Binary(BinaryOp::Add, a, b))) => {
                self.starts_at_multiple(a, zeros) && self.starts_at_multiple(b, zeros)
            }
            Some(&OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, a)) => {
                self.starts_at_multiple(a, zeros)
            }
            _ => false,
        }
    }

    /// The zero low bits of uniform values; a required work-group size is known.
    fn zeros(&self, value: Value, depth: u32) -> u32 {
        match self.definitions.op(value) {
            Some(OpKind::Id(Id::GroupSize(axis))) => self
                .kernel
                .group_size
                .map_or(0, |sizes| sizes[usize::from(*axis).min(2)].trailing_zeros()),
            Some(&(OpKind::NoWrap(NoWrapOp::Mul, _, a, b) | OpKind::Binary(BinaryOp::Mul, a, b)))
                if depth < 8 =>
            {
                self.zeros(a, depth + 1) + self.zeros(b, depth + 1)
            }
            Some(&OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, a)) if depth < 8 => {
                self.zeros(a, depth + 1)
            }
            _ => low_zeros(self.kernel, self.definitions, value),
        }
    }

    /// Whether work-items that follow each other do so along dimension 0.
    fn is_one_row(&self) -> bool {
        match (self.kernel.group_size, self.kernel.sub_group_size) {
            (Some([_, 1, 1]), _) => true,
            (Some([x, ..]), Some(size)) => !self.work_group && x.is_multiple_of(size),
            _ => false,
        }
    }
}
