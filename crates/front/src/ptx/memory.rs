//! Loads, stores, hints, barriers, moves.

use super::kinds::space_of;
use super::translator::{At, Translator, register_kind};
use super::tree::{Instruction, Operand};
use super::values::{last_type, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{
    Builder, CacheHint, CacheLevel, CacheUse, ConvertOp, LoadData, Meeting, OpKind, Space, Type, Value,
};
use crate::middle::Values;

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

/// The type in which bits are moved between memory and a register: that of what the register holds, if it has
/// the width.
pub(super) fn moved(translator: &Translator<'_, '_>, register: Option<&Operand<'_>>, ty: Type) -> Type {
    let kind = register.and_then(|register| register_kind(translator.source.kinds, register));
    let narrow = |kind: Type| matches!(kind, Type::Ptr(Space::Shared | Space::Private));
    kind.filter(|kind| kind.bits() == ty.bits() && !narrow(*kind) && *kind != Type::Bool)
        .unwrap_or(ty)
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
pub(super) fn parts<'o, 't>(operand: &'o Operand<'t>) -> &'o [Operand<'t>] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

impl<'t> Translator<'_, 't> {
    /// `ld`: of a parameter, or of memory.
    pub(super) fn load(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, HINTS)?;
        let [to, from] = operands::<2>(instruction)?;
        if instruction.has("param") {
            return self.load_parameter((b, values, instruction), to, from);
        }
        self.load_memory((b, values, instruction), to, from)
    }

    /// A load of memory.
    pub(crate) fn load_memory(
        &mut self,
        (b, values, instruction): At<'_, '_, 't>,
        to: &Operand<'t>,
        from: &Operand<'t>,
    ) -> Result<()> {
        let numeric = last_type(instruction)?;
        let pointer = self.access(b, values, instruction, from)?;
        let id = {
            let place = b.place();
            let name = self.memory_name(from);
            let constant = instruction.has("nc");
            b.kernel.loads.push(LoadData {
                constant,
                ..LoadData::new(name, place)
            })
        };
        let to = parts(to);
        let ty = moved(self, to.first(), numeric.ty);
        let kind = OpKind::load(pointer, id, cache_use(instruction));
        self.in_lockstep(b, pointer);
        let results = b.push(kind, &vec![ty; to.len()]);
        self.in_lockstep(b, pointer);
        for (register, result) in to.iter().zip(results) {
            self.set(b, values, register, result, numeric.signed)?;
        }
        Ok(())
    }

    /// What an access is called: by the parameter or variable that its address is made of.
    pub(crate) fn memory_name(&self, address: &Operand<'t>) -> String {
        let Operand::Address(base, _) = address else {
            return "memory".to_owned();
        };
        match &**base {
            Operand::Symbol(name) => (*name).to_owned(),
            Operand::Register(register) => {
                let roots = &self.source.kinds.roots[*register as usize];
                match roots.first().filter(|_| roots.len() == 1) {
                    Some(&root) => self.source.slots.all[root].name.clone(),
                    None => "memory".to_owned(),
                }
            }
            _ => "memory".to_owned(),
        }
    }

    /// `st`.
    pub(super) fn store(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
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
        let kind = OpKind::store(pointer, stored, cache_use(instruction));
        self.in_lockstep(b, pointer);
        b.push(kind, &[]);
        self.in_lockstep(b, pointer);
        Ok(())
    }

    /// Where the launch file says so, the active work-items of a sub-group meet around an access to shared memory: those that
    /// run in lockstep see each other's accesses in the order of the text.
    fn in_lockstep(&self, b: &mut Builder<'_>, pointer: Value) {
        let may_be_shared = matches!(b.kernel.ty(pointer), Type::Ptr(Space::Shared | Space::Generic));
        if self.source.facts.warp_synchronous && may_be_shared {
            let active = b.active();
            b.meet(Meeting::SubGroup(Some(active)));
        }
    }

    /// `prefetch.global.L2 [a]`.
    pub(super) fn prefetch(
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

    /// `bar.sync 0`, `barrier.sync.aligned 0`; `bar.sync 1, 64` of as many work-items, in whole sub-groups.
    pub(super) fn barrier(&mut self, b: &mut Builder<'_>, instruction: &Instruction<'t>) -> Result<()> {
        only(instruction, &["sync", "aligned", "cta"])?;
        match (&instruction.operands[..], instruction.has("sync")) {
            ([Operand::Integer(0)], true) => {
                b.barrier();
                Ok(())
            }
            (
                &[
                    Operand::Integer(number @ 1..=15),
                    Operand::Integer(items @ 32..=1024),
                ],
                true,
            ) if items % 32 == 0 => {
                b.meet(Meeting::Named {
                    number: number as u32,
                    sub_groups: items as u32 / 32,
                });
                Ok(())
            }
            (_, true) => Err(Error::input(format!(
                "`{}`: a barrier of this number for so many work-items is not supported",
                instruction.spelling()
            ))
            .accepted("`bar.sync 0`; `bar.sync a, b` with constants, a from 1 to 15 and b a multiple of 32")),
            _ => Err(refused(instruction)),
        }
    }

    /// `cvta`, both ways.
    pub(crate) fn cvta(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
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
        let (own, generic) = (Type::Ptr(space), Type::Ptr(Space::Generic));
        let value = match instruction.has("to") {
            // A global address is its own generic address.
            _ if space == Space::Global => self.retyped(b, value, own)?,
            true => {
                let address = self.retyped(b, value, generic)?;
                b.convert(ConvertOp::FromGeneric, own, address)
            }
            false => {
                let address = self.retyped(b, value, own)?;
                b.convert(ConvertOp::ToGeneric, generic, address)
            }
        };
        self.set(b, values, to, value, false)
    }

    /// `mov`, with packing and unpacking.
    pub(crate) fn mov(&mut self, (b, values, instruction): At<'_, '_, 't>) -> Result<()> {
        only(instruction, &[])?;
        let [to, from] = operands::<2>(instruction)?;
        let super::values::Numeric { ty, signed } = last_type(instruction)?;
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
                // What was `st.param` or `ld.param` moves the low bits of a wider register or parameter.
                let value = match self.width(*register)? > ty.bits() {
                    true => self.retyped(b, value, ty)?,
                    false => value,
                };
                self.set(b, values, to, value, signed)
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
                    // An address stays one, whatever the width of its register.
                    true => {
                        let (base, offset) = match from {
                            Operand::Address(base, offset) => (&**base, *offset),
                            other => (other, 0),
                        };
                        let pointer = self.symbol(b, base)?;
                        self.offset(b, pointer, offset)
                    }
                    // The constant's own notation states its kind; the bits are the same.
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
