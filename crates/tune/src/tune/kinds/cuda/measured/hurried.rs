//! A model that predicts a GPU's times within a time limit: a prediction slower than the measurement is useless.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use crate::device::Device;
use crate::device::sim::functional::Options;
use crate::device::sim::timer::Pace;
use crate::error::{Error, Result};
use crate::ir::{CacheLevel, Kernel};
use crate::model::hint::HintReached;
use crate::prefetch;
use crate::tune::bench::{Bench, Raced, Timed};
use crate::tune::kinds::simulated::bench::SimulatedBench;
use crate::tune::workload::Bound;

/// How long all predictions of a search may take together. By choice: most take less than a second.
const LIMIT: Duration = Duration::from_secs(10);

/// A simulated device that is given up after a while.
pub(super) struct Hurried {
    model: Arc<SimulatedBench>,
    /// Threads of its own: an abandoned prediction continues, and nothing else waits for it. None if they cannot be started.
    pool: Option<ThreadPool>,
    search: Arc<Mutex<Option<Search>>>,
}

/// The predictions for one kernel.
struct Search {
    /// The workload's: all of a search have the same.
    kernel: Arc<Kernel>,
    until: Instant,
    /// The first prediction, of the plain kernel; also if it came too late.
    first: Option<(Arc<Kernel>, Timed)>,
    /// It came too late.
    was_late: bool,
}

impl Hurried {
    pub fn new(model: Arc<SimulatedBench>) -> Hurried {
        Hurried {
            model,
            pool: rayon::ThreadPoolBuilder::new().build().ok(),
            search: Arc::default(),
        }
    }

    /// The prediction for a kernel, if it was the first of its search, however late.
    pub fn known(&self, kernel: &Arc<Kernel>) -> Option<Timed> {
        let search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, timed) = search.as_ref()?.first.as_ref()?;
        Arc::ptr_eq(known, kernel).then(|| timed.clone())
    }

    /// That it takes too long.
    fn late(&self) -> Error {
        let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(search) = search.as_mut().filter(|search| search.first.is_none()) {
            search.was_late = true;
        }
        Error::device("the simulator takes longer than the measurement")
    }

    /// Until when a search with this kernel may predict.
    fn until(&self, kernel: &Arc<Kernel>) -> Instant {
        let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        match &*search {
            Some(search) if Arc::ptr_eq(&search.kernel, kernel) => search.until,
            _ => {
                let until = Instant::now() + LIMIT;
                *search = Some(Search {
                    kernel: Arc::clone(kernel),
                    until,
                    first: None,
                    was_late: false,
                });
                until
            }
        }
    }

    /// The model's result for a kernel, if it comes in time; `timed` finds the time in it, if there is one.
    fn within<T: Send + 'static>(
        &self,
        bound: &Bound,
        kernel: &Arc<Kernel>,
        work: impl FnOnce(&SimulatedBench, &Bound, &Arc<Kernel>) -> Result<T> + Send + 'static,
        timed: fn(&T) -> Option<&Timed>,
    ) -> Result<T> {
        let Some(pool) = &self.pool else {
            return work(&self.model, bound, kernel);
        };
        let workload = bound.workload().clone();
        let left = self
            .until(&workload.kernel)
            .saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.late());
        }
        let (sender, receiver) = mpsc::channel();
        let (model, own) = (Arc::clone(&self.model), Arc::clone(kernel));
        let search = Arc::clone(&self.search);
        pool.spawn(move || {
            let found = workload
                .bind(model.device())
                .and_then(|bound| work(&model, &bound, &own));
            if let Some(timed) = found.as_ref().ok().and_then(timed) {
                let mut search = search.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(search) = search
                    .as_mut()
                    .filter(|search| Arc::ptr_eq(&search.kernel, &workload.kernel))
                {
                    search.first.get_or_insert_with(|| (own, timed.clone()));
                }
            }
            // Nobody may be listening any more.
            let _ = sender.send(found);
        });
        match receiver.recv_timeout(left) {
            Ok(found) => found,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(self.late()),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(Error::bug("the simulator stopped without a word"))
            }
        }
    }
}

impl Bench for Hurried {
    fn device(&self) -> &dyn Device {
        self.model.device()
    }

    fn identity(&self) -> String {
        self.model.identity()
    }

    fn target(&self) -> prefetch::PlanTarget {
        self.model.target()
    }

    fn engine_options(&self) -> Options {
        self.model.engine_options()
    }

    fn levels(&self) -> Vec<CacheLevel> {
        self.model.levels()
    }

    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        self.model.prefetches(kernel)
    }

    fn times_at_once(&self) -> bool {
        true
    }

    fn predicts_in_time(&self) -> bool {
        let search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        search.as_ref().is_none_or(|search| !search.was_late)
    }

    fn is_out_of_time(&self) -> bool {
        let search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        search
            .as_ref()
            .is_some_and(|search| Instant::now() >= search.until)
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        let time = |model: &SimulatedBench, bound: &Bound, kernel: &Arc<Kernel>| model.time(bound, kernel);
        self.within(bound, kernel, time, |timed| Some(timed))
    }

    fn race(&self, bound: &Bound, kernel: &Arc<Kernel>, pace: &Pace) -> Result<Raced> {
        let pace = pace.clone();
        let race = move |model: &SimulatedBench, bound: &Bound, kernel: &Arc<Kernel>| {
            model.race(bound, kernel, &pace)
        };
        self.within(bound, kernel, race, |raced| match raced {
            Raced::Ended(timed, _) => Some(timed),
            Raced::Behind(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;

    #[test]
    fn what_takes_too_long_is_not_waited_for() {
        let model = model::built_in("h200", &[]).expect("a model of ours");
        let hurried = Hurried::new(Arc::new(SimulatedBench::new(model)));
        let kernel = Arc::new(Kernel::new("k"));
        let until = hurried.until(&kernel);
        assert_eq!(hurried.until(&kernel), until, "of the whole search");
        let other = Arc::new(Kernel::new("k"));
        assert!(hurried.until(&other) > until, "another search has its own time");
        let ended = Search {
            kernel: Arc::clone(&kernel),
            until: Instant::now(),
            first: None,
            was_late: false,
        };
        *hurried.search.lock().expect("nobody panicked") = Some(ended);
        let workload = crate::tune::Workload::new(kernel, 1, 32);
        let bound = workload.bind(hurried.device()).expect("it takes nothing");
        assert!(hurried.predicts_in_time());
        let error = hurried
            .time(&bound, &workload.kernel)
            .expect_err("no time is left");
        assert!(
            error.to_string().contains("longer than the measurement"),
            "{error}"
        );
        assert!(!hurried.predicts_in_time());
    }
}
