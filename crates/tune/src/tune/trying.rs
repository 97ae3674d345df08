//! Trials: a derived plan is checked, timed, compared and recorded; a failure is also a result.
//!
//! A device with its own clock, the simulator, tries plans in parallel. On a device whose clock drifts they are timed in turns
//! with the plain kernel, a batch at a time, the plain kernel alone first. With a log, each plan has turns of its own with the
//! plain kernel, and is stored before the next begins: stopping the search loses no completed measurement.
//!
//! A device that judges plans itself is asked at once. Others are asked about plans that passed their checks on the simulator.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bench::{Bench, Raced, Timed};
use super::check::{Checks, compare};
use super::derivation::Derivation;
use super::interval;
use super::log::{self, Entry, Log};
use super::perturb::{Perturbed, Thoroughness};
use super::proposals::{BATCH, FIRST, Proposals};
use super::race::{self, Race};
use super::search::{Derived, Progress};
use super::subject::Subject;
use super::threads;
use super::workload::{Bound, Workload};
use crate::error::{Error, Fault, Result};
use crate::ir::Kernel;
use crate::prefetch::Plan;
use crate::report::{Checked, Outcome, Outputs, Trial, Violation, number};

/// How many plans are timed in turns with the plain kernel where all are measured: enough that its launches cost little, few
/// enough that a first result comes soon.
const UNRANKED: usize = 16;

/// A requested plan, and its outcome.
pub type Pair<'a> = (&'a Plan, &'a Result<Derived>);

/// The common settings of a search's trials.
pub struct Trying<'a> {
    pub subject: &'a dyn Subject,
    pub bench: &'a dyn Bench,
    pub workload: &'a Workload,
    /// The plain kernel.
    pub kernel: &'a Arc<Kernel>,
    pub bound: &'a Bound,
    pub memory: &'a Memory<'a>,
    /// Launches derived from this one, where plans are checked on those, too.
    pub perturbed: Option<&'a Perturbed>,
    pub progress: &'a dyn Progress,
    /// The plans that are likely to help.
    pub likely: &'a [Plan],
    /// The criterion for abandoning plans that are certainly slower; none if every plan is timed to its end.
    pub race: Option<Race>,
}

/// The trials.
pub struct Trials {
    /// The plain kernel's run.
    pub baseline: Timed,
    /// The same as a trial.
    pub none: Trial,
    /// The plans that were tried, in their order, with their runs.
    pub trials: Vec<(Trial, Option<Timed>)>,
    /// The notes about them.
    pub note: Option<String>,
    /// Why the device measured no more, where it was lost on the way.
    pub lost: Option<Error>,
    /// Whether more would have been measured, had there been time for another.
    pub is_cut: bool,
    /// Whether the first plans were one of each family, and then those like the fastest: they tell of the others.
    pub are_proposed: bool,
    /// How they were checked.
    pub checked: Option<Checked>,
    /// How long a plan took on average; without any, how long the plain kernel took.
    pub a_plan: Duration,
}

/// How many plans get a first time, and how many of them at a time.
const SOON: usize = 16;
const SOON_AT_ONCE: usize = 4;

/// First times, from much less of the launch than what a plan's time takes: of the kernel without a plan, and of some plans, by
/// their positions. What a search says whose time is over before it knows more.
struct Soon {
    plain: Timed,
    plans: Vec<(usize, Timed)>,
}

impl Soon {
    fn speedup(&self, timed: &Timed) -> f64 {
        self.plain.time_ns / timed.time_ns
    }

