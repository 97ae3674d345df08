//! The command line: commands, options, and the words of `--help`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use headstart::device::CacheState;
use headstart::tune::perturb::Settings;

use crate::terminal::{Colour, Words};

/// Prefetching for GPU kernels: say it, derive it, decide it, measure it.
#[derive(Debug, Parser)]
#[command(name = "headstart", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Colour headings, verdicts and warnings
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", global = true)]
    pub color: Colour,
    /// Terms for threads and cores: CUDA's or SYCL's [default: by the device's vendor]
    #[arg(long, value_enum, value_name = "WHOSE", global = true)]
    pub terms: Option<Words>,
    /// Print nothing but errors to standard error
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print to standard error the fate of each plan and the reason, the programs started, and the time of each phase
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

const AFTER_HELP: &str = "\
Examples:
  headstart tune gather
  headstart new my-kernel && cd my-kernel && cargo run
  headstart help tune

Exit status: 0 success, 1 an error in the kernel or its input, 2 usage, 3 the device or this machine failed, 4 a bug in\nHeadstart, 130 stopped by Ctrl-C, with a report on the plans tried so far.";

/// Which kernel, and its data.
#[derive(Args, Clone, Debug)]
pub struct KernelOptions {
    /// A gallery kernel (see `headstart kernels`), a file (`FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`), or the folder
    /// of a captured launch
    #[arg(value_name = "KERNEL")]
    pub kernel: String,
    #[command(flatten)]
    pub data: DataOptions,
}

/// The data that a kernel runs on.
#[derive(Args, Clone, Debug)]
pub struct DataOptions {
    /// Set a parameter of a gallery kernel; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Take the indices from entry N of an application trace in Spatter's JSON format
    #[arg(long, value_name = "FILE[#N]")]
    pub trace: Option<String>,
    /// The launch file of a kernel from a file: its geometry and arguments
    #[arg(long, value_name = "FILE.toml")]
    pub launch: Option<PathBuf>,
    /// For PTX kernels: carry unknown instructions through as text, assuming nothing about them
    #[arg(long)]
    pub as_opaque: bool,
}

/// On which device.
#[derive(Args, Clone, Debug)]
pub struct DeviceOptions {
    /// A device from `headstart devices`, or a model file; `tune` also accepts `cuda:all`, every GPU of this machine
    /// [default: the first GPU, or sim:h200 without one]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Override a number of the simulated device's model, in the model's unit; repeatable
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

/// As `--l2` spells a state of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum L2 {
    #[default]
    Kept,
    Flushed,
}

impl From<L2> for CacheState {
    fn from(l2: L2) -> CacheState {
        match l2 {
            L2::Kept => CacheState::Kept,
            L2::Flushed => CacheState::Flushed,
        }
    }
}

/// On which further launches plans are checked.
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

/// What outputs of a whole launch on a GPU are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AtFullSize {
    /// The plain kernel's outputs on the GPU, themselves compared with the simulator's for some work-groups
    Own,
    /// The simulator's outputs for the whole launch, however long it takes
    Full,
}

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
    /// Measure the gallery on a GPU beside hand-written CUDA
    Bench(Bench),
    /// Measure a device with microbenchmarks; write its model, or compare it with one
    Calibrate(Calibrate),
    /// Measure a device that nobody has modelled: microbenchmarks and accuracy suite in one file to share; make a model of the file
    Kit(Kit),
    /// Find the loops of a host program that are worth offloading, from its profile
    Offload(Offload),
    /// Print the grammar of plans, as in --plan, --plans and #[prefetch("…")]
    #[command(long_about = PLANS)]
    Plans,
    /// Print shell completions
    Completions(Completions),
    /// Write the man pages to a folder
    Man(Man),
    /// Measure a folder of PTX modules on a GPU: original, re-emitted, and tuned
    Corpus(Corpus),
    /// Try kernels on a GPU for the process that started this one
    #[command(hide = true)]
    Worker,
    /// Go through a technique of the host for the process that started this one
    #[command(hide = true)]
    HostTechnique(HostTechnique),
}

/// The options of `headstart completions`.
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  headstart completions bash > ~/.local/share/bash-completion/completions/headstart";

/// The options of `headstart man`.
#[derive(Args, Debug)]
#[command(after_help = MAN_EXAMPLES)]
pub struct Man {
    /// The folder, created if necessary
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

const MAN_EXAMPLES: &str = "\
Examples:
  headstart man ~/.local/share/man/man1";

/// The language of plans.
pub const PLANS: &str = "\
A plan names the loads to fetch early, the strategy, and the distance in iterations.

  plan      none                          the kernel as it is
            unroll:N  unroll:full         unroll the loop N times
            [unroll:N,]LOAD=STRATEGY,…    fetch loads early, optionally in an unrolled loop
  LOAD      values                        all loads from this parameter
            values@row                    those in the loop of this name
            values@gather.rs:41           those in this source line
  STRATEGY  batched-registers:D           load the values of D iterations, then use them
            rolling-registers:D           a ring of registers, filled D iterations ahead
            batched-shared:D[/LAYOUT]     like batched-registers, in shared memory
            rolling-shared:D[/LAYOUT]     like rolling-registers, in shared memory
            rolling-async:D[/LAYOUT]      asynchronous copies into a ring in shared memory
            cache:LEVEL:D[/nt]            a prefetch hint to L1, L2, L3 or L4, D iterations ahead
            joint:LEVEL:D[/nt][/group]    a hint shared by a sub-group or work-group
            bulk:L2:D                     one hint for the cache line of a whole sub-group
  LAYOUT    interleaved (default), padded, plain
  D         the distance: 1 to 4096 iterations ahead of the use; with unroll:N a multiple of N

Index loads need not be named: those that a prefetched load depends on are fetched before it.
Plans in a list are separated by semicolons.

