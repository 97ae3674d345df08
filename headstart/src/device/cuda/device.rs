//! A GPU behind the [`Device`] trait.
//!
//! Work is done in this process: a kernel that faults or runs too long takes the context with it, and
//! everything afterwards fails. What tries many kernels uses a [`worker`](super::worker) instead.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::failure::{Failure, FailureKind};
use super::fill;
use super::gpu::{Gpu, GpuFacts};
use super::launch::{Arguments, Geometry, Lane};
use super::memory;
use super::module::Function;
use crate::back::ptx::{self, Options, Ptx, Target};
use crate::device::{
    Argument, Buffer, Command, Counters, Description, Device, Fill, Launch, Outcome, Pattern, Program, Queue,
    Times, WorkerQueue,
};
use crate::ir::{Kernel, Type};
use crate::{Error, Result};

/// Bytes that the host computes at a time for a pattern without a closed form.
const CHUNK_BYTES: u64 = 16 << 20;

/// An NVIDIA GPU.
pub struct CudaDevice {
    gpu: Gpu,
    description: Description,
    options: Options,
    /// When the clock of all queues began.
    epoch: Instant,
    limit: Duration,
}

/// A kernel that was compiled for a GPU.
pub struct CudaProgram {
    /// The PTX that was compiled.
    pub ptx: Ptx,
    /// The function in the GPU.
    pub function: Function,
}

/// A GPU's memory behind a [`Buffer`].
struct Memory(Mutex<memory::Buffer>);

impl CudaDevice {
    /// Opens the GPU with this number: `cuda:0` is 0.
    ///
    /// # Errors
    /// There is no driver, no such GPU, or it is too old.
    pub fn open(ordinal: usize) -> Result<CudaDevice> {
        let gpu = Gpu::open(ordinal)?;
        let facts = gpu.facts();
        let target = Target::for_capability(facts.capability).ok_or_else(|| {
            Error::device(format!("{} is too old", facts.name)).accepted("compute capability 8.0 or later")
        })?;
        Ok(CudaDevice {
            description: describe(facts),
            options: Options::new(target),
            limit: Duration::from_secs(20),
            epoch: Instant::now(),
            gpu,
        })
    }

    /// The GPU itself.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// How kernels are emitted.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Emits kernels in another way from now on.
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// Gives a launch up after this long.
    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }
}

/// A GPU in the words that all devices use.
pub fn describe(facts: &GpuFacts) -> Description {
    Description {
        name: format!("cuda:{}", facts.ordinal),
        title: facts.name.clone(),
        cores: facts.cores,
        // The same for every compute capability since 2.0 (CUDA C Programming Guide, table "Technical
        // Specifications per Compute Capability").
        max_group_size: 1024,
        max_group_dimensions: [1024, 1024, 64],
        sub_group_sizes: vec![facts.sub_group],
        default_sub_group_size: facts.sub_group,
        max_shared_bytes: u64::from(facts.shared_bytes_per_group),
        memory_bytes: facts.memory_bytes,
    }
}

/// Takes memory and fills it, on the GPU where the fill has a closed form.
pub(super) fn allocate_filled(
    gpu: &Gpu,
    target: Target,
    element: Type,
    length: u64,
    fill: &Fill,
) -> Result<memory::Buffer> {
    let bytes = fill.check(element, length)?;
    let bytes = usize::try_from(bytes)
        .map_err(|_| Error::usage("a buffer is larger than this machine can address"))?;
    let mut memory = gpu.allocate(bytes)?;
    refill(gpu, target, &mut memory, element, length, fill)?;
    Ok(memory)
}

/// Fills memory again, as it was filled at first.
pub(super) fn refill(
    gpu: &Gpu,
    target: Target,
    memory: &mut memory::Buffer,
    element: Type,
    length: u64,
    fill: &Fill,
) -> Result<(), Failure> {
    match fill {
        // A value that a kernel hardly computes, so that what it never wrote is noticed.
        Fill::Uninitialized => memory.fill(0xa5)?,
        Fill::Bytes(given) => memory.write(given)?,
        Fill::Pattern(_) if length == 0 => {}
        Fill::Pattern(pattern) => match fill::kernel(pattern, element) {
            Some(kernel) => {
                let ptx = ptx::emit(&kernel, &Options::new(target))
                    .map_err(|error| Failure::new(FailureKind::Request, error.to_string()))?;
                let function = gpu.load(&ptx.text, &ptx.entry)?;
                let mut arguments = Arguments::new();
                arguments.push_address(memory.address());
                arguments.push(&length.to_le_bytes());
                let groups = length
                    .div_ceil(u64::from(fill::GROUP))
                    .min(u64::from(gpu.facts().cores) * 16);
                let geometry = Geometry {
                    groups: [groups as u32, 1, 1],
                    group: [fill::GROUP, 1, 1],
                    dynamic_shared_bytes: 0,
                };
                function.launch(geometry, &arguments)?;
                // The function must outlive its launch.
                gpu.wait(Duration::from_secs(60))?;
            }
            None => compute(memory, pattern, element, length)?,
        },
    }
    Ok(())
}

