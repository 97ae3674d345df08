//! One module a command.

pub mod advise;
pub mod calibrate;
pub mod capture;
pub mod compare;
pub mod devices;
pub mod emit;
pub mod exec;
mod expected;
pub mod improve;
pub mod kernels;
pub mod launch_template;
pub mod merge;
pub mod new;
pub mod occupancy;
pub mod offload;
pub mod run;
pub mod shell;
pub mod sweep;
pub mod tune;
