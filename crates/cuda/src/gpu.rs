//! Opening the driver and a GPU, and reading its properties.
//!
//! The driver's library is opened at run time. Where it is missing, everything here answers with a
//! [`Failure`] of kind [`FailureKind::MissingDriver`] and nothing panics.

use std::sync::{Arc, OnceLock};

use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};
use sys::CUdevice_attribute as Attribute;

use super::failure::{Failure, FailureKind};

/// The oldest driver whose compiler takes PTX 8.0: the one of CUDA 12.0.
const OLDEST_DRIVER: i32 = 12_000;

/// The oldest compute capability with asynchronous copies.
const OLDEST_CAPABILITY: (u32, u32) = (8, 0);

/// A GPU's properties, from its driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// Its number in the driver's order.
    pub ordinal: usize,
    /// The product's name.
    pub name: String,
    /// The compute capability, major and minor.
    pub capability: (u32, u32),
    /// The version of CUDA that the driver serves: 13000 for 13.0.
    pub driver: i32,
    /// How many cores (multiprocessors) it has.
    pub cores: u32,
    /// The cores' highest clock, in kHz.
    pub clock_khz: u32,
    /// Global memory, in bytes.
    pub memory_bytes: u64,
    /// L2 cache, in bytes.
    pub l2_bytes: u64,
    /// Most shared memory of one work-group, in bytes.
    pub shared_bytes_per_group: u32,
    /// Shared memory of one core, in bytes.
    pub shared_bytes_per_core: u32,
    /// 32-bit registers of one core.
    pub registers_per_core: u32,
    /// Most resident work-items of one core.
    pub work_items_per_core: u32,
    /// Work-items of a sub-group.
    pub sub_group: u32,
}

/// The functions of the driver's library that are called. The binding looks each up when it is first called, and panics if it
/// is not there.
const FUNCTIONS: &[&str] = &[
    "cuCtxCreate_v2",
    "cuCtxDestroy_v2",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventRecord",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuLinkAddData_v2",
    "cuLinkComplete",
    "cuLinkCreate_v2",
    "cuLinkDestroy",
    "cuMemAlloc_v2",
    "cuMemAllocManaged",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuMemcpyAsync",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
];

/// The first function that the library found lacks.
fn missing_function() -> Option<&'static str> {
    FUNCTIONS.iter().copied().find(|name| {
        // SAFETY: the symbol is looked up, and not called.
        let found = unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()) };
        found.is_err()
    })
}

/// Opens the driver's library once. The version of CUDA that it serves, or why it cannot be used.
fn driver() -> Result<i32, Failure> {
    static DRIVER: OnceLock<Result<i32, Failure>> = OnceLock::new();
    DRIVER
        .get_or_init(|| {
            // SAFETY: loading NVIDIA's library runs its initialisers, which have no preconditions.
            if !unsafe { sys::is_culib_present() } {
                return Err(Failure::new(
                    FailureKind::MissingDriver,
                    "this machine has no NVIDIA driver: its library libcuda.so.1 was not found",
                )
                .accepted("install NVIDIA's driver, or choose a simulated device such as sim:h200"));
            }
            if let Some(missing) = missing_function() {
                return Err(Failure::new(
                    FailureKind::OldDriver,
                    format!("the library libcuda.so.1 that was found has no `{missing}`"),
                )
                .accepted("NVIDIA's driver for CUDA 12.0 or later, or a simulated device such as sim:h200"));
            }
            result::init().map_err(|error| Failure::of(error, "starting the NVIDIA driver"))?;
            let mut version = 0;
            // SAFETY: the call writes one integer.
            unsafe { sys::cuDriverGetVersion(&mut version) }
                .result()
                .map_err(|error| Failure::of(error, "asking the NVIDIA driver for its version"))?;
            if version < OLDEST_DRIVER {
                return Err(Failure::new(
                    FailureKind::OldDriver,
                    format!(
                        "the NVIDIA driver serves CUDA {}.{}",
                        version / 1000,
                        version % 1000 / 10
                    ),
                )
                .accepted("a driver for CUDA 12.0 or later"));
            }
            Ok(version)
        })
        .clone()
}

