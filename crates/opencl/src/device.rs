//! An OpenCL device behind the [`Device`] trait.
//!
//! Work is done in this process. On a CPU a kernel that goes out of bounds takes the process with it, so kernels
//! from strangers are checked on the simulator first, as the tuner does.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::{self, Context, Interval, KernelArgument, Lane};
use super::own::OwnEntry;
use super::platform::{self, OpenClFacts};
use crate::back::spirv::{self, Options, Spirv};
use crate::ir::{Accuracy, Kernel, Type};
use crate::{Error, Result};
use headstart_device::{
    Allocation, Argument, Buffer, Command, Description, Device, Fill, HostSide, Image, Images, Launch,
    Outcome, Pattern, Program, Queue, Submitted, Times, WorkerQueue, check_copy, host_bytes,
};

/// Bytes that the host computes at a time for a pattern.
const CHUNK_BYTES: u64 = 16 << 20;

/// The option by which Intel's compiler gives each thread twice the registers, and a core half as many threads.
const LARGE_REGISTERS: &str = "-cl-intel-256-GRF-per-thread";

/// A byte that a kernel rarely computes, so that unwritten memory is noticed.
const UNWRITTEN: u8 = 0xa5;

/// An OpenCL device.
pub struct OpenClDevice {
    context: Arc<Context>,
    /// The queue that fills buffers and serves the host's reads and writes.
    lane: Arc<Lane>,
    clock: Arc<DeviceClock>,
    facts: OpenClFacts,
    description: Description,
    limit: Duration,
    build_options: String,
}

/// A kernel that was compiled for a device: once for each sub-group size that it was launched with.
pub(crate) struct OpenClProgram {
    kernel: Arc<Kernel>,
    context: Arc<Context>,
    options: Options,
    build_options: String,
    /// Whether only vectorized kernels have sub-groups.
    vectorizes: bool,
    /// The source of a kernel's machine code, and the parts known of it.
    images: (String, Images),
    built: Mutex<HashMap<u32, Arc<Built>>>,
    /// The entry as its author wrote it, if that is the code that runs.
    own: Option<OwnEntry>,
}

/// A buffer's memory.
struct Memory {
    memory: context::Memory,
    /// The queue for the host's reads and writes.
    lane: Arc<Lane>,
}

/// How the device's clock and the host's go together: they are compared at each command's end, and the least distance
/// is the best, for it has waited least.
#[derive(Debug)]
struct DeviceClock {
    epoch: Instant,
    ahead_ns: Mutex<Option<f64>>,
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
        let context = Context::open(found.id)?;
        Ok(OpenClDevice {
            lane: Arc::new(context.lane()?),
            context,
            clock: Arc::new(DeviceClock {
                epoch: Instant::now(),
                ahead_ns: Mutex::default(),
            }),
            description: found.facts.description(),
            facts: found.facts,
            limit: Duration::from_secs(60),
            build_options: String::new(),
        })
    }

    /// The device's properties.
    #[doc(hidden)]
    pub fn facts(&self) -> &OpenClFacts {
        &self.facts
    }

    /// Gives a launch up after this long. The kernel itself cannot be stopped.
    #[doc(hidden)]
    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// From now on, builds kernels for the large register file of Intel's GPUs.
    ///
    /// # Errors
    /// The device is none of those, or its runtime does not take the option.
    #[doc(hidden)]
    pub fn enlarge_registers(&mut self) -> Result<()> {
        if !self.facts.is_intel_gpu() {
            return Err(Error::device(format!("{} is not an Intel GPU", self.facts.name)));
        }
        self.build_options = LARGE_REGISTERS.into();
        let probe = "hsir 1\nkernel @probe(\n  %to: ptr.global i32[%to_length] align 4 unaliased,\n  %to_length: i64,\n) {\n  return\n}\n";
        let probe = crate::ir::parse(probe, "probe.hsir")?;
        let spirv = spirv::emit(&probe, &Options::new(spirv::SpirvTarget::Portable))?;
        self.context
            .build(&spirv.bytes(), &self.build_options, &spirv.entry)?;
        Ok(())
    }

    /// From now on, builds kernels without the runtime's optimizer, and ignores the machine code of bundles: a wrong result
    /// that disappears is the fault of the runtime's compiler.
    #[doc(hidden)]
    pub fn leave_unoptimized(&mut self) {
        self.build_options = "-cl-opt-disable".into();
    }
}

