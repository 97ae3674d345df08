//! The bench of a GPU: plans are run there at full size, compared with the unmodified kernel's results, and timed against each
//! other. The simulator explains the times, if there is time for that.

mod explained;

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use explained::Simulation;

use super::gpu::{Against, GpuBench, Measured, Wanted, shorter};
use crate::back::ptx;
use crate::device::cuda::device::describe;
use crate::device::cuda::gpu::GpuFacts;
use crate::device::cuda::timing::TimingOptions;
use crate::device::sim::Simulator;
use crate::device::sim::functional::Options;
use crate::device::{CacheState, Device};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::front::ptx::Assembler;
use crate::ir::{CacheLevel, Kernel};
use crate::model::hint::HintReached;
use crate::model::occupancy::Footprint;
use crate::model::{self, DeviceModel};
use crate::prefetch;
use crate::report::{AtFullSize, Outputs, Taken, TakenBy};
use crate::tune::bench::Held;
use crate::tune::bench::{Bench, Explanation, Judge, Judged, Looked, Platform, Spread, Timed};
use crate::tune::subject::workload::{Bound, Workload};

/// The instrument that measures kernels: a GPU in a process of its own; in tests, a table of their times.
pub trait Measures: Send {
    /// The GPU's properties.
    fn facts(&self) -> &GpuFacts;

    /// As [`GpuBench::measure`].
    ///
    /// # Errors
    /// As [`GpuBench::measure`].
    fn measure(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        wanted: &mut dyn FnMut() -> Result<Wanted>,
        timing: TimingOptions,
    ) -> Result<Vec<Result<Measured>>>;

    /// As [`GpuBench::measure_against_own`].
    ///
    /// # Errors
    /// As [`GpuBench::measure_against_own`].
    fn measure_against_own(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        timing: TimingOptions,
    ) -> Result<Against>;

    /// As `GpuBench::time_within`.
    ///
    /// # Errors
    /// As `GpuBench::time_within`.
    fn time_within(
        &mut self,
        workload: &Workload,
        kernel: &Arc<Kernel>,
        limit_ns: f64,
        how: (TimingOptions, bool),
    ) -> Result<Option<f64>>;

    /// As `GpuBench::judge`.
    ///
    /// # Errors
    /// As `GpuBench::judge`.
    fn judge(&mut self, launch: &Workload, plan: &Arc<Kernel>) -> Result<Judged>;

    /// As `GpuBench::held`; none where nothing tells.
    ///
    /// # Errors
    /// As `GpuBench::held`.
    fn held(&mut self, workload: &Workload, kernel: &Kernel) -> Result<Option<Vec<Held>>> {
        let _ = (workload, kernel);
        Ok(None)
    }
}

impl Measures for GpuBench {
    fn facts(&self) -> &GpuFacts {
        self.facts()
    }

    fn measure(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        wanted: &mut dyn FnMut() -> Result<Wanted>,
        timing: TimingOptions,
    ) -> Result<Vec<Result<Measured>>> {
        GpuBench::measure(self, workload, kernels, wanted, timing)
    }

    fn measure_against_own(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        timing: TimingOptions,
    ) -> Result<Against> {
        GpuBench::measure_against_own(self, workload, kernels, timing)
    }

    fn time_within(
        &mut self,
        workload: &Workload,
        kernel: &Arc<Kernel>,
        limit_ns: f64,
        how: (TimingOptions, bool),
    ) -> Result<Option<f64>> {
        GpuBench::time_within(self, workload, kernel, limit_ns, how)
    }

    fn judge(&mut self, launch: &Workload, plan: &Arc<Kernel>) -> Result<Judged> {
        GpuBench::judge(self, launch, plan)
    }

    fn held(&mut self, workload: &Workload, kernel: &Kernel) -> Result<Option<Vec<Held>>> {
        GpuBench::held(self, workload, kernel).map(|held| Some(vec![held]))
    }
}

