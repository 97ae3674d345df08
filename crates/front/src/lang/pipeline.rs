//! Asynchronous copies by hand: from global to shared memory, in groups that are closed and waited for, as CUDA's pipeline
//! primitives do it.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! /// NVIDIA's article, "smem rolling async": a ring of four copies on their way.
//! #[kernel(work_group = 32)]
//! fn rolled(arr: &[f64], result: &mut [f64], rounds: u32) {
//!     const PDIST: usize = 4;
//!     let mut v = shared::<f64, 128>();
//!     let first = PDIST * local_id();
//!     for k in 0..PDIST {
//!         pipeline_memcpy_async(&mut v[first + k..], &arr[local_id() + k * 32..]);
//!         pipeline_commit();
//!     }
//!     let mut sum = 0.0;
//!     for ctr in 0..rounds as usize {
//!         pipeline_wait_prior(3); // PDIST - 1
//!         let slot = first + ctr % PDIST;
//!         sum += v[slot];
//!         if ctr + PDIST < rounds as usize {
//!             pipeline_memcpy_async(&mut v[slot..], &arr[local_id() + (ctr + PDIST) * 32..]);
//!         }
//!         pipeline_commit();
//!     }
//!     result[local_id()] = sum;
//! }
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let arr = TypedBuffer::from_slice(&device, &vec![0.5; 32 * 10])?;
//! let mut result = TypedBuffer::uninitialized(&device, 32)?;
//! let arguments = rolled::arguments(&arr, &mut result, 10);
//! rolled::compile(&device)?.launch(&*queue, Geometry::new(1, 32), arguments).wait()?;
//! assert_eq!(result.read(&*queue)?, [5.0; 32]);
//! # Ok::<(), headstart::Error>(())
//! ```
//! # What holds
//! Every call concerns the calling work-item alone. [`pipeline_commit`](fn@pipeline_commit) closes a group of the copies begun
//! since the last one, possibly none; [`pipeline_wait_prior`](fn@pipeline_wait_prior) waits until at most the given number of
//! the latest groups are in flight. Until its group has been waited for, a copy's source may not be written and its target may
//! not be accessed: the simulator reports a slot that is read too early, and one that is overwritten while a copy to it is in
//! flight. Other work-items see the copied data after a [`barrier`](fn@super::work_item::barrier) behind the wait.
//!
//! # What it becomes
//! `cp.async` with its groups on NVIDIA's GPUs since Ampere, a load and a store elsewhere. As Rust (the reference on the CPU) a
//! copy is done at once.

use super::record::{AsMemory, At, Recorded, pipeline};
use super::scalar::Number;

/// Begins to copy the first element of `from`, which is in global memory, to the first of `to`, which is in shared memory.
/// Elements of 4 and 8 bytes can be copied so.
pub fn pipeline_memcpy_async<T: Number>(to: &mut [T], from: &[T]) {
    to[0] = from[0];
}

/// Closes the group of the copies that this work-item has begun since the last one.
pub fn pipeline_commit() {}

/// Waits until at most `groups` of the latest groups are on their way. The number is known when the kernel is compiled, and at
/// most 63.
pub fn pipeline_wait_prior(_groups: u32) {}

device_form!(pipeline_memcpy_async {
    pub fn device<T: Number>(at: At, to: impl AsMemory<Recorded<T>>, from: impl AsMemory<Recorded<T>>) {
        pipeline::copy(at, to.memory(), from.memory());
    }
});

device_form!(pipeline_commit {
    pub fn device(_at: At) {
        pipeline::commit();
    }
});

device_form!(pipeline_wait_prior {
    pub fn device(at: At, groups: Recorded<u32>) {
        pipeline::wait_prior(at, groups);
    }
});
