//! Options of the commands that measure a device: `bench`, `calibrate`, `kit`, `corpus`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The options of `headstart bench`.
#[derive(Args, Debug)]
#[command(after_help = BENCH_EXAMPLES)]
pub struct Bench {
    /// The GPU
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub device: String,
    /// What to measure
    #[arg(long, value_enum, default_value_t = Suite::All)]
    pub suite: Suite,
    /// Only cases whose names contain this; repeatable
    #[arg(long, value_name = "TEXT")]
    pub case: Vec<String>,
    /// Skip plans that contain this; repeatable
    #[arg(long, value_name = "TEXT")]
    pub except: Vec<String>,
    /// A folder of CUDA programs to compare with: each .cu file is built and run, and its printed times are recorded
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
    /// A Python with PyTorch, for the workloads
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub python: PathBuf,
    /// For the workloads: all combinations of the embedding bag's settings [default: a hand-picked set, extended to cover all
    /// pairs]
    #[arg(long)]
    pub all_bags: bool,
    /// Run the workloads without comparing with PyTorch and CUDA
    #[arg(long)]
    pub without_programs: bool,
    /// NVIDIA's compiler, for the peers
    #[arg(long, value_name = "PROGRAM", default_value = "nvcc")]
    pub nvcc: PathBuf,
    /// Timed launches per plan
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// For the accuracy suite and the workloads: only part I of N of the cases, counted from 1
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// For the accuracy suite and the workloads: start no case after this time
    #[arg(long, value_name = "SECONDS")]
    pub limit: Option<u64>,
    /// For the accuracy suite and the workloads: reuse the results in this file; repeatable
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// Use two work-groups and few iterations, to check kernels under slow tools such as sanitizers
    #[arg(long)]
    pub small: bool,
    /// Compare outputs only with the plain kernel's on the GPU, not with the simulator's
    #[arg(long)]
    pub without_simulator: bool,
    /// Write the results as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const BENCH_EXAMPLES: &str = "\
Examples:
  headstart bench --suite workloads --case attention --json attention.json
  headstart bench --suite timer --device sim:h200";

/// What `headstart bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// The kernels of NVIDIA's article and Intel's guide.
    Documents,
    /// The workloads.
    Workloads,
    /// The techniques, without plans.
    Techniques,
    /// The host's techniques: queues, transfers, allocations, compilation; also on `sim:NAME`.
    Host,
    /// The simulator's answers compared with the GPU's: measured on `cuda:N`, simulated on `sim:NAME`, in one file.
    Accuracy,
    /// The mathematical functions in single precision, compared with CUDA's.
    Functions,
    /// The simulator's own speed on the accuracy suite's plain kernels (`sim:NAME`, no GPU).
    Timer,
    /// Documents, workloads and techniques.
    All,
}

/// The options of `headstart host-technique`.
#[derive(Args, Debug)]
pub struct HostTechnique {
    /// The technique, by the name of its page
    pub technique: String,
    /// The device
    #[arg(long)]
    pub device: String,
    /// How often each way is measured
    #[arg(long)]
    pub rounds: u32,
}

/// The options of `headstart calibrate`.
#[derive(Args, Debug)]
#[command(after_help = CALIBRATE_EXAMPLES)]
pub struct Calibrate {
    /// The device: a GPU, or a simulated one as a self-test [default: the first GPU]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Override a number of the simulated device's model; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// Use the measurements of an earlier run instead of measuring
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["device", "model"])]
    pub from: Option<PathBuf>,
    /// Write the device's model to FILE.toml
    #[arg(long, short, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// The model to start from, or to compare if none is written [default: the device's own, or the most similar one]
    #[arg(long, value_name = "MODEL")]
    pub base: Option<String>,
    /// Print the model's times beside the measured ones, row by row; with `--output`, only the rows behind changed numbers
    /// unless it is `--compare=all`
    #[arg(long, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "changed")]
    pub compare: Option<Rows>,
    /// Only microbenchmarks whose name and settings contain this; repeatable
    #[arg(long, value_name = "TEXT")]
    pub case: Vec<String>,
    /// Write measurements and comparison as JSON to FILE, updated after each microbenchmark; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Which rows `headstart calibrate` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// Those behind changed numbers; all, if no number was changed.
    #[value(hide = true)]
    Changed,
    /// All.
    All,
}

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  headstart calibrate --device cuda:0 -o my-gpu.toml --json measured.json
  headstart calibrate --compare --case dram";

/// The options of `headstart kit`.
#[derive(Args, Debug)]
#[command(after_help = KIT_EXAMPLES)]
pub struct Kit {
    /// The device to measure: `opencl:0`, `cuda:0`, or a simulated one to try it out
    #[arg(value_name = "DEVICE", conflicts_with = "from")]
    pub device: Option<String>,
    /// Read measurements, make a model of them, and compare it with the measured cases
    #[arg(long, value_name = "FILE.json")]
    pub from: Option<PathBuf>,
    /// Write measurements to FILE.json after each step; the same command resumes an interrupted run. With `--from`: the model's
    /// FILE.toml
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Start nothing new after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..=864_000))]
    pub budget: u64,
    /// Only microbenchmarks and cases whose names contain this; repeatable
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    pub case: Vec<String>,
    /// With `--from`: the model to start from [default: the most similar one of the same vendor]
    #[arg(long, value_name = "MODEL", requires = "from")]
    pub base: Option<String>,
}

const KIT_EXAMPLES: &str = "\
Examples:
  headstart kit opencl:0 -o measured.json
  headstart kit --from measured.json -o model.toml";

/// The options of `headstart corpus`.
#[derive(Args, Debug)]
#[command(after_help = CORPUS_EXAMPLES)]
pub struct Corpus {
    /// A folder with modules `*.ptx` and, for each entry, a launch file `launch/ENTRY.toml`
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The GPU
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub device: String,
    /// Only entries whose `MODULE:ENTRY` contains this; repeatable
    #[arg(long, value_name = "TEXT")]
    pub case: Vec<String>,
    /// Measure the entries as they were and re-emitted; try no plans
    #[arg(long)]
    pub without_tuning: bool,
    /// Write the results as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const CORPUS_EXAMPLES: &str = "\
Examples:
  headstart corpus modules --case sum --json results.json";
