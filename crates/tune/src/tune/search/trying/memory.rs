//! Trials that a log kept.

use super::Tried;
use crate::error::Result;
use crate::ir::Kernel;
use crate::report::Outcome;
use crate::tune::bench::{Bench, Timed};
use crate::tune::derived::Derived;
use crate::tune::search::log::{self, Entry, Log};
use crate::tune::subject::workload::Workload;

/// The log, as one search sees it.
pub(crate) struct Memory<'a> {
    log: Option<(&'a Log, String)>,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(
        log: Option<&'a Log>,
        bench: &dyn Bench,
        workload: &Workload,
        kernel: &Kernel,
    ) -> Memory<'a> {
        Memory {
            log: log.map(|log| (log, log::key(bench, workload, kernel))),
        }
    }

    /// Whether trials are kept.
    pub(super) fn is_kept(&self) -> bool {
        self.log.is_some()
    }

    fn find(&self, derived: &Result<Derived>) -> Option<Entry> {
        let (log, key) = self.log.as_ref()?;
        log.find(key, &derived.as_ref().ok()?.plan)
    }

    pub(super) fn has(&self, derived: &Result<Derived>) -> bool {
        self.find(derived).is_some()
    }

    /// The trial as the log has it, beside today's plain kernel. A simulator's clock is the same every day; elsewhere the
    /// speedup stands, which was measured in turns with the plain kernel of that day.
    pub(super) fn known(
        &self,
        derived: &Result<Derived>,
        baseline: &Timed,
        same_clock: bool,
    ) -> Option<Tried> {
        let entry = self.find(derived)?;
        let mut trial = entry.trial;
        let Outcome::Ok { time_ns, speedup, .. } = &mut trial.outcome else {
            return Some((trial, None));
        };
        match same_clock {
            true => *speedup = baseline.time_ns / *time_ns,
            false => *time_ns = baseline.time_ns / *speedup,
        }
        let mut timed = baseline.clone();
        timed.takes = trial.takes;
        timed.time_ns = *time_ns;
        timed.interval_ns = None;
        timed.evidence.memory_bytes = entry.memory_bytes;
        let counted = timed
            .counted
            .iter()
            .filter_map(|&(name, unit, _)| Some((name, unit, *entry.counted.get(name)?)));
        timed.counted = counted.collect();
        Some((trial, Some(timed)))
    }

    pub(super) fn keep(&self, (trial, timed): &Tried) {
        let Some((log, key)) = &self.log else { return };
        let counted = timed.iter().flat_map(|timed| &timed.counted);
        log.add(Entry {
            key: key.clone(),
            trial: trial.clone(),
            memory_bytes: timed.as_ref().and_then(|timed| timed.evidence.memory_bytes),
            counted: counted
                .map(|&(name, _, value)| (name.to_owned(), value))
                .collect(),
        });
    }
}
