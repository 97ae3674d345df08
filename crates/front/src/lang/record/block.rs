//! Block loads and stores of a sub-group.
//!
//! Before: `sub_group_load_block(&values[first..])`. After: one load for each part, each of which says that the sub-group
//! makes it as a block; their addresses differ by the sub-group's size, so that a back end can make one of them all.

use super::memory::Memory;
use super::state::recorder;
use super::{At, Recorded, add, literal, mul};
use crate::Error;
use crate::ir::{CacheUse, OpKind, Space, Type, Value};
use crate::lang::scalar::Number;
use crate::lang::work_item::{max_sub_group_size, sub_group_local_id};

/// The addresses of a work-item's elements.
fn addresses<T: Number, const N: usize>(at: At, memory: Memory<Recorded<T>>) -> [Value; N] {
    let bytes = T::TYPE.bytes();
    let size = recorder(|recorder| {
        if recorder.kernel.ty(memory.base()) != Type::Ptr(Space::Global) {
            let error = Error::input("the block loads and stores of a sub-group are for global memory")
                .accepted("part of a slice parameter or view, `&values[first..]`");
            recorder.fail(at, error);
        }
        recorder.kernel.sub_group_size
    });
    let lane = sub_group_local_id::device(at);
    let address = |index: Recorded<usize>, offset: i64| {
        recorder(|recorder| recorder.build(at, |b| b.address(memory.base(), index.value, bytes, offset)))
    };
    std::array::from_fn(|part| match size {
        Some(size) => address(lane, part as i64 * i64::from(size * bytes)),
        None if part == 0 => address(lane, 0),
        None => {
            let before = mul(at, literal(part), max_sub_group_size::device(at));
            address(add(at, before, lane), 0)
        }
    })
}

/// Each work-item's part.
pub fn load<T: Number, const N: usize>(at: At, memory: Memory<Recorded<T>>) -> [Recorded<T>; N] {
    // Several accesses, and one load of the source: plans name it as one.
    let id = recorder(|recorder| recorder.load_id(at, memory.root()));
    let cache = CacheUse::Block;
    addresses(at, memory).map(|ptr| {
        let kind = OpKind::Load { ptr, id, cache };
        Recorded::new(recorder(|recorder| {
            recorder.build(at, |b| b.push(kind, &[T::TYPE])[0])
        }))
    })
}

/// Writes each work-item's part.
///
/// Parts that begin between two multiples of 16 bytes (bytes, in sub-groups of 8) are no blocks of their own.
pub fn store<T: Number, const N: usize>(at: At, memory: Memory<Recorded<T>>, values: [Recorded<T>; N]) {
    let size = recorder(|recorder| recorder.kernel.sub_group_size);
    let aligned =
        |size: u32| u64::from(size * T::TYPE.bytes()).is_multiple_of(CacheUse::block_alignment(true));
    let cache = match N == 1 || size.is_none_or(aligned) {
        true => CacheUse::Block,
        false => CacheUse::Default,
    };
    for (ptr, value) in addresses::<T, N>(at, memory).into_iter().zip(values) {
        let kind = OpKind::store(ptr, vec![value.value], cache);
        recorder(|recorder| recorder.build(at, |b| b.push(kind, &[])));
    }
}
