//! The worker's side: requests in, replies out, until the input ends or the context is lost.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::compile;
use super::initial::{Initial, bytes_of};
use super::reference::{Fills, Ran, Reference, Referred};
use super::variables::Variable;
use super::{BindArgument, Loaded, MARK_VARIABLE, Module, Reply, Request};
use crate::back::ptx::PtxTarget;
use crate::compare::{Comparer, POISONS};
use crate::failure::{Failure, FailureKind};
use crate::gpu::Gpu;
use crate::guarded::Placement;
use crate::ir::Type;
use crate::launch::{Arguments, Geometry};
use crate::memory::Buffer;
use crate::module::Function;
use crate::ptxas;
use crate::timing::{Candidate, Timing, TimingOptions, time};
use crate::{Error, Result};

/// Answers requests until the input ends, or until nothing more can be done in this process.
///
/// # Errors
/// The input cannot be read or the output not be written: the parent is gone.
pub fn serve(input: impl BufRead, mut output: impl Write) -> Result<()> {
    let gone = |error: std::io::Error| {
        Error::device(format!("the process that started this worker is gone: {error}"))
    };
    let mark = std::env::var(MARK_VARIABLE).map_err(|_| {
        Error::usage("a worker is started by the command that needs it").accepted("`headstart tune`, …")
    })?;
    end_with_parent();
    let mut state = None;
    for line in input.lines() {
        let line = line.map_err(gone)?;
        let reply = match serde_json::from_str::<Request>(&line) {
            Ok(request) => answer(&mut state, request).unwrap_or_else(Reply::Failed),
            Err(error) => Reply::Failed(Failure::new(
                FailureKind::Request,
                format!("not a request: {error}"),
            )),
        };
        let text = serde_json::to_string(&reply).map_err(|error| Error::bug(error.to_string()))?;
        writeln!(output, "\n{mark}{text}")
            .and_then(|()| output.flush())
            .map_err(gone)?;
        if matches!(&reply, Reply::Failed(failure) if failure.kind.poisons()) {
            break;
        }
    }
    Ok(())
}

/// How much longer a kernel may take to be loaded than to be compiled: an assembler that is stopped says so itself.
const SLACK: Duration = Duration::from_secs(2);

/// How often a worker looks whether it is still wanted.
const LOOKS: Duration = Duration::from_millis(200);

/// Ends this process soon after the one that started it. One that was killed cannot end its worker, which would go on
/// launching kernels, or wait for one that never ends.
fn end_with_parent() {
    let parent = std::os::unix::process::parent_id();
    let watch = move || {
        while std::os::unix::process::parent_id() == parent {
            thread::sleep(LOOKS);
        }
        // An orderly end waits for the GPU.
        std::process::abort();
    };
    // Without a thread it ends with its input.
    let _ = thread::Builder::new().spawn(watch);
}

/// An open GPU, with bound arguments and loaded modules.
pub(super) struct State {
    pub gpu: Gpu,
    pub target: PtxTarget,
    pub arguments: Vec<Bound>,
    /// Buffers end at a page that is not mapped.
    guarded: bool,
    /// The expected outputs, if known.
    expected: Vec<Vec<u8>>,
    /// A kernel's outputs, on the GPU.
    pub reference: Option<Reference>,
    /// The outputs' contents before the last checked launch.
    pub poison: u8,
    pub comparer: Option<Comparer>,
    pub fills: Fills,
    modules: HashMap<String, (Function, Geometry)>,
}

pub(super) enum Bound {
    Scalar(Vec<u8>),
    Buffer {
        memory: Buffer,
        element: Type,
        length: u64,
        initial: Initial,
        output: bool,
        /// Whether its address is an argument.
        is_passed: bool,
        /// For a checked input: a checksum of its expected contents; none if it is to be filled.
        sum: Option<u64>,
    },
    Variable(Variable),
    /// This many bytes into the buffer of this argument.
    Part {
        of: usize,
        bytes: u64,
    },
}

