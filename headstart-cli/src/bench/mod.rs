//! What `headstart bench` measures, and the programs that it is compared with.

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
