//! The instructions of `OpenCL.std`: functions on floats and integers, vectors in memory, prefetches.

use rspirv::spirv::OpenclStd100Op as Std;

use super::arithmetic::integer_of;
use super::functions::{next_after, of_pi};
use super::steps::{halved_sum, saturated, scaled, shuffled};
use super::translate::{At, Here, Translator};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, CacheUse, CompareOp, ConvertOp, Type, UnaryOp, Value};
use crate::math::Function;
use crate::middle::Values;
use crate::suggest::quoted;

impl Translator<'_, '_> {
    /// `OpExtInst`.
    pub(crate) fn extended_instruction(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        at: &At<'_, '_>,
    ) -> Result<()> {
        let (set, number) = (at.instruction.word(2)?, at.instruction.word(3)?);
        let set = self.module.sets.get(&set).map(String::as_str).unwrap_or_default();
        if set != "OpenCL.std" {
            // Instructions for debuggers and tools change no result.
            let is_said = set.starts_with("OpenCL.DebugInfo") || set.starts_with("NonSemantic.");
            return match is_said {
                true => Ok(()),
                false => Err(Error::input(format!(
                    "instruction {number} of the set {} is not supported",
                    quoted(set)
                ))
                .accepted("`OpenCL.std`")),
            };
        }
        let std = Std::from_u32(number)
            .ok_or_else(|| Error::input(format!("`OpenCL.std` has no instruction {number}")))?;
        let about = |error: Error| match error.is_named() {
            true => error,
            false => error.about(format!("`OpExtInst {std:?}`")),
        };
        let made = self.standard((b, values, at), std).map_err(about)?;
        self.set(values, at, made)
    }

    fn standard(&mut self, (b, values, at): Here<'_, '_, '_>, std: Std) -> Result<Vec<Value>> {
        match std {
            Std::prefetch => {
                self.standard_prefetch((b, values, at))?;
                return Ok(Vec::new());
            }
            Std::vloadn | Std::vload_half | Std::vload_halfn | Std::vloada_halfn => {
                return self.load_vector((b, values, at), std);
            }
            Std::vstoren | Std::vstore_half | Std::vstore_halfn | Std::vstorea_halfn => {
                self.store_vector((b, values, at), std)?;
                return Ok(Vec::new());
            }
            Std::fract | Std::modf | Std::sincos => return self.in_two((b, values, at), std),
            Std::printf => return self.printed((b, values, at)),
            _ => {}
        }
        let count = at.instruction.rest(4).len();
        let mut operands = Vec::with_capacity(count);
        for number in 0..count {
            operands.push(self.values(b, values, at.operand(4 + number)?)?);
        }
        let results = self.module.parts(at.ty()?)?;
        if let Some(made) = self.geometric(b, std, &operands)? {
            return Ok(made);
        }
        let mut made = Vec::with_capacity(results.len());
        for (part, &(_, to)) in results.iter().enumerate() {
            let own: Option<Vec<Value>> = operands
                .iter()
                .map(|operand| match &operand[..] {
                    [one] => Some(*one),
                    several => several.get(part).copied(),
                })
                .collect();
            let own = own.ok_or_else(|| Error::input("its operands have different numbers of parts"))?;
            made.push(self.standard_of_parts(b, at, std, &own, to)?);
        }
        Ok(made)
    }

