//! OpenCL devices, through the runtime that this machine has, if it has one: Intel's GPUs, and CPUs.
//!
//! The runtime's library is opened at run time, so that building needs no OpenCL: `libOpenCL.so.1`, or the libraries that the
//! environment variable `OPENCL_DYLIB_PATH` names, separated by `;`. The files, from the bottom: [`platform`] lists the devices
//! and their properties; `context` holds the runtime's objects; [`device`] implements the trait that all devices share.
//!
//! ```no_run
//! let device = headstart::device::opencl::OpenClDevice::open(0)?;
//! # Ok::<(), headstart::Error>(())
//! ```

// Calls of the OpenCL runtime, through its C interface.
#![allow(unsafe_code)]

mod context;
pub mod device;
mod failure;
#[doc(hidden)]
pub mod own;
pub mod platform;

// The crates below, by the names that all of Headstart has for them.
use headstart_back as back;
use headstart_ir::{Error, Result, error, ir};

pub use device::OpenClDevice;
