//! Headstart: prefetching for GPU kernels. Say it, derive it, decide it, measure it.

#![warn(missing_docs)]

pub mod advise;
pub mod analysis;
pub mod back;
pub mod cleanup;
pub mod device;
pub mod error;
pub mod front;
pub mod ir;
pub mod math;
pub mod prefetch;
pub mod report;
pub mod suggest;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tune;

pub use error::{Error, Fault, Result};
pub use front::lang::prelude;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
