//! Trials in a process of their own.
//!
//! A kernel that faults poisons its process's context, and one that never ends can be stopped only with
//! its process. So the plans of a kernel are tried in a child process, the *worker*: the same program,
//! started with the hidden command `worker`. One worker serves as long as it is healthy; after a fault
//! or a time limit it is killed and the next request starts another, which repeats the set-up. That is
//! cheap: inputs are filled on the GPU, and the driver keeps compiled kernels in a cache of its own.
//!
//! # Protocol
//!
//! Requests go to the worker's standard input, replies come from its standard output: JSON, one line
//! each, one reply for each request, in order. Contents of buffers travel in files.
//!
//! The driver writes kernels' printed lines to the same standard output. So each reply starts on a line of its own, with a
//! mark; everything between the replies was printed. The mark holds a random number that the worker gets in its environment,
//! where no kernel can see it.
//!
//! ```text
//! {"open":{"device":0}}                                  {"opened":{"name":"NVIDIA H200",…}}
//! {"bind":{"arguments":[{"scalar":[4,0,0,0]},…]}}        "bound"
//! {"assemble":{"ptx":"…","code":"/tmp/…"}}               "assembled"               to processes that compile beside it
//! {"load":{"modules":[{"name":"none","ptx":"…",…}]}}     {"loaded":[{"Ok":{"registers":18,…}},…]}
//! {"check":{"module":"none",…}}                          {"checked":{"elapsed_ns":1273000.0}}
//! {"time":{"candidates":["none",…],"options":{…}}}       {"timed":[{"median_ns":1273000.0,…},…]}
//!                                                        {"failed":{"kind":"fault","what":"…"}}
//! ```

mod client;
mod compile;
mod initial;
mod output;
mod reference;
mod serve;
mod variables;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::compare::Difference;
use super::failure::Failure;
use super::gpu::GpuFacts;
use super::launch::Geometry;
use super::module::Compiled;
use super::timing::{Timing, TimingOptions};
pub use headstart_device::Piece;

pub use client::{Argument, Checked, OutputContents, Referred, Verified, Worker};

/// The environment variable with the prefix of each reply's line. A newline comes before it, in case a kernel left a line
/// without one.
#[doc(hidden)]
pub const MARK_VARIABLE: &str = "HEADSTART_WORKER_MARK";
#[doc(hidden)]
pub use initial::contents;
pub use serve::serve;

/// The requests to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Open a GPU. The first request.
    Open {
        /// Its number.
        device: usize,
    },
    /// Allocate and fill the arguments of all kernels, replacing those bound before.
    Bind {
        /// One for each parameter, in order.
        arguments: Vec<BindArgument>,
        /// Buffers are to end at a page that is not mapped, where the GPU can do that. They are filled before each launch
        /// that is checked, and before they are timed.
        #[serde(default)]
        guarded: bool,
    },
    /// Compile modules, several at a time, and keep them under their names.
    Load {
        /// The modules.
        modules: Vec<Module>,
    },
    /// Compile a module this many times, one after the other, and forget it.
    Compile {
        /// The module.
        module: Module,
        /// How often.
        times: u32,
    },
    /// Compile a text to machine code, and do not load it.
    Assemble {
        /// PTX.
        ptx: String,
        /// The file for the machine code.
        code: PathBuf,
    },
    /// Keep the expected outputs, replacing those kept before.
    Expect {
        /// A file for each output, in the parameters' order; none to expect nothing.
        outputs: Vec<PathBuf>,
    },
    /// Fill the outputs anew, launch a module once, and write as many outputs as there are files.
    Check {
        /// Its name.
        module: String,
        /// The longest that the launch may take.
        limit: Duration,
        /// A file for each output, in the parameters' order.
        outputs: Vec<PathBuf>,
        /// Outputs with the expected contents are not written.
        compare: bool,
    },
    /// Launch a module on restored inputs and poisoned outputs, twice, and keep its outputs on the GPU, for comparison with
    /// others.
    Refer {
        /// Its name.
        module: String,
        /// The longest that a launch may take.
        limit: Duration,
    },
    /// Launch a module on its last launch's outputs, and compare the new ones with those kept.
    Again {
        /// Its name.
        module: String,
        /// The longest that the launch may take.
        limit: Duration,
    },
    /// Launch a module on restored inputs and poisoned outputs, and compare its outputs with those kept.
    Verify {
        /// Its name.
        module: String,
        /// The longest that the launch may take.
        limit: Duration,
        /// Which of the poisons (`compare::POISONS`).
        poison: usize,
    },
    /// Write pieces of outputs to a file, one behind the other.
    Fetch {
        /// Whose outputs.
        whose: Whose,
        /// Which bytes of them.
        pieces: Vec<Piece>,
        /// The file.
        file: PathBuf,
    },
    /// Time modules against each other.
    Time {
        /// Their names.
        candidates: Vec<String>,
        /// How.
        options: TimingOptions,
        /// Outputs that are given contents are put back before each launch.
        #[serde(default)]
        restore: bool,
    },
    /// Forget modules.
    Unload {
        /// Their names.
        modules: Vec<String>,
    },
}

