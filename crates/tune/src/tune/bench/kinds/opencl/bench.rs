//! The bench of an OpenCL device: plans are checked on the simulator, run on the device at full size, compared with the
//! simulator's results, and timed in alternation.

use std::sync::Arc;
use std::time::Duration;

use crate::back::spirv::SpirvTarget;
use crate::device::opencl::device::OpenClDevice;
use crate::device::opencl::platform::{DeviceType, OpenClFacts};
use crate::device::sim::Simulator;
use crate::device::sim::functional::Options;
use crate::device::{CacheState, Command, Device, Fill, Paired, Program, Queue, Timing};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::ir::{CacheLevel, Kernel, Type};
use crate::model::hint::HintReached;
use crate::prefetch;
use crate::report::Outputs;
use crate::tune::bench::Held;
use crate::tune::bench::{Adjustable, Bench, Last, Looked, Platform, Spread, Timed};
use crate::tune::bench::{Choices, Pressure};
use crate::tune::check;
use crate::tune::subject::workload::{Bound, Prepared, Workload};

/// Launches of each kernel that are counted, after one that is not.
const ROUNDS: usize = 9;

/// Bytes that are copied to empty the caches: twice the device's reported cache size, within these limits.
const LEAST_FLUSH: u64 = 16 << 20;
const MOST_FLUSH: u64 = 1 << 30;

/// An OpenCL device on which plans are tried.
pub struct OpenClBench {
    opencl: OpenClDevice,
    has_large_registers: bool,
    /// The simulator with the device's limits: it checks more than a device can.
    simulator: Simulator,
    /// The reference for the last plain kernel: a search queries plan by plan.
    last: Last<Arc<Vec<Vec<u8>>>>,
}

/// How kernels are launched to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Launches {
    /// Launches of each that are not counted.
    pub warm_up: u32,
    /// Launches of each that are.
    pub rounds: u32,
    /// The state of the caches before each of these.
    pub cache: CacheState,
    /// The longest that one may take.
    pub limit: Duration,
}

/// The measurements of a kernel.
#[derive(Clone, Debug)]
pub struct OpenClMeasured {
    /// Its times.
    pub timing: Timing,
    /// Its outputs, if they were read.
    pub found: Vec<Vec<u8>>,
}

/// A kernel, ready to be launched again and again.
struct Candidate {
    program: Program,
    prepared: Prepared,
    found: Vec<Vec<u8>>,
    times: Vec<f64>,
}

impl OpenClBench {
    /// The device with this number.
    ///
    /// # Errors
    /// There is no such device.
    pub fn open(ordinal: usize) -> Result<OpenClBench> {
        let opencl = OpenClDevice::open(ordinal)?;
        let simulator = Simulator::custom(opencl.description().clone(), Options::CHECKING_OPENCL, None);
        Ok(OpenClBench {
            opencl,
            has_large_registers: false,
            simulator,
            last: Last::default(),
        })
    }

    /// The device's properties.
    pub fn facts(&self) -> &OpenClFacts {
        self.opencl.facts()
    }

