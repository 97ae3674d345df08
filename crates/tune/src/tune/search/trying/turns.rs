//! Plans timed in turns with the plain kernel, on a device whose clock drifts: a batch at a time, the plain kernel alone first.
//!
//! With a log, each plan has turns of its own with the plain kernel, and is stored before the next begins: stopping the search
//! loses no completed measurement.

use std::sync::Arc;
use std::time::Instant;

use super::{Took, Trials, Tried, Trying, check, not_derived, wrong_output};
use crate::error::{Error, Fault, Result};
use crate::ir::Kernel;
use crate::report::{Outcome, Outputs, Trial};
use crate::tune::bench::Timed;
use crate::tune::check::Checks;
use crate::tune::derived::Derived;
use crate::tune::search::derivation::Derivation;
use crate::tune::search::proposals::{BATCH, FIRST, Proposals};
use crate::tune::threads;
use crate::tune::threads::shielded;

/// How many plans are timed in turns with the plain kernel where all are measured: enough that its launches cost little, few
/// enough that a first result comes soon.
const UNRANKED: usize = 16;

impl Trying<'_> {
    /// In turns with the plain kernel, which is timed alone first, if it was not yet. `measure` is the number of plans; `None`
    /// means all.
    pub(crate) fn in_turns(
        &self,
        derivation: &Derivation<'_>,
        baseline: Option<Timed>,
        measure: Option<usize>,
    ) -> Result<Trials> {
        let plans = derivation.plans();
        let few = measure.filter(|&few| few < plans.len());
        let budget = few.unwrap_or(plans.len());
        self.progress.begin(budget + 1);
        let checks = match self.bench.judge() {
            Some(_) => None,
            None => Some(
                self.checks(
                    &(0..plans.len())
                        .map(|index| derivation.pair(index))
                        .collect::<Vec<_>>(),
                )?,
            ),
        };
        let baseline = match baseline {
            Some(baseline) => baseline,
            None => {
                let plain = std::slice::from_ref(self.kernel);
                let plain = self.bench.time_in_turns(self.bound, plain)?.pop();
                plain
                    .ok_or_else(|| Error::bug("the plain kernel was not timed"))??
                    .0
            }
        };
        let none = self.plain_trial(&baseline)?;
        let mut turns = Turns {
            trying: self,
            derivation,
            checks: checks.as_ref(),
            baseline: &baseline,
            tried: plans.iter().map(|_| None).collect(),
            measured: 0,
            began: Instant::now(),
        };
        let began = Instant::now();
        let lost = turns.all(few);
        let is_cut = matches!(lost, Ok(true));
        let (tried, measured) = (turns.tried, turns.measured);
        // A driver that was reset loses no measurement that was made before.
        let lost = match lost {
            Err(error) if error.fault() != Fault::Device => return Err(error),
            lost => lost.err(),
        };
        let legal = (0..plans.len()).filter(|&index| derivation.known(index).is_some_and(Result::is_ok));
        let note = few.map(|_| {
            format!(
                "{measured} of {} plans were measured: first one of each family, and then those like the fastest.",
                legal.count()
            )
        });
        let trials: Vec<_> = tried.into_iter().flatten().collect();
        let ran = trials.iter().filter(|(_, run)| run.is_some()).count();
        Ok(Trials {
            took: Took::of(began.elapsed(), ran),
            baseline: baseline.clone(),
            none,
            trials,
            note,
            lost,
            is_cut,
            are_proposed: false,
            checked: Some(self.checked(checks.as_ref())),
        })
    }
}

/// Plans that take turns with the plain kernel.
struct Turns<'t> {
    trying: &'t Trying<'t>,
    derivation: &'t Derivation<'t>,
    /// The checks on the simulator, where the device does not judge plans itself.
    checks: Option<&'t Checks<'t>>,
    baseline: &'t Timed,
    tried: Vec<Option<Tried>>,
    /// How many plans were measured.
    measured: usize,
    began: Instant,
}

