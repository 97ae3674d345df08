//! Conversions between types.
//!
//! PTX clamps a float that does not fit an integer, as the IR does, and takes NaN to 0 only between
//! binary32 and integers of at most 32 bits; elsewhere NaN is selected away, unless the rule is PTX's own.

use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::{ConvertOp, FloatRule, Space, Type, Value};

impl Emitter<'_> {
    pub(super) fn convert(&mut self, result: Value, op: ConvertOp, a: Value) {
        let (from, to) = (self.ty(a), self.ty(result));
        let r = self.register(result);
        let x = self.operand(a);
        match op {
            ConvertOp::ExtendU => self.extend_unsigned(&r, from, to, &x),
            ConvertOp::ExtendS => self.extend_signed(&r, from, to, x),
            ConvertOp::Truncate => self.truncate(&r, from, to, &x),
            ConvertOp::FloatToFloat => self.float_to_float(&r, from, to, &x),
            ConvertOp::SignedToFloat => self.integer_to_float(&r, true, from, to, x),
            ConvertOp::UnsignedToFloat => self.integer_to_float(&r, false, from, to, x),
            ConvertOp::FloatToSigned => self.float_to_integer(&r, true, from, to, &x),
            ConvertOp::FloatToUnsigned => self.float_to_integer(&r, false, from, to, &x),
            ConvertOp::Bits => self.bits(result, &r, a, &x),
            ConvertOp::ToGeneric => match from.space() {
                Some(Space::Generic) | None => self.ins(format!("mov.b64 {r}, {x}")),
                Some(space) => {
                    let wide = self.wide_address(space, &x);
                    self.ins(format!("cvta.{}.u64 {r}, {wide}", space_name(space)));
                }
            },
            ConvertOp::FromGeneric => match to.space() {
                Some(Space::Generic) | None => self.ins(format!("mov.b64 {r}, {x}")),
                Some(Space::Global) => self.ins(format!("cvta.to.global.u64 {r}, {x}")),
                Some(space) => {
                    let wide = self.temporary(Class::B64);
                    self.ins(format!("cvta.to.{}.u64 {wide}, {x}", space_name(space)));
                    self.ins(format!("cvt.u32.u64 {r}, {wide}"));
                }
            },
        }
    }

    /// An address as 64 bits.
    fn wide_address(&mut self, space: Space, x: &str) -> String {
        if matches!(space, Space::Global | Space::Generic) {
            return x.to_owned();
        }
        let wide = self.temporary(Class::B64);
        self.ins(format!("cvt.u64.u32 {wide}, {x}"));
        wide
    }

    fn extend_unsigned(&mut self, r: &str, from: Type, to: Type, x: &str) {
        match (from, Class::of(to)) {
            (Type::Bool, Some(Class::B64)) => self.ins(format!("selp.b64 {r}, 1, 0, {x}")),
            (Type::Bool, _) => self.ins(format!("selp.b32 {r}, 1, 0, {x}")),
            (Type::I64, _) => self.ins(format!("mov.b64 {r}, {x}")),
            (_, Some(Class::B64)) => self.ins(format!("cvt.u64.u32 {r}, {x}")),
            // Narrow integers are kept zero-extended.
            _ => self.ins(format!("mov.b32 {r}, {x}")),
        }
    }

    fn extend_signed(&mut self, r: &str, from: Type, to: Type, x: String) {
        if from == Type::Bool {
            let class = if to == Type::I64 { "b64" } else { "b32" };
            self.ins(format!("selp.{class} {r}, -1, 0, {x}"));
            self.mask(to, r);
            return;
        }
        let x = self.sign_extended(from, x);
        if to == Type::I64 {
            let name = if from == Type::I64 {
                "mov.b64"
            } else {
                "cvt.s64.s32"
            };
            self.ins(format!("{name} {r}, {x}"));
        } else {
            self.ins(format!("mov.b32 {r}, {x}"));
            self.mask(to, r);
        }
    }

    fn truncate(&mut self, r: &str, from: Type, to: Type, x: &str) {
        let narrow = if from == Type::I64 && to != Type::I64 {
            let low = if to == Type::Bool {
                self.temporary(Class::B32)
            } else {
                r.to_owned()
            };
            self.ins(format!("cvt.u32.u64 {low}, {x}"));
            low
        } else if to == Type::Bool {
            x.to_owned()
        } else {
            let name = if to == Type::I64 { "mov.b64" } else { "mov.b32" };
            self.ins(format!("{name} {r}, {x}"));
            r.to_owned()
        };
        if to == Type::Bool {
            let bit = self.temporary(Class::B32);
            self.ins(format!("and.b32 {bit}, {narrow}, 1"));
            self.ins(format!("setp.ne.b32 {r}, {bit}, 0"));
        } else {
            self.mask(to, r);
        }
    }

    fn float_to_float(&mut self, r: &str, from: Type, to: Type, x: &str) {
        if self.rule != FloatRule::EXACT {
            // A ruled conversion is one instruction, as it was read.
            let rounding = match from.bits() > to.bits() {
                true => format!(".{}", self.rounding()),
                false => String::new(),
            };
            // Older GPUs widen a bf16 by moves, which flush nothing.
            let (x, from) = match (from, to) {
                (Type::Bf16, Type::F32) => (self.widened(from, x), Type::F32),
                _ => (x.to_owned(), from),
            };
            let (ftz, from, to) = (self.ftz(), from.name(), to.name());
            self.ins(format!("cvt{rounding}{ftz}.{to}.{from} {r}, {x}"));
            return;
        }
        match (from, to) {
            _ if from == to => {
                let class = Class::of(to).expect("floats have registers");
                self.ins(format!("mov.{} {r}, {x}", class.ptx()));
            }
            (Type::F64, Type::F32) => self.ins(format!("cvt.rn.f32.f64 {r}, {x}")),
            (Type::F32, Type::F64) => self.ins(format!("cvt.f64.f32 {r}, {x}")),
            (Type::F64, Type::F16) => self.ins(format!("cvt.rn.f16.f64 {r}, {x}")),
            (Type::F64, Type::Bf16) => {
                let odd = self.rounded_to_odd(x);
                self.narrowed(to, r, &odd);
            }
            (Type::F32, _) => self.narrowed(to, r, x),
            // From half precision: exact in binary32.
            _ => {
                let wide = self.widened(from, x);
                match to {
                    Type::F32 => self.ins(format!("mov.f32 {r}, {wide}")),
                    Type::F64 => self.ins(format!("cvt.f64.f32 {r}, {wide}")),
                    _ => self.narrowed(to, r, &wide),
                }
            }
        }
    }

    fn integer_to_float(&mut self, r: &str, signed: bool, from: Type, to: Type, x: String) {
        let x = match (from, signed) {
            (Type::Bool, _) => {
                let number = self.temporary(Class::B32);
                self.extend_unsigned(&number, from, Type::I32, &x);
                number
            }
            (_, true) => self.sign_extended(from, x),
            (_, false) => x,
        };
        let sign = if signed && from != Type::Bool { "s" } else { "u" };
        let bits = if from == Type::I64 { 64 } else { 32 };
        let (rounding, ftz) = (self.rounding(), self.ftz());
        match to {
            Type::F32 | Type::F64 | Type::F16 => {
                let to = to.name();
                self.ins(format!("cvt.{rounding}{ftz}.{to}.{sign}{bits} {r}, {x}"));
            }
            _ => {
                // To odd in binary64, to odd in binary32, then the rounding that counts.
                let number = self.temporary(Class::F64);
                self.ins(format!("cvt.rz.f64.{sign}{bits} {number}, {x}"));
                if bits == 64 {
                    self.make_odd(&number, sign, &x);
                }
                let odd = self.rounded_to_odd(&number);
                self.narrowed(to, r, &odd);
            }
        }
    }

    /// Sets the last bit of a binary64 that an integer was rounded to towards zero, if it lost anything.
    fn make_odd(&mut self, number: &str, sign: &str, integer: &str) {
        let (back, bits, sticky) = (
            self.temporary(Class::B64),
            self.temporary(Class::B64),
            self.temporary(Class::B64),
        );
        let inexact = self.temporary(Class::Predicate);
        self.ins(format!("cvt.rzi.{sign}64.f64 {back}, {number}"));
        self.ins(format!("setp.ne.s64 {inexact}, {back}, {integer}"));
        self.ins(format!("mov.b64 {bits}, {number}"));
        self.ins(format!("or.b64 {sticky}, {bits}, 1"));
        self.ins(format!("selp.b64 {bits}, {sticky}, {bits}, {inexact}"));
        self.ins(format!("mov.b64 {number}, {bits}"));
    }

    fn float_to_integer(&mut self, r: &str, signed: bool, from: Type, to: Type, x: &str) {
        let (x, source) = match from {
            Type::F16 | Type::Bf16 => (self.widened(from, x), "f32"),
            Type::F64 => (x.to_owned(), "f64"),
            _ => (x.to_owned(), "f32"),
        };
        let sign = if signed { "s" } else { "u" };
        let bits = if to == Type::I64 { 64 } else { 32 };
        let ftz = self.ftz();
        self.ins(format!("cvt.rzi{ftz}.{sign}{bits}.{source} {r}, {x}"));
        if (source == "f64" || bits == 64) && !self.rule.nan_high {
            let unordered = self.temporary(Class::Predicate);
            self.ins(format!("setp.nan.{source} {unordered}, {x}, {x}"));
            self.ins(format!("selp.b{bits} {r}, 0, {r}, {unordered}"));
        }
        if to.bits() < 32 {
            let (low, high) = match (signed, to.bits()) {
                (true, bits) => (-(1_i64 << (bits - 1)), (1_i64 << (bits - 1)) - 1),
                (false, bits) => (0, (1_i64 << bits) - 1),
            };
            self.ins(format!("min.{sign}32 {r}, {r}, {high}"));
            if signed {
                self.ins(format!("max.s32 {r}, {r}, {low}"));
                self.mask(to, r);
            }
        }
    }

    fn bits(&mut self, result: Value, r: &str, value: Value, x: &str) {
        let (from, to) = (self.ty(value), self.ty(result));
        let canonical;
        let x = if self.nans.at_use(value) && !self.nans.of_number(result) {
            canonical = self.canonical(value);
            &canonical
        } else {
            x
        };
        let (Some(source), Some(target)) = (Class::of(from), Class::of(to)) else {
            return;
        };
        match (source, target) {
            (Class::Predicate, _) => self.extend_unsigned(r, from, to, x),
            (_, Class::Predicate) => self.truncate(r, from, to, x),
            (Class::B16, Class::B32) => self.ins(format!("cvt.u32.u16 {r}, {x}")),
            (Class::B32, Class::B16) => self.ins(format!("cvt.u16.u32 {r}, {x}")),
            (Class::B32, Class::B64) => self.ins(format!("cvt.u64.u32 {r}, {x}")),
            (Class::B64, Class::B32) => self.ins(format!("cvt.u32.u64 {r}, {x}")),
            (_, Class::B64 | Class::F64) => self.ins(format!("mov.b64 {r}, {x}")),
            (_, Class::B16) => self.ins(format!("mov.b16 {r}, {x}")),
            _ => self.ins(format!("mov.b32 {r}, {x}")),
        }
    }
}

/// The space as PTX spells it.
pub(super) fn space_name(space: Space) -> &'static str {
    match space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Private => "local",
        Space::Generic => "generic",
    }
}
