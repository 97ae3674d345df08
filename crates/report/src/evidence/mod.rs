//! Evidence about a kernel and its runs, as plain data: the basis of reports, advice and verdicts.
//!
//! | file | what it holds |
//! |---|---|
//! | `run` | numbers of a run as a whole |
//! | `profile` | where its time goes: reasons, loops, loads, units |
//! | `timeline` | where the time of some sub-groups goes, moment by moment |
//! | `structure` | what the kernel's text tells of its loads |
//! | `accesses` | how far apart and how wide they read |
//! | `balance` | how evenly the work is spread |
//! | `first` | what to change before any prefetch |
//! | `diverging` | where work-items of a sub-group part |
//! | `overview` | the same in sentences, told before anything runs |
//! | `bounds` | how fast the kernel can get at most |

mod accesses;
mod balance;
mod bounds;
mod diverging;
mod first;
mod overview;
mod profile;
mod run;
mod structure;
mod timeline;

pub use accesses::{Access, accesses};
pub use balance::Balance;
pub use bounds::{Bounds, Roof, Roofline, RooflinePoint};
pub use diverging::Diverging;
pub use first::{Remedy, first};
#[doc(hidden)]
pub use overview::overview;
pub use profile::{Cache, LoadTime, LoopTime, Profile, Resources, Stall, UnitTime};
pub use run::Evidence;
pub use structure::{LoopLoad, loop_loads};
pub use timeline::{Doing, Moment, Strip, Timeline};
