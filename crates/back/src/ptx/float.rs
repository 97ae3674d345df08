//! Floating-point arithmetic: rounded to nearest even, never contracted, subnormals kept.
//!
//! Every instruction states its rounding, which also keeps the driver's compiler from fusing a product and a sum. Only
//! operations that an imported kernel leaves open are emitted without. `.ftz` is written only if the operation has it
//! ([`FloatRule`](crate::ir::FloatRule)). Half-precision types compute in binary32 and round once more: binary32 has more than
//! twice their precision plus two, so the second rounding is harmless. Half-precision operations that flush use the native
//! instruction. `Bf16` has binary32's small exponents, for which that argument fails, and uses NVIDIA's one instruction for it,
//! the fused multiply-add.

use super::PtxTarget;
use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::{BinaryOp, CompareOp, Type, UnaryOp, Value};

/// `F32` or `F64` as PTX spells it.
fn suffix(ty: Type) -> &'static str {
    if ty == Type::F64 { "f64" } else { "f32" }
}

impl Emitter<'_> {
    /// Flush-to-zero, where the operation says so.
    pub(super) fn ftz(&self) -> &'static str {
        match self.rule.flush {
            true => ".ftz",
            false => "",
        }
    }

    /// The direction in which the operation is rounded.
    pub(super) fn rounding(&self) -> &'static str {
        self.rule.rounding.name()
    }

    /// A half-precision operand in a binary32 register.
    pub(super) fn widened(&mut self, ty: Type, operand: &str) -> String {
        let wide = self.temporary(Class::F32);
        if ty == Type::F16 {
            self.ins(format!("cvt.f32.f16 {wide}, {operand}"));
        } else if self.options.target >= PtxTarget::Sm90 {
            self.ins(format!("cvt.f32.bf16 {wide}, {operand}"));
        } else {
            let bits = self.temporary(Class::B32);
            self.ins(format!("cvt.u32.u16 {bits}, {operand}"));
            self.ins(format!("shl.b32 {bits}, {bits}, 16"));
            self.ins(format!("mov.b32 {wide}, {bits}"));
        }
        wide
    }

    /// A binary32 rounded to half precision, to nearest.
    pub(super) fn narrowed(&mut self, ty: Type, result: &str, wide: &str) {
        let name = if ty == Type::F16 { "f16" } else { "bf16" };
        self.ins(format!("cvt.rn.{name}.f32 {result}, {wide}"));
    }

    pub(super) fn float_unary(&mut self, result: Value, op: UnaryOp, a: Value) {
        let ty = self.ty(a);
        let r = self.register(result);
        let x = self.operand(a);
        match op {
            UnaryOp::FNeg | UnaryOp::FAbs if self.rule.flush => self.flushed_sign(result, &r, op, &x),
            UnaryOp::FNeg | UnaryOp::FAbs => self.sign(result, &r, op, &x),
            UnaryOp::ApproximateExp2 | UnaryOp::ApproximateTanh => {
                let name = if op == UnaryOp::ApproximateExp2 {
                    "ex2"
                } else {
                    "tanh"
                };
                let ftz = self.ftz();
                self.ins(format!("{name}.approx{ftz}.{} {r}, {x}", ty.name()));
            }
            _ if matches!(ty, Type::F16 | Type::Bf16) => {
                let wide = self.widened(ty, &x);
                let made = self.temporary(Class::F32);
                self.rounded_unary(Type::F32, &made, op, &wide);
                self.narrowed(ty, &r, &made);
            }
            _ => self.rounded_unary(ty, &r, op, &x),
        }
    }

    /// Changes the sign bit and nothing else. PTX's `neg` and `abs` leave a NaN's result undefined, so they serve only where
    /// that cannot be seen; there they cost nothing, because machine instructions negate their operands for free.
    fn sign(&mut self, result: Value, r: &str, op: UnaryOp, x: &str) {
        let ty = self.ty(result);
        let (bits, mask): (u32, u64) = (ty.bits(), 1 << (ty.bits() - 1));
        let (name, operand) = if op == UnaryOp::FNeg {
            ("xor", format!("{mask:#x}"))
        } else {
            ("and", format!("{:#x}", mask - 1))
        };
        match Class::of(ty) {
            Some(Class::F32 | Class::F64) if !self.nans.seen(result) => {
                let name = if op == UnaryOp::FNeg { "neg" } else { "abs" };
                self.ins(format!("{name}.{} {r}, {x}", suffix(ty)));
            }
            Some(Class::F32 | Class::F64) => {
                let class = if ty == Type::F64 { Class::B64 } else { Class::B32 };
                let changed = self.temporary(class);
                self.ins(format!("mov.b{bits} {changed}, {x}"));
                self.ins(format!("{name}.b{bits} {changed}, {changed}, {operand}"));
                self.ins(format!("mov.b{bits} {r}, {changed}"));
            }
            _ => self.ins(format!("{name}.b{bits} {r}, {x}, {operand}")),
        }
    }

    /// Changes the sign bit and flushes. The NaN that `neg` and `abs` produce is visible where its bits are.
    fn flushed_sign(&mut self, result: Value, r: &str, op: UnaryOp, x: &str) {
        let ty = self.ty(result);
        let name = if op == UnaryOp::FNeg { "neg" } else { "abs" };
        let flushed = format!("{name}.ftz.{}", ty.name());
        if ty != Type::F32 || !self.nans.seen(result) {
            self.ins(format!("{flushed} {r}, {x}"));
            return;
        }
        let (number, kept) = (self.temporary(Class::F32), self.temporary(Class::F32));
        let is_nan = self.temporary(Class::Predicate);
        self.ins(format!("{flushed} {number}, {x}"));
        self.sign(result, &kept, op, x);
        self.ins(format!("setp.nan.f32 {is_nan}, {x}, {x}"));
        self.ins(format!("selp.f32 {r}, {kept}, {number}, {is_nan}"));
    }

    fn rounded_unary(&mut self, ty: Type, r: &str, op: UnaryOp, x: &str) {
        let (s, ftz) = (suffix(ty), self.ftz());
        match op {
            UnaryOp::Sqrt => {
                let rounding = self.rounding();
                self.ins(format!("sqrt.{rounding}{ftz}.{s} {r}, {x}"));
            }
            UnaryOp::NormalReciprocal => self.normal_reciprocal(r, x),
            UnaryOp::NormalSqrt => self.normal_sqrt(r, x),
            // Older targets have them written out.
            UnaryOp::TableExp2 => self.ins(format!("ex2.approx.ftz.f32 {r}, {x}")),
            UnaryOp::TableLog2 => self.ins(format!("lg2.approx.ftz.f32 {r}, {x}")),
            UnaryOp::TableReciprocal => self.ins(format!("rcp.approx.ftz.f32 {r}, {x}")),
            UnaryOp::Floor => self.ins(format!("cvt.rmi{ftz}.{s}.{s} {r}, {x}")),
            UnaryOp::Ceil => self.ins(format!("cvt.rpi{ftz}.{s}.{s} {r}, {x}")),
            UnaryOp::Trunc => self.ins(format!("cvt.rzi{ftz}.{s}.{s} {r}, {x}")),
            UnaryOp::RoundEven => self.ins(format!("cvt.rni{ftz}.{s}.{s} {r}, {x}")),
            _ => self.approximate_unary(s, r, op, x),
        }
    }

    /// The expansion of `rcp.rn` that ptxas uses once it knows that the operand is not a rare one: an approximation within 1
    /// ulp, and a Newton step that rounds it to nearest. `.ftz` keeps ptxas from handling subnormals; the steps then give zero
    /// and NaN as the IR specifies.
    fn normal_reciprocal(&mut self, r: &str, x: &str) {
        let [first, minus, error] = [0; 3].map(|_| self.temporary(Class::F32));
        self.ins(format!("rcp.approx.ftz.f32 {first}, {x}"));
        self.ins(format!("neg.f32 {minus}, {x}"));
        self.ins(format!("fma.rn.f32 {error}, {minus}, {first}, 0f3F800000"));
        self.ins(format!("fma.rn.f32 {r}, {first}, {error}, {first}"));
    }

    /// As [`normal_reciprocal`](Self::normal_reciprocal), for `sqrt.rn`.
    fn normal_sqrt(&mut self, r: &str, x: &str) {
        let [inverse, first, half, minus, error] = [0; 5].map(|_| self.temporary(Class::F32));
        self.ins(format!("rsqrt.approx.ftz.f32 {inverse}, {x}"));
        self.ins(format!("mul.rn.f32 {first}, {x}, {inverse}"));
        self.ins(format!("mul.rn.f32 {half}, {inverse}, 0f3F000000"));
        self.ins(format!("neg.f32 {minus}, {first}"));
        self.ins(format!("fma.rn.f32 {error}, {minus}, {first}, {x}"));
        self.ins(format!("fma.rn.f32 {r}, {error}, {half}, {first}"));
    }

    fn approximate_unary(&mut self, s: &str, r: &str, op: UnaryOp, x: &str) {
        let name = match op {
            UnaryOp::ApproximateReciprocal => "rcp",
            UnaryOp::ApproximateRsqrt => "rsqrt",
            UnaryOp::ApproximateSqrt => "sqrt",
            UnaryOp::ApproximateLog2 => "lg2",
            UnaryOp::ApproximateSin => "sin",
            UnaryOp::ApproximateCos => "cos",
            _ => unreachable!("the verifier keeps integer operations away from floats"),
        };
        let ftz = self.ftz();
        self.ins(format!("{name}.approx{ftz}.{s} {r}, {x}"));
    }

    pub(super) fn float_binary(&mut self, result: Value, op: BinaryOp, a: Value, b: Value) {
        use BinaryOp as B;
        let ty = self.ty(a);
        let r = self.register(result);
        let one = match ty {
            Type::F32 => Some(u64::from(1.0f32.to_bits())),
            Type::F64 => Some(1.0f64.to_bits()),
            _ => None,
        };
        if op == B::FDiv && one.is_some() && self.kernel.as_constant(a) == one {
            let (y, rounding, ftz) = (self.operand(b), self.rounding(), self.ftz());
            self.ins(format!("rcp.{rounding}{ftz}.{} {r}, {y}", suffix(ty)));
            return;
        }
        let (x, y) = (self.operand(a), self.operand(b));
        match (op, ty) {
            (B::CopySign, Type::F32 | Type::F64) => {
                // PTX takes the sign first.
                self.ins(format!("copysign.{} {r}, {y}, {x}", suffix(ty)));
            }
            (B::CopySign, _) => {
                let (magnitude, sign) = (self.temporary(Class::B16), self.temporary(Class::B16));
                self.ins(format!("and.b16 {magnitude}, {x}, 0x7fff"));
                self.ins(format!("and.b16 {sign}, {y}, 0x8000"));
                self.ins(format!("or.b16 {r}, {magnitude}, {sign}"));
            }
            // a + b = a × 1 + b; a - b = b × -1 + a; a × b = a × b + -0.
            (B::FAdd, Type::Bf16) => {
                let one = self.half_constant(0x3f80);
                self.ins(format!("fma.rn.bf16 {r}, {x}, {one}, {y}"));
            }
            (B::FSub, Type::Bf16) => {
                let minus_one = self.half_constant(0xbf80);
                self.ins(format!("fma.rn.bf16 {r}, {y}, {minus_one}, {x}"));
            }
            (B::FMul, Type::Bf16) => {
                let minus_zero = self.half_constant(0x8000);
                self.ins(format!("fma.rn.bf16 {r}, {x}, {y}, {minus_zero}"));
            }
            (B::FDiv, Type::Bf16) => {
                // In binary64 no quotient is small enough to lose digits before the last rounding.
                let (x, y) = (self.widened(ty, &x), self.widened(ty, &y));
                let (dividend, divisor) = (self.temporary(Class::F64), self.temporary(Class::F64));
                self.ins(format!("cvt.f64.f32 {dividend}, {x}"));
                self.ins(format!("cvt.f64.f32 {divisor}, {y}"));
                self.ins(format!("div.rn.f64 {dividend}, {dividend}, {divisor}"));
                let odd = self.rounded_to_odd(&dividend);
                self.narrowed(ty, &r, &odd);
            }
            (_, Type::F16) if self.rule.flush => {
                let name = match op {
                    B::FAdd => "add.rn.ftz",
                    B::FSub => "sub.rn.ftz",
                    B::FMul => "mul.rn.ftz",
                    B::FMin => "min.ftz",
                    B::FMax => "max.ftz",
                    B::FMinimum => "min.ftz.NaN",
                    _ => "max.ftz.NaN",
                };
                self.ins(format!("{name}.f16 {r}, {x}, {y}"));
            }
            (_, Type::F16 | Type::Bf16) => {
                let (x, y) = (self.widened(ty, &x), self.widened(ty, &y));
                let made = self.temporary(Class::F32);
                self.rounded_binary(Type::F32, &made, op, &x, &y);
                self.narrowed(ty, &r, &made);
            }
            _ => self.rounded_binary(ty, &r, op, &x, &y),
        }
    }

    fn rounded_binary(&mut self, ty: Type, r: &str, op: BinaryOp, x: &str, y: &str) {
        let (s, ftz, rounding) = (suffix(ty), self.ftz(), self.rounding());
        // Without a direction a product may be fused with a sum.
        let open = match self.rule.contract {
            true => String::new(),
            false => format!(".{rounding}"),
        };
        match op {
            BinaryOp::FAdd => self.ins(format!("add{open}{ftz}.{s} {r}, {x}, {y}")),
            BinaryOp::FSub => self.ins(format!("sub{open}{ftz}.{s} {r}, {x}, {y}")),
            BinaryOp::FMul => self.ins(format!("mul{open}{ftz}.{s} {r}, {x}, {y}")),
            BinaryOp::FDiv => self.ins(format!("div.{rounding}{ftz}.{s} {r}, {x}, {y}")),
            BinaryOp::FMin => self.ins(format!("min{ftz}.{s} {r}, {x}, {y}")),
            BinaryOp::FMax => self.ins(format!("max{ftz}.{s} {r}, {x}, {y}")),
            BinaryOp::FMinimum if ty == Type::F32 => self.ins(format!("min{ftz}.NaN.f32 {r}, {x}, {y}")),
            BinaryOp::FMaximum if ty == Type::F32 => self.ins(format!("max{ftz}.NaN.f32 {r}, {x}, {y}")),
            BinaryOp::FMinimum | BinaryOp::FMaximum => {
                // Binary64 has no such instruction: NaN by a selection.
                let name = if op == BinaryOp::FMinimum { "min" } else { "max" };
                let (number, sum) = (self.temporary(Class::F64), self.temporary(Class::F64));
                let no_number = self.temporary(Class::Predicate);
                self.ins(format!("{name}.f64 {number}, {x}, {y}"));
                self.ins(format!("add.rn.f64 {sum}, {x}, {y}"));
                self.ins(format!("setp.nan.f64 {no_number}, {x}, {y}"));
                self.ins(format!("selp.f64 {r}, {sum}, {number}, {no_number}"));
            }
            BinaryOp::ApproximateDiv => self.ins(format!("div.full{ftz}.f32 {r}, {x}, {y}")),
            BinaryOp::ApproximateDivInRange => self.ins(format!("div.approx{ftz}.f32 {r}, {x}, {y}")),
            _ => unreachable!("the verifier keeps integer operations away from floats"),
        }
    }

    pub(super) fn fma(&mut self, result: Value, a: Value, b: Value, c: Value) {
        let ty = self.ty(a);
        let r = self.register(result);
        let (x, y, z) = (self.operand(a), self.operand(b), self.operand(c));
        let (rounding, ftz) = (self.rounding(), self.ftz());
        self.ins(format!("fma.{rounding}{ftz}.{} {r}, {x}, {y}, {z}", ty.name()));
    }

    pub(super) fn float_compare(&mut self, r: &str, op: CompareOp, ty: Type, a: Value, b: Value) {
        let (mut x, mut y) = (self.operand(a), self.operand(b));
        let native = ty == Type::F16 && self.rule.flush;
        if matches!(ty, Type::F16 | Type::Bf16) && !native {
            x = self.widened(ty, &x);
            y = self.widened(ty, &y);
        }
        let name = match op {
            CompareOp::FEq => "eq",
            CompareOp::FNe => "neu",
            CompareOp::FLt => "lt",
            CompareOp::FLe => "le",
            _ => "nan",
        };
        let (s, ftz) = (if native { "f16" } else { suffix(ty) }, self.ftz());
        self.ins(format!("setp.{name}{ftz}.{s} {r}, {x}, {y}"));
    }

    /// A half-precision constant in a register.
    pub(super) fn half_constant(&mut self, bits: u16) -> String {
        let register = self.temporary(Class::B16);
        self.ins(format!("mov.b16 {register}, {bits:#06x}"));
        register
    }

    /// A value with its NaN, if it is one, made canonical.
    pub(super) fn canonical(&mut self, value: Value) -> String {
        let ty = self.ty(value);
        let class = Class::of(ty).expect("floats have registers");
        let x = self.operand(value);
        let unordered = self.temporary(Class::Predicate);
        let canonical = self.temporary(class);
        match ty {
            Type::F32 | Type::F64 => {
                let s = suffix(ty);
                let nan = if ty == Type::F64 {
                    "0d7FF8000000000000"
                } else {
                    "0f7FC00000"
                };
                self.ins(format!("setp.nan.{s} {unordered}, {x}, {x}"));
                self.ins(format!("selp.{s} {canonical}, {nan}, {x}, {unordered}"));
            }
            _ => {
                let nan = self.half_constant(if ty == Type::F16 { 0x7e00 } else { 0x7fc0 });
                let wide = self.widened(ty, &x);
                self.ins(format!("setp.nan.f32 {unordered}, {wide}, {wide}"));
                self.ins(format!("selp.b16 {canonical}, {nan}, {x}, {unordered}"));
            }
        }
        canonical
    }

    /// A binary64 rounded to odd in binary32: towards zero, the last bit set if that lost anything.
    /// Rounding once more, to fewer digits, is then as good as rounding once.
    pub(super) fn rounded_to_odd(&mut self, x: &str) -> String {
        let (down, back) = (self.temporary(Class::F32), self.temporary(Class::F64));
        let (bits, sticky) = (self.temporary(Class::B32), self.temporary(Class::B32));
        let inexact = self.temporary(Class::Predicate);
        self.ins(format!("cvt.rz.f32.f64 {down}, {x}"));
        self.ins(format!("cvt.f64.f32 {back}, {down}"));
        self.ins(format!("setp.ne.f64 {inexact}, {back}, {x}"));
        self.ins(format!("mov.b32 {bits}, {down}"));
        self.ins(format!("or.b32 {sticky}, {bits}, 1"));
        self.ins(format!("selp.b32 {bits}, {sticky}, {bits}, {inexact}"));
        self.ins(format!("mov.b32 {down}, {bits}"));
        down
    }
}