    fn standard_of_parts(
        &mut self,
        b: &mut Builder<'_>,
        at: &At<'_, '_>,
        std: Std,
        own: &[Value],
        to: Type,
    ) -> Result<Value> {
        let few = || Error::input(format!("`OpExtInst {std:?}` has too few operands")).named();
        let [x, y, z] = [0, 1, 2].map(|number| own.get(number).copied());
        let x = x.ok_or_else(few)?;
        check_type(std, b.kernel.ty(x))?;
        // Functions that the IR has for `f32` alone are rounded once more.
        if b.kernel.ty(x) == Type::F16 && is_of_singles(std) {
            let mut wide = Vec::with_capacity(own.len());
            for &one in own {
                wide.push(match b.kernel.ty(one) {
                    Type::F16 => b.convert(ConvertOp::FloatToFloat, Type::F32, one),
                    _ => one,
                });
            }
            // The others are exact in single precision, or have the last bits of a half there.
            if !matches!(std, Std::fmod | Std::ldexp | Std::round) {
                self.left_to_devices(at, std);
            }
            let made = self.standard_of_parts(b, at, std, &wide, Type::F32)?;
            return Ok(b.convert(ConvertOp::FloatToFloat, to, made));
        }
        if matches!(std, Std::sinpi | Std::cospi) {
            self.left_to_devices(at, std);
            return Ok(of_pi(b, x, std == Std::sinpi));
        }
        let made = match (y, z) {
            (Some(y), Some(z)) => self.of_three(b, at, std, x, y, z)?,
            (Some(y), None) => self.of_two(b, std, x, y)?,
            _ => self.of_one(b, std, x),
        };
        made.ok_or_else(|| {
            Error::input(format!("`OpExtInst {std:?}` is not supported")).named().accepted(
                "OpenCL's functions on floats that the kernel language has, those on integers, vectors in memory, \
                 prefetches",
            )
        })
    }

    fn of_one(&mut self, b: &mut Builder<'_>, std: Std, x: Value) -> Option<Value> {
        let ty = b.kernel.ty(x);
        let exact = match std {
            Std::fabs => Some(UnaryOp::FAbs),
            Std::floor => Some(UnaryOp::Floor),
            Std::ceil => Some(UnaryOp::Ceil),
            Std::trunc => Some(UnaryOp::Trunc),
            Std::rint => Some(UnaryOp::RoundEven),
            Std::sqrt => Some(UnaryOp::Sqrt),
            Std::clz => Some(UnaryOp::CountLeadingZeros),
            Std::popcount => Some(UnaryOp::CountOnes),
            _ => None,
        };
        if let Some(op) = exact {
            return Some(b.unary(op, x));
        }
        if ty == Type::F32 {
            let approximate = match std {
                Std::native_recip => Some(UnaryOp::ApproximateReciprocal),
                Std::native_rsqrt => Some(UnaryOp::ApproximateRsqrt),
                Std::native_sqrt => Some(UnaryOp::ApproximateSqrt),
                Std::native_exp2 => Some(UnaryOp::ApproximateExp2),
                Std::native_log2 => Some(UnaryOp::ApproximateLog2),
                Std::native_sin => Some(UnaryOp::ApproximateSin),
                Std::native_cos => Some(UnaryOp::ApproximateCos),
                _ => None,
            };
            if let Some(op) = approximate {
                return Some(b.unary(op, x));
            }
        }
        Some(match std {
            Std::round if matches!(ty, Type::F32 | Type::F64) => {
                self.is_exact = true;
                Function::Round.emit(b, &[x])
            }
            Std::degrees => self.times(b, x, 180.0 / std::f64::consts::PI),
            Std::radians => self.times(b, x, std::f64::consts::PI / 180.0),
            Std::sign => {
                let (zero, one) = (number(b, ty, 0.0), number(b, ty, 1.0));
                let own = b.binary(BinaryOp::CopySign, one, x);
                let some = b.compare(CompareOp::FNe, x, zero);
                let not = b.compare(CompareOp::FUnordered, x, x);
                let made = b.select(some, own, x);
                let nothing = number(b, ty, 0.0);
                b.select(not, nothing, made)
            }
            Std::s_abs => {
                let zero = b.constant(ty, 0);
                let negated = b.sub(zero, x);
                let negative = b.compare(CompareOp::LtS, x, zero);
                b.select(negative, negated, x)
            }
            Std::u_abs => x,
            Std::ctz => {
                let reversed = b.unary(UnaryOp::ReverseBits, x);
                b.unary(UnaryOp::CountLeadingZeros, reversed)
            }
            _ => match function_of(std) {
                Some(function) if function.operands().fit(ty) => b.unary(function, x),
                _ => return None,
            },
        })
    }

