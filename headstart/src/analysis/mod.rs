//! What is known of a kernel without running it: ranges of integers, roots of pointers, loops.
//!
//! Analyses read a verified kernel and change nothing.

mod body;
mod counted;
pub mod definitions;
mod derived;
pub mod effects;
pub mod jumps;
pub mod loops;
pub mod messages;
pub mod multiples;
pub mod neighbours;
pub mod ranges;
pub mod roots;
mod steps;
mod trailing;
pub mod uniform;
