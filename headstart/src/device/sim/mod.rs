//! The simulator: the oracle, and the device of a machine without a GPU.
//!
//! [`functional`] runs the IR and checks it; what it computes is what a kernel means.

pub mod functional;
