//! The hardware as the oracle of reading: random programs on a GPU, against the functional engine and against every legal plan.
//!
//! ```text
//!  seeds ─ generate, weave ─► a file of CUDA C ─ nvcc ─► PTX ─┐
//!            front, prefetch, drop_in: plans for each entry ──┴─ cuda::worker ─► the GPU's bits
//!            functional engine ─► its bits ◄───────────────── compared ─────────────────┘
//! ```

mod entry;
mod file;
mod tally;

pub use file::{Settings, check_file};
pub use tally::{Found, Tally};
