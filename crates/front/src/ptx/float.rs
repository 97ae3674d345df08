//! Arithmetic of floats: each instruction with its own rounding and flushing.
//!
//! An approximation (`rcp.approx`, `ex2.approx`, `div.full` …) is an operation of its own, which the back end writes as the
//! very instruction that was read: an exact operation in its place would have other bits.

use super::translator::{At, Translator};
use super::tree::Instruction;
use super::values::{only, refused};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, ConvertOp, FloatRule, OpKind, Rounding, Type, UnaryOp, Value, verify};

/// The modifiers, besides types, of an instruction on floats.
fn known(opcode: &str) -> &'static [&'static str] {
    match opcode {
        "add" | "sub" | "mul" | "fma" | "mad" => &["rn", "rz", "rm", "rp", "ftz", "sat"],
        "div" => &["approx", "full", "rn", "rz", "rm", "rp", "ftz"],
        "rcp" | "sqrt" => &["approx", "rn", "rz", "rm", "rp", "ftz"],
        "min" | "max" => &["ftz", "NaN"],
        "neg" | "abs" => &["ftz"],
        "copysign" => &[],
        _ => &["approx", "ftz"],
    }
}

/// Whether an instruction says in which direction it rounds.
fn is_rounded(instruction: &Instruction<'_>) -> bool {
    Rounding::ALL
        .into_iter()
        .any(|rounding| instruction.has(rounding.name()))
}

/// How an instruction rounds, to nearest if it does not say, and whether it flushes.
///
/// # Errors
/// It rounds in two directions.
pub(super) fn rule_of(instruction: &Instruction<'_>) -> Result<FloatRule> {
    let mut named = Rounding::ALL
        .into_iter()
        .filter(|rounding| instruction.has(rounding.name()));
    let rounding = named.next().unwrap_or_default();
    if named.next().is_some() {
        return Err(refused(instruction));
    }
    Ok(FloatRule {
        rounding,
        flush: instruction.has("ftz"),
        ..FloatRule::EXACT
    })
}

/// An operation with the rule of its instruction.
///
/// # Errors
/// No device has this operation with this rule.
pub(super) fn ruled(
    b: &mut Builder<'_>,
    instruction: &Instruction<'_>,
    rule: FloatRule,
    kind: OpKind,
    to: Type,
) -> Result<Value> {
    if rule == FloatRule::EXACT {
        return Ok(match kind {
            OpKind::Unary(op, a) => b.unary(op, a),
            OpKind::Binary(op, x, y) => b.binary(op, x, y),
            OpKind::Fma(x, y, z) => b.fma(x, y, z),
            OpKind::Compare(op, x, y) => b.compare(op, x, y),
            OpKind::Convert(op, a) => b.convert(op, to, a),
            other => b.push(other, &[to])[0],
        });
    }
    match verify::can_have(b.kernel, rule, &kind, to) {
        true => Ok(b.ruled(rule, kind, to)),
        false => Err(Error::input(format!(
            "`{}`: PTX has no `{}` with these modifiers",
            instruction.spelling(),
            instruction.opcode
        ))),
    }
}

/// The type of the halves that a name such as `f16x2` packs.
pub(super) fn half_of(name: &str) -> Option<Type> {
    match name {
        "f16x2" => Some(Type::F16),
        "bf16x2" => Some(Type::Bf16),
        _ => None,
    }
}

/// The two halves of 32 bits, the low one first.
pub(super) fn taken_apart(b: &mut Builder<'_>, whole: Value, half: Type) -> [Value; 2] {
    let count = b.i32(16);
    let high = b.binary(BinaryOp::ShrU, whole, count);
    [whole, high].map(|bits| {
        let bits = b.convert(ConvertOp::Truncate, Type::I16, bits);
        b.convert(ConvertOp::Bits, half, bits)
    })
}

/// Two halves as 32 bits.
pub(super) fn put_together(b: &mut Builder<'_>, low: Value, high: Value) -> Value {
    let [low, high] = [low, high].map(|half| {
        let bits = b.convert(ConvertOp::Bits, Type::I16, half);
        b.convert(ConvertOp::ExtendU, Type::I32, bits)
    });
    let count = b.i32(16);
    let high = b.binary(BinaryOp::Shl, high, count);
    b.binary(BinaryOp::Or, low, high)
}

impl<'t> Translator<'_, 't> {
    /// An instruction on floats that is no conversion and no comparison.
    pub(super) fn float(&mut self, (b, values, instruction): At<'_, '_, 't>, ty: Type) -> Result<()> {
        only(instruction, known(instruction.opcode))?;
        let Some((to, arguments)) = instruction.operands.split_first() else {
            return Err(refused(instruction));
        };
        let mut read = Vec::with_capacity(arguments.len());
        for argument in arguments {
            read.push(self.value(b, values, argument, ty)?);
        }
        let result = float_of(b, instruction, ty, &read)?;
        let open = matches!(instruction.opcode, "mul" | "add" | "sub") && ty.is_float();
        if open && !is_rounded(instruction) && !instruction.has("sat") {
            // When ptxas fuses halves is not known: on an H200 it fuses some single ones and leaves others.
            match (ty, instruction.opcode) {
                (Type::F32 | Type::F64, _) => {
                    self.open.insert(result);
                }
                (_, "mul") => self.open_halves.products.push(result),
                _ => self.open_halves.sums.push(result),
            }
        }
        self.set(b, values, to, result, false)
    }

    /// `fma.rn.f16x2 d, a, b, c`: the same for two halves.
    pub(super) fn halves(&mut self, (b, values, instruction): At<'_, '_, 't>, half: Type) -> Result<()> {
        only(instruction, known(instruction.opcode))?;
        let Some((to, arguments)) = instruction.operands.split_first() else {
            return Err(refused(instruction));
        };
        let mut pairs = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let whole = self.value(b, values, argument, Type::I32)?;
            pairs.push(taken_apart(b, whole, half));
        }
        let mut results = Vec::new();
        for side in 0..2 {
            let read: Vec<Value> = pairs.iter().map(|pair| pair[side]).collect();
            results.push(float_of(b, instruction, half, &read)?);
        }
        if !is_rounded(instruction) && !instruction.has("sat") {
            match instruction.opcode {
                "mul" => self.open_halves.products.extend(&results),
                "add" | "sub" => self.open_halves.sums.extend(&results),
                _ => {}
            }
        }
        let whole = put_together(b, results[0], results[1]);
        self.set(b, values, to, whole, false)
    }
}

