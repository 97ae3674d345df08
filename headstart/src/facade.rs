//! The names in the attributes' generated code: `#[kernel]`, `#[device_fn]` and `#[derive(Data)]` write paths through this
//! module only.
//!
//! It is no part of the promise of versions. `headstart-macros` is required in exactly the version of this crate.

pub use crate::device::{self, Device, Item, TypedBuffer};
pub use crate::error::Result;
pub use crate::front::lang::{self, record, reference};
pub use crate::front::prelude::{Data, f16};
pub use crate::ir::{self, Kernel};
pub use crate::runtime::{launch, over_range};
#[cfg(feature = "tune")]
pub use crate::tune::{Best, tuned_launch};

/// Keeps `NAME::tuned` of a kernel, with the feature `tune`.
#[cfg(feature = "tune")]
#[doc(hidden)]
#[macro_export]
macro_rules! where_kernels_are_tuned {
    ($($item:tt)*) => { $($item)* };
}

/// Leaves it out without.
#[cfg(not(feature = "tune"))]
#[doc(hidden)]
#[macro_export]
macro_rules! where_kernels_are_tuned {
    ($($item:tt)*) => {};
}

pub use where_kernels_are_tuned;
