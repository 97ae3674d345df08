//! Trials: a derived plan is checked, timed, compared and recorded; a failure is also a result.
//!
//! A device with its own clock, the simulator, tries plans in parallel. On a device whose clock drifts they are timed in turns
//! with the plain kernel, a batch at a time. With a log, each plan has turns of its own with the plain kernel, and is stored
//! before the next begins: stopping the search loses no completed measurement. A model's predictions are stored, too.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bench::{Bench, Raced, Right, Timed};
use super::check::{AtFullSize, Checks, compare};
use super::log::{self, Entry, Log};
use super::perturb::{Perturbed, Thoroughness};
use super::proposals::{BATCH, Proposals};
use super::race::{self, Race};
use super::search::{Derived, Progress};
use super::subject::Subject;
use super::threads;
use super::workload::{Bound, Workload};
use crate::error::{Error, Fault, Result};
use crate::ir::Kernel;
use crate::prefetch::Plan;
use crate::report::{Checked, Outcome, Outputs, Trial, Violation};

/// How many plans are timed in turns with the plain kernel where all are measured: enough that its launches cost little, few
/// enough that something is told soon.
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
    /// The seed of the work-groups that run at full size, if a sample of them does and the device provides the reference.
    pub sampled: Option<u64>,
    pub progress: &'a dyn Progress,
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
    /// How they were checked.
    pub checked: Option<Checked>,
    /// How long a plan took on average; without any, how long the plain kernel took.
    pub a_plan: Duration,
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
        let at_full_size = match self.sampled {
            Some(seed) => AtFullSize::Sample { seed },
            None => AtFullSize::First,
        };
        Checks::with(
            self.subject,
            self.kernel,
            self.bench.device(),
            derived.map(|derived| &derived.plan),
            at_full_size,
        )
    }

    /// The reference for outputs at full size.
    fn right<'c>(&self, checks: &'c Checks<'_>) -> Right<'c> {
        match self.sampled {
            Some(_) => Right::OnDevice(checks.sample().map(Arc::as_ref)),
            None => Right::Simulated,
        }
    }

    /// How the plans were checked.
    fn checked(&self, checks: &Checks<'_>) -> Checked {
        Checked {
            sizes: checks.sizes().collect(),
            symbolic_sizes: checks.symbolic_sizes().collect(),
            sample: checks.sample().map(|sample| sample.summary()),
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
        let plan = derived.as_ref().map_or(*plan, |derived| &derived.plan);
        self.told(trial(plan.clone(), baseline_ns, result))
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
    /// threads changes nothing. Meanwhile somebody works `beside` them, with the plain kernel's time in nanoseconds.
    pub fn at_once<T: Send>(
        &self,
        pairs: &[Pair<'_>],
        beside: impl FnOnce(f64) -> T + Send,
    ) -> Result<(Trials, T)> {
        self.progress.begin(pairs.len() + 1);
        let mut race = self.race.clone().unwrap_or_else(Race::without_dropping);
        // A kernel that never ends fails here, and not in the timer.
        let checks = self.checks(pairs)?;
        let began = Instant::now();
        let plain = self
            .bench
            .race(self.bound, self.kernel, race.pace(&Plan::none()))?;
        let Raced::Ended(baseline, course) = plain else {
            return Err(Error::bug("the plain kernel was given up"));
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
        let (ended, beside) = threads::both(race_all, || beside(baseline_ns));
        self.progress.trying(false);
        for (index, trial, timed, _) in ended.into_iter().flatten() {
            tried[index] = Some((trial, timed));
        }
        let trials: Vec<_> = tried.into_iter().flatten().collect();
        let tried = Trials {
            baseline: *baseline,
            none,
            a_plan: each(began, &trials).unwrap_or(plain_took),
            trials,
            note: None,
            lost: None,
            checked: Some(self.checked(&checks)),
        };
        Ok((tried, beside))
    }

    /// In turns with the plain kernel. `measure` is the number of plans, if times can be predicted; `None` means all.
    pub fn in_turns(&self, pairs: &[Pair<'_>], measure: Option<usize>) -> Result<Trials> {
        let legal: Vec<usize> = (0..pairs.len()).filter(|&index| pairs[index].1.is_ok()).collect();
        let few = measure.filter(|&few| few < legal.len());
        let mut proposals = few.and_then(|_| self.predicted(pairs, &legal));
        let budget = match proposals {
            Some(_) => few.unwrap_or(legal.len()),
            None => legal.len(),
        };
        self.progress.begin(pairs.len() - legal.len() + budget + 1);
        let checks = self.checks(pairs)?;

        let began = Instant::now();
        let mut first: Option<(Timed, Trial)> = None;
        let mut tried: Vec<Option<(Trial, Option<Timed>)>> = pairs.iter().map(|_| None).collect();
        let mut measured = 0;
        let mut lost = None;
        loop {
            let batch: Vec<usize> = match &proposals {
                Some(proposals) => {
                    let next = proposals.next(BATCH.min(budget - measured));
                    next.into_iter().map(|own| legal[own]).collect()
                }
                None => legal.iter().copied().skip(measured).take(UNRANKED).collect(),
            };
            if first.is_some() && (batch.is_empty() || self.progress.is_stopped()) {
                break;
            }
            measured += batch.len();
            if let Err(error) = self.batch(&checks, pairs, &batch, &mut first, &mut tried) {
                // A driver that was reset loses no measurement that was made before.
                if first.is_none() || error.fault() != Fault::Device {
                    return Err(error);
                }
                lost = Some(error);
                break;
            }
            for index in batch {
                let own = legal.iter().position(|&legal| legal == index);
                let speedup = tried[index].as_ref().and_then(|(trial, _)| trial.measured());
                if let (Some(proposals), Some(own)) = (&mut proposals, own) {
                    proposals.learn(own, speedup.map(|(_, speedup)| speedup));
                }
            }
        }
        let (baseline, none) = first.ok_or_else(|| Error::bug("the plain kernel was not timed"))?;
        for (pair, tried) in pairs.iter().zip(&mut tried) {
            if let Err(error) = pair.1 {
                *tried = Some(self.done(pair, baseline.time_ns, Err(error.clone())));
            }
        }
        let in_time = self.bench.predictor().is_none_or(Bench::predicts_in_time);
        let chosen = match in_time {
            true => "those proposed by the simulator's ranking, corrected by the first measurements",
            false => {
                "one of each kind, and then those like the fastest, since the simulator takes too long to rank them"
            }
        };
        let note = proposals.map(|_| format!("{measured} of {} plans were measured: {chosen}.", legal.len()));
        let trials: Vec<_> = tried.into_iter().flatten().collect();
        Ok(Trials {
            baseline,
            none,
            a_plan: each(began, &trials).unwrap_or_else(|| began.elapsed()),
            trials,
            note,
            lost,
            checked: Some(self.checked(&checks)),
        })
    }

    /// The legal plans with the predictor's times; none if there is no predictor, or it cannot run the plain kernel.
    fn predicted(&self, pairs: &[Pair<'_>], legal: &[usize]) -> Option<Proposals> {
        let predictor = self.bench.predictor()?;
        let bound = self.workload.bind(predictor.device()).ok()?;
        let mut race = self.race.clone().unwrap_or_else(Race::without_dropping);
        // As they were asked for, which is how the likely ones are known: completed plans name further loads.
        let asked: Vec<&Plan> = legal.iter().map(|&index| pairs[index].0).collect();
        let derived: Vec<&Derived> = legal
            .iter()
            .filter_map(|&index| pairs[index].1.as_ref().ok())
            .collect();
        let plain = match shielded(|| predictor.race(&bound, self.kernel, race.pace(&Plan::none()))) {
            Ok(plain) => plain,
            Err(_) if predictor.predicts_in_time() => return None,
            // Nothing is known of any: one of each kind is measured first, and then those like the fastest.
            Err(_) => {
                let unknown = |derived: &&Derived| (derived.plan.clone(), 1.0);
                return Some(Proposals::new(derived.iter().map(unknown).collect()));
            }
        };
        let Raced::Ended(plain, course) = plain else {
            return None;
        };
        race.start(course.as_ref());
        let plain_ns = plain.time_ns;
        // Half of the time that is left is for measuring.
        let until = f64::midpoint(self.progress.spent(), 1.0);
        let is_over = || self.progress.spent() > until || predictor.is_out_of_time();
        let predict = |race: &Race, index: usize| {
            let Derived { plan, kernel } = derived[index];
            let unknown = race.unpredicted(asked[index]);
            if let Some(time_ns) = self.memory.predicted(plan) {
                return (index, plain_ns / time_ns, None);
            }
            if is_over() {
                return (index, unknown, None);
            }
            match shielded(|| predictor.race(&bound, kernel, race.pace(plan))) {
                Ok(Raced::Ended(timed, course)) => {
                    self.memory.keep_predicted(plan, timed.time_ns, plain_ns);
                    (index, plain_ns / timed.time_ns, course)
                }
                Ok(Raced::Behind(behind)) => {
                    self.memory
                        .keep_predicted(plan, plain_ns / behind.estimate.max(1e-3), plain_ns);
                    (index, behind.estimate, None)
                }
                Err(_) if is_over() => (index, unknown, None),
                Err(_) => (index, 0.0, None),
            }
        };
        let mut predicted: Vec<(Plan, f64)> = derived
            .iter()
            .map(|derived| (derived.plan.clone(), 1.0))
            .collect();
        let order = race.order(&asked, |index| derived[index].operations());
        let ended = threads::in_turn(
            &order.plans,
            race,
            |place| order.abreast(place),
            |_| (),
            |race, &index, ()| predict(race, index),
            |race, &index, (_, speedup, course)| {
                if let Some(course) = course {
                    race.came(&derived[index].plan, *speedup, course);
                }
            },
        );
        for (index, speedup, _) in ended {
            predicted[index].1 = speedup;
        }
        Some(Proposals::new(predicted))
    }

    /// Tries some of the plans, in turns with the plain kernel; plans in the log are not tried again.
    fn batch(
        &self,
        checks: &Checks<'_>,
        pairs: &[Pair<'_>],
        batch: &[usize],
        first: &mut Option<(Timed, Trial)>,
        tried: &mut [Option<(Trial, Option<Timed>)>],
    ) -> Result<()> {
        let new: Vec<usize> = batch
            .iter()
            .copied()
            .filter(|&index| !self.memory.has(pairs[index].1))
            .collect();
        self.progress.trying(true);
        let checked = threads::map(&new, |&index| {
            let checked = shielded(|| check(checks, self.perturbed, pairs[index].1));
            // What was ended was not tried.
            (checked.is_ok() || !self.progress.is_stopped()).then_some((index, checked))
        });
        self.progress.trying(false);
        let mut checked: Vec<(usize, Result<(Derived, Outputs)>)> = checked.into_iter().flatten().collect();
        // What is kept is kept as it is made.
        let at_a_time = match self.memory.is_kept() {
            true => self.bench.kept_at_a_time().max(1),
            false => checked.len().max(1),
        };
        if first.is_none() && checked.is_empty() {
            self.timed(checks, pairs, Vec::new(), first, tried)?;
        }
        while !checked.is_empty() {
            if first.is_some() && self.progress.is_stopped() {
                break;
            }
            let rest = checked.split_off(at_a_time.min(checked.len()));
            self.timed(checks, pairs, checked, first, tried)?;
            checked = rest;
        }
        let Some((baseline, _)) = first else {
            return Err(Error::bug("the plain kernel was not timed"));
        };
        for &index in batch.iter().filter(|index| !new.contains(index)) {
            tried[index] = self.known(&pairs[index], baseline);
        }
        Ok(())
    }

    /// Times plans that were checked in turns with the plain kernel. Each such turn has its plain kernel; times are told
    /// beside that of the first.
    fn timed(
        &self,
        checks: &Checks<'_>,
        pairs: &[Pair<'_>],
        checked: Vec<(usize, Result<(Derived, Outputs)>)>,
        first: &mut Option<(Timed, Trial)>,
        tried: &mut [Option<(Trial, Option<Timed>)>],
    ) -> Result<()> {
        let right = checked.iter().filter_map(|(_, checked)| checked.as_ref().ok());
        let kernels: Vec<Arc<Kernel>> = std::iter::once(self.kernel)
            .chain(right.map(|(derived, _)| &derived.kernel))
            .map(Arc::clone)
            .collect();
        let mut times = Vec::new();
        // Where no plan passed its checks the plain kernel is not timed again.
        if first.is_none() || kernels.len() > 1 {
            times = self
                .bench
                .time_in_turns(self.bound, &kernels, self.right(checks))?;
        }
        let mut times = times.into_iter();
        let own_ns = match times.next() {
            Some(plain) => {
                let plain = plain?.0;
                let own_ns = plain.time_ns;
                if first.is_none() {
                    let none = self.plain_trial(&plain);
                    *first = Some((plain, none));
                }
                own_ns
            }
            None => 1.0,
        };
        let Some((baseline, _)) = first else {
            return Err(Error::bug("the plain kernel was not timed"));
        };
        for (index, checked) in checked {
            let result = checked.and_then(|(_, small)| {
                let next = times
                    .next()
                    .unwrap_or_else(|| Err(Error::bug("a kernel was not timed")));
                let (mut timed, full) = next.map_err(wrong_output)?;
                timed.time_ns *= baseline.time_ns / own_ns;
                Ok((timed, small.and(full)))
            });
            tried[index] = Some(self.done(&pairs[index], baseline.time_ns, result));
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

    /// The time that a model predicted for a plan, if it was asked before.
    fn predicted(&self, plan: &Plan) -> Option<f64> {
        let (kept, key) = self.log.as_ref()?;
        let entry = kept.find(&log::predictions(key), plan)?;
        entry.trial.measured().map(|(time_ns, _)| time_ns)
    }

    /// Stores a model's prediction for a plan.
    fn keep_predicted(&self, plan: &Plan, time_ns: f64, plain_ns: f64) {
        let Some((kept, key)) = &self.log else { return };
        kept.add(Entry {
            key: log::predictions(key),
            trial: Trial {
                takes: None,
                plan: plan.clone(),
                outcome: Outcome::Ok {
                    time_ns,
                    speedup: plain_ns / time_ns,
                    outputs: Outputs::Identical,
                },
            },
            memory_bytes: None,
            counted: BTreeMap::new(),
        });
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
pub fn shielded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
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
            let takes = timed.takes;
            (Trial { plan, outcome, takes }, Some(timed))
        }
        Err(error) => {
            let outcome = went_wrong(&error);
            let takes = None;
            (Trial { plan, outcome, takes }, None)
        }
    }
}

/// The outcome of a failed trial.
pub fn went_wrong(error: &Error) -> Outcome {
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
