//! Numbers: arithmetic, comparisons, bits, selections.

use rspirv::spirv::Op;

use super::translate::{Here, Translator};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, NoWrapOp, Type, UnaryOp, Value, Wrap};
use crate::math::Function;

impl Translator<'_, '_> {
    /// An integer sum, difference or product that the module says does not wrap.
    pub(crate) fn no_wrap(
        &mut self,
        b: &mut Builder<'_>,
        op: Op,
        (signed, unsigned): (bool, bool),
        x: Value,
        y: Value,
    ) -> Option<Value> {
        let wrap = match (signed, unsigned) {
            (true, true) => Wrap::Neither,
            (true, false) => Wrap::NotSigned,
            (false, true) => Wrap::NotUnsigned,
            (false, false) => return None,
        };
        let op = match op {
            Op::IAdd => NoWrapOp::Add,
            Op::ISub => NoWrapOp::Sub,
            Op::IMul => NoWrapOp::Mul,
            _ => return None,
        };
        let made = b.no_wrap(op, wrap, x, y);
        self.note_product(b, op == NoWrapOp::Mul, made, x, y);
        Some(made)
    }

    /// Remembers that a number is another one times a constant.
    fn note_product(&mut self, b: &Builder<'_>, is_product: bool, made: Value, x: Value, y: Value) {
        if !is_product || b.kernel.ty(made) != Type::I64 || b.kernel.as_constant(made).is_some() {
            return;
        }
        let factor = |value: Value| {
            let bits = b.kernel.as_constant(value)?;
            u32::try_from(bits).ok().filter(|&factor| factor > 0)
        };
        match (factor(x), factor(y)) {
            (None, Some(factor)) => self.shapes.note_scaled(made, x, factor, 0),
            (Some(factor), None) => self.shapes.note_scaled(made, y, factor, 0),
            _ => {}
        }
    }

    /// One operand; nothing if this is no such instruction.
    pub(crate) fn unary(&mut self, b: &mut Builder<'_>, op: Op, x: Value, to: Type) -> Result<Option<Value>> {
        let ty = b.kernel.ty(x);
        Ok(Some(match op {
            Op::SNegate => {
                let zero = b.constant(ty, 0);
                b.sub(zero, x)
            }
            Op::Not => b.unary(UnaryOp::Not, x),
            Op::LogicalNot => {
                let yes = b.bool(true);
                b.binary(BinaryOp::Xor, x, yes)
            }
            Op::BitCount => b.unary(UnaryOp::CountOnes, x),
            Op::BitReverse => b.unary(UnaryOp::ReverseBits, x),
            Op::FNegate => b.unary(UnaryOp::FNeg, x),
            Op::IsNan => b.compare(CompareOp::FUnordered, x, x),
            Op::IsInf | Op::IsFinite => {
                let magnitude = b.unary(UnaryOp::FAbs, x);
                let infinity = infinity(b, ty);
                match op {
                    Op::IsInf => b.compare(CompareOp::FEq, magnitude, infinity),
                    _ => b.compare(CompareOp::FLt, magnitude, infinity),
                }
            }
            Op::IsNormal => {
                let magnitude = b.unary(UnaryOp::FAbs, x);
                let (infinity, least) = (infinity(b, ty), least_normal(b, ty));
                let below = b.compare(CompareOp::FLt, magnitude, infinity);
                let above = b.compare(CompareOp::FLe, least, magnitude);
                b.and(below, above)
            }
            Op::SignBitSet => {
                let integer = integer_of(ty)?;
                let bits = b.convert(ConvertOp::Bits, integer, x);
                let zero = b.constant(integer, 0);
                b.compare(CompareOp::LtS, bits, zero)
            }
            Op::UConvert if ty.bits() < to.bits() => b.convert(ConvertOp::ExtendU, to, x),
            Op::SConvert if ty.bits() < to.bits() => b.convert(ConvertOp::ExtendS, to, x),
            Op::UConvert | Op::SConvert if ty.bits() > to.bits() => match self.narrow.get(&x) {
                Some(&narrow) if to == Type::I32 => narrow,
                _ => b.convert(ConvertOp::Truncate, to, x),
            },
            Op::UConvert | Op::SConvert => x,
            Op::FConvert => b.convert(ConvertOp::FloatToFloat, to, x),
            Op::ConvertFToU => b.convert(ConvertOp::FloatToUnsigned, to, x),
            Op::ConvertFToS => b.convert(ConvertOp::FloatToSigned, to, x),
            Op::ConvertSToF => b.convert(ConvertOp::SignedToFloat, to, x),
            Op::ConvertUToF => b.convert(ConvertOp::UnsignedToFloat, to, x),
            Op::SatConvertSToU | Op::SatConvertUToS => {
                return self.saturated(b, x, to, op == Op::SatConvertSToU).map(Some);
            }
            Op::ConvertPtrToU => {
                let bits = b.convert(ConvertOp::Bits, Type::I64, x);
                match to {
                    Type::I64 => bits,
                    to => b.convert(ConvertOp::Truncate, to, bits),
                }
            }
            Op::ConvertUToPtr => {
                let wide = match ty {
                    Type::I64 => x,
                    _ => b.convert(ConvertOp::ExtendU, Type::I64, x),
                };
                b.convert(ConvertOp::Bits, to, wide)
            }
            Op::PtrCastToGeneric => self.exactly(b, x, to)?,
            Op::GenericCastToPtr => self.exactly(b, x, to)?,
            _ => return Ok(None),
        }))
    }

