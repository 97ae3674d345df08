//! The bench of a GPU: plans are checked on the simulator, run on the GPU at full size, compared with what the simulator
//! computes there, and timed against each other.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::gpu::{GpuBench, Measured, Wanted};
use super::search::{Bench, Timed};
use super::simulated::SimulatedBench;
use super::workload::{Bound, Workload};
use crate::advise::Evidence;
use crate::back::hints::HintReached;
use crate::back::ptx;
use crate::device::cuda::device::describe;
use crate::device::cuda::gpu::GpuFacts;
use crate::device::cuda::timing::TimingOptions;
use crate::device::model::occupancy::Footprint;
use crate::device::model::{self, DeviceModel};
use crate::device::sim::Simulator;
use crate::device::sim::functional::Options;
use crate::device::{CacheState, Device};
use crate::error::{Error, Result};
use crate::ir::{CacheLevel, Kernel};
use crate::prefetch;
use crate::report::Outputs;

/// What measures kernels: a GPU in a process of its own; in tests, something that knows their times.
pub trait Measures: Send {
    /// What the GPU is.
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
}

/// A GPU on which plans are tried.
pub struct MeasuredBench {
    gpu: Mutex<Box<dyn Measures>>,
    facts: GpuFacts,
    /// The simulator with the GPU's limits: it checks more than a GPU can.
    device: Simulator,
    /// The simulated device of the same kind, for what a GPU does not count.
    model: Option<SimulatedBench>,
    timing: TimingOptions,
    /// What the simulator said of the plain kernel that was asked for last: a search asks batch by batch.
    last: Mutex<Option<Arc<Simulated>>>,
}

/// What the simulator says of a plain kernel at full size.
struct Simulated {
    /// For which launch: the bound workload's parameters do not change while a search holds its kernel.
    plain: Arc<Kernel>,
    right: Arc<Vec<Vec<u8>>>,
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

    /// What measures is what is given.
    ///
    /// # Errors
    /// A device model of ours cannot be read.
    pub fn new(gpu: Box<dyn Measures>) -> Result<MeasuredBench> {
        let facts = gpu.facts().clone();
        let model = model_of(&facts)?.map(SimulatedBench::new);
        Ok(MeasuredBench {
            device: Simulator::new(describe(&facts), Options::CHECKING, None),
            model,
            facts,
            gpu: Mutex::new(gpu),
            timing: TimingOptions::default(),
            last: Mutex::new(None),
        })
    }

    fn gpu(&self) -> MutexGuard<'_, Box<dyn Measures>> {
        self.gpu.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the plain kernel computes at full size.
    fn right(&self, workload: &Workload, plain: &Arc<Kernel>) -> Result<Arc<Vec<Vec<u8>>>> {
        let simulator = Simulator::new(describe(&self.facts), Options::FAST, None);
        let (_, outputs) = workload.bind(&simulator)?.run(&simulator, plain)?;
        Ok(Arc::new(outputs))
    }

