//! Slices, shared and private arrays.

use std::marker::PhantomData;

use super::layout::{Layout, Placed};
use super::placed::{array_alignment, place, read, write};
use super::range::{begin_for, counter, range};
use super::state::recorder;
use super::{At, Recorded, Wishes, end_loop, literal};
use crate::Error;
use crate::ir::{ArrayData, Space, Type, Value};
use crate::lang::atomic::Stored;
use crate::lang::scalar::Scalar;

/// The most elements that are initialised one after the other; more take a loop.
const UNROLLED: u64 = 16;

/// A slice or array of `V`, which is the recorded form of its elements.
#[derive(Debug)]
pub struct Memory<V> {
    base: Value,
    length: Value,
    /// Which slice or array of the source it is.
    root: usize,
    element: PhantomData<fn() -> V>,
}

impl<V> Clone for Memory<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Memory<V> {}

impl<V> Memory<V> {
    /// Memory from `base` on, of `length` elements (an `I64`).
    pub(super) fn new(base: Value, length: Value, name: &str) -> Memory<V> {
        let root = recorder(|recorder| {
            recorder.roots.push(name.to_owned());
            recorder.roots.len() - 1
        });
        Memory {
            base,
            length,
            root,
            element: PhantomData,
        }
    }

    /// Its first element's address.
    pub(super) fn base(&self) -> Value {
        self.base
    }

    /// Which slice or array of the source it is.
    pub(super) fn root(&self) -> usize {
        self.root
    }
}

/// An array of `N` elements.
#[derive(Debug)]
pub struct Array<V, const N: usize>(Memory<V>);

impl<V, const N: usize> Clone for Array<V, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, const N: usize> Copy for Array<V, N> {}

/// Anything that can be indexed, and passed as a slice.
#[diagnostic::on_unimplemented(
    message = "this memory does not have the elements that are used here",
    note = "atomic operations are for elements of `&[Atomic<T>]` and `shared::<Atomic<T>, N>()`, other accesses for those \
            of slices, arrays and views of plain elements"
)]
pub trait AsMemory<V>: Copy {
    /// Its memory.
    fn memory(self) -> Memory<V>;
}

impl<V> AsMemory<V> for Memory<V> {
    fn memory(self) -> Memory<V> {
        self
    }
}

impl<V, const N: usize> AsMemory<V> for Array<V, N> {
    fn memory(self) -> Memory<V> {
        self.0
    }
}

/// The address of `memory[index]`, whose elements have this type.
pub(super) fn element<V>(at: At, memory: Memory<V>, ty: Type, index: Value) -> Value {
    recorder(|recorder| recorder.build(at, |b| b.element(memory.base, ty, index)))
}

/// `memory[index]` of scalars.
pub fn load<T: Scalar>(at: At, memory: impl AsMemory<Recorded<T>>, index: Recorded<usize>) -> Recorded<T> {
    read(at, place(at, memory, index))
}

/// `memory[index] = value` of scalars.
pub fn store<T: Scalar>(
    at: At,
    memory: impl AsMemory<Recorded<T>>,
    index: Recorded<usize>,
    value: Recorded<T>,
) {
    write(at, place(at, memory, index), value);
}

/// `&memory[start..end]`: the elements from `start` on, up to the end of the memory if none is given.
///
/// Whether the end lies inside is not checked; each access is.
pub fn part<V: Layout>(
    at: At,
    memory: impl AsMemory<V>,
    start: Recorded<usize>,
    end: Option<Recorded<usize>>,
) -> Memory<V> {
    let memory = memory.memory();
    let end = end.unwrap_or(Recorded::new(memory.length));
    let length = super::sub(at, end, start);
    Memory {
        base: place(at, memory, start).address(at, 0),
        length: length.value,
        root: memory.root,
        element: PhantomData,
    }
}

/// `memory.len()`
pub fn len<V>(_: At, memory: impl AsMemory<V>) -> Recorded<usize> {
    Recorded::new(memory.memory().length)
}

/// `memory.is_empty()`
pub fn is_empty<V>(at: At, memory: impl AsMemory<V>) -> Recorded<bool> {
    super::eq(at, len(at, memory), literal(0))
}

/// `let name = shared::<T, N>();`
pub fn shared_array<T: Stored, const N: usize>(at: At, name: &str) -> Array<T::Element, N> {
    array(at, name, Space::Shared)
}

/// `let name = [value; N];`
pub fn array_of<V: Placed, const N: usize>(at: At, name: &str, value: V) -> Array<V, N> {
    let made: Array<V, N> = array(at, name, Space::Private);
    if N as u64 <= UNROLLED {
        for index in 0..N {
            write(at, place(at, made, literal(index)), value);
        }
    } else {
        let scope = begin_for(at, "", Wishes::none(), range(at, literal(0), literal(N), false));
        write(at, place(at, made, counter(scope)), value);
        end_loop(scope);
    }
    made
}

/// `let name = [values];`
pub fn array_from<V: Placed, const N: usize>(at: At, name: &str, values: [V; N]) -> Array<V, N> {
    let made: Array<V, N> = array(at, name, Space::Private);
    for (index, value) in values.into_iter().enumerate() {
        write(at, place(at, made, literal(index)), value);
    }
    made
}

/// An array as a value: all of its elements.
pub fn whole<V: Placed, const N: usize>(at: At, array: Array<V, N>) -> [V; N] {
    std::array::from_fn(|index| read(at, place(at, array, literal(index))))
}

/// `array = values`
pub fn set_whole<V: Placed, const N: usize>(at: At, array: Array<V, N>, values: [V; N]) {
    for (index, value) in values.into_iter().enumerate() {
        write(at, place(at, array, literal(index)), value);
    }
}

/// A new array. Its address is taken where it is declared.
fn array<V: Layout, const N: usize>(at: At, name: &str, space: Space) -> Array<V, N> {
    let unit = V::UNIT.bytes();
    let (base, length) = recorder(|recorder| {
        let units = u32::try_from(N)
            .ok()
            .and_then(|elements| elements.checked_mul(V::SIZE / unit))
            .filter(|&units| units > 0);
        if units.is_none() {
            let error = Error::input(format!("the array `{name}` has {N} elements"))
                .accepted("an array has at least 1 element and fewer than 2^32");
            recorder.fail(at, error);
        }
        let array = recorder.kernel.arrays.push(ArrayData {
            name: name.to_owned(),
            space,
            element: V::UNIT,
            length: units.unwrap_or(1),
            align: array_alignment::<V>(V::SIZE == unit),
        });
        recorder.build(at, |b| {
            // The length lives in the type; as a value it is a constant.
            (b.array_address(array), b.constant(Type::I64, N as u64))
        })
    });
    Array(Memory::new(base, length, name))
}
