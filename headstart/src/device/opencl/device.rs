//! An OpenCL device behind the [`Device`] trait.
//!
//! Work is done in this process. On a CPU a kernel that goes out of bounds takes the process with it, so kernels
//! from strangers are checked on the simulator first, as the tuner does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::{self, Context, Given};
use super::platform::{self, OpenClFacts};
use crate::back::spirv::{self, Options, Spirv};
use crate::device::{
    Argument, Buffer, Command, Description, Device, Fill, Launch, Outcome, Pattern, Program, Queue, Times,
    WorkerQueue,
};
use crate::ir::{Kernel, Type};
use crate::{Error, Result};

/// Bytes that the host computes at a time for a pattern.
const CHUNK_BYTES: u64 = 16 << 20;

/// A byte that a kernel hardly computes, so that what it never wrote is noticed.
const UNWRITTEN: u8 = 0xa5;

/// An OpenCL device.
pub struct OpenClDevice {
    context: Arc<Context>,
    facts: OpenClFacts,
    description: Description,
    limit: Duration,
}

/// A kernel that was compiled for a device: once for each sub-group size that it was launched with.
pub struct OpenClProgram {
    kernel: Arc<Kernel>,
    context: Arc<Context>,
    options: Options,
    built: Mutex<HashMap<u32, Arc<Built>>>,
}

/// A module and its kernel in the runtime.
struct Built {
    spirv: Spirv,
    kernel: context::Kernel,
}

impl OpenClDevice {
    /// Opens the device with this number: `opencl:0` is 0.
    ///
    /// # Errors
    /// There is no runtime, no such device, or it does not take SPIR-V 1.4.
    pub fn open(ordinal: usize) -> Result<OpenClDevice> {
        let found = platform::find(ordinal)?;
        found.facts.takes_spirv()?;
        Ok(OpenClDevice {
            context: Context::open(found.id)?,
            description: found.facts.description(),
            facts: found.facts,
            limit: Duration::from_secs(60),
        })
    }

    /// What the device is.
    pub fn facts(&self) -> &OpenClFacts {
        &self.facts
    }

    /// Gives a launch up after this long. The kernel itself cannot be stopped.
    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }
}

impl OpenClProgram {
    /// The kernel for a sub-group size.
    fn built(&self, sub_group_size: u32) -> Result<Arc<Built>> {
        // Who does not ask for its sub-group runs with any size.
        let size = match self.kernel.sub_group_size.is_some() || spirv::uses_sub_groups(&self.kernel) {
            true => Some(sub_group_size),
            false => None,
        };
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = built.get(&size.unwrap_or(0)) {
            return Ok(Arc::clone(known));
        }
        let options = Options {
            sub_group_size: size,
            ..self.options.clone()
        };
        let spirv = spirv::emit(&self.kernel, &options)?;
        let kernel = self
            .context
            .build(&spirv.bytes(), spirv::BUILD_OPTIONS, &spirv.entry)?;
        let made = Arc::new(Built { spirv, kernel });
        built.insert(size.unwrap_or(0), Arc::clone(&made));
        Ok(made)
    }

    /// The module for a sub-group size.
    ///
    /// # Errors
    /// The device cannot run the kernel with it.
    pub fn module(&self, sub_group_size: u32) -> Result<Spirv> {
        Ok(self.built(sub_group_size)?.spirv.clone())
    }
}

