//! Differences that saturate at the smallest number of their type, as the limits of guards are written: `lt.u a, b ? 0 : a -
//! b`, and for signed numbers `lt.s a, least + b ? least : a - b`.

use crate::analysis::definitions::Definitions;
use crate::ir::{BinaryOp, CompareOp, Kernel, NoWrapOp, OpKind, Value};

/// `of` less `by`, or the least number where that is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saturated {
    /// The minuend.
    pub of: Value,
    /// The subtrahend, as an unsigned number, if it is a constant.
    pub by: Option<u64>,
    /// Whether it is a signed number that is taken from.
    pub signed: bool,
}

impl Saturated {
    /// A value as such a difference, if it is written so.
    pub(crate) fn find(kernel: &Kernel, definitions: &Definitions, value: Value) -> Option<Saturated> {
        let &OpKind::Select(cond, least, rest) = definitions.op(value)? else {
            return None;
        };
        let (signed, of, room) = match *definitions.op(cond)? {
            OpKind::Compare(CompareOp::LtU, of, room) => (false, of, room),
            OpKind::Compare(CompareOp::LtS, of, room) => (true, of, room),
            _ => return None,
        };
        let mask = kernel.ty(of).mask();
        let constant = |value| kernel.as_constant(value);
        let floor = if signed { mask ^ (mask >> 1) } else { 0 };
        // What is taken, as the condition has it and as the difference has it.
        let limit = constant(room).map(|room| room.wrapping_sub(floor) & mask);
        let (by, is_room) = match *definitions.op(rest)? {
            OpKind::Binary(BinaryOp::Sub, a, by) | OpKind::NoWrap(NoWrapOp::Sub, _, a, by) if a == of => {
                (constant(by), by == room && !signed)
            }
            OpKind::Binary(BinaryOp::Add, a, less) if a == of => {
                (Some(constant(less)?.wrapping_neg() & mask), false)
            }
            _ => return None,
        };
        let is_same = is_room || by.is_some() && by == limit;
        (is_same && constant(least) == Some(floor)).then_some(Saturated { of, by, signed })
    }
}
