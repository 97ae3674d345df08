//! Addresses, loads, stores, asynchronous copies.
//!
//! An address is a register and an immediate offset; constant parts are folded into the offset. Reads of
//! memory that nothing writes take the read-only path (`.nc`). Shared and private addresses have 32 bits.
//!
//! A load's request to the caches becomes a cache operator. Intel's cache controls take the nearest one:
//!
//! | control | operator | what differs |
//! |---|---|---|
//! | `L1UC_L3UC`, `L1UC_L3C` | `.cg` | L2 cannot be gone past |
//! | `L1C_L3UC`, `L1C_L3C` | `.ca` | the same |
//! | `L1S_L3UC`, `L1S_L3C` | `.cs` | the same |
//! | `L1IAR_L3C` | `.lu`; `.cs` on the read-only path, which has no `.lu` | a hint, no assertion |

use super::convert::space_name;
use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::{CacheUse, ConvertOp, LoadId, LscControl, Op, OpKind, Space, Type, Value};

/// The most bytes that one load or store moves.
pub(super) const WIDEST: u32 = 16;

/// The name of dynamic shared memory.
pub(super) const DYNAMIC: &str = "dynamic_shared";

/// A value's type in a load or store.
fn memory_type(ty: Type) -> &'static str {
    match ty {
        Type::Bool | Type::I8 => "u8",
        Type::I16 => "u16",
        Type::I32 => "u32",
        Type::I64 | Type::Ptr(_) => "u64",
        Type::F16 | Type::Bf16 => "b16",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Token => unreachable!("tokens are never in memory"),
    }
}