/// How many GPUs the driver sees.
pub fn count() -> Result<usize, Failure> {
    driver()?;
    let count = result::device::get_count().map_err(|error| Failure::of(error, "counting the GPUs"))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The properties of the GPU with this number. Does not create a context on it.
pub fn facts(ordinal: usize) -> Result<GpuFacts, Failure> {
    let driver = driver()?;
    let count = count()?;
    if ordinal >= count {
        return Err(
            Failure::new(FailureKind::NoDevice, format!("there is no GPU cuda:{ordinal}")).accepted(
                match count {
                    0 => "this machine has none that the driver sees".to_string(),
                    1 => "cuda:0".to_string(),
                    _ => format!("cuda:0 to cuda:{}", count - 1),
                },
            ),
        );
    }
    let asking = |error| Failure::of(error, "asking for the GPU's properties");
    let device = result::device::get(ordinal as i32).map_err(asking)?;
    // SAFETY: `device` was returned by the driver just now; each call writes one value.
    let attribute = |name: Attribute| -> Result<u32, Failure> {
        let value = unsafe { result::device::get_attribute(device, name) }.map_err(asking)?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    // SAFETY: as above.
    let memory_bytes = unsafe { result::device::total_mem(device) }.map_err(asking)? as u64;
    Ok(GpuFacts {
        ordinal,
        name: result::device::get_name(device).map_err(asking)?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver,
        cores: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        memory_bytes,
        l2_bytes: u64::from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        shared_bytes_per_group: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_bytes_per_core: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
        registers_per_core: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        work_items_per_core: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        sub_group: attribute(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
    })
}

/// A GPU that is ready for work: its context and one queue.
#[derive(Clone)]
pub struct Gpu(pub(super) Arc<Context>);

/// The driver's objects behind a [`Gpu`]. Released when the last user of the GPU is gone.
pub(super) struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
    /// Whether it is the one that everybody in this process shares.
    is_primary: bool,
    pub(super) stream: sys::CUstream,
    pub(super) facts: GpuFacts,
    /// Whether memory can be mapped to addresses of choice.
    pub(super) maps_memory: bool,
}

// SAFETY: the driver's handles may be used from any thread once the context is current there, which
// `Gpu::enter` sees to before each call; the driver locks internally.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Gpu {
    /// Opens the GPU with this number.
    ///
    /// Fails without a driver, without that GPU, or if the GPU is older than compute capability 8.0.
    pub fn open(ordinal: usize) -> Result<Gpu, Failure> {
        Gpu::open_with(ordinal, |device| {
            // SAFETY: `device` is valid; the context is released in `drop`.
            let context = unsafe { result::primary_ctx::retain(device) }?;
            Ok((context, true))
        })
    }

    /// As [`Gpu::open`], in a context of its own, which shares neither memory nor modules with others of this process.
    pub(crate) fn open_apart(ordinal: usize) -> Result<Gpu, Failure> {
        Gpu::open_with(ordinal, |device| {
            let mut context = std::ptr::null_mut();
            // SAFETY: `device` is valid; the call writes one handle; the context is destroyed in `drop`.
            unsafe { sys::cuCtxCreate_v2(&mut context, 0, device) }.result()?;
            Ok((context, false))
        })
    }

    fn open_with(
        ordinal: usize,
        enter: impl FnOnce(sys::CUdevice) -> Result<(sys::CUcontext, bool), result::DriverError>,
    ) -> Result<Gpu, Failure> {
        let facts = facts(ordinal)?;
        if facts.capability < OLDEST_CAPABILITY {
            let (major, minor) = facts.capability;
            return Err(Failure::new(
                FailureKind::OldDevice,
                format!(
                    "cuda:{ordinal} ({}) has compute capability {major}.{minor}",
                    facts.name
                ),
            )
            .accepted("a GPU of compute capability 8.0 or later, or a simulated device such as sim:h200"));
        }
        let opening = |error| Failure::of(error, "opening the GPU");
        let device = result::device::get(ordinal as i32).map_err(opening)?;
        let (context, is_primary) = enter(device).map_err(opening)?;
        // SAFETY: the context was retained or made just now.
        unsafe { result::ctx::set_current(context) }.map_err(opening)?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(opening)?;
        let maps_memory = Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED;
        // SAFETY: `device` is valid; the call writes one value.
        let maps_memory = unsafe { result::device::get_attribute(device, maps_memory) };
        Ok(Gpu(Arc::new(Context {
            maps_memory: maps_memory.is_ok_and(|is| is != 0),
            device,
            context,
            is_primary,
            stream,
            facts,
        })))
    }

    /// Whether memory of one can be used in the other.
    pub(super) fn shares_memory_with(&self, other: &Gpu) -> bool {
        self.0.context == other.0.context
    }

    /// The GPU's properties.
    pub fn facts(&self) -> &GpuFacts {
        &self.0.facts
    }

    /// Makes the context current on this thread, as every call of the driver needs.
    pub(super) fn enter(&self) -> Result<(), Failure> {
        self.0.enter()
    }

    /// Global memory that is free now, in bytes.
    pub(crate) fn free_bytes(&self) -> Result<u64, Failure> {
        self.enter()?;
        let (free, _total) =
            result::mem_get_info().map_err(|error| Failure::of(error, "asking how much memory is free"))?;
        Ok(free as u64)
    }
}

impl Context {
    pub(super) fn enter(&self) -> Result<(), Failure> {
        // SAFETY: the context lives as long as `self`.
        unsafe { result::ctx::set_current(self.context) }
            .map_err(|error| Failure::of(error, "choosing the GPU"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Errors are of no use here: after a fault every call fails, and the process ends soon.
        if self.enter().is_ok() {
            // SAFETY: nothing uses the stream any more, since every user holds the context.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
        // SAFETY: retained or made once in `open_with`.
        let _ = unsafe {
            match self.is_primary {
                true => result::primary_ctx::release(self.device),
                false => sys::cuCtxDestroy_v2(self.context).result(),
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a driver each way in answers with the same clear line; with one, the first GPU opens.
    #[test]
    fn opens_or_says_why_not() {
        match count() {
            Err(failure) => {
                assert!(
                    matches!(
                        failure.kind,
                        FailureKind::MissingDriver | FailureKind::NoDevice | FailureKind::OldDriver
                    ),
                    "{failure:?}"
                );
                let error = Gpu::open(0).err().expect("no GPU can be opened without a driver");
                assert_eq!(crate::Error::from(error).exit_status(), 3);
                eprintln!("skipped: {}", failure.what);
            }
            Ok(count) => {
                let missing = facts(count).expect_err("numbers start at 0");
                assert_eq!(missing.kind, FailureKind::NoDevice);
            }
        }
    }
}