impl OpenClProgram {
    /// The kernel for a sub-group size.
    fn built(&self, sub_group_size: u32) -> Result<Arc<Built>> {
        // Who does not ask for its sub-group runs with any size.
        let in_blocks = self.options.block_prefetch && spirv::prefetches_together(&self.kernel);
        let asks = self.kernel.sub_group_size.is_some() || spirv::uses_sub_groups(&self.kernel) || in_blocks;
        let size = asks.then_some(sub_group_size);
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = built.get(&size.unwrap_or(0)) {
            return Ok(Arc::clone(known));
        }
        let accuracy = spirv::build_options(&self.kernel);
        let build_options = format!("{accuracy} {}", self.build_options);
        let build_options = build_options.trim();
        if let Some(own) = &self.own {
            let kernel = self.build(&own.module, build_options, &own.entry)?;
            let (words, _) = own.module.as_chunks::<4>();
            let spirv = Spirv {
                words: words.iter().map(|word| u32::from_le_bytes(*word)).collect(),
                text: String::new(),
                entry: own.entry.clone(),
                build_options: accuracy,
                hints: Vec::new(),
            };
            let made = Arc::new(Built { spirv, kernel });
            built.insert(size.unwrap_or(0), Arc::clone(&made));
            return Ok(made);
        }
        let options = Options {
            sub_group_size: size,
            ..self.options.clone()
        };
        let spirv = spirv::emit(&self.kernel, &options)?;
        let (bytes, context) = (spirv.bytes(), &self.context);
        let (device, images) = &self.images;
        // An image is optimized, and its module does not say how accurate it is. One that this driver does not take after all is no
        // reason to fail.
        let is_as_kept =
            self.build_options.is_empty() && self.kernel.float_mode.accuracy == Accuracy::Rounded;
        let images = is_as_kept.then_some(images);
        let loaded = images
            .and_then(|images| images.find(device, &bytes))
            .and_then(|image| {
                let loaded = context.build_binary(&image.code, build_options, &spirv.entry);
                loaded.ok()
            });
        let kernel = match loaded {
            Some(kernel) => kernel,
            None => self.build(&bytes, build_options, &spirv.entry)?,
        };
        let made = Arc::new(Built { spirv, kernel });
        built.insert(size.unwrap_or(0), Arc::clone(&made));
        Ok(made)
    }

    /// Builds a module's entry; a kernel that depends on its sub-groups has them.
    fn build(&self, module: &[u8], options: &str, entry: &str) -> Result<context::Kernel> {
        let built = self.context.build(module, options, entry)?;
        if !self.vectorizes || !spirv::uses_sub_groups(&self.kernel) || built.is_vectorized() {
            return Ok(built);
        }
        Err(Error::device(format!(
            "the runtime's compiler does not vectorize `{}`, and then each of its sub-groups has one work-item",
            self.kernel.name
        ))
        .accepted("a GPU, or a simulated device such as sim:pvc-1550"))
    }
}

