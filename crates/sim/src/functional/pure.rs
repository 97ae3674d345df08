//! Pure operations on all lanes at once.
//!
//! [`eval`] defines their results. The frequent ones have loops of their own, which the compiler vectorises; the others call
//! [`eval`] for each lane. Every lane is computed, active or not: the operations are total, and a value is only used where it
//! was defined.

use super::lane_op::LaneOpKind;
use super::lanes::{LANES, Lanes, Registers, Slot};
use crate::ir::eval::{self, ruled};
use crate::ir::{BinaryOp, CompareOp, ConvertOp, FloatRule, Type, UnaryOp};

/// Computes a pure operation, but for those that ask about the work-item or its arrays. False if the
/// operation is none of these, and nothing was done.
pub(super) fn execute(kind: &LaneOpKind, registers: &mut Registers) -> bool {
    match *kind {
        LaneOpKind::Unary { op, ty, to, a } => unary(registers, op, ty, to, a),
        LaneOpKind::Binary { op, ty, to, a, b } => binary(registers, op, ty, to, a, b),
        LaneOpKind::NoWrap { op, ty, to, a, b, .. } => binary(registers, op.into(), ty, to, a, b),
        LaneOpKind::Fma { ty, to, a, b, c } => fma(registers, ty, to, [a, b, c]),
        LaneOpKind::Compare { op, ty, to, a, b } => compare(registers, op, ty, to, a, b),
        LaneOpKind::Select { to, cond, a, b } => select(registers, to, cond, a, b),
        LaneOpKind::Convert {
            op,
            from,
            into,
            to,
            a,
        } if !matches!(op, ConvertOp::ToGeneric | ConvertOp::FromGeneric) => {
            convert(registers, op, from, into, to, a);
        }
        LaneOpKind::Address {
            to,
            base,
            index,
            scale,
            offset,
        } => map2(registers, to, base, index, |base, index| {
            eval::address(base, index, scale, offset)
        }),
        LaneOpKind::Join { to, ref tokens } => {
            let mut latest: Lanes = [0; LANES];
            for &token in tokens {
                for (latest, &token) in latest.iter_mut().zip(registers.get(token)) {
                    *latest = token.max(*latest);
                }
            }
            registers.set(to, &latest);
        }
        _ => return false,
    }
    true
}

/// As [`execute`], of a float operation with a rule.
pub(super) fn execute_ruled(rule: FloatRule, kind: &LaneOpKind, registers: &mut Registers) {
    match *kind {
        LaneOpKind::Unary { op, ty, to, a } => map1(registers, to, a, |a| ruled::unary(rule, op, ty, a)),
        LaneOpKind::Binary { op, ty, to, a, b } => match (op, ty, rule) {
            (BinaryOp::FAdd, Type::F32, FloatRule::FLUSHED) => {
                flushed_singles(registers, to, a, b, |a, b| a + b)
            }
            (BinaryOp::FSub, Type::F32, FloatRule::FLUSHED) => {
                flushed_singles(registers, to, a, b, |a, b| a - b)
            }
            (BinaryOp::FMul, Type::F32, FloatRule::FLUSHED) => {
                // Below this a product is below the least normal number when it is rounded to 24 bits.
                let limit = f64::from(f32::MIN_POSITIVE) * (1.0 - f64::EPSILON * 2.0f64.powi(27));
                flushed_singles(registers, to, a, b, |a, b| {
                    let product = a * b;
                    match (f64::from(a) * f64::from(b)).abs() < limit {
                        true => 0.0f32.copysign(product),
                        false => product,
                    }
                })
            }
            _ => map2(registers, to, a, b, |a, b| ruled::binary(rule, op, ty, a, b)),
        },
        LaneOpKind::Fma { ty, to, a, b, c } => {
            registers.map(to, [a, b, c], |[a, b, c]| ruled::fma(rule, ty, a, b, c));
        }
        LaneOpKind::Compare { op, ty, to, a, b } => map2(registers, to, a, b, |a, b| {
            u64::from(ruled::compare(rule, op, ty, a, b))
        }),
        LaneOpKind::Convert {
            op,
            from,
            into,
            to,
            a,
        } => map1(registers, to, a, |a| ruled::convert(rule, op, from, into, a)),
        // Nothing else has a rule.
        _ => {
            execute(kind, registers);
        }
    }
}

