//! One module a command.

pub mod devices;
pub mod kernels;
pub mod occupancy;