impl Device for OpenClDevice {
    fn description(&self) -> &Description {
        &self.description
    }

    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        let bytes = fill.check(element, length)?;
        if bytes > self.facts.buffer_bytes {
            return Err(Error::device(format!(
                "a buffer of {bytes} bytes is too large for {}",
                self.description.name
            ))
            .accepted(format!("at most {} bytes", self.facts.buffer_bytes)));
        }
        let size = usize::try_from(bytes)
            .map_err(|_| Error::usage("a buffer is larger than this machine can address"))?;
        let memory = self.context.allocate(size)?;
        match fill {
            Fill::Bytes(given) => memory.write(0, &given)?,
            Fill::Pattern(pattern) => compute(&memory, &pattern, element, length)?,
            Fill::Uninitialized => {
                let chunk = vec![UNWRITTEN; bytes.min(CHUNK_BYTES) as usize];
                let mut offset = 0;
                while offset < size {
                    let count = chunk.len().min(size - offset);
                    memory.write(offset, &chunk[..count])?;
                    offset += count;
                }
            }
        }
        Ok(Buffer::new(element, length, Arc::new(memory)))
    }

    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
        let program = OpenClProgram {
            kernel: Arc::clone(kernel),
            context: Arc::clone(&self.context),
            options: Options::new(self.facts.target()),
            built: Mutex::default(),
        };
        // What the device cannot run is found here, and not at the first launch.
        program.built(
            kernel
                .sub_group_size
                .unwrap_or(self.description.default_sub_group_size),
        )?;
        Ok(Program::new(Arc::clone(kernel), program))
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let (limit, description) = (self.limit, self.description.clone());
        let epoch = Instant::now();
        let queue = WorkerQueue::new(move |command, _| run(limit, &description, epoch, command))?;
        Ok(Box::new(queue))
    }
}

/// Fills memory with what the host computes.
fn compute(memory: &context::Memory, pattern: &Pattern, element: Type, length: u64) -> Result<()> {
    let size = u64::from(element.bytes().max(1));
    let chunk = CHUNK_BYTES / size;
    let mut first = 0;
    while first < length {
        let count = chunk.min(length - first);
        memory.write((first * size) as usize, &pattern.bytes(element, first, count))?;
        first += count;
    }
    Ok(())
}

/// Runs one command and waits for its end.
fn run(limit: Duration, description: &Description, epoch: Instant, command: Command) -> Result<Outcome> {
    let submitted_ns = epoch.elapsed().as_secs_f64() * 1e9;
    let mut outcome = Outcome::default();
    let mut elapsed_ns = None;
    match command {
        Command::Launch(program, launch) => {
            elapsed_ns = Some(execute(limit, description, &program, &launch)?)
        }
        Command::Write {
            buffer,
            offset,
            bytes,
        } => {
            buffer.check_range(offset, bytes.len() as u64)?;
            buffer
                .implementation::<context::Memory>()?
                .write(offset as usize, &bytes)?;
        }
        Command::Read {
            buffer,
            offset,
            length,
        } => {
            buffer.check_range(offset, length)?;
            outcome.bytes = vec![0; length as usize];
            buffer
                .implementation::<context::Memory>()?
                .read(offset as usize, &mut outcome.bytes)?;
        }
    }
    let ended_ns = epoch.elapsed().as_secs_f64() * 1e9;
    outcome.times = Times {
        submitted_ns,
        started_ns: elapsed_ns.map_or(submitted_ns, |elapsed| ended_ns - elapsed),
        ended_ns,
    };
    Ok(outcome)
}

/// Launches a kernel. Its time on the device, in ns.
fn execute(limit: Duration, description: &Description, program: &Program, launch: &Launch) -> Result<f64> {
    launch.check(program.kernel(), description)?;
    let compiled = program.implementation::<OpenClProgram>()?;
    let built = compiled.built(launch.sub_group_size(program.kernel(), description))?;
    let memories: Vec<Option<Arc<context::Memory>>> = launch
        .arguments
        .iter()
        .map(|argument| match argument {
            Argument::Buffer(buffer) => buffer.implementation().map(Some),
            Argument::Scalar(..) => Ok(None),
        })
        .collect::<Result<_>>()?;
    let given: Vec<Given<'_>> = launch
        .arguments
        .iter()
        .zip(&memories)
        .map(|(argument, memory)| match (argument, memory) {
            (Argument::Scalar(ty, bits), _) => {
                Given::Bytes(bits.to_le_bytes()[..ty.bytes() as usize].to_vec())
            }
            (Argument::Buffer(_), Some(memory)) => Given::Memory(memory),
            (Argument::Buffer(_), None) => Given::Bytes(vec![0; 8]),
        })
        .collect();
    built.kernel.run(launch.groups, launch.group, &given, limit)
}
