//! Collective functions of the work-items of a sub-group, or of a work-group.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! /// One sum for each work-group.
//! #[kernel(work_group = 64, sub_group = 32)]
//! fn sums(values: &[f32], result: &mut [f32]) {
//!     let sum = group_reduce_add(values[global_id()]);
//!     if local_id() == 0 {
//!         result[group_id()] = sum;
//!     }
//! }
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let values = TypedBuffer::from_slice(&device, &[0.25f32; 128])?;
//! let mut result = TypedBuffer::uninitialized(&device, 2)?;
//! let arguments = sums::arguments(&values, &mut result);
//! sums::compile(&device)?.launch(&*queue, Geometry::new(2, 64), arguments).wait()?;
//! assert_eq!(result.read(&*queue)?, [16.0, 16.0]);
//! # Ok::<(), headstart::Error>(())
//! ```
//! All work-items of the sub-group (or work-group) must call such a function together: none may be in another branch, or have
//! returned. The simulator reports a missing work-item; on a GPU the behaviour is undefined. The last sub-group of a work-group
//! may be smaller than the others; only its existing work-items count.
//!
//! Reductions and scans are made of shuffles, in an order that depends on the sizes alone, so sums of floats
//! have the same bits on every device with sub-groups of the same size.
//!
//! The CPU reference runs one work-item at a time, and so refuses a kernel that meets one of these.

use super::record::{At, Recorded, collective};
use super::scalar::{Integer, Number, Scalar};
use super::work_item::meet_others;
use crate::ir::{Meeting, ShuffleOp, VoteOp};