/// A GPU on which plans are tried.
pub struct MeasuredBench {
    gpu: Mutex<Box<dyn Measures>>,
    facts: GpuFacts,
    /// The simulator with the GPU's limits: it runs small launches.
    device: Simulator,
    /// The model of a device of the same kind, for counters that a GPU lacks.
    model: Option<DeviceModel>,
    timing: TimingOptions,
    /// How the kernel that was measured last was timed, and whether its outputs were restored before each launch: the same
    /// work elsewhere takes about as long, and needs the same.
    last_timing: Mutex<(TimingOptions, bool)>,
    /// The reference for outputs at full size.
    at_full_size: Mutex<Option<AtFullSize>>,
}

impl MeasuredBench {
    /// The GPU with this number: `program` with `arguments` must serve a worker's requests.
    ///
    /// # Errors
    /// There is no such GPU, or its worker cannot be started.
    pub fn start(program: &Path, arguments: &[OsString], device: usize) -> Result<MeasuredBench> {
        MeasuredBench::new(Box::new(GpuBench::start(program, arguments, device)?))
    }

    /// With the given instrument.
    ///
    /// # Errors
    /// A device model of ours cannot be read.
    pub fn new(gpu: Box<dyn Measures>) -> Result<MeasuredBench> {
        let facts = gpu.facts().clone();
        Ok(MeasuredBench {
            device: Simulator::custom(describe(&facts), Options::CHECKING, None),
            model: model_of(&facts)?,
            facts,
            gpu: Mutex::new(gpu),
            timing: TimingOptions::default(),
            last_timing: Mutex::default(),
            at_full_size: Mutex::new(None),
        })
    }

    /// The same, with something else in L2 when a launch starts.
    #[must_use]
    pub(crate) fn with_cache(mut self, cache: CacheState) -> MeasuredBench {
        self.timing.cache = cache;
        self
    }

    /// The simulator for a launch.
    fn simulation(&self, workload: &Workload) -> Option<Simulation> {
        let model = self.model.clone()?;
        Some(Simulation::new(model, self.timing.cache, workload))
    }

    fn gpu(&self) -> MutexGuard<'_, Box<dyn Measures>> {
        self.gpu.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A kernel alone.
    fn measured(
        &self,
        workload: &Workload,
        kernel: &Arc<Kernel>,
        wanted: &Wanted,
        timing: TimingOptions,
    ) -> Result<Measured> {
        let kernels = [("none".to_owned(), Arc::clone(kernel))];
        self.gpu()
            .measure(workload, &kernels, &mut || Ok(wanted.clone()), timing)?
            .pop()
            .ok_or_else(|| Error::bug("a kernel was not measured"))?
    }

    /// Compares kernels with the unmodified kernel's outputs on the GPU, and times them against each other.
    fn against_own(
        &self,
        workload: &Workload,
        named: &[(String, Arc<Kernel>)],
    ) -> Result<Vec<Result<Measured>>> {
        let measured = self.gpu().measure_against_own(workload, named, self.timing);
        let Against { own, kernels } = measured?;
        *self.last_timing.lock().unwrap_or_else(PoisonError::into_inner) =
            (shorter(self.timing, own.elapsed_ns), own.restored);
        let found = AtFullSize {
            device: self.facts.name.clone(),
            is_its_module: own.is_its_module,
            guarded: own.guarded,
            restored: own.restored,
            findings: own.findings,
        };
        *self.at_full_size.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(kernels)
    }

