//! NVIDIA GPUs, through the driver that this machine has, if it has one.
//!
//! The driver's library is opened at run time, so that nothing of NVIDIA's is needed to build. The files, from the
//! bottom: [`failure`] sorts error codes; [`gpu`] opens a GPU; `memory`, `guarded`, [`module`] and [`launch`] are its
//! buffers, kernels and queue; `clock` tells their times, `queue` runs commands; [`device`] puts them behind the trait
//! that all devices share; `compare` compares results where they are; [`timing`] times candidates against each other;
//! [`worker`] does that in a process of its own, because a kernel that faults or hangs takes its process's context with
//! it.
//!
//! ```no_run
//! let device = headstart::device::cuda::CudaDevice::open(0)?;
//! # Ok::<(), headstart::Error>(())
//! ```

// Calls of the driver, through its C interface.
#![allow(unsafe_code)]

mod clock;
#[doc(hidden)]
pub mod compare;
mod cubin;
pub mod device;
mod elf;
pub mod failure;
mod fill;
pub mod gpu;
pub(crate) mod guarded;
pub mod launch;
#[doc(hidden)]
pub mod memory;
pub mod module;
pub(crate) mod placed;
#[doc(hidden)]
pub mod ptxas;
mod queue;
pub mod timing;
pub mod worker;

// The crates below, by the names that all of Headstart has for them.
use headstart_back as back;
use headstart_ir::{Error, Result, ir};

pub use device::CudaDevice;
