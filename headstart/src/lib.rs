//! Headstart: prefetching for GPU kernels. Say it, derive it, decide it, measure it.
//!
//! A GPU hides memory latency with spare warps. If it has too few, software prefetching helps; if it has
//! enough, it hurts. Headstart takes a plain kernel, derives every prefetching variant, checks that each computes
//! the same bits, predicts or measures each, and reports which one to use, at what distance, and why.
//!
//! ```
//! use headstart::back::ptx;
//! use headstart::prefetch::{self, Plan, PlanTarget};
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
//! let derived = prefetch::apply(&kernel, &plan, &PlanTarget::default())?;
//! // The plan did not name the indices: they must be loaded before the values can be.
//! assert_eq!(
//!     derived.plan.to_string(),
//!     "values=rolling-async:4/interleaved,indices=rolling-registers:8"
//! );
//! let ptx = ptx::emit(&derived.kernel, &ptx::Options::new(ptx::PtxTarget::Sm90))?;
//! assert!(ptx.text.contains("cp.async"));
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! # Where to start
//!
//! `headstart new NAME`, from the package `headstart-cli`, creates a project with a kernel, a launch and a search for the best
//! plan. By hand:
//!
//! - **a kernel**: [`front::lang`] documents `#[kernel]` and what a kernel may contain
//! - **a launch**: [`runtime::launch`], with arguments checked at compile time; [`device::TypedBuffer`] holds their data
//! - **a device**: [`device::sim::Simulator`], [`device::cuda::CudaDevice`], [`device::opencl::OpenClDevice`]; the rest of a
//!   program is the same on each
//! - **the best plan**: `NAME::tuned(&device, geometry, arguments)` finds and caches it; [`tune`] has the parts
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
//! Data flows one way. Read the modules in this order: [`ir`] for the semantics of kernels, [`prefetch`] for plans and the
//! passes behind them, [`device::sim`] for the prediction of times, [`tune`] for the choice of a plan. [`math`] expands
//! exponentials and the like into IEEE operations, so that every device computes the same bits; `cleanup` tidies
//! up after passes.
//!
//! The library has a crate per layer, and this crate, which re-exports all of them; this documentation shows what programs
//! need. `ir` has the modules [`ir`], [`analysis`] and [`math`], `report` also [`evidence`], `tune` also [`advise`] and
//! [`capture`]. `ARCHITECTURE.md` draws the layers.

// What is shown is the promise of versions: the kernel language, launches, tuning, reports. The rest of each part is there for
// the command and for tests, and hidden. Modules with the items of a crate, not the crates themselves: so the compiler's
// messages name the items as programs do.

#[doc(hidden)]
pub mod facade;

#[doc(inline)]
pub use headstart_ir::{Error, Fault, Result};
#[doc(hidden)]
pub use headstart_ir::{analysis, error, files, ir, math, names, suggest, violation};
#[cfg(feature = "tune")]
#[doc(hidden)]
pub use headstart_report::evidence;
#[cfg(feature = "report")]
#[doc(hidden)]
pub use headstart_tune::advise;
#[cfg(feature = "tune")]
#[doc(hidden)]
pub use headstart_tune::capture;

/// Back ends: the input formats of devices, and of the timer.
#[doc(hidden)]
pub mod back {
    pub use headstart_back::*;
}

/// The symbolic checker: a derived kernel uses the values that the plain one would have loaded.
#[cfg(feature = "tune")]
#[doc(hidden)]
pub mod checker {
    pub use headstart_checker::*;
}

/// Devices, real or simulated, behind one asynchronous trait.
pub mod device {
    #[doc(hidden)]
    pub use headstart_device::*;
    #[doc(inline)]
    pub use headstart_device::{
        Allocation, Buffer, BufferView, BufferViewMut, Bundle, Counters, Device, Element, Event, Item,
        Library, Outcome, Pattern, Queue, Times, TypedBuffer,
    };

    /// NVIDIA's GPUs, through their driver.
    #[cfg(feature = "cuda")]
    pub mod cuda {
        #[doc(inline)]
        pub use headstart_cuda::CudaDevice;
        #[doc(hidden)]
        pub use headstart_cuda::*;
    }

    /// OpenCL devices.
    #[cfg(feature = "opencl")]
    pub mod opencl {
        #[doc(inline)]
        pub use headstart_opencl::OpenClDevice;
        #[doc(hidden)]
        pub use headstart_opencl::*;
    }

    /// The simulator: the oracle, and the device of a machine without a GPU.
    pub mod sim {
        #[doc(inline)]
        pub use headstart_sim::Simulator;
        #[doc(hidden)]
        pub use headstart_sim::*;
    }
}

/// Front ends: they turn a user's program into IR.
pub mod front {
    #[doc(inline)]
    pub use headstart_front::lang;
    #[doc(hidden)]
    pub use headstart_front::*;
}

/// Device models: the resources and speeds of a device, as data with sources.
#[doc(hidden)]
pub mod model {
    pub use headstart_model::*;
}

/// Prefetching: the plan, and one pass a strategy that carries it out.
pub mod prefetch {
    #[doc(hidden)]
    pub use headstart_prefetch::*;
    #[doc(inline)]
    pub use headstart_prefetch::{Applied, Plan, PlanTarget, apply};
}

/// What a search found, as data, text and page.
#[cfg(feature = "tune")]
pub mod report {
    #[doc(hidden)]
    pub use headstart_report::report::*;
    #[doc(inline)]
    pub use headstart_report::report::{Best, Outcome, Outputs, Report, Trial, Verdict};
    #[cfg(feature = "report")]
    #[doc(inline)]
    pub use headstart_report::report::{page, table};
}

/// Programs around kernels: launches that the compiler checks, ranges, one job on several devices.
pub mod runtime {
    #[doc(hidden)]
    pub use headstart_runtime::*;
    #[doc(inline)]
    pub use headstart_runtime::{launch, over_range, split};
}

/// The search for the best plan: try plans, check and time each, choose.
#[cfg(feature = "tune")]
pub mod tune {
    #[doc(hidden)]
    pub use headstart_tune::tune::*;
    #[doc(inline)]
    pub use headstart_tune::tune::{
        Answers, ArgumentSpec, Best, FileSubject, LaunchFile, Subject, Tuned, Workload, bench_for, tune,
        tuned, tuned_launch, tuned_with,
    };
}

#[doc(inline)]
pub use headstart_front::prelude;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Those of the package's own, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;
