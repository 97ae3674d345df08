//! Several devices of one kind in one host, used concurrently.
//!
//! Each device times its share of the kernels in turns with a plain kernel of its own, so that a slightly slower device makes
//! no plan look slower.

use std::sync::Arc;
use std::thread;

use crate::error::{Error, Result};
use crate::ir::Kernel;
use crate::report::Outputs;
use crate::tune::bench::{Adjustable, Bench, Judge, Looked, Platform, Simulates, Timed};
use crate::tune::subject::workload::Bound;

/// Devices of a kind.
pub struct SeveralBench {
    first: Box<dyn Bench>,
    others: Vec<Box<dyn Bench>>,
}

impl SeveralBench {
    /// These devices.
    ///
    /// # Errors
    /// There is none, or they are of different kinds.
    pub fn new(benches: Vec<Box<dyn Bench>>) -> Result<SeveralBench> {
        let mut benches = benches.into_iter();
        let first = benches
            .next()
            .ok_or_else(|| Error::device("there is no device to measure on"))?;
        let others: Vec<Box<dyn Bench>> = benches.collect();
        if others
            .iter()
            .any(|other| other.platform().identity() != first.platform().identity())
        {
            return Err(
                Error::device("the devices are of different kinds, or their drivers are")
                    .accepted("devices of one kind; choose one by its number"),
            );
        }
        Ok(SeveralBench { first, others })
    }
}

impl Bench for SeveralBench {
    fn platform(&self) -> &dyn Platform {
        self.first.platform()
    }

    fn simulator(&self) -> Option<&dyn Simulates> {
        self.first.simulator()
    }

    fn judge(&self) -> Option<&dyn Judge> {
        self.first.judge()
    }

    fn adjustable(&self) -> Option<&dyn Adjustable> {
        self.first.adjustable()
    }

    fn kept_at_a_time(&self) -> usize {
        1 + self.others.len()
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        self.first.time(bound, kernel)
    }

    fn look(&self, bound: &Bound, kernels: &[Arc<Kernel>], watched: usize) -> Result<Vec<Looked>> {
        self.first.look(bound, kernels, watched)
    }

    fn time_within(&self, bound: &Bound, kernel: &Arc<Kernel>, limit_ns: f64) -> Result<Option<f64>> {
        self.first.time_within(bound, kernel, limit_ns)
    }

    fn time_in_turns(&self, bound: &Bound, kernels: &[Arc<Kernel>]) -> Result<Vec<Result<(Timed, Outputs)>>> {
        let Some((plain, plans)) = kernels.split_first() else {
            return Ok(Vec::new());
        };
        let benches: Vec<&dyn Bench> = std::iter::once(&self.first)
            .chain(&self.others)
            .map(|bench| &**bench)
            .collect();
        let count = benches.len();
        let share = |own: usize| -> Vec<Arc<Kernel>> {
            let shared = plans.iter().skip(own).step_by(count);
            std::iter::once(plain).chain(shared).map(Arc::clone).collect()
        };
        let timed: Vec<Result<Vec<Result<(Timed, Outputs)>>>> = thread::scope(|scope| {
            let mut running = Vec::new();
            for (own, bench) in benches.iter().enumerate() {
                let kernels = share(own);
                // The first answers for the plain kernel; the others run where there is something for them.
                let is_wanted = own == 0 || kernels.len() > 1;
                running.push(is_wanted.then(|| scope.spawn(move || bench.time_in_turns(bound, &kernels))));
            }
            let answer = |thread: Option<thread::ScopedJoinHandle<'_, _>>| match thread {
                Some(thread) => thread
                    .join()
                    .unwrap_or_else(|_| Err(Error::bug("a device's thread stopped without a word"))),
                None => Ok(Vec::new()),
            };
            running.into_iter().map(answer).collect()
        });
        let mut shares = Vec::new();
        for timed in timed {
            shares.push(timed?.into_iter());
        }
        let (mut all, mut scales) = (Vec::new(), Vec::new());
        let mut first_ns = None;
        for share in &mut shares {
            let scale = match share.next() {
                Some(plain) => {
                    let plain = plain?;
                    let own_ns = plain.0.time_ns;
                    let first_ns = *first_ns.get_or_insert(own_ns);
                    if all.is_empty() {
                        all.push(Ok(plain));
                    }
                    first_ns / own_ns
                }
                None => 1.0,
            };
            scales.push(scale);
        }
        for index in 0..plans.len() {
            let next = shares[index % count].next();
            let next = next.unwrap_or_else(|| Err(Error::bug("a kernel was not timed")));
            all.push(next.map(|(mut timed, outputs)| {
                timed.time_ns *= scales[index % count];
                (timed, outputs)
            }));
        }
        Ok(all)
    }
}
