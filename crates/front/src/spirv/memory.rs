//! Memory: variables, addresses, loads and stores, copies.

use rspirv::spirv::{Decoration, MemoryAccess, Op, StorageClass};

use super::body::Operand;
use super::translate::{At, Here, Translator};
use crate::error::{Error, Result};
use crate::ir::{
    Array, ArrayData, Builder, CacheUse, ConvertOp, LoadData, LoadId, LscControl, OpKind, Space, Type, Value,
    limits,
};
use crate::suggest::quoted;

/// Most bytes of a copy that is written out.
const MOST_COPIED: u64 = 4096;

impl Translator<'_, '_> {
    // Addresses.

    /// The address that some indices lead to. The first steps over whole objects, if there is one such.
    pub(crate) fn chain(
        &mut self,
        b: &mut Builder<'_>,
        base: Value,
        base_type: u32,
        steps_over: bool,
        indices: &[Value],
    ) -> Result<Value> {
        let (_, mut ty) = self.module.pointer(base_type)?;
        let mut pointer = base;
        let mut indices = indices.iter();
        if steps_over && let Some(&index) = indices.next() {
            let bytes = self.module.size(ty)?.0;
            pointer = self.step_over(b, pointer, index, bytes)?;
        }
        for &index in indices {
            match self.module.element(ty)? {
                Some(element) => {
                    let bytes = self.module.size(element)?.0;
                    pointer = self.step_over(b, pointer, index, bytes)?;
                    ty = element;
                }
                None => {
                    let number = b.kernel.as_constant(index);
                    let number = number.ok_or_else(|| Error::input("a member is chosen by no constant"))?;
                    let (offset, member) = self.module.member(ty, number)?;
                    pointer = self.shapes.offset(b, pointer, offset as i64);
                    ty = member;
                }
            }
        }
        Ok(pointer)
    }

    fn step_over(&mut self, b: &mut Builder<'_>, pointer: Value, index: Value, bytes: u64) -> Result<Value> {
        let index = match b.kernel.ty(index) {
            Type::I64 => index,
            ty if ty.is_integer() => b.convert(ConvertOp::ExtendS, Type::I64, index),
            _ => return Err(Error::input("an index is an integer")),
        };
        let (index, factor, addend) = match self.shapes.scaled(index) {
            // A number of bytes that was a product.
            Some((inner, factor, addend)) if bytes == 1 => (inner, u64::from(factor), addend),
            _ => (index, bytes, 0),
        };
        match u32::try_from(factor) {
            Ok(scale) => Ok(self.shapes.address(b, pointer, index, scale, addend)),
            Err(_) => {
                let factor = b.i64(factor as i64);
                let index = b.mul(index, factor);
                Ok(self.shapes.address(b, pointer, index, 1, addend))
            }
        }
    }

