//! Approximate quotients as the operations that ptxas makes of them, of which the last is a product.
//!
//! ```text
//! div.full.f32 %q, %n, %d;        %big = |%d| > 2^126;           %n and %d times 2^-2 if so
//!                                 %small = |%d| < 2^-126;        %n and %d times 2^24 if so; not with .ftz
//!                                 %q = MUFU.RCP(%d) * %n
//! ```
//!
//! `div.approx` does not look for a large divisor, `rcp.approx` has 1 in the place of `%n`. So do ptxas 12.8 and 13.0 for sm_90.

use crate::ir::{BinaryOp, CompareOp, FloatRule, Kernel, Op, OpKind, Place, Type, UnaryOp, Value};

/// 1, 2^-2 and 2^24 as binary32; the magnitudes between which a divisor is not scaled.
const ONE: u64 = 0x3f80_0000;
const QUARTER: u64 = 0x3e80_0000;
const LARGER: u64 = 0x4b80_0000;
const LARGEST: u64 = 0x7e80_0000;
const SMALLEST: u64 = 0x0080_0000;

/// A quotient that ends in a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quotient {
    /// Nothing for 1.
    numerator: Option<Value>,
    divisor: Value,
    /// Large divisors are scaled.
    is_full: bool,
}

impl Quotient {
    /// What an operation divides, if it ends in a product.
    pub(crate) fn of(kind: &OpKind, rule: FloatRule) -> Option<Quotient> {
        let (numerator, divisor, is_full) = match *kind {
            OpKind::Binary(BinaryOp::ApproximateDiv, x, y) => (Some(x), y, true),
            OpKind::Binary(BinaryOp::ApproximateDivInRange, x, y) => (Some(x), y, false),
            // With `.ftz` it is one instruction.
            OpKind::Unary(UnaryOp::ApproximateReciprocal, x) if !rule.flush => (None, x, true),
            _ => return None,
        };
        Some(Quotient {
            numerator,
            divisor,
            is_full,
        })
    }

    /// The two factors of its product, as operations in front of it.
    pub(crate) fn written_out(
        self,
        kernel: &mut Kernel,
        ops: &mut Vec<Op>,
        place: Place,
        rule: FloatRule,
    ) -> (Value, Value) {
        let mut writer = Writer { kernel, ops, place };
        let mut numerator = match self.numerator {
            Some(numerator) => numerator,
            None => writer.kernel.constant(Type::F32, ONE),
        };
        let mut divisor = self.divisor;
        let magnitude = writer.add(OpKind::Unary(UnaryOp::FAbs, divisor).ruled(rule), Type::F32);
        let scales = [
            (self.is_full, true, LARGEST, QUARTER),
            (!rule.flush, false, SMALLEST, LARGER),
        ];
        for (_, is_largest, bound, factor) in scales.into_iter().filter(|(applies, ..)| *applies) {
            let bound = writer.kernel.constant(Type::F32, bound);
            let (less, more) = match is_largest {
                true => (bound, magnitude),
                false => (magnitude, bound),
            };
            let is_beyond = writer.add(OpKind::Compare(CompareOp::FLt, less, more), Type::Bool);
            let factor = writer.kernel.constant(Type::F32, factor);
            for value in [&mut numerator, &mut divisor] {
                let scaled = OpKind::Binary(BinaryOp::FMul, *value, factor).ruled(rule);
                let scaled = writer.add(scaled, Type::F32);
                *value = writer.add(OpKind::Select(is_beyond, scaled, *value), Type::F32);
            }
        }
        let reciprocal = OpKind::Unary(UnaryOp::ApproximateReciprocal, divisor).ruled(FloatRule::FLUSHED);
        (writer.add(reciprocal, Type::F32), numerator)
    }
}

struct Writer<'w> {
    kernel: &'w mut Kernel,
    ops: &'w mut Vec<Op>,
    place: Place,
}

impl Writer<'_> {
    fn add(&mut self, kind: OpKind, ty: Type) -> Value {
        let result = self.kernel.value(ty);
        self.ops.push(Op::new(kind, vec![result], self.place));
        result
    }
}