    fn timed(&self, workload: &Workload, measured: Measured) -> Timed {
        let compiled = &measured.loaded.compiled;
        let evidence = self.evidence(workload, &measured);
        let (resident, places) = (measured.loaded.groups_per_core, self.facts.work_items_per_core);
        let items = resident * workload.geometry().group;
        let mut counted = vec![
            ("registers of a work-item", "", f64::from(compiled.registers)),
            (
                "bytes of a work-item spilled",
                "bytes",
                f64::from(compiled.local_bytes),
            ),
            (
                "work-groups that fit into a core, says the driver",
                "",
                f64::from(measured.loaded.groups_per_core),
            ),
        ];
        if let Some(groups) = measured.groups_promised {
            counted.push((
                "work-groups of a core that the compiler was told of",
                "",
                f64::from(groups),
            ));
        }
        if let Some(fits) = &evidence.fits {
            let computed = f64::from(fits.groups_per_core);
            counted.push(("work-groups that fit into a core, as computed", "", computed));
        }
        counted.push((
            "between the quartiles of its times",
            "%",
            100.0 * measured.timing.spread(),
        ));
        Timed {
            time_ns: measured.timing.median_ns,
            interval_ns: Some(measured.timing.quartiles_ns()),
            sampled: None,
            takes: Some(Taken {
                registers: compiled.registers,
                spilled_bytes: compiled.local_bytes,
                groups_per_core: Some(resident),
                shared_bytes: Some(compiled.static_shared_bytes + measured.dynamic_shared_bytes),
                code_bytes: None,
                occupancy: Some(f64::from(items) / f64::from(places.max(1))),
                by: TakenBy::Compiler,
            }),
            spread: Spread::Measured {
                paired: (measured.timing.paired).map(|paired| (paired.least, paired.most)),
            },
            evidence,
            profile: None,
            counted,
            note: self.note(&measured),
            outputs: measured.found,
        }
    }

    fn evidence(&self, workload: &Workload, measured: &Measured) -> Evidence {
        let geometry = workload.geometry();
        let compiled = &measured.loaded.compiled;
        let model = self.model.as_ref();
        let shared = compiled.static_shared_bytes + measured.dynamic_shared_bytes;
        let fits = model.map(|model| {
            model.occupancy(&Footprint {
                registers: compiled.registers,
                shared,
                ..Footprint::new(geometry.group, self.facts.sub_group)
            })
        });
        Evidence {
            cores: self.facts.cores,
            places: self.facts.work_items_per_core / self.facts.sub_group.max(1),
            groups: geometry.groups,
            group: geometry.group,
            fits,
            achieved: None,
            time_ns: measured.timing.median_ns,
            // A part of the time: how much of it, no counter says.
            launch_ns: None,
            starts_ns: model.and_then(|model| model.starts_ns(geometry.groups)),
            cache: Some(measured.timing.cache),
            memory_bytes: None,
            bandwidth: model.map(|model| *model.dram.bandwidth),
            bandwidth_counted: None,
            scattered_bandwidth: None,
            latency_ns: model.map(|model| model.nanoseconds(f64::from(*model.dram.latency))),
            saturating_bytes: None,
            bytes_in_flight: None,
            waiting_for_loads: None,
            issued: None,
        }
    }

    fn note(&self, measured: &Measured) -> String {
        let GpuFacts { name, driver, .. } = &self.facts;
        let state = measured.timing.cache;
        format!(
            "Measured on an {name}, driver for CUDA {}.{}: medians of {} alternating launches, after a warm-up, with {state}. Each time contains the launch.",
            driver / 1000,
            driver % 1000 / 10,
            measured.timing.launches,
        )
    }
}

/// The model of this GPU, if we have one: the one whose title its name begins with.
fn model_of(facts: &GpuFacts) -> Result<Option<DeviceModel>> {
    for name in model::built_in_names() {
        let model = model::built_in(name, &[])?;
        if facts.name.starts_with(&model.title) && *model.core.count == facts.cores {
            return Ok(Some(model));
        }
    }
    Ok(None)
}

impl Platform for MeasuredBench {
    fn device(&self) -> &dyn Device {
        &self.device
    }

    fn identity(&self) -> String {
        // Another GPU of the same kind in the same machine answers the same.
        let facts = GpuFacts {
            ordinal: 0,
            ..self.facts.clone()
        };
        format!("{facts:?} {:?}", self.timing)
    }

    fn target(&self) -> prefetch::PlanTarget {
        prefetch::PlanTarget::default()
    }

    fn levels(&self) -> Vec<CacheLevel> {
        // An asynchronous copy reaches L1; all other requests reach L2.
        vec![CacheLevel::L1, CacheLevel::L2]
    }

