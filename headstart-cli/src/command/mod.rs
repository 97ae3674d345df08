//! One module a command.

pub mod devices;
pub mod occupancy;
