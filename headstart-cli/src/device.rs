//! The device that a command is about.

use headstart::back::ptx;
use headstart::device::model::{self, DeviceModel, Reached, Vendor};
use headstart::ir::CacheLevel;
use headstart::{Error, Result, prefetch};

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

    /// What the passes must know of the device.
    pub fn target(&self) -> prefetch::Target {
        let line = self.model.l1.as_ref().map_or(&self.model.l2.line, |l1| &l1.line);
        prefetch::Target {
            line: u32::try_from(**line).unwrap_or(u32::MAX),
            ..prefetch::Target::default()
        }
    }

    /// The cache levels that hints can be told apart by; none where hints do nothing.
    pub fn levels(&self) -> Vec<CacheLevel> {
        let mut seen = vec![Reached::Nothing];
        let mut levels = Vec::new();
        for (level, form) in self.model.prefetch.levels() {
            if !seen.contains(&form.reaches) {
                seen.push(form.reaches);
                levels.push(level);
            }
        }
        levels
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
