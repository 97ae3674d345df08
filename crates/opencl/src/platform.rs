//! The OpenCL devices of this machine, and their properties.

use std::ffi::c_void;

use cl3::types::cl_device_id;
use cl3::{device as cl, platform as platforms};
use serde::{Deserialize, Serialize};

use super::failure::failure;
use crate::back::spirv::{BlockAccess, SpirvTarget};
use crate::{Error, Result};
use headstart_device::Description;

/// Intel's number as a maker of PCI devices.
const INTEL: u32 = 0x8086;

/// The sub-group sizes that a device has (`cl_intel_required_subgroup_size`).
const SUB_GROUP_SIZES_INTEL: u32 = 0x4108;

/// The version of a device's hardware, which Intel's runtimes tell (`cl_intel_device_attribute_query`).
const DEVICE_IP_VERSION_INTEL: u32 = 0x4250;

/// The structure of Intel's GPUs (`cl_intel_device_attribute_query`): slices, cores of a slice, engines of a core, threads of
/// an engine.
const PARTS_INTEL: [u32; 4] = [0x4252, 0x4253, 0x4254, 0x4255];

/// Intel's first hardware with a load/store cache that takes prefetches: 12.55, which is dg2; pvc is 12.60.
const FIRST_WITH_LSC: u32 = 12 << 22 | 55 << 14;

/// The kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceType {
    /// A GPU.
    Gpu,
    /// A CPU.
    Cpu,
    /// Anything else.
    Other,
}

/// The extension by which a device says that its compiler knows OpSubgroupBlockPrefetchINTEL.
const BLOCK_PREFETCH: &str = "cl_intel_subgroup_buffer_prefetch";

/// How a GPU of Intel's is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntelParts {
    /// Slices.
    pub slices: u32,
    /// Cores (subslices, Xe-cores) of a slice.
    pub cores_per_slice: u32,
    /// Vector engines of a core.
    pub engines_per_core: u32,
    /// Threads of an engine.
    pub threads_per_engine: u32,
}

/// A device's properties, from its runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenClFacts {
    /// Its number: GPUs first, then CPUs, in the order of the platforms.
    pub ordinal: usize,
    /// The product's name.
    pub name: String,
    /// The kind of device.
    pub kind: DeviceType,
    /// The maker's number among makers of PCI devices.
    pub vendor: u32,
    /// The version of its runtime.
    pub driver: String,
    /// Versions of SPIR-V that it takes: `SPIR-V_1.4 …`; empty if it takes none.
    pub spirv: String,
    /// Whether its compiler knows prefetches of whole blocks by sub-groups (cl_intel_subgroup_buffer_prefetch).
    pub block_prefetch: bool,
    /// The block loads and stores by sub-groups that its compiler knows (cl_intel_subgroups and its like).
    pub block_access: BlockAccess,
    /// The version of Intel's hardware, major in the upper ten bits and minor in the next eight; none of others.
    pub hardware: Option<u32>,
    /// How it is divided; none where it is no GPU of Intel's, or does not say.
    pub parts: Option<IntelParts>,
    /// Cores, as OpenCL counts them (compute units).
    pub cores: u32,
    /// Their highest clock, in MHz.
    pub clock_mhz: u32,
    /// Global memory, in bytes.
    pub memory_bytes: u64,
    /// Most bytes of one buffer.
    pub buffer_bytes: u64,
    /// Shared memory of a work-group, in bytes.
    pub shared_bytes: u64,
    /// Most work-items of a work-group.
    pub group_size: u32,
    /// Most work-items of a work-group along each dimension.
    pub(crate) group_dimensions: [u32; 3],
    /// Sizes that sub-groups can have, ascending; empty if it does not say.
    pub sub_group_sizes: Vec<u32>,
    /// Bytes of a line of the cache in front of global memory.
    pub line_bytes: u32,
    /// Bytes of that cache.
    pub cache_bytes: u64,
}

