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
    /// Whose words to use for threads and cores [default: those of the device's maker]
    #[arg(long, value_enum, value_name = "WHOSE", global = true)]
    pub terms: Option<Words>,
    /// Say nothing on standard error but errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Say on standard error what became of each plan and why, which programs are started, and how long each phase takes
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

const AFTER_HELP: &str = "\
Exit status: 0 done, 1 the kernel or its input is at fault, 2 usage, 3 the device or this machine cannot, 4 a bug of ours,\n130 stopped by Ctrl-C, with a report of what was tried.";

/// Which kernel, and its data.
#[derive(Args, Clone, Debug)]
pub struct KernelOptions {
    /// A kernel of the gallery (see `headstart kernels`), a file, `FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`, or the folder of a
    /// captured launch
    #[arg(value_name = "KERNEL")]
    pub kernel: String,
    #[command(flatten)]
    pub data: DataOptions,
}

/// The data that a kernel runs on.
#[derive(Args, Clone, Debug)]
pub struct DataOptions {
    /// Set a parameter of a gallery kernel; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Take the indices from an application's trace in Spatter's JSON, entry N
    #[arg(long, value_name = "FILE[#N]")]
    pub trace: Option<String>,
    /// For a kernel from a file: its geometry and arguments
    #[arg(long, value_name = "FILE.toml")]
    pub launch: Option<PathBuf>,
    /// For a kernel in PTX: carry unknown instructions as text, assuming nothing about them
    #[arg(long)]
    pub as_opaque: bool,
}

/// On which device.
#[derive(Args, Clone, Debug)]
pub struct DeviceOptions {
    /// The device, as `headstart devices` lists them, or a model file; for `tune` also `cuda:all`, all GPUs of this machine at
    /// once [default: the first GPU, or else sim:h200]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Change one number of the simulated device's model, in the model's unit; may be repeated
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
    /// On a simulated device: stop a kernel with an error once a sub-group has run N operations and has not ended
    /// [default: 268435456]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
}

/// What a timed launch finds in the L2 cache.
#[derive(Args, Clone, Copy, Debug)]
pub struct CacheOptions {
    /// What each timed launch finds in L2: what the same launch before it left there (a kernel in a loop), or nothing (a kernel
    /// whose data other kernels have displaced)
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

/// On what plans are checked besides the launch at hand.
#[derive(Args, Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Seed of the launches, derived from this one, that plans are also checked on; a report names its seed
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
    /// The plain kernel's outputs on the GPU, which are compared with the simulator's on some work-groups
    Own,
    /// The simulator's outputs for the whole launch, however long that takes
    Full,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Try the plans for a kernel, choose one, say why
    Tune(Tune),
    /// Should this kernel be prefetched? NVIDIA's and Intel's checklist, with numbers
    Advise(Advise),
    /// Merge the logs of several searches, or of the shards of one
    Merge(Merge),
    /// Run one plan: time, counters, a checksum of each output
    Run(Run),
    /// Time a kernel at every combination of some settings: what if memory were slower, or the distance larger?
    Sweep(Sweep),
    /// Compare two plans, two reports or two versions of a kernel: time, counters, code
    Compare(Compare),
    /// Print a kernel, plain or with a plan applied
    Emit(Emit),
    /// List the devices, real and simulated, and what a prefetch does on each
    Devices(Devices),
    /// List the kernels of the gallery and their parameters, or the entries of a module
    Kernels(Kernels),
    /// Write a program with a kernel, a launch and a tune, to start from
    New(New),
    /// Print a launch file to start from, for a kernel from a file
    LaunchTemplate(LaunchTemplate),
    /// Work-groups per core for a geometry, and what limits them
    Occupancy(Occupancy),
    /// Run a CUDA program: list its kernels and their times, and copy the launches that matter
    Capture(Capture),
    /// Run a CUDA program with the tuned kernels of a capture
    Exec(Exec),
    /// Measure the gallery on a GPU beside hand-written CUDA
    Bench(Bench),
    /// Measure a device with microbenchmarks; write its model or compare one with it
    Calibrate(Calibrate),
    /// Measure a GPU for us: microbenchmarks and the accuracy suite, in one file to send back; make a model of such a file
    Kit(Kit),
    /// Say which loops of a program are worth a device, from a profile of it on the host
    Offload(Offload),
    /// How a plan is written: the language of --plan, --plans and #[prefetch("…")]
    #[command(long_about = PLANS)]
    Plans,
    /// Print completions for a shell
    Completions(Completions),
    /// Write the manual pages to a folder
    Man(Man),
    /// Measure a folder of PTX modules on a GPU: original, round trip, tuned
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
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// The options of `headstart man`.
#[derive(Args, Debug)]
pub struct Man {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// The language of plans.
pub const PLANS: &str = "\
A plan says which load is fetched early, by which strategy, how many iterations ahead.