macro_rules! together {
    ($(
        $(#[$documentation:meta])*
        fn $name:ident $(<$type:ident: $bound:ident>)? ($first:ident: $taken:ty $(, $second:ident: $also:ty)?) -> $given:ty = $own:expr;
        |$at:ident| $recorded:expr;
    )+) => {$(
        $(#[$documentation])*
        pub fn $name $(<$type: $bound>)? ($first: $taken $(, $second: $also)?) -> $given {
            meet_others();
            $(let _ = $second;)?
            $own
        }

        device_form!($name {
            pub fn device $(<$type: $bound>)? (
                $at: At,
                $first: Recorded<$taken>
                $(, $second: Recorded<$also>)?
            ) -> Recorded<$given> {
                $recorded
            }
        });
    )+};
}

together! {
    /// The value that the work-item with number `lane` of the sub-group gives; the own one if there is none.
    /// Below 32, or below the size that the kernel requires.
    fn sub_group_shuffle<T: Scalar>(value: T, lane: usize) -> T = value;
    |at| collective::shuffle(at, ShuffleOp::Index, value, lane);
    /// The value of the work-item whose number is less by `distance`; the own one if there is none. Below 32, or
    /// below the size that the kernel requires.
    fn sub_group_shuffle_up<T: Scalar>(value: T, distance: usize) -> T = value;
    |at| collective::shuffle(at, ShuffleOp::Up, value, distance);
    /// The value of the work-item whose number is greater by `distance`; the own one if there is none.
    /// Below 32, or below the size that the kernel requires.
    fn sub_group_shuffle_down<T: Scalar>(value: T, distance: usize) -> T = value;
    |at| collective::shuffle(at, ShuffleOp::Down, value, distance);
    /// The value of the work-item whose number has the bits of `mask` flipped; the own one if there is none.
    /// Below 32, or below the size that the kernel requires.
    fn sub_group_shuffle_xor<T: Scalar>(value: T, mask: usize) -> T = value;
    |at| collective::shuffle(at, ShuffleOp::Xor, value, mask);
    /// The value that the work-item with number `lane` gives; all name the same one, and it is there.
    fn sub_group_broadcast<T: Scalar>(value: T, lane: usize) -> T = value;
    |at| collective::shuffle(at, ShuffleOp::Index, value, lane);

    /// Whether the condition holds for one of them.
    fn sub_group_any(condition: bool) -> bool = condition;
    |at| collective::vote(at, VoteOp::Any, condition);
    /// Whether the condition holds for all of them.
    fn sub_group_all(condition: bool) -> bool = condition;
    |at| collective::vote(at, VoteOp::All, condition);
    /// The work-items for which the condition holds, a bit each, the first one's lowest.
    fn sub_group_ballot(condition: bool) -> u32 = condition as u32;
    |at| collective::vote(at, VoteOp::Ballot, condition);

    /// The sum of all values.
    fn sub_group_reduce_add<T: Number>(value: T) -> T = value;
    |at| collective::reduce(at, value, collective::add);
    /// The least value.
    fn sub_group_reduce_min<T: Number>(value: T) -> T = value;
    |at| collective::reduce(at, value, super::record::methods::min);
    /// The greatest value.
    fn sub_group_reduce_max<T: Number>(value: T) -> T = value;
    |at| collective::reduce(at, value, super::record::methods::max);
    /// The bits that all values have.
    fn sub_group_reduce_and<T: Integer>(value: T) -> T = value;
    |at| collective::reduce(at, value, super::record::bit_and);
    /// The bits that one of the values has.
    fn sub_group_reduce_or<T: Integer>(value: T) -> T = value;
    |at| collective::reduce(at, value, super::record::bit_or);
    /// The bits that an odd number of values has.
    fn sub_group_reduce_xor<T: Integer>(value: T) -> T = value;
    |at| collective::reduce(at, value, super::record::bit_xor);

    /// The sum of the values up to the own one.
    fn sub_group_inclusive_scan_add<T: Number>(value: T) -> T = value;
    |at| collective::inclusive_scan(at, value, collective::add);
    /// The least of the values up to the own one.
    fn sub_group_inclusive_scan_min<T: Number>(value: T) -> T = value;
    |at| collective::inclusive_scan(at, value, super::record::methods::min);
    /// The greatest of the values up to the own one.
    fn sub_group_inclusive_scan_max<T: Number>(value: T) -> T = value;
    |at| collective::inclusive_scan(at, value, super::record::methods::max);
    /// The sum of the values before the own one; 0 for the first.
    fn sub_group_exclusive_scan_add<T: Number>(value: T) -> T = value;
    |at| collective::exclusive_scan(at, value, T::ZERO, collective::add);

    /// The sum of all values of the work-group. It takes 512 bytes of shared memory for 32-bit values, and two
    /// barriers.
    fn group_reduce_add<T: Number>(value: T) -> T = value;
    |at| collective::group_reduce(at, value, collective::add);
    /// The least value of the work-group; as [`group_reduce_add`](fn@group_reduce_add).
    fn group_reduce_min<T: Number>(value: T) -> T = value;
    |at| collective::group_reduce(at, value, super::record::methods::min);
    /// The greatest value of the work-group; as [`group_reduce_add`](fn@group_reduce_add).
    fn group_reduce_max<T: Number>(value: T) -> T = value;
    |at| collective::group_reduce(at, value, super::record::methods::max);
    /// The sum of the values of the work-group up to the own one, in the order of the work-items with dimension
    /// 0 fastest; as [`group_reduce_add`](fn@group_reduce_add).
    fn group_inclusive_scan_add<T: Number>(value: T) -> T = value;
    |at| collective::group_scan(at, value, true);
    /// The sum of the values of the work-group before the own one; 0 for the first.
    fn group_exclusive_scan_add<T: Number>(value: T) -> T = value;
    |at| collective::group_scan(at, value, false);
}

/// All work-items of the sub-group wait here for each other; afterwards each can read what the others wrote before.
///
/// They run together anyway; this additionally orders their accesses to shared and global memory.
pub fn sub_group_barrier() {
    meet_others();
}

device_form!(sub_group_barrier {
    pub fn device(at: At) {
        super::record::recorder(|recorder| recorder.build(at, |b| b.meet(Meeting::SubGroup(None))));
    }
});
