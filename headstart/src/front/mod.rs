//! The ways in: what turns a program of the user's into IR.

pub mod lang;
mod middle;
pub mod ptx;
pub mod spirv;
