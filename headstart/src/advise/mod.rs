//! Why a kernel is as fast as it is, and what would help: the documents' own procedure, with numbers.
//!
//! The question of Intel's and NVIDIA's guides is always the same: does the kernel wait for memory while memory has
//! bandwidth to spare? Then too little is on its way at once. What helps, the cheapest first: more work-groups, more
//! loads of each work-item at once (unrolling), loads that start earlier (prefetching).
//!
//! | file | what it holds |
//! |---|---|
//! | `evidence` | numbers of a run as a whole |
//! | `profile` | where its time goes: reasons, loops, loads, units |
//! | `timeline` | where the time of some sub-groups goes, moment by moment |
//! | `profiler` | evidence from a profiler's CSV instead of a run |
//! | `overview` | what is told at once |
//! | `structure` | what the kernel's text tells of its loads |
//! | `steps` | the procedure, question by question |
//! | `instead` | what would help instead |
//! | `bounds` | how fast the kernel can get at most |
//! | `advice` | all of it for one kernel |
//! | `reasons` | why a tuner's verdict is what it is |

mod advice;
mod bounds;
mod evidence;
mod instead;
mod overview;
mod profile;
pub mod profiler;
mod reasons;
mod steps;
mod structure;
mod timeline;

pub use advice::{Advice, Choice, Program, advise};
pub use bounds::{Bounds, Roof, Roofline, RooflinePoint};
pub use evidence::Evidence;
pub use instead::{Remedy, instead};
pub use overview::overview;
pub use profile::{Cache, LoadTime, LoopTime, Profile, Resources, Stall, UnitTime};
pub use reasons::{Findings, reasons};
pub use steps::{Answer, Case, Measure, Step, procedure};
pub use structure::{LoopLoad, loop_loads};
pub use timeline::{Doing, Moment, Strip, Timeline};
