//! What several test files need; each uses a part of it.

#![allow(dead_code)]

pub mod corpus;
pub mod device;
pub mod modules;
pub mod operations;
