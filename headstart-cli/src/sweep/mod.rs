//! `headstart sweep`'s parts: what is varied, and the points that follow from it.

pub mod axis;
pub mod points;
