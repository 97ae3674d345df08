//! The timer: how long a launch takes on a device model, and why.
//!
//! It runs the machine program of a kernel ([`crate::back::machine`]), with real values, addresses and
//! branches, on the cores of a [`DeviceModel`]. Modelled are: several schedulers a core, which issue an
//! instruction a cycle each, greedily and then the oldest; registers that are ready after an
//! instruction's latency, with few scoreboards for what takes no fixed time; units that take an
//! instruction every few cycles; instruction caches; work-groups resident as the occupancy rules allow,
//! the next one starting when one ends; barriers, which wait for plain loads but not for asynchronous
//! copies; copies and waits by token; lanes that part and meet; and the [memory
//! hierarchy](super::memory).
//!
//! Of a launch whose work-groups are alike, some cores are simulated, with their share of L2 and device
//! memory ([`Cores`]); [`LaunchTime::sample`] says how many. A run is a function of its inputs alone.

mod code;
mod core;
mod cost;
mod fetch;
mod report;
mod run;
mod stalls;
mod sub_group;

#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;

pub use code::Code;
pub use report::{LaunchTime, PlaceProfile, Sample};
pub use stalls::StallReason;

use crate::back::machine::{Family, Target, lower};
use crate::device::Launch;
use crate::device::model::{DeviceModel, Vendor};
use crate::device::sim::{Clock, Timing};
use crate::ir::Kernel;
use crate::{Error, Result};

/// How many of the cores that a launch keeps busy are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// A few, if the work-groups turn out to be alike; else more, or all.
    #[default]
    Sampled,
    /// This many, whatever they turn out to be.
    Exactly(u32),
    /// All.
    All,
}

/// Times launches on a device model.
#[derive(Clone, Debug)]
pub struct Timer {
    model: Arc<DeviceModel>,
    cores: Cores,
}

impl Timer {
    /// A timer that samples cores where it can.
    pub fn new(model: Arc<DeviceModel>) -> Timer {
        Timer {
            model,
            cores: Cores::default(),
        }
    }

    /// The same, with another choice of cores.
    #[must_use]
    pub fn with_cores(mut self, cores: Cores) -> Timer {
        self.cores = cores;
        self
    }

    /// The device.
    pub fn model(&self) -> &Arc<DeviceModel> {
        &self.model
    }

    /// What a kernel is lowered for, in sub-groups of a size.
    pub fn target(&self, sub_group_size: u32) -> Target {
        let family = match self.model.vendor {
            Vendor::Nvidia => Family::Nvidia,
            Vendor::Intel => Family::Intel,
        };
        Target {
            family,
            sub_group: sub_group_size,
            max_registers: self.model.registers_per_work_item(sub_group_size),
            line: u32::try_from(*self.model.l2.line).unwrap_or(u32::MAX),
        }
    }

    /// Lowers a verified kernel for sub-groups of a size and looks up what its instructions cost.
    ///
    /// # Errors
    /// The kernel is too large for the timer.
    pub fn compile(&self, kernel: &Kernel, sub_group_size: u32) -> Result<Code> {
        let program = lower(kernel, &self.target(sub_group_size));
        Code::new(Arc::new(program), &self.model, sub_group_size)
    }

    /// Times a launch, which has been checked. It writes to the launch's buffers what the simulated
    /// work-groups write.
    ///
    /// # Errors
    /// The launch does not fit the device, or the kernel faults.
    pub fn run(&self, code: &Code, launch: &Launch) -> Result<LaunchTime> {
        run::run(&self.model, self.cores, code, launch)
    }
}

impl Clock for Timer {
    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Arc<dyn Any + Send + Sync>> {
        let size = kernel.sub_group_size.unwrap_or(*self.model.core.sub_group_size);
        Ok(Arc::new(Timer::compile(self, kernel, size)?))
    }

    fn time(
        &self,
        kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
    ) -> Result<Timing> {
        let code = Arc::clone(compiled)
            .downcast::<Code>()
            .map_err(|_| Error::bug("a kernel that another clock compiled"))?;
        let size = launch.sub_group_size(kernel, &self.model.description());
        let time = match size == code.sub_group_size() {
            true => self.run(&code, launch)?,
            false => self.run(&Timer::compile(self, kernel, size)?, launch)?,
        };
        Ok(Timing {
            elapsed_ns: time.nanoseconds,
            counters: time.counters(),
        })
    }
}
