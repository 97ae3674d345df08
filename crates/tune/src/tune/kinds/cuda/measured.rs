//! The bench of a GPU: plans are checked on the simulator, run on the GPU at full size, compared there with the plain
//! kernel's results, and timed against each other.

mod beside;
mod hurried;

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use beside::Beside;
use hurried::Hurried;

use super::gpu::{Against, GpuBench, Measured, Wanted, shorter};
use crate::back::ptx;
use crate::device::cuda::device::describe;
use crate::device::cuda::gpu::GpuFacts;
use crate::device::cuda::timing::TimingOptions;
use crate::device::cuda::worker::Piece;
use crate::device::sim::Simulator;
use crate::device::sim::functional::Options;
use crate::device::{CacheState, Device};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::ir::{CacheLevel, Kernel};
use crate::model::hint::HintReached;
use crate::model::occupancy::Footprint;
use crate::model::{self, DeviceModel};
use crate::prefetch;
use crate::report::{AtFullSize, Outputs, Taken, TakenBy};
use crate::tune::bench::{Bench, Last, Right, Timed};
use crate::tune::check::approximately;
use crate::tune::kinds::simulated::bench::SimulatedBench;
use crate::tune::residency::Held;
use crate::tune::sample::Sample;
use crate::tune::workload::{Bound, Workload};

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
        pieces: &[Piece],
        timing: TimingOptions,
    ) -> Result<Against>;

    /// As [`GpuBench::time_within`].
    ///
    /// # Errors
    /// As [`GpuBench::time_within`].
    fn time_within(
        &mut self,
        workload: &Workload,
        kernel: &Arc<Kernel>,
        limit_ns: f64,
        how: (TimingOptions, bool),
    ) -> Result<Option<f64>>;

    /// As [`GpuBench::held`]; none where nothing tells.
    ///
    /// # Errors
    /// As [`GpuBench::held`].
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
        pieces: &[Piece],
        timing: TimingOptions,
    ) -> Result<Against> {
        GpuBench::measure_against_own(self, workload, kernels, pieces, timing)
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

    fn held(&mut self, workload: &Workload, kernel: &Kernel) -> Result<Option<Vec<Held>>> {
        GpuBench::held(self, workload, kernel).map(Some)
    }
}

/// A GPU on which plans are tried.
pub struct MeasuredBench {
    gpu: Mutex<Box<dyn Measures>>,
    facts: GpuFacts,
    /// The simulator with the GPU's limits: it checks more than a GPU can.
    device: Simulator,
    /// The simulated device of the same kind, for counters that a GPU lacks.
    model: Option<Arc<SimulatedBench>>,
    /// The same as a predictor.
    hurried: Option<Hurried>,
    timing: TimingOptions,
    /// The simulator's result for the last plain kernel: a search queries batch by batch.
    last: Last<Arc<Simulated>>,
    /// How the kernel that was measured last was timed, and whether its outputs were restored before each launch: the same
    /// work elsewhere takes about as long, and needs the same.
    last_timing: Mutex<(TimingOptions, bool)>,
    /// The reference for outputs at full size.
    at_full_size: Mutex<Option<AtFullSize>>,
}

