//! Addresses, loads, stores.

use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, MemoryAccess, Op as Code, StorageClass, Word};

use super::controlled::Words;
use super::emitter::{Emitter, storage_class};
use crate::ir::{Array, CacheUse, OpKind, Space, Type, Value};

impl Emitter<'_> {
    /// Declares the kernel's arrays.
    pub(super) fn declare_arrays(&mut self) {
        for (array, data) in &self.kernel.arrays {
            let element = self.in_memory(data.element);
            let ty = self.module.array(element, data.length.max(1));
            let variable = match data.space {
                Space::Shared => {
                    let variable = self.module.variable(StorageClass::Workgroup, ty);
                    self.interface.push(variable);
                    variable
                }
                _ => self.module.private_variable(ty),
            };
            self.module
                .name(variable, &format!("{}_{}", data.name, array.as_u32()));
            let align = vec![Operand::LiteralBit32(data.align.max(1).next_power_of_two())];
            self.module.decorate(variable, Decoration::Alignment, align);
            self.arrays.insert(array, variable);
        }
    }

    /// The address of an array: its first byte.
    pub(super) fn array(&mut self, array: Array) -> Word {
        let ty = self.bytes_in(self.kernel.arrays[array].space);
        let variable = self.arrays.get(&array).copied().unwrap_or_default();
        self.module.ins(Code::Bitcast, ty, &[variable])
    }

    /// The type that a value of a type has in memory.
    fn in_memory(&mut self, ty: Type) -> Word {
        match ty {
            Type::Bool => self.module.int(8),
            Type::Ptr(_) => self.module.int(64),
            other => self.ty_id(other),
        }
    }

    /// An address: `base + index × scale + offset` bytes.
    pub(super) fn address(&mut self, kind: &OpKind) -> Word {
        let OpKind::Address {
            base,
            index,
            scale,
            offset,
        } = kind
        else {
            unreachable!("only addresses come here")
        };
        let ty = self.ty_id(self.ty(*base));
        let base = self.id(*base);
        let long = self.module.int(64);
        if let Some(index) = self.kernel.as_constant(*index) {
            let bytes = index.wrapping_mul(u64::from(*scale)).wrapping_add(*offset as u64);
            return self.moved(ty, base, bytes);
        }
        let mut bytes = self.id(*index);
        if *scale != 1 {
            let scale = self.module.constant(64, u64::from(*scale));
            bytes = self.module.ins(Code::IMul, long, &[bytes, scale]);
        }
        let moved = self.module.ins(Code::PtrAccessChain, ty, &[base, bytes]);
        self.moved(ty, moved, *offset as u64)
    }

    /// A pointer this many bytes further.
    pub(super) fn moved(&mut self, ty: Word, pointer: Word, bytes: u64) -> Word {
        if bytes == 0 {
            return pointer;
        }
        let bytes = self.module.constant(64, bytes);
        self.module.ins(Code::PtrAccessChain, ty, &[pointer, bytes])
    }

    /// A pointer to bytes as one to something else.
    pub(super) fn pointing_to(&mut self, ty: Word, space: Space, pointer: Word) -> Word {
        let ty = self.module.pointer(storage_class(space), ty);
        self.module.ins(Code::Bitcast, ty, &[pointer])
    }

    /// The memory operands of an access of this many bytes. Data that will not be reused are not marked as such: Intel's
    /// compilers interpret that as bypassing all caches on GPUs (IGC 1.0.12504: `load.ugm….uc.uc`), which is more than
    /// requested, and the one for CPUs (2026.2) crashes on a loop with such byte loads.
    fn access(cache: CacheUse, bytes: u32) -> Vec<Operand> {
        let mut how = MemoryAccess::ALIGNED;
        if cache == CacheUse::Volatile {
            how |= MemoryAccess::VOLATILE;
        }
        vec![Operand::MemoryAccess(how), Operand::LiteralBit32(bytes)]
    }

    fn space_of(&self, ptr: Value) -> Space {
        self.ty(ptr).space().unwrap_or(Space::Generic)
    }

    pub(super) fn load(&mut self, results: &[Value], ptr: Value, cache: CacheUse) {
        let ty = self.ty(results[0]);
        let count = results.len() as u32;
        let element = self.in_memory(ty);
        let vector = self.module.vector(element, count);
        let (from, space) = (self.id(ptr), self.space_of(ptr));
        let control = self.control_of(cache, space).zip(Words::of(ty, count));
        let loaded = match control {
            Some((control, words)) => self.load_controlled(words, from, control, vector),
            None => {
                let from = self.pointing_to(vector, space, from);
                let mut operands = vec![Operand::IdRef(from)];
                operands.extend(Self::access(cache, ty.bytes() * count));
                self.module.make(Code::Load, vector, operands)
            }
        };
        for (index, &result) in (0..).zip(results) {
            let one = match count {
                1 => loaded,
                _ => self.component(element, loaded, index),
            };
            let value = match ty {
                Type::Bool => self.truth(one),
                Type::Ptr(_) => {
                    let pointer = self.ty_id(ty);
                    self.module.ins(Code::ConvertUToPtr, pointer, &[one])
                }
                _ => one,
            };
            self.set(result, value);
        }
    }

    pub(super) fn store(&mut self, ptr: Value, values: &[Value], cache: CacheUse) {
        let ty = self.ty(values[0]);
        let count = values.len() as u32;
        let element = self.in_memory(ty);
        let stored: Vec<Word> = values
            .iter()
            .map(|&value| self.stored(ty, element, value))
            .collect();
        let vector = self.module.vector(element, count);
        let value = match stored[..] {
            [one] => one,
            _ => self.module.ins(Code::CompositeConstruct, vector, &stored),
        };
        let to = self.id(ptr);
        let to = self.pointing_to(vector, self.space_of(ptr), to);
        let mut operands = vec![Operand::IdRef(to), Operand::IdRef(value)];
        operands.extend(Self::access(cache, ty.bytes() * count));
        self.module.act(Code::Store, operands);
    }

    /// A value as memory holds it.
    fn stored(&mut self, ty: Type, element: Word, value: Value) -> Word {
        let id = self.seen(value);
        match ty {
            Type::Bool => {
                let [one, zero] = [1, 0].map(|bit| self.module.constant(8, bit));
                self.module.ins(Code::Select, element, &[id, one, zero])
            }
            Type::Ptr(_) => self.module.ins(Code::ConvertPtrToU, element, &[id]),
            _ => id,
        }
    }
}