    fn known(&self, plain: &Arc<Kernel>) -> Option<Arc<Simulated>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone().filter(|last| Arc::ptr_eq(&last.plain, plain))
    }

    fn keep(&self, plain: &Arc<Kernel>, right: Arc<Vec<Vec<u8>>>, timed: Option<Timed>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Simulated {
            plain: Arc::clone(plain),
            right,
            timed,
        }));
    }

    /// A kernel alone.
    fn measured(&self, workload: &Workload, kernel: &Arc<Kernel>, wanted: &Wanted) -> Result<Measured> {
        let kernels = [("none".to_owned(), Arc::clone(kernel))];
        self.gpu()
            .measure(workload, &kernels, &mut || Ok(wanted.clone()), self.timing)?
            .pop()
            .ok_or_else(|| Error::bug("a kernel was not measured"))?
    }

    /// What the simulator counts for the plain kernel; nothing where there is no model, or it cannot run the kernel.
    fn simulated(&self, workload: &Workload, plain: &Arc<Kernel>) -> Option<Timed> {
        let model = self.model.as_ref()?;
        let bound = workload.bind(model.device()).ok()?;
        model.time(&bound, plain).ok()
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
                "moved by device memory, in bytes that the simulator counts",
                "GB/s",
                delivered,
            ));
        }
        Timed {
            time_ns: measured.timing.median_ns,
            evidence,
            profile: simulated.and_then(|simulated| simulated.profile.clone()),
            counted,
            note: self.note(&measured),
            outputs: measured.found,
        }
    }

    fn evidence(&self, workload: &Workload, measured: &Measured, simulated: Option<&Evidence>) -> Evidence {
        let geometry = workload.geometry();
        let compiled = &measured.loaded.compiled;
        let model = self.model.as_ref().map(SimulatedBench::model);
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
            time_ns: measured.timing.median_ns,
            memory_bytes: simulated.and_then(|simulated| simulated.memory_bytes),
            bandwidth: model.map(|model| *model.dram.bandwidth),
            scattered_bandwidth: simulated.and_then(|simulated| simulated.scattered_bandwidth),
            latency_ns: model.map(|model| model.nanoseconds(f64::from(*model.dram.latency))),
            bytes_in_flight: None,
            waiting_for_loads: simulated.and_then(|simulated| simulated.waiting_for_loads),
            issued: simulated.and_then(|simulated| simulated.issued),
        }
    }

    fn note(&self, measured: &Measured) -> String {
        let GpuFacts { name, driver, .. } = &self.facts;
        let state = match measured.timing.cache {
            CacheState::Kept => "the L2 cache as the launch before left it",
            CacheState::Flushed => "an L2 cache that holds nothing of it",
        };
        let counted = match self.model {
            Some(_) => " Bytes moved and shares of waiting are what the simulator counts.",
            None => "",
        };
        format!(
            "Measured on an {name}, driver for CUDA {}.{}: medians of {} launches in turns, after a warm-up, with {state}. \
             Outputs at full size are compared with the simulator's.{counted}",
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

    fn target(&self) -> prefetch::Target {
        prefetch::Target::default()
    }

    fn levels(&self) -> Vec<CacheLevel> {
        // An asynchronous copy reaches L1; whatever else is asked for reaches L2.
        vec![CacheLevel::L1, CacheLevel::L2]
    }

    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        let target = ptx::Target::for_capability(self.facts.capability);
        let options = target.map(ptx::Options::new);
        let emitted = options.and_then(|options| ptx::emit(kernel, &options).ok());
        emitted.map(|ptx| ptx.hints).unwrap_or_default()
    }

    fn times_at_once(&self) -> bool {
        false
    }

    fn predictor(&self) -> Option<&dyn Bench> {
        self.model.as_ref().map(|model| model as &dyn Bench)
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        let workload = bound.workload();
        let simulated = self.simulated(workload, kernel);
        let measured = self.measured(workload, kernel, &Wanted::Found)?;
        Ok(self.timed(workload, measured, simulated.as_ref()))
    }

    /// Nothing is simulated, which for a large launch takes many times as long as the launch.
    fn time_ns(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<f64> {
        Ok(self
            .measured(bound.workload(), kernel, &Wanted::Unread)?
            .timing
            .median_ns)
    }

    fn time_in_turns(&self, bound: &Bound, kernels: &[Arc<Kernel>]) -> Result<Vec<Result<(Timed, Outputs)>>> {
        let workload = bound.workload();
        let Some(plain) = kernels.first() else {
            return Ok(Vec::new());
        };
        let named: Vec<(String, Arc<Kernel>)> = kernels
            .iter()
            .enumerate()
            .map(|(index, kernel)| (index.to_string(), Arc::clone(kernel)))
            .collect();
        let known = self.known(plain);
        // While the driver compiles, the simulator computes what is right.
        let (measured, simulated) = match known {
            Some(known) => {
                let mut right = || Ok(Wanted::Compared(Arc::clone(&known.right)));
                let measured = self.gpu().measure(workload, &named, &mut right, self.timing);
                (measured, known.timed.clone())
            }
            None => thread::scope(|scope| {
                let mut right = Some(scope.spawn(|| self.right(workload, plain)));
                let simulated = scope.spawn(|| self.simulated(workload, plain));
                let mut computed = None;
                let mut right = || match right.take() {
                    Some(thread) => {
                        let right = thread.join().unwrap_or_else(|_| stopped())?;
                        computed = Some(Arc::clone(&right));
                        Ok(Wanted::Compared(right))
                    }
                    None => Err(Error::bug("the right outputs were asked for twice")),
                };
                let measured = self.gpu().measure(workload, &named, &mut right, self.timing);
                let timed = simulated.join().unwrap_or(None);
                if let Some(right) = computed {
                    self.keep(plain, right, timed.clone());
                }
                (measured, timed)
            }),
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

fn stopped<T>() -> Result<T> {
    Err(Error::bug("the simulator stopped without a word"))
}
