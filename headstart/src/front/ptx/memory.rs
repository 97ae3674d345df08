//! Parameters, variables, loads, stores, hints, barriers.

use std::collections::HashMap;

use super::kinds::{space_of, type_of};
use super::structure::{Translator, Values, register_kind};
use super::tree::{Instruction, Operand, Register, Statement, Variable};
use super::values::{last_type, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{
    ArrayData, Builder, CacheHint, CacheLevel, CacheUse, ConvertOp, Kernel, LoadData, OpKind, Param,
    PointerFacts, Space, Type, Value, limits,
};
use crate::suggest::quoted;

/// What cache operators and eviction priorities an access may have: hints all.
const HINTS: &[&str] = &[
    "ca",
    "cg",
    "cs",
    "cv",
    "lu",
    "wb",
    "wt",
    "nc",
    "volatile",
    "weak",
    "global",
    "shared",
    "shared::cta",
    "local",
    "param",
    "const",
    "v2",
    "v4",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "L2::evict_first",
    "L2::evict_last",
    "L2::evict_normal",
];

/// What a parameter is called in the kernel: the PTX name without the entry's.
pub(super) fn parameter_name<'t>(entry: &str, name: &'t str) -> &'t str {
    let rest = name.strip_prefix(entry).and_then(|rest| rest.strip_prefix('_'));
    rest.filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
        .unwrap_or(name)
}

/// Gives the kernel its parameters and arrays.
pub(super) fn declare(translator: &mut Translator<'_, '_>, kernel: &mut Kernel) -> Result<()> {
    let source = translator.source;
    let function = source.function;
    for name in source.facts.parameters.keys() {
        let names = || {
            function
                .params
                .iter()
                .map(|param| parameter_name(function.name, param.name))
        };
        if !names().any(|known| known == name) {
            return Err(
                Error::usage(format!("`{}` has no parameter {}", function.name, quoted(name)))
                    .accepted(crate::suggest::accepted(name, "parameters", names())),
            );
        }
    }
    for (number, param) in function.params.iter().enumerate() {
        let name = parameter_name(function.name, param.name);
        let at = |error: Error| error.at(format!("parameter `{name}`"));
        if param.array.is_some() {
            return Err(at(Error::input(
                "structures that are passed by value are not supported",
            )
            .accepted("their members as parameters of their own")));
        }
        let declared = type_of(param.ty).filter(|ty| *ty != Type::Bool);
        let declared = declared.ok_or_else(|| {
            at(Error::input(format!(
                "parameters of type `.{}` are not supported",
                param.ty
            )))
        })?;
        let is_pointer = source.kinds.pointers[number] && declared == Type::I64;
        let ty = match is_pointer {
            true => Type::Ptr(Space::Global),
            false => scalar_kind(translator, param.name).unwrap_or(declared),
        };
        let value = kernel.value(ty);
        kernel.values[value].name = Some(name.to_owned());
        let facts = is_pointer.then(|| pointer_facts(translator, kernel, number));
        kernel.params.push(Param {
            name: name.to_owned(),
            value,
            facts: facts.transpose().map_err(at)?,
        });
        translator.param_values.push(value);
    }
    let mut variables: Vec<&Variable<'_>> = source.variables.values().copied().collect();
    variables.sort_by_key(|variable| (variable.line, variable.name));
    for variable in variables {
        if let Some(array) = array(translator, variable)? {
            let array = kernel.arrays.push(array);
            translator.arrays.insert(variable.name, array);
        }
    }
    Ok(())
}

/// What the registers that a scalar parameter is loaded into hold.
fn scalar_kind(translator: &Translator<'_, '_>, name: &str) -> Option<Type> {
    let source = translator.source;
    let mut found = None;
    for statement in &source.body.statements {
        if let Statement::Instruction(instruction) = statement
            && let [to, Operand::Address(base, 0)] = &instruction.operands[..]
            && **base == Operand::Symbol(name)
        {
            let kind = register_kind(source.kinds, to).filter(|kind| !kind.is_pointer());
            let fits = type_of(instruction.last()).map(Type::bits) == kind.map(Type::bits);
            found = found.or(kind.filter(|_| fits));
        }
    }
    let param = source.function.params.iter().find(|param| param.name == name)?;
    found.filter(|kind| Some(kind.bits()) == type_of(param.ty).map(Type::bits))
}

