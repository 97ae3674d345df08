//! Floating-point arithmetic: rounded to nearest even, never contracted. Subnormal numbers are kept, or flushed by
//! operations of their own where the IR says so. Other directions of rounding are refused (`check`).
//!
//! OpenCL's division and square root may be off by some ulp unless the module is built with
//! `-cl-fp32-correctly-rounded-divide-sqrt`, as it is where the kernel's accuracy asks for it ([`super::build_options`]). Half-precision types
//! compute in binary32 and round once more (`half`), as the IR specifies.

use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, FPFastMathMode, Op as Code, OpenclStd100Op as Std, Word};

use super::emitter::Emitter;
use crate::ir::eval::LEAST_OF_NORMAL_SQRT;
use crate::ir::{Accuracy, BinaryOp, CompareOp, Type, UnaryOp, Value};

fn is_half(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::Bf16)
}

/// Which result of a function an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Its only one.
    Whole,
    /// The one that it gives back.
    First,
    /// The one that it stores.
    Second,
}

/// OpenCL's function that an operation of one number is.
fn of_library(op: UnaryOp) -> Option<(Std, Part)> {
    let function = match op {
        UnaryOp::LibraryExp => Std::exp,
        UnaryOp::LibraryExp2 => Std::exp2,
        UnaryOp::LibraryExp10 => Std::exp10,
        UnaryOp::LibraryLog => Std::log,
        UnaryOp::LibraryLog2 => Std::log2,
        UnaryOp::LibraryLog10 => Std::log10,
        UnaryOp::LibrarySin => Std::sin,
        UnaryOp::LibraryCos => Std::cos,
        UnaryOp::LibraryTan => Std::tan,
        UnaryOp::LibraryAsin => Std::asin,
        UnaryOp::LibraryAcos => Std::acos,
        UnaryOp::LibraryAtan => Std::atan,
        UnaryOp::LibrarySinh => Std::sinh,
        UnaryOp::LibraryCosh => Std::cosh,
        UnaryOp::LibraryTanh => Std::tanh,
        UnaryOp::LibraryErf => Std::erf,
        UnaryOp::LibraryCbrt => Std::cbrt,
        UnaryOp::LibraryRsqrt => Std::rsqrt,
        UnaryOp::LibraryLog1p => Std::log1p,
        UnaryOp::LibraryExpm1 => Std::expm1,
        UnaryOp::LibraryErfc => Std::erfc,
        UnaryOp::LibrarySinOfBoth => return Some((Std::sincos, Part::First)),
        UnaryOp::LibraryCosOfBoth => return Some((Std::sincos, Part::Second)),
        UnaryOp::NativeExp => Std::native_exp,
        UnaryOp::NativeExp10 => Std::native_exp10,
        UnaryOp::NativeLog => Std::native_log,
        UnaryOp::NativeLog10 => Std::native_log10,
        UnaryOp::NativeTan => Std::native_tan,
        UnaryOp::HalfExp => Std::half_exp,
        UnaryOp::HalfExp2 => Std::half_exp2,
        UnaryOp::HalfExp10 => Std::half_exp10,
        UnaryOp::HalfLog => Std::half_log,
        UnaryOp::HalfLog2 => Std::half_log2,
        UnaryOp::HalfLog10 => Std::half_log10,
        UnaryOp::HalfSin => Std::half_sin,
        UnaryOp::HalfCos => Std::half_cos,
        UnaryOp::HalfTan => Std::half_tan,
        UnaryOp::HalfReciprocal => Std::half_recip,
        UnaryOp::HalfRsqrt => Std::half_rsqrt,
        UnaryOp::HalfSqrt => Std::half_sqrt,
        _ => return None,
    };
    Some((function, Part::Whole))
}

