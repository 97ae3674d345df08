//! A GPU behind the [`Device`] trait.
//!
//! Work is done in this process: a kernel that faults or runs too long takes the context with it, and everything afterwards
//! fails. Code that tries many kernels uses a [`worker`](super::worker) instead.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::clock::GpuClock;
use super::failure::{Failure, FailureKind};
use super::fill;
use super::gpu::{Gpu, GpuFacts};
use super::launch::{Arguments, Geometry};
use super::memory;
use super::module::Function;
use super::queue::{Memory, Serving};
use crate::back::ptx::{self, Options, Ptx, PtxTarget};
use crate::ir::{Kernel, Type};
use crate::{Error, Result};
use headstart_device::{
    Allocation, Buffer, Description, Device, Fill, Image, Images, Launch, Pattern, Program, Queue,
    WorkerQueue,
};

/// Bytes that the host computes at a time for a pattern without a closed form.
const CHUNK_BYTES: u64 = 16 << 20;

/// How long a launch may take.
const LIMIT: Duration = Duration::from_secs(20);

/// An NVIDIA GPU.
pub struct CudaDevice {
    gpu: Gpu,
    description: Description,
    options: Options,
    /// The clock of all queues.
    clock: Arc<GpuClock>,
}

/// A kernel that was compiled for a GPU.
pub(crate) struct CudaProgram {
    /// The PTX that was compiled.
    pub ptx: Ptx,
    /// The function in the GPU.
    pub function: Function,
}

impl CudaDevice {
    /// Opens the GPU with this number: `cuda:0` is 0.
    ///
    /// # Errors
    /// There is no driver, no such GPU, or it is too old.
    pub fn open(ordinal: usize) -> Result<CudaDevice> {
        CudaDevice::of(Gpu::open(ordinal)?)
    }

    /// As [`CudaDevice::open`], in a context of its own: neither buffers nor programs are those of the same GPU opened
    /// otherwise. A heavy thing to make; one is enough for a program.
    ///
    /// # Errors
    /// As those of [`CudaDevice::open`].
    #[doc(hidden)]
    pub fn open_apart(ordinal: usize) -> Result<CudaDevice> {
        CudaDevice::of(Gpu::open_apart(ordinal)?)
    }

    /// A program from the text of a module that the kernel was read from.
    ///
    /// # Errors
    /// The driver does not take it.
    #[doc(hidden)]
    pub fn of_text(&self, kernel: &Arc<Kernel>, ptx: Ptx) -> Result<Program> {
        let function = self.gpu.load(&ptx.text, &ptx.entry)?;
        Ok(Program::new(Arc::clone(kernel), CudaProgram { ptx, function }))
    }

    fn of(gpu: Gpu) -> Result<CudaDevice> {
        let facts = gpu.facts();
        let target = PtxTarget::for_capability(facts.capability).ok_or_else(|| {
            Error::device(format!("{} is too old", facts.name)).accepted("compute capability 8.0 or later")
        })?;
        Ok(CudaDevice {
            description: describe(facts),
            options: Options::new(target),
            clock: Arc::new(GpuClock::start(&gpu, LIMIT)?),
            gpu,
        })
    }

    /// The GPU itself.
    #[doc(hidden)]
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// How kernels are emitted.
    #[doc(hidden)]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The architecture of machine code for this GPU: cubins run on GPUs of the same architecture, whatever the driver.
    fn architecture(&self) -> String {
        let (major, minor) = self.gpu.facts().capability;
        format!("cuda sm_{major}{minor}")
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
        most_block_items: facts.sub_group,
        max_shared_bytes: u64::from(facts.shared_bytes_per_group),
        memory_bytes: facts.memory_bytes,
    }
}

/// Takes memory and fills it, on the GPU where the fill has a closed form.
pub(super) fn allocate_filled(
    gpu: &Gpu,
    target: PtxTarget,
    element: Type,
    length: u64,
    fill: &Fill,
) -> Result<memory::Buffer> {
    let mut memory = gpu.allocate(size(fill.check(element, length)?)?)?;
    refill(gpu, target, &mut memory, element, length, fill)?;
    Ok(memory)
}

fn size(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::usage("a buffer is larger than this machine can address"))
}

/// Fills memory again, as it was filled at first.
fn refill(
    gpu: &Gpu,
    target: PtxTarget,
    memory: &mut memory::Buffer,
    element: Type,
    length: u64,
    fill: &Fill,
) -> Result<(), Failure> {
    refill_with(gpu, target, memory, element, length, fill, None)
}

