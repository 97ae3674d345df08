//! Random programs as people write them, and everything that can be made of one.
//!
//! ```text
//!  seed ─ generate, loops ─► tree::Program ─ interpret ─► what it means
//!                              │   └ cuda ─► CUDA C ─ nvcc ─► PTX ─────────────────┐
//!                              └ translate ─► ir::Kernel ─ back::ptx ─► PTX ───────┤ front::ptx
//!                                                 ▲────────────────────────────────┘
//! ```
//!
//! The programs have what people write: short-circuit conditions, loops with several exits and several `continue`s, tests anywhere, counters of every width that go up, down and
//! by run-time steps, `switch` that falls through, pointers that walk, parameters that may alias, addresses that merge from
//! several places, returns in front of barriers. `graphs` writes unstructured control flow.
//!
//! [`campaign`] tries plans: a plan is derived once, with the facts that a launch file would state, and must give the plain
//! kernel's bits under every valid launch. [`compilers`] gives it the output of nvcc and clang for the programs.

pub(crate) mod asides;
pub mod campaign;
pub mod compilers;
mod cuda;
mod generate;
mod graphs;
mod interpret;
pub(crate) mod launches;
mod translate;
pub(crate) mod tree;
mod turns;

pub use cuda::cuda;
pub use generate::program;

pub use launches::{Launch, LaunchOutcome, launches};
pub(crate) use translate::Style;
pub(crate) use translate::translate;
pub use tree::Program;
