//! Options of the commands that search for a plan or judge one: `tune`, `advise`, `merge`.

use std::path::PathBuf;

use clap::Args;

use super::{BinOptions, CacheOptions, CheckOptions, DataOptions, DeviceOptions, WatchdogOptions};

/// The options of `headstart tune`.
#[derive(Args, Debug)]
#[command(after_help = TUNE_EXAMPLES)]
pub struct Tune {
    /// A gallery kernel (see `headstart kernels`), a file (`FILE.hsir`, `FILE.ptx[:entry]`, `FILE.cu[:entry]` or `FILE.spv[:entry]`), the folder
    /// of a captured launch, or a whole capture, whose kernels share --budget by their part of the time; with --bin, one of the
    /// program's kernels [default: all of them]
    #[arg(value_name = "KERNEL", required_unless_present = "bin")]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub data: DataOptions,
    #[command(flatten)]
    pub program: BinOptions,
    #[command(flatten)]
    pub on: DeviceOptions,
    /// Try only these plans, separated by semicolons; `likely` tries the few that are most likely to help
    #[arg(long, visible_alias = "plan", value_name = "PLAN;…")]
    pub plans: Option<String>,
    /// On a GPU: measure only N plans, first those that are likely to help and then those like the fastest, or `all`
    /// [default: 28, and all of --plans or of a --shard]
    #[arg(long, value_name = "N|all")]
    pub measure: Option<String>,
    /// Simulate every plan to the end, instead of dropping those that are certain not to be 2 % faster than the best so
    /// far (those of --plans are never dropped)
    #[arg(long)]
    pub every_plan: bool,
    /// Append each trial to FILE and skip trials already there, so an interrupted search resumes
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Try only part I of N of the plans, counted from 1; `headstart merge` merges the logs
    #[arg(long, value_name = "I/N", requires = "log")]
    pub shard: Option<String>,
    /// Stop trying plans after this time; report on those tried so far
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<f64>,
    #[command(flatten)]
    pub check: CheckOptions,
    /// Write the report as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as one self-contained page to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Append the answer to FILE, for your program to ship; `tuned` reads it (see `headstart::tune::tuned`)
    #[arg(long, value_name = "FILE")]
    pub ship: Option<PathBuf>,
    /// For a kernel from a module: write the module with the best plan applied, a drop-in replacement; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// For a kernel from a module of PTX: write what `-o` changes as a unified diff; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub diff: Option<PathBuf>,
}

const TUNE_EXAMPLES: &str = "\
Examples:
  headstart tune gather --set items=64 --html gather.html
  headstart tune sum.ptx:sum --launch sum.toml -o better.ptx
  headstart tune cap --budget 60 --json cap.json
  headstart tune --bin target/release/my-program --device sim:h200

FILE.cu is compiled for sm_80 by nvcc, of CUDA_HOME, CUDA_PATH or PATH, or else by clang++.
Flags of the build (-I, -D, -arch) can stand in NVCC_APPEND_FLAGS, which nvcc reads itself.";

/// The options of `headstart advise`.
#[derive(Args, Debug)]
#[command(after_help = ADVISE_EXAMPLES)]
pub struct Advise {
    /// A gallery kernel (see `headstart kernels`) or a file (`FILE.hsir`, `FILE.ptx[:entry]`, `FILE.cu[:entry]` or `FILE.spv[:entry]`); optional
    /// with a profile
    #[arg(value_name = "KERNEL", required_unless_present_any = ["ncu", "vtune"])]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub data: DataOptions,
    /// Use launch N of a Nsight Compute CSV (raw or details page) as the evidence
    #[arg(long, value_name = "FILE.csv[#N]", conflicts_with = "vtune")]
    pub ncu: Option<String>,
    /// Use task N of a VTune CSV of GPU compute tasks as the evidence
    #[arg(long, value_name = "FILE.csv[#N]")]
    pub vtune: Option<String>,
    /// Use a profile whose grid, block, registers or time contradict the kernel's launch
    #[arg(long, requires = "kernel")]
    pub profile_is_of_another_launch: bool,
    /// A device from `headstart devices`, or a model file [default: the first GPU, or sim:h200 without one; for a profile,
    /// the simulated device that it was taken on; needed where a VTune file does not name it]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Override a number of the simulated device's model, in its unit or, as `l2.size=30MiB`, another; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    #[command(flatten)]
    pub cache: CacheOptions,
    #[command(flatten)]
    pub watchdog: WatchdogOptions,
    /// The kernel's share of the program's time, above 0 and at most 1; the report then gives the program's speed-up
    #[arg(long, value_name = "SHARE")]
    pub share: Option<f64>,
    /// Stop trying plans after this time; report on those tried so far [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<f64>,
    /// Write the advice as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the advice as one self-contained page to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

const ADVISE_EXAMPLES: &str = "\
Examples:
  headstart advise gather --set items=64
  headstart advise sum.ptx:sum --launch sum.toml --share 0.4
  headstart advise --ncu profile.csv";

/// The options of `headstart merge`.
#[derive(Args, Debug)]
#[command(after_help = MERGE_EXAMPLES)]
pub struct Merge {
    /// Logs of `headstart tune --log`; if several contain a trial, the last one wins
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Write the merged log to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
}

const MERGE_EXAMPLES: &str = "\
Examples:
  headstart merge one.jsonl two.jsonl --log both.jsonl";