/// A device and its facts.
pub(super) struct DiscoveredDevice {
    pub id: DeviceId,
    pub facts: OpenClFacts,
}

/// The runtime's name for a device.
#[derive(Clone, Copy)]
pub(super) struct DeviceId(pub cl_device_id);

// SAFETY: a device's name is only passed back to the runtime, which may be called from any thread (OpenCL 3.0, A.2).
unsafe impl Send for DeviceId {}
// SAFETY: as above.
unsafe impl Sync for DeviceId {}

/// How many devices this machine has.
///
/// # Errors
/// There is no runtime.
pub fn count() -> Result<usize> {
    Ok(found()?.len())
}

/// The properties of the device with this number.
///
/// # Errors
/// There is no runtime, or no such device.
pub fn facts(ordinal: usize) -> Result<OpenClFacts> {
    Ok(find(ordinal)?.facts)
}

/// The device with this number.
pub(super) fn find(ordinal: usize) -> Result<DiscoveredDevice> {
    let mut all = found()?;
    let count = all.len();
    if ordinal < count {
        return Ok(all.swap_remove(ordinal));
    }
    Err(
        Error::device(format!("there is no OpenCL device opencl:{ordinal}")).accepted(match count {
            0 => "the runtime sees none".to_owned(),
            1 => "opencl:0".to_owned(),
            _ => format!("opencl:0 to opencl:{}", count - 1),
        }),
    )
}

fn found() -> Result<Vec<DiscoveredDevice>> {
    let listed = match platforms::get_platform_ids() {
        // A loader without runtimes behind it.
        Err(cl3::error_codes::CL_PLATFORM_NOT_FOUND_KHR) => Vec::new(),
        other => other.map_err(|code| failure("listing the OpenCL platforms", code))?,
    };
    let mut all = Vec::new();
    for platform in listed {
        // A platform without devices says so by an error.
        for id in cl::get_device_ids(platform, cl::CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            all.push(DiscoveredDevice {
                facts: ask(id)?,
                id: DeviceId(id),
            });
        }
    }
    all.sort_by_key(|found| match found.facts.kind {
        DeviceType::Gpu => 0,
        DeviceType::Cpu => 1,
        DeviceType::Other => 2,
    });
    for (ordinal, found) in all.iter_mut().enumerate() {
        found.facts.ordinal = ordinal;
    }
    Ok(all)
}