    fn of_two(&mut self, b: &mut Builder<'_>, std: Std, x: Value, y: Value) -> Result<Option<Value>> {
        let ty = b.kernel.ty(x);
        let exact = match std {
            Std::fmax | Std::fmax_common => Some(BinaryOp::FMax),
            Std::fmin | Std::fmin_common => Some(BinaryOp::FMin),
            Std::copysign => Some(BinaryOp::CopySign),
            Std::s_max => Some(BinaryOp::MaxS),
            Std::s_min => Some(BinaryOp::MinS),
            Std::u_max => Some(BinaryOp::MaxU),
            Std::u_min => Some(BinaryOp::MinU),
            Std::s_mul_hi => Some(BinaryOp::MulHighS),
            Std::u_mul_hi => Some(BinaryOp::MulHighU),
            Std::s_mul24 | Std::u_mul24 => Some(BinaryOp::Mul),
            _ => function_of_two(std).filter(|op| op.operands().fit(ty)),
        };
        if let Some(op) = exact {
            return Ok(Some(b.binary(op, x, y)));
        }
        let is_wide = matches!(ty, Type::F32 | Type::F64);
        Ok(Some(match std {
            Std::fmod if is_wide => {
                self.is_exact = true;
                Function::Rem.emit(b, &[x, y])
            }
            Std::pown if is_wide && b.kernel.ty(y) == Type::I32 => {
                let power = match ty {
                    Type::F64 => b.convert(ConvertOp::ExtendS, Type::I64, y),
                    _ => y,
                };
                let power = b.convert(ConvertOp::Bits, ty, power);
                b.binary(BinaryOp::LibraryPown, x, power)
            }
            Std::fdim => {
                let difference = b.binary(BinaryOp::FSub, x, y);
                let zero = number(b, ty, 0.0);
                let above = b.compare(CompareOp::FLe, x, y);
                b.select(above, zero, difference)
            }
            Std::maxmag | Std::minmag => {
                let own = b.unary(UnaryOp::FAbs, x);
                let other = b.unary(UnaryOp::FAbs, y);
                let (op, first, second) = match std {
                    Std::maxmag => (BinaryOp::FMax, other, own),
                    _ => (BinaryOp::FMin, own, other),
                };
                let is_x = b.compare(CompareOp::FLt, first, second);
                let is_y = b.compare(CompareOp::FLt, second, first);
                let either = b.binary(op, x, y);
                let made = b.select(is_y, y, either);
                b.select(is_x, x, made)
            }
            Std::step => {
                let (zero, one) = (number(b, ty, 0.0), number(b, ty, 1.0));
                let below = b.compare(CompareOp::FLt, y, x);
                b.select(below, zero, one)
            }
            Std::rotate => {
                let bits = b.constant(ty, u64::from(ty.bits()));
                let mask = b.constant(ty, u64::from(ty.bits() - 1));
                let count = b.and(y, mask);
                let up = b.binary(BinaryOp::Shl, x, count);
                let rest = b.sub(bits, count);
                let down = b.binary(BinaryOp::ShrU, x, rest);
                b.binary(BinaryOp::Or, up, down)
            }
            Std::u_abs_diff | Std::s_abs_diff => {
                let code = match std {
                    Std::u_abs_diff => CompareOp::LtU,
                    _ => CompareOp::LtS,
                };
                let below = b.compare(code, x, y);
                let (one, other) = (b.sub(x, y), b.sub(y, x));
                b.select(below, other, one)
            }
            Std::u_add_sat => {
                let sum = b.add(x, y);
                let over = b.compare(CompareOp::LtU, sum, x);
                let most = b.constant(ty, ty.mask());
                b.select(over, most, sum)
            }
            Std::u_sub_sat => {
                let difference = b.sub(x, y);
                let under = b.compare(CompareOp::LtU, x, y);
                let zero = b.constant(ty, 0);
                b.select(under, zero, difference)
            }
            Std::s_add_sat | Std::s_sub_sat => saturated(b, std == Std::s_add_sat, x, y),
            Std::u_hadd | Std::s_hadd | Std::u_rhadd | Std::s_rhadd => halved_sum(b, std, x, y),
            Std::u_upsample | Std::s_upsample => {
                let wide = match ty {
                    Type::I8 => Type::I16,
                    Type::I16 => Type::I32,
                    _ => Type::I64,
                };
                let high = b.convert(ConvertOp::ExtendU, wide, x);
                let low = b.convert(ConvertOp::ExtendU, wide, y);
                let count = b.constant(wide, u64::from(ty.bits()));
                let high = b.binary(BinaryOp::Shl, high, count);
                b.binary(BinaryOp::Or, high, low)
            }
            Std::ldexp if matches!(ty, Type::F32 | Type::F64) => scaled(b, x, y),
            Std::nextafter => next_after(b, x, y),
            _ => return Ok(None),
        }))
    }

