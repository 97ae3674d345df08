//! The bench of an OpenCL device: plans are checked on the simulator, run on the device at full size, compared with what
//! the simulator computes there, and timed against each other in turns.

use std::sync::Arc;

use crate::back::spirv::Target;
use crate::device::opencl::device::OpenClDevice;
use crate::device::opencl::platform::{Kind, OpenClFacts};
use crate::device::sim::Simulator;
use crate::device::sim::functional::Options;
use crate::device::{CacheState, Command, Device, Program, Queue, Timing};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::ir::{CacheLevel, Kernel};
use crate::prefetch;
use crate::report::Outputs;
use crate::tune::bench::{Bench, Last, Right, Timed};
use crate::tune::check;
use crate::tune::workload::{Bound, Prepared, Workload};

/// Launches of each kernel that are counted, after one that is not.
const ROUNDS: usize = 9;

/// An OpenCL device on which plans are tried.
pub struct OpenClBench {
    opencl: OpenClDevice,
    /// The simulator with the device's limits: it checks more than a device can.
    simulator: Simulator,
    /// What is right for the plain kernel that was asked for last: a search asks plan by plan.
    last: Last<Arc<Vec<Vec<u8>>>>,
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
            simulator,
            last: Last::default(),
        })
    }

    fn facts(&self) -> &OpenClFacts {
        self.opencl.facts()
    }

    /// What the plain kernel computes at full size.
    fn right(&self, workload: &Workload, plain: &Arc<Kernel>) -> Result<Arc<Vec<Vec<u8>>>> {
        // The workload's parameters do not change while a search holds its kernel.
        let computed = || {
            workload
                .computed(plain, self.opencl.description().clone())
                .map(Arc::new)
        };
        self.last.known_or(plain, (), computed)
    }

    /// Compiles a kernel, launches it once and reads what it computed.
    fn candidate(&self, queue: &dyn Queue, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Candidate> {
        let program = self.opencl.compile(kernel)?;
        let prepared = bound.prepare(&self.opencl)?;
        let mut candidate = Candidate {
            program,
            prepared,
            found: Vec::new(),
            times: Vec::new(),
        };
        candidate.launch(queue)?;
        candidate.found = candidate
            .prepared
            .outputs
            .iter()
            .map(|output| output.read(queue))
            .collect::<Result<_>>()?;
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
            evidence: Evidence {
                cores: facts.cores,
                places: 1,
                groups: geometry.groups,
                group: geometry.group,
                fits: None,
                time_ns: timing.median_ns,
                memory_bytes: None,
                bandwidth: None,
                scattered_bandwidth: None,
                latency_ns: None,
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
            Kind::Gpu => "",
            _ => " This is no GPU: its times say nothing about one.",
        };
        format!(
            "Measured on {}, driver {}: medians of {} launches in turns, after a warm-up. Outputs at full size are \
             compared with the simulator's.{warning}",
            facts.name, facts.driver, timing.launches
        )
    }
}

impl Candidate {
    /// Launches it; the device's time, in ns.
    fn launch(&self, queue: &dyn Queue) -> Result<f64> {
        let command = Command::Launch(self.program.clone(), self.prepared.launch.clone());
        Ok(queue.submit(command, &[]).wait()?.times.elapsed_ns())
    }
}

impl Bench for OpenClBench {
    fn device(&self) -> &dyn Device {
        &self.simulator
    }

    fn identity(&self) -> String {
        format!("{:?}", self.facts())
    }

    fn target(&self) -> prefetch::Target {
        prefetch::Target {
            line: match self.facts().line_bytes {
                0 => 64,
                line => line,
            },
            ..prefetch::Target::default()
        }
    }

    fn levels(&self) -> Vec<CacheLevel> {
        let target = self.facts().target();
        match target {
            Target::IntelLsc => vec![CacheLevel::L1, CacheLevel::L3],
            // What no level is known to be reached by need not be tried.
            _ => Vec::new(),
        }
    }

    fn times_at_once(&self) -> bool {
        false
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

    fn time_in_turns(
        &self,
        bound: &Bound,
        kernels: &[Arc<Kernel>],
        _right: Right<'_>,
    ) -> Result<Vec<Result<(Timed, Outputs)>>> {
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
        // Each round starts with another one, so that what drifts falls on all alike.
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
        let timed = |candidate: Result<(Candidate, Outputs)>| {
            let (candidate, outputs) = candidate?;
            Ok((self.timed(workload, candidate)?, outputs))
        };
        Ok(candidates.into_iter().map(timed).collect())
    }
}
