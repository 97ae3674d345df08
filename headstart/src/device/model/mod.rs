//! Device models: what a device has and how fast it is, as data with sources.

pub mod occupancy;
