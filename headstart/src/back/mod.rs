//! Back ends: pure functions from a kernel to what a device, or the timer, takes.

mod banked;
mod commits;
pub mod hints;
mod library;
pub mod machine;
mod nan;
pub mod ptx;
mod roots;
pub mod spirv;
mod tables;
