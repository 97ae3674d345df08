//! What a device says of itself before any measurement.

use std::collections::BTreeMap;

use headstart::device::cuda::gpu::GpuFacts;
use headstart::device::model::Vendor;
use headstart::device::opencl::platform::OpenClFacts;
use headstart::tune::kinds::KnownDevice;
use headstart::{Error, Result};

use super::rows::Measurements;
use headstart_cli::published;

/// Measurements of a device that have no rows yet.
///
/// # Errors
/// None of a known kind: a bug.
pub fn of(device: &dyn KnownDevice) -> Result<Measurements> {
    let blank = Measurements {
        command: published::command("headstart"),
        device: String::new(),
        driver: String::new(),
        date: published::date(),
        maker: None,
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        facts: BTreeMap::new(),
        cores: 0,
        clock_mhz: 0.0,
        l2_bytes: 0,
        memory_bytes: 0,
        seconds: 0.0,
        model: None,
        rows: Vec::new(),
    };
    match (device.model(), device.gpu(), device.opencl()) {
        (Some(model), ..) => Ok(Measurements {
            device: format!("{} (simulated)", model.title),
            driver: format!("sim:{}", model.name),
            maker: Some(maker(model.vendor).to_owned()),
            cores: *model.core.count,
            clock_mhz: *model.core.clock,
            l2_bytes: *model.l2.size,
            memory_bytes: *model.dram.size,
            ..blank
        }),
        (_, Some(facts), _) => Ok(of_gpu(facts, blank)),
        (.., Some(facts)) => Ok(of_opencl(facts, blank)),
        _ => Err(Error::bug("a device of an unknown kind")),
    }
}

fn of_opencl(facts: &OpenClFacts, blank: Measurements) -> Measurements {
    Measurements {
        device: facts.name.clone(),
        driver: facts.driver.clone(),
        maker: Some(match facts.is_intel_gpu() {
            true => maker(Vendor::Intel).to_owned(),
            false => String::new(),
        }),
        facts: told(facts),
        cores: facts.real_cores(),
        clock_mhz: facts.told_clock_mhz(),
        l2_bytes: facts.cache_bytes,
        memory_bytes: facts.memory_bytes,
        ..blank
    }
}

/// What only OpenCL devices say.
fn told(own: &OpenClFacts) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |name: &str, value: String| facts.insert(name.to_owned(), value);
    put("kind", format!("{:?}", own.kind).to_lowercase());
    put("vendor", format!("{:#06x}", own.vendor));
    put("spirv", own.spirv.clone());
    put("compute units", own.cores.to_string());
    if own.clock_mhz == 0 {
        put("clock, MHz", "not told: cycles are counted at 1,000".to_owned());
    }
    put("cache line, bytes", own.line_bytes.to_string());
    put("shared memory, bytes", own.shared_bytes.to_string());
    put("work-items of a work-group", own.group_size.to_string());
    put("sub-group sizes", format!("{:?}", own.sub_group_sizes));
    put("block prefetch", own.block_prefetch.to_string());
    if let Some(version) = own.hardware {
        let (major, minor) = (version >> 22, version >> 14 & 0xff);
        put("hardware", format!("{major}.{minor} ({version:#010x})"));
    }
    if let Some(parts) = own.parts {
        put("slices", parts.slices.to_string());
        put("cores of a slice", parts.cores_per_slice.to_string());
        put("engines of a core", parts.engines_per_core.to_string());
        put("threads of an engine", parts.threads_per_engine.to_string());
    }
    facts
}

/// As files name a maker.
pub fn maker(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "nvidia",
        Vendor::Intel => "intel",
    }
}

fn of_gpu(facts: &GpuFacts, blank: Measurements) -> Measurements {
    Measurements {
        device: facts.name.clone(),
        driver: published::driver().unwrap_or_else(|| format!("for CUDA {}", facts.driver)),
        maker: Some(maker(Vendor::Nvidia).to_owned()),
        cores: facts.cores,
        clock_mhz: f64::from(facts.clock_khz) / 1000.0,
        l2_bytes: facts.l2_bytes,
        memory_bytes: facts.memory_bytes,
        ..blank
    }
}
