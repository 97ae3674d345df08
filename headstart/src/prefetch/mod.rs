//! Prefetching: the plan, and one pass a strategy that carries it out.

pub mod plan;

pub use plan::Plan;
