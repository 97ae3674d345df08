//! Options that several commands have: the kernel, its data, the device, the checks.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use headstart::device::CacheState;
use headstart::ir::Accuracy;
use headstart::tune::perturb::Settings;

/// Which kernel, and its data.
#[derive(Args, Clone, Debug)]
pub struct KernelOptions {
    /// A gallery kernel (see `headstart kernels`), a file (`FILE.hsir`, `FILE.ptx[:entry]`, `FILE.cu[:entry]` or `FILE.spv[:entry]`), or the folder
    /// of a captured launch
    #[arg(value_name = "KERNEL")]
    pub kernel: String,
    #[command(flatten)]
    pub data: DataOptions,
}

/// The data that a kernel runs on.
#[derive(Args, Clone, Debug)]
pub struct DataOptions {
    /// Set a parameter of a gallery kernel or, of a kernel from a file, `groups`, `group` or a scalar of its launch file;
    /// repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Take the indices from entry N of an application trace in Spatter's JSON format
    #[arg(long, value_name = "FILE[#N]")]
    pub trace: Option<String>,
    /// The launch file of a kernel from a file: its geometry and arguments
    #[arg(long, value_name = "FILE.toml")]
    pub launch: Option<PathBuf>,
    /// The accuracy of divisions and square roots of `f32`: rounded correctly, as OpenCL and DPC++ build by default, or as they
    /// build with fast mathematics [default: the kernel's own: `opencl` in SPIR-V, elsewhere `rounded`]
    #[arg(long, value_name = "HOW")]
    pub accuracy: Option<AccuracyOption>,
}

/// A program that was built with Headstart.
#[derive(Args, Clone, Debug)]
pub struct BinOptions {
    /// Take the kernels from this program, which is built with the `headstart` crate and runs once; each kernel gets the
    /// arguments of its largest launch
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["set", "trace", "launch"])]
    pub bin: Option<PathBuf>,
    /// The program's arguments, after `--`
    #[arg(last = true, value_name = "ARGUMENTS", requires = "bin")]
    pub arguments: Vec<OsString>,
}

/// On which device.
#[derive(Args, Clone, Debug)]
pub struct DeviceOptions {
    /// A device from `headstart devices`, or a model file; `tune` also accepts `cuda:all`, every GPU of this machine
    /// [default: the first GPU, or sim:h200 without one]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Override a number of the simulated device's model, in its unit or, as `l2.size=30MiB`, another; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    #[command(flatten)]
    pub cache: CacheOptions,
    #[command(flatten)]
    pub watchdog: WatchdogOptions,
}

/// When a kernel counts as endless.
#[derive(Args, Clone, Copy, Debug)]
pub struct WatchdogOptions {
    /// On a simulated device: fail a kernel as endless after a sub-group has run N operations
    /// [default: 268435456]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
}

/// What a timed launch finds in the L2 cache.
#[derive(Args, Clone, Copy, Debug)]
pub struct CacheOptions {
    /// L2 contents at the start of each timed launch: left by the previous launch (a kernel in a loop), or flushed (other kernels
    /// have evicted the data)
    #[arg(long, value_enum, default_value_t, value_name = "STATE")]
    pub l2: L2,
}

/// A state of the L2 cache, as `--l2` spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum L2 {
    #[default]
    Kept,
    Flushed,
}

/// The accuracy of divisions and square roots of `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccuracyOption {
    Rounded,
    Opencl,
    Fast,
}

impl From<AccuracyOption> for Accuracy {
    fn from(accuracy: AccuracyOption) -> Accuracy {
        match accuracy {
            AccuracyOption::Rounded => Accuracy::Rounded,
            AccuracyOption::Opencl => Accuracy::OpenCl,
            AccuracyOption::Fast => Accuracy::Fast,
        }
    }
}

impl From<L2> for CacheState {
    fn from(l2: L2) -> CacheState {
        match l2 {
            L2::Kept => CacheState::Kept,
            L2::Flushed => CacheState::Flushed,
        }
    }
}

/// The further launches on which plans are checked.
#[derive(Args, Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Seed of the derived launches on which plans are also checked; each report names its seed
    #[arg(long, value_name = "N", default_value_t = Settings::SEED)]
    pub seed: u64,
}

impl CheckOptions {
    /// How the launches are derived.
    pub fn settings(self) -> Settings {
        Settings::seeded(self.seed)
    }
}