/// Reads a device's properties.
fn ask(id: *mut c_void) -> Result<OpenClFacts> {
    let bytes = |what| {
        cl::get_device_data(id, what).map_err(|code| failure("asking for the device's properties", code))
    };
    // Numbers are little-endian of 4 or 8 bytes, as their property has them.
    let number = |what| -> Result<u64> {
        let bytes = bytes(what)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    let text = |what| -> Result<String> {
        let bytes = bytes(what)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).trim().to_owned())
    };
    let sizes = |what| -> Vec<u64> {
        let bytes = cl::get_device_data(id, what).unwrap_or_default();
        let size = |chunk: &[u8]| {
            chunk
                .iter()
                .rev()
                .fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        bytes.chunks_exact(8).map(size).collect()
    };
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let vendor = narrow(number(cl::CL_DEVICE_VENDOR_ID)?);
    let kind = match number(cl::CL_DEVICE_TYPE)? {
        kind if kind & cl::CL_DEVICE_TYPE_GPU != 0 => DeviceType::Gpu,
        kind if kind & cl::CL_DEVICE_TYPE_CPU != 0 => DeviceType::Cpu,
        _ => DeviceType::Other,
    };
    let dimensions = sizes(cl::CL_DEVICE_MAX_WORK_ITEM_SIZES);
    let mut sub_group_sizes: Vec<u32> = sizes(SUB_GROUP_SIZES_INTEL).into_iter().map(narrow).collect();
    sub_group_sizes.sort_unstable();
    let is_intel_gpu = vendor == INTEL && kind == DeviceType::Gpu;
    let extensions = text(cl::CL_DEVICE_EXTENSIONS).unwrap_or_default();
    let largest_block = match is_intel_gpu && sub_group_sizes.contains(&8) {
        true => BlockAccess::UP_TO_16,
        false => BlockAccess::ALL,
    };
    Ok(OpenClFacts {
        ordinal: 0,
        name: text(cl::CL_DEVICE_NAME)?,
        kind,
        vendor,
        driver: text(cl::CL_DRIVER_VERSION)?,
        spirv: text(cl::CL_DEVICE_IL_VERSION).unwrap_or_default(),
        block_prefetch: extensions.split_whitespace().any(|one| one == BLOCK_PREFETCH),
        block_access: BlockAccess::of_extensions(&extensions, largest_block.most_items),
        hardware: match is_intel_gpu {
            true => number(DEVICE_IP_VERSION_INTEL).ok().map(narrow),
            false => None,
        },
        parts: match is_intel_gpu {
            true => parts(&PARTS_INTEL.map(|what| number(what).ok().map(narrow))),
            false => None,
        },
        cores: narrow(number(cl::CL_DEVICE_MAX_COMPUTE_UNITS)?),
        clock_mhz: narrow(number(cl::CL_DEVICE_MAX_CLOCK_FREQUENCY)?),
        memory_bytes: number(cl::CL_DEVICE_GLOBAL_MEM_SIZE)?,
        buffer_bytes: number(cl::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        shared_bytes: number(cl::CL_DEVICE_LOCAL_MEM_SIZE)?,
        group_size: narrow(number(cl::CL_DEVICE_MAX_WORK_GROUP_SIZE)?),
        group_dimensions: std::array::from_fn(|axis| dimensions.get(axis).map_or(1, |&size| narrow(size))),
        sub_group_sizes,
        line_bytes: narrow(number(cl::CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE)?),
        cache_bytes: number(cl::CL_DEVICE_GLOBAL_MEM_CACHE_SIZE)?,
    })
}

/// The parts of a GPU, where it told all of them.
fn parts(told: &[Option<u32>; 4]) -> Option<IntelParts> {
    let [slices, cores_per_slice, engines_per_core, threads_per_engine] = *told;
    Some(IntelParts {
        slices: slices?,
        cores_per_slice: cores_per_slice?,
        engines_per_core: engines_per_core?,
        threads_per_engine: threads_per_engine?,
    })
}

impl OpenClFacts {
    /// The target to emit for.
    pub fn target(&self) -> SpirvTarget {
        if self.vendor != INTEL || self.kind != DeviceType::Gpu {
            return SpirvTarget::Portable;
        }
        match self.hardware {
            Some(version) if version >= FIRST_WITH_LSC => SpirvTarget::IntelLsc,
            Some(_) => SpirvTarget::IntelOlder,
            // It does not say: the form that every device takes.
            None => SpirvTarget::Portable,
        }
    }

    /// Whether only kernels that its compiler vectorizes have sub-groups: Intel's runtime for CPUs (2026.2.0), which runs the
    /// work-items of others one by one, each of them lane 0, and whose block loads crash there.
    pub(crate) fn vectorizes(&self) -> bool {
        self.vendor == INTEL && self.kind == DeviceType::Cpu
    }

    /// The sub-group size of a kernel that requires none: 32, as on the GPUs of other makers, where it can be had.
    pub(crate) fn default_sub_group_size(&self) -> u32 {
        let has = |size: &u32| self.sub_group_sizes.contains(size);
        [32, 16]
            .into_iter()
            .find(has)
            .unwrap_or_else(|| self.sub_group_sizes.last().copied().unwrap_or(1))
    }

    /// The device in the words that all devices use.
    pub fn description(&self) -> Description {
        Description {
            name: format!("opencl:{}", self.ordinal),
            title: self.name.clone(),
            cores: self.cores,
            max_group_size: self.group_size,
            max_group_dimensions: self.group_dimensions,
            sub_group_sizes: match self.sub_group_sizes.is_empty() {
                true => vec![self.default_sub_group_size()],
                false => self.sub_group_sizes.clone(),
            },
            default_sub_group_size: self.default_sub_group_size(),
            most_block_items: self.block_access.most_items,
            max_shared_bytes: self.shared_bytes,
            memory_bytes: self.memory_bytes,
        }
    }

    /// Cores as models count them: Xe-cores and subslices, where OpenCL counts their engines.
    pub fn real_cores(&self) -> u32 {
        let parts = self
            .parts
            .and_then(|parts| parts.slices.checked_mul(parts.cores_per_slice));
        parts.filter(|&cores| cores > 0).unwrap_or(self.cores)
    }

    /// The clock that cycles are counted by, in MHz: the highest one, or 1,000 where the device does not tell it, as on virtual
    /// machines.
    pub fn told_clock_mhz(&self) -> f64 {
        match self.clock_mhz {
            0 => 1000.0,
            told => f64::from(told),
        }
    }

    /// Whether it is a GPU of Intel's.
    pub fn is_intel_gpu(&self) -> bool {
        self.vendor == INTEL && self.kind == DeviceType::Gpu
    }

    /// Whether it takes the modules that we emit.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn takes_spirv(&self) -> Result<()> {
        if self.spirv.contains("SPIR-V_1.4") {
            return Ok(());
        }
        let takes = match self.spirv.as_str() {
            "" => "no SPIR-V at all",
            versions => versions,
        };
        Err(
            Error::device(format!("opencl:{} ({}) takes {takes}", self.ordinal, self.name))
                .accepted("an OpenCL device that takes SPIR-V 1.4"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(hardware: Option<u32>) -> OpenClFacts {
        OpenClFacts {
            ordinal: 0,
            name: "a GPU".into(),
            kind: DeviceType::Gpu,
            vendor: INTEL,
            driver: "1".into(),
            block_prefetch: false,
            block_access: BlockAccess::default(),
            spirv: "SPIR-V_1.2 SPIR-V_1.4".into(),
            hardware,
            parts: None,
            cores: 128,
            clock_mhz: 1600,
            memory_bytes: 48 << 30,
            buffer_bytes: 48 << 30,
            shared_bytes: 128 << 10,
            group_size: 1024,
            group_dimensions: [1024; 3],
            sub_group_sizes: vec![16, 32],
            line_bytes: 64,
            cache_bytes: 0,
        }
    }

    #[test]
    fn the_hardware_decides_what_a_prefetch_becomes() {
        let version = |major: u32, minor: u32| Some(major << 22 | minor << 14);
        assert_eq!(gpu(version(12, 60)).target(), SpirvTarget::IntelLsc);
        assert_eq!(gpu(version(12, 55)).target(), SpirvTarget::IntelLsc);
        assert_eq!(gpu(version(20, 1)).target(), SpirvTarget::IntelLsc);
        assert_eq!(gpu(version(12, 0)).target(), SpirvTarget::IntelOlder);
        assert_eq!(gpu(version(11, 0)).target(), SpirvTarget::IntelOlder);
        assert_eq!(gpu(None).target(), SpirvTarget::Portable);
        let cpu = OpenClFacts {
            kind: DeviceType::Cpu,
            ..gpu(None)
        };
        assert_eq!(cpu.target(), SpirvTarget::Portable);
    }

    /// Without a runtime each way in answers with the same clear line; with one, its devices are listed.
    #[test]
    fn lists_or_says_why_not() {
        match count() {
            Err(error) => {
                assert_eq!(error.exit_status(), 3, "{error}");
                eprintln!("skipped: {error}");
            }
            Ok(count) => {
                let error = facts(count).expect_err("numbers start at 0");
                assert!(error.to_string().contains("there is no OpenCL device"), "{error}");
            }
        }
    }
}
