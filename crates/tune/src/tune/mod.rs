//! The search for the best plan: try plans, check and time each, choose.
//!
//! | file | purpose |
//! |---|---|
//! | `workload`, `subject`, `launch_file`, `scalars`, `file_subject` | a kernel with its data, at full size and small |
//! | `captured` | a captured launch as a subject, its replay, and the assumptions of its tuned kernel |
//! | `statements` | statements of a launch file that would allow more plans |
//! | `space` | the plans that are tried |
//! | `remainder` | launches in which only the remainder of an unrolled loop runs |
//! | `search` | tries them: derive, check, time, choose |
//! | `derivation` | its plans, derived when they are wanted |
//! | `trying` | the trials of a search, in parallel or alternating |
//! | `judged` | what it does where a device judges plans itself: the first line, small launches, the explanation |
//! | `proposals` | which plans to measure if only a few can be |
//! | `check`, `compare`, `sample` | whether a derived kernel computes the same as the plain one |
//! | `perturb` | the same on launches derived from the given one |
//! | `bench` | where plans are checked and timed |
//! | `kinds` | the kinds of devices: models, GPUs, OpenCL devices |
//! | `several` | several GPUs at once |
//! | `detail` | both kernels side by side, for a page |
//! | `tuned`, `launched` | the best form of a kernel at program start, cached; the same for a launch with real arguments |
//! | `drop_in`, `granted`, `modules` | a PTX module with one entry replaced, and its assumptions |
//! | `exchanged`, `spirv_modules` | a SPIR-V module with one entry replaced |
//! | `choose` | the verdict, the cheapest answer first |
//! | `reasons` | the reasons for the verdict |
//! | `elsewhere` | the same work in other geometries |
//! | `ways` | what a launch on an Intel GPU decides beside the plan: sub-group size, registers, work-group size |
//! | `doubt` | where a simulated answer is within the simulator's error |

mod accuracy;
pub(crate) mod apart;
mod bench;
mod captured;
pub mod check;
pub mod choose;
#[doc(hidden)]
pub mod compare;
mod contraction;
mod derivation;
mod detail;
pub mod doubt;
pub mod drop_in;
mod edit;
mod edits;
mod elsewhere;
mod exchanged;
mod file_subject;
mod files_of_launch;
mod fills;
mod fitted_template;
pub mod granted;
mod hashed;
mod idle;
mod judged;
pub mod kinds;
pub(crate) mod launch_file;
mod launch_template;
mod launched;
mod listing;
pub mod log;
mod loop_copies;
mod modules;
mod permuted;
pub mod perturb;
mod piece;
mod proposals;
mod race;
mod reasons;
mod redirect;
pub(crate) mod remainder;
mod residency;
#[cfg(test)]
mod rewritten;
pub mod sample;
mod scalars;
pub mod search;
mod several;
pub mod space;
mod spirv_modules;
mod statements;
pub(crate) mod subject;
pub mod threads;
mod trying;
pub mod tuned;
pub mod ways;
#[doc(hidden)]
pub mod workload;

pub use accuracy::with_accuracy;
pub use bench::{Bench, Explanation, Judged, Looked, Raced, Timed};
pub use captured::{Exchange, Replay, captured_subject, exchange, replay};
pub use compare::{Compare, checksum};
pub use contraction::{MOST_ITEMS, contraction};
pub use detail::detail;
pub use exchanged::exchanged;
pub use file_subject::FileSubject;
pub use fitted_template::fitted_launch_template;
pub use granted::Granted;
pub use kinds::bench_for;
#[cfg(feature = "cuda")]
pub use kinds::cuda::measured::MeasuredBench;
#[cfg(feature = "cuda")]
pub use kinds::cuda::{gpu, measured};
#[cfg(feature = "opencl")]
pub use kinds::opencl::bench::{Launches, OpenClBench, OpenClMeasured};
#[cfg(feature = "opencl")]
pub use kinds::opencl::own_entry;
pub use kinds::simulated::bench::SimulatedBench;
pub use launch_file::LaunchFile;
pub use launch_template::launch_template;
pub use launched::{Best, tuned_launch, tuned_launch_with};
pub use log::{Log, Shard};
pub use modules::{
    PlannedModule, TunedModule, best_module, best_planned, derived_module, planned_module,
    planned_module_with, tuned_module,
};
pub use proposals::{BATCH, MEASURED, Proposals};
pub use reasons::{Findings, reasons};
pub use residency::Held;
pub use search::{Progress, SearchOutcome, SearchSettings, derive, likely, plain, search, tune};
pub use several::SeveralBench;
pub use spirv_modules::{PlannedSpirv, best_spirv, planned_spirv};
pub use subject::{Reshaped, Subject};
pub use tuned::{Answers, Tuned, tuned, tuned_telling, tuned_with};
pub use ways::{Choices, Pressure, beside_the_plan};
pub use workload::{ArgumentSpec, Bound, Placed, PlacedMemory, Workload};