impl Device for OpenClDevice {
    fn description(&self) -> &Description {
        &self.description
    }

    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        self.allocate_as(Allocation::Device, element, length, fill)
    }

    /// The host reads and writes its own and shared allocations by copies, which need no queue of the caller's: buffers
    /// of OpenCL have no address there, unless they are mapped.
    fn allocate_as(&self, allocation: Allocation, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
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
        let on_host = allocation != Allocation::Device;
        let memory = Memory {
            memory: self.context.allocate(size, on_host)?,
            lane: Arc::clone(&self.lane),
        };
        match fill {
            Fill::Bytes(given) => memory.write(0, &given)?,
            Fill::Pattern(pattern) => compute(&memory, &pattern, element, length)?,
            Fill::Uninitialized => {
                let chunk = vec![UNWRITTEN; bytes.min(CHUNK_BYTES) as usize];
                let mut offset = 0;
                while offset < size {
                    let count = chunk.len().min(size - offset);
                    memory.write(offset as u64, &chunk[..count])?;
                    offset += count;
                }
            }
        }
        let memory = Arc::new(memory);
        let buffer = Buffer::new(element, length, Arc::clone(&memory) as Arc<dyn Any + Send + Sync>);
        Ok(match allocation {
            Allocation::Device => buffer,
            Allocation::Host | Allocation::Shared => buffer.seen_by_host(allocation, memory),
        })
    }

    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
        self.load(kernel, &Images::new())
    }

    fn image(&self, program: &Program) -> Result<Option<Image>> {
        let compiled = program.implementation::<OpenClProgram>()?;
        let built = compiled.built(self.description.sub_group_size(program.kernel()))?;
        let (device, _) = &compiled.images;
        Ok(Some(Image::new(
            device,
            &built.spirv.bytes(),
            built.kernel.binary()?,
        )))
    }

    fn load(&self, kernel: &Arc<Kernel>, images: &Images) -> Result<Program> {
        // The runtime's binaries are for this device and this driver.
        let device = format!("opencl {} {}", self.facts.name, self.facts.driver);
        let program = OpenClProgram {
            kernel: Arc::clone(kernel),
            context: Arc::clone(&self.context),
            options: Options {
                block_prefetch: self.facts.block_prefetch,
                block_access: self.facts.block_access,
                ..Options::new(self.facts.target())
            },
            build_options: self.build_options.clone(),
            vectorizes: self.facts.vectorizes(),
            images: (device, images.clone()),
            built: Mutex::default(),
            own: None,
        };
        // Kernels that the device cannot run are found here, and not at the first launch.
        program.built(self.description.sub_group_size(kernel))?;
        Ok(Program::new(Arc::clone(kernel), program))
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let serving = Serving {
            lane: self.context.lane()?,
            limit: self.limit,
            description: self.description.clone(),
            clock: Arc::clone(&self.clock),
        };
        Ok(Box::new(WorkerQueue::new(move |submitted| {
            serving.run(submitted)
        })?))
    }
}

impl OpenClDevice {
    /// An entry of a module as its author wrote it, to be launched with the arguments of a kernel that was read from it.
    ///
    /// # Errors
    /// The device does not take the module.
    #[doc(hidden)]
    pub fn own_entry(&self, kernel: &Arc<Kernel>, own: OwnEntry) -> Result<Program> {
        let program = OpenClProgram {
            kernel: Arc::clone(kernel),
            context: Arc::clone(&self.context),
            options: Options::new(self.facts.target()),
            build_options: self.build_options.clone(),
            vectorizes: self.facts.vectorizes(),
            images: (String::new(), Images::new()),
            built: Mutex::default(),
            own: Some(own),
        };
        program.built(self.description.sub_group_size(kernel))?;
        Ok(Program::new(Arc::clone(kernel), program))
    }
}

impl HostSide for Memory {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.memory.read(&self.lane, offset as usize, bytes).map(drop)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.memory.write(&self.lane, offset as usize, bytes).map(drop)
    }
}

impl DeviceClock {
    fn now_ns(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.epoch).as_secs_f64() * 1e9
    }

    /// A moment of the device's clock on the host's, of a command that has just been seen to end there.
    fn ended_ns(&self, device_ns: f64) -> f64 {
        let mut ahead = self.ahead_ns.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now_ns(Instant::now()) - device_ns;
        let least = ahead.map_or(now, |known| known.min(now));
        *ahead = Some(least);
        device_ns + least
    }
}

/// Fills memory with data computed on the host.
fn compute(memory: &Memory, pattern: &Pattern, element: Type, length: u64) -> Result<()> {
    let size = u64::from(element.bytes().max(1));
    let chunk = CHUNK_BYTES / size;
    let mut first = 0;
    while first < length {
        let count = chunk.min(length - first);
        memory.write(first * size, &pattern.bytes(element, first, count))?;
        first += count;
    }
    Ok(())
}

/// OpenCL leaves the division of a multi-dimensional work-group into sub-groups to the device, and Intel's runtime for CPUs
/// gives each row its own. With rows of whole sub-groups this matches the IR.
fn check_rows(kernel: &Kernel, group: [u32; 3], size: u32) -> Result<()> {
    let has_rows = group[1] > 1 || group[2] > 1;
    if has_rows && !group[0].is_multiple_of(size) && spirv::uses_sub_groups(kernel) {
        return Err(Error::device(format!(
            "`{}` depends on its sub-groups, which OpenCL does not define for rows of {} work-items",
            kernel.name, group[0]
        ))
        .accepted(format!(
            "work-groups of one dimension, or rows of a multiple of {size} work-items"
        )));
    }
    Ok(())
}

