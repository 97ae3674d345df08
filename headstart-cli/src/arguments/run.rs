//! Options of the commands that run or print one kernel: `run`, `sweep`, `compare`, `emit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{CheckOptions, DataOptions, DeviceOptions, KernelOptions};

/// The options of `headstart run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// The plan to apply, such as `values=rolling-async:4`
    #[arg(long, value_name = "PLAN", default_value = "none")]
    pub plan: String,
    #[command(flatten)]
    pub on: DeviceOptions,
    #[command(flatten)]
    pub check: CheckOptions,
    /// Write the result as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  headstart run gather --plan values=rolling-async:4
  headstart run gather --device sim:pvc-1550 --set items=64 --model dram.latency=900";

/// The options of `headstart sweep`.
#[derive(Args, Debug)]
#[command(after_help = SWEEP_EXAMPLES)]
pub struct Sweep {
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// A setting to vary and its values. The setting is a number of the device's model (`dram.latency`), a parameter of the
    /// kernel (`items`), `distance`, `strategy` or `plan`. A..B:N are N values from A to B, A..B doubles from A to B, A,B,C is
    /// a list; plans are separated by semicolons. NAME+NAME=A/B,C/D sets both at once. Bytes may be 64KiB, counts 64Ki.
    /// `--device A,B` compares devices. Repeatable
    #[arg(long, value_name = "NAME=VALUES", required = true)]
    pub over: Vec<String>,
    /// The plan to run, or to vary in distance or strategy: its first load gets the distance, the others keep their lead over
    /// it [default: if a distance is varied, the fastest single strategy]
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<String>,
    #[command(flatten)]
    pub on: DeviceOptions,
    #[command(flatten)]
    pub check: CheckOptions,
    /// Write the points as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the points as CSV to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write one self-contained page with the figure to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  headstart sweep gather --set items=64 --over dram.latency=300..1500:7 --over distance=1..32
  headstart sweep gather --over groups=66,132,264,528 --over strategy=cache:L1,rolling-async,rolling-registers
  headstart sweep gather --over dram.bandwidth=1000..8000 --plan unroll:8 --html bandwidth.html";

/// The options of `headstart compare`.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct Compare {
    /// A plan for the kernel of --kernel; or a report (`FILE.json` from `headstart tune --json`); or a version of a kernel: a
    /// gallery name, a file (`FILE.hsir`, `FILE.ptx[:entry]`, `FILE.cu[:entry]` or `FILE.spv[:entry]`), or the folder of a captured launch
    #[arg(value_name = "A")]
    pub a: String,
    /// The same kind of thing, to compare with A
    #[arg(value_name = "B")]
    pub b: String,
    /// A and B are plans of this kernel
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub data: DataOptions,
    /// For two versions from files: B's launch file, if it differs from --launch
    #[arg(long, value_name = "FILE.toml", conflicts_with = "kernel")]
    pub launch_b: Option<PathBuf>,
    #[command(flatten)]
    pub on: DeviceOptions,
    #[command(flatten)]
    pub check: CheckOptions,
    /// The form in which to compare the code [default: `ptx` if A and B are of modules of PTX, otherwise `ir`]
    #[arg(long, value_enum, value_name = "FORM")]
    pub code: Option<CodeForm>,
    /// Print the whole code difference, however long
    #[arg(long)]
    pub all_code: bool,
    /// Write the comparison as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the comparison as one self-contained page to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The form of code in which two kernels are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CodeForm {
    /// Headstart's own text form
    Ir,
    /// NVIDIA's assembly language
    Ptx,
    /// The instructions that the simulator times
    Machine,
    /// No code
    None,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  headstart compare none values=rolling-async:4 --kernel gather --set items=64
  headstart compare before.json after.json
  headstart compare old.ptx:sum new.ptx:sum --launch sum.toml --code ptx --all-code";

/// The options of `headstart emit`.
#[derive(Args, Debug)]
#[command(after_help = EMIT_EXAMPLES)]
pub struct Emit {
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// The plan to apply, such as `values=rolling-async:4`
    #[arg(long, value_name = "PLAN", default_value = "none")]
    pub plan: String,
    /// The language
    #[arg(long, value_enum, default_value_t = EmitTarget::Ir)]
    pub target: EmitTarget,
    /// The device to emit for [default: sim:h200, and sim:pvc-1550 for SPIR-V]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Override a number of the simulated device's model, in its unit or, as `l2.size=30MiB`, another; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// In PTX, limit registers so that N work-groups fit on an SM (`.minnctapersm`) [default: the launch's number, if small]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub groups_per_core: Option<u32>,
    #[command(flatten)]
    pub check: CheckOptions,
    /// Write a plan for a PTX module though no launch was run with it: for kernels that only a GPU can run, on a machine without
    /// one. The module's note says so
    #[arg(long)]
    pub unchecked: bool,
    /// Write to FILE instead of standard output; SPIR-V to a file FILE.spv is its binary form
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A language to print a kernel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmitTarget {
    /// Headstart's own text form
    Ir,
    /// NVIDIA's assembly language
    Ptx,
    /// The binary form that OpenCL devices accept, including Intel's GPUs
    Spirv,
    /// The instructions that the simulator times
    Machine,
}

const EMIT_EXAMPLES: &str = "\
Examples:
  headstart emit gather --plan unroll:4 --target ptx
  headstart emit gather --target spirv --device sim:pvc-1550 -o gather.spv";
