//! Broken promises of arithmetic that must not wrap, for all lanes at once.

use super::fault;
use super::lane_op::{LaneOp, LaneOpKind};
use super::lanes::{Mask, Registers};
use super::work_group::{SubGroup, WorkGroup};
use crate::ir::{NoWrapOp, Place, Type, Wrap, eval};
use crate::violation::Violation;
use crate::{Error, Result};

impl WorkGroup<'_> {
    /// Of an operation whose result must fit: it does, on the lanes of `mask`.
    #[inline]
    pub(super) fn check_no_wrap(
        &self,
        op: &LaneOp,
        registers: &Registers,
        sub_group: &SubGroup,
        mask: Mask,
    ) -> Result<()> {
        if let LaneOpKind::NoWrap {
            op: kind,
            wrap,
            ty,
            a,
            b,
            ..
        } = op.kind
        {
            let operands = [a, b].map(|slot| registers.get(slot));
            let broken = broken(kind, wrap, ty, operands).and(mask);
            if let Some(lane) = broken.lanes().next() {
                let (operands, item) = (operands.map(|all| all[lane]), sub_group.work_item(lane));
                return Err(self.wraps(kind, wrap, ty, operands, item, op.place));
            }
        }
        Ok(())
    }

    /// The error of a work-item whose result does not fit, though the kernel says that it does.
    #[cold]
    fn wraps(
        &self,
        op: NoWrapOp,
        wrap: Wrap,
        ty: Type,
        operands: [u64; 2],
        item: u32,
        place: Place,
    ) -> Error {
        let as_signed = wrap == Wrap::NotSigned;
        let number = |bits: u64| match as_signed {
            true => crate::ir::eval::signed(ty, bits).to_string(),
            false => bits.to_string(),
        };
        let sign = match op {
            NoWrapOp::Add => '+',
            NoWrapOp::Sub => '-',
            NoWrapOp::Mul => '×',
        };
        let wraps = Violation::Wraps {
            who: self.describe(item),
            computed: format!("{} {sign} {}", number(operands[0]), number(operands[1])),
            ty: ty.to_string(),
            is_signed: as_signed,
        };
        fault::error(self.state.kernel, place, wraps)
    }
}

/// The lanes on which the promise of [`eval::no_wrap`] does not hold, active or not.
fn broken(op: NoWrapOp, wrap: Wrap, ty: Type, operands: [&[u64]; 2]) -> Mask {
    let bits = match (op, wrap, ty) {
        (_, Wrap::NotSigned, Type::I8 | Type::I16 | Type::I32) => {
            let unused = 64 - ty.bits();
            collect(operands, |a, b| {
                let [a, b] = [a, b].map(|bits| eval::signed(ty, bits));
                let exact = exact(op, a, b);
                (exact << unused) >> unused != exact
            })
        }
        (_, Wrap::NotUnsigned, Type::I8 | Type::I16)
        | (NoWrapOp::Add | NoWrapOp::Sub, Wrap::NotUnsigned, Type::I32) => {
            collect(operands, |a, b| exact(op, a as i64, b as i64) as u64 > ty.mask())
        }
        (NoWrapOp::Add, Wrap::NotSigned, Type::I64) => {
            collect(operands, |a, b| (a as i64).overflowing_add(b as i64).1)
        }
        (NoWrapOp::Add, Wrap::NotUnsigned, Type::I64) => collect(operands, |a, b| a.overflowing_add(b).1),
        (NoWrapOp::Sub, Wrap::NotUnsigned, Type::I64) => collect(operands, |a, b| a < b),
        _ => collect(operands, |a, b| !eval::no_wrap(op, wrap, ty, a, b).1),
    };
    Mask(bits)
}

#[inline(always)]
fn exact(op: NoWrapOp, a: i64, b: i64) -> i64 {
    match op {
        NoWrapOp::Add => a + b,
        NoWrapOp::Sub => a - b,
        NoWrapOp::Mul => a * b,
    }
}

#[inline(always)]
fn collect([a, b]: [&[u64]; 2], broken: impl Fn(u64, u64) -> bool) -> u64 {
    let lanes = a.iter().zip(b).enumerate();
    lanes.fold(0, |bits, (lane, (&a, &b))| bits | u64::from(broken(a, b)) << lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functional::lanes::{LANES, Lanes};

    #[test]
    fn agrees_with_the_specification() {
        let edges = |ty: Type| {
            let top = ty.mask();
            [0, 1, 2, top, top - 1, top >> 1, (top >> 1) + 1, (top >> 2) + 3]
        };
        for ty in [Type::I8, Type::I16, Type::I32, Type::I64] {
            for &op in NoWrapOp::ALL {
                for &wrap in Wrap::ALL {
                    for b in edges(ty) {
                        let operands: [Lanes; 2] =
                            [std::array::from_fn(|lane| edges(ty)[lane % 8]), [b; LANES]];
                        let broken = broken(op, wrap, ty, [&operands[0], &operands[1]]);
                        for (lane, &a) in operands[0].iter().enumerate() {
                            let holds = eval::no_wrap(op, wrap, ty, a, b).1;
                            assert_eq!(broken.contains(lane), !holds, "{a} {op:?} {b} {wrap:?} {ty}");
                        }
                    }
                }
            }
        }
    }
}
