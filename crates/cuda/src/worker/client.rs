//! The parent's side: starts workers, replaces lost ones, and waits with limits.

mod checks;
mod compilers;
mod process;
mod sent;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use checks::{Referred, Verified};
use compilers::Compilers;
use process::Process;
use sent::Sent;

use super::{BindArgument, Contents, Loaded, Module, Reply, Request};
use crate::Result;
use crate::failure::{Failure, FailureKind};
use crate::gpu::GpuFacts;
use crate::ir::Type;
use crate::ptxas;
use crate::timing::{Timing, TimingOptions};
use headstart_device::{Fill, Pattern};

/// How long anything but a launch may take: opening a GPU, filling gigabytes, compiling.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many processes are tried where addresses are taken. The system places each one's memory anew: of 66 programs one had
/// addresses that a worker's own memory lay at.
const PROCESSES: u32 = 4;

/// Tries kernels in another process.
pub struct Worker {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// The first request to a new process.
    open: Request,
    bind: Option<Request>,
    /// The expected outputs, as the worker knows them.
    expected: Option<Arc<Vec<Vec<u8>>>>,
    /// The module whose outputs the worker keeps, and how long a launch of it may take.
    referred: Option<(String, Duration)>,
    modules: Vec<Module>,
    facts: Option<GpuFacts>,
    process: Option<Process>,
    /// How many processes were started.
    started: u32,
    folder: tempfile::TempDir,
    /// The files in which contents of buffers travel.
    sent: Sent,
    outputs: usize,
    compilers: Compilers,
}

/// The outcome of one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Its time on the GPU, in nanoseconds.
    pub elapsed_ns: f64,
    /// The contents of each requested output, in the parameters' order.
    pub outputs: Vec<OutputContents>,
    /// The kernel's printed lines: the last megabyte of them.
    pub printed: String,
}

/// An output's contents after a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputContents {
    /// The expected contents.
    Expected,
    /// Its bytes.
    Bytes(Vec<u8>),
}

/// Tries again, in another process each time, where addresses are taken.
fn where_addresses_are_free<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let is_taken = |failure: &Failure| failure.kind == FailureKind::AddressTaken;
    let mut result = attempt();
    for _ in 1..PROCESSES {
        if result.as_ref().is_err_and(is_taken) {
            result = attempt();
        }
    }
    result
}