  plan      none                          the kernel as it is
            unroll:N  unroll:full         take N iterations at a time
            [unroll:N,]LOAD=STRATEGY,…    fetch loads early, N iterations at a time
  LOAD      values                        the parameter that it reads
            values@row                    in the loop of this name
            values@gather.rs:41           in this line
  STRATEGY  batched-registers:D           a group of D iterations is loaded before it is used
            rolling-registers:D           a ring of registers, loaded D iterations before the use
            batched-shared:D[/LAYOUT]     the same two in shared memory
            rolling-shared:D[/LAYOUT]
            rolling-async:D[/LAYOUT]      copied asynchronously into a ring in shared memory
            cache:LEVEL:D[/nt]            a hint to L1, L2, L3 or L4, D iterations before the use
            joint:LEVEL:D[/nt][/group]    a hint that a sub-group or work-group shares
            bulk:L2:D                     one hint for the line of a whole sub-group
  LAYOUT    interleaved (default), padded, plain
  D         the distance: 1 to 4096 iterations ahead of the use; with unroll:N a multiple of N

What a plan does not name it carries as it must: the indices that lead to a load are fetched
earlier than the load. Plans in a list are separated by semicolons.

  unroll:8,values=rolling-async:16/interleaved,indices=rolling-registers:24
";

/// The options of `headstart capture`.
#[derive(Args, Debug)]
pub struct Capture {
    /// Write the capture to this folder, which is new or empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Only list the kernels: the program runs once
    #[arg(long, conflicts_with_all = ["kernel", "launch"])]
    pub list: bool,
    /// Capture the kernels whose name matches [default: those that take 1 % of the time]
    #[arg(long, value_name = "REGEX")]
    pub kernel: Option<String>,
    /// Capture this launch of each kernel, counted from 0 [default: one that takes as long as those in which its time is spent]
    #[arg(long, value_name = "N")]
    pub launch: Option<u64>,
    /// Skip a launch that reaches more than this much memory, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30)]
    pub max_bytes: u64,
    /// Skip a launch that does not end within this time, or finds the device busy
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub patience: u64,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// The options of `headstart exec`.
#[derive(Args, Debug)]
pub struct Exec {
    /// A capture with tuned kernels, or one of its folders
    #[arg(long, value_name = "DIR")]
    pub with: PathBuf,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// A program that was built with Headstart.
#[derive(Args, Clone, Debug)]
pub struct BinOptions {
    /// The kernels that this program launches, with the arguments of each one's largest launch. The program is built with the
    /// crate `headstart`; it is run once
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
    /// A kernel of the gallery (see `headstart kernels`), a file, `FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`, or the folder of a
    /// captured launch; with --bin the name of one of its kernels [default: all of them]
    #[arg(value_name = "KERNEL", required_unless_present = "bin")]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub data: DataOptions,
    #[command(flatten)]
    pub program: BinOptions,
    #[command(flatten)]
    pub on: DeviceOptions,
    /// Try only these plans, separated by semicolons, or the few that are `likely` to help
    #[arg(long, value_name = "PLAN;…")]
    pub plans: Option<String>,
    /// On a GPU that has a model: measure only the N plans that the simulator ranks best, or `all`
    /// [default: 12, and all of --plans or of a --shard]
    #[arg(long, value_name = "N|all")]
    pub measure: Option<String>,
    /// Simulate every plan to its end. Without it, a plan that is surely slower than the fastest so far is dropped early,
    /// except those of --plans
    #[arg(long)]
    pub every_plan: bool,
    /// Write each trial to FILE as it ends and skip trials already there, so an interrupted search resumes
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Try only part I of N of the plans, counted from 1; `headstart merge` puts the logs together
    #[arg(long, value_name = "I/N", requires = "log")]
    pub shard: Option<String>,
    /// Start no plan after this time, and report what was tried
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<f64>,
    #[command(flatten)]
    pub check: CheckOptions,
    /// On a GPU: the reference for outputs of the whole launch
    #[arg(long = "check", value_enum, default_value_t = AtFullSize::Own, value_name = "HOW")]
    pub at_full_size: AtFullSize,
    /// Write the report as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as one self-contained page to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Add the answer to FILE, for a program to ship: `headstart::tune::tuned` reads it
    #[arg(long, value_name = "FILE")]
    pub ship: Option<PathBuf>,
    /// For a kernel from a module: write the module with the best plan applied, to load in place of the
    /// old one; `-` for standard output
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
    /// The folder to write, which is new or empty; its name is the program's
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
pub struct LaunchTemplate {
    /// A file, `FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`
    #[arg(value_name = "KERNEL")]
    pub kernel: String,
}

/// The options of `headstart advise`.
#[derive(Args, Debug)]
pub struct Advise {
    /// A gallery kernel (see `headstart kernels`) or a file, `FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`; optional
    /// with a profile
    #[arg(value_name = "KERNEL", required_unless_present_any = ["ncu", "vtune"])]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub data: DataOptions,
    /// Take the evidence from Nsight Compute's CSV, raw or details page; launch N of it
    #[arg(long, value_name = "FILE.csv[#N]", conflicts_with = "vtune")]
    pub ncu: Option<String>,
    /// Take the evidence from VTune's CSV of GPU compute tasks; task N of it
    #[arg(long, value_name = "FILE.csv[#N]")]
    pub vtune: Option<String>,
    /// The device, as `headstart devices` lists them, or a model file [default: the first GPU, or else
    /// sim:h200; what a profile was made on, simulated]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Change one number of the simulated device's model, in the model's unit; may be repeated
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    #[command(flatten)]
    pub cache: CacheOptions,
    #[command(flatten)]
    pub watchdog: WatchdogOptions,
    /// The kernel's share of the program's time, above 0 and at most 1, to say what the program gains
    #[arg(long, value_name = "SHARE")]
    pub share: Option<f64>,
    /// Start no plan after this time, and report what was tried
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<f64>,
    /// Write the advice as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The options of `headstart merge`.
#[derive(Args, Debug)]
pub struct Merge {
    /// Logs of `headstart tune --log`; where several have a trial, the last one counts
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Write the merged log to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
}

/// The options of `headstart run`.
#[derive(Args, Debug)]
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

/// The options of `headstart sweep`.
#[derive(Args, Debug)]
#[command(after_help = SWEEP_EXAMPLES)]
pub struct Sweep {
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// What to vary, and through which values: a number of the device's model (`dram.latency`), a parameter of the kernel
    /// (`items`), `distance`, `strategy` or `plan`. A..B:N are N values from A to B, A..B doubles from A to B, A,B,C is a
    /// list; plans are separated by semicolons. May be repeated
    #[arg(long, value_name = "NAME=VALUES", required = true)]
    pub over: Vec<String>,
    /// The plan to run, or whose distance or strategy is varied: its first load gets the distance, the others keep their lead
    /// over it [default: where a distance is varied, the fastest strategy alone]
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
    /// A plan of the kernel of --kernel; or a report, `FILE.json` of `headstart tune --json`; or a version of a kernel: one of
    /// the gallery, a file `FILE.hsir`, `FILE.ptx[:entry]` or `FILE.spv[:entry]`, or the folder of a captured launch
    #[arg(value_name = "A")]
    pub a: String,
    /// The same kind, which is compared with A
    #[arg(value_name = "B")]
    pub b: String,
    /// A and B are plans of this kernel
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub data: DataOptions,
    /// For two versions from files: B's geometry and arguments, where they are not those of --launch
    #[arg(long, value_name = "FILE.toml", conflicts_with = "kernel")]
    pub launch_b: Option<PathBuf>,
    #[command(flatten)]
    pub on: DeviceOptions,
    #[command(flatten)]
    pub check: CheckOptions,
    /// The form of the code that is compared [default: the text of the entries where both are PTX, or else `ir`]
    #[arg(long, value_enum, value_name = "FORM")]
    pub code: Option<CodeForm>,
    /// Print the whole difference of the code, however long it is
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
    /// Change one number of the simulated device's model, in the model's unit; may be repeated
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// In PTX, tell NVIDIA's compiler that a core is to hold N work-groups, and so how many registers it may use; the number of
    /// the launch where that is small, unless told
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub groups_per_core: Option<u32>,
    #[command(flatten)]
    pub check: CheckOptions,
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
    /// The form in which OpenCL devices take kernels, Intel's GPUs among them
    Spirv,
    /// The instructions that the simulator times
    Machine,
}

/// The options of `headstart occupancy`.
#[derive(Args, Debug)]
pub struct Occupancy {
    /// The device, as `headstart devices` lists them, or a model file
    #[arg(long, value_name = "DEVICE", default_value = "sim:h200")]
    pub device: String,
    /// Change one number of the simulated device's model, in the model's unit; may be repeated
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// Work-items of a work-group
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub group: u32,
    /// Work-items of a sub-group [default: the device's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub sub_group: Option<u32>,
    /// 32-bit registers of a work-item
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1 << 16))]
    pub registers: u32,
    /// Bytes of shared memory of a work-group
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub shared: u32,
    /// Threads get the large register file (Intel)
    #[arg(long)]
    pub large_grf: bool,
    /// The kernel has a work-group barrier
    #[arg(long)]
    pub barrier: bool,
    /// Write the numbers as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The options of `headstart devices`.
#[derive(Args, Debug)]
pub struct Devices {
    /// List the numbers of a simulated device's model, each with its unit, its source and what it is; NAME is `h200`, or a
    /// model file
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Write the list as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The options of `headstart kernels`.
#[derive(Args, Debug)]
pub struct Kernels {
    /// A module, `FILE.ptx` or `FILE.spv`; the gallery where it is left out
    #[arg(value_name = "FILE", conflicts_with = "bin")]
    pub file: Option<String>,
    /// The kernels that this program launches. The program is built with the crate `headstart`; it is run once
    #[arg(long, value_name = "PROGRAM")]
    pub bin: Option<PathBuf>,
    /// The program's arguments, after `--`
    #[arg(last = true, value_name = "ARGUMENTS", requires = "bin")]
    pub arguments: Vec<OsString>,
    /// Write the list as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What `headstart bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// The documents' kernels.
    Documents,
    /// The workloads.
    Workloads,
    /// The techniques, each as it is.
    Techniques,
    /// The techniques of the host's side: queues, transfers, allocations, compilation; on `sim:NAME`, too.
    Host,
    /// The simulator's answers held against the GPU's: measured on `cuda:N`, simulated on `sim:NAME`, in one file.
    Accuracy,
    /// The mathematical functions in single precision, each beside CUDA's own.
    Functions,
    /// The simulator's own speed: the plain kernels of the accuracy suite on `sim:NAME`, no GPU.
    Timer,
    /// All of them but the functions, the accuracy, the timer and the host's techniques.
    All,
}

/// The options of `headstart corpus`.
#[derive(Args, Debug)]
pub struct Corpus {
    /// Modules `*.ptx`, and for each entry a launch file `launch/ENTRY.toml`
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The GPU
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub device: String,
    /// Only the entries whose `MODULE:ENTRY` contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub case: Vec<String>,
    /// Measure the entries as they were and as they are written again; try no plans
    #[arg(long)]
    pub without_tuning: bool,
    /// Write the results as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The options of `headstart calibrate`.
#[derive(Args, Debug)]
pub struct Calibrate {
    /// The device: a GPU, or a simulated one, which must give its own numbers back [default: the first GPU]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Change one number of the simulated device's model; may be repeated
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// Take what an earlier run measured, instead of measuring
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["device", "model"])]
    pub from: Option<PathBuf>,
    /// Write the device's model to FILE.toml
    #[arg(long, short, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// The model that the new one is made from, and that is compared without one [default: of the same device, or the
    /// most similar one]
    #[arg(long, value_name = "MODEL")]
    pub base: Option<String>,
    /// Print what the model gives beside what was measured, each row as it comes; beside `--output` only what the model's
    /// changed numbers follow from, unless it is `--compare=all`
    #[arg(long, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "changed")]
    pub compare: Option<Rows>,
    /// Only the microbenchmarks whose name and settings contain this; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub case: Vec<String>,
    /// Write what was measured as JSON to FILE, after each microbenchmark, and what it was compared with; `-` for standard
    /// output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The options of `headstart offload`.
#[derive(Args, Debug)]
pub struct Offload {
    /// The loops: a CSV with the columns loop, seconds (of all calls), calls, and of a call iterations, bytes in, bytes out, bytes,
    /// flops, flops 64
    #[arg(value_name = "FILE.csv")]
    pub profile: PathBuf,
    /// The device, by its model
    #[arg(long, value_name = "DEVICE", default_value = "sim:h200")]
    pub device: String,
    /// Change one number of the device's model; may be repeated
    #[arg(long, value_name = "PATH=NUMBER")]
    pub model: Vec<String>,
    /// Seconds of the whole program on the host [default: those of its loops]
    #[arg(long, value_name = "SECONDS")]
    pub program: Option<f64>,
    /// Write the answer as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The options of `headstart kit`.
#[derive(Args, Debug)]
pub struct Kit {
    /// The device to measure: `opencl:0`, `cuda:0`, or a simulated one to try it out
    #[arg(value_name = "DEVICE", conflicts_with = "from")]
    pub device: Option<String>,
    /// Read what was measured, make a model of it, and hold that against the measured cases
    #[arg(long, value_name = "FILE.json")]
    pub from: Option<PathBuf>,
    /// Write what is measured to FILE.json, after each step; the same command goes on where it was stopped. With `--from` the
    /// model's FILE.toml
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How long it may take, in seconds: nothing is begun after that
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..=864_000))]
    pub budget: u64,
    /// Only the microbenchmarks and cases whose names contain this; may be repeated
    #[arg(long, value_name = "TEXT", conflicts_with = "from")]
    pub case: Vec<String>,
    /// With `--from`: the model that the new one is made from [default: the most similar one of the same maker]
    #[arg(long, value_name = "MODEL", requires = "from")]
    pub base: Option<String>,
    /// With `--from`: write the comparison as a page of Markdown to FILE
    #[arg(long, value_name = "FILE", requires = "from")]
    pub page: Option<PathBuf>,
}

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
pub struct Bench {
    /// The GPU
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0")]
    pub device: String,
    /// The documents' kernels under many plans, the workloads beside PyTorch and CUDA, the techniques, all of these; the
    /// techniques of the host; or the simulator's answers against the GPU's
    #[arg(long, value_enum, default_value_t = Suite::All)]
    pub suite: Suite,
    /// Only the cases whose names contain this; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub case: Vec<String>,
    /// Without the plans that contain this; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub except: Vec<String>,
    /// A folder of CUDA programs to compare with: each .cu file is built and run, and the times that it prints
    /// are kept
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
    /// The Python that has PyTorch, for the workloads
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub python: PathBuf,
    /// Of the workloads: all combinations of the embedding bag's settings; otherwise those chosen by hand, and as many more
    /// as it takes until any two values of two settings meet
    #[arg(long)]
    pub all_bags: bool,
    /// Workloads without PyTorch and CUDA beside them
    #[arg(long)]
    pub without_programs: bool,
    /// NVIDIA's compiler, for the peers
    #[arg(long, value_name = "PROGRAM", default_value = "nvcc")]
    pub nvcc: PathBuf,
    /// Counted launches of each plan
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Of the accuracy suite and of the workloads: only part I of N of the cases, counted from 1
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Of the accuracy suite and of the workloads: begin no case after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub limit: Option<u64>,
    /// Of the accuracy suite and of the workloads: take what these files have first; may be repeated
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// Of the accuracy suite: write what was found as a page of Markdown to FILE
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Two work-groups and few iterations: checks the kernels, for tools that slow them down
    #[arg(long)]
    pub small: bool,
    /// Do not compare outputs with the simulator's, only with the plain kernel's on the GPU
    #[arg(long)]
    pub without_simulator: bool,
    /// Write the results as JSON to FILE, `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
