//! A search whose trials have ended: what was tried, and what is open.

use std::collections::{BTreeSet, HashSet};

use super::{PlainElsewhere, Tried, Understood};
use crate::error::{Error, Result};
use crate::evidence::{Bounds, LoopLoad, loop_loads};
use crate::prefetch::Plan;
use crate::report::{Checked, Partial, Trial};
use crate::tune::bench::{Spread, Timed};
use crate::tune::check::perturb::Perturbed;
use crate::tune::derived::Derived;
use crate::tune::search::choose::Seen;
use crate::tune::search::race;
use crate::tune::search::space::Space;
use crate::tune::search::trying::{Pair, Trials};

/// What is known when the trials have ended.
pub(super) struct Ended<'e> {
    plans: &'e [Plan],
    likely: &'e [Plan],
    /// What became of each plan, in their order.
    pub derived: Vec<Result<Derived>>,
    /// The plain kernel's run.
    pub baseline: Timed,
    /// The plain kernel's trial, and those of the plans that were tried, in their order.
    pub trials: Vec<Trial>,
    /// The runs of those plans.
    pub runs: Vec<Option<Timed>>,
    pub loads: Vec<LoopLoad>,
    /// The plans that tell what others may gain, by number.
    telling: Vec<usize>,
    /// The kinds of plans of which none has run.
    open_kinds: BTreeSet<&'static str>,
    /// What is missing, where not all was tried that would have been.
    pub partial: Option<Partial>,
    /// The launches that plans are checked on.
    pub perturbed: Option<Perturbed>,
    /// How the plans were checked.
    pub checked: Option<Checked>,
    pub are_proposed: bool,
    /// The plain kernel elsewhere, if it was timed.
    pub beside: Option<Result<PlainElsewhere>>,
    /// A note about the trials.
    pub note: Option<String>,
    pub remarks: Vec<String>,
}

impl<'e> Ended<'e> {
    /// # Errors
    /// All of the plans were refused: why the first was.
    pub(crate) fn of(launch: &Understood, space: &'e Space, tried: Tried) -> Result<Ended<'e>> {
        let Tried {
            trials,
            derived,
            perturbed,
            beside,
            remarks,
        } = tried;
        let Trials {
            baseline,
            none,
            trials: tried,
            note,
            lost,
            is_cut,
            are_proposed,
            checked,
            took,
        } = trials;
        // Of plans that no time was left for nothing is known.
        if let Some(refusal) = everything_refused(&tried, &derived).filter(|_| !is_cut) {
            return Err(refusal);
        }
        let (trials, runs): (Vec<Trial>, Vec<Option<Timed>>) = tried.into_iter().unzip();
        let asked: Vec<&Plan> = space.plans.iter().collect();
        let mut ended = Ended {
            plans: &space.plans,
            likely: &space.likely,
            derived,
            baseline,
            trials: std::iter::once(none).chain(trials).collect(),
            runs,
            loads: loop_loads(&launch.kernel),
            telling: race::telling(&asked, &space.likely),
            open_kinds: BTreeSet::new(),
            partial: None,
            perturbed,
            checked,
            are_proposed,
            beside,
            note,
            remarks,
        };
        // What a plan passes is no limit: the same bytes in its time. (Of plans from a log nothing but the time is known.)
        let times = ended.trials.iter().filter_map(Trial::measured);
        let least = times.fold(ended.baseline.time_ns, |least, (time_ns, _)| least.min(time_ns));
        let evidence = &mut ended.baseline.evidence;
        let most = evidence.delivered().unwrap_or(0.0) * ended.baseline.time_ns / least;
        evidence.scattered_bandwidth = evidence.scattered_bandwidth.filter(|limit| most <= *limit);
        let has_run = |trial: &&Trial| trial.measured().or(trial.dropped()).is_some();
        let tried_kinds = kinds(ended.trials.iter().filter(has_run).map(|trial| &trial.plan));
        let left = ended.left().into_iter().map(|index| &ended.plans[index]);
        let open_kinds = &kinds(left) - &tried_kinds;
        ended.partial = (lost.is_some() || is_cut).then(|| Partial {
            tried: ended.trials.len() - 1,
            of: ended.plans.len(),
            telling_left: ended.telling_left(),
            tried_kinds: tried_kinds.iter().map(ToString::to_string).collect(),
            open_kinds: open_kinds.iter().map(ToString::to_string).collect(),
            seconds_a_plan: took.each,
            by_first_looks: took.is_a_look,
            lost: lost.map(|error| error.to_string()),
        });
        ended.open_kinds = open_kinds;
        Ok(ended)
    }

    /// The plans, each with what became of it.
    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.plans.iter().zip(&self.derived)
    }