/// The simulator's result for a plain kernel at full size: the bound workload's parameters do not change while a search holds
/// its kernel.
struct Simulated {
    /// Its outputs, where they were asked for.
    right: Option<Arc<Vec<Vec<u8>>>>,
    timed: Option<Timed>,
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
        let model = model_of(&facts)?.map(|model| Arc::new(SimulatedBench::new(model)));
        Ok(MeasuredBench {
            hurried: model.clone().map(Hurried::new),
            device: Simulator::custom(describe(&facts), Options::CHECKING, None),
            model,
            facts,
            gpu: Mutex::new(gpu),
            timing: TimingOptions::default(),
            last: Last::default(),
            last_timing: Mutex::default(),
            at_full_size: Mutex::new(None),
        })
    }

    /// The same, with something else in L2 when a launch starts; its predictions, too.
    ///
    /// # Errors
    /// A device model of ours cannot be read.
    pub fn with_cache(mut self, cache: CacheState) -> Result<MeasuredBench> {
        self.timing.cache = cache;
        self.model =
            model_of(&self.facts)?.map(|model| Arc::new(SimulatedBench::new(model).with_cache(cache)));
        self.hurried = self.model.clone().map(Hurried::new);
        Ok(self)
    }

    fn gpu(&self) -> MutexGuard<'_, Box<dyn Measures>> {
        self.gpu.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plain kernel's outputs at full size.
    fn right(&self, workload: &Workload, plain: &Arc<Kernel>) -> Result<Arc<Vec<Vec<u8>>>> {
        workload.computed(plain, describe(&self.facts)).map(Arc::new)
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

    /// Starts simulating the plain kernel for its counters, which may take longer than a GPU's whole search; none without a
    /// model.
    fn simulated(&self, workload: &Workload, plain: &Arc<Kernel>) -> Option<Beside> {
        // Whoever predicts has counted, or is about to: one simulation is enough.
        let known = self.hurried.as_ref().and_then(|hurried| hurried.known(plain));
        let is_late = self
            .hurried
            .as_ref()
            .is_some_and(|hurried| !hurried.predicts_in_time());
        match known {
            Some(timed) => Some(Beside::ended(timed)),
            None if is_late => None,
            None => Beside::begin(self.model.as_ref()?, workload, plain),
        }
    }

    /// The result of that, after a limited wait.
    fn end_simulated(&self, beside: Option<Beside>, plain: &Arc<Kernel>) -> Option<Timed> {
        let hurried = || self.hurried.as_ref()?.known(plain);
        beside.and_then(Beside::end).or_else(hurried)
    }

    /// Compares kernels with the unmodified kernel's outputs on the GPU, and those with a sample of work-groups on the
    /// simulator.
    fn against_own(
        &self,
        workload: &Workload,
        named: &[(String, Arc<Kernel>)],
        sample: Option<&Sample>,
    ) -> Result<Vec<Result<Measured>>> {
        let pieces = sample.map_or(&[][..], Sample::pieces);
        let measured = self
            .gpu()
            .measure_against_own(workload, named, pieces, self.timing);
        let Against { own, kernels } = measured?;
        *self.last_timing.lock().unwrap_or_else(PoisonError::into_inner) =
            (shorter(self.timing, own.elapsed_ns), own.restored);
        if let Some(sample) = sample {
            self.compare_sample(workload, sample, &own.pieces)?;
        }
        let found = AtFullSize {
            device: self.facts.name.clone(),
            is_its_module: own.is_its_module,
            guarded: own.guarded,
            restored: own.restored,
            is_simulated: false,
        };
        *self.at_full_size.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(kernels)
    }

    /// # Errors
    /// The kernel that was read computes something else on the simulator than the user's on the GPU.
    fn compare_sample(&self, workload: &Workload, sample: &Sample, found: &[u8]) -> Result<()> {
        sample.compare(workload, found, approximately(&workload.kernel)).map_err(|error| {
            Error::bug(format!(
                "{error}, of work-groups {} on {}, where the simulator finds the other: of a kernel without races the two \
                 are the same",
                sample.describe(),
                self.facts.name
            ))
        })
    }

    fn timed(&self, workload: &Workload, measured: Measured, simulated: Option<&Timed>) -> Timed {
        let compiled = &measured.loaded.compiled;
        let evidence = self.evidence(
            workload,
            &measured,
            simulated.map(|simulated| &simulated.evidence),
        );
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
        if let Some(delivered) = evidence.delivered() {
            counted.push((
                "device memory throughput, in bytes that the simulator counts",
                "GB/s",
                delivered,
            ));
        }
        Timed {
            time_ns: measured.timing.median_ns,
            interval_ns: Some(measured.timing.quartiles_ns()),
            sampled: None,
            takes: Some(Taken {
                registers: compiled.registers,
                spilled_bytes: compiled.local_bytes,
                groups_per_core: Some(measured.loaded.groups_per_core),
                by: TakenBy::Compiler,
            }),
            evidence,
            profile: simulated.and_then(|simulated| simulated.profile.clone()),
            counted,
            note: self.note(&measured, simulated.is_some()),
            outputs: measured.found,
        }
    }

    fn evidence(&self, workload: &Workload, measured: &Measured, simulated: Option<&Evidence>) -> Evidence {
        let geometry = workload.geometry();
        let compiled = &measured.loaded.compiled;
        let model = self.model.as_ref().map(|model| model.model());
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
            cache: Some(measured.timing.cache),
            memory_bytes: simulated.and_then(|simulated| simulated.memory_bytes),
            bandwidth: model.map(|model| *model.dram.bandwidth),
            bandwidth_counted: None,
            scattered_bandwidth: simulated.and_then(|simulated| simulated.scattered_bandwidth),
            latency_ns: model.map(|model| model.nanoseconds(f64::from(*model.dram.latency))),
            saturating_bytes: self.model.as_ref().map(|model| model.saturating_bytes()),
            bytes_in_flight: None,
            waiting_for_loads: simulated.and_then(|simulated| simulated.waiting_for_loads),
            issued: simulated.and_then(|simulated| simulated.issued),
        }
    }

    fn note(&self, measured: &Measured, is_simulated: bool) -> String {
        let GpuFacts { name, driver, .. } = &self.facts;
        let state = measured.timing.cache;
        let counted = match (&self.model, is_simulated) {
            (Some(_), true) => " Bytes moved and stall shares come from the simulator.",
            (Some(_), false) => {
                " The simulator's counters, bytes moved and stall shares, are omitted because simulating would take longer than measuring."
            }
            (None, _) => "",
        };
        format!(
            "Measured on an {name}, driver for CUDA {}.{}: medians of {} alternating launches, after a warm-up, with {state}. Each time contains the launch.{counted}",
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

impl Bench for MeasuredBench {
    fn outputs_of(&self, workload: &Workload, kernel: &Arc<Kernel>) -> Result<Option<Vec<Vec<u8>>>> {
        let once = TimingOptions {
            warm_up: 0,
            rounds: 1,
            ..self.timing
        };
        let measured = self.measured(workload, kernel, &Wanted::Found, once)?;
        Ok(measured.found)
    }

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

    fn registers_per_core(&self) -> Option<u32> {
        Some(self.facts.registers_per_core)
    }

    fn held(&self, workload: &Workload, kernel: &Kernel) -> Result<Option<Vec<Held>>> {
        self.gpu().held(workload, kernel)
    }

    fn levels(&self) -> Vec<CacheLevel> {
        // An asynchronous copy reaches L1; all other requests reach L2.
        vec![CacheLevel::L1, CacheLevel::L2]
    }

    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        let target = ptx::PtxTarget::for_capability(self.facts.capability);
        let options = target.map(ptx::Options::new);
        let emitted = options.and_then(|options| ptx::emit(kernel, &options).ok());
        emitted.map(|ptx| ptx.hints).unwrap_or_default()
    }

    fn times_at_once(&self) -> bool {
        false
    }

    fn predictor(&self) -> Option<&dyn Bench> {
        self.hurried.as_ref().map(|hurried| hurried as &dyn Bench)
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        let workload = bound.workload();
        let simulated = self.simulated(workload, kernel);
        let measured = self.measured(workload, kernel, &Wanted::Found, self.timing)?;
        let simulated = self.end_simulated(simulated, kernel);
        Ok(self.timed(workload, measured, simulated.as_ref()))
    }

    /// Nothing is simulated, which for a large launch takes many times as long as the launch.
    fn time_within(&self, bound: &Bound, kernel: &Arc<Kernel>, limit_ns: f64) -> Result<Option<f64>> {
        let how = *self.last_timing.lock().unwrap_or_else(PoisonError::into_inner);
        self.gpu().time_within(bound.workload(), kernel, limit_ns, how)
    }

    fn checks_on_device(&self) -> bool {
        true
    }

    fn at_full_size(&self) -> Option<AtFullSize> {
        self.at_full_size
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn time_in_turns(
        &self,
        bound: &Bound,
        kernels: &[Arc<Kernel>],
        right: Right<'_>,
    ) -> Result<Vec<Result<(Timed, Outputs)>>> {
        let workload = bound.workload();
        let Some(plain) = kernels.first() else {
            return Ok(Vec::new());
        };
        let named: Vec<(String, Arc<Kernel>)> = kernels
            .iter()
            .enumerate()
            .map(|(index, kernel)| (index.to_string(), Arc::clone(kernel)))
            .collect();
        let known = self.last.known(plain, &());
        let beside = match known {
            Some(_) => None,
            None => self.simulated(workload, plain),
        };
        let (measured, right) = match right {
            Right::OnDevice(sample) => (self.against_own(workload, &named, sample), None),
            Right::Simulated => self.against_simulated(workload, &named, known.as_deref()),
        };
        let simulated = match known {
            Some(known) => known.timed.clone(),
            None => {
                // Nobody waits for a simulation that explains nothing.
                let timed = match measured.is_ok() {
                    true => self.end_simulated(beside, plain),
                    false => None,
                };
                if measured.is_ok() {
                    let simulated = Simulated {
                        right,
                        timed: timed.clone(),
                    };
                    self.last.keep(plain, (), Arc::new(simulated));
                }
                timed
            }
        };
        // Only the plain kernel is simulated.
        let simulated = std::iter::once(simulated.as_ref()).chain(std::iter::repeat(None));
        let pair = |(measured, simulated): (Result<Measured>, Option<&Timed>)| {
            let measured = measured?;
            let outputs = measured
                .outputs
                .ok_or_else(|| Error::bug("outputs were not compared"))?;
            Ok((self.timed(workload, measured, simulated), outputs))
        };
        Ok(measured?.into_iter().zip(simulated).map(pair).collect())
    }
}

/// The outcome of kernels, and the simulator's reference, if requested.
type AgainstSimulated = (Result<Vec<Result<Measured>>>, Option<Arc<Vec<Vec<u8>>>>);

impl MeasuredBench {
    /// Compares kernels, the plain one first, with the simulator's results for it at full size.
    fn against_simulated(
        &self,
        workload: &Workload,
        named: &[(String, Arc<Kernel>)],
        known: Option<&Simulated>,
    ) -> AgainstSimulated {
        let found = AtFullSize {
            device: self.facts.name.clone(),
            is_its_module: false,
            guarded: false,
            restored: false,
            is_simulated: true,
        };
        *self.at_full_size.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        if let Some(right) = known.and_then(|known| known.right.as_ref()) {
            let mut wanted = || Ok(Wanted::Compared(Arc::clone(right)));
            let measured = self.gpu().measure(workload, named, &mut wanted, self.timing);
            return (measured, None);
        }
        // While the driver compiles, the simulator computes the reference.
        thread::scope(|scope| {
            let mut right = Some(scope.spawn(|| self.right(workload, &named[0].1)));
            let mut computed = None;
            let mut wanted = || match right.take() {
                Some(thread) => {
                    let right = thread.join().unwrap_or_else(|_| stopped())?;
                    computed = Some(Arc::clone(&right));
                    Ok(Wanted::Compared(right))
                }
                None => Err(Error::bug("the right outputs were asked for twice")),
            };
            let measured = self.gpu().measure(workload, named, &mut wanted, self.timing);
            (measured, computed)
        })
    }
}

fn stopped<T>() -> Result<T> {
    Err(Error::bug("the simulator stopped without a word"))
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