    /// Launches kernels of a workload in turns, each after other data have gone through the caches if they are to be flushed:
    /// their times, and their outputs, if wanted. In order; one that cannot be run has its error. None if `in_time` says before
    /// a step that there is no time for it.
    ///
    /// # Errors
    /// The data do not fit the device.
    pub fn measure(
        &mut self,
        workload: &Workload,
        kernels: &[Arc<Kernel>],
        options: Launches,
        read: bool,
        in_time: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Result<OpenClMeasured>>>> {
        self.opencl.set_limit(options.limit);
        let queue = self.opencl.queue()?;
        let flush = match options.cache {
            CacheState::Kept => None,
            CacheState::Flushed => Some(self.flush()?),
        };
        let bound = workload.bind(&self.opencl)?;
        let warm = |kernel: &Arc<Kernel>| -> Result<Candidate> {
            let mut candidate = self.compiled(&bound, kernel)?;
            candidate.launch(queue.as_ref())?;
            if read {
                candidate.read(queue.as_ref())?;
            }
            for _ in 1..options.warm_up {
                candidate.launch(queue.as_ref())?;
            }
            Ok(candidate)
        };
        let mut candidates: Vec<Result<Candidate>> = Vec::with_capacity(kernels.len());
        for kernel in kernels {
            if !in_time() {
                return Ok(None);
            }
            candidates.push(warm(kernel));
        }
        for round in 0..options.rounds as usize {
            let count = candidates.len();
            for turn in 0..count {
                let place = (round + turn) % count;
                let Ok(candidate) = &mut candidates[place] else {
                    continue;
                };
                if !in_time() {
                    return Ok(None);
                }
                if let Some(flush) = &flush {
                    queue.submit(flush.clone(), &[]).wait()?;
                }
                match candidate.launch(queue.as_ref()) {
                    Ok(time) => candidate.times.push(time),
                    Err(error) => candidates[place] = Err(error),
                }
            }
        }
        let first = candidates.first().and_then(|first| first.as_ref().ok());
        let first = first.map(|first| first.times.clone()).unwrap_or_default();
        let measured = candidates.into_iter().map(|candidate| {
            let candidate = candidate?;
            let paired = Paired::of(&first, &candidate.times);
            let timing = Timing::of(candidate.times, options.cache)
                .ok_or_else(|| Error::usage("no launch was to be counted").accepted("a round or more"))?;
            Ok(OpenClMeasured {
                timing: Timing { paired, ..timing },
                found: candidate.found,
            })
        });
        Ok(Some(measured.collect()))
    }

    /// A copy that evicts a launch's data from the caches.
    fn flush(&self) -> Result<Command> {
        let facts = self.facts();
        let bytes = (2 * facts.cache_bytes)
            .clamp(LEAST_FLUSH, MOST_FLUSH)
            .min(facts.buffer_bytes);
        let fill = || Fill::Uninitialized;
        Ok(Command::Copy {
            from: self.opencl.allocate(Type::I8, bytes, fill())?,
            from_offset: 0,
            to: self.opencl.allocate(Type::I8, bytes, fill())?,
            to_offset: 0,
            length: bytes,
        })
    }

    /// The plain kernel's outputs at full size.
    fn right(&self, workload: &Workload, plain: &Arc<Kernel>) -> Result<Arc<Vec<Vec<u8>>>> {
        // The workload's parameters do not change while a search holds its kernel.
        let computed = || {
            workload
                .computed(plain, self.opencl.description().clone())
                .map(Arc::new)
        };
        self.last.known_or(plain, (), computed)
    }

    fn compiled(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Candidate> {
        Ok(Candidate {
            program: self.opencl.compile(kernel)?,
            prepared: bound.prepare(&self.opencl)?,
            found: Vec::new(),
            times: Vec::new(),
        })
    }

    /// Compiles a kernel, launches it once and reads its outputs.
    fn candidate(&self, queue: &dyn Queue, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Candidate> {
        let mut candidate = self.compiled(bound, kernel)?;
        candidate.launch(queue)?;
        candidate.read(queue)?;
        Ok(candidate)
    }

    fn timed(&self, workload: &Workload, candidate: Candidate) -> Result<Timed> {
        let timing = Timing::of(candidate.times, CacheState::Kept);
        let timing = timing.ok_or_else(|| Error::bug("a kernel was not timed"))?;
        let geometry = workload.geometry();
        let facts = self.facts();
        Ok(Timed {
            time_ns: timing.median_ns,
            interval_ns: Some(timing.quartiles_ns()),
            sampled: None,
            takes: None,
            spread: Spread::Measured { paired: None },
            evidence: Evidence {
                cores: facts.cores,
                places: 1,
                groups: geometry.groups,
                group: geometry.group,
                fits: None,
                achieved: None,
                time_ns: timing.median_ns,
                launch_ns: None,
                starts_ns: None,
                cache: Some(timing.cache),
                memory_bytes: None,
                bandwidth: None,
                bandwidth_counted: None,
                scattered_bandwidth: None,
                latency_ns: None,
                saturating_bytes: None,
                bytes_in_flight: None,
                waiting_for_loads: None,
                issued: None,
            },
            profile: None,
            counted: vec![("between the quartiles of its times", "%", 100.0 * timing.spread())],
            note: self.note(&timing),
            outputs: Some(candidate.found),
        })
    }

    fn note(&self, timing: &Timing) -> String {
        let facts = self.facts();
        let warning = match facts.kind {
            DeviceType::Gpu => "",
            _ => " This is not a GPU, and its times say nothing about one.",
        };
        format!(
            "Measured on {}, driver {}: medians of {} alternating launches, after a warm-up, with {}, without the time that the \
             launch takes. Outputs at full size are \
             compared with the simulator's.{warning}",
            facts.name, facts.driver, timing.launches, timing.cache
        )
    }
}

impl Candidate {
    /// Launches it; the device's time, in ns.
    fn launch(&self, queue: &dyn Queue) -> Result<f64> {
        let command = Command::Launch(self.program.clone(), self.prepared.launch.clone());
        Ok(queue.submit(command, &[]).wait()?.times.elapsed_ns())
    }

    fn read(&mut self, queue: &dyn Queue) -> Result<()> {
        let outputs = self.prepared.outputs.iter();
        self.found = outputs.map(|output| output.read(queue)).collect::<Result<_>>()?;
        Ok(())
    }
}

impl Platform for OpenClBench {
    fn device(&self) -> &dyn Device {
        &self.simulator
    }

    fn identity(&self) -> String {
        let registers = match self.has_large_registers {
            true => " with the large register file",
            false => "",
        };
        format!("{:?}{registers}", self.facts())
    }

    fn target(&self) -> prefetch::PlanTarget {
        prefetch::PlanTarget {
            line: match self.facts().line_bytes {
                0 => 64,
                line => line,
            },
            ..prefetch::PlanTarget::default()
        }
    }

    fn levels(&self) -> Vec<CacheLevel> {
        let target = self.facts().target();
        match target {
            SpirvTarget::IntelLsc => vec![CacheLevel::L1, CacheLevel::L3],
            // Hints that are not known to reach any level need not be tried.
            _ => Vec::new(),
        }
    }

    fn engine_options(&self) -> Options {
        Options::CHECKING
    }

    fn prefetches(&self, _kernel: &Kernel) -> Vec<HintReached> {
        Vec::new()
    }

    fn registers_per_core(&self) -> Option<u32> {
        None
    }

    fn held(&self, _workload: &Workload, _kernel: &Kernel) -> Result<Option<Vec<Held>>> {
        Ok(None)
    }
}

impl Bench for OpenClBench {
    fn platform(&self) -> &dyn Platform {
        self
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        let workload = bound.workload();
        let queue = self.opencl.queue()?;
        let bound = workload.bind(&self.opencl)?;
        let mut candidate = self.candidate(queue.as_ref(), &bound, kernel)?;
        for _ in 0..ROUNDS {
            candidate.times.push(candidate.launch(queue.as_ref())?);
        }
        self.timed(workload, candidate)
    }

    fn time_within(&self, bound: &Bound, kernel: &Arc<Kernel>, _limit_ns: f64) -> Result<Option<f64>> {
        Ok(Some(self.time(bound, kernel)?.time_ns))
    }

    fn time_in_turns(&self, bound: &Bound, kernels: &[Arc<Kernel>]) -> Result<Vec<Result<(Timed, Outputs)>>> {
        let workload = bound.workload();
        let Some(plain) = kernels.first() else {
            return Ok(Vec::new());
        };
        let right = self.right(workload, plain)?;
        let queue = self.opencl.queue()?;
        let bound = workload.bind(&self.opencl)?;
        let mut candidates: Vec<Result<(Candidate, Outputs)>> = kernels
            .iter()
            .map(|kernel| {
                let candidate = self.candidate(queue.as_ref(), &bound, kernel)?;
                let outputs = check::compare_across(workload, &right, &candidate.found)?;
                Ok((candidate, outputs))
            })
            .collect();
        // Each round starts with another one, so that drift affects all alike.
        for round in 0..ROUNDS {
            let count = candidates.len();
            for turn in 0..count {
                let place = (round + turn) % count;
                let Ok((candidate, _)) = &mut candidates[place] else {
                    continue;
                };
                match candidate.launch(queue.as_ref()) {
                    Ok(time) => candidate.times.push(time),
                    Err(error) => candidates[place] = Err(error),
                }
            }
        }
        let first = candidates.first().and_then(|first| first.as_ref().ok());
        let first = first.map(|(first, _)| first.times.clone()).unwrap_or_default();
        let timed = |candidate: Result<(Candidate, Outputs)>| {
            let (candidate, outputs) = candidate?;
            let paired = Paired::of(&first, &candidate.times).map(|paired| (paired.least, paired.most));
            let timed = self.timed(workload, candidate)?;
            let spread = Spread::Measured { paired };
            Ok((Timed { spread, ..timed }, outputs))
        };
        Ok(candidates.into_iter().map(timed).collect())
    }

    fn look(&self, _bound: &Bound, _kernels: &[Arc<Kernel>], _watched: usize) -> Result<Vec<Looked>> {
        Ok(Vec::new())
    }

    fn adjustable(&self) -> Option<&dyn Adjustable> {
        Some(self)
    }
}

impl Adjustable for OpenClBench {
    fn choices(&self) -> Choices {
        let description = self.opencl.description();
        Choices {
            sub_group_sizes: description.sub_group_sizes.clone(),
            sub_group_size: description.default_sub_group_size,
            threads: None,
            cores: description.cores,
        }
    }

    fn with_large_registers(&self) -> Result<Box<dyn Bench>> {
        let mut large = OpenClBench::open(self.facts().ordinal)?;
        large.opencl.enlarge_registers()?;
        large.has_large_registers = true;
        Ok(Box::new(large))
    }

    fn pressure(&self, _bound: &Bound, _kernel: &Arc<Kernel>) -> Result<Option<Pressure>> {
        Ok(None)
    }
}
