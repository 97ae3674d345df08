//! Sums, products, quotients; integers, floats and addresses.

use super::memory::pointer_and_rest;
use super::structure::{Translator, Values};
use super::tree::{Body, Instruction, Operand, Register, Statement};
use super::values::{Numeric, is_pointer, last_type, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, ConvertOp, FloatMode, Type, UnaryOp, Value};
use crate::math::Function;

/// Modifiers that say what the IR does anyway, or what the entry as a whole does.
const ROUNDED: &[&str] = &["rn", "ftz", "sat"];
/// Modifiers of functions that the hardware approximates.
const APPROXIMATE: &[&str] = &["approx", "full", "rn", "ftz"];

/// Whether single precision flushes subnormals, and whether a product may be fused with a sum.
///
/// # Errors
/// Some arithmetic flushes and some does not, which a kernel of the IR cannot.
pub(super) fn float_mode(body: &Body<'_>) -> Result<FloatMode> {
    let mut flushing: Option<(bool, u32)> = None;
    let mut products: Vec<Register> = Vec::new();
    let mut may_contract = false;
    for statement in &body.statements {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        let sums = matches!(instruction.opcode, "add" | "sub");
        let arithmetic = sums || matches!(instruction.opcode, "mul" | "fma" | "mad" | "div" | "sqrt" | "rcp");
        if arithmetic && instruction.last() == "f32" {
            let flushes = instruction.has("ftz");
            match flushing {
                Some((before, line)) if before != flushes => {
                    return Err(Error::input(format!(
                        "`{}`: some single-precision arithmetic flushes subnormals and some does not (line {line})",
                        instruction.spelling()
                    ))
                    .at(format!("line {}", instruction.line))
                    .accepted("`.ftz` everywhere or nowhere"));
                }
                _ => flushing = Some((flushes, instruction.line)),
            }
        }
        // Without `.rn` an assembler may fuse a product with the sum that takes it.
        if matches!(instruction.last(), "f32" | "f64") && !instruction.has("rn") {
            if instruction.opcode == "mul"
                && let Some(Operand::Register(register)) = instruction.operands.first()
            {
                products.push(*register);
            }
            if sums {
                for operand in instruction.read() {
                    operand.for_each_register(&mut |register| may_contract |= products.contains(&register));
                }
            }
        }
    }
    Ok(FloatMode {
        flush_to_zero: flushing.is_some_and(|(flushes, _)| flushes),
        may_contract,
        // PTX says nothing of them, and what comes back as PTX is not to pay for more.
        any_nan: true,
    })
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
    /// Everything that computes and has no file of its own.
    pub fn arithmetic(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        if let Some(half) = half_of(instruction.last()) {
            return self.halves(b, values, instruction, half);
        }
        let numeric = match instruction.opcode {
            "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "neg" | "abs" | "min" | "max" | "sad"
            | "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "copysign" => {
                last_type(instruction)?
            }
            "nanosleep" | "pmevent" => return Ok(()),
            // What caches are asked to do with a line changes no result.
            "createpolicy" => {
                let policy = b.i64(0);
                return match instruction.operands.first() {
                    Some(to) => self.set(b, values, to, policy, false),
                    None => Err(refused(instruction)),
                };
            }
            _ => return Err(refused(instruction)),
        };
        if numeric.ty == Type::Bool {
            return Err(refused(instruction));
        }
        if numeric.ty.is_float() {
            return self.float(b, values, instruction, numeric.ty);
        }
        match instruction.opcode {
            "add" | "sub" if instruction.has("sat") && numeric.ty == Type::I32 && numeric.signed => {
                only(instruction, &["sat"])?;
                self.saturating_sum(b, values, instruction)
            }
            "add" | "sub" => {
                only(instruction, &[])?;
                self.sum(b, values, instruction, numeric)
            }
            "mul" | "mad" => {
                only(instruction, &["lo", "hi", "wide"])?;
                self.product(b, values, instruction, numeric)
            }
            "neg" | "abs" => {
                only(instruction, &[])?;
                let [to, a] = operands::<2>(instruction)?;
                let a = self.value(b, values, a, numeric.ty)?;
                let negated = b.unary(UnaryOp::Neg, a);
                let result = match instruction.opcode {
                    "neg" => negated,
                    // The most negative number has no counterpart: it stays itself.
                    _ => b.binary(BinaryOp::MaxS, a, negated),
                };
                self.set(b, values, to, result, true)
            }
            "div" | "rem" | "min" | "max" => {
                only(instruction, &[])?;
                let [to, x, y] = operands::<3>(instruction)?;
                let op = match (instruction.opcode, numeric.signed) {
                    ("div", true) => BinaryOp::DivS,
                    ("div", false) => BinaryOp::DivU,
                    ("rem", true) => BinaryOp::RemS,
                    ("rem", false) => BinaryOp::RemU,
                    ("min", true) => BinaryOp::MinS,
                    ("min", false) => BinaryOp::MinU,
                    (_, true) => BinaryOp::MaxS,
                    (_, false) => BinaryOp::MaxU,
                };
                let x = self.value(b, values, x, numeric.ty)?;
                let y = self.value(b, values, y, numeric.ty)?;
                let result = b.binary(op, x, y);
                self.set(b, values, to, result, numeric.signed)
            }
            "sad" => {
                only(instruction, &[])?;
                let [to, x, y, c] = operands::<4>(instruction)?;
                let (least, most) = match numeric.signed {
                    true => (BinaryOp::MinS, BinaryOp::MaxS),
                    false => (BinaryOp::MinU, BinaryOp::MaxU),
                };
                let x = self.value(b, values, x, numeric.ty)?;
                let y = self.value(b, values, y, numeric.ty)?;
                let c = self.value(b, values, c, numeric.ty)?;
                let (low, high) = (b.binary(least, x, y), b.binary(most, x, y));
                let distance = b.sub(high, low);
                let result = b.add(distance, c);
                self.set(b, values, to, result, numeric.signed)
            }
            _ => Err(refused(instruction)),
        }
    }

    /// An operand of a sum: a pointer, where a register holds one.
    fn summand(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        operand: &Operand<'t>,
        ty: Type,
    ) -> Result<Value> {
        match operand {
            Operand::Register(register) => {
                let value = self.get(b, values, *register)?;
                let width = self.width(*register)?;
                match is_pointer(b, value) && width == ty.bits() {
                    true => Ok(value),
                    false => self.retyped(b, value, ty),
                }
            }
            Operand::Symbol(name)
                if self.arrays.contains_key(name) || self.source.slots.variable(name).is_some() =>
            {
                self.symbol(b, operand)
            }
            other => self.value(b, values, other, ty),
        }
    }

    /// `add` and `sub` of integers and addresses.
    fn sum(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
        numeric: Numeric,
    ) -> Result<()> {
        let [to, x, y] = operands::<3>(instruction)?;
        let ty = numeric.ty;
        let x = self.summand(b, values, x, ty)?;
        let y = self.summand(b, values, y, ty)?;
        let adds = instruction.opcode == "add";
        let result = match pointer_and_rest(b, x, y) {
            Some((pointer, rest)) if adds => self.pointer_plus(b, pointer, rest),
            Some((pointer, rest)) if pointer == x => {
                let negated = b.unary(UnaryOp::Neg, rest);
                self.pointer_plus(b, pointer, negated)
            }
            _ => {
                let x = self.retyped(b, x, ty)?;
                let y = self.retyped(b, y, ty)?;
                let result = if adds { b.add(x, y) } else { b.sub(x, y) };
                if let (Type::I64, Some((index, factor, addend)), Some(bits)) =
                    (ty, self.scaled(x), b.kernel.as_constant(y))
                {
                    let bytes = if adds {
                        bits as i64
                    } else {
                        (bits as i64).wrapping_neg()
                    };
                    self.note_scaled(result, index, factor, addend.wrapping_add(bytes));
                }
                result
            }
        };
        self.set(b, values, to, result, numeric.signed)
    }

    /// `add.sat.s32` and `sub.sat.s32`: exact in 64 bits, then the nearest number of 32.
    fn saturating_sum(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        let [to, x, y] = operands::<3>(instruction)?;
        let x = self.value(b, values, x, Type::I32)?;
        let y = self.value(b, values, y, Type::I32)?;
        let [x, y] = [x, y].map(|value| b.convert(ConvertOp::ExtendS, Type::I64, value));
        let exact = match instruction.opcode {
            "add" => b.add(x, y),
            _ => b.sub(x, y),
        };
        let (least, most) = (b.i64(i64::from(i32::MIN)), b.i64(i64::from(i32::MAX)));
        let exact = b.binary(BinaryOp::MaxS, exact, least);
        let exact = b.binary(BinaryOp::MinS, exact, most);
        let result = b.convert(ConvertOp::Truncate, Type::I32, exact);
        self.set(b, values, to, result, true)
    }

    /// `mul` and `mad` of integers.
    fn product(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
        numeric: Numeric,
    ) -> Result<()> {
        let (to, x, y, addend) = match &instruction.operands[..] {
            [to, x, y] if instruction.opcode == "mul" => (to, x, y, None),
            [to, x, y, c] if instruction.opcode == "mad" => (to, x, y, Some(c)),
            _ => {
                return Err(Error::input(format!(
                    "`{}` has too few or too many operands",
                    instruction.spelling()
                )));
            }
        };
        let x = self.value(b, values, x, numeric.ty)?;
        let y = self.value(b, values, y, numeric.ty)?;
        let product = match (instruction.has("wide"), instruction.has("hi")) {
            (true, _) => {
                let wide = match numeric.ty {
                    Type::I16 => Type::I32,
                    Type::I32 => Type::I64,
                    _ => return Err(refused(instruction)),
                };
                let op = if numeric.signed {
                    ConvertOp::ExtendS
                } else {
                    ConvertOp::ExtendU
                };
                let x = b.convert(op, wide, x);
                let y = b.convert(op, wide, y);
                self.scaling(b, x, y)
            }
            (_, true) => {
                let op = if numeric.signed {
                    BinaryOp::MulHighS
                } else {
                    BinaryOp::MulHighU
                };
                b.binary(op, x, y)
            }
            _ => self.scaling(b, x, y),
        };
        let result = match addend {
            None => product,
            Some(addend) => {
                let ty = b.kernel.ty(product);
                let addend = self.summand(b, values, addend, ty)?;
                match is_pointer(b, addend) {
                    true => self.pointer_plus(b, addend, product),
                    false => b.add(product, addend),
                }
            }
        };
        self.set(b, values, to, result, numeric.signed)
    }

    /// A product; one by a constant is remembered as an index of elements.
    pub fn scaling(&mut self, b: &mut Builder<'_>, x: Value, y: Value) -> Value {
        let product = b.mul(x, y);
        if b.kernel.ty(product) == Type::I64 {
            for (index, factor) in [(x, y), (y, x)] {
                let factor = b
                    .kernel
                    .as_constant(factor)
                    .and_then(|factor| u32::try_from(factor).ok());
                if let Some(factor) = factor.filter(|&factor| factor > 0)
                    && b.kernel.as_constant(index).is_none()
                {
                    self.note_scaled(product, index, factor, 0);
                }
            }
        }
        product
    }

    fn float(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
        ty: Type,
    ) -> Result<()> {
        let known = match instruction.opcode {
            "add" | "sub" | "mul" | "fma" | "mad" => ROUNDED,
            "min" | "max" => &["ftz", "NaN"],
            "neg" | "abs" => &["ftz"],
            "copysign" => &[],
            _ => APPROXIMATE,
        };
        only(instruction, known)?;
        let Some((to, arguments)) = instruction.operands.split_first() else {
            return Err(refused(instruction));
        };
        let mut read = Vec::with_capacity(arguments.len());
        for argument in arguments {
            read.push(self.value(b, values, argument, ty)?);
        }
        let result = self.float_of(b, instruction, ty, &read)?;
        let open = matches!(instruction.opcode, "mul" | "add" | "sub") && matches!(ty, Type::F32 | Type::F64);
        if open && !instruction.has("rn") && !instruction.has("sat") {
            self.open.insert(result);
        }
        self.set(b, values, to, result, false)
    }

    /// `fma.rn.f16x2 d, a, b, c`: the same for two halves.
    fn halves(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
        half: Type,
    ) -> Result<()> {
        let known = match instruction.opcode {
            "add" | "sub" | "mul" | "fma" => ROUNDED,
            "min" | "max" => &["ftz", "NaN"],
            "neg" | "abs" => &["ftz"],
            "ex2" | "tanh" => APPROXIMATE,
            _ => return Err(refused(instruction)),
        };
        only(instruction, known)?;
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
            results.push(self.float_of(b, instruction, half, &read)?);
        }
        let whole = put_together(b, results[0], results[1]);
        self.set(b, values, to, whole, false)
    }

    /// What a floating-point instruction makes of its operands.
    fn float_of(
        &mut self,
        b: &mut Builder<'_>,
        instruction: &Instruction<'t>,
        ty: Type,
        read: &[Value],
    ) -> Result<Value> {
        let one = |b: &mut Builder<'_>| match ty {
            Type::F64 => b.f64(1.0),
            Type::F16 => b.constant(ty, 0x3c00),
            Type::Bf16 => b.constant(ty, 0x3f80),
            _ => b.f32(1.0),
        };
        let function = |b: &mut Builder<'_>, function: Function, x: Value| match ty {
            Type::F32 | Type::F64 => Ok(function.emit(b, &[x])),
            // Half precision is computed in single precision and rounded.
            _ => {
                let wide = b.convert(ConvertOp::FloatToFloat, Type::F32, x);
                let result = function.emit(b, &[wide]);
                Ok(b.convert(ConvertOp::FloatToFloat, ty, result))
            }
        };
        // `rcp.rn` and its like are exact; of 16 and 64 bits there are only exact forms here.
        let approximates = ty == Type::F32 && !instruction.has("rn");
        let result: Result<Value> = match (instruction.opcode, read) {
            ("div", &[x, y]) if approximates && instruction.has("full") => {
                Ok(b.binary(BinaryOp::ApproximateDiv, x, y))
            }
            ("div", &[x, y]) if approximates && instruction.has("approx") => {
                Ok(b.binary(BinaryOp::ApproximateDivInRange, x, y))
            }
            (name, &[x]) if approximates && let Some(op) = approximation(name) => {
                approximated(b, instruction, op, x)
            }
            ("add", &[x, y]) => Ok(b.binary(BinaryOp::FAdd, x, y)),
            ("sub", &[x, y]) => Ok(b.binary(BinaryOp::FSub, x, y)),
            ("mul", &[x, y]) => Ok(b.binary(BinaryOp::FMul, x, y)),
            ("fma" | "mad", &[x, y, z]) => Ok(b.fma(x, y, z)),
            ("div", &[x, y]) => Ok(b.binary(BinaryOp::FDiv, x, y)),
            ("neg", &[x]) => Ok(b.unary(UnaryOp::FNeg, x)),
            ("abs", &[x]) => Ok(b.unary(UnaryOp::FAbs, x)),
            ("min" | "max", &[x, y]) => {
                let op = if instruction.opcode == "min" {
                    BinaryOp::FMin
                } else {
                    BinaryOp::FMax
                };
                let found = b.binary(op, x, y);
                Ok(match instruction.has("NaN") {
                    false => found,
                    true => {
                        let unordered = b.compare(crate::ir::CompareOp::FUnordered, x, y);
                        // A sum with a NaN is the canonical NaN.
                        let nan = b.binary(BinaryOp::FAdd, x, y);
                        b.select(unordered, nan, found)
                    }
                })
            }
            // PTX takes the sign from the first operand, the IR from the second.
            ("copysign", &[x, y]) => Ok(b.binary(BinaryOp::CopySign, y, x)),
            ("rcp", &[x]) => {
                let one = one(b);
                Ok(b.binary(BinaryOp::FDiv, one, x))
            }
            ("sqrt", &[x]) => Ok(b.unary(UnaryOp::Sqrt, x)),
            ("rsqrt", &[x]) => {
                let one = one(b);
                let root = b.unary(UnaryOp::Sqrt, x);
                Ok(b.binary(BinaryOp::FDiv, one, root))
            }
            ("ex2", &[x]) => function(b, Function::Exp2, x),
            ("lg2", &[x]) => function(b, Function::Log2, x),
            ("sin", &[x]) => function(b, Function::Sin, x),
            ("cos", &[x]) => function(b, Function::Cos, x),
            ("tanh", &[x]) => function(b, Function::Tanh, x),
            _ => Err(refused(instruction)),
        };
        let mut result = result?;
        if instruction.has("sat") {
            result = clamped(b, ty, result, one);
        }
        Ok(result)
    }
}

