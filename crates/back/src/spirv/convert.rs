//! Conversions between types.
//!
//! SPIR-V leaves the conversion of a float beyond an integer's range undefined; the IR clamps it and converts NaN to 0, so
//! results are selected. Integers are converted to halves through binary64, rounded to odd if they do not fit it.

use rspirv::spirv::{Op as Code, Word};

use super::emitter::Emitter;
use crate::ir::{ConvertOp, Space, Type, Value};

impl Emitter<'_> {
    pub(super) fn convert(&mut self, result: Value, op: ConvertOp, a: Value) -> Word {
        let (from, to) = (self.ty(a), self.ty(result));
        let id = self.ty_id(to);
        let x = match op {
            ConvertOp::Bits if !self.nans.of_number(result) => self.seen(a),
            _ => self.id(a),
        };
        match op {
            ConvertOp::ExtendU if from == Type::Bool => {
                let [one, zero] = [1, 0].map(|bit| self.module.constant(to.bits(), bit));
                self.module.ins(Code::Select, id, &[x, one, zero])
            }
            ConvertOp::ExtendU | ConvertOp::Truncate => self.module.ins(Code::UConvert, id, &[x]),
            ConvertOp::ExtendS => self.module.ins(Code::SConvert, id, &[x]),
            ConvertOp::FloatToFloat => self.float_to_float(from, to, x),
            ConvertOp::SignedToFloat => self.integer_to_float(true, from, to, x),
            ConvertOp::UnsignedToFloat => self.integer_to_float(false, from, to, x),
            ConvertOp::FloatToSigned => self.float_to_integer(true, from, to, x),
            ConvertOp::FloatToUnsigned => self.float_to_integer(false, from, to, x),
            ConvertOp::Bits => self.bits(from, to, x),
            ConvertOp::ToGeneric => self.module.ins(Code::PtrCastToGeneric, id, &[x]),
            ConvertOp::FromGeneric => self.module.ins(Code::GenericCastToPtr, id, &[x]),
        }
    }

    fn float_to_float(&mut self, from: Type, to: Type, x: Word) -> Word {
        let id = self.ty_id(to);
        match (from, to) {
            _ if from == to => self.flushed(from, x),
            (Type::F64, Type::F32) => {
                let made = self.module.ins(Code::FConvert, id, &[x]);
                self.flushed(to, made)
            }
            (Type::F32, Type::F64) => {
                let x = self.flushed(from, x);
                self.module.ins(Code::FConvert, id, &[x])
            }
            (Type::F64, _) => self.double_to_half(to, x),
            // A value that becomes a half is not flushed before it is rounded.
            (Type::F32, Type::F16) => self.narrowed(to, x),
            (Type::F32, _) => {
                let x = self.flushed(from, x);
                self.narrowed(to, x)
            }
            // From a half: exact in binary32.
            _ => {
                let wide = self.widened(from, x);
                match to {
                    Type::F32 => self.flushed(to, wide),
                    Type::F64 => self.module.ins(Code::FConvert, id, &[wide]),
                    _ => self.narrowed(to, wide),
                }
            }
        }
    }

    fn integer_to_float(&mut self, signed: bool, from: Type, to: Type, x: Word) -> Word {
        let code = if signed {
            Code::ConvertSToF
        } else {
            Code::ConvertUToF
        };
        if matches!(to, Type::F32 | Type::F64) {
            let id = self.ty_id(to);
            return self.module.ins(code, id, &[x]);
        }
        let double = self.module.float(64);
        let exact = if from == Type::I64 {
            // Both halves are exact in binary64, their sum is not.
            let (int, long) = (self.module.int(32), self.module.int(64));
            let count = self.module.constant(64, 32);
            let shift = if signed {
                Code::ShiftRightArithmetic
            } else {
                Code::ShiftRightLogical
            };
            let high = self.module.ins(shift, long, &[x, count]);
            let high = self.module.ins(code, double, &[high]);
            let scale = self
                .module
                .float_constant(64, f64::from(2.0_f32.powi(32)).to_bits());
            let high = self.module.ins(Code::FMul, double, &[high, scale]);
            let low = self.module.ins(Code::UConvert, int, &[x]);
            let low = self.module.ins(Code::ConvertUToF, double, &[low]);
            self.sum_to_odd(high, low)
        } else {
            self.module.ins(code, double, &[x])
        };
        self.double_to_half(to, exact)
    }

    fn float_to_integer(&mut self, signed: bool, from: Type, to: Type, x: Word) -> Word {
        let (x, wide) = match from {
            Type::F16 | Type::Bf16 => (self.widened(from, x), Type::F32),
            _ => (self.flushed(from, x), from),
        };
        let (id, boolean, bits) = (self.ty_id(to), self.module.boolean(), to.bits());
        let code = if signed {
            Code::ConvertFToS
        } else {
            Code::ConvertFToU
        };
        let (least, beyond, low, high) = match signed {
            true => {
                let half = 2.0_f64.powi(bits as i32 - 1);
                (-half, half, 1 << (bits - 1), to.mask() >> 1)
            }
            false => (0.0, 2.0_f64.powi(bits as i32), 0, to.mask()),
        };
        let number = |emitter: &mut Self, number: f64| match wide {
            Type::F64 => emitter.module.float_constant(64, number.to_bits()),
            _ => emitter
                .module
                .float_constant(32, u64::from((number as f32).to_bits())),
        };
        let (least, beyond) = (number(self, least), number(self, beyond));
        let of_nan = if self.rule.nan_high { 1 << (bits - 1) } else { 0 };
        let [low, high, of_nan] = [low, high, of_nan].map(|number| self.module.constant(bits, number));
        let made = self.module.ins(code, id, &[x]);
        let above = self.module.ins(Code::FOrdGreaterThanEqual, boolean, &[x, beyond]);
        let made = self.module.ins(Code::Select, id, &[above, high, made]);
        let below = self.module.ins(Code::FOrdLessThan, boolean, &[x, least]);
        let made = self.module.ins(Code::Select, id, &[below, low, made]);
        let is_nan = self.module.ins(Code::IsNan, boolean, &[x]);
        self.module.ins(Code::Select, id, &[is_nan, of_nan, made])
    }

    /// The same bits as another type.
    fn bits(&mut self, from: Type, to: Type, x: Word) -> Word {
        let (id, long) = (self.ty_id(to), self.module.int(64));
        let bits = match from {
            Type::Ptr(_) => self.module.ins(Code::ConvertPtrToU, long, &[x]),
            _ => x,
        };
        // Halves are kept as integers.
        let same = |ty: Type| match ty {
            Type::F16 | Type::Bf16 => Type::I16,
            Type::Ptr(_) => Type::I64,
            other => other,
        };
        match to {
            Type::Ptr(Space::Global | Space::Shared | Space::Private | Space::Generic) => {
                let address = match same(from) {
                    Type::I64 => bits,
                    _ => self.module.ins(Code::Bitcast, long, &[bits]),
                };
                self.module.ins(Code::ConvertUToPtr, id, &[address])
            }
            _ if same(from) == same(to) => bits,
            _ => self.module.ins(Code::Bitcast, id, &[bits]),
        }
    }
}
