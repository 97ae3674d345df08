//! Slices of vectors: `let [x, y] = memory[index];`, `memory[index] = [x, y];`, `memory[index][part]`.
//!
//! A vector is read and written by as few accesses as its size takes: 16 bytes at a time, aligned to what they
//! move. A slice's start is aligned so, and its length counts scalars.

use super::memory::element;
use super::state::recorder;
use super::{AsMemory, At, Memory, Recorded, add, literal, mul};
use crate::Error;
use crate::front::lang::scalar::Scalar;
use crate::ir::{CacheUse, OpKind, limits};

/// The number of a vector's first scalar. Notes an error if there are no vectors of `N`.
fn first<const N: usize>(at: At, index: Recorded<usize>) -> Recorded<usize> {
    if !matches!(N, 2 | 4) {
        let error = Error::input(format!("a vector of {N} scalars"))
            .accepted("vectors of 2 and 4: `[T; 2]`, `[T; 4]`");
        recorder(|recorder| recorder.fail(at, error));
    }
    mul(at, index, literal(N))
}

/// How many scalars one access moves.
fn at_once<T: Scalar>(count: usize) -> usize {
    count
        .min((limits::ACCESS_BYTES / T::TYPE.bytes()) as usize)
        .max(1)
}

/// `memory[index]`
pub fn load<T: Scalar, const N: usize>(
    at: At,
    memory: impl AsMemory<[T; N]>,
    index: Recorded<usize>,
) -> [Recorded<T>; N] {
    let memory = memory.memory();
    let first = first::<N>(at, index);
    let mut parts = Vec::with_capacity(N);
    let width = at_once::<T>(N);
    for start in (0..N).step_by(width) {
        let position = add(at, first, literal(start));
        let ptr = element(at, memory, T::TYPE, position.value);
        let count = width.min(N - start);
        let loaded = recorder(|recorder| {
            let id = recorder.load_id(at, memory.root());
            let cache = CacheUse::Default;
            recorder.build(at, |b| {
                b.push(OpKind::Load { ptr, id, cache }, &vec![T::TYPE; count])
            })
        });
        parts.extend(loaded.into_iter().map(Recorded::new));
    }
    std::array::from_fn(|part| parts[part])
}

/// `memory[index] = values`
pub fn store<T: Scalar, const N: usize>(
    at: At,
    memory: impl AsMemory<[T; N]>,
    index: Recorded<usize>,
    values: [Recorded<T>; N],
) {
    let memory = memory.memory();
    let first = first::<N>(at, index);
    let width = at_once::<T>(N);
    for (number, values) in values.chunks(width).enumerate() {
        let position = add(at, first, literal(number * width));
        let ptr = element(at, memory, T::TYPE, position.value);
        let kind = OpKind::Store {
            ptr,
            values: values.iter().map(|value| value.value).collect(),
            cache: CacheUse::Default,
        };
        recorder(|recorder| recorder.build(at, |b| b.push(kind, &[])));
    }
}

/// The memory of the scalars, and the number of `memory[index][part]` there.
fn part_of<T: Scalar, const N: usize>(
    at: At,
    memory: impl AsMemory<[T; N]>,
    index: Recorded<usize>,
    part: Recorded<usize>,
) -> (Memory<T>, Recorded<usize>) {
    let first = first::<N>(at, index);
    (memory.memory().of_scalars(), add(at, first, part))
}

/// `memory[index][part]`
pub fn load_part<T: Scalar, const N: usize>(
    at: At,
    memory: impl AsMemory<[T; N]>,
    index: Recorded<usize>,
    part: Recorded<usize>,
) -> Recorded<T> {
    let (scalars, position) = part_of(at, memory, index, part);
    super::load(at, scalars, position)
}

/// `memory[index][part] = value`
pub fn store_part<T: Scalar, const N: usize>(
    at: At,
    memory: impl AsMemory<[T; N]>,
    index: Recorded<usize>,
    part: Recorded<usize>,
    value: Recorded<T>,
) {
    let (scalars, position) = part_of(at, memory, index, part);
    super::store(at, scalars, position, value);
}
