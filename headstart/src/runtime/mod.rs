//! Programs around kernels: what the compiler checks of a launch, ranges without work-groups, one job on several devices.
//!
//! `#[kernel]` makes the functions that lead here: `NAME::compile` and `NAME::arguments` ([`launch`]), `NAME::over_range`
//! ([`over_range`]). [`kept`] leaves launches in a folder for the `headstart` command. What makes a kernel is in [`front::lang`](crate::front::lang), what runs it in
//! [`device`](crate::device).

pub mod kept;
pub mod launch;
pub mod over_range;
pub mod split;
