//! Which loops of a program are worth offloading: each loop's time in a profile on the host, compared with a lower bound on a
//! device.
//!
//! | file | what it holds |
//! |---|---|
//! | `loops` | the profile: a CSV with a row for each loop |
//! | `estimate` | what a device takes for a loop: copies, launches, and the least of the loop itself |
//! | `text` | the answer for a terminal |
//!
//! The estimate of the device is a lower bound, so that a loop that is not worth it here is not worth it at all; one that is needs
//! its kernel, which `headstart tune` looks at.

mod estimate;
mod loops;
mod text;

pub use estimate::{Limit, Offload, offload};
pub use loops::loops_of;
pub use text::text;
