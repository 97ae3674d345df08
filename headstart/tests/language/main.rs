//! The kernel language: each kernel here does the same on the functional engine as the ordinary Rust function
//! does on the CPU.

#![allow(
    clippy::style,
    clippy::complexity,
    clippy::suspicious,
    clippy::correctness,
    reason = "the kernels are written to be hard on the language, not to be read as examples"
)]

mod agree;
mod allocations;
mod arithmetic;
mod atomics;
mod blocks;
mod conformance;
mod control_flow;
mod functions;
mod group_work;
mod host;
mod joint;
mod kept;
mod mathematics;
mod meeting;
mod memory;
mod parts;
mod pipeline;
mod prefetch;
mod prefetch_signatures;
mod printing;
mod ranges;
mod refused;
mod structs;
mod structure;
mod sub_groups;
mod types;
mod views;
mod work_items;
