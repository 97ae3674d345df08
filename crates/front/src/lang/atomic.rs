//! Atomic elements of slices and shared arrays, memory orders, fences.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! /// Counts how often each value occurs: first for the work-group, then for all.
//! #[kernel(work_group = 64)]
//! fn histogram(values: &[u32], bins: &[Atomic<u32>]) {
//!     let own = shared::<Atomic<u32>, 64>();
//!     own[local_id()].store(0, Ordering::Relaxed);
//!     barrier();
//!     own[values[global_id()] as usize % 64].fetch_add(1, Ordering::Relaxed);
//!     barrier();
//!     let count = own[local_id()].load(Ordering::Relaxed);
//!     bins[local_id()].fetch_add(count, Ordering::Relaxed);
//! }
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let values: Vec<u32> = (0..256).map(|i| i * i).collect();
//! let values = TypedBuffer::from_slice(&device, &values)?;
//! let mut bins = TypedBuffer::from_slice(&device, &[0u32; 64])?;
//! let arguments = histogram::arguments(&values, &mut bins);
//! histogram::compile(&device)?.launch(&*queue, Geometry::new(4, 64), arguments).wait()?;
//! let bins = bins.read(&*queue)?;
//! assert_eq!(bins.iter().sum::<u32>(), 256);
//! assert_eq!(bins[1], 16); // four of 64 squares leave 1
//! # Ok::<(), headstart::Error>(())
//! ```
//! Orders are Rust's own, [`Ordering`]. They hold for the whole device unless [`within`](Within::within) narrows the scope:
//! `Ordering::AcqRel.within(Scope::WorkGroup)`. An atomic operation orders exactly what its order says: a relaxed one is no
//! fence, and a barrier does not order other work-groups. Loads of `&[T]` may be fetched early across any of them, because
//! nothing writes there; loads of `&mut [T]` may not be fetched across an acquire.
//!
//! In Rust, `compare_exchange` gives a `Result`, which kernels do not have; here it is `compare_and_swap`, which returns the
//! old value.

use std::cell::Cell;
use std::fmt;
pub use std::sync::atomic::Ordering;

use super::data::Data;
use super::record::layout::Layout;
use super::record::{At, AtomicElement, atomics};
use super::scalar::{Integer, Number};
use crate::ir::{MemoryOrder, MemoryScope};

/// The recorded form of the elements of a slice or array of `T`s.
#[doc(hidden)]
pub type ElementOf<T> = <T as Stored>::Element;

/// A type that atomic operations have: integers and floats of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations",
    note = "accepted: i32, i64, isize, u32, u64, usize, f32, f64"
)]
pub trait AtomicScalar: Number + AtomicAdd {}

/// A type with atomic bit operations, comparison and subtraction: integers of 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic operations for integers",
    note = "accepted: i32, i64, isize, u32, u64, usize"
)]
pub trait AtomicInteger: AtomicScalar + Integer {}

macro_rules! atomic {
    ($trait:ident: $($rust:ident)+) => {$(
        impl $trait for $rust {}
    )+};
}

atomic!(AtomicScalar: i32 i64 isize u32 u64 usize f32 f64);
atomic!(AtomicInteger: i32 i64 isize u32 u64 usize);

/// The elements of slices and arrays: [`Data`], and atomic scalars.
#[diagnostic::on_unimplemented(
    message = "memory in a kernel cannot hold `{Self}`",
    label = "not an element of a slice or array",
    note = "accepted: the scalar types, vectors `[T; N]`, structs with `#[derive(Data)]`, and `Atomic<T>` of 32 and \
            64-bit scalars"
)]
pub trait Stored {
    /// An element in a recorded kernel.
    type Element: Layout;

    /// Whether a `&[Self]` is written through.
    const SHARED_WRITES: bool;
}

impl<T: Data> Stored for T {
    type Element = T::Recorded;
    const SHARED_WRITES: bool = false;
}

impl<T: AtomicScalar> Stored for Atomic<T> {
    type Element = AtomicElement<T>;
    const SHARED_WRITES: bool = true;
}

/// The elements of a `&mut [Self]`: anything except atomic elements, which are shared by nature.
#[diagnostic::on_unimplemented(
    message = "a `&mut` slice in a kernel cannot hold `{Self}`",
    note = "accepted: the scalar types, vectors and structs; atomic elements are in `&[Atomic<T>]`"
)]
pub trait Exclusive: Stored {}

impl<T: Data> Exclusive for T {}

/// An element that work-items change in one step: `bins: &[Atomic<u32>]`.
///
/// A kernel's argument for such a slice is a plain buffer, borrowed mutably. The CPU reference takes a slice of
/// these; it runs one work-item at a time, so they need not be atomic there.
#[derive(Default)]
pub struct Atomic<T: AtomicScalar>(Cell<T>);

impl<T: AtomicScalar> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.get().fmt(f)
    }
}

impl<T: AtomicScalar> Atomic<T> {
    /// An element with this value.
    pub fn new(value: T) -> Atomic<T> {
        Atomic(Cell::new(value))
    }

    /// Its value, once no other reference exists.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Its value.
    pub fn load(&self, order: impl Into<Order>) -> T {
        let _ = order;
        self.0.get()
    }

