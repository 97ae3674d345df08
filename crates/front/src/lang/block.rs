//! Block loads and stores: a sub-group reads or writes elements that follow each other, in one request where the device
//! has such requests.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! /// Each sub-group doubles 64 elements, four for each work-item.
//! #[kernel(work_group = 32, sub_group = 16)]
//! fn doubled(values: &[u32], result: &mut [u32]) {
//!     let first = (global_id() / 16) * 64;
//!     let [a, b, c, d] = sub_group_load_block(&values[first..]);
//!     sub_group_store_block(&mut result[first..], [2 * a, 2 * b, 2 * c, 2 * d]);
//! }
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let numbers: Vec<u32> = (0..256).collect();
//! let values = TypedBuffer::from_slice(&device, &numbers)?;
//! let mut result = TypedBuffer::uninitialized(&device, 256)?;
//! let geometry = Geometry::new(2, 32).sub_group_size(16);
//! let arguments = doubled::arguments(&values, &mut result);
//! doubled::compile(&device)?.launch(&*queue, geometry, arguments).wait()?;
//! assert_eq!(result.read(&*queue)?, (0..512).step_by(2).collect::<Vec<u32>>());
//! # Ok::<(), headstart::Error>(())
//! ```
//! # What each work-item has
//! With sub-groups of `S` work-items ([`max_sub_group_size`](fn@super::work_item::max_sub_group_size)), part `k` of work-item
//! `lane`'s value is element `k × S + lane` of the memory that is given. So the parts of *one* work-item lie apart, and those of
//! neighbours side by side: 16 integers in a row for each work-item cost sixteen times the cache lines.
//!
//! # What holds
//! All work-items of the sub-group must call it together, as for a shuffle, with the same slice. Its first element must be at a
//! multiple of 4 bytes for a load, and of 16 for a store. The simulator reports violations. Each work-item has 1, 2, 4 or 8
//! elements of 8 to 64 bits, in global memory.
//!
//! # What it becomes
//! On Intel's GPUs `OpSubgroupBlockReadINTEL` and `OpSubgroupBlockWriteINTEL`, if every sub-group is full
//! (`#[kernel(work_group = …, sub_group = …)]` ensures it). GPUs that have sub-groups of 8 do not have blocks for those of 32:
//! a kernel that requires 32 is refused there, and one that requires none gets 16. Elsewhere, adjacent accesses of the
//! work-items.

use super::record::{AsMemory, At, Recorded, block};
use super::scalar::Number;
use super::work_item::{max_sub_group_size, sub_group_local_id};

/// `N` elements for each work-item of a sub-group.
#[derive(Debug)]
pub struct Elements<const N: usize>;

/// As many elements for each work-item as a block can have.
#[diagnostic::on_unimplemented(
    message = "a block does not have so many elements for each work-item: `{Self}`",
    note = "accepted: 1, 2, 4, 8; larger blocks are several loads or stores"
)]
pub trait BlockSize {}

impl BlockSize for Elements<1> {}
impl BlockSize for Elements<2> {}
impl BlockSize for Elements<4> {}
impl BlockSize for Elements<8> {}

/// The element of `memory` whose number is that of the work-item in its sub-group.
pub fn sub_group_load<T: Number>(memory: &[T]) -> T {
    memory[sub_group_local_id()]
}

/// `N` elements of `memory` for each work-item of the sub-group: part `k` of work-item `lane` is element
/// `k × max_sub_group_size() + lane`.
pub fn sub_group_load_block<T: Number, const N: usize>(memory: &[T]) -> [T; N]
where
    Elements<N>: BlockSize,
{
    std::array::from_fn(|part| memory[part * max_sub_group_size() + sub_group_local_id()])
}

/// Writes the element of `memory` whose number is that of the work-item in its sub-group.
pub fn sub_group_store<T: Number>(memory: &mut [T], value: T) {
    memory[sub_group_local_id()] = value;
}

/// Writes `N` elements of `memory` for each work-item of the sub-group: part `k` of work-item `lane` becomes element
/// `k × max_sub_group_size() + lane`.
pub fn sub_group_store_block<T: Number, const N: usize>(memory: &mut [T], values: [T; N])
where
    Elements<N>: BlockSize,
{
    for (part, value) in values.into_iter().enumerate() {
        memory[part * max_sub_group_size() + sub_group_local_id()] = value;
    }
}

device_form!(sub_group_load {
    pub fn device<T: Number>(at: At, memory: impl AsMemory<Recorded<T>>) -> Recorded<T> {
        let [value] = block::load(at, memory.memory());
        value
    }
});

device_form!(sub_group_load_block {
    pub fn device<T: Number, const N: usize>(at: At, memory: impl AsMemory<Recorded<T>>) -> [Recorded<T>; N]
    where
        Elements<N>: BlockSize,
    {
        block::load(at, memory.memory())
    }
});

device_form!(sub_group_store {
    pub fn device<T: Number>(at: At, memory: impl AsMemory<Recorded<T>>, value: Recorded<T>) {
        block::store(at, memory.memory(), [value]);
    }
});

device_form!(sub_group_store_block {
    pub fn device<T: Number, const N: usize>(
        at: At,
        memory: impl AsMemory<Recorded<T>>,
        values: [Recorded<T>; N],
    ) where
        Elements<N>: BlockSize,
    {
        block::store(at, memory.memory(), values);
    }
});
