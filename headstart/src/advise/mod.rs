//! Why a kernel is as fast as it is, and what would help: the documents' own procedure, with numbers.
//!
//! The question of Intel's and NVIDIA's guides is always the same: does the kernel wait for memory while memory has
//! bandwidth to spare? Then too little is on its way at once. What helps, the cheapest first: more work-groups, more
//! loads of each work-item at once (unrolling), loads that start earlier (prefetching).

mod evidence;
mod profile;
mod reasons;

pub use evidence::Evidence;
pub use profile::{Cache, LoadTime, LoopTime, Profile, Resources, Stall, UnitTime};
pub use reasons::{Findings, reasons};
