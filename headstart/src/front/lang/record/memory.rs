//! Slices, shared and private arrays, and hints for them.

use std::marker::PhantomData;

use super::range::{begin_for, counter, range};
use super::state::recorder;
use super::{At, Recorded, Wishes, end_loop, literal};
use crate::Error;
use crate::device::Element;
use crate::front::lang::atomic::Stored;
use crate::front::lang::scalar::Scalar;
use crate::ir::{ArrayData, CacheHint, Space, Type, Value};

/// The most elements that are initialised one after the other; more take a loop.
const UNROLLED: u64 = 16;

/// A slice or array of `T`.
#[derive(Debug)]
pub struct Memory<T> {
    base: Value,
    length: Value,
    /// Which slice or array of the source it is.
    root: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Memory<T> {}

impl<T> Memory<T> {
    /// Memory from `base` on, of `length` elements (an `I64`).
    pub(super) fn new(base: Value, length: Value, name: &str) -> Memory<T> {
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
}

impl<T, const N: usize> Memory<[T; N]> {
    /// The same memory, scalar by scalar.
    pub(super) fn of_scalars(self) -> Memory<T> {
        Memory {
            base: self.base,
            length: self.length,
            root: self.root,
            element: PhantomData,
        }
    }
}

impl<T> Memory<T> {
    /// Which slice or array of the source it is.
    pub(super) fn root(&self) -> usize {
        self.root
    }
}

/// An array of `N` elements.
#[derive(Debug)]
pub struct Array<T, const N: usize>(Memory<T>);

impl<T, const N: usize> Clone for Array<T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for Array<T, N> {}

/// What can be indexed, and handed on where a slice is wanted.
pub trait AsMemory<T>: Copy {
    /// Its memory.
    fn memory(self) -> Memory<T>;
}

impl<T> AsMemory<T> for Memory<T> {
    fn memory(self) -> Memory<T> {
        self
    }
}

impl<T, const N: usize> AsMemory<T> for Array<T, N> {
    fn memory(self) -> Memory<T> {
        self.0
    }
}

/// The address of `memory[index]`, whose elements have this type.
pub(super) fn element<T>(at: At, memory: Memory<T>, ty: Type, index: Value) -> Value {
    recorder(|recorder| recorder.build(at, |b| b.element(memory.base, ty, index)))
}

/// `memory[index]`
pub fn load<T: Scalar>(at: At, memory: impl AsMemory<T>, index: Recorded<usize>) -> Recorded<T> {
    let memory = memory.memory();
    let ptr = element(at, memory, T::TYPE, index.value);
    Recorded::new(recorder(|recorder| {
        let id = recorder.load_id(at, memory.root);
        recorder.build(at, |b| b.load(T::TYPE, ptr, id))
    }))
}

/// `memory[index] = value`
pub fn store<T: Scalar>(at: At, memory: impl AsMemory<T>, index: Recorded<usize>, value: Recorded<T>) {
    let ptr = element(at, memory.memory(), T::TYPE, index.value);
    recorder(|recorder| recorder.build(at, |b| b.store(ptr, value.value)));
}

/// `memory.len()`
pub fn len<T>(_: At, memory: impl AsMemory<T>) -> Recorded<usize> {
    Recorded::new(memory.memory().length)
}

/// `memory.is_empty()`
pub fn is_empty<T>(at: At, memory: impl AsMemory<T>) -> Recorded<bool> {
    super::eq(at, len(at, memory), literal(0))
}

/// `prefetch(&memory[index], hint)`: one element is wanted, and with it its cache line.
pub fn prefetch<T: Stored>(at: At, memory: impl AsMemory<T>, index: Recorded<usize>, hint: CacheHint) {
    let memory = memory.memory();
    let ty = T::Value::TYPE;
    let first = super::mul(at, index, literal(T::COUNT));
    let ptr = element(at, memory, ty, first.value);
    recorder(|recorder| {
        if recorder.kernel.ty(ptr) != Type::Ptr(Space::Global) {
            let error =
                Error::input("a prefetch brings global memory nearer; shared and private memory are near")
                    .accepted("prefetch an element of a slice parameter");
            recorder.fail(at, error);
        }
        recorder.build(at, |b| b.prefetch(ptr, ty.bytes() * T::COUNT as u32, hint, None));
    });
}

/// `let name = shared::<T, N>();`
pub fn shared_array<T: Stored, const N: usize>(at: At, name: &str) -> Array<T, N> {
    array(at, name, Space::Shared)
}

/// `let name = [value; N];`
pub fn array_of<T: Scalar, const N: usize>(at: At, name: &str, value: Recorded<T>) -> Array<T, N> {
    let made: Array<T, N> = array(at, name, Space::Private);
    if N as u64 <= UNROLLED {
        for index in 0..N {
            store(at, made, literal(index), value);
        }
    } else {
        let scope = begin_for(at, "", Wishes::none(), range(at, literal(0), literal(N), false));
        store(at, made, counter(scope), value);
        end_loop(scope);
    }
    made
}

/// `let name = [values];`
pub fn array_from<T: Scalar, const N: usize>(at: At, name: &str, values: [Recorded<T>; N]) -> Array<T, N> {
    let made: Array<T, N> = array(at, name, Space::Private);
    for (index, value) in values.into_iter().enumerate() {
        store(at, made, literal(index), value);
    }
    made
}

/// A new array. Its address is taken where it is declared.
fn array<T: Stored, const N: usize>(at: At, name: &str, space: Space) -> Array<T, N> {
    let (base, length) = recorder(|recorder| {
        let elements = u32::try_from(N).ok().filter(|&elements| elements > 0);
        if elements.is_none() {
            let error = Error::input(format!("the array `{name}` has {N} elements"))
                .accepted("an array has at least 1 element and fewer than 2^32");
            recorder.fail(at, error);
        }
        let array = recorder.kernel.arrays.push(ArrayData {
            name: name.to_owned(),
            space,
            element: T::Value::TYPE,
            length: elements.unwrap_or(1),
            align: T::Value::TYPE.bytes(),
        });
        recorder.build(at, |b| {
            // The length lives in the type; as a value it is a constant.
            (b.array_address(array), b.constant(Type::I64, N as u64))
        })
    });
    Array(Memory::new(base, length, name))
}
