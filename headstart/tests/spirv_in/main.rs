//! SPIR-V as a way in: the kernels of `corpus/spirv/`, what our own back end writes, broken modules.

mod accuracy;
mod corpus;
mod fuzz;
mod library;
mod read;
#[path = "../common/spirv_modules.rs"]
mod spirv_modules;
mod ways;
