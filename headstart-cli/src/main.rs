//! The `headstart` command: should this GPU kernel be prefetched, how, and how far ahead?

mod arguments;
mod calibrate;
mod command;
mod compare;
mod compiled;
mod kernel;
mod launched;
mod program;
mod spirv_module;
mod sweep;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use headstart::Result;
use headstart_cli::output;

fn main() -> ExitCode {
    // clap prints help and its own errors, and ends with status 0 or 2.
    let arguments = Arguments::parse();
    headstart_cli::run(&arguments.look, || run(arguments.command))
}

/// Runs a command; gives the exit status, which is 0 but for that of a program that was run.
fn run(command: Command) -> Result<u8> {
    let done = match command {
        Command::Exec(options) => return command::exec::run(&options),
        Command::Capture(options) => command::capture::run(&options),
        Command::Improve(options) => command::improve::run(&options),
        Command::Advise(options) => command::advise::run(&options),
        Command::Devices(options) => command::devices::run(&options),
        Command::Emit(options) => command::emit::run(&options),
        Command::Kernels(options) => command::kernels::run(&options),
        Command::Merge(options) => command::merge::run(&options),
        Command::New(options) => command::new::run(&options),
        Command::LaunchTemplate(options) => command::launch_template::run(&options),
        Command::Compare(options) => command::compare::run(&options),
        Command::Sweep(options) => command::sweep::run(&options),
        Command::Plans => output::print(arguments::PLANS),
        Command::Completions(options) => command::shell::completions(&options),
        Command::Man(options) => command::shell::man(&options),
        Command::Tune(options) => command::tune::run(&options),
        Command::Run(options) => command::run::run(&options),
        Command::Occupancy(options) => command::occupancy::run(&options),
        Command::Calibrate(options) => command::calibrate::run(&options),
        Command::Offload(options) => command::offload::run(&options),
        Command::Worker => headstart::device::cuda::worker::serve(std::io::stdin().lock(), std::io::stdout()),
    };
    done.map(|()| 0)
}
