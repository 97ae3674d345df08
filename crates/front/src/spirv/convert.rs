//! Conversions that round in a direction or saturate, and bits taken as another type.

use rspirv::spirv::{Decoration, Op};

use super::arithmetic::{integer_of, resized};
use super::translate::{At, Here, Translator};
use super::words::refused;
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, ConvertOp, FloatRule, OpKind, Rounding, Type, UnaryOp, Value};

impl Translator<'_, '_> {
    /// A conversion that is decorated with a direction of rounding or as saturated; nothing if it is none.
    pub(crate) fn ruled_conversion(
        &mut self,
        b: &mut Builder<'_>,
        at: &At<'_, '_>,
        op: Op,
        x: Value,
        to: Type,
    ) -> Result<Option<Value>> {
        let id = at.instruction.word(1)?;
        let rounding = self.module.decorated(id, Decoration::FPRoundingMode).next();
        let rounding = match rounding.and_then(|words| words.first()) {
            None | Some(0) => Rounding::Nearest,
            Some(1) => Rounding::Zero,
            Some(2) => Rounding::Up,
            Some(3) => Rounding::Down,
            Some(other) => return Err(Error::input(format!("{other} is not a rounding mode"))),
        };
        let has_rounding = self
            .module
            .decorated(id, Decoration::FPRoundingMode)
            .next()
            .is_some();
        let saturated = self
            .module
            .decorated(id, Decoration::SaturatedConversion)
            .next()
            .is_some();
        let from = b.kernel.ty(x);
        let convert = match op {
            Op::FConvert => ConvertOp::FloatToFloat,
            Op::ConvertSToF => ConvertOp::SignedToFloat,
            Op::ConvertUToF => ConvertOp::UnsignedToFloat,
            Op::ConvertFToS | Op::ConvertFToU if has_rounding && rounding != Rounding::Zero => {
                let whole = match rounding {
                    Rounding::Nearest => UnaryOp::RoundEven,
                    Rounding::Up => UnaryOp::Ceil,
                    _ => UnaryOp::Floor,
                };
                let whole = b.unary(whole, x);
                return self.unary(b, op, whole, to);
            }
            Op::SConvert | Op::UConvert if saturated && from.bits() > to.bits() => {
                let signed = op == Op::SConvert;
                let (least, most) = match signed {
                    true => (!(to.mask() >> 1), to.mask() >> 1),
                    false => (0, to.mask()),
                };
                let most = b.constant(from, most);
                let made = match signed {
                    true => {
                        let least = b.constant(from, least);
                        let made = b.binary(BinaryOp::MaxS, x, least);
                        b.binary(BinaryOp::MinS, made, most)
                    }
                    false => b.binary(BinaryOp::MinU, x, most),
                };
                return Ok(Some(b.convert(ConvertOp::Truncate, to, made)));
            }
            _ => return Ok(None),
        };
        if rounding == Rounding::Nearest {
            return Ok(None);
        }
        let rule = FloatRule {
            rounding,
            ..FloatRule::EXACT
        };
        Ok(Some(b.ruled(rule, OpKind::Convert(convert, x), to)))
    }

    /// A signed number as the nearest unsigned one of another width, or the other way around.
    pub(crate) fn saturated(
        &mut self,
        b: &mut Builder<'_>,
        x: Value,
        to: Type,
        from_signed: bool,
    ) -> Result<Value> {
        let from = b.kernel.ty(x);
        let zero = b.constant(from, 0);
        let kept = match from_signed {
            true => b.binary(BinaryOp::MaxS, x, zero),
            false => x,
        };
        // As an unsigned number it is at most the largest of the other type.
        let most = match from_signed {
            true => to.mask(),
            false => to.mask() >> 1,
        };
        let kept = match most < from.mask() {
            true => {
                let most = b.constant(from, most);
                b.binary(BinaryOp::MinU, kept, most)
            }
            false => kept,
        };
        Ok(resized(b, kept, to))
    }

    /// `OpBitcast`, also between vectors of different lengths.
    pub(crate) fn bitcast(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Vec<Value>> {
        let x = self.values(b, values, at.operand(2)?)?;
        let to: Vec<Type> = self.module.parts(at.ty()?)?.iter().map(|&(_, ty)| ty).collect();
        if x.len() == to.len() {
            let pairs = x.into_iter().zip(to);
            return pairs.map(|(x, to)| self.exactly(b, x, to)).collect();
        }
        let from_bits: u32 = x.iter().map(|&x| b.kernel.ty(x).bits()).sum();
        let to_bits: u32 = to.iter().map(|to| to.bits()).sum();
        if from_bits != to_bits || x.is_empty() || to.is_empty() {
            return Err(refused(&at.instruction).accepted("two types of the same size"));
        }
        let mut made = Vec::with_capacity(to.len());
        if x.len() > to.len() {
            let each = x.len() / to.len();
            for (parts, to) in x.chunks(each).zip(to) {
                let whole = integer_of(to)?;
                let mut sum = b.constant(whole, 0);
                let mut shift = 0;
                for &part in parts {
                    let ty = b.kernel.ty(part);
                    let part = self.exactly(b, part, integer_of(ty)?)?;
                    let wide = b.convert(ConvertOp::ExtendU, whole, part);
                    let count = b.constant(whole, shift);
                    let own = b.binary(BinaryOp::Shl, wide, count);
                    sum = b.binary(BinaryOp::Or, sum, own);
                    shift += u64::from(ty.bits());
                }
                made.push(self.exactly(b, sum, to)?);
            }
            return Ok(made);
        }
        let each = to.len() / x.len();
        for (x, to) in x.into_iter().zip(to.chunks(each)) {
            let whole = integer_of(b.kernel.ty(x))?;
            let x = self.exactly(b, x, whole)?;
            let mut shift = 0;
            for &to in to {
                let count = b.constant(whole, shift);
                let own = b.binary(BinaryOp::ShrU, x, count);
                let own = b.convert(ConvertOp::Truncate, integer_of(to)?, own);
                made.push(self.exactly(b, own, to)?);
                shift += u64::from(to.bits());
            }
        }
        Ok(made)
    }
}
