//! Devices: what they are made of, and how kernels run on them.

pub mod cuda;
pub mod model;
