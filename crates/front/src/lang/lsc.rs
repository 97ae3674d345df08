//! Intel's functions for its LSC (load/store cache), by their names: prefetches and loads with cache controls.
//!
//! The twelve prefetches, the names of the controls and their numbers are those of the page "Prefetch" in Intel's oneAPI
//! GPU optimization guide. On other devices they go to the nearest level.
//!
//! ```
//! use headstart::prelude::*;
//!
//! #[kernel]
//! fn sums(values: &[u32], result: &mut [u32], items: u32) {
//!     let items = items as usize;
//!     let mut p = global_ptr(&values[global_id()]);
//!     let mut sum = 0u32;
//!     for j in 0..items {
//!         let next = p.add(global_size());
//!         if j + 1 < items {
//!             lsc_prefetch_uint(next, 0, LSC_LDCC_L1C_L3C);
//!         }
//!         sum += lsc_load(p, 0, LSC_LDCC_L1IAR_L3C);
//!         p = next;
//!     }
//!     result[global_id()] = sum;
//! }
//! # sums::kernel()?;
//! # Ok::<(), headstart::Error>(())
//! ```

use super::hint::Properties;
use super::pointer::{Global, Ptr};
use super::record::hints::{self, Elements};
use super::record::pointers;
use super::record::values::Register;
use super::record::{At, Recorded, lsc};
use super::scalar::Scalar;
use crate::ir::LscControl;

/// The device's default without a control.
pub const LSC_LDCC_DEFAULT: LscControl = LscControl::Default;
/// L1 uncached and L3 uncached: a prefetch with it does nothing.
pub const LSC_LDCC_L1UC_L3UC: LscControl = LscControl::L1ucL3uc;
/// L1 uncached and L3 cached.
pub const LSC_LDCC_L1UC_L3C: LscControl = LscControl::L1ucL3c;
/// L1 cached and L3 uncached.
pub const LSC_LDCC_L1C_L3UC: LscControl = LscControl::L1cL3uc;
/// L1 cached and L3 cached.
pub const LSC_LDCC_L1C_L3C: LscControl = LscControl::L1cL3c;
/// L1 streaming and L3 uncached.
pub const LSC_LDCC_L1S_L3UC: LscControl = LscControl::L1sL3uc;
/// L1 streaming and L3 cached.
pub const LSC_LDCC_L1S_L3C: LscControl = LscControl::L1sL3c;
/// L1 invalidated after it is read, and L3 cached. It asserts that nothing of the line is read again.
pub const LSC_LDCC_L1IAR_L3C: LscControl = LscControl::L1iarL3c;

/// A scalar of `BYTES` bytes, to which a pointer of the builtins may point.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not have the size that this function fetches by",
    note = "`uchar` takes pointers to 1 byte, `ushort` to 2, the `uint`s to 4, the `ulong`s to 8"
)]
pub trait Sized<const BYTES: u32>: Scalar {}

macro_rules! sizes {
    ($($bytes:literal: $($scalar:ty)+;)+) => {$($(impl Sized<$bytes> for $scalar {})+)+};
}

sizes! {
    1: u8 i8;
    2: u16 i16 half::f16 half::bf16;
    4: u32 i32 f32;
    8: u64 i64 usize isize f64;
}

macro_rules! prefetches {
    ($($name:ident: $bytes:literal by $count:literal;)+) => {$(
        #[doc = concat!(
            "Prefetches ", stringify!($count), " times ", stringify!($bytes), " bytes: Intel's `__builtin_IB_",
            stringify!($name), "`. `offset` counts in such elements, and is known when the kernel is built."
        )]
        pub fn $name<T: Sized<$bytes>>(base: Ptr<'_, T, Global>, offset: i32, control: LscControl) {
            let _ = (base, offset, control);
        }

        device_form!($name {
            pub fn device<T: Sized<$bytes>>(
                at: At,
                base: Recorded<Ptr<'_, T, Global>>,
                offset: Recorded<i32>,
                control: LscControl,
            ) {
                let elements = Elements {
                    ptr: lsc::moved(at, base, offset, $bytes * $count),
                    bytes: $bytes * $count,
                    count: None,
                };
                hints::prefetch(at, elements, control);
            }
        });
    )+};
}

prefetches! {
    lsc_prefetch_uchar: 1 by 1;
    lsc_prefetch_ushort: 2 by 1;
    lsc_prefetch_uint: 4 by 1;
    lsc_prefetch_uint2: 4 by 2;
    lsc_prefetch_uint3: 4 by 3;
    lsc_prefetch_uint4: 4 by 4;
    lsc_prefetch_uint8: 4 by 8;
    lsc_prefetch_ulong: 8 by 1;
    lsc_prefetch_ulong2: 8 by 2;
    lsc_prefetch_ulong3: 8 by 3;
    lsc_prefetch_ulong4: 8 by 4;
    lsc_prefetch_ulong8: 8 by 8;
}

/// Loads an element, `offset` elements from `base`, with a cache control.
///
/// # Panics
/// There is none, as with an index out of bounds.
pub fn lsc_load<T: Scalar>(base: Ptr<'_, T, Global>, offset: i32, control: LscControl) -> T {
    let _ = control.hint();
    base.add(offset as usize).read()
}

device_form!(lsc_load {
    pub fn device<T: Scalar>(
        at: At,
        base: Recorded<Ptr<'_, T, Global>>,
        offset: Recorded<i32>,
        control: LscControl,
    ) -> Recorded<T> {
        let ptr = lsc::moved(at, base, offset, <T as Register>::TYPE.bytes());
        pointers::read(at, ptr, control.load())
    }
});
