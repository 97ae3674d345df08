//! The device that a command is about.

use headstart::back::ptx;
use headstart::device::model::{self, DeviceModel, Vendor};
use headstart::tune::SimulatedBench;
use headstart::{Error, Result};

/// A simulated device, by its model.
pub struct Chosen {
    pub model: DeviceModel,
}

impl Chosen {
    /// The device of this name: `sim:h200`, or a model file.
    ///
    /// # Errors
    /// There is no such device.
    pub fn find(name: &str) -> Result<Chosen> {
        match name.split_once(':') {
            Some(("sim", _)) | None => Ok(Chosen {
                model: model::find(name, &[])?,
            }),
            Some(_) => Err(
                Error::usage(format!("there is no device {}", headstart::suggest::quoted(name)))
                    .accepted("`sim:NAME`, as `headstart devices` lists them, or a model file"),
            ),
        }
    }

    /// As `--device` spells it.
    pub fn name(&self) -> String {
        self.model.description().name
    }

    /// The device, ready to try plans on.
    pub fn bench(&self) -> SimulatedBench {
        SimulatedBench::new(self.model.clone())
    }

    /// The generation to emit PTX for; none where the device does not run it.
    pub fn ptx_target(&self) -> Option<ptx::Target> {
        match (self.model.vendor, self.model.name.as_str()) {
            (Vendor::Intel, _) => None,
            (Vendor::Nvidia, "a100") => Some(ptx::Target::Sm80),
            (Vendor::Nvidia, _) => Some(ptx::Target::Sm90),
        }
    }
}
