//! Prefetches: hints that memory will be wanted, by one work-item or by a group together. And shared arrays.
//!
//! The interface is that of the SYCL extension `sycl_ext_oneapi_prefetch`; `docs/prefetch.md` has every one of its
//! signatures beside its form here.
//!
//! ```
//! use headstart::prelude::*;
//!
//! #[kernel(work_group = 64, sub_group = 32)]
//! fn sums(rows: &[f32], result: &mut [f32], columns: u32) {
//!     let columns = columns as usize;
//!     let row = group_id() * columns;
//!     // The work-items of the group divide the lines of the next row among themselves.
//!     if group_id() + 1 < group_count() {
//!         joint_prefetch(work_group(), &rows[row + columns..row + 2 * columns], L2);
//!     }
//!     let mut sum = 0.0;
//!     for column in 0..columns {
//!         // One element, 8 ahead, to the nearest cache; guarded, for towards L1 the bounds count.
//!         if column + 8 < columns {
//!             prefetch(&rows[row + column + 8], [L1, L3.nontemporal()]);
//!         }
//!         sum += rows[row + column];
//!     }
//!     result[global_id()] = sum;
//! }
//! # sums::kernel()?;
//! # Ok::<(), headstart::Error>(())
//! ```

use super::atomic::Stored;
use super::pointer::{MayBeGlobal, Ptr, Span};
use super::record::Values;
use super::view::{Elements, Readable};
use crate::ir::{CacheHint, CacheLevel, HintSource, LscControl, PrefetchScope, Type, Value};

/// The version of the SYCL extension `sycl_ext_oneapi_prefetch` that kernels have: as its feature-test macro
/// `SYCL_EXT_ONEAPI_PREFETCH`. It is experimental and not versioned, so the value is always 1.
pub const SYCL_EXT_ONEAPI_PREFETCH: u32 = 1;

/// Into the cache nearest to the work-item.
pub const L1: CacheHint = CacheHint::to(CacheLevel::L1);

/// Into the second level.
pub const L2: CacheHint = CacheHint::to(CacheLevel::L2);

/// Into the third level.
pub const L3: CacheHint = CacheHint::to(CacheLevel::L3);

/// Into the fourth level.
pub const L4: CacheHint = CacheHint::to(CacheLevel::L4);

/// Into the cache nearest to the work-item, for data that will not be used again.
pub const L1_NT: CacheHint = L1.nontemporal();

/// Into the second level, for data that will not be used again.
pub const L2_NT: CacheHint = L2.nontemporal();

/// Into the third level, for data that will not be used again.
pub const L3_NT: CacheHint = L3.nontemporal();

/// Into the fourth level, for data that will not be used again.
pub const L4_NT: CacheHint = L4.nontemporal();

/// The request of a prefetch: a level (of several the lowest counts), none (`()` or `[]`: the launch's default, L1 unless it
/// says otherwise), or one of Intel's cache controls.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say where a prefetch goes",
    note = "accepted: a level `L1` to `L4`, `L1_NT`, `L1.nontemporal()`; several `[L1, L4]`; none `[]`; a cache control `LSC_LDCC_L1C_L3C`"
)]
pub trait Properties: Copy {
    /// The hint, and who said so.
    fn hint(self) -> (CacheHint, HintSource);
}

impl Properties for CacheHint {
    fn hint(self) -> (CacheHint, HintSource) {
        (self, HintSource::Named)
    }
}

impl Properties for () {
    fn hint(self) -> (CacheHint, HintSource) {
        (L1, HintSource::Default)
    }
}

impl<const N: usize> Properties for [CacheHint; N] {
    fn hint(self) -> (CacheHint, HintSource) {
        CacheHint::lowest(&self).map_or(().hint(), Properties::hint)
    }
}

impl Properties for LscControl {
    fn hint(self) -> (CacheHint, HintSource) {
        (self.nearest(), HintSource::Control(self))
    }
}