/// The same, with the kernels that fill, by their text: who fills again and again keeps them.
pub(super) fn refill_with(
    gpu: &Gpu,
    target: PtxTarget,
    memory: &mut memory::Buffer,
    element: Type,
    length: u64,
    fill: &Fill,
    kept: Option<&mut HashMap<String, Function>>,
) -> Result<(), Failure> {
    match fill {
        // A value that a kernel rarely computes, so that unwritten memory is noticed.
        Fill::Uninitialized => memory.fill(0xa5)?,
        Fill::Bytes(given) => memory.write(given)?,
        Fill::Pattern(_) if length == 0 => {}
        Fill::Pattern(pattern) => match fill::kernel(pattern, element) {
            Some(kernel) => {
                let ptx = ptx::emit(&kernel, &Options::new(target))
                    .map_err(|error| Failure::new(FailureKind::Request, error.to_string()))?;
                let function = match kept.as_ref().and_then(|kept| kept.get(&ptx.text)) {
                    Some(function) => function.clone(),
                    None => gpu.load(&ptx.text, &ptx.entry)?,
                };
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
                    cooperative: false,
                };
                function.launch(geometry, &arguments)?;
                // The function must outlive its launch.
                gpu.wait(Duration::from_secs(60))?;
                if let Some(kept) = kept {
                    kept.insert(ptx.text, function);
                }
            }
            None => compute(memory, pattern, element, length)?,
        },
    }
    Ok(())
}

/// Fills memory with data computed on the host.
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

/// The geometry of a launch, with the emitted kernel's requirements.
pub(crate) fn geometry(launch: &Launch, ptx: &Ptx) -> Geometry {
    Geometry {
        groups: launch.groups,
        group: launch.group,
        dynamic_shared_bytes: ptx.dynamic_shared_bytes,
        cooperative: false,
    }
}

impl Device for CudaDevice {
    fn description(&self) -> &Description {
        &self.description
    }

    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        let memory = allocate_filled(&self.gpu, self.options.target, element, length, &fill)?;
        // Queues have lanes of their own, which do not wait for the fill.
        self.gpu.wait(LIMIT)?;
        Ok(Buffer::new(element, length, Arc::new(Memory(memory))))
    }

    fn allocate_as(&self, allocation: Allocation, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        let bytes = size(fill.check(element, length)?)?;
        let mut memory = match allocation {
            Allocation::Device => return self.allocate(element, length, fill),
            Allocation::Host => self.gpu.allocate_on_host(bytes)?,
            Allocation::Shared => self.gpu.allocate_managed(bytes)?,
        };
        refill(
            &self.gpu,
            self.options.target,
            &mut memory,
            element,
            length,
            &fill,
        )?;
        self.gpu.wait(LIMIT)?;
        let memory = Arc::new(Memory(memory));
        let buffer = Buffer::new(element, length, Arc::clone(&memory) as Arc<dyn Any + Send + Sync>);
        Ok(buffer.seen_by_host(allocation, memory))
    }

    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
        self.of_text(kernel, ptx::emit(kernel, &self.options)?)
    }

    fn image(&self, program: &Program) -> Result<Option<Image>> {
        let ptx = &program.implementation::<CudaProgram>()?.ptx;
        let code = self.gpu.assemble(&ptx.text)?;
        Ok(Some(Image::new(&self.architecture(), ptx.text.as_bytes(), code)))
    }

    fn load(&self, kernel: &Arc<Kernel>, images: &Images) -> Result<Program> {
        let ptx = ptx::emit(kernel, &self.options)?;
        let function = match images.find(&self.architecture(), ptx.text.as_bytes()) {
            // An image that this driver does not take after all is no reason to fail.
            Some(image) => self
                .gpu
                .load_image(&image.code, &ptx.entry)
                .or_else(|_| self.gpu.load(&ptx.text, &ptx.entry))?,
            None => self.gpu.load(&ptx.text, &ptx.entry)?,
        };
        Ok(Program::new(Arc::clone(kernel), CudaProgram { ptx, function }))
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let serving = Serving {
            gpu: self.gpu.clone(),
            lane: self.gpu.lane()?,
            limit: LIMIT,
            description: self.description.clone(),
            clock: Arc::clone(&self.clock),
        };
        Ok(Box::new(WorkerQueue::new(move |submitted| {
            serving.run(submitted)
        })?))
    }
}