    fn of_three(
        &mut self,
        b: &mut Builder<'_>,
        at: &At<'_, '_>,
        std: Std,
        x: Value,
        y: Value,
        z: Value,
    ) -> Result<Option<Value>> {
        let ty = b.kernel.ty(x);
        Ok(Some(match std {
            Std::fma => b.fma(x, y, z),
            Std::mad => {
                let _ = at;
                b.fma(x, y, z)
            }
            Std::fclamp => {
                let least = b.binary(BinaryOp::FMax, x, y);
                b.binary(BinaryOp::FMin, least, z)
            }
            Std::s_clamp => {
                let least = b.binary(BinaryOp::MaxS, x, y);
                b.binary(BinaryOp::MinS, least, z)
            }
            Std::u_clamp => {
                let least = b.binary(BinaryOp::MaxU, x, y);
                b.binary(BinaryOp::MinU, least, z)
            }
            Std::mix => {
                let difference = b.binary(BinaryOp::FSub, y, x);
                let product = b.binary(BinaryOp::FMul, difference, z);
                b.binary(BinaryOp::FAdd, x, product)
            }
            Std::smoothstep => {
                let (zero, one) = (number(b, ty, 0.0), number(b, ty, 1.0));
                let above = b.binary(BinaryOp::FSub, z, x);
                let whole = b.binary(BinaryOp::FSub, y, x);
                let share = b.binary(BinaryOp::FDiv, above, whole);
                let share = b.binary(BinaryOp::FMax, share, zero);
                let share = b.binary(BinaryOp::FMin, share, one);
                let (two, three) = (number(b, ty, 2.0), number(b, ty, 3.0));
                let twice = b.binary(BinaryOp::FMul, two, share);
                let rest = b.binary(BinaryOp::FSub, three, twice);
                let square = b.binary(BinaryOp::FMul, share, share);
                self.left_to_devices(at, std);
                b.binary(BinaryOp::FMul, square, rest)
            }
            Std::s_mad24 | Std::u_mad24 => {
                let product = b.mul(x, y);
                b.add(product, z)
            }
            Std::s_mad_hi | Std::u_mad_hi => {
                let code = match std {
                    Std::s_mad_hi => BinaryOp::MulHighS,
                    _ => BinaryOp::MulHighU,
                };
                let product = b.binary(code, x, y);
                b.add(product, z)
            }
            Std::bitselect => {
                let integer = integer_of(ty)?;
                let [x, y, z] = [x, y, z].map(|one| self.exactly(b, one, integer));
                let (x, y, z) = (x?, y?, z?);
                let own = b.and(y, z);
                let not = b.unary(UnaryOp::Not, z);
                let other = b.and(x, not);
                let bits = b.binary(BinaryOp::Or, own, other);
                self.exactly(b, bits, ty)?
            }
            Std::select => {
                // Of vectors the highest bit decides, of scalars any; a scalar's is one of both.
                let chooser = b.kernel.ty(z);
                let zero = b.constant(chooser, 0);
                let is_vector = self.module.count(at.ty()?)? > 1;
                let cond = match is_vector {
                    true => b.compare(CompareOp::LtS, z, zero),
                    false => b.compare(CompareOp::Ne, z, zero),
                };
                b.select(cond, y, x)
            }
            _ => return Ok(None),
        }))
    }

