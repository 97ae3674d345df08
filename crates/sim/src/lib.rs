//! The simulator: the oracle, and the device of a machine without a GPU.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
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
//! let queue = device.queue()?;
//! let values = TypedBuffer::from_slice(&device, &[0.5; 64 * 8])?;
//! let mut sums = TypedBuffer::uninitialized(&device, 64)?;
//! let arguments = sum::arguments(&values, &mut sums, 8);
//! let launch = sum::compile(&device)?.launch(&*queue, Geometry::new(1, 64), arguments);
//! assert!(launch.wait()?.times.elapsed_ns() > 0.0);
//! assert_eq!(sums.read(&*queue)?, [4.0; 64]);
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! [`functional`] runs the IR and checks it; its results define a kernel's meaning. [`Simulator`] makes a device of it; a
//! [`Clock`] gives it the duration of a launch.

mod clock;
mod copies;
pub mod functional;
mod home;
pub(crate) mod memory;
mod queue;
mod reservation;
mod simulator;
mod stop;
mod timeline;
pub mod timer;

// The crates below, by the names that all of Headstart has for them.
use headstart_back as back;
use headstart_device as device;
use headstart_ir::{Error, Result, analysis, error, ir, violation};
use headstart_model as model;

pub use clock::{Clock, Timing};
#[doc(hidden)]
pub use copies::on_copies;
pub use simulator::Simulator;
pub use stop::Stop;