impl Emitter<'_> {
    // Addresses.

    /// The register (or array) and the offset that make up an address.
    pub(super) fn base_and_offset(&mut self, ptr: Value) -> (String, i64) {
        self.base_and_offset_from(ptr, false)
    }

    /// As [`base_and_offset`](Self::base_and_offset); `defining` if `ptr`'s own register is about to be written, and
    /// must not be the base.
    fn base_and_offset_from(&mut self, ptr: Value, defining: bool) -> (String, i64) {
        let mut offset = 0_i64;
        let mut base = ptr;
        while let Some(OpKind::Address {
            base: next,
            index,
            scale,
            offset: own,
        }) = self.definition(base)
        {
            let Some(index) = self.kernel.as_constant(*index) else {
                break;
            };
            let step = (index as i64).wrapping_mul(i64::from(*scale)).wrapping_add(*own);
            // Instructions hold offsets of 32 bits.
            let Some(sum) = offset.checked_add(step).filter(|&sum| i32::try_from(sum).is_ok()) else {
                break;
            };
            let has_register = !self.folded.contains(&base) && self.uses.get(&base).copied().unwrap_or(0) > 4;
            if has_register && !(defining && base == ptr) {
                break;
            }
            offset = sum;
            base = *next;
        }
        let name = match self.definition(base) {
            Some(OpKind::ArrayAddress(array)) => {
                let (name, start) = self.array(*array);
                offset += start;
                name
            }
            _ => self.operand(base),
        };
        (name, offset)
    }

    /// An address as an instruction spells it.
    pub(super) fn location(&mut self, ptr: Value) -> String {
        self.location_at(ptr, 0)
    }

    pub(super) fn location_at(&mut self, ptr: Value, further: i64) -> String {
        let (base, offset) = self.base_and_offset(ptr);
        match offset + further {
            0 => format!("[{base}]"),
            offset => format!("[{base}+{offset}]"),
        }
    }

    /// Where an array starts: a name and an offset from it.
    fn array(&self, array: crate::ir::Array) -> (String, i64) {
        let data = &self.kernel.arrays[array];
        if self
            .within
            .is_some_and(|within| within.arrays.contains(&data.name))
        {
            (data.name.clone(), 0)
        } else if self.within.is_none()
            && data.space == Space::Shared
            && self.options.shared_is_dynamic(self.kernel)
        {
            (DYNAMIC.to_owned(), self.kernel.array_offset(array) as i64)
        } else {
            (super::array_name(self.kernel, array), 0)
        }
    }

    /// A 64-bit index, which its address alone may have kept from a register.
    pub(super) fn long_index(&mut self, index: Value) -> String {
        if let (true, Some(OpKind::Convert(convert, narrow))) =
            (self.folded.contains(&index), self.definition(index))
        {
            let long = self.temporary(Class::B64);
            let sign = if *convert == ConvertOp::ExtendS { "s" } else { "u" };
            let narrow = self.operand(*narrow);
            self.ins(format!("cvt.{sign}64.{sign}32 {long}, {narrow}"));
            return long;
        }
        self.operand(index)
    }

    /// The low 32 bits of a 64-bit index.
    fn low_half(&mut self, index: Value) -> String {
        if let Some(bits) = self.kernel.as_constant(index) {
            return (bits as u32 as i32).to_string();
        }
        if let Some(OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, narrow)) = self.definition(index)
            && self.ty(*narrow) == Type::I32
        {
            return self.operand(*narrow);
        }
        let low = self.temporary(Class::B32);
        let index = self.operand(index);
        self.ins(format!("cvt.u32.u64 {low}, {index}"));
        low
    }

    /// Writes an address that is not folded into the instructions that use it.
    pub(super) fn address(&mut self, op: &Op) {
        let result = op.results[0];
        let r = self.register(result);
        let narrow = Class::of(self.ty(result)) == Some(Class::B32);
        match &op.kind {
            OpKind::ArrayAddress(array) => {
                let (name, start) = self.array(*array);
                self.ins(format!("mov.u32 {r}, {name}"));
                if start != 0 {
                    self.ins(format!("add.s32 {r}, {r}, {start}"));
                }
            }
            OpKind::Address { index, .. } if self.kernel.as_constant(*index).is_some() => {
                let (base, offset) = self.base_and_offset_from(result, true);
                let bits = if narrow { 32 } else { 64 };
                if base.starts_with('%') {
                    self.ins(format!("add.s{bits} {r}, {base}, {offset}"));
                } else {
                    self.ins(format!("mov.u32 {r}, {base}"));
                    self.ins(format!("add.s32 {r}, {r}, {offset}"));
                }
            }
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } => {
                let base = self.operand(*base);
                if narrow {
                    let index = self.low_half(*index);
                    self.ins(format!("mad.lo.s32 {r}, {index}, {scale}, {base}"));
                    if *offset != 0 {
                        self.ins(format!("add.s32 {r}, {r}, {}", *offset as i32));
                    }
                } else {
                    self.wide_address_of(&r, &base, *index, *scale);
                    if *offset != 0 {
                        self.ins(format!("add.s64 {r}, {r}, {offset}"));
                    }
                }
            }
            _ => unreachable!("only addresses come here"),
        }
    }

    /// `r = base + index × scale` in 64 bits. For a 32-bit index, a product and a sum: ptxas makes one `IMAD.WIDE` of them, but
    /// of `mad.wide` with a power of two a shift, its high half, and a sum with carry (four instructions for an unsigned index,
    /// two for a signed one; ptxas 13.0). Inside a module that uses `mad.wide` it stays: ptxas keeps addresses that a work-group
    /// has in common in uniform registers then, and had all loads of an iteration in flight in a kernel of the corpus that took
    /// 1.30 of its original's time otherwise. Not for an index that a loop counts: that pointer is not followed, and the loop not
    /// unrolled.
    fn wide_address_of(&mut self, r: &str, base: &str, index: Value, scale: u32) {
        let fuses = self.within.is_some_and(|within| within.fuses_addresses);
        if let Some(OpKind::Convert(convert, narrow)) = self.definition(index)
            && self.ty(*narrow) == Type::I32
            && scale <= i32::MAX as u32
        {
            let sign = match convert {
                ConvertOp::ExtendS => Some("s"),
                ConvertOp::ExtendU => Some("u"),
                _ => None,
            };
            if let Some(sign) = sign {
                let counts = self.loop_params.contains(narrow);
                let narrow = self.operand(*narrow);
                if fuses && scale > 1 && !counts {
                    self.ins(format!("mad.wide.{sign}32 {r}, {narrow}, {scale}, {base}"));
                    return;
                }
                let bytes = self.temporary(Class::B64);
                match scale {
                    1 => self.ins(format!("cvt.{sign}64.{sign}32 {bytes}, {narrow}")),
                    _ => self.ins(format!("mul.wide.{sign}32 {bytes}, {narrow}, {scale}")),
                }
                self.ins(format!("add.s64 {r}, {base}, {bytes}"));
                return;
            }
        }
        self.scaled_sum(r, base, index, scale);
    }

    /// `r = base + index × scale`, of an index in a register of 64 bits.
    fn scaled_sum(&mut self, r: &str, base: &str, index: Value, scale: u32) {
        let index = self.operand(index);
        match scale {
            1 => self.ins(format!("add.s64 {r}, {base}, {index}")),
            _ if scale.is_power_of_two() => {
                let bytes = self.temporary(Class::B64);
                self.ins(format!("shl.b64 {bytes}, {index}, {}", scale.trailing_zeros()));
                self.ins(format!("add.s64 {r}, {base}, {bytes}"));
            }
            _ => self.ins(format!("mad.lo.s64 {r}, {index}, {scale}, {base}")),
        }
    }

    // Loads and stores.

    /// The qualifiers between `ld` or `st` and the type.
    fn qualifiers(&self, ptr: Value, cache: CacheUse, load: Option<LoadId>) -> String {
        let space = self.ty(ptr).space().unwrap_or(Space::Generic);
        let name = match space {
            Space::Generic => String::new(),
            space => format!(".{}", space_name(space)),
        };
        let root = self.roots.of(ptr);
        if let (Space::Global, Some(only)) = (space, root.and_then(|root| self.only_read_by(root))) {
            return format!(".{only}");
        }
        // Nothing else changes private memory, and PTX has no volatile access to it.
        if cache == CacheUse::Volatile && space != Space::Private {
            return format!(".volatile{name}");
        }
        if !matches!(space, Space::Global | Space::Generic) {
            return name;
        }
        let read_only = space == Space::Global
            && load.is_some_and(|id| self.kernel.loads[id].constant || self.is_constant_memory(ptr));
        let operator = match cache {
            CacheUse::Bypass | CacheUse::Control(LscControl::L1ucL3uc | LscControl::L1ucL3c) => ".cg",
            CacheUse::Control(LscControl::L1cL3uc | LscControl::L1cL3c) => ".ca",
            CacheUse::Control(LscControl::L1iarL3c) if !read_only => ".lu",
            CacheUse::Streaming
            | CacheUse::Control(LscControl::L1sL3uc | LscControl::L1sL3c | LscControl::L1iarL3c) => ".cs",
            // Side by side, a sub-group's accesses are as few as they can be.
            CacheUse::Default
            | CacheUse::Block
            | CacheUse::Volatile
            | CacheUse::Control(LscControl::Default) => "",
        };
        format!("{name}{operator}{}", if read_only { ".nc" } else { "" })
    }

    /// Whether nothing can write this pointer's memory while the kernel runs.
    fn is_constant_memory(&self, ptr: Value) -> bool {
        let root = self.roots.of(ptr).and_then(|root| self.kernel.param_of(root));
        root.and_then(|param| param.facts)
            .is_some_and(|facts| facts.read_only)
    }

    pub(super) fn load(&mut self, results: &[Value], ptr: Value, id: LoadId, cache: CacheUse) {
        let ty = self.ty(results[0]);
        let qualifiers = self.qualifiers(ptr, cache, Some(id));
        let per_instruction = (WIDEST / ty.bytes()).max(1) as usize;
        for (part, results) in results.chunks(per_instruction).enumerate() {
            let location = self.location_at(ptr, (part * per_instruction) as i64 * i64::from(ty.bytes()));
            // A value that is wider or narrower in memory than in a register goes through another one.
            let in_between = match ty {
                Type::Bool => Some(Class::B32),
                Type::Ptr(Space::Shared | Space::Private) => Some(Class::B64),
                _ => None,
            };
            let registers: Vec<String> = results
                .iter()
                .map(|&result| match in_between {
                    Some(class) => self.temporary(class),
                    None => self.register(result),
                })
                .collect();
            if self.guard.is_some() {
                for (&result, register) in results.iter().zip(&registers) {
                    let class = in_between.or_else(|| Class::of(ty));
                    if let Some(class) = class.filter(|_| !self.initialized.contains(result)) {
                        self.zero(class, register);
                    }
                }
            }
            let (vector, target) = vector(&registers);
            self.guarded(format!(
                "ld{qualifiers}{vector}.{} {target}, {location}",
                memory_type(ty)
            ));
            for (&result, register) in results.iter().zip(&registers) {
                if in_between.is_some() {
                    let r = self.register(result);
                    match ty {
                        Type::Bool => self.ins(format!("setp.ne.u32 {r}, {register}, 0")),
                        _ => self.ins(format!("cvt.u32.u64 {r}, {register}")),
                    }
                }
            }
        }
    }

    pub(super) fn store(&mut self, ptr: Value, values: &[Value], cache: CacheUse) {
        let ty = self.ty(values[0]);
        let qualifiers = self.qualifiers(ptr, cache, None);
        let per_instruction = (WIDEST / ty.bytes()).max(1) as usize;
        for (part, values) in values.chunks(per_instruction).enumerate() {
            let location = self.location_at(ptr, (part * per_instruction) as i64 * i64::from(ty.bytes()));
            let sources: Vec<String> = values.iter().map(|&value| self.stored(ty, value)).collect();
            let (vector, source) = vector(&sources);
            self.guarded(format!(
                "st{qualifiers}{vector}.{} {location}, {source}",
                memory_type(ty)
            ));
        }
    }

    /// The operand that stores a value.
    fn stored(&mut self, ty: Type, value: Value) -> String {
        if self.nans.at_use(value) {
            return self.canonical(value);
        }
        let operand = self.operand(value);
        match ty {
            Type::Bool => {
                let byte = self.temporary(Class::B32);
                self.ins(format!("selp.u32 {byte}, 1, 0, {operand}"));
                byte
            }
            Type::Ptr(Space::Shared | Space::Private) => {
                let wide = self.temporary(Class::B64);
                self.ins(format!("cvt.u64.u32 {wide}, {operand}"));
                wide
            }
            _ => operand,
        }
    }

    // Asynchronous copies.

    pub(super) fn copy(&mut self, to: Value, from: Value, bytes: u32) {
        let (to, from) = (self.location(to), self.location(from));
        // Copies of 16 bytes can bypass L1, and need not evict anything there.
        let cache = if bytes == 16 { "cg" } else { "ca" };
        self.guarded(format!("cp.async.{cache}.shared.global {to}, {from}, {bytes}"));
    }
}

/// `.v2` and `{%f1, %f2}` for two registers; nothing and the register for one.
pub(super) fn vector(registers: &[String]) -> (String, String) {
    match registers {
        [one] => (String::new(), one.clone()),
        many => (format!(".v{}", many.len()), format!("{{{}}}", many.join(", "))),
    }
}
