//! Plans that race, on a device with its own clock: in parallel, each held against those before it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Pair, Took, Trials, Tried, Trying, check_small};
use crate::device::sim::timer::Course;
use crate::error::{Error, Result};
use crate::prefetch::Plan;
use crate::report::{Outputs, Trial, number};
use crate::tune::bench::{Raced, Simulates, Timed};
use crate::tune::check::{AtFullSize, Checks, compare};
use crate::tune::derived::Derived;
use crate::tune::search::proposals::Proposals;
use crate::tune::search::race::{self, Race};
use crate::tune::threads;
use crate::tune::threads::shielded;

/// How many plans get a first time, and how many of them at a time.
const SOON: usize = 16;
const SOON_AT_ONCE: usize = 4;

/// First times, from much less of the launch than what a plan's time takes: of the kernel without a plan, and of some plans, by
/// their positions. What a search says whose time is over before it knows more.
struct Soon {
    plain: Timed,
    plans: Vec<(usize, Timed)>,
    /// How long a plan's took.
    took: Took,
}

impl Soon {
    fn speedup(&self, timed: &Timed) -> f64 {
        self.plain.time_ns / timed.time_ns
    }

    /// The first times as trials, beside the kernel without a plan.
    fn trials(&self, pairs: &[Pair<'_>], baseline_ns: f64) -> Vec<(usize, Tried)> {
        let of = |(index, timed): &(usize, Timed)| {
            let (plan, mut timed) = (
                pairs[*index].1.as_ref().map_or(pairs[*index].0, |own| &own.plan),
                timed.clone(),
            );
            timed.time_ns = baseline_ns / self.speedup(&timed);
            (
                *index,
                super::trial(plan.clone(), baseline_ns, Ok((timed, Outputs::Identical))),
            )
        };
        self.plans.iter().map(of).collect()
    }
}

/// A plan's trial, by its position, and its course if it ran to its end.
struct Ended {
    index: usize,
    tried: Tried,
    course: Option<Course>,
}

/// Plans in a race.
struct Racing<'r> {
    trying: &'r Trying<'r>,
    simulator: &'r dyn Simulates,
    pairs: &'r [Pair<'r>],
    checks: &'r Checks<'r>,
    /// The plain kernel's run.
    baseline: &'r Timed,
    /// How long each plan took that began, and whether it ended.
    spent: Mutex<Vec<(Duration, bool)>>,
}

