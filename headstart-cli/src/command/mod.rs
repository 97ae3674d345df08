//! One module a command.

pub mod occupancy;