/// The inputs of a queue's thread.
struct Serving {
    lane: Lane,
    limit: Duration,
    description: Description,
    clock: Arc<DeviceClock>,
}

impl Serving {
    /// Runs one command and waits for its end.
    fn run(&self, submitted: Submitted) -> Result<Outcome> {
        let submitted_ns = self.clock.now_ns(submitted.at);
        let mut outcome = Outcome::default();
        let interval = match submitted.command {
            Command::Launch(program, launch) => self.execute(&program, &launch)?,
            Command::Write {
                buffer,
                offset,
                bytes,
            } => {
                buffer.check_range(offset, bytes.len() as u64)?;
                let memory = buffer.implementation::<Memory>()?;
                memory.memory.write(&self.lane, offset as usize, &bytes)?
            }
            Command::Read {
                buffer,
                offset,
                length,
            } => {
                buffer.check_range(offset, length)?;
                outcome.bytes = host_bytes(length)?;
                let memory = buffer.implementation::<Memory>()?;
                memory
                    .memory
                    .read(&self.lane, offset as usize, &mut outcome.bytes)?
            }
            Command::Copy {
                from,
                from_offset,
                to,
                to_offset,
                length,
            } => {
                check_copy(&from, from_offset, &to, to_offset, length)?;
                let (source, target) = (from.implementation::<Memory>()?, to.implementation::<Memory>()?);
                let (to, from, size) = (to_offset as usize, from_offset as usize, length as usize);
                target
                    .memory
                    .copy(&self.lane, to, &source.memory, from, size, self.limit)?
            }
        };
        outcome.times = match interval {
            Some((start, end)) => {
                let ended_ns = self.clock.ended_ns(end);
                let started_ns = (ended_ns - (end - start)).max(submitted_ns);
                Times {
                    submitted_ns,
                    started_ns,
                    ended_ns: started_ns + (end - start),
                }
            }
            None => {
                let now_ns = self.clock.now_ns(Instant::now());
                Times {
                    submitted_ns,
                    started_ns: now_ns,
                    ended_ns: now_ns,
                }
            }
        };
        Ok(outcome)
    }

    /// Launches a kernel.
    fn execute(&self, program: &Program, launch: &Launch) -> Result<Interval> {
        launch.check(program.kernel(), &self.description)?;
        launch.check_whole()?;
        let size = launch.sub_group_size(program.kernel(), &self.description);
        check_rows(program.kernel(), launch.group, size)?;
        let compiled = program.implementation::<OpenClProgram>()?;
        let built = compiled.built(size)?;
        let memories: Vec<Option<Arc<Memory>>> = launch
            .arguments
            .iter()
            .map(|argument| match argument {
                Argument::Buffer(buffer) => buffer.implementation().map(Some),
                Argument::Part(..) => Err(Error::device("OpenCL passes whole buffers")
                    .accepted("a pointer to the first element of a buffer")),
                Argument::Address(_) | Argument::Scalar(..) => Ok(None),
            })
            .collect::<Result<_>>()?;
        let given: Vec<KernelArgument<'_>> = launch
            .arguments
            .iter()
            .zip(&memories)
            .map(|(argument, memory)| match (argument, memory) {
                (Argument::Scalar(ty, bits), _) => {
                    KernelArgument::Bytes(bits.to_le_bytes()[..ty.bytes() as usize].to_vec())
                }
                (Argument::Buffer(_) | Argument::Part(..), Some(memory)) => {
                    KernelArgument::Memory(&memory.memory)
                }
                (Argument::Address(address), _) => KernelArgument::Bytes(address.to_le_bytes().to_vec()),
                (Argument::Buffer(_) | Argument::Part(..), None) => KernelArgument::Bytes(vec![0; 8]),
            })
            .collect();
        let given = match &compiled.own {
            Some(own) => own.pass(&given, &launch.arguments)?,
            None => given,
        };
        let kernel = &built.kernel;
        kernel.run(&self.lane, launch.groups, launch.group, &given, self.limit)
    }
}