    /// Functions of whole vectors.
    fn geometric(
        &mut self,
        b: &mut Builder<'_>,
        std: Std,
        operands: &[Vec<Value>],
    ) -> Result<Option<Vec<Value>>> {
        Ok(match (std, operands) {
            (Std::cross, [x, y]) if x.len() >= 3 && y.len() == x.len() => {
                let mut made = Vec::new();
                for (one, other) in [(1, 2), (2, 0), (0, 1)] {
                    let left = b.binary(BinaryOp::FMul, x[one], y[other]);
                    let right = b.binary(BinaryOp::FMul, x[other], y[one]);
                    made.push(b.binary(BinaryOp::FSub, left, right));
                }
                if x.len() == 4 {
                    let ty = b.kernel.ty(x[0]);
                    made.push(number(b, ty, 0.0));
                }
                Some(made)
            }
            (Std::shuffle, [x, mask]) => Some(shuffled(b, x, mask)),
            (Std::shuffle2, [x, y, mask]) => {
                let both = [&x[..], &y[..]].concat();
                Some(shuffled(b, &both, mask))
            }
            _ => None,
        })
    }

    /// What gives one number back and stores another: `fract`, `modf`, `sincos`.
    fn in_two(&mut self, (b, values, at): Here<'_, '_, '_>, std: Std) -> Result<Vec<Value>> {
        let x = self.values(b, values, at.operand(4)?)?;
        let pointer = at.operand(5)?;
        let (mut made, mut stored) = (Vec::new(), Vec::new());
        for x in x {
            let ty = b.kernel.ty(x);
            check_type(std, ty)?;
            let (own, other) = match std {
                Std::fract => {
                    let floor = b.unary(UnaryOp::Floor, x);
                    let rest = b.binary(BinaryOp::FSub, x, floor);
                    let below_one = match ty {
                        Type::F64 => b.constant(ty, 0x3fef_ffff_ffff_ffff),
                        Type::F32 => b.constant(ty, 0x3f7f_ffff),
                        _ => return Err(Error::input("`OpExtInst fract` of halves is not supported").named()),
                    };
                    (b.binary(BinaryOp::FMin, rest, below_one), floor)
                }
                Std::modf => {
                    let whole = b.unary(UnaryOp::Trunc, x);
                    let rest = b.binary(BinaryOp::FSub, x, whole);
                    let zero = number(b, ty, 0.0);
                    let magnitude = b.unary(UnaryOp::FAbs, rest);
                    let is_whole = b.compare(CompareOp::FEq, x, whole);
                    let rest = b.select(is_whole, zero, magnitude);
                    (b.binary(BinaryOp::CopySign, rest, x), whole)
                }
                _ if ty == Type::Bf16 => {
                    return Err(
                        Error::input("`OpExtInst sincos` of bfloat16 numbers is not supported").named(),
                    );
                }
                _ => (
                    b.unary(UnaryOp::LibrarySinOfBoth, x),
                    b.unary(UnaryOp::LibraryCosOfBoth, x),
                ),
            };
            made.push(own);
            stored.push(other);
        }
        let (_, ty) = self.module.pointer(self.type_of(pointer)?)?;
        let align = self.module.size(ty)?.1;
        let pointer = self.value(b, values, pointer)?;
        self.store_parts(b, pointer, ty, &stored, align, CacheUse::Default)?;
        Ok(made)
    }

    // Help.

    /// A function whose bits OpenCL leaves to devices became one of ours.
    fn left_to_devices(&mut self, at: &At<'_, '_>, std: Std) {
        let what = format!(
            "OpenCL leaves the last bits of {} to the device, and a rewritten entry would have others",
            quoted(&format!("{std:?}"))
        );
        self.leave_undecided(at, what);
    }

    fn times(&self, b: &mut Builder<'_>, x: Value, factor: f64) -> Value {
        let ty = b.kernel.ty(x);
        let factor = number(b, ty, factor);
        b.binary(BinaryOp::FMul, factor, x)
    }
}

/// A float constant, rounded to its type.
fn number(b: &mut Builder<'_>, ty: Type, number: f64) -> Value {
    match ty {
        Type::F64 => b.f64(number),
        Type::F32 => b.f32(number as f32),
        _ => {
            let single = b.f32(number as f32);
            b.convert(ConvertOp::FloatToFloat, ty, single)
        }
    }
}