    /// The plans that were not tried.
    fn left(&self) -> Vec<usize> {
        let tried: HashSet<&Plan> = self.trials.iter().map(|trial| &trial.plan).collect();
        let is_left = |(_, (asked, derived)): &(usize, Pair<'_>)| {
            let plan = derived.as_ref().map_or(*asked, |derived| &derived.plan);
            !tried.contains(plan)
        };
        let left = self.pairs().enumerate().filter(is_left);
        left.map(|(index, _)| index).collect()
    }

    fn telling_left(&self) -> usize {
        let left = self.left();
        left.iter().filter(|index| self.telling.contains(index)).count()
    }

    /// How much of the plans was tried. Where few are measured, one of each kind tells of the others.
    pub(crate) fn seen(&self, one_tells: bool) -> Seen {
        Seen {
            is_empty: self.plans.is_empty(),
            left: self.left().len(),
            has_telling: one_tells || self.plans.iter().any(|asked| self.likely.contains(asked)),
            telling_left: match one_tells {
                true => self.open_kinds.len(),
                false => self.telling_left(),
            },
            // What a part of a run leaves to gain says nothing of the rest.
            at_most: self
                .bounds()
                .filter(|_| self.baseline.spread != Spread::Cut)
                .map(|bounds| bounds.best_speedup),
        }
    }

    /// What the device's limits leave to gain, by what is known of the plain kernel's run.
    pub(crate) fn bounds(&self) -> Option<Bounds> {
        let baseline = &self.baseline;
        let times = self
            .trials
            .iter()
            .filter_map(Trial::measured)
            .map(|(time_ns, _)| time_ns);
        let fastest_ns = times.fold(baseline.time_ns, f64::min);
        let bounds = Bounds::of(&baseline.evidence, baseline.profile.as_ref(), &self.loads);
        bounds.map(|bounds| bounds.beside_a_plan(baseline.time_ns, fastest_ns))
    }

    /// The kernel of a plan as completed.
    pub(crate) fn of_plan(&self, plan: &Plan) -> Option<&Derived> {
        self.derived
            .iter()
            .flatten()
            .find(|derived| derived.plan == *plan)
    }
}

/// The kinds of plans: the strategies, `unroll` and `registers`.
fn kinds<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> BTreeSet<&'static str> {
    let kind = |plan: &Plan| match (plan.loads().first(), plan.leaves_code()) {
        (Some((_, strategy)), _) => strategy.name(),
        (None, true) => "registers",
        (None, false) => "unroll",
    };
    let plans = plans.into_iter().filter(|plan| !plan.is_none());
    plans.map(kind).collect()
}

/// The first refusal, where there were plans and none could be derived.
fn everything_refused(tried: &[(Trial, Option<Timed>)], derived: &[Result<Derived>]) -> Option<Error> {
    // A plan that was dropped has run.
    let has_run = |(trial, run): &(Trial, Option<Timed>)| run.is_some() || trial.dropped().is_some();
    let nothing_ran = !tried.is_empty() && !tried.iter().any(has_run);
    let refusal = derived.iter().find_map(|derived| derived.as_ref().err());
    refusal.filter(|_| nothing_ran).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outcome;

    #[test]
    fn a_search_is_refused_only_where_no_plan_has_run() {
        let refused = [Err(Error::usage("16 copies are too large"))];
        let tried = |outcome: Outcome| {
            let plan = "unroll:8".parse().expect("a plan");
            [(
                Trial {
                    plan,
                    outcome,
                    takes: None,
                    between: None,
                },
                None,
            )]
        };
        let rejected = tried(Outcome::Rejected {
            reason: "it is too large".to_owned(),
        });
        assert!(everything_refused(&rejected, &refused).is_some());
        assert!(everything_refused(&rejected, &[]).is_none());
        // All others were dropped: they are slower, and that is an answer.
        let dropped = tried(Outcome::Dropped {
            after: 0.1,
            at_most: 0.9,
        });
        assert!(everything_refused(&dropped, &refused).is_none());
    }
}
