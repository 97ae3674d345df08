//! Which plan is best: try them, check each, time each, choose.

pub mod compare;
pub mod space;
pub mod workload;

pub use compare::Compare;
pub use workload::{Bound, Given, Workload};
