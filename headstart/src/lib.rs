//! Headstart: prefetching for GPU kernels. Say it, derive it, decide it, measure it.
//!
//! A GPU hides memory latency with spare warps. When it has too few, prefetching in software helps; when it has
//! enough, it hurts. Headstart takes a plain kernel, derives every prefetching variant of it, checks that each computes
//! the same bits, predicts or measures each, and says which to use, how far ahead, and why.
//!
//! ```
//! use headstart::back::ptx;
//! use headstart::prefetch::{self, Plan, Target};
//! use headstart::prelude::*;
//!
//! /// Adds up what the indices point to.
//! #[kernel(work_group = 64)]
//! fn sum_through(indices: &[u32], values: &[f32], sums: &mut [f32], items: u32) {
//!     let start = global_id() * items as usize;
//!     let mut sum = 0.0;
//!     for j in 0..items as usize {
//!         sum += values[indices[start + j] as usize];
//!     }
//!     sums[global_id()] = sum;
//! }
//!
//! // Each value is copied into a ring in shared memory four iterations before its use.
//! let kernel = sum_through::kernel()?;
//! let plan: Plan = "values=rolling-async:4".parse()?;
//! let derived = prefetch::apply(&kernel, &plan, &Target::default())?;
//! // What the plan did not name: the indices must be there before the values can be asked for.
//! assert_eq!(
//!     derived.plan.to_string(),
//!     "values=rolling-async:4/interleaved,indices=rolling-registers:5"
//! );
//! let ptx = ptx::emit(&derived.kernel, &ptx::Options::new(ptx::Target::Sm90))?;
//! assert!(ptx.text.contains("cp.async"));
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! # Where to start
//!
//! `headstart new NAME`, of the package `headstart-cli`, writes a program with a kernel, a launch and a tune. By hand:
//!
//! - **a kernel**: [`front::lang`] documents `#[kernel]` and what a kernel may contain
//! - **a launch**: [`runtime::launch`], of arguments that the compiler checks; [`device::TypedBuffer`] holds their data
//! - **a device**: [`device::sim::Simulator`], [`device::cuda::CudaDevice`], [`device::opencl::OpenClDevice`]; the rest of a
//!   program is the same on each
//! - **the best plan**: `NAME::tuned(&device, geometry, arguments)` finds and remembers it; [`tune`] has the parts
//!
//! # The way of a kernel
//!
//! ```text
//!  #[kernel] fn · kernel.hsir             front      ways in, one IR out
//!         └────────► ir::Kernel           ir         typed SSA, structured, verified, printable
//!                        │ analysis                  trip counts, address chains, aliasing, bounds
//!                        ▼
//!                 prefetch::Plan          prefetch   which load in which loop, which strategy, what distance
//!                        │ one pass a file
//!                        ▼
//!                   ir::Kernel'           the same results, other timing; checked
//!         ┌──────────────┴───────────────┐
//!     back::ptx                   back::machine      lowered, scheduled, for the timer
//!     device::cuda                device::sim        one trait: queues, buffers, launches, events, counters
//!         └──────────────┬───────────────┘
//!         advise why · tune which · report show
//! ```
//!
//! Data flows one way. Read the modules in this order: [`ir`] for what a kernel means, [`prefetch`] for plans and the
//! passes behind them, [`device::sim`] for how time is predicted, [`tune`] for how a plan is chosen. [`math`] expands
//! exponentials and the like into IEEE operations, so that every device gives the same bits; `cleanup` tidies what
//! passes leave behind.
//!
//! # Layers
//!
//! A lower layer knows nothing of a higher one. Behind each module stands what it uses, without what it reaches through
//! another one that it uses. The test `layers` draws this from the sources, and fails where a layer uses a higher one.
//!
//! ```text
//!  9  advise    tune
//!     facade    tune
//!     testing   tune
//!  8  tune      capture checker report runtime
//!  7  report    evidence names
//!  6  checker   device
//!     evidence  device prefetch
//!     runtime   device front
//!  5  device    back random
//!     front     math names prefetch
//!  4  back      cleanup math model
//!     prefetch  cleanup
//!  3  cleanup   analysis
//!  2  analysis  ir
//!     capture   files ir
//!     math      ir
//!     model     files ir
//!  1  ir        error suggest
//!     names     error suggest
//!  0  error
//!     files
//!     random
//!     suggest
//! ```

#![warn(missing_docs)]
// Dead code shows with all features: without one, what only that one asks for seems to be unused.
#![cfg_attr(
    not(all(feature = "cuda", feature = "opencl", feature = "tune", feature = "report")),
    allow(dead_code, unused_imports)
)]

#[cfg(feature = "report")]
pub mod advise;
pub mod analysis;
pub mod back;
#[cfg(feature = "tune")]
pub mod capture;
#[cfg(feature = "tune")]
pub mod checker;
pub(crate) mod cleanup;
pub mod device;
pub mod error;
#[cfg(feature = "tune")]
pub mod evidence;
#[doc(hidden)]
pub mod facade;
pub mod files;
pub mod front;
pub mod ir;
pub mod math;
pub mod model;
pub mod names;
pub mod prefetch;
pub(crate) mod random;
#[cfg(feature = "tune")]
pub mod report;
pub mod runtime;
pub mod suggest;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(feature = "tune")]
pub mod tune;

pub use error::{Error, Fault, Result};
pub use front::lang::prelude;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Those of the package's own, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;
