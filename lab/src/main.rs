//! The laboratory: what measures Headstart itself, from a clone. It shares its devices and its output with the command.

mod accuracy;
mod arguments;
mod bench;
mod cases;
mod compare;
mod corpus;
mod functions;
mod host;
mod made;
mod manifest;
mod peers;
mod process;
mod runs;
mod shown;
mod timer;
mod workloads;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use headstart::device::cuda::worker;

/// How a reader starts it: the command that results name.
const PROGRAM: &str = "cargo run --release -p headstart-lab --";

fn main() -> ExitCode {
    let Arguments { command, look } = Arguments::parse();
    headstart_cli::run(&look, || {
        match command {
            Command::Bench(options) => bench::run(&options),
            Command::Corpus(options) => corpus::run(&options),
            Command::Worker => worker::serve(std::io::stdin().lock(), std::io::stdout()),
            Command::HostTechnique(options) => host::serve(&options),
        }
        .map(|()| 0)
    })
}
