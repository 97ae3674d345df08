//! Microbenchmarks: kernels that do one thing, over and over, so that the time of a step is a number of the device.
//!
//! Each runs wherever kernels run, on a model and on a GPU alike. Its loop takes `steps` steps; the launch is timed with them
//! and with none, and the difference is theirs alone: the cost of a launch (see `micro/launch`), and the kernel's code before
//! its loop, cancel out. Caches are empty when a launch begins (`headstart calibrate` flushes those of a GPU). Data that a step
//! is to find in one were brought there by `warm` steps before, which are part of both launches.
//!
//! `headstart run micro/NAME` prints the number, `headstart calibrate` makes a device model of many.

pub mod arithmetic;
pub mod atomics;
pub mod code;
pub mod controls;
pub mod copies;
pub mod fabric;
pub mod hints;
pub mod launch;
pub mod memory;
pub mod operands;
pub mod products;
pub mod shared;
pub mod stores;
pub mod strided;
pub mod sub_groups;
pub mod vectors;
pub mod written;

use std::sync::Arc;

use headstart::device::CacheState;
use headstart::device::model::DeviceModel;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::device::sim::timer::{Cores, Timer};
use headstart::ir::Kernel;
use headstart::prefetch::{self, Plan};
use headstart::suggest::{accepted, quoted};
use headstart::tune::Workload;
use headstart::{Error, Result};

use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings};

/// A microbenchmark: a kernel, and the meaning of its time.
#[derive(Debug)]
pub struct Micro {
    /// The kernel. One of its parameters is `steps`.
    pub kernel: GalleryKernel,
    /// The unit of the number: `cycles a load`.
    pub unit: &'static str,
    /// The number, from the cycles that a step takes.
    pub number: fn(&Settings, f64) -> f64,
    /// The plan that the kernel is run with; none for most.
    pub plan: fn(&Settings) -> Option<Plan>,
    /// Whether work-groups share data in L2, so that a model has to run all of them.
    pub shares: fn(&Settings) -> bool,
    /// The operation that its time is divided by.
    pub timed: Timed,
    /// A run in which a model's number adds to the microbenchmark's own instructions and nothing else does; none where the number
    /// is not a latency.
    pub near: fn(&Settings, &DeviceModel) -> Option<Near>,
}

/// A run whose only latency is a number of the model. What it takes beyond that are the microbenchmark's own instructions: address
/// arithmetic, and the issue of the load.
#[derive(Clone, Debug)]
pub struct Near {
    /// The run's settings.
    pub settings: Settings,
    /// The model's number, in cycles.
    pub latency: f64,
}

/// The operation that a microbenchmark's time is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// Its steps: of a launch with them, less that of one with none.
    Steps,
    /// A launch as a whole, from an event in front of it to one behind it.
    Launch,
}

/// Every microbenchmark.
pub static MICRO: [&Micro; 22] = [
    &launch::LAUNCH,
    &memory::LATENCY,
    &memory::BANDWIDTH,
    &vectors::VECTORS,
    &arithmetic::ARITHMETIC,
    &operands::OPERANDS,
    &products::PRODUCTS_OF_MATRICES,
    &arithmetic::BARRIER,
    &shared::SHARED,
    &code::CODE,
    &hints::HINTS,
    &hints::REACH,
    &copies::COPIES,
    &controls::CONTROLS,
    &strided::STRIDED,
    &stores::STORES,
    &written::WRITTEN,
    &fabric::SLICES,
    &fabric::STACKS,
    &fabric::COMPRESSION,
    &atomics::ATOMICS,
    &sub_groups::SUB_GROUPS,
];

/// The microbenchmark of this name, `micro/latency`; none if the name is another kernel's.
pub fn find(name: &str) -> Option<&'static Micro> {
    MICRO.into_iter().find(|micro| micro.kernel.name == name)
}

/// The microbenchmark of this name with settings as the command line spells them.
///
/// # Errors
/// There is none of that name, or a setting is wrong.
pub fn with(name: &str, assignments: &[String]) -> Result<(&'static Micro, Settings)> {
    let micro = find(name).ok_or_else(|| {
        let names = MICRO.iter().map(|micro| micro.kernel.name);
        Error::usage(format!("there is no microbenchmark {}", quoted(name))).accepted(accepted(
            name,
            "microbenchmarks",
            names,
        ))
    })?;
    let mut settings = Settings::defaults(micro.kernel.parameters);
    for assignment in assignments {
        settings
            .set(assignment)
            .map_err(|error| error.at(format!("kernel `{name}`")))?;
    }
    Ok((micro, settings))
}

impl Micro {
    /// The kernel with its data.
    ///
    /// # Errors
    /// The settings contradict each other.
    pub fn workload(&self, settings: &Settings) -> Result<Workload> {
        (self.kernel.workload)(settings, None)
            .map_err(|error| error.at(format!("kernel `{}`", self.kernel.name)))
    }