/// Anything that can be prefetched: an element `&a[i]`, elements `&a[i..i + n]`, a pointer `p` to global memory or a generic
/// one, `n` elements behind it `p.span(n)`, `n` bytes behind it `p.raw().span(n)`, and elements of a readable view:
/// `&v[(y, x)]`, `v.span((y, x), n)`, `v.block((y, x), (h, w))`.
#[diagnostic::on_unimplemented(
    message = "this cannot be prefetched",
    label = "`{Self}` is nothing that a cache can bring nearer",
    note = "accepted: `&a[i]`, `&a[i..i + n]`, a global or generic pointer, `p.span(n)`, elements of a view that can be read"
)]
pub trait Wanted {}

impl<T: Stored> Wanted for &T {}

impl<T: Stored> Wanted for &[T] {}

impl<T, S: MayBeGlobal> Wanted for Ptr<'_, T, S> {}

impl<T, S: MayBeGlobal> Wanted for Span<'_, T, S> {}

impl<A: Readable> Wanted for Elements<A> {}

/// Work-items that prefetch together.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a group of work-items",
    note = "accepted: `sub_group()`, `work_group()`"
)]
pub trait Group: Copy {
    /// Who they are.
    const SCOPE: PrefetchScope;
}

/// The work-items of a sub-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubGroup;

/// The work-items of a work-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkGroup;

impl Group for SubGroup {
    const SCOPE: PrefetchScope = PrefetchScope::SubGroup;
}

impl Group for WorkGroup {
    const SCOPE: PrefetchScope = PrefetchScope::WorkGroup;
}

macro_rules! groups {
    ($($(#[$documentation:meta])* $name:ident: $group:ident;)+) => {$(
        impl Values for $group {
            fn types(_: &mut Vec<Type>) {}

            fn parts(self, _: &mut Vec<Value>) {}

            fn from_parts(_: &mut dyn Iterator<Item = Value>) -> Self {
                $group
            }
        }

        $(#[$documentation])*
        pub fn $name() -> $group {
            $group
        }

        device_form!($name {
            pub fn device(_: super::record::At) -> $group {
                $group
            }
        });
    )+};
}

groups! {
    /// This work-item's sub-group.
    sub_group: SubGroup;
    /// This work-item's work-group.
    work_group: WorkGroup;
}

/// A hint that memory will be wanted: `prefetch(&values[i], L1)`, `prefetch(&values[i..i + 4], [L1, L3])`,
/// `prefetch(&values[i])` in a kernel.
///
/// It changes no result. The element may lie behind the slice's end. Whether that is harmless depends on the device, and for
/// `L1` it is not (the functional engine reports it), so guard it there. The launch's report and `headstart devices` say which
/// level a device really fills.
///
/// The number of elements may be known only at run time. If it is known when the kernel is built, no loop is needed; the report
/// states the cost.
pub fn prefetch(wanted: impl Wanted, properties: impl Properties) {
    let _ = (wanted, properties);
}

/// A hint of a whole group that memory will be wanted: `joint_prefetch(work_group(), &values[i..i + n], L2)`.
///
/// The cache lines are divided over the group, and each is asked for once. All work-items of the group must reach the
/// call, and ask for the same: the simulator reports it when they do not.
pub fn joint_prefetch(group: impl Group, wanted: impl Wanted, properties: impl Properties) {
    let _ = (group, wanted, properties);
}

/// An array shared by the work-group: `let mut tile = shared::<f32, 256>();`, or of atomic elements,
/// `let counts = shared::<Atomic<u32>, 64>();`.
///
/// On a device its elements hold nothing until they are written. The CPU reference runs one work-item at a
/// time and gives each its own, so a kernel that shares through it has no CPU reference.
pub fn shared<T: Stored + Default, const N: usize>() -> [T; N] {
    std::array::from_fn(|_| T::default())
}