/// Refuses a function of floats that is given integers, and the other way around.
fn check_type(std: Std, ty: Type) -> Result<()> {
    let name = format!("{std:?}");
    let fits = match std {
        Std::bitselect | Std::select => true,
        Std::clz | Std::ctz | Std::popcount | Std::rotate => ty.is_integer(),
        _ if name.starts_with("s_") || name.starts_with("u_") => ty.is_integer(),
        _ => ty.is_float(),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::input(format!("`OpExtInst {name}` of values of type {ty}")).named()),
    }
}

/// Functions of floats that the IR has for `f32` and `f64` alone.
fn is_of_singles(std: Std) -> bool {
    matches!(
        std,
        Std::pown | Std::fmod | Std::ldexp | Std::round | Std::sinpi | Std::cospi
    )
}

/// The function of the device's library that an instruction of one number is.
fn function_of(std: Std) -> Option<UnaryOp> {
    Some(match std {
        Std::exp => UnaryOp::LibraryExp,
        Std::exp2 => UnaryOp::LibraryExp2,
        Std::exp10 => UnaryOp::LibraryExp10,
        Std::log => UnaryOp::LibraryLog,
        Std::log2 => UnaryOp::LibraryLog2,
        Std::log10 => UnaryOp::LibraryLog10,
        Std::sin => UnaryOp::LibrarySin,
        Std::cos => UnaryOp::LibraryCos,
        Std::tan => UnaryOp::LibraryTan,
        Std::asin => UnaryOp::LibraryAsin,
        Std::acos => UnaryOp::LibraryAcos,
        Std::atan => UnaryOp::LibraryAtan,
        Std::sinh => UnaryOp::LibrarySinh,
        Std::cosh => UnaryOp::LibraryCosh,
        Std::tanh => UnaryOp::LibraryTanh,
        Std::erf => UnaryOp::LibraryErf,
        Std::cbrt => UnaryOp::LibraryCbrt,
        Std::rsqrt => UnaryOp::LibraryRsqrt,
        Std::log1p => UnaryOp::LibraryLog1p,
        Std::expm1 => UnaryOp::LibraryExpm1,
        Std::erfc => UnaryOp::LibraryErfc,
        Std::native_exp => UnaryOp::NativeExp,
        Std::native_exp10 => UnaryOp::NativeExp10,
        Std::native_log => UnaryOp::NativeLog,
        Std::native_log10 => UnaryOp::NativeLog10,
        Std::native_tan => UnaryOp::NativeTan,
        Std::half_exp => UnaryOp::HalfExp,
        Std::half_exp2 => UnaryOp::HalfExp2,
        Std::half_exp10 => UnaryOp::HalfExp10,
        Std::half_log => UnaryOp::HalfLog,
        Std::half_log2 => UnaryOp::HalfLog2,
        Std::half_log10 => UnaryOp::HalfLog10,
        Std::half_sin => UnaryOp::HalfSin,
        Std::half_cos => UnaryOp::HalfCos,
        Std::half_tan => UnaryOp::HalfTan,
        Std::half_recip => UnaryOp::HalfReciprocal,
        Std::half_rsqrt => UnaryOp::HalfRsqrt,
        Std::half_sqrt => UnaryOp::HalfSqrt,
        _ => return None,
    })
}

/// The function of the device's library that an instruction of two numbers is.
fn function_of_two(std: Std) -> Option<BinaryOp> {
    Some(match std {
        Std::atan2 => BinaryOp::LibraryAtan2,
        Std::hypot => BinaryOp::LibraryHypot,
        Std::pow => BinaryOp::LibraryPow,
        Std::powr => BinaryOp::LibraryPowr,
        Std::native_powr => BinaryOp::NativePowr,
        Std::native_divide => BinaryOp::NativeDivide,
        Std::half_powr => BinaryOp::HalfPowr,
        Std::half_divide => BinaryOp::HalfDivide,
        _ => return None,
    })
}
