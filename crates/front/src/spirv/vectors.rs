//! The instructions of `OpenCL.std` that are for memory: vectors and halves, prefetches.

use rspirv::spirv::OpenclStd100Op as Std;

use super::arithmetic::resized;
use super::translate::{Here, Translator};
use crate::error::{Error, Result};
use crate::ir::{CacheHint, CacheLevel, CacheUse, ConvertOp, Type, Value, limits};

/// Most bytes of one prefetch.
const MOST_PREFETCHED: u64 = limits::PREFETCH_BYTES as u64;

impl Translator<'_, '_> {
    /// How far a vector in memory is from the pointer: its number times its size, in bytes.
    fn vector_offset(
        &mut self,
        (b, values, at): Here<'_, '_, '_>,
        offset: usize,
        bytes: u32,
    ) -> Result<Value> {
        let pointer = self.value(b, values, at.operand(offset + 1)?)?;
        let index = self.value(b, values, at.operand(offset)?)?;
        let index = resized(b, index, Type::I64);
        Ok(self.shapes.address(b, pointer, index, bytes, 0))
    }

    /// `vloadn` and those that load halves: aligned to one element only.
    pub(crate) fn load_vector(&mut self, (b, values, at): Here<'_, '_, '_>, std: Std) -> Result<Vec<Value>> {
        let ty = at.ty()?;
        let parts = self.module.parts(ty)?;
        let element = parts.first().ok_or_else(|| Error::input("it loads nothing"))?.1;
        let count = parts.len() as u32;
        if std == Std::vloadn {
            let pointer = self.vector_offset((b, values, at), 4, count * element.bytes())?;
            let align = u64::from(element.bytes());
            return self.load_parts(b, pointer, ty, align, CacheUse::Default);
        }
        let stride = if std == Std::vloada_halfn && count == 3 {
            4
        } else {
            count
        };
        let pointer = self.vector_offset((b, values, at), 4, stride * 2)?;
        let id = self.new_load(b);
        let mut made = Vec::new();
        for part in 0..count {
            let own = self.shapes.offset(b, pointer, i64::from(part) * 2);
            let half = b.load(Type::F16, own, id);
            made.push(b.convert(ConvertOp::FloatToFloat, element, half));
        }
        Ok(made)
    }

    pub(crate) fn store_vector(&mut self, (b, values, at): Here<'_, '_, '_>, std: Std) -> Result<()> {
        let data = at.operand(4)?;
        let held = self.values(b, values, data)?;
        let ty = self.type_of(data)?;
        let element = self.module.parts(ty)?.first().map_or(Type::I32, |part| part.1);
        let count = held.len() as u32;
        if std == Std::vstoren {
            let pointer = self.vector_offset((b, values, at), 5, count * element.bytes())?;
            let align = u64::from(element.bytes());
            return self.store_parts(b, pointer, ty, &held, align, CacheUse::Default);
        }
        let stride = if std == Std::vstorea_halfn && count == 3 {
            4
        } else {
            count
        };
        let pointer = self.vector_offset((b, values, at), 5, stride * 2)?;
        for (part, value) in (0..).zip(held) {
            let half = b.convert(ConvertOp::FloatToFloat, Type::F16, value);
            let own = self.shapes.offset(b, pointer, part * 2);
            b.store(own, half);
        }
        Ok(())
    }

    /// OpenCL's `prefetch(p, n)`: to the last level, which is as far as it goes on Intel's GPUs.
    pub(crate) fn standard_prefetch(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<()> {
        let pointer = at.operand(4)?;
        let (_, pointee) = self.module.pointer(self.type_of(pointer)?)?;
        let each = self.module.size(pointee)?.0;
        let count = self.value(b, values, at.operand(5)?)?;
        let pointer = self.value(b, values, pointer)?;
        let hint = CacheHint::to(CacheLevel::L3);
        let bytes = u32::try_from(each.min(MOST_PREFETCHED)).unwrap_or(1).max(1);
        match b.kernel.as_constant(count) {
            Some(count) => {
                let bytes = count.saturating_mul(each).min(MOST_PREFETCHED) as u32;
                if bytes > 0 {
                    b.prefetch(pointer, bytes, hint, None);
                }
            }
            // How many only the run tells: a hint for the first.
            None => b.prefetch(pointer, bytes, hint, None),
        }
        Ok(())
    }
}
