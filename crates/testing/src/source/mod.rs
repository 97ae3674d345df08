//! Random programs as people write them, and everything that can be made of one.
//!
//! ```text
//!  seed ─ generate, loops ─► tree::Program ─ interpret ─► what it means
//!                              │   │   └ cuda ─► CUDA C ─ nvcc ─► PTX ─┐
//!                              │   └ ptx ─► PTX ───────────────────────┤ front::ptx
//!                              └ translate ─► ir::Kernel ◄─────────────┘
//! ```
//!
//! The programs have what the generator of [`random_kernel`](super::random_kernel) does not write: conditions that are cut
//! short, loops with several ends and several `continue`s, tests anywhere, counters of every width that go up, down and by
//! steps known at run time, `switch` that falls through, pointers that walk, parameters that may be the same memory,
//! addresses that merge from several places, returns in front of barriers. `graphs` writes control flow without
//! structure.
//!
//! [`campaign`] tries plans: a plan is derived once, with what a launch file would say, and must give the plain kernel's
//! bits under every launch that means something. [`compilers`] gives it what nvcc and clang make of the programs.

pub mod campaign;
pub mod compilers;
mod cuda;
mod generate;
mod graphs;
mod interpret;
mod launches;
mod ptx;
mod translate;
mod tree;
mod turns;

pub use cuda::cuda;
pub use generate::program;
pub use interpret::{Invalid, interpret};
pub use launches::{Launch, Tried, launches};
pub use ptx::ptx;
pub use translate::{Known, Style, translate};
pub use tree::Program;
