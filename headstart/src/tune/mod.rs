//! Which plan is best: try them, check each, time each, choose.

pub mod check;
pub mod choose;
pub mod compare;
pub mod gpu;
pub mod launch_file;
pub mod search;
pub mod simulated;
pub mod space;
pub mod subject;
mod threads;
pub mod workload;

pub use compare::{Compare, checksum};
pub use launch_file::{FileSubject, LaunchFile};
pub use search::{Bench, Progress, Timed, derive, plain, tune};
pub use simulated::SimulatedBench;
pub use subject::{Reshaped, Subject};
pub use workload::{Bound, Given, Workload};