fn answer(state: &mut Option<State>, request: Request) -> Result<Reply, Failure> {
    if let Request::Open { device } = request {
        let opened = State::open(device)?;
        let facts = opened.gpu.facts().clone();
        *state = Some(opened);
        return Ok(Reply::Opened(facts));
    }
    let state = state.as_mut().ok_or_else(|| {
        Failure::new(FailureKind::Request, "no GPU is open").accepted("the request `open` first")
    })?;
    match request {
        Request::Open { .. } => Err(Failure::new(FailureKind::Request, "a GPU is open already")),
        Request::Bind { arguments, guarded } => {
            state.bind_all(&arguments, guarded)?;
            Ok(Reply::Bound)
        }
        Request::Expect { outputs } => {
            // The former expectations are freed first.
            state.expected.clear();
            state.expected = outputs
                .iter()
                .map(|file| bytes_of(file))
                .collect::<Result<_, _>>()?;
            Ok(Reply::Expected)
        }
        Request::Load { modules } => Ok(state.load(modules)),
        Request::Compile { module, times } => (0..times)
            .map(|_| Ok(state.gpu.load(&module.ptx, &module.entry)?.compiled().load_time))
            .collect::<Result<_, Failure>>()
            .map(Reply::Compiled),
        Request::Assemble { ptx, code } => {
            let bytes = state.gpu.assemble(&ptx)?;
            let failed = |error| format!("{} cannot be written: {error}", code.display());
            std::fs::write(&code, bytes).map_err(|error| Failure::new(FailureKind::Driver, failed(error)))?;
            Ok(Reply::Assembled)
        }
        Request::Check {
            module,
            limit,
            outputs,
            compare,
        } => {
            match state.guarded {
                true => state.restore(Placement::Tight, POISONS[0])?,
                false => state.refill()?,
            }
            let elapsed_ns = state.launch(&module, limit)?;
            let as_expected = state.write_outputs(&outputs, compare)?;
            Ok(Reply::Checked {
                elapsed_ns,
                as_expected,
            })
        }
        Request::Refer { module, limit } => {
            let Referred {
                ran: Ran { elapsed_ns, wrote },
                other_poison,
                same_poison,
            } = state.refer(&module, limit)?;
            Ok(Reply::Referred {
                elapsed_ns,
                wrote,
                other_poison,
                same_poison,
                guarded: state.guarded,
            })
        }
        Request::Again { module, limit } => {
            let elapsed_ns = state.launch(&module, limit)?;
            let differences = state.differences(state.poison)?;
            Ok(Reply::Verified {
                elapsed_ns,
                wrote: Vec::new(),
                differences,
            })
        }
        Request::Verify {
            module,
            limit,
            poison,
        } => {
            let poison = POISONS[poison % POISONS.len()];
            let Ran { elapsed_ns, wrote } = state.run_checked(&module, limit, poison)?;
            let differences = state.differences(poison)?;
            Ok(Reply::Verified {
                elapsed_ns,
                wrote,
                differences,
            })
        }
        Request::Fetch { whose, pieces, file } => {
            state.fetch(whose, &pieces, &file)?;
            Ok(Reply::Fetched)
        }
        Request::Time {
            candidates,
            options,
            restore,
        } => Ok(Reply::Timed(state.time(&candidates, &options, restore)?)),
        Request::Unload { modules } => {
            for name in modules {
                state.modules.remove(&name);
            }
            Ok(Reply::Unloaded)
        }
    }
}

impl State {
    fn open(device: usize) -> Result<State, Failure> {
        let gpu = Gpu::open(device)?;
        let facts = gpu.facts();
        let target = PtxTarget::for_capability(facts.capability)
            .ok_or_else(|| Failure::new(FailureKind::OldDevice, format!("{} is too old", facts.name)))?;
        Ok(State {
            gpu,
            target,
            arguments: Vec::new(),
            guarded: false,
            expected: Vec::new(),
            reference: None,
            poison: POISONS[0],
            comparer: None,
            fills: Fills::new(),
            modules: HashMap::new(),
        })
    }

    fn bind_all(&mut self, arguments: &[BindArgument], guarded: bool) -> Result<(), Failure> {
        // The former arguments are freed first.
        self.arguments.clear();
        self.reference = None;
        self.guarded = guarded && self.gpu.can_guard();
        let at: Vec<(u64, usize)> = arguments
            .iter()
            .filter_map(|given| match given {
                BindArgument::Placed { address, length, .. } => Some((*address, *length as usize)),
                BindArgument::Scalar(_)
                | BindArgument::Buffer { .. }
                | BindArgument::Part { .. }
                | BindArgument::Variable { .. } => None,
            })
            .collect();
        let mut placed = self.gpu.allocate_at(&at)?.into_iter();
        for given in arguments {
            let bound = self.bind(given, &mut placed)?;
            self.arguments.push(bound);
        }
        self.gpu.wait(Duration::from_secs(60))
    }