impl Racing<'_> {
    /// Checks a plan before its turn; none where that is not wanted any more.
    fn checked(&self, index: usize) -> Option<Result<(Derived, Outputs)>> {
        let derived = self.pairs[index].1;
        let is_wanted = !self.trying.progress.is_stopped() && !self.trying.memory.has(derived);
        is_wanted.then(|| shielded(|| check_small(self.checks, self.trying.perturbed, derived)))
    }

    /// Tries a plan; none where the search was stopped.
    fn tried(&self, race: &Race, index: usize, checked: Option<Result<(Derived, Outputs)>>) -> Option<Ended> {
        let Trying { progress, .. } = self.trying;
        if progress.is_stopped() {
            return None;
        }
        let pair = &self.pairs[index];
        let ended = |tried, course| Some(Ended { index, tried, course });
        if let Some(known) = self.trying.known(pair, self.baseline) {
            return ended(known, None);
        }
        let began = Instant::now();
        let ran = shielded(|| self.run(race, pair, checked));
        let has_ended = ran.is_ok() || !progress.is_stopped();
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.push((began.elapsed(), has_ended));
        drop(spent);
        let (result, course) = match ran {
            Ok((Raced::Ended(timed, course), outputs)) => (Ok((*timed, outputs)), course),
            Ok((Raced::Behind(behind), _)) => {
                let trial = Trial {
                    takes: None,
                    between: None,
                    plan: pair.1.as_ref().map_or(pair.0, |derived| &derived.plan).clone(),
                    outcome: race::dropped(behind),
                };
                return ended(self.trying.told((trial, None)), None);
            }
            // It was ended, whatever it says.
            Err(_) if progress.is_stopped() => return None,
            Err(error) => (Err(error), None),
        };
        ended(self.trying.done(pair, self.baseline.time_ns, result), course)
    }

    fn run(
        &self,
        race: &Race,
        pair: &Pair<'_>,
        checked: Option<Result<(Derived, Outputs)>>,
    ) -> Result<(Raced, Outputs)> {
        let Trying {
            bound,
            workload,
            perturbed,
            ..
        } = *self.trying;
        let (derived, mut outputs) =
            checked.unwrap_or_else(|| check_small(self.checks, perturbed, pair.1))?;
        let raced = self
            .simulator
            .race(bound, &derived.kernel, race.pace(&derived.plan));
        // A dropped plan has no outputs at full size to speak of.
        if !matches!(raced, Ok(Raced::Behind(_))) {
            outputs = outputs.and(self.checks.check_at_full_size(&derived.kernel)?);
        }
        let raced = raced?;
        if let Raced::Ended(timed, _) = &raced
            && let (Some(right), Some(found)) = (&self.baseline.outputs, &timed.outputs)
            && compare(workload, right, found).map_err(|error| Error::bug(error.to_string()))?
                != Outputs::Identical
        {
            outputs = Outputs::Equivalent;
        }
        Ok((raced, outputs))
    }

    /// Tries all of them, those with first times by these.
    fn all(&self, race: Race, soon: Option<&Soon>) -> Vec<Option<Ended>> {
        let pairs = self.pairs;
        let plans: Vec<&Plan> = pairs.iter().map(|(plan, _)| *plan).collect();
        let order = race.order(&plans, |index| {
            pairs[index].1.as_ref().map_or(0, Derived::operations)
        });
        let known = soon.iter().flat_map(|soon| {
            let speedup = |(index, timed): &(usize, Timed)| (*index, soon.speedup(timed));
            soon.plans.iter().map(speedup)
        });
        let order = order.after_soon(&known.collect::<Vec<_>>());
        threads::in_turn(
            &order.plans,
            race,
            |place| order.abreast(place),
            |&index| self.checked(index),
            |race, &index, checked| self.tried(race, index, checked),
            |race, _, ended| {
                if let Some(Ended {
                    tried: (trial, _),
                    course: Some(course),
                    ..
                }) = ended
                {
                    race.ended(trial, course);
                }
            },
        )
    }
}