/// The worker's replies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Open`]: the GPU's properties.
    Opened(GpuFacts),
    /// To [`Request::Bind`].
    Bound,
    /// To [`Request::Expect`].
    Expected,
    /// To [`Request::Load`]: the outcome of each module, in order.
    Loaded(Vec<Result<Loaded, Failure>>),
    /// The same if the compiler is still busy with modules that exceeded the time limit. The worker must be replaced.
    LoadedInPart(Vec<Result<Loaded, Failure>>),
    /// To [`Request::Compile`]: from PTX to a loaded module, each time.
    Compiled(Vec<Duration>),
    /// To [`Request::Assemble`].
    Assembled,
    /// To [`Request::Check`].
    Checked {
        /// The launch's time on the GPU from event to event, in nanoseconds.
        elapsed_ns: f64,
        /// The outputs with the expected contents, which were not written.
        #[serde(default)]
        as_expected: Vec<bool>,
    },
    /// To [`Request::Refer`].
    Referred {
        /// The first launch's time on the GPU from event to event, in nanoseconds.
        elapsed_ns: f64,
        /// The inputs that it wrote, by their place among the arguments.
        wrote: Vec<usize>,
        /// How each output of a second launch differs from that, with another poison.
        other_poison: Vec<Difference>,
        /// Where one does: how each output of a third launch differs, with the first poison.
        same_poison: Option<Vec<Difference>>,
        /// Whether each buffer ended at a page that is not mapped.
        guarded: bool,
    },
    /// To [`Request::Verify`], and to [`Request::Again`].
    Verified {
        /// The launch's time on the GPU from event to event, in nanoseconds.
        elapsed_ns: f64,
        /// The inputs that it wrote, by their place among the arguments.
        wrote: Vec<usize>,
        /// How each output differs from the one kept.
        differences: Vec<Difference>,
    },
    /// To [`Request::Fetch`].
    Fetched,
    /// To [`Request::Time`], in the candidates' order.
    Timed(Vec<Timing>),
    /// To [`Request::Unload`].
    Unloaded,
    /// To any request.
    Failed(Failure),
}

/// Whose outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// Those that were kept.
    Reference,
    /// Those of the last launch.
    Last,
}

/// A kernel's text, and how it is launched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// Its name in later requests.
    pub name: String,
    /// PTX.
    pub ptx: String,
    /// The kernel's name in the PTX.
    pub entry: String,
    /// How it is launched.
    pub geometry: Geometry,
    /// A file with its machine code, if it was compiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<PathBuf>,
}

impl Module {
    /// Removes the file of one that is not loaded any more.
    fn forget(self) {
        if let Some(file) = self.code {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// A module that was compiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// The driver's compiler's output for it.
    pub compiled: Compiled,
    /// How many of its work-groups a core holds at a time, as the driver computes it.
    pub groups_per_core: u32,
}

/// A parameter's argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindArgument {
    /// A scalar's bytes, lowest first.
    Scalar(Vec<u8>),
    /// A buffer.
    Buffer {
        /// Type of the elements, as the IR's text form spells it.
        element: String,
        /// Number of elements.
        length: u64,
        /// Its contents.
        fill: Contents,
        /// Whether kernels write results into it.
        output: bool,
        /// The alignment of its first byte: a power of two.
        #[serde(default = "least_alignment")]
        align: u32,
        /// Whether its address is a parameter's argument.
        is_passed: bool,
    },
    /// An output of bytes at an address, which is not passed: other arguments lead there.
    Placed {
        /// The address of its first byte.
        address: u64,
        /// Number of bytes.
        length: u64,
        /// Its contents.
        fill: Contents,
    },
    /// A pointer into the buffer of another parameter.
    Part {
        /// That parameter's position.
        of: usize,
        /// How many bytes of the buffer lie in front of where it points to.
        bytes: u64,
    },
    /// No parameter: a variable that each module has of its own. Before a launch it gets what this memory holds, and an output
    /// gets what it holds behind it.
    Variable {
        /// Its name in the modules.
        name: String,
        /// The position of the argument whose memory it is.
        of: usize,
        /// Where it starts in that, in bytes.
        start: u64,
        /// Its size in bytes.
        bytes: u64,
    },
}

fn least_alignment() -> u32 {
    crate::ir::limits::BUFFER_ALIGNMENT
}

/// A buffer's initial contents: a [`Pattern`](headstart_device::Pattern), or a file's bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Nothing in particular.
    Uninitialized,
    /// The bytes of this file.
    File(PathBuf),
    /// [`Pattern::Constant`](headstart_device::Pattern::Constant).
    Constant(u64),
    /// [`Pattern::Steps`](headstart_device::Pattern::Steps).
    Steps {
        /// Element 0.
        first: u64,
        /// The difference between elements.
        step: u64,
    },
    /// [`Pattern::Below`](headstart_device::Pattern::Below).
    Below {
        /// One more than the largest.
        bound: u64,
        /// The seed.
        seed: u64,
    },
    /// [`Pattern::Fractions`](headstart_device::Pattern::Fractions): the bits of the least, an `f64`.
    Fractions(u64),
    /// [`Pattern::Bits`](headstart_device::Pattern::Bits): the seed.
    Bits(u64),
}
