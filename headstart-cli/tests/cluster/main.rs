//! `examples/cluster`: a search over the nodes of a cluster makes the report that one process makes, and goes on from
//! the log where a node is lost in the middle.
//!
//! Skipped, and says so, where `scripts/tools` has not set up Slurm or Dask.

mod dask;
mod process;
mod search;
mod slurm;
