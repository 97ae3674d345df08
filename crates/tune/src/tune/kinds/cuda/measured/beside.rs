//! The simulator's counters for a measured plan: awaited for a limited time, then given up.
//!
//! The simulator takes seconds or minutes for a GPU's milliseconds, and its counters explain a time but do not replace it. So
//! it runs on threads of its own, for which nothing else waits.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::ir::Kernel;
use crate::tune::bench::{Bench, Timed};
use crate::tune::kinds::simulated::bench::SimulatedBench;
use crate::tune::workload::Workload;

/// How long it is waited for once everything is measured.
const PATIENCE: Duration = Duration::from_secs(3);

/// A simulation that runs.
pub(super) struct Beside(mpsc::Receiver<Option<Timed>>);

impl Beside {
    /// Begins one; none where there is no thread for it.
    pub fn begin(model: &Arc<SimulatedBench>, workload: &Workload, plain: &Arc<Kernel>) -> Option<Beside> {
        let (model, workload, plain) = (Arc::clone(model), workload.clone(), Arc::clone(plain));
        let (sender, receiver) = mpsc::channel();
        let work = move || {
            // Whoever gives this up must not find its threads taken.
            let pool = rayon::ThreadPoolBuilder::new().build().ok();
            let time = || {
                let bound = workload.bind(model.device()).ok()?;
                model.time(&bound, &plain).ok()
            };
            let timed = pool.and_then(|pool| pool.install(time));
            // Nobody may be listening any more.
            let _ = sender.send(timed);
        };
        thread::Builder::new().spawn(work).ok()?;
        Some(Beside(receiver))
    }

    /// One that has ended.
    pub fn ended(timed: Timed) -> Beside {
        let (sender, receiver) = mpsc::channel();
        let _ = sender.send(Some(timed));
        Beside(receiver)
    }

    /// Its counters; none if it cannot run the kernel, or does not end soon.
    pub fn end(self) -> Option<Timed> {
        self.0.recv_timeout(PATIENCE).ok().flatten()
    }
}
