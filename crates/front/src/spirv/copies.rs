//! Copies that a work-group makes together: `async_work_group_copy`, `async_work_group_strided_copy`, `wait_group_events`.
//!
//! ```text
//! %e = OpGroupAsyncCopy Workgroup %to %from %count %stride %before     for i in local id .. count, by work-group size:
//!                                                                          to[i] = from[i * stride]
//! OpGroupWaitEvents Workgroup %number %events                          barrier
//! ```
//!
//! The stride is that of the elements in global memory. An event says nothing but which copies are waited for: a wait
//! waits for all. Between a copy and its wait other work-items' elements race, as they do on a device.

use rspirv::spirv::StorageClass;

use super::groups::{group_items, linear};
use super::translate::{At, Here, Translator};
use crate::error::{Error, Result};
use crate::ir::{Builder, CacheUse, CompareOp, ConvertOp, LoopWishes, Type, Value};

impl Translator<'_, '_> {
    /// `OpGroupAsyncCopy`.
    pub(crate) fn group_copy(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Vec<Value>> {
        self.of_the_work_group(at, 2)?;
        let (to, from) = (at.operand(3)?, at.operand(4)?);
        let (class, ty) = self.module.pointer(self.type_of(to)?)?;
        let (source_class, source) = self.module.pointer(self.type_of(from)?)?;
        let is_global = |class: u32| {
            [StorageClass::CrossWorkgroup, StorageClass::UniformConstant]
                .iter()
                .any(|one| *one as u32 == class)
        };
        let into_shared = match (is_global(class), is_global(source_class)) {
            (false, true) => true,
            (true, false) => false,
            _ => {
                return Err(Error::input(
                    "a copy is between memory of the work-group and global memory",
                ));
            }
        };
        if self.module.parts(source)? != self.module.parts(ty)? {
            return Err(Error::input("a copy is between elements of one type"));
        }
        let (bytes, align) = self.module.size(ty)?;
        let bytes = u32::try_from(bytes).map_err(|_| Error::input("an element is too large"))?;
        let [to, from] = [to, from].map(|operand| self.value(b, values, operand));
        let (to, from) = (to?, from?);
        let mut numbers = Vec::with_capacity(2);
        for operand in [5, 6] {
            let number = self.value(b, values, at.operand(operand)?)?;
            numbers.push(match b.kernel.ty(number) {
                Type::I64 => number,
                _ => b.convert(ConvertOp::ExtendU, Type::I64, number),
            });
        }
        let (count, stride) = (numbers[0], numbers[1]);
        let (own, items) = (linear(b), group_items(b));
        let own = b.convert(ConvertOp::ExtendU, Type::I64, own);
        let items = b.convert(ConvertOp::ExtendU, Type::I64, items);
        let mut result = Ok(());
        b.loop_(
            Some("copy".to_owned()),
            vec![own],
            &[],
            LoopWishes::default(),
            |b, label, index| {
                let index = index[0];
                let done = b.compare(CompareOp::LeU, count, index);
                b.break_if(done, label, Vec::new());
                let far = b.mul(index, stride);
                let [to_index, from_index] = if into_shared { [index, far] } else { [far, index] };
                let place = b.address(from, from_index, bytes, 0);
                let moved = self.load_parts(b, place, ty, align, CacheUse::Default);
                let place = b.address(to, to_index, bytes, 0);
                result =
                    moved.and_then(|moved| self.store_parts(b, place, ty, &moved, align, CacheUse::Default));
                let next = b.add(index, items);
                b.continue_(label, vec![next]);
            },
        );
        result?;
        Ok(vec![b.i32(0)])
    }

    /// `OpGroupWaitEvents`.
    pub(crate) fn wait_for_copies(&mut self, b: &mut Builder<'_>, at: &At<'_, '_>) -> Result<()> {
        self.of_the_work_group(at, 0)?;
        b.barrier();
        Ok(())
    }
}