    fn time(
        &mut self,
        candidates: &[String],
        options: &TimingOptions,
        restore: bool,
    ) -> Result<Vec<Timing>, Failure> {
        if self.guarded {
            // Where plain buffers would begin, so that they are timed like these.
            self.restore(Placement::Plain, POISONS[0])?;
        }
        let candidates = candidates
            .iter()
            .map(|name| {
                let (function, geometry) = self.module(name)?;
                Ok(Candidate {
                    function,
                    geometry,
                    arguments: self.arguments(),
                })
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        let gpu = self.gpu.clone();
        let fill = |state: &State| {
            let mut all = candidates.iter();
            all.try_for_each(|own| state.fill_variables(&own.function))
        };
        fill(self)?;
        let mut before = || {
            if restore {
                self.refill_given()?;
                fill(self)?;
            }
            Ok(())
        };
        time(&gpu, &candidates, options, &mut before)
    }

    /// `placed` has the memory of those that lie at addresses, in their order.
    fn bind(
        &mut self,
        given: &BindArgument,
        placed: &mut impl Iterator<Item = Buffer>,
    ) -> Result<Bound, Failure> {
        let (element, length, mut initial, output, align, is_passed) = match given {
            BindArgument::Scalar(bytes) => return Ok(Bound::Scalar(bytes.clone())),
            BindArgument::Placed { length, fill, .. } => {
                let lost = || Failure::new(FailureKind::Request, "memory at an address is lost");
                let mut memory = placed.next().ok_or_else(lost)?;
                let mut initial = Initial::of(fill);
                initial.check(Type::I8, *length)?;
                self.put(&mut initial, &mut memory, (Type::I8, *length))?;
                return Ok(Bound::Buffer {
                    memory,
                    element: Type::I8,
                    length: *length,
                    initial,
                    output: true,
                    is_passed: false,
                    sum: None,
                });
            }
            BindArgument::Part { of, bytes } => {
                return Ok(Bound::Part {
                    of: *of,
                    bytes: *bytes,
                });
            }
            BindArgument::Variable {
                name,
                of,
                start,
                bytes,
            } => {
                return Ok(Bound::Variable(Variable {
                    name: name.clone(),
                    of: *of,
                    start: *start,
                    bytes: *bytes,
                }));
            }
            BindArgument::Buffer {
                element,
                length,
                fill,
                output,
                align,
                is_passed,
            } => (element, *length, Initial::of(fill), *output, *align, *is_passed),
        };
        let element = Type::parse(element)
            .ok_or_else(|| Failure::new(FailureKind::Request, format!("`{element}` is not a type")))?;
        let bytes = initial.check(element, length)?;
        let mut memory = match self.guarded {
            true => self.gpu.allocate_guarded(bytes as usize, align as usize)?,
            false => self.gpu.allocate(bytes as usize)?,
        };
        // Guarded buffers are filled before each launch, at their new address.
        if !self.guarded {
            self.put(&mut initial, &mut memory, (element, length))?;
        }
        Ok(Bound::Buffer {
            memory,
            element,
            length,
            initial,
            output,
            is_passed,
            sum: None,
        })
    }

    /// Puts its initial contents into memory.
    fn put(
        &mut self,
        initial: &mut Initial,
        memory: &mut Buffer,
        elements: (Type, u64),
    ) -> Result<(), Failure> {
        initial.put((&self.gpu, self.target), memory, elements, &mut self.fills)
    }

    /// Launches a module and waits for its end: its time on the GPU, in nanoseconds.
    pub(super) fn launch(&self, module: &str, limit: Duration) -> Result<f64, Failure> {
        let (function, geometry) = self.module(module)?;
        let arguments = self.arguments();
        self.fill_variables(&function)?;
        let (mut start, mut end) = (self.gpu.event()?, self.gpu.event()?);
        start.record()?;
        function.launch(geometry, &arguments)?;
        end.record()?;
        end.wait(limit)?;
        self.fetch_variables(&function)?;
        let elapsed_ns = end.since(&start)?.as_secs_f64() * 1e9;
        self.gpu.hand_over_prints()?;
        Ok(elapsed_ns)
    }

    /// The memory of each output, in the parameters' order.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Buffer> {
        self.arguments.iter().filter_map(|argument| match argument {
            Bound::Buffer {
                memory, output: true, ..
            } => Some(memory),
            _ => None,
        })
    }

    /// Restores the outputs' initial contents.
    fn refill(&mut self) -> Result<(), Failure> {
        self.refill_those(|_| true)
    }

    /// The same of outputs that are given contents.
    fn refill_given(&mut self) -> Result<(), Failure> {
        self.refill_those(|initial| !initial.is_nothing())
    }

    fn refill_those(&mut self, is_wanted: impl Fn(&Initial) -> bool) -> Result<(), Failure> {
        for argument in &mut self.arguments {
            if let Bound::Buffer {
                memory,
                element,
                length,
                initial,
                output: true,
                ..
            } = argument
                && is_wanted(initial)
            {
                let how = (&self.gpu, self.target);
                initial.put(how, memory, (*element, *length), &mut self.fills)?;
            }
        }
        Ok(())
    }

    fn arguments(&self) -> Arguments {
        let mut arguments = Arguments::new();
        for argument in &self.arguments {
            match argument {
                Bound::Scalar(bytes) => arguments.push(bytes),
                Bound::Buffer { is_passed: false, .. } | Bound::Variable(_) => {}
                Bound::Buffer { memory, .. } => arguments.push_address(memory.address()),
                Bound::Part { of, bytes } => match self.arguments.get(*of) {
                    Some(Bound::Buffer { memory, .. }) => arguments.push_address(memory.address() + bytes),
                    _ => arguments.push_address(0),
                },
            }
        }
        arguments
    }

    fn module(&self, name: &str) -> Result<(Function, Geometry), Failure> {
        let found = self.modules.get(name).cloned();
        found.ok_or_else(|| Failure::new(FailureKind::Request, format!("no module `{name}` is loaded")))
    }

    /// Writes outputs to files; if they are compared, only those that differ from the expected contents. Returns which.
    fn write_outputs(&self, files: &[PathBuf], compare: bool) -> Result<Vec<bool>, Failure> {
        let outputs = self.outputs();
        let mut as_expected = Vec::with_capacity(files.len());
        for (index, (memory, file)) in outputs.zip(files).enumerate() {
            let mut bytes = vec![0; memory.bytes()];
            memory.read(&mut bytes)?;
            let is_same = compare
                && self
                    .expected
                    .get(index)
                    .is_some_and(|expected| *expected == bytes);
            as_expected.push(is_same);
            if is_same {
                continue;
            }
            std::fs::write(file, bytes).map_err(|error| {
                Failure::new(
                    FailureKind::Driver,
                    format!("{} cannot be written: {error}", file.display()),
                )
            })?;
        }
        Ok(as_expected)
    }

    /// Compiles modules on as many threads as there are processors: the driver's compiler takes most of the time, and it
    /// compiles in parallel.
    fn load(&mut self, modules: Vec<Module>) -> Reply {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let (gpu, modules) = (self.gpu.clone(), Arc::new(modules));
        let given = Arc::clone(&modules);
        let limit = ptxas::limit() + SLACK;
        let compiled = compile::all(modules.len(), threads, limit, move |index| {
            let module: &Module = &given[index];
            let function = match &module.code {
                Some(file) => gpu.load_image(&bytes_of(file)?, &module.entry)?,
                None => gpu.load(&module.ptx, &module.entry)?,
            };
            let Geometry {
                group,
                dynamic_shared_bytes,
                ..
            } = module.geometry;
            if dynamic_shared_bytes > 0 {
                function.allow_shared_bytes(dynamic_shared_bytes)?;
            }
            let groups_per_core = function.groups_per_core(group.iter().product(), dynamic_shared_bytes)?;
            Ok((function, groups_per_core))
        });
        let kept = |(module, result): (&Module, Result<(Function, u32), Failure>)| {
            let (function, groups_per_core) = result?;
            let compiled = function.compiled().clone();
            self.modules
                .insert(module.name.clone(), (function, module.geometry));
            Ok(Loaded {
                compiled,
                groups_per_core,
            })
        };
        let loaded = modules.iter().zip(compiled.results).map(kept).collect();
        match compiled.is_busy {
            true => Reply::LoadedInPart(loaded),
            false => Reply::Loaded(loaded),
        }
    }
}