    /// Two operands; nothing if this is no such instruction.
    pub(crate) fn binary(
        &mut self,
        b: &mut Builder<'_>,
        op: Op,
        x: Value,
        y: Value,
    ) -> Result<Option<Value>> {
        let (x, y) = match (b.kernel.ty(x), b.kernel.ty(y)) {
            // One may be known better than the other.
            (Type::Ptr(one), Type::Ptr(other)) if one != other => {
                let generic = Type::Ptr(crate::ir::Space::Generic);
                (self.exactly(b, x, generic)?, self.exactly(b, y, generic)?)
            }
            _ => (x, y),
        };
        if let Some(simple) = simple(op) {
            let made = b.binary(simple, x, y);
            self.note_product(b, simple == BinaryOp::Mul, made, x, y);
            return Ok(Some(made));
        }
        if let Some((compare, swaps, negates)) = comparison(op) {
            let (x, y) = if swaps { (y, x) } else { (x, y) };
            let made = b.compare(compare, x, y);
            return Ok(Some(match negates {
                true => {
                    let yes = b.bool(true);
                    b.binary(BinaryOp::Xor, made, yes)
                }
                false => made,
            }));
        }
        Ok(Some(match op {
            Op::ShiftLeftLogical | Op::ShiftRightLogical | Op::ShiftRightArithmetic => {
                self.shift(b, op, x, y)
            }
            Op::SMod => {
                // The sign of the divisor.
                let ty = b.kernel.ty(x);
                let zero = b.constant(ty, 0);
                let rest = b.binary(BinaryOp::RemS, x, y);
                let signs = b.binary(BinaryOp::Xor, rest, y);
                let differ = b.compare(CompareOp::LtS, signs, zero);
                let some = b.compare(CompareOp::Ne, rest, zero);
                let corrects = b.and(differ, some);
                let sum = b.add(rest, y);
                b.select(corrects, sum, rest)
            }
            Op::FRem if matches!(b.kernel.ty(x), Type::F32 | Type::F64) => {
                self.is_exact = true;
                Function::Rem.emit(b, &[x, y])
            }
            Op::LogicalEqual => {
                let differ = b.binary(BinaryOp::Xor, x, y);
                let yes = b.bool(true);
                b.binary(BinaryOp::Xor, differ, yes)
            }
            Op::LessOrGreater | Op::FOrdNotEqual => {
                let less = b.compare(CompareOp::FLt, x, y);
                let greater = b.compare(CompareOp::FLt, y, x);
                b.binary(BinaryOp::Or, less, greater)
            }
            Op::Ordered => {
                let unordered = b.compare(CompareOp::FUnordered, x, y);
                let yes = b.bool(true);
                b.binary(BinaryOp::Xor, unordered, yes)
            }
            Op::FUnordEqual => {
                let unordered = b.compare(CompareOp::FUnordered, x, y);
                let equal = b.compare(CompareOp::FEq, x, y);
                b.binary(BinaryOp::Or, unordered, equal)
            }
            _ => return Ok(None),
        }))
    }