impl Trying<'_> {
    /// In parallel, as a race, the likely plans first. Each is held against all before it but the last few, so that the number of
    /// threads changes nothing. Meanwhile `beside` runs, with the plain kernel's time in nanoseconds.
    pub(crate) fn at_once<T: Send>(
        &self,
        simulator: &dyn Simulates,
        pairs: &[Pair<'_>],
        beside: impl FnOnce(f64) -> T + Send,
    ) -> Result<(Trials, T)> {
        self.progress.begin(pairs.len() + 1);
        let mut race = self.race.clone().unwrap_or_else(Race::without_dropping);
        // A kernel that never ends fails here, and not in the timer.
        self.progress.trying(true);
        let checks = self.checks(pairs);
        self.progress.trying(false);
        let checks = match checks {
            // No plan will run that they would be for.
            Err(_) if self.progress.is_stopped() => Checks::with(
                self.subject,
                self.kernel,
                self.bench.device(),
                std::iter::empty(),
                AtFullSize::Nothing,
            )?,
            checks => checks?,
        };
        let soon = self.soon(simulator, pairs, &checks)?;
        // With first times there is an answer already.
        self.progress.trying(soon.is_some());
        let plain = simulator.race(self.bound, self.kernel, race.pace(&Plan::none()));
        self.progress.trying(false);
        let (baseline, course) = match (plain, &soon) {
            (Ok(Raced::Ended(baseline, course)), _) => (baseline, course),
            (Ok(Raced::Behind(_)), _) => return Err(Error::bug("the plain kernel was given up")),
            (Err(_), Some(soon)) if self.progress.is_stopped() => {
                (Box::new(soon.plain.clone().within_bandwidth()), None)
            }
            (Err(error), _) => return Err(error),
        };
        race.start(course.as_ref());
        let none = self.plain_trial(&baseline)?;
        let racing = Racing {
            trying: self,
            simulator,
            pairs,
            checks: &checks,
            baseline: &baseline,
            spent: Mutex::default(),
        };
        let baseline_ns = baseline.time_ns;
        self.progress.trying(true);
        // Where the time is short the plans here come first.
        let (ended, beside) = match &soon {
            Some(soon) => (racing.all(race, Some(soon)), beside(baseline_ns)),
            None => threads::both(|| racing.all(race, None), || beside(baseline_ns)),
        };
        self.progress.trying(false);
        let is_stopped = self.progress.is_stopped();
        let mut tried: Vec<Option<Tried>> = pairs.iter().map(|_| None).collect();
        for (index, first) in soon.iter().flat_map(|soon| soon.trials(pairs, baseline_ns)) {
            tried[index] = Some(first);
        }
        let mut alone = soon.as_ref().map_or(0, |soon| soon.plans.len());
        for ended in ended.into_iter().flatten() {
            alone -= usize::from(tried[ended.index].is_some());
            tried[ended.index] = Some(ended.tried);
        }
        let note = (alone > 0).then(|| {
            format!(
                "{alone} plans have a first time alone, from less of the launch than what the others' take: the intervals of \
                 their speedups allow for that."
            )
        });
        let trials: Vec<_> = tried.into_iter().flatten().collect();
        let spent = racing.spent.into_inner().unwrap_or_else(PoisonError::into_inner);
        let threads = threads::for_items(pairs.len()).max(1) as u32;
        let all: Duration = spent.iter().map(|(time, _)| *time).sum();
        let ran = spent.iter().filter(|(_, has_ended)| *has_ended).count();
        let took = Took::of(all / threads, ran);
        let tried = Trials {
            took: match &soon {
                Some(soon) if took.each.is_none() => soon.took,
                _ => took,
            },
            is_cut: is_stopped && (alone > 0 || trials.len() < pairs.len()),
            trials,
            note,
            lost: None,
            are_proposed: soon.is_some(),
            checked: Some(self.checked(Some(&checks))),
            baseline: *baseline,
            none,
        };
        Ok((tried, beside))
    }

    /// First times, where the search has a limit and what a plan's time takes is long: one plan of each family, the likely ones
    /// first, and then those like the fastest.
    fn soon(
        &self,
        simulator: &dyn Simulates,
        pairs: &[Pair<'_>],
        checks: &Checks<'_>,
    ) -> Result<Option<Soon>> {
        let is_wanted = self.progress.left().is_some() && self.race.is_some();
        let plain = match is_wanted {
            true => simulator.soon(self.bound, self.kernel)?,
            false => None,
        };
        let Some(plain) = plain else {
            return Ok(None);
        };
        self.goes_on.0.map_or(Ok(()), |goes_on| goes_on(&plain))?;
        let mut soon = Soon {
            plain,
            plans: Vec::new(),
            took: Took::of(Duration::ZERO, 0),
        };
        let began = Instant::now();
        let plans: Vec<Plan> = pairs.iter().map(|(plan, _)| (*plan).clone()).collect();
        let mut proposals = Proposals::new(&plans, self.likely);
        let is_open = |index: usize| pairs[index].1.is_ok() && !self.memory.has(pairs[index].1);
        (0..pairs.len())
            .filter(|&index| !is_open(index))
            .for_each(|index| proposals.leave_out(index));
        let mut fastest = 1.0;
        self.progress.trying(true);
        while soon.plans.len() < SOON && !self.progress.is_stopped() {
            let batch = proposals.next(SOON_AT_ONCE);
            let timed = threads::map(&batch, |&index| {
                let time = || {
                    let (derived, _) = check_small(checks, self.perturbed, pairs[index].1)?;
                    simulator.soon(self.bound, &derived.kernel)
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
        soon.took = Took {
            is_a_look: true,
            ..Took::of(began.elapsed(), soon.plans.len())
        };
        Ok(Some(soon))
    }
}
