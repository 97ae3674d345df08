//! The hardware as the oracle of reading: random programs and conversions on a GPU, against the functional engine and against
//! every legal plan.
//!
//! ```text
//!  seeds ─ generate, weave ─► a file of CUDA C ─ nvcc ─► PTX ─ ptxas ─► image 0 ─┐
//!                                                         │                      ├─ worker ─► the GPU's bits
//!            front, prefetch, drop_in: a plan for each entry└─ ptxas ─► image k ─┘               │
//!            functional engine ─► its bits ◄───────────────── compared ──────────────────────────┘
//! ```
//!
//! Image `k` holds the `k`-th legal plan of every entry of the file. [`worker`] is a process that may fault or hang; `pool`
//! starts another one then.

mod conversions;
mod entry;
mod file;
mod job;
mod pool;
mod tally;
pub mod worker;

pub use conversions::{Conversion, Conversions, conversions};
pub use file::{Settings, check_file};
pub use pool::Pool;
pub use tally::{Found, Tally};