/// Fills memory with what the host computes.
fn compute(
    memory: &mut memory::Buffer,
    pattern: &Pattern,
    element: Type,
    length: u64,
) -> Result<(), Failure> {
    let size = u64::from(element.bytes().max(1));
    let chunk = CHUNK_BYTES / size;
    let mut first = 0;
    while first < length {
        let count = chunk.min(length - first);
        memory.write_at((first * size) as usize, &pattern.bytes(element, first, count))?;
        first += count;
    }
    Ok(())
}

/// The geometry of a launch, with what the emitted kernel needs.
pub fn geometry(launch: &Launch, ptx: &Ptx) -> Geometry {
    Geometry {
        groups: launch.groups,
        group: launch.group,
        dynamic_shared_bytes: ptx.dynamic_shared_bytes,
    }
}

impl Device for CudaDevice {
    fn description(&self) -> &Description {
        &self.description
    }

    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        let memory = allocate_filled(&self.gpu, self.options.target, element, length, &fill)?;
        // Queues have lanes of their own, which do not wait for what fills it.
        self.gpu.wait(self.limit)?;
        Ok(Buffer::new(element, length, Arc::new(Memory(Mutex::new(memory)))))
    }

    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
        let ptx = ptx::emit(kernel, &self.options)?;
        let function = self.gpu.load(&ptx.text, &ptx.entry)?;
        Ok(Program::new(Arc::clone(kernel), CudaProgram { ptx, function }))
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let (gpu, limit, description) = (self.gpu.clone(), self.limit, self.description.clone());
        // A lane each, so that kernels and copies of several queues run beside each other.
        let (lane, epoch) = (gpu.lane()?, self.epoch);
        let queue =
            WorkerQueue::new(move |command, _| run(&gpu, &lane, limit, &description, epoch, command))?;
        Ok(Box::new(queue))
    }
}

/// Runs one command and waits for its end.
fn run(
    gpu: &Gpu,
    lane: &Lane,
    limit: Duration,
    description: &Description,
    epoch: Instant,
    command: Command,
) -> Result<Outcome> {
    let submitted_ns = epoch.elapsed().as_secs_f64() * 1e9;
    let mut outcome = Outcome::default();
    let mut elapsed_ns = None;
    match command {
        Command::Launch(program, launch) => {
            launch.check(program.kernel(), description)?;
            let compiled = program.implementation::<CudaProgram>()?;
            let mut arguments = Arguments::new();
            for argument in &launch.arguments {
                match argument {
                    Argument::Buffer(buffer) => {
                        let memory = buffer.implementation::<Memory>()?;
                        arguments.push_address(memory.lock().address());
                    }
                    Argument::Scalar(ty, bits) => {
                        arguments.push(&bits.to_le_bytes()[..ty.bytes() as usize]);
                    }
                }
            }
            let (mut start, mut end) = (gpu.event()?, gpu.event()?);
            start.record_on(lane)?;
            compiled
                .function
                .launch_on(lane, geometry(&launch, &compiled.ptx), &arguments)?;
            end.record_on(lane)?;
            end.wait(limit)?;
            elapsed_ns = Some(end.since(&start)?.as_secs_f64() * 1e9);
            outcome.counters = Counters::default();
            outcome.prefetches = compiled.ptx.hints.clone();
        }
        Command::Write {
            buffer,
            offset,
            bytes,
        } => {
            buffer.check_range(offset, bytes.len() as u64)?;
            buffer
                .implementation::<Memory>()?
                .lock()
                .write_at(offset as usize, &bytes)?;
        }
        Command::Read {
            buffer,
            offset,
            length,
        } => {
            buffer.check_range(offset, length)?;
            outcome.bytes = vec![0; length as usize];
            let memory = buffer.implementation::<Memory>()?;
            memory.lock().read_at(offset as usize, &mut outcome.bytes)?;
        }
    }
    let ended_ns = epoch.elapsed().as_secs_f64() * 1e9;
    let started_ns = elapsed_ns.map_or(submitted_ns, |elapsed| (ended_ns - elapsed).max(submitted_ns));
    outcome.times = match elapsed_ns {
        // The GPU's own clock says how long; the host's, when.
        Some(elapsed) => Times {
            submitted_ns,
            started_ns,
            ended_ns: started_ns + elapsed,
        },
        None => Times {
            submitted_ns,
            started_ns,
            ended_ns,
        },
    };
    Ok(outcome)
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, memory::Buffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
