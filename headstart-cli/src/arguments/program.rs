//! Options of the commands that run a program or start one: `capture`, `exec`, `new`, `launch-template`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// The options of `headstart capture`.
#[derive(Args, Debug)]
#[command(after_help = CAPTURE_EXAMPLES)]
pub struct Capture {
    /// The capture's folder, new or empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Only list the kernels; runs the program once
    #[arg(long, conflicts_with_all = ["kernel", "launch"])]
    pub list: bool,
    /// Capture the kernels whose names match [default: those with at least 1 % of the time]
    #[arg(long, value_name = "REGEX")]
    pub kernel: Option<String>,
    /// Capture this launch of each kernel, counted from 0 [default: one that takes as long as those in which its time is spent]
    #[arg(long, value_name = "N")]
    pub launch: Option<u64>,
    /// Skip launches that can reach more memory than this
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30)]
    pub max_bytes: u64,
    /// Skip launches that take longer than this, or that find the device busy for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub patience: u64,
    /// Instead of running a program, import launches from a trace that tritonparse wrote: a file, or a folder of them
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["list", "program"])]
    pub import: Option<PathBuf>,
    /// The program and its arguments, after `--`
    #[arg(last = true, required_unless_present = "import", value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

const CAPTURE_EXAMPLES: &str = "\
Examples:
  headstart capture -o cap -- ./program 4096
  headstart capture -o launches --import logs
  headstart tune cap/KERNEL
  headstart exec --with cap -- ./program 4096";

/// The options of `headstart exec`.
#[derive(Args, Debug)]
#[command(after_help = EXEC_EXAMPLES)]
pub struct Exec {
    /// A capture with tuned kernels, or one kernel's folder in it
    #[arg(long, value_name = "DIR")]
    pub with: PathBuf,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  headstart exec --with cap -- ./program 4096";

/// The options of `headstart new`.
#[derive(Args, Debug)]
#[command(after_help = NEW_EXAMPLES)]
pub struct New {
    /// The project's folder, new or empty, and its name
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,
    /// Depend on a checkout of Headstart instead of its published version
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
}

const NEW_EXAMPLES: &str = "\
Examples:
  headstart new my-kernel && cd my-kernel && cargo run
  headstart new my-kernel --path ~/headstart";

/// The options of `headstart launch-template`.
#[derive(Args, Debug)]
#[command(after_help = LAUNCH_TEMPLATE_EXAMPLES)]
pub struct LaunchTemplate {
    /// A file: `FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`
    #[arg(value_name = "KERNEL")]
    pub kernel: String,
}

const LAUNCH_TEMPLATE_EXAMPLES: &str = "\
Examples:
  headstart launch-template kernel.ptx:sum > launch.toml";
