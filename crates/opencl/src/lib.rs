//! OpenCL devices, through the runtime that this machine has, if it has one: Intel's GPUs, and CPUs.
//!
//! The runtime's library is opened at run time, so that nothing of OpenCL is needed to build: `libOpenCL.so.1`, or
//! those that the environment variable `OPENCL_DYLIB_PATH` names, separated by `;`. The files, from the bottom:
//! [`platform`] lists the devices and what they are; `context` holds the runtime's objects; [`device`] puts them
//! behind the trait that all devices share.
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
