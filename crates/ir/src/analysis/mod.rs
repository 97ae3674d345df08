//! Static analyses of a kernel: ranges of integers, roots of pointers, loops.
//!
//! Analyses read a verified kernel and change nothing.

#[doc(hidden)]
pub mod apart;
mod body;
mod counted;
pub mod definitions;
mod derived;
#[doc(hidden)]
pub mod divided;
#[doc(hidden)]
pub mod effects;
mod ends;
#[doc(hidden)]
pub mod folds;
#[doc(hidden)]
pub mod jumps;
pub mod loops;
#[doc(hidden)]
pub mod messages;
#[doc(hidden)]
pub mod multiples;
#[doc(hidden)]
pub mod neighbours;
#[doc(hidden)]
pub mod ranges;
#[doc(hidden)]
pub mod reach;
pub mod roots;
mod steps;
mod summary;
mod trailing;
#[doc(hidden)]
pub mod uniform;
#[doc(hidden)]
pub mod waits;