impl Worker {
    /// Starts a worker on a GPU: `program` with `arguments` must call [`serve`](super::serve).
    ///
    /// # Errors
    /// The program cannot be started, or the GPU not be opened.
    pub fn start(program: &Path, arguments: &[OsString], device: usize) -> Result<Worker, Failure> {
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::new(FailureKind::Worker, format!("no temporary folder: {error}")))?;
        let mut worker = Worker {
            program: program.to_owned(),
            arguments: arguments.to_vec(),
            open: Request::Open { device },
            bind: None,
            expected: None,
            referred: None,
            modules: Vec::new(),
            facts: None,
            process: None,
            started: 0,
            sent: Sent::in_folder(folder.path()),
            folder,
            outputs: 0,
            compilers: Compilers::default(),
        };
        worker.ensure()?;
        Ok(worker)
    }

    /// The GPU's properties.
    pub fn facts(&self) -> Option<&GpuFacts> {
        self.facts.as_ref()
    }

    /// How many processes were started so far: 1 if none was lost.
    pub fn started(&self) -> u32 {
        self.started
    }

    /// Allocates and fills the arguments of all kernels: a scalar's type and bits, or a buffer with its element type, length,
    /// contents, and whether it is an output.
    ///
    /// # Errors
    /// The GPU's memory is too small, or the contents do not fit the buffers.
    pub fn bind(&mut self, arguments: &[Argument<'_>]) -> Result<(), Failure> {
        self.bind_as(arguments, false)
    }

    /// The same for [`Worker::refer`] and [`Worker::verify`]: each buffer ends at a page that is not mapped, where the GPU
    /// can do that.
    ///
    /// # Errors
    /// As for [`Worker::bind`].
    #[doc(hidden)]
    pub fn bind_guarded(&mut self, arguments: &[Argument<'_>]) -> Result<(), Failure> {
        self.bind_as(arguments, true)
    }

    fn bind_as(&mut self, arguments: &[Argument<'_>], guarded: bool) -> Result<(), Failure> {
        self.outputs = arguments
            .iter()
            .filter(|argument| {
                matches!(
                    argument,
                    Argument::Buffer { output: true, .. } | Argument::Placed { .. }
                )
            })
            .count();
        let arguments = arguments
            .iter()
            .map(|argument| self.given(argument))
            .collect::<Result<Vec<_>, _>>()?;
        self.sent.drop_others();
        let request = Request::Bind { arguments, guarded };
        self.bind = None;
        self.referred = None;
        match where_addresses_are_free(|| self.request(&request, PATIENCE))? {
            Reply::Bound => {
                self.bind = Some(request);
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Sends the expected outputs. The same outputs are sent once.
    fn expect(&mut self, outputs: &Arc<Vec<Vec<u8>>>) -> Result<(), Failure> {
        let is_known = |known: &Arc<Vec<Vec<u8>>>| Arc::ptr_eq(known, outputs);
        if self.process.is_some() && self.expected.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        self.expected = Some(Arc::clone(outputs));
        match self.process {
            Some(_) => self.tell_expected(),
            None => self.ensure(),
        }
    }

    fn tell_expected(&mut self) -> Result<(), Failure> {
        let Some(outputs) = self.expected.clone() else {
            return Ok(());
        };
        let write = |(index, bytes): (usize, &Vec<u8>)| {
            let path = self.folder.path().join(format!("expected-{index}"));
            written(&path, [bytes]).map(|()| path)
        };
        let files = outputs
            .iter()
            .enumerate()
            .map(write)
            .collect::<Result<Vec<_>, _>>()?;
        let request = Request::Expect {
            outputs: files.clone(),
        };
        let reply = self.exchange(&request, PATIENCE);
        // The worker has read them.
        for file in files {
            let _ = std::fs::remove_file(file);
        }
        match reply? {
            Reply::Expected => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// An argument in a request: data without a closed form go through a file.
    fn given(&mut self, argument: &Argument<'_>) -> Result<BindArgument, Failure> {
        let (element, length, fill, output, align, is_passed) = match argument {
            Argument::Scalar(ty, bits) => {
                return Ok(BindArgument::Scalar(
                    bits.to_le_bytes()[..ty.bytes() as usize].to_vec(),
                ));
            }
            Argument::Placed { address, bytes } => {
                let (length, fill) = (bytes.len() as u64, Fill::Bytes(Arc::clone(bytes)));
                return Ok(BindArgument::Placed {
                    address: *address,
                    length,
                    fill: Contents::File(self.sent.file(Type::I8, length, &fill)?),
                });
            }
            Argument::Part { of, bytes } => {
                return Ok(BindArgument::Part {
                    of: *of,
                    bytes: *bytes,
                });
            }
            Argument::Variable {
                name,
                of,
                start,
                bytes,
            } => {
                return Ok(BindArgument::Variable {
                    name: (*name).to_owned(),
                    of: *of,
                    start: *start,
                    bytes: *bytes,
                });
            }
            Argument::Buffer {
                element,
                length,
                fill,
                output,
                align,
                is_passed,
            } => (*element, *length, *fill, *output, *align, *is_passed),
        };
        let fill = match fill {
            Fill::Uninitialized => Contents::Uninitialized,
            Fill::Bytes(_) | Fill::Pattern(Pattern::Function(_)) => {
                Contents::File(self.sent.file(element, length, fill)?)
            }
            Fill::Pattern(Pattern::Constant(bits)) => Contents::Constant(*bits),
            Fill::Pattern(Pattern::Steps { first, step }) => Contents::Steps {
                first: *first,
                step: *step,
            },
            Fill::Pattern(Pattern::Below { bound, seed }) => Contents::Below {
                bound: *bound,
                seed: *seed,
            },
            Fill::Pattern(Pattern::Fractions { low }) => Contents::Fractions(low.to_bits()),
            Fill::Pattern(Pattern::Bits { seed }) => Contents::Bits(*seed),
        };
        Ok(BindArgument::Buffer {
            element: element.name().to_owned(),
            length,
            fill,
            output,
            align,
            is_passed,
        })
    }

    /// Compiles modules and keeps them under their names. The outcome of each, in order.
    ///
    /// # Errors
    /// The worker was lost.
    pub fn load(&mut self, mut modules: Vec<Module>) -> Result<Vec<Result<Loaded, Failure>>, Failure> {
        let late = self.compile_beside(&mut modules);
        let in_time = modules.into_iter().zip(&late).filter(|(_, late)| late.is_none());
        let modules: Vec<Module> = in_time.map(|(module, _)| module).collect();
        let request = Request::Load {
            modules: modules.clone(),
        };
        // At worst each is late, one after the other.
        let limit = PATIENCE.saturating_add(ptxas::limit().saturating_mul(modules.len() as u32));
        self.ensure()?;
        let began = Instant::now();
        let reply = self.exchange(&request, limit)?;
        self.compilers.learn(&modules, began.elapsed());
        let is_busy = matches!(reply, Reply::LoadedInPart(_));
        let (Reply::Loaded(loaded) | Reply::LoadedInPart(loaded)) = reply else {
            return Err(unexpected(&reply));
        };
        for (module, loaded) in modules.into_iter().zip(&loaded) {
            match loaded {
                Ok(_) => self.modules.push(module),
                Err(_) => module.forget(),
            }
        }
        // The compiler can be stopped only with its process. The driver's cache keeps its finished work.
        if is_busy && let Some(process) = self.process.take() {
            process.end();
        }
        let mut loaded = loaded.into_iter();
        let lost = || Err(Failure::new(FailureKind::Worker, "a module was not loaded"));
        let of = |late: Option<Failure>| match late {
            Some(late) => Err(late),
            None => loaded.next().unwrap_or_else(lost),
        };
        Ok(late.into_iter().map(of).collect())
    }

    /// Compiles a module this many times, one after the other: how long each took, from PTX to a loaded module.
    ///
    /// # Errors
    /// The module cannot be compiled, or the worker was lost.
    pub fn compile(&mut self, module: Module, times: u32) -> Result<Vec<Duration>, Failure> {
        match self.request(&Request::Compile { module, times }, PATIENCE)? {
            Reply::Compiled(times) => Ok(times),
            other => Err(unexpected(&other)),
        }
    }

    /// Forgets modules.
    ///
    /// # Errors
    /// The worker was lost.
    pub fn unload(&mut self, names: &[String]) -> Result<(), Failure> {
        let (gone, kept) = self
            .modules
            .drain(..)
            .partition(|module| names.contains(&module.name));
        self.modules = kept;
        Vec::<Module>::into_iter(gone).for_each(|module| module.forget());
        // Its outputs are kept as long as this worker lives; a new one cannot launch it again.
        self.referred = self.referred.take().filter(|(name, _)| !names.contains(name));
        self.request(
            &Request::Unload {
                modules: names.to_vec(),
            },
            PATIENCE,
        )
        .map(drop)
    }

    /// Launches a module once on fresh outputs, and reads them. If their expected contents are known, only outputs that differ
    /// are transferred from the GPU's process. Each output's bytes, in the parameters' order.
    ///
    /// # Errors
    /// The kernel faulted or ran too long; the next request starts a new worker.
    pub fn check(
        &mut self,
        module: &str,
        limit: Duration,
        expected: Option<&Arc<Vec<Vec<u8>>>>,
    ) -> Result<Checked, Failure> {
        if let Some(expected) = expected {
            self.expect(expected)?;
        }
        let file = |index| self.folder.path().join(format!("output-{index}"));
        let files = (0..self.outputs).map(file).collect();
        self.launched(module, limit, files, expected.is_some())
    }

    /// As [`Worker::check`], the outputs left on the GPU.
    ///
    /// # Errors
    /// As for [`Worker::check`].
    pub fn launch(&mut self, module: &str, limit: Duration) -> Result<Checked, Failure> {
        self.launched(module, limit, Vec::new(), false)
    }

    fn launched(
        &mut self,
        module: &str,
        limit: Duration,
        files: Vec<PathBuf>,
        compare: bool,
    ) -> Result<Checked, Failure> {
        let request = Request::Check {
            module: module.to_owned(),
            limit,
            outputs: files.clone(),
            compare,
        };
        match self.request(&request, PATIENCE + limit)? {
            Reply::Checked {
                elapsed_ns,
                as_expected,
            } => {
                let read = |(index, path): (usize, &PathBuf)| {
                    if as_expected.get(index) == Some(&true) {
                        return Ok(OutputContents::Expected);
                    }
                    std::fs::read(path).map(OutputContents::Bytes).map_err(|error| {
                        Failure::new(
                            FailureKind::Worker,
                            format!("{} cannot be read: {error}", path.display()),
                        )
                    })
                };
                let outputs = files.iter().enumerate().map(read).collect::<Result<_, _>>()?;
                let printed = self
                    .process
                    .as_mut()
                    .map(|process| std::mem::take(&mut process.printed));
                Ok(Checked {
                    elapsed_ns,
                    outputs,
                    printed: printed.unwrap_or_default(),
                })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Times modules against each other; see [`time`](crate::timing::time). With `restore`, the outputs that are given contents
    /// are put back before each launch, untimed.
    ///
    /// # Errors
    /// A launch faulted or ran too long.
    pub fn time(
        &mut self,
        candidates: &[String],
        options: TimingOptions,
        restore: bool,
    ) -> Result<Vec<Timing>, Failure> {
        let launches = (options.warm_up + options.rounds).saturating_mul(candidates.len() as u32);
        let limit = PATIENCE.saturating_add(options.limit.saturating_mul(launches));
        match self.request(
            &Request::Time {
                candidates: candidates.to_vec(),
                options,
                restore,
            },
            limit,
        )? {
            Reply::Timed(timings) => Ok(timings),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends a request to a worker that is set up, and waits for the reply.
    fn request(&mut self, request: &Request, limit: Duration) -> Result<Reply, Failure> {
        self.ensure()?;
        self.exchange(request, limit)
    }

    /// Starts a worker if there is none, and passes it the last one's state.
    fn ensure(&mut self) -> Result<(), Failure> {
        match self.process {
            Some(_) => Ok(()),
            None => where_addresses_are_free(|| self.begin()),
        }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.process = Some(Process::start(&self.program, &self.arguments)?);
        self.started += 1;
        match self.exchange(&self.open.clone(), PATIENCE)? {
            Reply::Opened(facts) => self.facts = Some(facts),
            other => return Err(unexpected(&other)),
        }
        if let Some(bind) = self.bind.clone() {
            self.exchange(&bind, PATIENCE)?;
        }
        self.tell_expected()?;
        if !self.modules.is_empty() {
            self.exchange(
                &Request::Load {
                    modules: self.modules.clone(),
                },
                PATIENCE,
            )?;
        }
        if let Some((module, limit)) = self.referred.clone() {
            self.exchange(&Request::Refer { module, limit }, PATIENCE + limit * 3)?;
        }
        Ok(())
    }

    fn exchange(&mut self, request: &Request, limit: Duration) -> Result<Reply, Failure> {
        let Some(process) = &mut self.process else {
            return Err(Failure::new(FailureKind::Worker, "there is no worker"));
        };
        let reply = process.exchange(request, limit);
        let failure = match reply {
            Ok(Reply::Failed(failure)) | Err(failure) => failure,
            Ok(reply) => return Ok(reply),
        };
        if (failure.kind.poisons() || matches!(request, Request::Open { .. }))
            && let Some(process) = self.process.take()
        {
            process.end();
        }
        Err(failure)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.compilers.end();
        if let Some(process) = self.process.take() {
            process.end();
        }
    }
}

/// A parameter's argument.
#[derive(Clone, Debug)]
pub enum Argument<'a> {
    /// A scalar's bits.
    Scalar(Type, u64),
    /// A buffer.
    Buffer {
        /// Type of the elements.
        element: Type,
        /// Number of elements.
        length: u64,
        /// Its initial contents.
        fill: &'a Fill,
        /// Whether kernels write results into it: it is then filled anew before each check.
        output: bool,
        /// The alignment of its first byte: a power of two.
        align: u32,
        /// Whether its address is a parameter's argument.
        is_passed: bool,
    },
    /// An output at an address, which is not passed: other arguments lead there.
    Placed {
        /// The address of its first byte.
        address: u64,
        /// Its initial contents.
        bytes: &'a Arc<[u8]>,
    },
    /// A pointer into the buffer of another argument.
    Part {
        /// That argument's position.
        of: usize,
        /// How many bytes of the buffer lie in front of where it points to.
        bytes: u64,
    },
    /// A variable that each module has of its own: [`BindArgument::Variable`].
    Variable {
        /// Its name in the modules.
        name: &'a str,
        /// The position of the argument whose memory it is.
        of: usize,
        /// Where it starts in that, in bytes.
        start: u64,
        /// Its size in bytes.
        bytes: u64,
    },
}

/// Writes a file of these parts.
fn written(path: &Path, parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<(), Failure> {
    let mut parts = parts.into_iter();
    File::create(path)
        .and_then(|mut file| parts.try_for_each(|part| file.write_all(part.as_ref())))
        .map_err(|error| {
            Failure::new(
                FailureKind::Worker,
                format!("{} cannot be written: {error}", path.display()),
            )
        })
}

fn unexpected(reply: &Reply) -> Failure {
    Failure::new(
        FailureKind::Worker,
        format!("the worker answered something else: {reply:?}"),
    )
}

#[cfg(test)]
mod tests;
