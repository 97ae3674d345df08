//! The ways in: what turns a program of the user's into IR.

pub mod lang;
pub mod ptx;