    fn engine_options(&self) -> Options {
        Options::CHECKING
    }

    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        let target = ptx::PtxTarget::for_capability(self.facts.capability);
        let hints = target.map(|target| ptx::prefetches(kernel, &ptx::Options::new(target)));
        hints.unwrap_or_default()
    }

    fn registers_per_core(&self) -> Option<u32> {
        Some(self.facts.registers_per_core)
    }

    fn held(&self, workload: &Workload, kernel: &Kernel) -> Result<Option<Vec<Held>>> {
        self.gpu().held(workload, kernel)
    }
}

impl Bench for MeasuredBench {
    fn platform(&self) -> &dyn Platform {
        self
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        let workload = bound.workload();
        let measured = self.measured(workload, kernel, &Wanted::Found, self.timing)?;
        Ok(self.timed(workload, measured))
    }

    fn time_within(&self, bound: &Bound, kernel: &Arc<Kernel>, limit_ns: f64) -> Result<Option<f64>> {
        let how = *self.last_timing.lock().unwrap_or_else(PoisonError::into_inner);
        self.gpu().time_within(bound.workload(), kernel, limit_ns, how)
    }

    fn time_in_turns(&self, bound: &Bound, kernels: &[Arc<Kernel>]) -> Result<Vec<Result<(Timed, Outputs)>>> {
        let workload = bound.workload();
        let named: Vec<(String, Arc<Kernel>)> = kernels
            .iter()
            .enumerate()
            .map(|(index, kernel)| (index.to_string(), Arc::clone(kernel)))
            .collect();
        let pair = |measured: Result<Measured>| {
            let measured = measured?;
            let outputs = measured
                .outputs
                .ok_or_else(|| Error::bug("outputs were not compared"))?;
            Ok((self.timed(workload, measured), outputs))
        };
        match named.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self
                .against_own(workload, &named)?
                .into_iter()
                .map(pair)
                .collect()),
        }
    }

    fn look(&self, bound: &Bound, kernels: &[Arc<Kernel>], watched: usize) -> Result<Vec<Looked>> {
        match self.simulation(bound.workload()) {
            Some(simulation) => simulation.look(kernels, watched),
            None => Ok(Vec::new()),
        }
    }

    fn judge(&self) -> Option<&dyn Judge> {
        Some(self)
    }
}

impl Judge for MeasuredBench {
    fn judge(&self, launch: &Workload, plan: &Arc<Kernel>) -> Result<Judged> {
        self.gpu().judge(launch, plan)
    }

    fn outputs_of(&self, workload: &Workload, kernel: &Arc<Kernel>) -> Result<Option<Vec<Vec<u8>>>> {
        let once = TimingOptions {
            warm_up: 0,
            rounds: 1,
            ..self.timing
        };
        let measured = self.measured(workload, kernel, &Wanted::Found, once)?;
        Ok(measured.found)
    }

    fn assembler(&self) -> Option<Assembler> {
        let (major, minor) = self.facts.capability;
        Some(Assembler {
            driver: u64::try_from(self.facts.driver).ok()?,
            capability: u64::from(major * 10 + minor),
        })
    }

    fn at_full_size(&self) -> Option<AtFullSize> {
        self.at_full_size
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn explain(&self, bound: &Bound, kernel: &Arc<Kernel>, patience: Duration) -> Option<Explanation> {
        self.simulation(bound.workload())?.explain(kernel, patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_testing::h200;

    #[test]
    fn gpus_have_models_by_the_names_that_drivers_give_them() {
        let model = |name: &str| {
            let facts = GpuFacts {
                name: name.into(),
                ..h200()
            };
            model_of(&facts)
                .expect("models can be read")
                .map(|model| model.name)
        };
        assert_eq!(model("NVIDIA H200").as_deref(), Some("h200"));
        assert_eq!(model("NVIDIA H100 80GB HBM3").as_deref(), Some("h100"));
        assert_eq!(model("NVIDIA T4"), None);
    }
}
