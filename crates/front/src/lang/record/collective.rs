//! Shuffles, votes, and the reductions and scans built from them.
//!
//! A reduction halves the distance: with sub-groups of 8, `v0+v4 … v3+v7`, then distance 2, then 1. The first
//! work-item has the result, and gives it to all. Where every sub-group is full, flipping bits gives the same
//! sums to all at once. A scan doubles the distance.

use super::arithmetic::select;
use super::convert::resize;
use super::state::recorder;
use super::{
    At, Recorded, Wishes, begin_for, begin_if, counter, end_if, end_loop, eq, get, literal, load, lt, range,
    set, shared_array, store, sub, variable,
};
use crate::ir::limits::EXCHANGING_ITEMS;
use crate::ir::{BinaryOp, ShuffleOp, VoteOp};
use crate::lang::scalar::{Number, Scalar};
use crate::lang::work_item;

/// Work-items of the largest sub-group that a kernel can require.
const LARGEST: u32 = 64;

/// Sub-groups of the largest work-group, if they are as small as they can be: 1024 work-items, 8 each.
const MOST_SUB_GROUPS: usize = 128;

/// Two values as one.
type Combine<T> = fn(At, Recorded<T>, Recorded<T>) -> Recorded<T>;

/// The sum; integers wrap, for no order of summation is the author's.
pub fn add<T: Number>(at: At, a: Recorded<T>, b: Recorded<T>) -> Recorded<T> {
    let op = match T::TYPE.is_float() {
        true => BinaryOp::FAdd,
        false => BinaryOp::Add,
    };
    super::arithmetic::binary(at, op, a, b)
}

/// The value of another work-item of the sub-group.
pub(crate) fn shuffle<T: Scalar>(
    at: At,
    op: ShuffleOp,
    value: Recorded<T>,
    by: Recorded<usize>,
) -> Recorded<T> {
    let by: Recorded<u32> = resize(at, by);
    Recorded::new(recorder(|recorder| {
        recorder.build(at, |b| b.shuffle(op, value.value, by.value))
    }))
}

/// A vote of the sub-group on a truth value.
pub(crate) fn vote<T: Scalar>(at: At, op: VoteOp, value: Recorded<bool>) -> Recorded<T> {
    Recorded::new(recorder(|recorder| {
        recorder.build(at, |b| b.vote(op, value.value))
    }))
}

/// The size of every sub-group, if the kernel requires sizes that leave none partial.
fn full_size() -> Option<u32> {
    recorder(|recorder| {
        let size = recorder.kernel.sub_group_size?;
        let items: u64 = recorder
            .kernel
            .group_size?
            .iter()
            .map(|&size| u64::from(size))
            .product();
        (size <= LARGEST && items.is_multiple_of(u64::from(size))).then_some(size)
    })
}

/// The distances of a reduction, the largest first: for the size that the kernel requires, or for all that one without may run
/// with.
fn distances() -> impl DoubleEndedIterator<Item = u32> {
    let size = recorder(|recorder| recorder.kernel.sub_group_size)
        .map_or(EXCHANGING_ITEMS, |size| size.min(LARGEST));
    (0..LARGEST.ilog2())
        .rev()
        .map(|bit| 1 << bit)
        .filter(move |&distance| distance < size)
}

/// All values of the sub-group as one.
pub fn reduce<T: Scalar>(at: At, value: Recorded<T>, combine: Combine<T>) -> Recorded<T> {
    let mut sum = value;
    if full_size().is_some() {
        for distance in distances() {
            let other = shuffle(at, ShuffleOp::Xor, sum, literal(distance as usize));
            sum = combine(at, sum, other);
        }
        return sum;
    }
    let (lane, size) = (
        work_item::sub_group_local_id::device(at),
        work_item::sub_group_size::device(at),
    );
    for distance in distances() {
        let other = shuffle(at, ShuffleOp::Down, sum, literal(distance as usize));
        let is_there = lt(at, lane, sub_saturating(at, size, distance));
        sum = select(at, is_there, combine(at, sum, other), sum);
    }
    shuffle(at, ShuffleOp::Index, sum, literal(0))
}

