//! Host programs: launches checked at compile time, ranges without explicit work-groups, one job on several devices.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! /// Doubles each element.
//! #[kernel]
//! fn double(values: &mut [f32]) {
//!     if global_id() < values.len() {
//!         values[global_id()] *= 2.0;
//!     }
//! }
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let mut values = TypedBuffer::from_slice(&device, &[1.5; 100])?;
//! // The compiler checks the arguments; the runtime picks the work-groups.
//! let arguments = double::arguments(&mut values);
//! double::over_range(&device)?.launch(&*queue, [100], arguments).wait()?;
//! assert_eq!(values.read(&*queue)?, [3.0; 100]);
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! `#[kernel]` generates the functions that use this crate: `NAME::compile` and `NAME::arguments` ([`launch`]), `NAME::over_range`
//! ([`over_range`]). [`kept`] records launches in a folder for the `headstart` command. [`front::lang`] documents kernels,
//! [`device`] the devices that run them.

pub mod kept;
pub mod launch;
pub mod over_range;
pub mod split;

// The crates below, by the names that all of Headstart has for them.
use headstart_device as device;
use headstart_front as front;
use headstart_ir::{Error, Result, cleanup, error, ir, suggest};
use headstart_prefetch as prefetch;