    /// Becomes `value`.
    pub fn store(&self, value: T, order: impl Into<Order>) {
        let _ = order;
        self.0.set(value);
    }

    /// Sets it to `value`; returns the old value.
    pub fn swap(&self, value: T, order: impl Into<Order>) -> T {
        let _ = order;
        self.0.replace(value)
    }

    /// Adds `value`, rounded (floats) or wrapped (integers); returns the old value.
    ///
    /// The order in which work-items come decides how a sum of floats is rounded.
    pub fn fetch_add(&self, value: T, order: impl Into<Order>) -> T {
        self.swap(self.0.get().atomic_add(value), order)
    }

    /// Sets it to the lesser; returns the old value. For floats -0 is below +0, and a NaN operand changes nothing. A NaN in
    /// memory counts as greater than all numbers, or less if its sign is set.
    pub fn fetch_min(&self, value: T, order: impl Into<Order>) -> T {
        let before = self.0.get();
        self.swap(before.atomic_least(value), order)
    }

    /// Sets it to the greater; returns the old value. As [`fetch_min`](Atomic::fetch_min) for floats.
    pub fn fetch_max(&self, value: T, order: impl Into<Order>) -> T {
        let before = self.0.get();
        self.swap(before.atomic_greatest(value), order)
    }
}

impl<T: AtomicInteger> Atomic<T> {
    /// Sets it to `new` if it is `current`; returns the old value, which is `current` on success.
    pub fn compare_and_swap(&self, current: T, new: T, order: impl Into<Order>) -> T {
        let _ = order;
        let before = self.0.get();
        if before == current {
            self.0.set(new);
        }
        before
    }

    /// Subtracts `value`, wrapped; returns the old value.
    pub fn fetch_sub(&self, value: T, order: impl Into<Order>) -> T {
        // The opposite of the least number is itself, which is right modulo the width.
        let opposite = (!value).atomic_add(T::ONE);
        self.swap(self.0.get().atomic_add(opposite), order)
    }

    /// Sets it to `& value`; returns the old value.
    pub fn fetch_and(&self, value: T, order: impl Into<Order>) -> T {
        self.swap(self.0.get() & value, order)
    }

    /// Sets it to `| value`; returns the old value.
    pub fn fetch_or(&self, value: T, order: impl Into<Order>) -> T {
        self.swap(self.0.get() | value, order)
    }

    /// Sets it to `^ value`; returns the old value.
    pub fn fetch_xor(&self, value: T, order: impl Into<Order>) -> T {
        self.swap(self.0.get() ^ value, order)
    }
}

/// How an atomic element adds and compares on the CPU: as the device does.
pub trait AtomicAdd {
    /// The sum, wrapped or rounded.
    #[must_use]
    fn atomic_add(self, other: Self) -> Self;

    /// The lesser.
    #[must_use]
    fn atomic_least(self, other: Self) -> Self;

    /// The greater.
    #[must_use]
    fn atomic_greatest(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($rust:ident)+) => {$(
        impl AtomicAdd for $rust {
            fn atomic_add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn atomic_least(self, other: Self) -> Self {
                Ord::min(self, other)
            }

            fn atomic_greatest(self, other: Self) -> Self {
                Ord::max(self, other)
            }
        }
    )+};
}

wrapping!(i32 i64 isize u32 u64 usize);

macro_rules! rounded {
    ($($rust:ident)+) => {$(
        impl AtomicAdd for $rust {
            fn atomic_add(self, other: Self) -> Self {
                self + other
            }

            fn atomic_least(self, other: Self) -> Self {
                match other.is_nan() || self.total_cmp(&other).is_le() {
                    true => self,
                    false => other,
                }
            }

            fn atomic_greatest(self, other: Self) -> Self {
                match other.is_nan() || self.total_cmp(&other).is_ge() {
                    true => self,
                    false => other,
                }
            }
        }
    )+};
}

rounded!(f32 f64);

/// Among which work-items an order holds.
pub type Scope = MemoryScope;

/// The order of an atomic operation or fence, and its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The accesses that stay before and after.
    pub order: MemoryOrder,
    /// Among which work-items.
    pub scope: Scope,
}

impl From<Ordering> for Order {
    fn from(order: Ordering) -> Order {
        Order {
            order: match order {
                Ordering::Relaxed => MemoryOrder::Relaxed,
                Ordering::Acquire => MemoryOrder::Acquire,
                Ordering::Release => MemoryOrder::Release,
                Ordering::AcqRel => MemoryOrder::AcquireRelease,
                _ => MemoryOrder::SequentiallyConsistent,
            },
            scope: Scope::Device,
        }
    }
}

/// Says for which work-items an order holds: `Ordering::Acquire.within(Scope::WorkGroup)`.
pub trait Within {
    /// The order among these work-items.
    fn within(self, scope: Scope) -> Order;
}

impl Within for Ordering {
    fn within(self, scope: Scope) -> Order {
        Order { scope, ..self.into() }
    }
}

/// Orders the accesses of this work-item before and after it, as others see them: `fence(Ordering::AcqRel)`.
///
/// No work-item waits for it. A relaxed one orders nothing, and is refused.
pub fn fence(order: impl Into<Order>) {
    let _ = order.into();
}

device_form!(fence {
    pub fn device(at: At, order: impl Into<Order>) {
        atomics::fence(at, order.into());
    }
});
