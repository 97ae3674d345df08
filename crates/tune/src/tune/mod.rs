//! The search for the best plan: try plans, check and time each, choose.
//!
//! | module | purpose |
//! |---|---|
//! | `subject` | a kernel with its data, at full size and small: from a file, from a program, or captured from one |
//! | `launch` | launch files: geometry, arguments, contents of buffers; templates for them |
//! | `search` | plans are listed, derived, tried and chosen from, and the reasons are given |
//! | `check` | whether a derived kernel computes the same as the plain one, also on perturbed launches |
//! | `bench` | where plans are checked and timed: models, GPUs, OpenCL devices |
//! | `modules` | a module of PTX or SPIR-V with one entry edited, and what it takes for granted |
//! | `launch_settings` | what a launch on an Intel GPU decides beside the plan |
//! | `tuned`, `launched` | the best form of a kernel at program start, cached; the same for a launch with real arguments |
//! | `detail`, `listing` | both kernels side by side, for a page |

mod bench;
pub mod check;
mod derived;
mod detail;
mod hash;
mod launch;
pub mod launch_settings;
mod launched;
mod listing;
mod modules;
mod progress;
pub mod search;
pub(crate) mod subject;
pub mod threads;
pub mod tuned;

pub use bench::kinds;
pub use bench::kinds::bench_for;
#[cfg(feature = "cuda")]
pub use bench::kinds::cuda::measured::MeasuredBench;
#[cfg(feature = "cuda")]
pub use bench::kinds::cuda::{gpu, measured};
#[cfg(feature = "opencl")]
pub use bench::kinds::opencl::bench::{Launches, OpenClBench, OpenClMeasured};
#[cfg(feature = "opencl")]
pub use bench::kinds::opencl::own_entry;
pub use bench::kinds::simulated::bench::SimulatedBench;
pub use bench::several::SeveralBench;
pub use bench::{
    Bench, Choices, Explanation, Held, Judge, Judged, Looked, Platform, Pressure, Raced, Simulates, Spread,
    Timed,
};
#[doc(hidden)]
pub use check::compare;
pub use check::compare::Compare;
pub use check::perturb;
pub use check::sample;
pub use detail::detail;
pub use launch::file::LaunchFile;
pub use launch::fitted_template::fitted_launch_template;
pub use launch::template::launch_template;
pub use launch_settings::beside_the_plan;
pub use launched::{Best, tuned_launch, tuned_launch_with};
pub use modules::drop_in;
pub use modules::drop_in::in_place;
pub use modules::exchanged::exchanged;
pub use modules::granted;
pub use modules::granted::Granted;
pub use modules::spirv::{PlannedSpirv, best_spirv, planned_spirv};
pub use modules::{PlannedModule, best_module, best_planned, derived_module, planned_module};
pub use modules::{TunedModule, tuned_module};
pub use progress::{GoesOn, Progress};
pub use search::choose;
pub use search::doubt;
#[doc(hidden)]
pub use search::interval;
pub use search::log;
pub use search::log::{Log, Shard};
pub use search::proposals::{BATCH, MEASURED, Proposals};
pub use search::space;
pub use search::{SearchSettings, derive, likely, plain, search, tune};
pub use subject::accuracy::with_accuracy;
pub use subject::captured::{Exchange, captured_subject, exchange, replay};
pub use subject::contraction::{MOST_ITEMS, contraction};
pub use subject::file::FileSubject;
#[doc(hidden)]
pub use subject::workload;
pub use subject::workload::{ArgumentSpec, Bound, Placed, Workload};
pub use subject::{Reshaped, Subject};
pub use tuned::{Answers, Tuned, tuned, tuned_with};