/// What is known of the memory behind a pointer: by how it is read, and by what the caller says.
fn pointer_facts(
    translator: &Translator<'_, '_>,
    kernel: &mut Kernel,
    number: usize,
) -> Result<PointerFacts> {
    let source = translator.source;
    let param = &source.function.params[number];
    let mut elements: HashMap<Type, usize> = HashMap::new();
    let (mut constant, mut written) = (false, false);
    for statement in &source.body.statements {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        for operand in &instruction.operands {
            let Operand::Address(base, _) = operand else {
                continue;
            };
            let Operand::Register(base) = **base else { continue };
            if !reaches(translator, base, number) {
                continue;
            }
            constant |= instruction.opcode == "ld" && instruction.has("nc");
            written |= !matches!(instruction.opcode, "ld" | "ldu" | "prefetch" | "prefetchu" | "cp");
            if let Some(ty) = element(translator, instruction) {
                *elements.entry(ty).or_default() += 1;
            }
        }
    }
    let commonest = elements.into_iter().max_by_key(|&(ty, count)| (count, ty));
    let element = commonest.map_or(Type::I8, |(ty, _)| ty);
    let given = source
        .facts
        .parameters
        .get(parameter_name(source.function.name, param.name));
    let given = given.copied().unwrap_or_default();
    let stated = param
        .pointer
        .map_or(0, |(_, align)| align.min(u64::from(limits::ALIGNMENT)) as u32);
    let align = stated.max(given.align.unwrap_or(0)).max(element.bytes());
    let length = given
        .length
        .map(|length| i64::try_from(length).map_err(|_| Error::usage("no buffer is so long")))
        .transpose()?;
    Ok(PointerFacts {
        element,
        align: if align.is_power_of_two() {
            align
        } else {
            element.bytes()
        },
        length: length.map(|length| kernel.constant(Type::I64, length as u64)),
        read_only: given.read_only || constant && !written,
        unaliased: given.unaliased,
    })
}

/// Whether an address may lead into the memory of a parameter.
fn reaches(translator: &Translator<'_, '_>, base: Register, number: usize) -> bool {
    translator.source.kinds.roots[base as usize].contains(&number)
}

/// The type of what an access moves.
fn element(translator: &Translator<'_, '_>, instruction: &Instruction<'_>) -> Option<Type> {
    let ty = type_of(instruction.last())?;
    let value = match instruction.opcode {
        "st" => instruction.operands.get(1),
        _ => instruction.operands.first(),
    };
    let value = match value {
        Some(Operand::Vector(parts)) => parts.first(),
        other => other,
    };
    Some(moved(translator, value, ty))
}

/// The type in which bits are moved between memory and a register: that of what the register holds, if it has
/// the width.
fn moved(translator: &Translator<'_, '_>, register: Option<&Operand<'_>>, ty: Type) -> Type {
    let kind = register.and_then(|register| register_kind(translator.source.kinds, register));
    let narrow = |kind: Type| matches!(kind, Type::Ptr(Space::Shared | Space::Private));
    kind.filter(|kind| kind.bits() == ty.bits() && !narrow(*kind) && *kind != Type::Bool)
        .unwrap_or(ty)
}

fn array(translator: &Translator<'_, '_>, variable: &Variable<'_>) -> Result<Option<ArrayData>> {
    let at = |error: Error| error.at(format!("line {}", variable.line));
    let space = match space_of(variable.space) {
        Some(space @ (Space::Shared | Space::Private)) => space,
        _ => return Ok(None),
    };
    let element = type_of(variable.ty).ok_or_else(|| {
        at(Error::input(format!(
            "variables of type `.{}` are not supported",
            variable.ty
        )))
    })?;
    let length = match (variable.length, translator.source.facts.dynamic_shared_bytes) {
        (Some(length), _) => length,
        (None, Some(bytes)) => u64::from(bytes / element.bytes().max(1)),
        (None, None) => {
            return Err(at(Error::input(format!(
                "how large the dynamic shared memory {} is depends on the launch",
                quoted(variable.name)
            ))
            .accepted("`shared_bytes = …` in the launch file")));
        }
    };
    let length = u32::try_from(length).map_err(|_| at(Error::input("a variable is too large")))?;
    let align = u32::try_from(variable.align)
        .unwrap_or(u32::MAX)
        .max(element.bytes());
    // An array of no bytes may be declared, and is never touched.
    Ok((length > 0).then(|| ArrayData {
        name: variable.name.to_owned(),
        space,
        element,
        length,
        align,
    }))
}

/// What an access asks of the caches.
fn cache_use(instruction: &Instruction<'_>) -> CacheUse {
    if instruction.has("volatile") || instruction.has("cv") {
        CacheUse::Volatile
    } else if instruction.has("cg") || instruction.has("L1::no_allocate") {
        CacheUse::Bypass
    } else if instruction.has("cs") || instruction.has("lu") || instruction.has("L1::evict_first") {
        CacheUse::Streaming
    } else {
        CacheUse::Default
    }
}

