//! Options of the commands that list or compute facts and run no kernel: `devices`, `kernels`, `occupancy`, `offload`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// The options of `headstart devices`.
#[derive(Args, Debug)]
#[command(after_help = DEVICES_EXAMPLES)]
pub struct Devices {
    /// List the numbers of a simulated device's model with unit, source and meaning; NAME is `h200`, or a model file
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Write the list as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const DEVICES_EXAMPLES: &str = "\
Examples:
  headstart devices
  headstart devices --model pvc-1550";

/// The options of `headstart kernels`.
#[derive(Args, Debug)]
#[command(after_help = KERNELS_EXAMPLES)]
pub struct Kernels {
    /// A module, `FILE.ptx` or `FILE.spv` [default: the gallery]
    #[arg(value_name = "FILE", conflicts_with = "bin")]
    pub file: Option<String>,
    /// List the kernels that this program launches; it is built with the `headstart` crate and runs once
    #[arg(long, value_name = "PROGRAM")]
    pub bin: Option<PathBuf>,
    /// The program's arguments, after `--`
    #[arg(last = true, value_name = "ARGUMENTS", requires = "bin")]
    pub arguments: Vec<OsString>,
    /// Write the list as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const KERNELS_EXAMPLES: &str = "\
Examples:
  headstart kernels
  headstart kernels kernel.ptx";

/// The options of `headstart occupancy`.
#[derive(Args, Debug)]
#[command(after_help = OCCUPANCY_EXAMPLES)]
pub struct Occupancy {
    /// A device from `headstart devices`, or a model file
    #[arg(long, value_name = "DEVICE", default_value = "sim:h200")]
    pub device: String,
    /// Override a number of the simulated device's model, in its unit or, as `l2.size=30MiB`, another; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// Work-items per work-group
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub group: u32,
    /// Work-items per sub-group [default: the device's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub sub_group: Option<u32>,
    /// 32-bit registers per work-item
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1 << 16))]
    pub registers: u32,
    /// Bytes of shared memory per work-group
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub shared: u32,
    /// Use the large register file (Intel)
    #[arg(long)]
    pub large_grf: bool,
    /// The kernel has a work-group barrier
    #[arg(long)]
    pub barrier: bool,
    /// Write the numbers as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const OCCUPANCY_EXAMPLES: &str = "\
Examples:
  headstart occupancy --group 256 --registers 64 --shared 49152";

/// The options of `headstart offload`.
#[derive(Args, Debug)]
#[command(after_help = OFFLOAD_EXAMPLES)]
pub struct Offload {
    /// The loops: a CSV with the columns loop, seconds (of all calls), calls, and per call iterations, bytes in, bytes out,
    /// bytes, flops, flops 64
    #[arg(value_name = "FILE.csv")]
    pub profile: PathBuf,
    /// The device, a simulated one
    #[arg(long, value_name = "DEVICE", default_value = "sim:h200")]
    pub device: String,
    /// Override a number of the device's model; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// Run time of the whole program on the host [default: the sum of its loops]
    #[arg(long, value_name = "SECONDS")]
    pub program: Option<f64>,
    /// Write the answer as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const OFFLOAD_EXAMPLES: &str = "\
Examples:
  headstart offload loops.csv --device sim:pvc-1550";
