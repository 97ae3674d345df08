//! The command line: commands, options, and the words of `--help`.
//!
//! Each module has the options of a group of commands, with their examples; `common` has the options that several share.

mod calibrate;
mod common;
mod list;
mod program;
mod run;
mod search;
mod words;

use clap::{Parser, Subcommand};

pub use calibrate::{Calibrate, Rows};
pub use common::{
    BinOptions, CacheOptions, CheckOptions, DataOptions, DeviceOptions, KernelOptions, WatchdogOptions,
};
pub use list::{Devices, Kernels, Occupancy, Offload};
pub use program::{Capture, Exec, Improve, LaunchTemplate, New};
pub use run::{CodeForm, Compare, Emit, EmitTarget, Run, Sweep};
pub use search::{Advise, Merge, Tune};
pub use words::{Completions, Man, PLANS};

use headstart_cli::terminal::Look;

/// Prefetching for GPU kernels: say it, derive it, decide it, measure it.
#[derive(Debug, Parser)]
#[command(name = "headstart", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub look: Look,
}

const AFTER_HELP: &str = "\
Examples:
  headstart tune gather
  headstart new my-kernel && cd my-kernel && cargo run
  headstart help tune

Exit status: 0 success, 1 an error in the kernel or its input, 2 usage, 3 the device or this machine failed, 4 a bug in\nHeadstart, 130 stopped by Ctrl-C, with a report on the plans tried so far.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Try the prefetching plans for a kernel, choose one, and explain why
    Tune(Tune),
    /// Should this kernel be prefetched? NVIDIA's and Intel's checklists, with numbers
    Advise(Advise),
    /// Merge the logs of several searches, or of one search's shards
    Merge(Merge),
    /// Run one plan: time, counters, a checksum of each output
    Run(Run),
    /// Time a kernel for every combination of settings: what if memory were slower, or the distance larger?
    Sweep(Sweep),
    /// Compare two plans, two reports or two versions of a kernel: time, counters, code
    Compare(Compare),
    /// Print a kernel, plain or transformed by a plan, in one of four languages
    ///
    /// With a plan the launch runs on the functional engine, and what goes wrong in it is reported. Without one nothing runs.
    Emit(Emit),
    /// List the devices, real and simulated, and the effect of a prefetch on each
    Devices(Devices),
    /// List the gallery kernels and their parameters, or a module's entries
    Kernels(Kernels),
    /// Create a project with a kernel, a launch and a search for its best plan
    New(New),
    /// Print a launch file to edit, for a kernel from a file
    LaunchTemplate(LaunchTemplate),
    /// Compute the work-groups per core for a geometry, and the limiting resource
    Occupancy(Occupancy),
    /// Run a CUDA program: list its kernels and their times, and copy the longest launches
    Capture(Capture),
    /// Run a CUDA program with the tuned kernels of a capture
    Exec(Exec),
    /// Capture a CUDA program, tune its kernels, and run it with and without the tuned ones
    Improve(Improve),
    /// Measure a device with microbenchmarks; write its model, or compare it with one
    Calibrate(Calibrate),
    /// Find the loops of a host program that are worth offloading, from its profile
    Offload(Offload),
    /// Print the grammar of plans, as in --plan, --plans and #[prefetch("…")]
    #[command(long_about = PLANS)]
    Plans,
    /// Print shell completions
    Completions(Completions),
    /// Write the man pages to a folder
    Man(Man),
    /// Try kernels on a GPU for the process that started this one
    #[command(hide = true)]
    Worker,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use headstart_cli::device::MAX_STEPS;

    use super::*;

    #[test]
    fn the_help_names_the_limit_on_steps() {
        let mut command = Arguments::command();
        let run = command.find_subcommand_mut("run").expect("a command");
        let help = run.render_long_help().to_string();
        assert!(help.contains(&format!("[default: {MAX_STEPS}]")), "{help}");
    }
}