  unroll:8,values=rolling-async:16/interleaved,indices=rolling-registers:24
";

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

/// The options of `headstart tune`.
#[derive(Args, Debug)]
#[command(after_help = TUNE_EXAMPLES)]
pub struct Tune {
    /// A gallery kernel (see `headstart kernels`), a file (`FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`), or the folder
    /// of a captured launch; with --bin, one of the program's kernels [default: all of them]
    #[arg(value_name = "KERNEL", required_unless_present = "bin")]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub data: DataOptions,
    #[command(flatten)]
    pub program: BinOptions,
    #[command(flatten)]
    pub on: DeviceOptions,
    /// Try only these plans, separated by semicolons; `likely` tries the few that are most likely to help
    #[arg(long, value_name = "PLAN;…")]
    pub plans: Option<String>,
    /// On a GPU that has a model: measure only the N plans that the simulator ranks best, or `all`
    /// [default: 12, and all of --plans or of a --shard]
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
    /// Start no new plan after this time; report on the plans tried so far
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<f64>,
    #[command(flatten)]
    pub check: CheckOptions,
    /// On a GPU: the reference that outputs of the whole launch are compared with
    #[arg(long = "check", value_enum, default_value_t = AtFullSize::Own, value_name = "HOW")]
    pub at_full_size: AtFullSize,
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
}

const TUNE_EXAMPLES: &str = "\
Examples:
  headstart tune gather --set items=64 --html gather.html
  headstart tune sum.ptx:sum --launch sum.toml -o better.ptx
  headstart tune --bin target/release/my-program --device sim:h200";

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

/// The options of `headstart advise`.
#[derive(Args, Debug)]
#[command(after_help = ADVISE_EXAMPLES)]
pub struct Advise {
    /// A gallery kernel (see `headstart kernels`) or a file (`FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`); optional
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
    /// A device from `headstart devices`, or a model file [default: the first GPU, or sim:h200 without one; for a profile,
    /// the simulated device that it was taken on]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Override a number of the simulated device's model, in the model's unit; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    #[command(flatten)]
    pub cache: CacheOptions,
    #[command(flatten)]
    pub watchdog: WatchdogOptions,
    /// The kernel's share of the program's time, above 0 and at most 1; the report then gives the program's speed-up
    #[arg(long, value_name = "SHARE")]
    pub share: Option<f64>,
    /// Start no new plan after this time; report on the plans tried so far
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<f64>,
    /// Write the advice as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
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
    /// a list; plans are separated by semicolons. Repeatable
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
    /// gallery name, a file (`FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`), or the folder of a captured launch
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
    /// The form in which to compare the code [default: the modules' own text if both are PTX, otherwise `ir`]
    #[arg(long, value_enum, value_name = "FORM")]
    pub code: Option<CodeForm>,
    /// Print the whole code difference, however long
    #[arg(long)]
    pub all_code: bool,
    /// Write the comparison as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// A form of code that two kernels are compared in.
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
    /// Override a number of the simulated device's model, in the model's unit; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// In PTX, limit registers so that N work-groups fit on an SM (`.minnctapersm`) [default: the launch's number, if small]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub groups_per_core: Option<u32>,
    #[command(flatten)]
    pub check: CheckOptions,
    /// Write to FILE instead of standard output; SPIR-V to a file FILE.spv is its binary form
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

const EMIT_EXAMPLES: &str = "\
Examples:
  headstart emit gather --plan unroll:4 --target ptx
  headstart emit gather --target spirv --device sim:pvc-1550 -o gather.spv";

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

/// The options of `headstart occupancy`.
#[derive(Args, Debug)]
#[command(after_help = OCCUPANCY_EXAMPLES)]
pub struct Occupancy {
    /// A device from `headstart devices`, or a model file
    #[arg(long, value_name = "DEVICE", default_value = "sim:h200")]
    pub device: String,
    /// Override a number of the simulated device's model, in the model's unit; repeatable
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

/// What `headstart bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  headstart calibrate --device cuda:0 -o my-gpu.toml --json measured.json
  headstart calibrate --compare --case dram";

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
    /// With `--from`: write the comparison as Markdown to FILE
    #[arg(long, value_name = "FILE", requires = "from")]
    pub page: Option<PathBuf>,
}

const KIT_EXAMPLES: &str = "\
Examples:
  headstart kit opencl:0 -o measured.json
  headstart kit --from measured.json -o model.toml";

/// Which rows `headstart calibrate` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// Those that a changed number follows from; all, where none was changed.
    #[value(hide = true)]
    Changed,
    /// All.
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
    /// For the accuracy suite: write the findings as Markdown to FILE
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
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
