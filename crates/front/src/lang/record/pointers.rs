//! Pointers: made from an element, moved, read.

use super::state::recorder;
use super::values::Register;
use super::{Array, AsMemory, At, Memory, Recorded};
use crate::Error;
use crate::ir::{CacheUse, ConvertOp, OpKind, Space, Type, Value};
use crate::lang::pointer::{AddressSpace, Generic, Ptr};
use crate::lang::scalar::Scalar;

impl<T, S: AddressSpace> Register for Ptr<'_, T, S> {
    const TYPE: Type = Type::Ptr(S::SPACE);
}

/// Slices and arrays of any memory.
pub trait AnyMemory<V>: AsMemory<V> {}

impl<V> AnyMemory<V> for Memory<V> {}

impl<V, const N: usize> AnyMemory<V> for Array<V, N> {}

/// The address of `memory[index]`, which its slice or array names.
fn address<T: Scalar>(at: At, memory: Memory<Recorded<T>>, index: Recorded<usize>) -> Value {
    let ptr = super::memory::element(at, memory, T::TYPE, index.value);
    recorder(|recorder| recorder.pointer_roots.insert(ptr, memory.root()));
    ptr
}

/// `global_ptr(&memory[index])`, `shared_ptr(&memory[index])`, `private_ptr(&memory[index])`
pub fn pointer<T: Scalar, S: AddressSpace>(
    at: At,
    memory: impl AsMemory<Recorded<T>>,
    index: Recorded<usize>,
) -> Recorded<Ptr<'static, T, S>> {
    let ptr = address(at, memory.memory(), index);
    recorder(|recorder| {
        let found = recorder.kernel.ty(ptr);
        if found != Type::Ptr(S::SPACE) {
            let found = found.space().unwrap_or(Space::Generic);
            let error = Error::input(format!("this is {found} memory, not {}", S::SPACE)).accepted(format!(
                "`{found}_ptr`, or `generic_ptr` for a pointer that may lead to any memory"
            ));
            recorder.fail(at, error);
        }
    });
    Recorded::new(ptr)
}

/// `generic_ptr(&memory[index])`
pub fn generic<T: Scalar>(
    at: At,
    memory: impl AnyMemory<Recorded<T>>,
    index: Recorded<usize>,
) -> Recorded<Ptr<'static, T, Generic>> {
    to_generic(at, address(at, memory.memory(), index))
}

/// A pointer as one that may lead anywhere.
fn to_generic<T>(at: At, ptr: Value) -> Recorded<Ptr<'static, T, Generic>> {
    recorder(|recorder| {
        let generic = Type::Ptr(Space::Generic);
        let made = match recorder.kernel.ty(ptr) == generic {
            true => ptr,
            false => recorder.build(at, |b| b.convert(ConvertOp::ToGeneric, generic, ptr)),
        };
        if let Some(&root) = recorder.pointer_roots.get(&ptr) {
            recorder.pointer_roots.insert(made, root);
        }
        Recorded::new(made)
    })
}

/// The element type that a pointer counts in: bytes for `()`.
pub trait Counted {
    /// Bytes of one.
    fn bytes() -> u32;
}

impl<T: Scalar> Counted for T {
    fn bytes() -> u32 {
        <T as Register>::TYPE.bytes()
    }
}

impl Counted for () {
    fn bytes() -> u32 {
        1
    }
}

/// `ptr.add(count)`
pub fn add<'a, T: Counted, S>(
    at: At,
    ptr: Recorded<Ptr<'a, T, S>>,
    count: Recorded<usize>,
) -> Recorded<Ptr<'a, T, S>> {
    recorder(|recorder| {
        let moved = recorder.build(at, |b| b.address(ptr.value, count.value, T::bytes(), 0));
        if let Some(&root) = recorder.pointer_roots.get(&ptr.value) {
            recorder.pointer_roots.insert(moved, root);
        }
        Recorded::new(moved)
    })
}

/// `ptr.raw()`
pub fn raw<'a, T, S>(_: At, ptr: Recorded<Ptr<'a, T, S>>) -> Recorded<Ptr<'a, (), S>> {
    Recorded::new(ptr.value)
}

/// `ptr.generic()`
pub fn as_generic<T, S>(at: At, ptr: Recorded<Ptr<'_, T, S>>) -> Recorded<Ptr<'static, T, Generic>> {
    to_generic(at, ptr.value)
}

/// Loads an element.
pub(in crate::lang) fn read<T: Scalar>(at: At, ptr: Value, cache: CacheUse) -> Recorded<T> {
    Recorded::new(recorder(|recorder| {
        let id = match recorder.pointer_roots.get(&ptr).copied() {
            Some(root) => recorder.load_id(at, root),
            None => recorder.load_named(at, "pointer"),
        };
        let ty = <T as Register>::TYPE;
        recorder.build(at, |b| b.push(OpKind::Load { ptr, id, cache }, &[ty])[0])
    }))
}
