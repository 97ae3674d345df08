//! Options of the commands that run a program or start one: `capture`, `exec`, `new`, `launch-template`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{CheckOptions, DeviceOptions};

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
    /// Capture this launch of each kernel, counted from 0 [default: of each kind of launches one that takes as long as those in
    /// which its time is spent]
    #[arg(long, value_name = "N")]
    pub launch: Option<u64>,
    #[command(flatten)]
    pub limits: LimitOptions,
    /// Instead of running a program, import launches from a trace that tritonparse wrote: a file, or a folder of them
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["list", "program"])]
    pub import: Option<PathBuf>,
    /// The program and its arguments, after `--`
    #[arg(last = true, required_unless_present = "import", value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// What a captured launch may reach and take.
#[derive(Args, Clone, Copy, Debug)]
pub struct LimitOptions {
    /// Skip launches that can reach more memory than this; a kernel's lesser kinds of launches share as much
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30)]
    pub max_bytes: u64,
    /// Skip launches that take longer than this, or that find the device busy for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub patience: u64,
}

const CAPTURE_EXAMPLES: &str = "\
Examples:
  headstart capture -o cap -- ./program 4096
  headstart capture -o launches --import logs
  headstart tune cap --budget 60
  headstart exec --with cap -- ./program 4096";

/// The options of `headstart exec`.
#[derive(Args, Debug)]
#[command(after_help = EXEC_EXAMPLES)]
pub struct Exec {
    /// A capture with tuned kernels, or one kernel's folder in it
    #[arg(long, value_name = "DIR")]
    pub with: PathBuf,
    /// Also put kernels in place that save less than it takes to load them, by the launches of the capture
    #[arg(long)]
    pub always: bool,
    /// Write what became of all launches as JSON to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  headstart exec --with cap -- ./program 4096
  headstart exec --with cap --json ran.json -- ./program 4096";

/// The options of `headstart improve`.
#[derive(Args, Debug)]
#[command(after_help = IMPROVE_EXAMPLES)]
pub struct Improve {
    /// Keep the capture with the tuned kernels in this folder, new or empty, for `headstart exec`
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Time for trying plans, which the kernels share by their part of the time
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub budget: f64,
    /// Try only these plans, separated by semicolons; `likely` tries the few that are most likely to help
    #[arg(long, value_name = "PLAN;…")]
    pub plans: Option<String>,
    /// Runs of the program, alone and with the tuned kernels in turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    #[command(flatten)]
    pub on: DeviceOptions,
    #[command(flatten)]
    pub check: CheckOptions,
    #[command(flatten)]
    pub limits: LimitOptions,
    /// Write kernels, answers and runs as JSON to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the kernels and their answers as one self-contained page to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

impl Improve {
    /// The options of its capture in a folder.
    pub fn capture(&self, folder: &Path) -> Capture {
        Capture {
            output: folder.to_owned(),
            list: false,
            kernel: None,
            launch: None,
            limits: self.limits,
            import: None,
            program: self.program.clone(),
        }
    }
}

const IMPROVE_EXAMPLES: &str = "\
Examples:
  headstart improve -- ./program 4096
  headstart improve --budget 60 --keep cap -- ./program 4096";

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
    /// A file: `FILE.hsir`, `FILE.ptx[:entry]`, `FILE.cu[:entry]` or `FILE.spv[:entry]`
    #[arg(value_name = "KERNEL")]
    pub kernel: String,
}

const LAUNCH_TEMPLATE_EXAMPLES: &str = "\
Examples:
  headstart launch-template kernel.ptx:sum > launch.toml";
