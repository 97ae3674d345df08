//! What the simulator says of a launch that was measured: bytes moved, where the time goes, and whether the launch does anything.
//!
//! The simulator takes seconds or minutes for a GPU's milliseconds, and its counters explain a time but do not replace it. So
//! it runs on threads of its own, once everything is measured, and is stopped when it takes too long.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::device::CacheState;
use crate::device::sim::Stop;
use crate::error::Result;
use crate::ir::Kernel;
use crate::model::DeviceModel;
use crate::tune::bench::kinds::simulated::bench::SimulatedBench;
use crate::tune::bench::{Bench, Explanation, Looked, Timed};
use crate::tune::check::idle;
use crate::tune::subject::workload::Workload;

/// How long a page waits for its details.
const LOOKS: Duration = Duration::from_secs(10);

/// The simulator for one launch.
pub(super) struct Simulation {
    bench: SimulatedBench,
    workload: Workload,
    stop: &'static Stop,
}

/// What has been found out so far.
enum Said {
    Warnings(Vec<String>),
    Timed(Box<Timed>),
}

impl Simulation {
    pub(crate) fn new(model: DeviceModel, cache: CacheState, workload: &Workload) -> Simulation {
        // A byte for each search: the threads that look at it may outlive everything else.
        let stop: &'static Stop = Box::leak(Box::new(Stop::new()));
        Simulation {
            bench: SimulatedBench::new(model).with_cache(cache).with_stop(Some(stop)),
            workload: workload.clone(),
            stop,
        }
    }

    /// What it says of a kernel within a time, which may be only a part; none if it says nothing by then.
    pub(crate) fn explain(self, kernel: &Arc<Kernel>, patience: Duration) -> Option<Explanation> {
        let kernel = Arc::clone(kernel);
        let (stop, until) = (self.stop, Instant::now() + patience);
        let said = self.begin(move |bench, workload, tell| {
            let bound = workload.bind(bench.device())?;
            let warnings = idle::warnings(&bound, bench.device(), &kernel, bench.platform().engine_options());
            // The other end may be gone.
            let _ = tell.send(Said::Warnings(warnings));
            let _ = tell.send(Said::Timed(Box::new(bench.time(&bound, &kernel)?)));
            Ok(())
        })?;
        let mut found: Option<Explanation> = None;
        let left = || until.saturating_duration_since(Instant::now());
        while let Ok(next) = said.recv_timeout(left()) {
            let explanation = found.get_or_insert_default();
            match next {
                Said::Warnings(warnings) => explanation.warnings = warnings,
                Said::Timed(timed) => explanation.simulated = Some(*timed),
            }
        }
        stop.set(true);
        found
    }

    /// Looks into kernels; nothing where that takes too long.
    pub(crate) fn look(self, kernels: &[Arc<Kernel>], watched: usize) -> Result<Vec<Looked>> {
        let kernels = kernels.to_vec();
        let stop = self.stop;
        let looked = self.begin(move |bench, workload, tell| {
            let bound = workload.bind(bench.device())?;
            let _ = tell.send(bench.look(&bound, &kernels, watched));
            Ok(())
        });
        let looked = looked.and_then(|looked| looked.recv_timeout(LOOKS).ok());
        stop.set(true);
        looked.unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Begins on threads of its own, so that one that is given up leaves no work for others to wait for; none where there is no
    /// thread for it.
    fn begin<T: Send + 'static>(
        self,
        work: impl FnOnce(&SimulatedBench, &Workload, &mpsc::Sender<T>) -> Result<()> + Send + 'static,
    ) -> Option<mpsc::Receiver<T>> {
        let (tell, told) = mpsc::channel();
        let run = move || {
            let Ok(pool) = rayon::ThreadPoolBuilder::new().build() else {
                return;
            };
            // What cannot be simulated is not explained.
            let _ = pool.install(|| work(&self.bench, &self.workload, &tell));
        };
        thread::Builder::new().spawn(run).ok()?;
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::read;
    use crate::model;
    use crate::tune::{FileSubject, LaunchFile, Subject};

    const GATHER: &str = include_str!("../../../../../../../../headstart/tests/in/gather.hsir");

    fn gather(items: u64) -> Workload {
        let kernel = Arc::new(read(GATHER, "gather.hsir").expect("a kernel"));
        let launch = format!(
            "groups = 64\n[parameters.indices]\nlength = {}\nfill = \"indices\"\nbelow = 1000000\n[parameters.values]\n\
             length = 1000000\nfill = \"fractions\"\n[parameters.result]\nlength = 8192\noutput = \"bits\"\n\
             [parameters.items]\nvalue = {items}\n",
            8192 * items.max(1)
        );
        let launch = LaunchFile::parse(&launch, "launch.toml").expect("a launch file");
        FileSubject::new(kernel, launch).workload().expect("a workload")
    }

    fn explained(items: u64, patience: Duration) -> Option<Explanation> {
        let model = model::built_in("h200", &[]).expect("a model of ours");
        let workload = gather(items);
        let kernel = Arc::clone(&workload.kernel);
        Simulation::new(model, CacheState::Flushed, &workload).explain(&kernel, patience)
    }

    #[test]
    fn a_launch_is_explained_in_its_time_or_not_at_all() {
        let whole = explained(4, Duration::from_secs(60)).expect("it is small");
        let simulated = whole.simulated.expect("there is time for it");
        assert!(simulated.evidence.memory_bytes.is_some_and(|bytes| bytes > 0.0));
        assert!(whole.warnings.is_empty(), "{:?}", whole.warnings);
        let nothing_runs = explained(0, Duration::from_secs(60)).expect("it is small");
        assert!(
            nothing_runs.warnings[0].contains("No loop with loads ran"),
            "{:?}",
            nothing_runs.warnings
        );
        let began = Instant::now();
        let late = explained(4096, Duration::from_millis(50));
        assert!(began.elapsed() < Duration::from_secs(5), "nothing waits for it");
        assert!(late.is_none_or(|late| late.simulated.is_none()));
    }
}
