//! From microbenchmarks to a device model.
//!
//! | file | what it does |
//! |---|---|
//! | `points` | which microbenchmarks are run, with which settings |
//! | `meter` | runs one, on a GPU or a model |
//! | `facts` | what a device says of itself |
//! | `rows` | what was measured, as it is kept in JSON |
//! | `fit` | changes a model's numbers until it gives what was measured |
//! | `file` | writes a model with new numbers, each with its source |
//!
//! A number of the memory system is never observed alone: the time of a load that misses L1 includes instructions, a rate is
//! the minimum of several. So the model itself interprets a measurement: a microbenchmark runs on it, and the number to which
//! it is most sensitive is adjusted by the difference. That repeats until nothing changes.

pub mod facts;
pub mod file;
pub mod fit;
pub mod meter;
pub mod points;
pub mod rows;
