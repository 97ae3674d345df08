//! What is known of a kernel without running it: ranges of integers, roots of pointers, loops.
//!
//! Analyses read a verified kernel and change nothing.

mod body;
mod counted;
pub mod definitions;
mod derived;
pub(crate) mod divided;
pub(crate) mod effects;
pub(crate) mod jumps;
pub mod loops;
pub(crate) mod messages;
pub(crate) mod multiples;
pub(crate) mod neighbours;
pub(crate) mod ranges;
pub mod roots;
mod steps;
mod trailing;
pub(crate) mod uniform;
