//! The simulator: the oracle, and the device of a machine without a GPU.
//!
//! [`functional`] runs the IR and checks it; what it computes is what a kernel means. [`Simulator`] makes
//! a device of it; a [`Clock`] tells it how long a launch takes.

pub mod functional;
mod home;
pub(crate) mod memory;
mod queue;
mod simulator;
mod timeline;
pub mod timer;

pub(crate) use simulator::on_copies;
pub use simulator::{Clock, Simulator, Timing};
