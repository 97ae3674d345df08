//! The `headstart` command: should this GPU kernel be prefetched, how, and how far ahead?

mod arguments;
mod bench;
mod calibrate;
mod command;
mod compare;
mod compiled;
mod device;
mod kernel;
mod kit;
mod launched;
mod output;
mod program;
mod progress;
mod published;
mod spirv_module;
mod sweep;
mod terminal;

use std::panic;
use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use headstart::{Error, Result};

fn main() -> ExitCode {
    // clap prints help and its own errors, and ends with status 0 or 2.
    let arguments = Arguments::parse();
    terminal::set_up(arguments.color, arguments.quiet, arguments.verbose);
    if let Some(words) = arguments.terms {
        terminal::use_terms(words.into());
    }
    // A bug of ours is said in one line, like everything else; RUST_BACKTRACE asks for more.
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        panic::set_hook(Box::new(|_| ()));
    }
    let outcome = panic::catch_unwind(|| run(arguments.command)).unwrap_or_else(|payload| {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        let said = said
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("it stopped without a word");
        Err(Error::bug(said.replace('\n', " ")).accepted("please report it with the command that you ran"))
    });
    match outcome {
        Ok(_) if progress::was_interrupted() => ExitCode::from(progress::INTERRUPTED_STATUS),
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            // Standard error may be closed as well; the status still tells the outcome.
            let line = format!("{}\n", terminal::errors().fitted(&format!("headstart: {error}")));
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            ExitCode::from(error.exit_status())
        }
    }
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
        Command::Bench(options) => command::bench::run(&options),
        Command::Calibrate(options) => command::calibrate::run(&options),
        Command::Kit(options) => command::kit::run(&options),
        Command::Offload(options) => command::offload::run(&options),
        Command::Corpus(options) => command::corpus::run(&options),
        Command::HostTechnique(options) => bench::host::serve(&options),
        Command::Worker => headstart::device::cuda::worker::serve(std::io::stdin().lock(), std::io::stdout()),
    };
    done.map(|()| 0)
}
