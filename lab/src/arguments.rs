//! The laboratory's command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use headstart_cli::terminal::Look;

/// Measures Headstart itself
#[derive(Debug, Parser)]
#[command(name = "headstart-lab", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub look: Look,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the gallery on a GPU beside hand-written CUDA, or the simulator
    Bench(Bench),
    /// Measure a folder of PTX modules on a GPU: original, re-emitted, and tuned
    Corpus(Corpus),
    /// Try kernels on a GPU for the process that started this one
    #[command(hide = true)]
    Worker,
    /// Go through a technique of the host for the process that started this one
    #[command(hide = true)]
    HostTechnique(HostTechnique),
}

/// The options of `headstart-lab bench`.
#[derive(Args, Debug)]
#[command(after_help = BENCH_EXAMPLES)]
pub struct Bench {
    /// The GPU
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub device: String,
    /// What to measure
    #[arg(long, value_enum, default_value_t = Suite::All)]
    pub suite: Suite,
    /// Only cases whose names contain this, or the one with the whole name `=NAME`; repeatable
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
    /// Another program to compare the workloads with, which reads and answers as `peers/gallery.cu` does; repeatable
    #[arg(long, value_name = "PROGRAM")]
    pub beside: Vec<PathBuf>,
    /// Run the workloads without comparing with PyTorch, CUDA and other programs
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
  headstart-lab bench --suite workloads --case attention --json attention.json
  headstart-lab bench --suite timer --device sim:h200";

/// What `headstart-lab bench` measures.
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

/// The options of `headstart-lab host-technique`.
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

/// The options of `headstart-lab corpus`.
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
  headstart-lab corpus modules --case sum --json results.json";
