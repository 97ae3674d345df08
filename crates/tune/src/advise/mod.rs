//! The limits of a kernel and the remedies: NVIDIA's and Intel's checklists, with numbers.
//!
//! Intel's and NVIDIA's guides ask the same question: does the kernel wait for memory while memory has bandwidth to spare? Then
//! too few bytes are in flight. The remedies, the cheapest first: more work-groups, more loads per work-item in flight
//! (unrolling), loads that start earlier (prefetching).
//!
//! | file | what it holds |
//! |---|---|
//! | `profiler` | evidence from a profiler's CSV instead of a run |
//! | `steps` | the procedure, question by question |
//! | `hints` | what hints alone would gain, on Intel's GPUs |
//! | `instead` | what would help instead |
//! | `offload` | which loops of a program are worth a device |
//! | `advice` | all of it for one kernel |
//! | `text` | that for a terminal |

mod advice;
mod hints;
mod instead;
pub mod offload;
pub mod profiler;
mod steps;
mod text;

pub use crate::evidence::Remedy;
pub use crate::evidence::{
    Bounds, Cache, Doing, Evidence, LoadTime, LoopLoad, LoopTime, Moment, Profile, Resources, Roof, Roofline,
    RooflinePoint, Stall, Strip, Timeline, UnitTime, loop_loads,
};
pub use advice::{Advice, Choice, Program, advise};
pub(crate) use hints::HintsAlone;
pub(crate) use steps::ChecklistStep;
pub use steps::{Answer, Measure};
pub use text::text;