    /// The kernel with all steps, and the one whose time is taken off: with none. Both take the same arguments.
    ///
    /// # Errors
    /// The settings contradict each other, or there are no steps.
    pub fn pair(&self, settings: &Settings) -> Result<Pair> {
        let steps = settings.get("steps");
        if steps == 0 {
            return Err(Error::usage("`steps` are 0: nothing is measured"));
        }
        let whole = self.workload(settings)?;
        let short = match self.timed {
            Timed::Steps => {
                let before = self.workload(&settings.with("steps", 0))?;
                Some(self.kernel_of(settings, &before)?)
            }
            Timed::Launch => None,
        };
        Ok(Pair {
            long: self.kernel_of(settings, &whole)?,
            short,
            workload: whole,
            steps,
        })
    }

    /// The kernel with its author's requests, and its plan.
    fn kernel_of(&self, settings: &Settings, workload: &Workload) -> Result<Arc<Kernel>> {
        let target = prefetch::PlanTarget::of(workload.group);
        let plain = prefetch::carry_out_wishes(&workload.kernel, &target)?;
        Ok(Arc::new(match (self.plan)(settings) {
            Some(plan) => prefetch::apply(&plain, &plan, &target)?.kernel,
            None => plain,
        }))
    }

    /// The microbenchmark's result on a model.
    ///
    /// # Errors
    /// The model cannot run it.
    pub fn on_model(&self, settings: &Settings, model: &Arc<DeviceModel>) -> Result<f64> {
        let pair = self.pair(settings)?;
        let device = Simulator::custom(model.description(), Options::FAST, None);
        let bound = pair.workload.bind(&device)?;
        let cores = match (self.shares)(settings) {
            true => Cores::All,
            false => Cores::Sampled,
        };
        let timer = Timer::new(Arc::clone(model))
            .with_cores(cores)
            .with_cache(CacheState::Flushed);
        let cycles = |kernel: &Arc<Kernel>| -> Result<f64> {
            let launch = bound.prepare(&device)?.launch;
            launch.check(kernel, &model.description())?;
            let code = timer.compile(kernel, &launch)?;
            let survey = timer.survey(kernel, &launch, None).map(Arc::new);
            let timer = timer.clone().with_survey(survey);
            Ok(timer.run(&code, &launch)?.between_events_ns * *model.core.clock / 1000.0)
        };
        let before = pair.short.as_ref().map_or(Ok(0.0), cycles)?;
        Ok(self.number_of(settings, cycles(&pair.long)? - before))
    }

    /// What the microbenchmark's own instructions are of its number on a model; none where that is not known.
    ///
    /// # Errors
    /// The model cannot run it.
    pub fn own_on_model(&self, settings: &Settings, model: &Arc<DeviceModel>) -> Result<Option<f64>> {
        let Some(near) = (self.near)(settings, model) else {
            return Ok(None);
        };
        Ok(Some(self.on_model(&near.settings, model)? - near.latency))
    }

    /// The number, from the cycles that all steps took.
    pub fn number_of(&self, settings: &Settings, cycles: f64) -> f64 {
        let steps = settings.get("steps").max(1) as f64;
        (self.number)(settings, (cycles / steps).max(f64::MIN_POSITIVE))
    }
}

/// Kernels that differ by their steps.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The arguments of both launches.
    pub workload: Workload,
    /// The kernel with all steps.
    pub long: Arc<Kernel>,
    /// The kernel with none of those that are measured; none where the launch as a whole is.
    pub short: Option<Arc<Kernel>>,
    /// How many there are.
    pub steps: u64,
}

/// A microbenchmark's entry in the gallery.
const fn entry(
    name: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    workload: fn(&Settings, Option<&crate::spatter::Entry>) -> Result<Workload>,
) -> GalleryKernel {
    GalleryKernel {
        name,
        summary,
        parameters,
        takes_trace: None,
        iterations: Iterations::Given {
            small: |settings, iterations| settings.with("steps", iterations),
            shapes: |_| Vec::new(),
        },
        workload,
    }
}

/// A microbenchmark without a plan whose work-groups are alike.
const fn micro(kernel: GalleryKernel, unit: &'static str, number: fn(&Settings, f64) -> f64) -> Micro {
    Micro {
        kernel,
        unit,
        number,
        plan: |_| None,
        shares: |_| false,
        timed: Timed::Steps,
        near: |_, _| None,
    }
}

/// Work-items of the launch.
fn items(settings: &Settings) -> u64 {
    settings.get("groups") * settings.get("group")
}

const GROUPS: Parameter = Parameter::number("groups", "work-groups", 1, 1..=1 << 16);
const STEPS: &str = "steps whose time is measured";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_builds_and_is_found_by_its_name() {
        for micro in MICRO {
            let (found, settings) = with(micro.kernel.name, &[]).expect("its own name");
            assert_eq!(found.kernel.name, micro.kernel.name);
            let workload = micro.workload(&settings).expect("defaults");
            assert_eq!(
                workload.given.len(),
                workload.kernel.params.len(),
                "{}",
                micro.kernel.name
            );
            headstart::ir::verify(&workload.kernel).expect("a kernel keeps the rules");
            assert!(micro.pair(&settings).is_ok() && micro.unit.len() > 5);
        }
        let message = with("micro/latncy", &[]).expect_err("unknown").to_string();
        assert!(message.contains("did you mean `micro/latency`?"), "{message}");
    }
}
