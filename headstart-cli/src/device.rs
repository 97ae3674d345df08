//! The device of a command: looked up in the library's registry, with the command line's options.

use headstart::device::CacheState;
use headstart::device::cuda::gpu::GpuFacts;
use headstart::device::cuda::ptxas;
use headstart::suggest::quoted;
use headstart::tune::Bench;
use headstart::tune::gpu::GpuBench;
use headstart::tune::kinds::{self, KnownDevice, Opening};
use headstart::{Error, Result};

use crate::output::explain;
use crate::progress;
use crate::terminal;
use crate::toolkit;

/// Operations of one sub-group after which a kernel counts as endless on a simulated device, unless the command line says
/// otherwise: half a minute of simulation.
pub const MAX_STEPS: u64 = 1 << 28;

/// The device of this name: `sim:h200`, a model file, `cuda:0` or `opencl:0`. `overrides` change numbers of a model:
/// `dram.latency=900`. From now on its users' words are spoken.
///
/// # Errors
/// There is no such device, or its model has no such number.
pub fn find(name: &str, overrides: &[String]) -> Result<Box<dyn KnownDevice>> {
    kinds::find(name, overrides).inspect(|found| terminal::use_terms(found.terms()))
}

/// The same; without a name the first GPU, or the simulated H200 if there is none, or if numbers of a model are to be changed.
///
/// # Errors
/// There is no such device, or its model has no such number.
pub fn find_or_first(name: Option<&str>, overrides: &[String]) -> Result<Box<dyn KnownDevice>> {
    kinds::find_or_first(name, overrides).inspect(|found| terminal::use_terms(found.terms()))
}

/// A device, ready to try plans on: each timed launch finds L2 as `cache` says. A simulated one stops a kernel after
/// `max_steps` operations of a sub-group, or after [`MAX_STEPS`].
///
/// # Errors
/// The GPU cannot be opened, the device's L2 cannot be emptied, or steps are to be counted on a GPU.
pub fn open(device: &dyn KnownDevice, cache: CacheState, max_steps: Option<u64>) -> Result<Box<dyn Bench>> {
    device.bench(&Opening {
        max_steps: max_steps.or_else(|| device.model().map(|_| MAX_STEPS)),
        ..opening(device.gpu().is_some(), cache)?
    })
}

/// How devices are opened; `has_worker` says that there will be a worker, which is mentioned.
fn opening(has_worker: bool, cache: CacheState) -> Result<Opening> {
    let program = std::env::current_exe().map_err(|error| Error::device(format!("no worker: {error}")))?;
    if let Some(assembler) = toolkit::program("ptxas") {
        ptxas::found_for_models(assembler);
    }
    if has_worker {
        explain(|| format!("runs: {} worker", quoted(&program.to_string_lossy())));
        // The worker starts it, for each kernel.
        if let Some(assembler) = std::env::var_os("HEADSTART_PTXAS").filter(|name| !name.is_empty()) {
            explain(|| {
                let options = std::env::var("HEADSTART_PTXAS_OPTIONS").unwrap_or_default();
                format!(
                    "runs for each kernel: {} -lineinfo {options} kernel.ptx -o kernel.cubin",
                    quoted(&assembler.to_string_lossy())
                )
            });
        }
    }
    Ok(Opening {
        cache,
        max_steps: None,
        stop: Some(&progress::STOP),
        worker: (program, vec!["worker".into()]),
    })
}

/// The device of this name, ready to try plans on; `cuda:all` is every GPU of this machine. Without a name the first GPU,
/// or the simulated H200 where there is none.
///
/// # Errors
/// There is no such device, or the GPUs are of different kinds.
pub fn bench(
    name: Option<&str>,
    overrides: &[String],
    cache: CacheState,
    max_steps: Option<u64>,
) -> Result<Box<dyn Bench>> {
    let Some(kind) = name.and_then(kinds::all_of) else {
        return open(&*find_or_first(name, overrides)?, cache, max_steps);
    };
    kind.bench(&Opening {
        max_steps,
        ..opening(kind.has_worker, cache)?
    })
}

/// The GPU of this name.
///
/// # Errors
/// It is none.
pub fn gpu(name: &str) -> Result<GpuFacts> {
    find(name, &[])?
        .gpu()
        .cloned()
        .ok_or_else(|| Error::usage(format!("{} is not a GPU", quoted(name))).accepted("`cuda:0`"))
}

/// A GPU in a process of its own, which kernels are compared on.
///
/// # Errors
/// The process cannot be started, or the GPU cannot be opened there.
pub fn worker(facts: &GpuFacts) -> Result<GpuBench> {
    let (program, arguments) = opening(false, CacheState::Kept)?.worker;
    GpuBench::start(&program, &arguments, facts.ordinal)
}
