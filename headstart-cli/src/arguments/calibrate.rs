//! Options of `calibrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
    /// Use the measurements of an earlier run instead of measuring; with `--device`, which must be the same, measure only the
    /// microbenchmarks that they lack
    #[arg(long, value_name = "FILE.json", conflicts_with = "model")]
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
    /// Start no microbenchmark after this time
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<u64>,
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
  headstart calibrate --from measured.json --device cuda:0 --budget 600 --json measured.json
  headstart calibrate --compare --case dram";
