//! The measurements that an owner of a GPU sends back: one file with the device, its microbenchmarks and the accuracy suite's
//! cases.
//!
//! | file | what it does |
//! |---|---|
//! | `file` | the file |
//! | `collect` | measures what it lacks, within a budget |
//! | `read` | makes a model of it, and holds that against the cases |

pub mod collect;
pub mod file;
pub mod read;