impl Turns<'_> {
    /// Tries this many of the plans, those first that are likely to help and then those like the fastest; all in their order
    /// without a number. Whether that ends because there is no time for another one.
    fn all(&mut self, few: Option<usize>) -> Result<bool> {
        let plans = self.derivation.plans();
        let mut proposals = few.map(|few| (few, Proposals::new(plans, self.trying.likely)));
        let mut next = 0;
        let is_done = |measured, next| few.map_or(next == plans.len(), |few| measured >= few);
        while !is_done(self.measured, next) {
            let fits = self.fits();
            if fits == 0 || self.trying.progress.is_stopped() {
                return Ok(true);
            }
            let batch = match &mut proposals {
                Some((few, proposals)) => {
                    let batch = match self.measured {
                        0 => threads::for_items(FIRST).max(BATCH),
                        _ => BATCH,
                    };
                    self.proposed(proposals, batch.min(*few - self.measured).min(fits))
                }
                None => {
                    let batch: Vec<usize> = (next..plans.len()).take(UNRANKED.min(fits)).collect();
                    next += batch.len();
                    self.derivation.derive(&batch);
                    batch.into_iter().filter(|&index| self.is_legal(index)).collect()
                }
            };
            if batch.is_empty() && proposals.is_some() {
                return Ok(self.trying.progress.is_stopped());
            }
            self.measured += batch.len();
            self.batch(&batch)?;
            for index in batch {
                let trial = self.tried[index].as_ref().map(|(trial, _)| trial);
                let speedup = trial.and_then(Trial::measured).map(|(_, speedup)| speedup);
                let is_refused = trial.is_some_and(|trial| matches!(trial.outcome, Outcome::Rejected { .. }));
                match &mut proposals {
                    Some((_, proposals)) if is_refused => self.refuse_with(proposals, index),
                    Some((_, proposals)) => proposals.learn(index, speedup),
                    None => {}
                }
            }
        }
        Ok(false)
    }

    /// How many more plans can be measured in the time that is left, by the time of those before.
    fn fits(&self) -> usize {
        let measured = u32::try_from(self.measured).unwrap_or(u32::MAX);
        let a_plan = self.began.elapsed().checked_div(measured);
        match (self.trying.progress.left(), a_plan) {
            (Some(left), Some(a_plan)) => (left.as_secs_f64() / a_plan.as_secs_f64().max(1e-9)) as usize,
            _ => usize::MAX,
        }
    }

    /// The next plans to measure, at most this many; those that turn out to be illegal are tried, too.
    fn proposed(&mut self, proposals: &mut Proposals, count: usize) -> Vec<usize> {
        let mut ahead = count;
        loop {
            let batch = proposals.next(count);
            self.derivation.derive(&proposals.next(ahead));
            // Where one is refused more will be: each thread derives one.
            ahead = count.max(threads::for_items(usize::MAX));
            let (legal, refused): (Vec<usize>, Vec<usize>) =
                batch.into_iter().partition(|&index| self.is_legal(index));
            let is_done = refused.is_empty() || self.trying.progress.is_stopped();
            for index in refused {
                self.refuse_with(proposals, index);
            }
            if is_done {
                return legal;
            }
        }
    }

    /// Whether a plan is legal; one that is not has been tried then.
    fn is_legal(&mut self, index: usize) -> bool {
        let (plan, derived) = self.derivation.pair(index);
        if let Err(error) = derived {
            self.refuse(index, not_derived(plan.clone(), error));
        }
        derived.is_ok()
    }

    fn refuse(&mut self, index: usize, refused: Tried) {
        self.trying.progress.refused(&refused.0);
        self.trying.memory.keep(&refused);
        self.tried[index] = Some(refused);
    }

    /// A plan was refused, and with it those that do the same in larger numbers, if it is the smallest.
    fn refuse_with(&mut self, proposals: &mut Proposals, index: usize) {
        let Some((refused, _)) = self.tried[index].clone() else {
            return;
        };
        for larger in proposals.refuse(index) {
            let plan = self.derivation.plans()[larger].clone();
            let trial = Trial {
                plan,
                ..refused.clone()
            };
            self.refuse(larger, (trial, None));
        }
    }

    /// Tries some of the plans; plans in the log are not tried again.
    fn batch(&mut self, batch: &[usize]) -> Result<()> {
        let Trying {
            bench,
            memory,
            progress,
            ..
        } = self.trying;
        let new: Vec<usize> = batch
            .iter()
            .copied()
            .filter(|&index| !memory.has(self.derivation.pair(index).1))
            .collect();
        progress.trying(true);
        let checked = threads::map(&new, |&index| {
            let checked = shielded(|| self.checked(index));
            // What was ended was not tried.
            (checked.is_ok() || !progress.is_stopped()).then_some((index, checked))
        });
        progress.trying(false);
        let mut checked: Vec<(usize, Result<(Derived, Outputs)>)> = checked.into_iter().flatten().collect();
        // What is kept is kept as it is made.
        let at_a_time = match memory.is_kept() {
            true => bench.kept_at_a_time().max(1),
            false => checked.len().max(1),
        };
        while !checked.is_empty() && !progress.is_stopped() {
            let rest = checked.split_off(at_a_time.min(checked.len()));
            self.timed(checked)?;
            checked = rest;
        }
        for &index in batch.iter().filter(|index| !new.contains(index)) {
            self.tried[index] = self.trying.known(&self.derivation.pair(index), self.baseline);
        }
        Ok(())
    }

    /// A plan that may be measured.
    fn checked(&self, index: usize) -> Result<(Derived, Outputs)> {
        let derived = self.derivation.pair(index).1;
        match self.checks {
            Some(checks) => check(checks, self.trying.perturbed, derived),
            None => Ok((derived.clone()?, Outputs::Identical)),
        }
    }

    /// Times plans in turns with the plain kernel. Each such turn has its plain kernel; times are reported relative to that of the first.
    fn timed(&mut self, checked: Vec<(usize, Result<(Derived, Outputs)>)>) -> Result<()> {
        let Trying { bench, bound, .. } = self.trying;
        let right = checked.iter().filter_map(|(_, checked)| checked.as_ref().ok());
        let kernels: Vec<Arc<Kernel>> = std::iter::once(self.trying.kernel)
            .chain(right.map(|(derived, _)| &derived.kernel))
            .map(Arc::clone)
            .collect();
        let mut times = Vec::new();
        // Where no plan passed its checks the plain kernel is not timed again.
        if kernels.len() > 1 {
            times = bench.time_in_turns(bound, &kernels)?;
        }
        let mut times = times.into_iter();
        let own_ns = match times.next() {
            Some(plain) => plain?.0.time_ns,
            None => self.baseline.time_ns,
        };
        for (index, checked) in checked {
            let result = checked.and_then(|(_, small)| {
                let next = times
                    .next()
                    .unwrap_or_else(|| Err(Error::bug("a kernel was not timed")));
                let (mut timed, full) = next.map_err(wrong_output)?;
                timed.time_ns *= self.baseline.time_ns / own_ns;
                Ok((timed, small.and(full)))
            });
            let pair = self.derivation.pair(index);
            self.tried[index] = Some(self.trying.done(&pair, self.baseline.time_ns, result));
        }
        Ok(())
    }
}