/// The registers of `{a, b}`, or of one operand alone.
fn parts<'o, 't>(operand: &'o Operand<'t>) -> &'o [Operand<'t>] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

impl<'t> Translator<'_, 't> {
    /// `ld`: of a parameter, or of memory.
    pub fn load(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(instruction, HINTS)?;
        let [to, from] = operands::<2>(instruction)?;
        let numeric = last_type(instruction)?;
        if instruction.has("param") {
            return self.load_parameter(b, values, instruction, to, from);
        }
        if instruction.has("const") {
            return Err(Error::input(format!(
                "`{}`: constant memory is not supported",
                instruction.spelling()
            ))
            .accepted("memory that is passed as a parameter"));
        }
        let pointer = self.access(b, values, instruction, from)?;
        let id = {
            let place = b.place();
            let name = self.memory_name(from);
            b.kernel.loads.push(LoadData { name, place })
        };
        let to = parts(to);
        let ty = moved(self, to.first(), numeric.ty);
        let kind = OpKind::Load {
            ptr: pointer,
            id,
            cache: cache_use(instruction),
        };
        let results = b.push(kind, &vec![ty; to.len()]);
        for (register, result) in to.iter().zip(results) {
            self.set(b, values, register, result, numeric.signed)?;
        }
        Ok(())
    }

    /// What an access is called: by the parameter or variable that its address is made of.
    fn memory_name(&self, address: &Operand<'t>) -> String {
        let Operand::Address(base, _) = address else {
            return "memory".to_owned();
        };
        match &**base {
            Operand::Symbol(name) => (*name).to_owned(),
            Operand::Register(register) => {
                let roots = &self.source.kinds.roots[*register as usize];
                match roots.first().filter(|_| roots.len() == 1) {
                    Some(&root) => {
                        let function = self.source.function;
                        parameter_name(function.name, function.params[root].name).to_owned()
                    }
                    None => "memory".to_owned(),
                }
            }
            _ => "memory".to_owned(),
        }
    }

    fn load_parameter(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
        to: &Operand<'t>,
        from: &Operand<'t>,
    ) -> Result<()> {
        let numeric = last_type(instruction)?;
        let number = match from {
            Operand::Address(base, 0) => {
                let named = |name: &str| {
                    self.source
                        .function
                        .params
                        .iter()
                        .position(|param| param.name == name)
                };
                match &**base {
                    Operand::Symbol(name) => named(name),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some(number) = number else {
            return Err(Error::input(format!(
                "`{}` reads something else than a whole parameter of the entry",
                instruction.spelling()
            )));
        };
        let value = self.param_values[number];
        if b.kernel.ty(value).bits() < numeric.ty.bits() {
            return Err(Error::input(format!(
                "`{}` reads more than the parameter",
                instruction.spelling()
            )));
        }
        let value = match b.kernel.ty(value).bits() == numeric.ty.bits() {
            true => value,
            false => self.retyped(b, value, numeric.ty)?,
        };
        self.set(b, values, to, value, numeric.signed)
    }

    /// `st`.
    pub fn store(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(instruction, HINTS)?;
        let [to, from] = operands::<2>(instruction)?;
        let numeric = last_type(instruction)?;
        if instruction.has("param") {
            return Err(refused(instruction));
        }
        let pointer = self.access(b, values, instruction, to)?;
        let from = parts(from);
        let ty = moved(self, from.first(), numeric.ty);
        let mut stored = Vec::with_capacity(from.len());
        for part in from {
            stored.push(self.value(b, values, part, ty)?);
        }
        let kind = OpKind::Store {
            ptr: pointer,
            values: stored,
            cache: cache_use(instruction),
        };
        b.push(kind, &[]);
        Ok(())
    }

    /// `prefetch.global.L2 [a]`.
    pub fn prefetch(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(
            instruction,
            &["global", "L1", "L2", "L2::evict_last", "L2::evict_normal"],
        )?;
        let [from] = operands::<1>(instruction)?;
        let pointer = self.access(b, values, instruction, from)?;
        let level = if instruction.has("L1") {
            CacheLevel::L1
        } else {
            CacheLevel::L2
        };
        let hint = CacheHint {
            level,
            nontemporal: false,
        };
        b.prefetch(pointer, 1, hint, None);
        Ok(())
    }

    /// `bar.sync 0`, `barrier.sync.aligned 0`.
    pub fn barrier(&mut self, b: &mut Builder<'_>, instruction: &Instruction<'t>) -> Result<()> {
        only(instruction, &["sync", "aligned", "cta"])?;
        match (&instruction.operands[..], instruction.has("sync")) {
            ([Operand::Integer(0)], true) => {
                b.barrier();
                Ok(())
            }
            (_, true) => Err(Error::input(format!(
                "`{}`: a barrier for a part of the work-group is not supported",
                instruction.spelling()
            ))
            .accepted("`bar.sync 0`")),
            _ => Err(refused(instruction)),
        }
    }

    /// `cvta`, both ways.
    pub fn cvta(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(
            instruction,
            &["to", "global", "shared", "shared::cta", "local", "const", "param"],
        )?;
        let [to, from] = operands::<2>(instruction)?;
        let space = instruction.modifiers.iter().find_map(|word| space_of(word));
        let space = space.ok_or_else(|| refused(instruction))?;
        let value = match from {
            Operand::Register(register) => self.get(b, values, *register)?,
            other => self.value(b, values, other, Type::Ptr(space))?,
        };
        let value = match (b.kernel.ty(value), instruction.has("to")) {
            // What is known to point into a space stays so: a generic pointer would say less.
            (Type::Ptr(known), _) if known == space => value,
            (_, true) => {
                let generic = self.retyped(b, value, Type::Ptr(Space::Generic))?;
                self.retyped(b, generic, Type::Ptr(space))?
            }
            (_, false) => self.retyped(b, value, Type::Ptr(space))?,
        };
        self.set(b, values, to, value, false)
    }

    /// `mov`, with packing and unpacking.
    pub fn mov(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(instruction, &[])?;
        let [to, from] = operands::<2>(instruction)?;
        let ty = last_type(instruction)?.ty;
        match (to, from) {
            (Operand::Vector(parts), from) => {
                let whole = self.value(b, values, from, ty)?;
                let whole = self.as_integer(b, whole)?;
                let bits = ty.bits() / parts.len().max(1) as u32;
                let part_type = super::values::integer_of(bits).ok_or_else(|| refused(instruction))?;
                for (position, part) in parts.iter().enumerate() {
                    let integer = b.kernel.ty(whole);
                    let count = b.constant(integer, u64::from(bits) * position as u64);
                    let shifted = b.binary(crate::ir::BinaryOp::ShrU, whole, count);
                    let low = b.convert(ConvertOp::Truncate, part_type, shifted);
                    self.set(b, values, part, low, false)?;
                }
                Ok(())
            }
            (to, Operand::Vector(parts)) => {
                let integer = super::values::integer_of(ty.bits()).ok_or_else(|| refused(instruction))?;
                let bits = ty.bits() / parts.len().max(1) as u32;
                let part_type = super::values::integer_of(bits).ok_or_else(|| refused(instruction))?;
                let mut whole = b.constant(integer, 0);
                for (position, part) in parts.iter().enumerate() {
                    let part = self.value(b, values, part, part_type)?;
                    let wide = b.convert(ConvertOp::ExtendU, integer, part);
                    let count = b.constant(integer, u64::from(bits) * position as u64);
                    let shifted = b.binary(crate::ir::BinaryOp::Shl, wide, count);
                    whole = b.binary(crate::ir::BinaryOp::Or, whole, shifted);
                }
                self.set(b, values, to, whole, false)
            }
            (to, Operand::Register(register)) => {
                let value = self.get(b, values, *register)?;
                self.set(b, values, to, value, false)
            }
            (to, from) => {
                let wanted = register_kind(self.source.kinds, to).filter(|kind| kind.bits() == ty.bits());
                let symbol = match from {
                    Operand::Symbol("WARP_SZ") => false,
                    Operand::Symbol(_) => true,
                    Operand::Address(..) => true,
                    _ => false,
                };
                let value = match symbol {
                    // An address stays one, whatever width its register has.
                    true => {
                        let (base, offset) = match from {
                            Operand::Address(base, offset) => (&**base, *offset),
                            other => (other, 0),
                        };
                        let pointer = self.symbol(b, base)?;
                        self.offset(b, pointer, offset)
                    }
                    // The constant's own notation says what it is; the bits are the same.
                    false => {
                        let value = self.value(b, values, from, ty)?;
                        match wanted {
                            Some(wanted) if ty != Type::Bool => self.retyped(b, value, wanted)?,
                            _ => value,
                        }
                    }
                };
                self.set(b, values, to, value, false)
            }
        }
    }
}

/// The pointer that an instruction adds to, and the value that is added.
pub(super) fn pointer_and_rest(b: &Builder<'_>, first: Value, second: Value) -> Option<(Value, Value)> {
    match (b.kernel.ty(first).is_pointer(), b.kernel.ty(second).is_pointer()) {
        (true, false) => Some((first, second)),
        (false, true) => Some((second, first)),
        _ => None,
    }
}
