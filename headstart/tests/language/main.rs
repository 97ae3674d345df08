//! The kernel language: each kernel here does the same on the functional engine as the ordinary Rust function
//! does on the CPU.

mod arithmetic;
mod control_flow;
mod device;
mod functions;
mod memory;
mod ranges;
mod refused;
mod structure;
mod work_items;