/// The most frequent ones, which become vector code.
#[inline(always)]
fn flushed_singles(registers: &mut Registers, to: Slot, a: Slot, b: Slot, f: impl Fn(f32, f32) -> f32) {
    let flushed = |bits| ruled::flushed(Type::F32, bits);
    map2(registers, to, a, b, |a, b| {
        flushed(single(f(as_single(flushed(a)), as_single(flushed(b)))))
    });
}

#[inline(always)]
fn map1(registers: &mut Registers, to: Slot, a: Slot, f: impl Fn(u64) -> u64) {
    registers.map(to, [a], |[a]| f(a));
}

#[inline(always)]
fn map2(registers: &mut Registers, to: Slot, a: Slot, b: Slot, f: impl Fn(u64, u64) -> u64) {
    registers.map(to, [a, b], |[a, b]| f(a, b));
}

/// A binary32 result: its bits, or the canonical NaN.
#[inline(always)]
fn single(x: f32) -> u64 {
    u64::from(if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() })
}

/// A binary64 result: its bits, or the canonical NaN.
#[inline(always)]
fn double(x: f64) -> u64 {
    if x.is_nan() {
        0x7ff8_0000_0000_0000
    } else {
        x.to_bits()
    }
}

#[inline(always)]
fn as_single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

#[inline(always)]
fn as_double(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn unary(registers: &mut Registers, op: UnaryOp, ty: Type, to: Slot, a: Slot) {
    match (op, ty) {
        (UnaryOp::Not, _) => map1(registers, to, a, |a| !a & ty.mask()),
        (UnaryOp::Sqrt, Type::F32) => map1(registers, to, a, |a| single(as_single(a).sqrt())),
        (UnaryOp::Sqrt, Type::F64) => map1(registers, to, a, |a| double(as_double(a).sqrt())),
        (UnaryOp::NormalReciprocal, _) => {
            map1(registers, to, a, |a| {
                single(eval::normal_reciprocal(as_single(a)))
            });
        }
        (UnaryOp::FAbs, Type::F32) => map1(registers, to, a, |a| a & 0x7fff_ffff),
        (UnaryOp::FAbs, Type::F64) => map1(registers, to, a, |a| a & (u64::MAX >> 1)),
        (UnaryOp::FNeg, Type::F32) => map1(registers, to, a, |a| a ^ 1 << 31),
        (UnaryOp::FNeg, Type::F64) => map1(registers, to, a, |a| a ^ 1 << 63),
        _ => map1(registers, to, a, |a| eval::unary(op, ty, a)),
    }
}

fn binary(registers: &mut Registers, op: BinaryOp, ty: Type, to: Slot, a: Slot, b: Slot) {
    let mask = ty.mask();
    match (op, ty) {
        (BinaryOp::Add, _) => map2(registers, to, a, b, |a, b| a.wrapping_add(b) & mask),
        (BinaryOp::Sub, _) => map2(registers, to, a, b, |a, b| a.wrapping_sub(b) & mask),
        (BinaryOp::Mul, Type::I32) => {
            map2(registers, to, a, b, |a, b| {
                u64::from((a as u32).wrapping_mul(b as u32))
            });
        }
        (BinaryOp::Mul, _) => map2(registers, to, a, b, |a, b| a.wrapping_mul(b) & mask),
        (BinaryOp::And, _) => map2(registers, to, a, b, |a, b| a & b),
        (BinaryOp::Or, _) => map2(registers, to, a, b, |a, b| a | b),
        (BinaryOp::Xor, _) => map2(registers, to, a, b, |a, b| a ^ b),
        (BinaryOp::Shl, _) => {
            let width = u64::from(ty.bits());
            map2(registers, to, a, b, |a, b| {
                let shifted = (a << (b & 63)) & mask;
                if b < width { shifted } else { 0 }
            });
        }
        (BinaryOp::ShrU, _) => {
            let width = u64::from(ty.bits());
            map2(registers, to, a, b, |a, b| {
                let shifted = a >> (b & 63);
                if b < width { shifted } else { 0 }
            });
        }
        (BinaryOp::MinU, _) => map2(registers, to, a, b, |a, b| a.min(b)),
        (BinaryOp::MaxU, _) => map2(registers, to, a, b, |a, b| a.max(b)),
        (BinaryOp::MinS, Type::I32) => {
            map2(registers, to, a, b, |a, b| {
                u64::from((a as i32).min(b as i32) as u32)
            });
        }
        (BinaryOp::MaxS, Type::I32) => {
            map2(registers, to, a, b, |a, b| {
                u64::from((a as i32).max(b as i32) as u32)
            });
        }
        (BinaryOp::FAdd, Type::F32) => {
            map2(registers, to, a, b, |a, b| single(as_single(a) + as_single(b)));
        }
        (BinaryOp::FSub, Type::F32) => {
            map2(registers, to, a, b, |a, b| single(as_single(a) - as_single(b)));
        }
        (BinaryOp::FMul, Type::F32) => {
            map2(registers, to, a, b, |a, b| single(as_single(a) * as_single(b)));
        }
        (BinaryOp::FDiv, Type::F32) => {
            map2(registers, to, a, b, |a, b| single(as_single(a) / as_single(b)));
        }
        (BinaryOp::FAdd, Type::F64) => {
            map2(registers, to, a, b, |a, b| double(as_double(a) + as_double(b)));
        }
        (BinaryOp::FSub, Type::F64) => {
            map2(registers, to, a, b, |a, b| double(as_double(a) - as_double(b)));
        }
        (BinaryOp::FMul, Type::F64) => {
            map2(registers, to, a, b, |a, b| double(as_double(a) * as_double(b)));
        }
        (BinaryOp::FDiv, Type::F64) => {
            map2(registers, to, a, b, |a, b| double(as_double(a) / as_double(b)));
        }
        _ => map2(registers, to, a, b, |a, b| eval::binary(op, ty, a, b)),
    }
}

fn fma(registers: &mut Registers, ty: Type, to: Slot, operands: [Slot; 3]) {
    registers.map(to, operands, |[a, b, c]| eval::fma(ty, a, b, c));
}

fn compare(registers: &mut Registers, op: CompareOp, ty: Type, to: Slot, a: Slot, b: Slot) {
    match (op, ty) {
        (CompareOp::Eq, _) => map2(registers, to, a, b, |a, b| u64::from(a == b)),
        (CompareOp::Ne, _) => map2(registers, to, a, b, |a, b| u64::from(a != b)),
        (CompareOp::LtU, _) => map2(registers, to, a, b, |a, b| u64::from(a < b)),
        (CompareOp::LeU, _) => map2(registers, to, a, b, |a, b| u64::from(a <= b)),
        (CompareOp::LtS, Type::I32) => {
            map2(registers, to, a, b, |a, b| u64::from((a as i32) < b as i32));
        }
        (CompareOp::LeS, Type::I32) => {
            map2(registers, to, a, b, |a, b| u64::from(a as i32 <= b as i32));
        }
        (CompareOp::LtS, Type::I64) => {
            map2(registers, to, a, b, |a, b| u64::from((a as i64) < b as i64));
        }
        (CompareOp::LeS, Type::I64) => {
            map2(registers, to, a, b, |a, b| u64::from(a as i64 <= b as i64));
        }
        (CompareOp::FLt, Type::F32) => {
            map2(registers, to, a, b, |a, b| u64::from(as_single(a) < as_single(b)));
        }
        (CompareOp::FLt, Type::F64) => {
            map2(registers, to, a, b, |a, b| u64::from(as_double(a) < as_double(b)));
        }
        _ => map2(registers, to, a, b, |a, b| u64::from(eval::compare(op, ty, a, b))),
    }
}

fn select(registers: &mut Registers, to: Slot, cond: Slot, a: Slot, b: Slot) {
    registers.map(to, [cond, a, b], |[cond, a, b]| if cond != 0 { a } else { b });
}

fn convert(registers: &mut Registers, op: ConvertOp, from: Type, into: Type, to: Slot, a: Slot) {
    let mask = into.mask();
    match (op, from, into) {
        (ConvertOp::ExtendU | ConvertOp::Truncate | ConvertOp::Bits, ..) => {
            map1(registers, to, a, |a| a & mask);
        }
        (ConvertOp::ExtendS, ..) => map1(registers, to, a, |a| eval::signed(from, a) as u64 & mask),
        (ConvertOp::FloatToFloat, Type::F32, Type::F64) => {
            map1(registers, to, a, |a| double(f64::from(as_single(a))));
        }
        (ConvertOp::FloatToFloat, Type::F64, Type::F32) => {
            map1(registers, to, a, |a| single(as_double(a) as f32));
        }
        (ConvertOp::SignedToFloat, Type::I32, Type::F32) => {
            map1(registers, to, a, |a| u64::from((a as i32 as f32).to_bits()));
        }
        (ConvertOp::SignedToFloat, Type::I32, Type::F64) => {
            map1(registers, to, a, |a| f64::from(a as i32).to_bits());
        }
        _ => map1(registers, to, a, |a| eval::convert(op, from, into, a)),
    }
}

#[cfg(test)]
mod tests;
