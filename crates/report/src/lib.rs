//! Findings about a kernel: [`evidence`] from the simulator and from counters, and [`report`], which shows it as text, JSON
//! and a page.
//!
//! ```
//! use headstart::evidence::loop_loads;
//! use headstart::prelude::*;
//!
//! # /// Adds up `items` elements for each work-item.
//! # #[kernel(work_group = 64)]
//! # fn sum(values: &[f32], sums: &mut [f32], items: u32) {
//! #     let start = global_id() * items as usize;
//! #     let mut sum = 0.0;
//! #     for j in 0..items as usize {
//! #         sum += values[start + j];
//! #     }
//! #     sums[global_id()] = sum;
//! # }
//! let loads = loop_loads(&sum::kernel()?);
//! assert_eq!((loads[0].name.as_str(), loads[0].bytes), ("values", 4));
//! assert_eq!(loads[0].refusal, None);
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! Programs name the crate `headstart`, which has these modules under the same names.

// Dead code is reported with all features only: without one, items that only it needs seem to be unused.
#![cfg_attr(not(feature = "page"), allow(dead_code))]

pub mod evidence;
pub mod number;
pub mod report;
#[cfg(any(test, feature = "samples"))]
#[doc(hidden)]
pub mod samples;

// The crates below, by the names that all of Headstart has for them.
#[cfg(feature = "page")]
use headstart_ir::names;
use headstart_ir::{analysis, error, ir, violation};
use headstart_model as model;
use headstart_prefetch as prefetch;

/// The devices.
mod device {
    pub(crate) use headstart_device::*;
    pub(crate) use headstart_sim as sim;
}
