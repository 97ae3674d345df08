//! The file: the device and its driver, the microbenchmarks' results, and the time of each plan of the accuracy suite. It is
//! written after each step, so that an interrupted run keeps its results.

use std::collections::BTreeMap;
use std::path::Path;

use headstart::device::model::Vendor;
use headstart::files::{self, FileError};
use headstart::suggest::quoted;
use headstart::tune::kinds::KnownDevice;
use headstart::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::bench::accuracy::record::Record;
use crate::calibrate::rows::Measurements;
use crate::output::{Destination, json_line};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The mark of such a file.
const FORMAT: &str = "headstart kit 1";

/// An owner's measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kit {
    /// The format, and its version.
    pub format: String,
    /// The version that measured.
    pub version: String,
    /// The device as the command line called it: `opencl:0`.
    pub device: String,
    /// The device's and its driver's own description, by name.
    pub facts: BTreeMap<String, String>,
    /// The system that it was measured on.
    pub system: String,
    /// Seconds that were spent, all runs together.
    pub seconds: f64,
    /// The microbenchmarks.
    pub calibration: Measurements,
    /// The cases of the accuracy suite.
    pub accuracy: Record,
}

impl Kit {
    /// An empty one for a device.
    pub fn new(device: &dyn KnownDevice, calibration: Measurements) -> Kit {
        Kit {
            format: FORMAT.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: device.name(),
            facts: facts(device),
            system: format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH),
            seconds: 0.0,
            calibration,
            accuracy: Record::default(),
        }
    }

    /// Reads a file; none where there is nothing yet.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<Option<Kit>> {
        let refused = |what: String| Error::input(what).at(quoted(&path.to_string_lossy()));
        let text = match files::text(path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(FileError::TooLong { .. }) => {
                return Err(refused("it is too large".into()).accepted("at most 64 MiB"));
            }
            Err(error) => return Err(refused(format!("it cannot be read: {error}"))),
        };
        if text.trim().is_empty() {
            return Ok(None);
        }
        let kit: Kit = serde_json::from_str(&text).map_err(|error| {
            refused(format!("not a file of `headstart kit`: {error}"))
                .accepted("a file that `headstart kit DEVICE -o FILE` writes")
        })?;
        match kit.format == FORMAT {
            true => Ok(Some(kit)),
            false => {
                Err(refused(format!("its form is {}", quoted(&kit.format))).accepted(format!("`{FORMAT}`")))
            }
        }
    }

    /// Whether present measurements belong into it.
    ///
    /// # Errors
    /// It is of another device, driver or version.
    pub fn goes_on(&self, device: &dyn KnownDevice) -> Result<()> {
        let now = (facts(device), env!("CARGO_PKG_VERSION"));
        let other = |what: String| {
            Err(Error::usage(what).accepted("another file for `-o`, or this one from where it was made"))
        };
        if now.1 != self.version {
            return other(format!(
                "the file is of version {}, and this is {}",
                self.version, now.1
            ));
        }
        let differs = now
            .0
            .iter()
            .find(|(name, value)| self.facts.get(*name) != Some(value));
        match differs {
            None => Ok(()),
            Some((name, value)) => other(format!(
                "the file is of another device or driver: its {name} is {}, and here it is {}",
                quoted(self.facts.get(name).map_or("", String::as_str)),
                quoted(value)
            )),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, destination: &Destination) -> Result<()> {
        destination.write(&json_line(self)?)
    }
}

/// A device's and its driver's own description. Nothing in it distinguishes two cards of one kind.
fn facts(device: &dyn KnownDevice) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |name: &str, value: String| facts.insert(name.to_owned(), value);
    if let Some(own) = device.opencl() {
        put("name", own.name.clone());
        put("kind", format!("{:?}", own.kind).to_lowercase());
        put("vendor", format!("{:#06x}", own.vendor));
        put("driver", own.driver.clone());
        put("spirv", own.spirv.clone());
        put("compute units", own.cores.to_string());
        put(
            "clock, MHz",
            match own.clock_mhz {
                0 => "not told: cycles are counted at 1,000".to_owned(),
                told => told.to_string(),
            },
        );
        put("memory, bytes", own.memory_bytes.to_string());
        put("cache, bytes", own.cache_bytes.to_string());
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
    } else if let Some(own) = device.gpu() {
        put("name", own.name.clone());
        put("driver", crate::published::driver().unwrap_or_default());
        put("CUDA", own.driver.to_string());
        put("capability", format!("{}.{}", own.capability.0, own.capability.1));
        put("cores", own.cores.to_string());
        put("clock, kHz", own.clock_khz.to_string());
        put("memory, bytes", own.memory_bytes.to_string());
        put("L2, bytes", own.l2_bytes.to_string());
    } else if let Some(model) = device.model() {
        let maker = match model.vendor {
            Vendor::Nvidia => "NVIDIA",
            Vendor::Intel => "Intel",
        };
        put("name", format!("{} (simulated)", model.title));
        put("maker", maker.to_owned());
        put("model", model.name.clone());
    }
    facts
}
