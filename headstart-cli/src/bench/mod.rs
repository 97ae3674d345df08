//! The subjects of `headstart bench`, and the programs that it compares with.

pub mod accuracy;
pub mod cases;
pub mod compare;
pub mod functions;
pub mod host;
mod made;
mod manifest;
pub mod peers;
mod process;
pub mod runs;
pub mod shown;
pub mod timer;
pub mod workloads;
