//! What is asked of a search, for one kernel or for all of a program.

use std::time::Duration;

use headstart::Result;
use headstart::device::cuda::gpu::GpuFacts;
use headstart::prefetch::Plan;
use headstart::tune::{self, Bench, MEASURED, SearchSettings, Subject, kinds};

use super::{LIKELY, budget, measure, read_plans};
use crate::arguments::{CheckOptions, DeviceOptions, Improve, Tune};
use headstart_cli::device;

/// What is asked of a search, as far as it is the same for all kernels of a program.
pub struct Asked<'o> {
    on: &'o DeviceOptions,
    check: CheckOptions,
    every_plan: bool,
    pub(super) measure: Option<usize>,
    /// The plans that are named.
    plans: Option<Vec<Plan>>,
    /// Only the plans that are likely to help are asked for.
    is_likely: bool,
    pub(super) budget: Option<Duration>,
}

impl<'o> Asked<'o> {
    /// What the options ask.
    ///
    /// # Errors
    /// A plan, a time or a number is none.
    pub(super) fn of(options: &'o Tune) -> Result<Asked<'o>> {
        let own = Asked::new(
            &options.on,
            options.check,
            options.plans.as_deref(),
            options.budget,
        )?;
        Ok(Asked {
            every_plan: options.every_plan,
            measure: measure(options)?,
            ..own
        })
    }

    /// What is asked for all kernels of a program.
    ///
    /// # Errors
    /// A plan or a time is none.
    pub fn for_program(options: &'o Improve) -> Result<Asked<'o>> {
        Asked::new(
            &options.on,
            options.check,
            options.plans.as_deref(),
            Some(options.budget),
        )
    }

    fn new(
        on: &'o DeviceOptions,
        check: CheckOptions,
        plans: Option<&str>,
        seconds: Option<f64>,
    ) -> Result<Asked<'o>> {
        let named = plans.filter(|text| *text != LIKELY);
        Ok(Asked {
            on,
            check,
            every_plan: false,
            measure: plans.is_none().then_some(MEASURED),
            plans: named.map(read_plans).transpose()?,
            is_likely: plans == Some(LIKELY),
            budget: budget(seconds)?,
        })
    }

    /// The device.
    pub(super) fn bench(&self) -> Result<Box<dyn Bench>> {
        let on = self.on;
        if let Some(budget) = self.budget {
            super::compile_within(budget);
        }
        device::bench(
            on.device.as_deref(),
            &on.model,
            on.cache.l2.into(),
            on.watchdog.max_steps,
        )
    }

    /// The NVIDIA GPU that plans are tried on, if it is one.
    pub(super) fn gpu(&self) -> Option<GpuFacts> {
        let name = self.on.device.as_deref();
        // Several of one kind: the first is as good as the others.
        let one = name.filter(|name| kinds::all_of(name).is_none());
        let device = device::find_or_first(one, &self.on.model).ok()?;
        device.gpu().cloned()
    }

    /// The plans to try; none asks for the default space.
    pub(super) fn plans_for(&self, subject: &dyn Subject, bench: &dyn Bench) -> Result<Option<Vec<Plan>>> {
        match self.is_likely {
            true => Ok(Some(tune::likely(subject, bench)?).filter(|plans| !plans.is_empty())),
            false => Ok(self.plans.clone()),
        }
    }

    /// A search among these plans, without a log.
    pub(super) fn settings<'p>(&self, plans: Option<&'p [Plan]>) -> SearchSettings<'p> {
        SearchSettings {
            plans,
            perturbed: self.check.settings(),
            measure: self.measure,
            // Who names plans wants their times.
            every_plan: self.every_plan || plans.is_some(),
            ..SearchSettings::default()
        }
    }
}
