//! Pointers to an element and those behind it, in a memory that the type names.
//!
//! ```
//! use headstart::prelude::*;
//!
//! #[kernel]
//! fn sums(values: &[f32], result: &mut [f32], items: u32) {
//!     let mut p = global_ptr(&values[global_id() * items as usize]);
//!     let mut sum = 0.0;
//!     for _ in 0..items {
//!         prefetch(p.add(16), L2);
//!         sum += p.read();
//!         p = p.add(1);
//!     }
//!     result[global_id()] = sum;
//! }
//! # sums::kernel()?;
//! # Ok::<(), headstart::Error>(())
//! ```
//! `global_ptr`, `shared_ptr` and `private_ptr` give pointers of the memory that the array is in; `generic_ptr` one that
//! may lead to any of the three. A prefetch takes the first and the last: that a generic one leads to global memory is
//! checked when the kernel runs in the simulator.
//!
//! A pointer may point anywhere; the memory that it reads must exist.

use std::marker::PhantomData;

use super::hint::L3;
use super::record::pointers::{self, AnyMemory};
use super::record::{Array, At, Memory, Recorded};
use super::scalar::Scalar;
use crate::ir::Space;

/// A memory that pointers lead to.
pub trait AddressSpace: Copy + 'static {
    /// Which.
    const SPACE: Space;
}

/// A memory that may be global, which alone has caches to fill.
#[diagnostic::on_unimplemented(
    message = "a pointer to {Self} memory cannot be prefetched: that memory is near already",
    note = "accepted: pointers to global memory (`global_ptr`) and generic ones (`generic_ptr`)"
)]
pub trait MayBeGlobal: AddressSpace {}

macro_rules! spaces {
    ($($(#[$documentation:meta])* $name:ident)+) => {$(
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {}

        impl AddressSpace for $name {
            const SPACE: Space = Space::$name;
        }
    )+};
}

spaces! {
    /// Memory of the whole device.
    Global
    /// Memory of one work-group.
    Shared
    /// Memory of one work-item.
    Private
    /// Any of the three.
    Generic
}

impl MayBeGlobal for Global {}
impl MayBeGlobal for Generic {}

/// A pointer to a `T` in the memory `S`. `Ptr<(), S>` points to bytes.
#[derive(Debug)]
pub struct Ptr<'a, T, S> {
    /// The slice that it was made from; none for bytes, which cannot be read.
    memory: &'a [T],
    position: usize,
    space: PhantomData<fn() -> S>,
}

impl<T, S> Clone for Ptr<'_, T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, S> Copy for Ptr<'_, T, S> {}

/// This many elements behind a pointer; for a byte pointer, bytes.
#[derive(Debug)]
pub struct Span<'a, T, S> {
    /// The first.
    pub first: Ptr<'a, T, S>,
    /// How many.
    pub count: usize,
}

impl<T, S> Clone for Span<'_, T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, S> Copy for Span<'_, T, S> {}

impl<'a, T, S> Ptr<'a, T, S> {
    fn new(memory: &'a [T], position: usize) -> Ptr<'a, T, S> {
        Ptr {
            memory,
            position,
            space: PhantomData,
        }
    }

    /// The pointer `count` elements further.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "as pointers have it")]
    pub fn add(self, count: usize) -> Self {
        Ptr::new(self.memory, self.position.wrapping_add(count))
    }

    /// The same place as bytes.
    #[must_use]
    pub fn raw(self) -> Ptr<'a, (), S> {
        Ptr::new(&[], 0)
    }

    /// `count` elements from here on.
    #[must_use]
    pub fn span(self, count: usize) -> Span<'a, T, S> {
        Span { first: self, count }
    }

    /// The same place, by a pointer that may lead anywhere.
    #[must_use]
    pub fn generic(self) -> Ptr<'a, T, Generic> {
        Ptr::new(self.memory, self.position)
    }
}

impl<T: Scalar, S> Ptr<'_, T, S> {
    /// The element there.
    ///
    /// # Panics
    /// There is none, as with an index out of bounds.
    pub fn read(self) -> T {
        self.memory[self.position]
    }
}

impl<T: Scalar> Ptr<'_, T, Global> {
    /// Intel's `global_ptr::prefetch(count)`: a hint that `count` elements will be wanted, to L3. It differs from
    /// [`prefetch`](fn@super::hint::prefetch) without a level, which goes to L1.
    pub fn prefetch(self, count: usize) {
        super::hint::prefetch(self.span(count), L3);
    }
}

macro_rules! pointers {
    ($($(#[$documentation:meta])* $name:ident: $space:ident;)+) => {$(
        $(#[$documentation])*
        pub fn $name<T: Scalar>(element: &T) -> Ptr<'_, T, $space> {
            Ptr::new(std::slice::from_ref(element), 0)
        }

        device_form!($name {
            /// The pointer to `memory[position]`, which may lie behind the end.
            pub fn of<T: Scalar>(memory: &[T], position: usize) -> Ptr<'_, T, $space> {
                Ptr::new(memory, position)
            }
        });
    )+};
}

pointers! {
    /// A pointer to an element of a slice: `global_ptr(&values[i])`.
    global_ptr: Global;
    /// A pointer to an element of a shared array: `shared_ptr(&tile[i])`.
    shared_ptr: Shared;
    /// A pointer to an element of a private array: `private_ptr(&own[i])`.
    private_ptr: Private;
    /// A pointer to an element of any memory: `generic_ptr(&values[i])`, `generic_ptr(&tile[i])`.
    generic_ptr: Generic;
}

impl global_ptr {
    #[doc(hidden)]
    pub fn device<T: Scalar>(
        at: At,
        memory: Memory<Recorded<T>>,
        index: Recorded<usize>,
    ) -> Recorded<Ptr<'static, T, Global>> {
        pointers::pointer(at, memory, index)
    }
}

impl shared_ptr {
    #[doc(hidden)]
    pub fn device<T: Scalar, const N: usize>(
        at: At,
        memory: Array<Recorded<T>, N>,
        index: Recorded<usize>,
    ) -> Recorded<Ptr<'static, T, Shared>> {
        pointers::pointer(at, memory, index)
    }
}

impl private_ptr {
    #[doc(hidden)]
    pub fn device<T: Scalar, const N: usize>(
        at: At,
        memory: Array<Recorded<T>, N>,
        index: Recorded<usize>,
    ) -> Recorded<Ptr<'static, T, Private>> {
        pointers::pointer(at, memory, index)
    }
}

impl generic_ptr {
    #[doc(hidden)]
    pub fn device<T: Scalar>(
        at: At,
        memory: impl AnyMemory<Recorded<T>>,
        index: Recorded<usize>,
    ) -> Recorded<Ptr<'static, T, Generic>> {
        pointers::generic(at, memory, index)
    }
}