    /// The first times as trials, beside the kernel without a plan.
    fn trials(&self, pairs: &[Pair<'_>], baseline_ns: f64) -> Vec<(usize, (Trial, Option<Timed>))> {
        let of = |(index, timed): &(usize, Timed)| {
            let (plan, mut timed) = (
                pairs[*index].1.as_ref().map_or(pairs[*index].0, |own| &own.plan),
                timed.clone(),
            );
            timed.time_ns = baseline_ns / self.speedup(&timed);
            (
                *index,
                trial(plan.clone(), baseline_ns, Ok((timed, Outputs::Identical))),
            )
        };
        self.plans.iter().map(of).collect()
    }
}

/// The time that each of the trials took on average since then; none if none of them ran.
fn each(since: Instant, trials: &[(Trial, Option<Timed>)]) -> Option<Duration> {
    let has_run = |(trial, run): &&(Trial, Option<Timed>)| run.is_some() || trial.dropped().is_some();
    let ran = trials.iter().filter(has_run).count();
    u32::try_from(ran)
        .ok()
        .and_then(|ran| since.elapsed().checked_div(ran))
}

impl Trying<'_> {
    fn checks(&self, pairs: &[Pair<'_>]) -> Result<Checks<'_>> {
        let derived = pairs.iter().filter_map(|(_, derived)| derived.as_ref().ok());
        let plans = derived.map(|derived| &derived.plan);
        Checks::new(self.subject, self.kernel, self.bench.device(), plans)
    }

    /// How the plans were checked.
    fn checked(&self, checks: Option<&Checks<'_>>) -> Checked {
        Checked {
            sizes: checks.into_iter().flat_map(Checks::sizes).collect(),
            symbolic_sizes: checks.into_iter().flat_map(Checks::symbolic_sizes).collect(),
            at_full_size: self.bench.at_full_size(),
        }
    }

    fn plain_trial(&self, baseline: &Timed) -> Trial {
        let ran = Ok((baseline.clone(), Outputs::Identical));
        let none = trial(Plan::none(), baseline.time_ns, ran).0;
        self.progress.done(&none);
        none
    }

    /// A trial of a plan as completed, told to who follows the search.
    fn done(
        &self,
        (plan, derived): &Pair<'_>,
        baseline_ns: f64,
        result: Result<(Timed, Outputs)>,
    ) -> (Trial, Option<Timed>) {
        self.told(match derived {
            Ok(derived) => trial(derived.plan.clone(), baseline_ns, result),
            Err(error) => not_derived((*plan).clone(), error),
        })
    }

    fn told(&self, tried: (Trial, Option<Timed>)) -> (Trial, Option<Timed>) {
        self.progress.done(&tried.0);
        self.memory.keep(&tried);
        tried
    }

    fn known(&self, pair: &Pair<'_>, baseline: &Timed) -> Option<(Trial, Option<Timed>)> {
        let known = self.memory.known(pair.1, baseline, self.bench.times_at_once())?;
        if known.0.dropped().is_some() && self.race.is_none() {
            return None;
        }
        self.progress.known(&known.0);
        Some(known)
    }

    /// In parallel, as a race, the likely plans first. Each is held against all before it but the last few, so that the number of
    /// threads changes nothing. Meanwhile `beside` runs, with the plain kernel's time in nanoseconds.
    pub fn at_once<T: Send>(
        &self,
        pairs: &[Pair<'_>],
        beside: impl FnOnce(f64) -> T + Send,
    ) -> Result<(Trials, T)> {
        self.progress.begin(pairs.len() + 1);
        let mut race = self.race.clone().unwrap_or_else(Race::without_dropping);
        // A kernel that never ends fails here, and not in the timer.
        let checks = self.checks(pairs)?;
        let soon = self.soon(pairs, &checks)?;
        let began = Instant::now();
        // With first times there is an answer already.
        self.progress.trying(soon.is_some());
        let plain = self.bench.race(self.bound, self.kernel, race.pace(&Plan::none()));
        self.progress.trying(false);
        let (baseline, course) = match (plain, &soon) {
            (Ok(Raced::Ended(baseline, course)), _) => (baseline, course),
            (Ok(Raced::Behind(_)), _) => return Err(Error::bug("the plain kernel was given up")),
            (Err(_), Some(soon)) if self.progress.is_stopped() => (Box::new(soon.plain.clone()), None),
            (Err(error), _) => return Err(error),
        };
        let plain_took = began.elapsed();
        race.start(course.as_ref());
        let none = self.plain_trial(&baseline);
        // None where that is not wanted any more.
        let check_small_of = |index: usize| {
            let is_wanted = !self.progress.is_stopped() && !self.memory.has(pairs[index].1);
            is_wanted.then(|| shielded(|| check_small(&checks, self.perturbed, pairs[index].1)))
        };
        let try_plan = |race: &Race, index: usize, checked: Option<Result<(Derived, Outputs)>>| {
            if self.progress.is_stopped() {
                return None;
            }
            let pair = &pairs[index];
            if let Some((trial, timed)) = self.known(pair, &baseline) {
                return Some((index, trial, timed, None));
            }
            let run = || -> Result<(Raced, Outputs)> {
                let (derived, mut outputs) =
                    checked.unwrap_or_else(|| check_small(&checks, self.perturbed, pair.1))?;
                let raced = self
                    .bench
                    .race(self.bound, &derived.kernel, race.pace(&derived.plan));
                // A dropped plan has no outputs at full size to speak of.
                if !matches!(raced, Ok(Raced::Behind(_))) {
                    outputs = outputs.and(checks.check_at_full_size(&derived.kernel)?);
                }
                let raced = raced?;
                if let Raced::Ended(timed, _) = &raced
                    && let (Some(right), Some(found)) = (&baseline.outputs, &timed.outputs)
                    && compare(self.workload, right, found).map_err(|error| Error::bug(error.to_string()))?
                        != Outputs::Identical
                {
                    outputs = Outputs::Equivalent;
                }
                Ok((raced, outputs))
            };
            let (result, course) = match shielded(run) {
                Ok((Raced::Ended(timed, course), outputs)) => (Ok((*timed, outputs)), course),
                Ok((Raced::Behind(behind), _)) => {
                    let trial = Trial {
                        takes: None,
                        between: None,
                        plan: pair.1.as_ref().map_or(pair.0, |derived| &derived.plan).clone(),
                        outcome: race::dropped(behind),
                    };
                    let tried = self.told((trial, None));
                    return Some((index, tried.0, tried.1, None));
                }
                // It was ended, whatever it says.
                Err(_) if self.progress.is_stopped() => return None,
                Err(error) => (Err(error), None),
            };
            let (trial, timed) = self.done(pair, baseline.time_ns, result);
            Some((index, trial, timed, course))
        };
        let mut tried: Vec<Option<(Trial, Option<Timed>)>> = pairs.iter().map(|_| None).collect();
        let plans: Vec<&Plan> = pairs.iter().map(|(plan, _)| *plan).collect();
        let order = race.order(&plans, |index| {
            pairs[index].1.as_ref().map_or(0, Derived::operations)
        });
        let known = soon.iter().flat_map(|soon| {
            soon.plans
                .iter()
                .map(|(index, timed)| (*index, soon.speedup(timed)))
        });
        let order = order.after_soon(&known.collect::<Vec<_>>());
        let race_all = || {
            threads::in_turn(
                &order.plans,
                race,
                |place| order.abreast(place),
                |&index| check_small_of(index),
                |race, &index, checked| try_plan(race, index, checked),
                |race, _, ended| {
                    if let Some((_, trial, _, Some(course))) = ended {
                        race.ended(trial, course);
                    }
                },
            )
        };
        let baseline_ns = baseline.time_ns;
        self.progress.trying(true);
        let began = Instant::now();
        // Where the time is short the plans here come first.
        let (ended, beside) = match soon {
            Some(_) => (race_all(), beside(baseline_ns)),
            None => threads::both(race_all, || beside(baseline_ns)),
        };
        self.progress.trying(false);
        let is_stopped = self.progress.is_stopped();
        for (index, first) in soon.iter().flat_map(|soon| soon.trials(pairs, baseline_ns)) {
            tried[index] = Some(first);
        }
        let mut alone = soon.as_ref().map_or(0, |soon| soon.plans.len());
        for (index, trial, timed, _) in ended.into_iter().flatten() {
            alone -= usize::from(tried[index].is_some());
            tried[index] = Some((trial, timed));
        }
        let note = |alone: usize| {
            (alone > 0).then(|| {
                format!(
                    "{alone} plans have a first time alone, from less of the launch than what the others' take: the intervals of \
                     their speedups allow for that."
                )
            })
        };
        let trials: Vec<_> = tried.into_iter().flatten().collect();
        let tried = Trials {
            baseline: *baseline,
            none,
            a_plan: each(began, &trials).unwrap_or(plain_took),
            is_cut: is_stopped && (alone > 0 || trials.len() < pairs.len()),
            trials,
            note: soon.as_ref().and_then(|_| note(alone)),
            lost: None,
            are_proposed: soon.is_some(),
            checked: Some(self.checked(Some(&checks))),
        };
        Ok((tried, beside))
    }

    /// First times, where the search has a limit and what a plan's time takes is long: one plan of each family, the likely ones
    /// first, and then those like the fastest.
    fn soon(&self, pairs: &[Pair<'_>], checks: &Checks<'_>) -> Result<Option<Soon>> {
        let is_wanted = self.progress.left().is_some() && self.race.is_some();
        let plain = match is_wanted {
            true => self.bench.soon(self.bound, self.kernel)?,
            false => None,
        };
        let Some(plain) = plain else {
            return Ok(None);
        };
        let mut soon = Soon {
            plain,
            plans: Vec::new(),
        };
        let plans: Vec<Plan> = pairs.iter().map(|(plan, _)| (*plan).clone()).collect();
        let mut proposals = Proposals::new(&plans, self.likely);
        let is_open = |index: usize| pairs[index].1.is_ok() && !self.memory.has(pairs[index].1);
        (0..pairs.len())
            .filter(|&index| !is_open(index))
            .for_each(|index| proposals.refuse(index));
        let mut fastest = 1.0;
        self.progress.trying(true);
        while soon.plans.len() < SOON && !self.progress.is_stopped() {
            let batch = proposals.next(SOON_AT_ONCE);
            let timed = threads::map(&batch, |&index| {
                let time = || {
                    let (derived, _) = check_small(checks, self.perturbed, pairs[index].1)?;
                    self.bench.soon(self.bound, &derived.kernel)
                };
                shielded(time).ok().flatten()
            });
            for (index, timed) in batch.iter().copied().zip(timed) {
                let speedup = timed.as_ref().map(|timed| soon.speedup(timed));
                proposals.learn(index, speedup);
                if let Some(speedup) = speedup.filter(|&speedup| speedup > fastest) {
                    fastest = speedup;
                    let (plan, speedup) = (pairs[index].0, number::speedup(speedup));
                    self.progress
                        .understood(&format!("by a first look, `{plan}` is {speedup} as fast"));
                }
                soon.plans.extend(timed.map(|timed| (index, timed)));
            }
            if batch.is_empty() {
                break;
            }
        }
        self.progress.trying(false);
        Ok(Some(soon))
    }

    /// In turns with the plain kernel, which is timed alone first, if it was not yet. `measure` is the number of plans; `None`
    /// means all.
    pub fn in_turns(
        &self,
        derivation: &Derivation<'_>,
        baseline: Option<Timed>,
        measure: Option<usize>,
    ) -> Result<Trials> {
        let plans = derivation.plans();
        let few = measure.filter(|&few| few < plans.len());
        let budget = few.unwrap_or(plans.len());
        self.progress.begin(budget + 1);
        let checks = match self.bench.checks_on_device() {
            true => None,
            false => Some(
                self.checks(
                    &(0..plans.len())
                        .map(|index| derivation.pair(index))
                        .collect::<Vec<_>>(),
                )?,
            ),
        };
        let began = Instant::now();
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
        let plain_took = began.elapsed();
        let none = self.plain_trial(&baseline);
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
        Ok(Trials {
            a_plan: each(began, &trials).unwrap_or(plain_took),
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
    tried: Vec<Option<(Trial, Option<Timed>)>>,
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
                break;
            }
            self.measured += batch.len();
            self.batch(&batch)?;
            for index in batch {
                let speedup = self.tried[index].as_ref().and_then(|(trial, _)| trial.measured());
                if let Some((_, proposals)) = &mut proposals {
                    proposals.learn(index, speedup.map(|(_, speedup)| speedup));
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
        loop {
            let batch = proposals.next(count);
            self.derivation.derive(&batch);
            let (legal, refused): (Vec<usize>, Vec<usize>) =
                batch.into_iter().partition(|&index| self.is_legal(index));
            if refused.is_empty() {
                return legal;
            }
            for index in refused {
                proposals.refuse(index);
            }
        }
    }

    /// Whether a plan is legal; one that is not has been tried then.
    fn is_legal(&mut self, index: usize) -> bool {
        let pair = self.derivation.pair(index);
        if let Err(error) = pair.1 {
            let refused = not_derived(pair.0.clone(), error);
            self.trying.progress.refused(&refused.0);
            self.trying.memory.keep(&refused);
            self.tried[index] = Some(refused);
        }
        pair.1.is_ok()
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

fn check(
    checks: &Checks<'_>,
    perturbed: Option<&Perturbed>,
    derived: &Result<Derived>,
) -> Result<(Derived, Outputs)> {
    let (derived, outputs) = check_small(checks, perturbed, derived)?;
    let at_full_size = checks.check_at_full_size(&derived.kernel)?;
    Ok((derived, outputs.and(at_full_size)))
}

/// The same without the launch at full size.
fn check_small(
    checks: &Checks<'_>,
    perturbed: Option<&Perturbed>,
    derived: &Result<Derived>,
) -> Result<(Derived, Outputs)> {
    let derived = derived.as_ref().map_err(Error::clone)?;
    let outputs = checks.check_small(&derived.plan, &derived.kernel)?;
    if let Some(perturbed) = perturbed {
        perturbed.check(&derived.plan, &derived.kernel, Thoroughness::Quick)?;
    }
    Ok((derived.clone(), outputs))
}

/// The log, as one search sees it.
pub struct Memory<'a> {
    log: Option<(&'a Log, String)>,
}

impl<'a> Memory<'a> {
    pub fn new(log: Option<&'a Log>, bench: &dyn Bench, workload: &Workload, kernel: &Kernel) -> Memory<'a> {
        Memory {
            log: log.map(|log| (log, log::key(bench, workload, kernel))),
        }
    }

    /// Whether trials are kept.
    fn is_kept(&self) -> bool {
        self.log.is_some()
    }

    fn find(&self, derived: &Result<Derived>) -> Option<Entry> {
        let (log, key) = self.log.as_ref()?;
        log.find(key, &derived.as_ref().ok()?.plan)
    }

    fn has(&self, derived: &Result<Derived>) -> bool {
        self.find(derived).is_some()
    }

    /// The trial as the log has it, beside today's plain kernel. A simulator's clock is the same every day; elsewhere the
    /// speedup stands, which was measured in turns with the plain kernel of that day.
    fn known(
        &self,
        derived: &Result<Derived>,
        baseline: &Timed,
        same_clock: bool,
    ) -> Option<(Trial, Option<Timed>)> {
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

    fn keep(&self, (trial, timed): &(Trial, Option<Timed>)) {
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

/// A kernel that passed its checks and computes something else at full size is a bug of ours.
fn wrong_output(error: Error) -> Error {
    match error.fault() {
        Fault::Input => Error::bug(error.unblamed()).caused_by(&error),
        _ => error,
    }
}

/// Runs one trial's work. A panic in it is a bug of ours, and costs this trial only.
pub(crate) fn shielded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        let said = said
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("it stopped without a word");
        Err(Error::bug(said.replace('\n', " ")))
    })
}

fn trial(plan: Plan, baseline_ns: f64, result: Result<(Timed, Outputs)>) -> (Trial, Option<Timed>) {
    match result {
        Ok((timed, outputs)) => {
            let time_ns = timed.time_ns;
            let outcome = Outcome::Ok {
                time_ns,
                speedup: baseline_ns / time_ns,
                outputs,
            };
            let trial = Trial {
                between: interval::of_plan(&plan, baseline_ns / time_ns, &timed),
                takes: timed.takes,
                plan,
                outcome,
            };
            (trial, Some(timed))
        }
        Err(error) => {
            let outcome = went_wrong(&error);
            let trial = Trial {
                takes: None,
                between: None,
                plan,
                outcome,
            };
            (trial, None)
        }
    }
}

/// A plan that could not be derived: whatever the kernel lacks for it, nothing ran.
fn not_derived(plan: Plan, error: &Error) -> (Trial, Option<Timed>) {
    let outcome = match error.fault() {
        Fault::Input => Outcome::Rejected {
            reason: error.unblamed(),
        },
        _ => went_wrong(error),
    };
    let trial = Trial {
        plan,
        outcome,
        takes: None,
        between: None,
    };
    (trial, None)
}

/// The outcome of a failed trial.
pub(crate) fn went_wrong(error: &Error) -> Outcome {
    // The status says whose fault it is.
    let reason = error.unblamed();
    match error.fault() {
        Fault::Usage | Fault::Device => Outcome::Rejected { reason },
        Fault::Input | Fault::Bug => Outcome::Failed {
            reason,
            violation: error.cause().map(Violation::from),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::{Element, WorkItem};

    #[test]
    fn a_trial_that_breaks_a_rule_says_which_as_data() {
        let who = WorkItem {
            group: [0; 3],
            local: [3, 0, 0],
            global: [3, 0, 0],
            is_in_line: true,
        };
        let broken = crate::violation::Violation::NeverWritten {
            who,
            does: "reads",
            element: Element::Index("values".to_owned(), 7),
        };
        // On its way to the report the error becomes a bug of ours.
        let error = wrong_output(Error::violation(broken).at("k.rs:3:5"));
        let trial = Trial {
            takes: None,
            between: None,
            plan: Plan::none(),
            outcome: went_wrong(&error),
        };
        let json = serde_json::to_value(&trial).expect("plain data");
        let who = "work-item 3 of work-group 0 (global 3)";
        let expected = serde_json::json!({
            "plan": "none",
            "status": "failed",
            "reason": format!("k.rs:3:5: {who} reads `values[7]`, which was never written"),
            "violation": { "kind": "never-written", "memory": "values", "index": 7 },
        });
        assert_eq!(json, expected);
    }
}
