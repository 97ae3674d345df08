//! The search for the best plan of a kernel: [`tune`], with launches that were captured from programs
//! ([`capture`]), and [`advise`], which says why.
//!
//! ```no_run
//! use headstart::device::TypedBuffer;
//! use headstart::device::sim::Simulator;
//! use headstart::prelude::*;
//!
//! /// Adds up `items` elements for each work-item.
//! #[kernel(work_group = 64)]
//! fn sum(values: &[f32], sums: &mut [f32], items: u32) {
//!     let start = global_id() * items as usize;
//!     let mut sum = 0.0;
//!     for j in 0..items as usize {
//!         sum += values[start + j];
//!     }
//!     sums[global_id()] = sum;
//! }
//!
//! let device = Simulator::new("h200")?;
//! let values = TypedBuffer::from_slice(&device, &vec![0.5; 64 * 4096])?;
//! let mut sums = TypedBuffer::uninitialized(&device, 64)?;
//! // Found now, or by an earlier start of the program.
//! let best = sum::tuned(&device, Geometry::new(1, 64), sum::arguments(&values, &mut sums, 4096))?;
//! println!("{}: {:.2}x", best.found.plan, best.found.speedup);
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! Programs name the crate `headstart`, which has these modules under the same names.

// Dead code is reported with all features only: without one, items that only it needs seem to be unused.
#![cfg_attr(
    not(all(feature = "cuda", feature = "opencl", feature = "report")),
    allow(dead_code, unused_imports)
)]

#[cfg(feature = "report")]
pub mod advise;
pub mod capture;
pub mod tune;

// The crates below, by the names that all of Headstart has for them.
use headstart_back as back;
use headstart_checker as checker;
use headstart_front as front;
use headstart_ir::{
    Error, Result, analysis, cleanup, cut, error, files, ir, names, random, suggest, violation,
};
use headstart_model as model;
use headstart_prefetch as prefetch;
use headstart_report::{evidence, report};
use headstart_runtime as runtime;

/// The devices.
mod device {
    #[cfg(feature = "cuda")]
    pub(crate) use headstart_cuda as cuda;
    pub(crate) use headstart_device::*;
    #[cfg(feature = "opencl")]
    pub(crate) use headstart_opencl as opencl;
    pub(crate) use headstart_sim as sim;
}