/// OpenCL's function that an operation of two numbers is.
fn of_library_of_two(op: BinaryOp) -> Option<Std> {
    Some(match op {
        BinaryOp::LibraryPow => Std::pow,
        BinaryOp::LibraryAtan2 => Std::atan2,
        BinaryOp::LibraryHypot => Std::hypot,
        BinaryOp::LibraryPowr => Std::powr,
        BinaryOp::LibraryPown => Std::pown,
        BinaryOp::NativePowr => Std::native_powr,
        BinaryOp::NativeDivide => Std::native_divide,
        BinaryOp::HalfPowr => Std::half_powr,
        BinaryOp::HalfDivide => Std::half_divide,
        _ => return None,
    })
}

impl Emitter<'_> {
    pub(super) fn float_unary(&mut self, op: UnaryOp, a: Value) -> Word {
        let ty = self.ty(a);
        let x = self.id(a);
        if matches!(op, UnaryOp::FNeg | UnaryOp::FAbs) {
            let x = self.flushed(ty, x);
            let made = self.sign(op, ty, x);
            return match ty == Type::F16 && self.rule.flush {
                true => self.one_nan(made),
                false => made,
            };
        }
        if let (Some(function), Type::F16) = (of_library(op), ty) {
            let x = self.flushed(ty, x);
            let half = self.module.float(16);
            let x = self.module.ins(Code::Bitcast, half, &[x]);
            let made = self.of_library(function, half, x);
            let id = self.ty_id(ty);
            let made = self.module.ins(Code::Bitcast, id, &[made]);
            return self.flushed(ty, made);
        }
        if is_half(ty) {
            let x = self.flushed(ty, x);
            let wide = self.widened(ty, x);
            let made = self.rounded_unary(op, Type::F32, wide);
            let made = self.narrowed(ty, made);
            return self.flushed(ty, made);
        }
        self.rounded_unary(op, ty, x)
    }

    /// Replaces a half's NaN by the one that flushed `neg` and `abs` give on NVIDIA's GPUs.
    fn one_nan(&mut self, half: Word) -> Word {
        let (id, boolean) = (self.ty_id(Type::F16), self.module.boolean());
        let [magnitude, infinity] = [0x7fff, 0x7c00].map(|bits| self.module.constant(16, bits));
        let own = self.module.ins(Code::BitwiseAnd, id, &[half, magnitude]);
        let is_nan = self.module.ins(Code::UGreaterThan, boolean, &[own, infinity]);
        self.module.ins(Code::Select, id, &[is_nan, magnitude, half])
    }

    /// Changes the sign bit and nothing else, NaN included.
    fn sign(&mut self, op: UnaryOp, ty: Type, x: Word) -> Word {
        let id = self.ty_id(ty);
        if !is_half(ty) {
            return match op {
                UnaryOp::FNeg => self.module.ins(Code::FNegate, id, &[x]),
                _ => self.module.opencl(id, Std::fabs, &[x]),
            };
        }
        let (code, mask) = match op {
            UnaryOp::FNeg => (Code::BitwiseXor, 0x8000),
            _ => (Code::BitwiseAnd, 0x7fff),
        };
        let mask = self.module.constant(16, mask);
        self.module.ins(code, id, &[x, mask])
    }

    fn rounded_unary(&mut self, op: UnaryOp, ty: Type, x: Word) -> Word {
        let x = self.flushed(ty, x);
        let id = self.ty_id(ty);
        if matches!(op, UnaryOp::NormalReciprocal | UnaryOp::NormalSqrt) {
            return self.of_normal(op, x);
        }
        if ty == Type::F64 && op == UnaryOp::ApproximateReciprocal {
            // OpenCL has no faster one.
            let one = self.module.float_constant(64, 1.0f64.to_bits());
            let made = self.module.ins(Code::FDiv, id, &[one, x]);
            return self.flushed(ty, made);
        }
        if let Some(function) = of_library(op) {
            let made = self.of_library(function, id, x);
            return self.flushed(ty, made);
        }
        let function = match op {
            UnaryOp::ApproximateRsqrt if ty == Type::F64 => Std::rsqrt,
            UnaryOp::Sqrt => Std::sqrt,
            UnaryOp::Floor => Std::floor,
            UnaryOp::Ceil => Std::ceil,
            UnaryOp::Trunc => Std::trunc,
            UnaryOp::RoundEven => Std::rint,
            UnaryOp::ApproximateReciprocal => Std::native_recip,
            UnaryOp::ApproximateRsqrt => Std::native_rsqrt,
            UnaryOp::ApproximateSqrt => Std::native_sqrt,
            UnaryOp::ApproximateExp2 => Std::native_exp2,
            UnaryOp::ApproximateLog2 => Std::native_log2,
            UnaryOp::ApproximateSin => Std::native_sin,
            UnaryOp::ApproximateCos => Std::native_cos,
            // OpenCL has no faster one.
            UnaryOp::ApproximateTanh => Std::tanh,
            _ => unreachable!("the verifier keeps integer operations away from floats"),
        };
        let made = self.module.opencl(id, function, &[x]);
        self.flushed(ty, made)
    }

    /// A function of the device's library.
    fn of_library(&mut self, (function, part): (Std, Part), id: Word, x: Word) -> Word {
        if part == Part::Whole {
            return self.module.opencl(id, function, &[x]);
        }
        let second = match self.second_results.get(&id) {
            Some(&known) => known,
            None => {
                let made = self.module.private_variable(id);
                self.second_results.insert(id, made);
                made
            }
        };
        let first = self.module.opencl(id, function, &[x, second]);
        match part {
            Part::Second => self.module.ins(Code::Load, id, &[second]),
            _ => first,
        }
    }

    /// `F32`: 1/x or √x if x is in the range of the operation, and the IR's result elsewhere.
    fn of_normal(&mut self, op: UnaryOp, x: Word) -> Word {
        let (id, boolean) = (self.ty_id(Type::F32), self.module.boolean());
        let [nan, zero, one, least, most, infinity] = [
            f32::NAN,
            0.0,
            1.0,
            f32::MIN_POSITIVE,
            1.0 / f32::MIN_POSITIVE,
            f32::INFINITY,
        ]
        .map(|number| self.module.float_constant(32, u64::from(number.to_bits())));
        let (code, std) = (Code::FOrdLessThanEqual, Code::FOrdLessThan);
        if op == UnaryOp::NormalSqrt {
            let least = LEAST_OF_NORMAL_SQRT.to_bits();
            let least = self.module.float_constant(32, u64::from(least));
            let root = self.module.opencl(id, Std::sqrt, &[x]);
            let above = self.module.ins(code, boolean, &[least, x]);
            let finite = self.module.ins(std, boolean, &[x, infinity]);
            let fits = self.module.ins(Code::LogicalAnd, boolean, &[above, finite]);
            return self.module.ins(Code::Select, id, &[fits, root, nan]);
        }
        let magnitude = self.module.opencl(id, Std::fabs, &[x]);
        let quotient = self.module.ins(Code::FDiv, id, &[one, x]);
        let zero = self.module.opencl(id, Std::copysign, &[zero, x]);
        let above = self.module.ins(code, boolean, &[least, magnitude]);
        let below = self.module.ins(code, boolean, &[magnitude, most]);
        let finite = self.module.ins(std, boolean, &[magnitude, infinity]);
        let normal = self.module.ins(Code::Select, id, &[below, quotient, zero]);
        let fits = self.module.ins(Code::LogicalAnd, boolean, &[above, finite]);
        self.module.ins(Code::Select, id, &[fits, normal, nan])
    }

    pub(super) fn float_binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Word {
        let ty = self.ty(a);
        let (x, y) = (self.id(a), self.id(b));
        if op == BinaryOp::CopySign {
            return self.copy_sign(ty, x, y);
        }
        if let (Some(function), Type::F16) = (of_library_of_two(op), ty) {
            let half = self.module.float(16);
            let [x, y] = [x, y].map(|own| {
                let own = self.flushed(ty, own);
                self.module.ins(Code::Bitcast, half, &[own])
            });
            let made = self.module.opencl(half, function, &[x, y]);
            let id = self.ty_id(ty);
            let made = self.module.ins(Code::Bitcast, id, &[made]);
            return self.flushed(ty, made);
        }
        if is_half(ty) {
            let [x, y] = [x, y].map(|half| {
                let half = self.flushed(ty, half);
                self.widened(ty, half)
            });
            let made = self.rounded_binary(op, Type::F32, x, y);
            let made = self.narrowed(ty, made);
            return self.flushed(ty, made);
        }
        self.rounded_binary(op, ty, x, y)
    }

    fn copy_sign(&mut self, ty: Type, x: Word, y: Word) -> Word {
        let id = self.ty_id(ty);
        if !is_half(ty) {
            return self.module.opencl(id, Std::copysign, &[x, y]);
        }
        let [magnitude, sign] = [0x7fff, 0x8000].map(|mask| self.module.constant(16, mask));
        let magnitude = self.module.ins(Code::BitwiseAnd, id, &[x, magnitude]);
        let sign = self.module.ins(Code::BitwiseAnd, id, &[y, sign]);
        self.module.ins(Code::BitwiseOr, id, &[magnitude, sign])
    }

    pub(super) fn rounded_binary(&mut self, op: BinaryOp, ty: Type, x: Word, y: Word) -> Word {
        let (x, y) = (self.flushed(ty, x), self.flushed(ty, y));
        let id = self.ty_id(ty);
        if let Some(function) = of_library_of_two(op) {
            let y = match op {
                BinaryOp::LibraryPown => self.integer_of(ty, y),
                _ => y,
            };
            let made = self.module.opencl(id, function, &[x, y]);
            return self.flushed(ty, made);
        }
        let code = match op {
            BinaryOp::FAdd => Code::FAdd,
            BinaryOp::FSub => Code::FSub,
            BinaryOp::FMul => Code::FMul,
            // OpenCL's `native_divide` promises nothing.
            BinaryOp::FDiv | BinaryOp::ApproximateDiv | BinaryOp::ApproximateDivInRange => Code::FDiv,
            _ => return self.least_or_most(op, ty, x, y),
        };
        let made = self.module.ins(code, id, &[x, y]);
        if code == Code::FDiv && ty == Type::F32 && self.kernel.float_mode.accuracy == Accuracy::Fast {
            let fast = Operand::FPFastMathMode(FPFastMathMode::FAST);
            self.module.decorate(made, Decoration::FPFastMathMode, vec![fast]);
        }
        // Sums of normal numbers are exact where they are small.
        if ty != Type::F32 || !self.rule.flush || matches!(code, Code::FAdd | Code::FSub) {
            return self.flushed(ty, made);
        }
        let (x, y) = match code {
            Code::FMul => self.far_factors(x, y),
            _ => (self.far(x), y),
        };
        let scaled = self.module.ins(code, id, &[x, y]);
        self.tiny_flushed(made, scaled)
    }

    /// The integer of 32 bits whose bits a number has.
    fn integer_of(&mut self, ty: Type, number: Word) -> Word {
        let int = self.module.int(32);
        let own = self.module.int(ty.bits());
        let bits = self.module.ins(Code::Bitcast, own, &[number]);
        match ty {
            Type::F32 => bits,
            _ => self.module.ins(Code::UConvert, int, &[bits]),
        }
    }

    /// A single that is 2⁶⁴ times as large.
    fn far(&mut self, x: Word) -> Word {
        let id = self.ty_id(Type::F32);
        let scale = self
            .module
            .float_constant(32, u64::from(2.0f32.powi(64).to_bits()));
        self.module.ins(Code::FMul, id, &[x, scale])
    }

    /// Two factors of a product that is 2⁶⁴ times as large: the smaller one grows.
    fn far_factors(&mut self, x: Word, y: Word) -> (Word, Word) {
        let (id, boolean) = (self.ty_id(Type::F32), self.module.boolean());
        let [own, other] = [x, y].map(|factor| self.module.opencl(id, Std::fabs, &[factor]));
        let first = self.module.ins(Code::FOrdLessThanEqual, boolean, &[own, other]);
        let (far_x, far_y) = (self.far(x), self.far(y));
        (
            self.module.ins(Code::Select, id, &[first, far_x, x]),
            self.module.ins(Code::Select, id, &[first, y, far_y]),
        )
    }

    /// A flushed single. A result that rounds to the least normal number only with subnormal precision is flushed as well:
    /// `scaled`, the same result times 2⁶⁴, shows it (`ir::eval`).
    fn tiny_flushed(&mut self, made: Word, scaled: Word) -> Word {
        let (id, boolean) = (self.ty_id(Type::F32), self.module.boolean());
        let least = self
            .module
            .float_constant(32, u64::from(f32::MIN_POSITIVE.to_bits()));
        let limit = self
            .module
            .float_constant(32, u64::from(2.0f32.powi(-62).to_bits()));
        let [own, far] = [made, scaled].map(|number| self.module.opencl(id, Std::fabs, &[number]));
        let is_least = self.module.ins(Code::FOrdEqual, boolean, &[own, least]);
        let is_below = self.module.ins(Code::FOrdLessThan, boolean, &[far, limit]);
        let tiny = self.module.ins(Code::LogicalAnd, boolean, &[is_least, is_below]);
        let zero = self.module.float_constant(32, 0);
        let zero = self.module.opencl(id, Std::copysign, &[zero, made]);
        let flushed = self.flushed(Type::F32, made);
        self.module.ins(Code::Select, id, &[tiny, zero, flushed])
    }

    /// The lesser or greater number; of two zeros the negative or the positive one. OpenCL's functions do not define which zero
    /// they return, nor, on some devices, the result for a signalling NaN.
    fn least_or_most(&mut self, op: BinaryOp, ty: Type, x: Word, y: Word) -> Word {
        let (id, boolean) = (self.ty_id(ty), self.module.boolean());
        let bits = self.module.int(ty.bits());
        let least = matches!(op, BinaryOp::FMin | BinaryOp::FMinimum);
        let code = if least {
            Code::FOrdLessThan
        } else {
            Code::FOrdGreaterThan
        };
        let before = self.module.ins(code, boolean, &[x, y]);
        let no_number = self.module.ins(Code::IsNan, boolean, &[y]);
        let first = self.module.ins(Code::LogicalOr, boolean, &[before, no_number]);
        let chosen = self.module.ins(Code::Select, id, &[first, x, y]);
        // Equal numbers have equal bits, but for zeros: a sign that either has, or that both have.
        let equal = self.module.ins(Code::FOrdEqual, boolean, &[x, y]);
        let code = if least { Code::BitwiseOr } else { Code::BitwiseAnd };
        let [p, q] = [x, y].map(|number| self.module.ins(Code::Bitcast, bits, &[number]));
        let both = self.module.ins(code, bits, &[p, q]);
        let both = self.module.ins(Code::Bitcast, id, &[both]);
        let number = self.module.ins(Code::Select, id, &[equal, both, chosen]);
        if matches!(op, BinaryOp::FMin | BinaryOp::FMax) {
            return number;
        }
        let either = self.module.ins(Code::Unordered, boolean, &[x, y]);
        let sum = self.module.ins(Code::FAdd, id, &[x, y]);
        self.module.ins(Code::Select, id, &[either, sum, number])
    }

    pub(super) fn fma(&mut self, a: Value, b: Value, c: Value) -> Word {
        let ty = self.ty(a);
        let operands = [self.id(a), self.id(b), self.id(c)];
        let operands = operands.map(|operand| self.flushed(ty, operand));
        if is_half(ty) {
            let made = self.half_fma(ty, operands);
            return self.flushed(ty, made);
        }
        let id = self.ty_id(ty);
        let made = self.module.opencl(id, Std::fma, &operands);
        if ty != Type::F32 || !self.rule.flush {
            return self.flushed(ty, made);
        }
        let [x, y, z] = operands;
        let (x, y) = self.far_factors(x, y);
        let z = self.far(z);
        let scaled = self.module.opencl(id, Std::fma, &[x, y, z]);
        self.tiny_flushed(made, scaled)
    }

    pub(super) fn float_compare(&mut self, op: CompareOp, a: Value, b: Value) -> Word {
        let ty = self.ty(a);
        let (mut x, mut y) = (self.id(a), self.id(b));
        (x, y) = (self.flushed(ty, x), self.flushed(ty, y));
        if is_half(ty) {
            (x, y) = (self.widened(ty, x), self.widened(ty, y));
        }
        let code = match op {
            CompareOp::FEq => Code::FOrdEqual,
            CompareOp::FNe => Code::FUnordNotEqual,
            CompareOp::FLt => Code::FOrdLessThan,
            CompareOp::FLe => Code::FOrdLessThanEqual,
            _ => Code::Unordered,
        };
        let boolean = self.module.boolean();
        self.module.ins(code, boolean, &[x, y])
    }

    /// A float with a zero of its sign for a subnormal number, where the operation flushes.
    pub(super) fn flushed(&mut self, ty: Type, x: Word) -> Word {
        if !self.rule.flush {
            return x;
        }
        let (id, boolean) = (self.ty_id(ty), self.module.boolean());
        if is_half(ty) {
            // Halves are kept as integers.
            let exponent = if ty == Type::F16 { 0x7c00 } else { 0x7f80 };
            let [exponent, sign, zero] = [exponent, 0x8000, 0].map(|bits| self.module.constant(16, bits));
            let exponent = self.module.ins(Code::BitwiseAnd, id, &[x, exponent]);
            let small = self.module.ins(Code::IEqual, boolean, &[exponent, zero]);
            let sign = self.module.ins(Code::BitwiseAnd, id, &[x, sign]);
            return self.module.ins(Code::Select, id, &[small, sign, x]);
        }
        let (bits, least) = match ty {
            Type::F64 => (64, f64::MIN_POSITIVE.to_bits()),
            _ => (32, u64::from(f32::MIN_POSITIVE.to_bits())),
        };
        let magnitude = self.module.opencl(id, Std::fabs, &[x]);
        let least = self.module.float_constant(bits, least);
        let small = self.module.ins(Code::FOrdLessThan, boolean, &[magnitude, least]);
        let zero = self.module.float_constant(bits, 0);
        let zero = self.module.opencl(id, Std::copysign, &[zero, x]);
        self.module.ins(Code::Select, id, &[small, zero, x])
    }

    /// A value with its NaN, if it is one, made canonical.
    pub(super) fn canonical(&mut self, ty: Type, x: Word) -> Word {
        let (id, boolean) = (self.ty_id(ty), self.module.boolean());
        let (is_nan, nan) = match ty {
            Type::F32 | Type::F64 => {
                let bits = if ty == Type::F64 {
                    0x7ff8 << 48
                } else {
                    0x7fc0_0000
                };
                let nan = self.module.float_constant(ty.bits(), bits);
                (self.module.ins(Code::IsNan, boolean, &[x]), nan)
            }
            _ => {
                let (infinity, nan) = if ty == Type::F16 {
                    (0x7c00, 0x7e00)
                } else {
                    (0x7f80, 0x7fc0)
                };
                let [magnitude, infinity, nan] =
                    [0x7fff, infinity, nan].map(|bits| self.module.constant(16, bits));
                let magnitude = self.module.ins(Code::BitwiseAnd, id, &[x, magnitude]);
                (
                    self.module
                        .ins(Code::UGreaterThan, boolean, &[magnitude, infinity]),
                    nan,
                )
            }
        };
        self.module.ins(Code::Select, id, &[is_nan, nan, x])
    }
}