    /// A shift: counts are taken as OpenCL takes them, by their low bits, where the module leaves them open.
    fn shift(&mut self, b: &mut Builder<'_>, op: Op, x: Value, count: Value) -> Value {
        let ty = b.kernel.ty(x);
        let count = resized(b, count, ty);
        let code = match op {
            Op::ShiftLeftLogical => BinaryOp::Shl,
            Op::ShiftRightLogical => BinaryOp::ShrU,
            _ => BinaryOp::ShrS,
        };
        let made = b.binary(code, x, count);
        if let (BinaryOp::Shl, Type::I64, Some(bits)) = (code, ty, b.kernel.as_constant(count))
            && bits < 31
            && b.kernel.as_constant(made).is_none()
        {
            self.shapes.note_scaled(made, x, 1 << bits, 0);
        }
        made
    }

    /// `OpSelect`: of whole values, or part by part.
    pub(super) fn select(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Vec<Value>> {
        let cond = self.values(b, values, at.operand(2)?)?;
        let x = self.values(b, values, at.operand(3)?)?;
        let y = self.values(b, values, at.operand(4)?)?;
        if x.len() != y.len() || !(cond.len() == 1 || cond.len() == x.len()) {
            return Err(Error::input("its operands have different numbers of parts"));
        }
        let mut made = Vec::with_capacity(x.len());
        for part in 0..x.len() {
            let cond = if cond.len() == 1 { cond[0] } else { cond[part] };
            let (x, y) = (x[part], y[part]);
            let (x, y) = match (b.kernel.ty(x), b.kernel.ty(y)) {
                (Type::Ptr(one), Type::Ptr(other)) if one != other => {
                    let generic = Type::Ptr(crate::ir::Space::Generic);
                    (self.exactly(b, x, generic)?, self.exactly(b, y, generic)?)
                }
                _ => (x, y),
            };
            made.push(b.select(cond, x, y));
        }
        Ok(made)
    }

    /// What makes one number of a vector, or multiplies one.
    pub(crate) fn of_vectors(&mut self, (b, values, at): Here<'_, '_, '_>, op: Op) -> Result<Vec<Value>> {
        let x = self.values(b, values, at.operand(2)?)?;
        let none = || Error::input("a vector is expected here");
        Ok(match op {
            Op::Any | Op::All => {
                let code = if op == Op::Any {
                    BinaryOp::Or
                } else {
                    BinaryOp::And
                };
                let together = x.into_iter().reduce(|all, one| b.binary(code, all, one));
                vec![together.ok_or_else(none)?]
            }
            Op::VectorTimesScalar => {
                let factor = self.value(b, values, at.operand(3)?)?;
                x.into_iter()
                    .map(|one| b.binary(BinaryOp::FMul, one, factor))
                    .collect()
            }
            _ => {
                let y = self.values(b, values, at.operand(3)?)?;
                vec![self.dot(b, &x, &y).ok_or_else(none)?]
            }
        })
    }

    /// The sum of products, from the first on.
    pub(crate) fn dot(&mut self, b: &mut Builder<'_>, x: &[Value], y: &[Value]) -> Option<Value> {
        let mut sum = None;
        for (&x, &y) in x.iter().zip(y) {
            let product = b.binary(BinaryOp::FMul, x, y);
            sum = Some(match sum {
                Some(sum) => b.binary(BinaryOp::FAdd, sum, product),
                None => product,
            });
        }
        sum
    }

    /// A sum with its carry, a difference with its borrow, a product of twice the width: two results.
    pub(crate) fn extended(&mut self, (b, values, at): Here<'_, '_, '_>, op: Op) -> Result<Vec<Value>> {
        let x = self.values(b, values, at.operand(2)?)?;
        let y = self.values(b, values, at.operand(3)?)?;
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (&x, &y) in x.iter().zip(&y) {
            let ty = b.kernel.ty(x);
            let one = b.constant(ty, 1);
            let zero = b.constant(ty, 0);
            let (own, other) = match op {
                Op::IAddCarry => {
                    let sum = b.add(x, y);
                    let carries = b.compare(CompareOp::LtU, sum, x);
                    (sum, b.select(carries, one, zero))
                }
                Op::ISubBorrow => {
                    let borrows = b.compare(CompareOp::LtU, x, y);
                    (b.sub(x, y), b.select(borrows, one, zero))
                }
                Op::UMulExtended => (b.mul(x, y), b.binary(BinaryOp::MulHighU, x, y)),
                _ => (b.mul(x, y), b.binary(BinaryOp::MulHighS, x, y)),
            };
            low.push(own);
            high.push(other);
        }
        low.extend(high);
        Ok(low)
    }

    /// Some bits of a number: taken out, or put in.
    pub(crate) fn bit_field(&mut self, (b, values, at): Here<'_, '_, '_>, op: Op) -> Result<Vec<Value>> {
        let base = self.values(b, values, at.operand(2)?)?;
        let inserted = match op {
            Op::BitFieldInsert => Some(self.values(b, values, at.operand(3)?)?),
            _ => None,
        };
        let next = if inserted.is_some() { 4 } else { 3 };
        let from = self.value(b, values, at.operand(next)?)?;
        let count = self.value(b, values, at.operand(next + 1)?)?;
        if inserted
            .as_ref()
            .is_some_and(|inserted| inserted.len() != base.len())
        {
            return Err(Error::input("its operands have different numbers of parts"));
        }
        let mut made = Vec::with_capacity(base.len());
        for (part, &base) in base.iter().enumerate() {
            let ty = b.kernel.ty(base);
            let (from, count) = (resized(b, from, ty), resized(b, count, ty));
            let width = b.constant(ty, u64::from(ty.bits()));
            let all = b.constant(ty, ty.mask());
            let above = b.binary(BinaryOp::Sub, width, count);
            match &inserted {
                Some(inserted) => {
                    // A mask of `count` bits: none if there are none.
                    let mask = b.binary(BinaryOp::ShrU, all, above);
                    let mask = b.binary(BinaryOp::Shl, mask, from);
                    let kept = b.unary(UnaryOp::Not, mask);
                    let kept = b.and(base, kept);
                    let own = b.binary(BinaryOp::Shl, inserted[part], from);
                    let own = b.and(own, mask);
                    made.push(b.binary(BinaryOp::Or, kept, own));
                }
                None => {
                    let top = b.binary(BinaryOp::Sub, above, from);
                    let up = b.binary(BinaryOp::Shl, base, top);
                    let code = match op {
                        Op::BitFieldSExtract => BinaryOp::ShrS,
                        _ => BinaryOp::ShrU,
                    };
                    let field = b.binary(code, up, above);
                    let zero = b.constant(ty, 0);
                    let none = b.compare(CompareOp::Eq, count, zero);
                    made.push(b.select(none, zero, field));
                }
            }
        }
        Ok(made)
    }
}

/// The integer type of the width of a type.
pub(super) fn integer_of(ty: Type) -> Result<Type> {
    Ok(match ty.bits() {
        8 => Type::I8,
        16 => Type::I16,
        32 => Type::I32,
        64 => Type::I64,
        _ => return Err(Error::input("a truth value is used as a number")),
    })
}

/// An unsigned integer with another width.
pub(super) fn resized(b: &mut Builder<'_>, x: Value, to: Type) -> Value {
    let from = b.kernel.ty(x);
    match from.bits().cmp(&to.bits()) {
        std::cmp::Ordering::Less => b.convert(ConvertOp::ExtendU, to, x),
        std::cmp::Ordering::Equal => x,
        std::cmp::Ordering::Greater => b.convert(ConvertOp::Truncate, to, x),
    }
}

fn infinity(b: &mut Builder<'_>, ty: Type) -> Value {
    let bits = match ty {
        Type::F16 => 0x7c00,
        Type::Bf16 => 0x7f80,
        Type::F64 => f64::INFINITY.to_bits(),
        _ => u64::from(f32::INFINITY.to_bits()),
    };
    b.constant(ty, bits)
}

fn least_normal(b: &mut Builder<'_>, ty: Type) -> Value {
    let bits = match ty {
        Type::F16 => 0x0400,
        Type::Bf16 => 0x0080,
        Type::F64 => f64::MIN_POSITIVE.to_bits(),
        _ => u64::from(f32::MIN_POSITIVE.to_bits()),
    };
    b.constant(ty, bits)
}

/// The operation of the IR that is just this instruction.
fn simple(op: Op) -> Option<BinaryOp> {
    Some(match op {
        Op::IAdd => BinaryOp::Add,
        Op::ISub => BinaryOp::Sub,
        Op::IMul => BinaryOp::Mul,
        Op::UDiv => BinaryOp::DivU,
        Op::SDiv => BinaryOp::DivS,
        Op::UMod => BinaryOp::RemU,
        Op::SRem => BinaryOp::RemS,
        Op::FAdd => BinaryOp::FAdd,
        Op::FSub => BinaryOp::FSub,
        Op::FMul => BinaryOp::FMul,
        Op::FDiv => BinaryOp::FDiv,
        Op::BitwiseAnd | Op::LogicalAnd => BinaryOp::And,
        Op::BitwiseOr | Op::LogicalOr => BinaryOp::Or,
        Op::BitwiseXor | Op::LogicalNotEqual => BinaryOp::Xor,
        _ => return None,
    })
}

/// A comparison, whether its operands change places, and whether its result is negated.
fn comparison(op: Op) -> Option<(CompareOp, bool, bool)> {
    Some(match op {
        Op::IEqual | Op::PtrEqual => (CompareOp::Eq, false, false),
        Op::INotEqual | Op::PtrNotEqual => (CompareOp::Ne, false, false),
        Op::SLessThan => (CompareOp::LtS, false, false),
        Op::SLessThanEqual => (CompareOp::LeS, false, false),
        Op::SGreaterThan => (CompareOp::LtS, true, false),
        Op::SGreaterThanEqual => (CompareOp::LeS, true, false),
        Op::ULessThan => (CompareOp::LtU, false, false),
        Op::ULessThanEqual => (CompareOp::LeU, false, false),
        Op::UGreaterThan => (CompareOp::LtU, true, false),
        Op::UGreaterThanEqual => (CompareOp::LeU, true, false),
        Op::FOrdEqual => (CompareOp::FEq, false, false),
        Op::FUnordNotEqual => (CompareOp::FNe, false, false),
        Op::FOrdLessThan => (CompareOp::FLt, false, false),
        Op::FOrdLessThanEqual => (CompareOp::FLe, false, false),
        Op::FOrdGreaterThan => (CompareOp::FLt, true, false),
        Op::FOrdGreaterThanEqual => (CompareOp::FLe, true, false),
        Op::FUnordLessThan => (CompareOp::FLe, true, true),
        Op::FUnordLessThanEqual => (CompareOp::FLt, true, true),
        Op::FUnordGreaterThan => (CompareOp::FLe, false, true),
        Op::FUnordGreaterThanEqual => (CompareOp::FLt, false, true),
        Op::Unordered => (CompareOp::FUnordered, false, false),
        _ => return None,
    })
}