/// `size - distance`, or 0.
fn sub_saturating(at: At, size: Recorded<usize>, distance: u32) -> Recorded<usize> {
    super::methods::saturating_sub(at, size, literal(distance as usize))
}

/// The values up to the own one as one.
pub(crate) fn inclusive_scan<T: Scalar>(at: At, value: Recorded<T>, combine: Combine<T>) -> Recorded<T> {
    let lane = work_item::sub_group_local_id::device(at);
    let mut sum = value;
    for distance in distances().rev() {
        let other = shuffle(at, ShuffleOp::Up, sum, literal(distance as usize));
        let is_first = lt(at, lane, literal(distance as usize));
        sum = select(at, is_first, sum, combine(at, other, sum));
    }
    sum
}

/// The values before the own one as one; `first` for the first.
pub(crate) fn exclusive_scan<T: Scalar>(
    at: At,
    value: Recorded<T>,
    first: T,
    combine: Combine<T>,
) -> Recorded<T> {
    let inclusive = inclusive_scan(at, value, combine);
    let before = shuffle(at, ShuffleOp::Up, inclusive, literal(1));
    let lane = work_item::sub_group_local_id::device(at);
    select(at, eq(at, lane, literal(0)), literal(first), before)
}

/// Puts each sub-group's value into shared memory, and combines those below `count`, starting with `first` if there is one,
/// else with the first of them.
fn across_sub_groups<T: Scalar>(
    at: At,
    last: Recorded<bool>,
    value: Recorded<T>,
    first: Option<T>,
    count: Recorded<usize>,
    combine: Combine<T>,
) -> Recorded<T> {
    let parts = shared_array::<T, MOST_SUB_GROUPS>(at, "sub_group_values");
    let branch = begin_if::<()>(at, last);
    store(at, parts, work_item::sub_group_id::device(at), value);
    end_if(branch);
    work_item::barrier::device(at);
    let (start, from) = match first {
        Some(first) => (literal(first), 0),
        None => (load(at, parts, literal(0)), 1),
    };
    let sum = variable("", start);
    let scope = begin_for(at, "", Wishes::none(), range(at, literal(from), count, false));
    let part = load(at, parts, counter(scope));
    set(sum, combine(at, get(sum), part));
    end_loop(scope);
    // The shared memory may be reused by the next call only when all have read it.
    work_item::barrier::device(at);
    get(sum)
}

/// All values of the work-group as one.
pub(crate) fn group_reduce<T: Scalar>(at: At, value: Recorded<T>, combine: Combine<T>) -> Recorded<T> {
    let own = reduce(at, value, combine);
    let is_first = eq(at, work_item::sub_group_local_id::device(at), literal(0));
    let count = work_item::sub_group_count::device(at);
    across_sub_groups(at, is_first, own, None, count, combine)
}

/// The sum of the values of the work-group up to the own one, or before it.
pub(crate) fn group_scan<T: Number>(at: At, value: Recorded<T>, inclusive: bool) -> Recorded<T> {
    let up_to = inclusive_scan(at, value, add);
    let (lane, size) = (
        work_item::sub_group_local_id::device(at),
        work_item::sub_group_size::device(at),
    );
    let is_last = eq(at, lane, sub(at, size, literal(1)));
    let own = work_item::sub_group_id::device(at);
    let before = across_sub_groups(at, is_last, up_to, Some(T::ZERO), own, add);
    if inclusive {
        return add(at, before, up_to);
    }
    let left = shuffle(at, ShuffleOp::Up, up_to, literal(1));
    let left = select(at, eq(at, lane, literal(0)), literal(T::ZERO), left);
    add(at, before, left)
}