/// A function that the hardware approximates. One that flushes subnormals in a kernel that keeps them flushes by itself.
fn approximated(b: &mut Builder<'_>, instruction: &Instruction<'_>, op: UnaryOp, x: Value) -> Result<Value> {
    let keeps = !b.kernel.float_mode.flush_to_zero;
    if !keeps && !instruction.has("ftz") && op != UnaryOp::ApproximateTanh {
        return Err(Error::input(format!(
            "`{}` keeps subnormals where other arithmetic flushes them",
            instruction.spelling()
        ))
        .accepted("`.ftz` everywhere or nowhere"));
    }
    if !(keeps && instruction.has("ftz")) {
        return Ok(b.unary(op, x));
    }
    // 2ˣ of a subnormal number is 1 as it is of 0.
    let x = if op == UnaryOp::ApproximateExp2 {
        x
    } else {
        flushed(b, x)
    };
    let result = b.unary(op, x);
    Ok(flushed(b, result))
}

/// Zero, with its sign, for a subnormal `F32`.
fn flushed(b: &mut Builder<'_>, x: Value) -> Value {
    let magnitude = b.unary(UnaryOp::FAbs, x);
    let least = b.f32(f32::MIN_POSITIVE);
    let subnormal = b.compare(crate::ir::CompareOp::FLt, magnitude, least);
    let zero = b.f32(0.0);
    let signed = b.binary(BinaryOp::CopySign, zero, x);
    b.select(subnormal, signed, x)
}

/// The operation for `NAME.approx.f32`.
fn approximation(name: &str) -> Option<UnaryOp> {
    Some(match name {
        "rcp" => UnaryOp::ApproximateReciprocal,
        "rsqrt" => UnaryOp::ApproximateRsqrt,
        "sqrt" => UnaryOp::ApproximateSqrt,
        "ex2" => UnaryOp::ApproximateExp2,
        "lg2" => UnaryOp::ApproximateLog2,
        "sin" => UnaryOp::ApproximateSin,
        "cos" => UnaryOp::ApproximateCos,
        "tanh" => UnaryOp::ApproximateTanh,
        _ => return None,
    })
}

/// From 0 to 1; a NaN becomes 0.
pub(super) fn clamped(
    b: &mut Builder<'_>,
    ty: Type,
    value: Value,
    one: impl FnOnce(&mut Builder<'_>) -> Value,
) -> Value {
    let zero = b.constant(ty, 0);
    let one = one(b);
    let at_least = b.binary(BinaryOp::FMax, value, zero);
    b.binary(BinaryOp::FMin, at_least, one)
}