/// What a floating-point instruction makes of its operands.
fn float_of(b: &mut Builder<'_>, instruction: &Instruction<'_>, ty: Type, read: &[Value]) -> Result<Value> {
    let rule = rule_of(instruction)?;
    // PTX takes the sign from the first operand, the IR from the second.
    if let ("copysign", &[x, y]) = (instruction.opcode, read) {
        return Ok(b.binary(BinaryOp::CopySign, y, x));
    }
    let approximates = instruction.has("approx") || instruction.has("full");
    if approximates && is_rounded(instruction) {
        return Err(refused(instruction));
    }
    let says_how = approximates || is_rounded(instruction);
    if matches!(instruction.opcode, "div" | "rcp" | "sqrt") && !says_how {
        return Err(refused(instruction));
    }
    let kind = match (instruction.opcode, read) {
        ("div", &[x, y]) if instruction.has("full") => OpKind::Binary(BinaryOp::ApproximateDiv, x, y),
        ("div", &[x, y]) if approximates => OpKind::Binary(BinaryOp::ApproximateDivInRange, x, y),
        (name, &[x]) if approximates => {
            OpKind::Unary(approximation(name, ty).ok_or_else(|| refused(instruction))?, x)
        }
        ("add", &[x, y]) => OpKind::Binary(BinaryOp::FAdd, x, y),
        ("sub", &[x, y]) => OpKind::Binary(BinaryOp::FSub, x, y),
        ("mul", &[x, y]) => OpKind::Binary(BinaryOp::FMul, x, y),
        ("fma" | "mad", &[x, y, z]) => OpKind::Fma(x, y, z),
        ("div", &[x, y]) => OpKind::Binary(BinaryOp::FDiv, x, y),
        ("neg", &[x]) => OpKind::Unary(UnaryOp::FNeg, x),
        ("abs", &[x]) => OpKind::Unary(UnaryOp::FAbs, x),
        ("min" | "max", &[x, y]) => {
            let op = match (instruction.opcode, instruction.has("NaN")) {
                ("min", false) => BinaryOp::FMin,
                ("min", true) => BinaryOp::FMinimum,
                (_, false) => BinaryOp::FMax,
                (_, true) => BinaryOp::FMaximum,
            };
            OpKind::Binary(op, x, y)
        }
        ("rcp", &[x]) => {
            let one = one(b, ty);
            OpKind::Binary(BinaryOp::FDiv, one, x)
        }
        ("sqrt", &[x]) => OpKind::Unary(UnaryOp::Sqrt, x),
        _ => return Err(refused(instruction)),
    };
    let result = ruled(b, instruction, rule, kind, ty)?;
    Ok(match instruction.has("sat") {
        true => clamped(b, ty, result),
        false => result,
    })
}

/// The operation for `NAME.approx`.
fn approximation(name: &str, ty: Type) -> Option<UnaryOp> {
    Some(match (name, ty) {
        ("rcp", Type::F32 | Type::F64) => UnaryOp::ApproximateReciprocal,
        ("rsqrt", Type::F32 | Type::F64) => UnaryOp::ApproximateRsqrt,
        ("ex2", Type::F32 | Type::F16 | Type::Bf16) => UnaryOp::ApproximateExp2,
        ("tanh", Type::F32 | Type::F16 | Type::Bf16) => UnaryOp::ApproximateTanh,
        ("sqrt", Type::F32) => UnaryOp::ApproximateSqrt,
        ("lg2", Type::F32) => UnaryOp::ApproximateLog2,
        ("sin", Type::F32) => UnaryOp::ApproximateSin,
        ("cos", Type::F32) => UnaryOp::ApproximateCos,
        _ => return None,
    })
}

fn one(b: &mut Builder<'_>, ty: Type) -> Value {
    match ty {
        Type::F64 => b.f64(1.0),
        Type::F16 => b.constant(ty, 0x3c00),
        Type::Bf16 => b.constant(ty, 0x3f80),
        _ => b.f32(1.0),
    }
}

/// From 0 to 1; a NaN becomes 0.
pub(super) fn clamped(b: &mut Builder<'_>, ty: Type, value: Value) -> Value {
    let zero = b.constant(ty, 0);
    let one = one(b, ty);
    let at_least = b.binary(BinaryOp::FMax, value, zero);
    b.binary(BinaryOp::FMin, at_least, one)
}
