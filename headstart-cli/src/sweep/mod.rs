//! `headstart sweep`'s parts: the varied settings, and the points that follow from them.

pub mod axis;
pub mod points;
