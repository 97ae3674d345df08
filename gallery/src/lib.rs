//! The gallery: the kernels everyone meets first, and the data of real applications.

#![warn(missing_docs)]

pub mod settings;
pub mod spatter;