    /// `OpInBoundsPtrAccessChain` and its like.
    pub(crate) fn access_chain(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Value> {
        let base = at.operand(2)?;
        let base_type = self.type_of(base)?;
        let pointer = self.value(b, values, base)?;
        let mut indices = Vec::new();
        for number in 3..at.instruction.words.len() {
            indices.push(self.value(b, values, at.operand(number)?)?);
        }
        let steps_over = matches!(
            at.instruction.op,
            Some(Op::PtrAccessChain | Op::InBoundsPtrAccessChain)
        );
        self.chain(b, pointer, base_type, steps_over, &indices)
    }

    /// `OpPtrDiff`: in elements.
    pub(crate) fn pointer_difference(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Value> {
        let (x, y) = (at.operand(2)?, at.operand(3)?);
        let (_, pointee) = self.module.pointer(self.type_of(x)?)?;
        let bytes = self.module.size(pointee)?.0.max(1);
        let mut numbers = Vec::new();
        for operand in [x, y] {
            let pointer = self.value(b, values, operand)?;
            numbers.push(b.convert(ConvertOp::Bits, Type::I64, pointer));
        }
        let difference = b.sub(numbers[0], numbers[1]);
        let bytes = b.i64(bytes as i64);
        Ok(b.binary(crate::ir::BinaryOp::DivS, difference, bytes))
    }

    // Variables.

    /// The address of a variable of the module.
    pub(crate) fn variable(&mut self, b: &mut Builder<'_>, id: u32) -> Result<Value> {
        let frame = u32::MAX;
        if let Some(&array) = self.arrays.get(&Operand { frame, id }) {
            return Ok(b.array_address(array));
        }
        if let Some(&address) = self.addresses.get(&id) {
            return Ok(address);
        }
        let name = self.module.name(id).unwrap_or_else(|| format!("%{id}"));
        Err(Error::input(format!(
            "the address of variable {} is taken where that has no meaning",
            quoted(&name)
        ))
        .accepted("loads of built-in variables, and addresses of those in memory"))
    }

    /// A variable of a function: an array that each work-item has.
    pub(crate) fn local_variable(&mut self, b: &mut Builder<'_>, at: &At<'_, '_>) -> Result<Value> {
        let id = at.instruction.word(1)?;
        let (_, pointee) = self.module.pointer(at.ty()?)?;
        let name = self.module.name(id).map(|name| super::plain(&name));
        let name = name.unwrap_or_else(|| format!("local_{id}"));
        let key = Operand { frame: at.frame, id };
        let array = match self.arrays.get(&key) {
            Some(&array) => array,
            None => {
                let array = self.array(b, name, Space::Private, pointee, id)?;
                self.arrays.insert(key, array);
                array
            }
        };
        let address = b.array_address(array);
        if let Some(&initial) = at.instruction.words.get(3) {
            let initial = Operand {
                frame: at.frame,
                id: initial,
            };
            if self.body.held(initial).is_some() {
                return Err(Error::input(
                    "a variable has an initializer known only at run time",
                ));
            }
            let held = self.values(b, &Vec::new(), initial)?;
            self.store_parts(b, address, pointee, &held, 1, CacheUse::Default)?;
        }
        Ok(address)
    }

    /// An array for a variable of a type.
    pub(crate) fn array(
        &mut self,
        b: &mut Builder<'_>,
        name: String,
        space: Space,
        pointee: u32,
        id: u32,
    ) -> Result<Array> {
        let (bytes, align) = self.module.size(pointee)?;
        let said = self.module.decorated(id, Decoration::Alignment).next();
        let said = said.and_then(|words| words.first()).copied().unwrap_or(1);
        let data = array(
            self.element_of(pointee),
            name,
            space,
            bytes,
            align.max(u64::from(said)),
        )?;
        Ok(b.kernel.arrays.push(data))
    }

    /// The number that a type is made of, or bytes if it is made of several.
    pub(crate) fn element_of(&self, ty: u32) -> Type {
        // Of a large array the first elements tell.
        let mut inner = ty;
        while let Ok(Some(element)) = self.module.element(inner) {
            inner = element;
        }
        match self.module.parts(inner).as_deref() {
            Ok([(_, first), rest @ ..]) if rest.iter().all(|(_, other)| other == first) => match first {
                Type::Bool => Type::I8,
                Type::Ptr(_) => Type::I64,
                other => *other,
            },
            _ => Type::I8,
        }
    }

    // Loads and stores.

    /// The properties of an access: alignment in bytes, and cache controls.
    fn access(&self, at: &At<'_, '_>, from: usize, pointer: u32, ty: u32) -> Result<(u64, CacheUse)> {
        let natural = self.module.size(ty)?.1;
        let Some(&mask) = at.instruction.words.get(from) else {
            return Ok((natural, self.controlled(pointer).unwrap_or_default()));
        };
        let mask = MemoryAccess::from_bits_retain(mask);
        let align = match mask.contains(MemoryAccess::ALIGNED) {
            true => u64::from(at.instruction.word(from + 1)?).max(1),
            false => natural,
        };
        let cache = match (
            mask.contains(MemoryAccess::VOLATILE),
            mask.contains(MemoryAccess::NONTEMPORAL),
        ) {
            (true, _) => CacheUse::Volatile,
            (false, true) => CacheUse::Streaming,
            _ => self.controlled(pointer).unwrap_or_default(),
        };
        Ok((align, cache))
    }

    /// The cache control that a pointer is decorated with.
    pub(crate) fn controlled(&self, pointer: u32) -> Option<CacheUse> {
        // The cache level, and its control: 0 uncached, 1 cached, 2 streaming, 3 invalidate after read, 4 constant.
        let (mut first, mut last) = (None, None);
        for words in self.module.decorated(pointer, Decoration::CacheControlLoadINTEL) {
            match words {
                [0, control] => first = Some(*control),
                [_, control] => last = Some(*control),
                _ => {}
            }
        }
        let control = match (first, last) {
            (None, None) => return None,
            (Some(0), Some(0) | None) => LscControl::L1ucL3uc,
            (Some(0) | None, Some(_)) => LscControl::L1ucL3c,
            (Some(1 | 4), Some(0)) => LscControl::L1cL3uc,
            (Some(1 | 4), _) => LscControl::L1cL3c,
            (Some(2), Some(0)) => LscControl::L1sL3uc,
            (Some(2), _) => LscControl::L1sL3c,
            (Some(_), _) => LscControl::L1iarL3c,
        };
        Some(control.load())
    }

    /// `OpLoad`: from memory, or from a built-in variable of a work-item.
    pub(super) fn load(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Vec<Value>> {
        let from = at.operand(2)?;
        let ty = at.ty()?;
        if self.body.held(from).is_none()
            && let Some(built_in) = self.built_in(from.id)?
        {
            let parts = self.module.parts(ty)?;
            return self.identity(b, built_in, &parts);
        }
        let (align, cache) = self.access(at, 3, from.id, ty)?;
        let pointer = self.value(b, values, from)?;
        self.load_parts(b, pointer, ty, align, cache)
    }

    /// A load of the source, which is named when all of the kernel is known.
    pub(crate) fn new_load(&mut self, b: &mut Builder<'_>) -> LoadId {
        let place = b.place();
        b.kernel.loads.push(LoadData::new("memory", place))
    }

    /// Loads a value of a type: as few accesses as its alignment allows.
    pub(crate) fn load_parts(
        &mut self,
        b: &mut Builder<'_>,
        pointer: Value,
        ty: u32,
        align: u64,
        cache: CacheUse,
    ) -> Result<Vec<Value>> {
        let parts = self.module.parts(ty)?;
        let id = self.new_load(b);
        let mut made = Vec::with_capacity(parts.len());
        for (start, count) in accesses(&parts, align) {
            let (offset, part) = parts[start];
            let own = self.shapes.offset(b, pointer, offset as i64);
            made.extend(load(b, own, id, cache, part, count));
        }
        Ok(made)
    }

    /// `OpStore`.
    pub(super) fn store(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<()> {
        let (to, object) = (at.operand(0)?, at.operand(1)?);
        let ty = self.type_of(object)?;
        let (align, cache) = self.access(at, 2, to.id, ty)?;
        // Controls are for loads; a store with one does the same.
        let cache = match cache {
            CacheUse::Control(_) => CacheUse::Default,
            other => other,
        };
        let held = self.values(b, values, object)?;
        let pointer = self.value(b, values, to)?;
        self.store_parts(b, pointer, ty, &held, align, cache)
    }

    /// Stores a value of a type.
    pub(crate) fn store_parts(
        &mut self,
        b: &mut Builder<'_>,
        pointer: Value,
        ty: u32,
        held: &[Value],
        align: u64,
        cache: CacheUse,
    ) -> Result<()> {
        let parts = self.module.parts(ty)?;
        if parts.len() != held.len() {
            return Err(Error::input("a value is stored as one of another type"));
        }
        let mut stored = Vec::with_capacity(held.len());
        for (&value, &(_, part)) in held.iter().zip(&parts) {
            stored.push(self.exactly(b, value, part)?);
        }
        for (start, count) in accesses(&parts, align) {
            let own = self.shapes.offset(b, pointer, parts[start].0 as i64);
            let kind = OpKind::store(own, stored[start..start + count].to_vec(), cache);
            b.push(kind, &[]);
        }
        Ok(())
    }

    /// `OpCopyMemory`, `OpCopyMemorySized`: words or bytes, one after the other.
    pub(crate) fn copy_memory(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<()> {
        let (to, from) = (at.operand(0)?, at.operand(1)?);
        let sized = at.instruction.op == Some(Op::CopyMemorySized);
        let (bytes, rest, natural) = match sized {
            true => (self.number(at.operand(2)?)?, 3, 1),
            false => {
                let (_, pointee) = self.module.pointer(self.type_of(from)?)?;
                let (bytes, align) = self.module.size(pointee)?;
                (bytes, 2, align)
            }
        };
        if bytes > MOST_COPIED {
            return Err(Error::input(format!("a copy of {bytes} bytes"))
                .accepted(format!("at most {MOST_COPIED}: they are written out")));
        }
        let mask = at.instruction.words.get(rest).copied().unwrap_or(0);
        let aligned = MemoryAccess::from_bits_retain(mask).contains(MemoryAccess::ALIGNED);
        let align = match aligned {
            true => u64::from(at.instruction.word(rest + 1)?),
            false => natural,
        };
        let (source, target) = (self.value(b, values, from)?, self.value(b, values, to)?);
        let id = self.new_load(b);
        let mut at = 0;
        while at < bytes {
            let left = bytes - at;
            let step = [8, 4, 2, 1]
                .into_iter()
                .find(|&step| step <= left && at.is_multiple_of(step) && align.is_multiple_of(step));
            let (step, ty) = match step {
                Some(8) => (8, Type::I64),
                Some(4) => (4, Type::I32),
                Some(2) => (2, Type::I16),
                _ => (1, Type::I8),
            };
            let own = self.shapes.offset(b, source, at as i64);
            let value = b.load(ty, own, id);
            let own = self.shapes.offset(b, target, at as i64);
            b.store(own, value);
            at += step;
        }
        Ok(())
    }

    /// The built-in variable that an id is, if it is one.
    pub(crate) fn built_in(&self, id: u32) -> Result<Option<u32>> {
        if !self.module.is_global(id) {
            return Ok(None);
        }
        let variable = self.module.global(id)?;
        if variable.op != Some(Op::Variable) || variable.word(2)? != StorageClass::Input as u32 {
            return Ok(None);
        }
        let named = self.module.decorated(id, Decoration::BuiltIn).next();
        match named.and_then(|words| words.first()) {
            Some(&built_in) => Ok(Some(built_in)),
            None => Err(Error::input(
                "a variable of the input is none that the device fills",
            )),
        }
    }
}

/// An array of elements of a type for some bytes.
pub(super) fn array(element: Type, name: String, space: Space, bytes: u64, align: u64) -> Result<ArrayData> {
    let each = u64::from(element.bytes().max(1));
    let length = u32::try_from(bytes.div_ceil(each).max(1));
    let length = length.map_err(|_| Error::input(format!("variable {} is too large", quoted(&name))))?;
    let align = align
        .clamp(each, u64::from(limits::ALIGNMENT))
        .next_power_of_two() as u32;
    Ok(ArrayData {
        name,
        space,
        element,
        length,
        align,
    })
}

/// One access of some values of a type.
fn load(b: &mut Builder<'_>, ptr: Value, id: LoadId, cache: CacheUse, ty: Type, count: usize) -> Vec<Value> {
    b.push(OpKind::Load { ptr, id, cache }, &vec![ty; count])
}

/// The accesses that parts of a value are moved with: the first part of each and how many. Those of one access follow
/// each other, have one type, and are aligned to all they take together.
fn accesses(parts: &[(u64, Type)], align: u64) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < parts.len() {
        let (offset, ty) = parts[start];
        let bytes = u64::from(ty.bytes());
        let follows = |count: usize| {
            let end = start + count;
            let whole = bytes * count as u64;
            end <= parts.len()
                && whole <= u64::from(limits::ACCESS_BYTES)
                && offset.is_multiple_of(whole)
                && align.is_multiple_of(whole)
                && (start..end).all(|part| parts[part] == (offset + bytes * (part - start) as u64, ty))
        };
        let count = [4, 2].into_iter().find(|&count| follows(count)).unwrap_or(1);
        found.push((start, count));
        start += count;
    }
    found
}
