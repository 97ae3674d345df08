//! The choice between the plans that ran, the cheapest answer first.

use crate::prefetch::Plan;
use crate::report::{Best, Elsewhere, Geometry, LaunchSettings, PlainBest, THRESHOLD, Trial, Verdict};

/// What differs by less is as fast: GPUs repeat themselves to about 1 %.
const AS_FAST: f64 = 1.01;

/// The verdict and the plan to use.
///
/// The answers from cheap to dear are: leave it, other work-groups (only where the work can be split), more registers,
/// unrolling, prefetching, and a plan with more work-groups. One that may lose by the interval of its speedup is no
/// answer. A dearer one is taken where it is at least [`THRESHOLD`] times as fast
/// as the one before it. Among the plans of one kind the fastest is taken, and of equally fast ones the one that was tried
/// first. A plan of another geometry is no plan for this one: the best plan is then `none`.
///
/// Whether the work can be split depends on the use of its results. Unless the subject states that it can, more work-groups are
/// listed with their time and this condition, and are not chosen, however cheap they are. That holds for every verdict: from
/// tried plans, from a profiler's numbers alone, and on the page.
pub fn choose(
    (geometry, baseline_ns): (Geometry, f64),
    trials: &[Trial],
    plain_best: Option<&PlainBest>,
    best_elsewhere: Option<&Elsewhere>,
    may_be_split: bool,
) -> (Verdict, Best) {
    let mut verdict = Verdict::LeaveIt;
    let as_it_is = Best {
        plan: Plan::none(),
        way: LaunchSettings::default(),
        time_ns: baseline_ns,
        speedup: 1.0,
        between: None,
    };
    let mut best = as_it_is.clone();
    let mut to_beat = 1.0;
    if let Some(other) =
        plain_best.filter(|other| may_be_split && other.speedup >= THRESHOLD && is_sure(other.between))
    {
        verdict = Verdict::in_groups(geometry.groups, other.geometry.groups);
        to_beat = other.speedup;
    }
    for kind in [Verdict::MoreRegisters, Verdict::Unroll, Verdict::Prefetch] {
        let mut fastest: Option<Best> = None;
        for trial in trials.iter().filter(|trial| Verdict::of(&trial.plan) == kind) {
            let Some((time_ns, speedup)) = trial.measured().filter(|_| is_sure(trial.between)) else {
                continue;
            };
            if fastest.as_ref().is_none_or(|fastest| speedup > fastest.speedup) {
                fastest = Some(Best {
                    plan: trial.plan.clone(),
                    way: LaunchSettings::default(),
                    time_ns,
                    speedup,
                    between: trial.between,
                });
            }
        }
        let fastest = fastest.map(|fastest| without_idle_registers(fastest, trials));
        if let Some(fastest) = fastest.filter(|fastest| fastest.speedup >= to_beat * THRESHOLD) {
            to_beat = fastest.speedup;
            verdict = kind;
            best = fastest;
        }
    }
    let elsewhere = best_elsewhere
        .filter(|other| may_be_split && other.speedup >= to_beat * THRESHOLD && is_sure(other.between));
    if let Some(other) = elsewhere {
        return (
            Verdict::in_groups(geometry.groups, other.geometry.groups),
            as_it_is,
        );
    }
    (verdict, best)
}

/// Whether the low end of a speedup's interval is slower than the plain kernel by more than a change is worth. (If plans had to have
/// a low end of 1.0, eleven of the 118 launches of the accuracy pages would have no plan. Their plans measure 0.998 to 1.03×; the
/// best plans of these launches reach 1.05×.)
pub(super) fn may_lose(low: f64) -> bool {
    low < 1.0 / THRESHOLD
}

/// Whether a speedup may be recommended by its interval. One without an interval is taken at its word.
fn is_sure(between: Option<(f64, f64)>) -> bool {
    between.is_none_or(|(low, _)| !may_lose(low))
}

/// How much of the space of plans a search has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Whether there is no plan for the kernel.
    pub is_empty: bool,
    /// Plans that were not tried.
    pub left: usize,
    /// Whether some plans tell what the others may gain: those that are likely to help, and one of each other kind.
    pub has_telling: bool,
    /// Those of them that were not tried.
    pub telling_left: usize,
    /// The speedup that no plan passes, by the plain kernel's run.
    pub at_most: Option<f64>,
}

impl Seen {
    /// The verdict, if what was run supports it. Where no plan wins, that takes all plans, or all those that tell of the others,
    /// or a limit of the device that leaves nothing to gain.
    pub(crate) fn supported(&self, verdict: Verdict, trials: &[Trial]) -> Verdict {
        let plans = trials.iter().filter(|trial| !trial.plan.is_none());
        let was_timed = plans
            .into_iter()
            .any(|trial| trial.measured().is_some() || trial.dropped().is_some());
        let is_tried = self.left == 0 || self.has_telling && self.telling_left == 0;
        let holds =
            self.is_empty || was_timed && is_tried || self.at_most.is_some_and(|at_most| at_most < THRESHOLD);
        match verdict {
            Verdict::LeaveIt if !holds => Verdict::Undecided,
            _ => verdict,
        }
    }
}

/// The same plan without a number of registers, where that is as fast: a module that says the number may not be launched with
/// work-groups as large as before.
fn without_idle_registers(best: Best, trials: &[Trial]) -> Best {
    let (Some(_), false) = (best.plan.registers(), best.plan.leaves_code()) else {
        return best;
    };
    let plan = best.plan.clone().with_registers(None);
    let twin = trials.iter().find(|trial| trial.plan == plan);
    match twin.and_then(|twin| Some((twin.measured()?, twin.between))) {
        Some(((time_ns, speedup), between)) if speedup * AS_FAST >= best.speedup && is_sure(between) => {
            Best {
                plan,
                time_ns,
                speedup,
                between,
                ..best
            }
        }
        _ => best,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Geometry, Outcome, Outputs};

    /// One work-group, where the other geometry has two.
    const ONE: Geometry = Geometry {
        groups: 1,
        group: 128,
    };
    /// And four.
    const FOUR: Geometry = Geometry { groups: 4, group: 32 };

    fn timed(speedup: f64) -> Outcome {
        Outcome::Ok {
            time_ns: 1000.0 / speedup,
            speedup,
            outputs: Outputs::Identical,
        }
    }

    fn chosen(speedups: &[(&str, f64)], more_groups: f64, may_be_split: bool) -> (Verdict, String) {
        let trial = |&(plan, speedup): &(&str, f64)| Trial {
            takes: None,
            between: None,
            plan: plan.parse().expect("a plan"),
            outcome: timed(speedup),
        };
        let trials: Vec<Trial> = speedups.iter().map(trial).collect();
        let plain_best = PlainBest {
            geometry: Geometry { groups: 2, group: 64 },
            parameters: Vec::new(),
            time_ns: 1000.0 / more_groups,
            speedup: more_groups,
            between: None,
        };
        let (verdict, best) = choose((ONE, 1000.0), &trials, Some(&plain_best), None, may_be_split);
        (verdict, best.plan.to_string())
    }

    #[test]
    fn the_cheaper_answer_wins_within_the_threshold() {
        let (ring, none) = ("v=rolling-registers:4", "none".to_owned());
        assert_eq!(
            chosen(&[("none", 1.0), ("unroll:4", 1.02), (ring, 1.02)], 1.0, false),
            (Verdict::LeaveIt, none.clone())
        );
        let both = [("unroll:4", 1.50), (ring, 1.52)];
        assert_eq!(chosen(&both, 1.0, false), (Verdict::Unroll, "unroll:4".into()));
        let better = [("unroll:4", 1.50), (ring, 1.60)];
        assert_eq!(chosen(&better, 1.0, false), (Verdict::Prefetch, ring.into()));
        let directive = [
            ("registers:128", 1.48),
            ("unroll:4,registers:128", 1.50),
            (ring, 1.51),
        ];
        assert_eq!(
            chosen(&directive, 1.0, false),
            (Verdict::MoreRegisters, "registers:128".into())
        );
        // Registers that gain nothing are not asked for.
        let unrolled = "unroll:4,registers:128";
        let idle = [("unroll:4", 1.50), (unrolled, 1.51)];
        assert_eq!(chosen(&idle, 1.0, false), (Verdict::Unroll, "unroll:4".into()));
        let used = [("unroll:4", 1.50), (unrolled, 1.60)];
        assert_eq!(chosen(&used, 1.0, false), (Verdict::Unroll, unrolled.into()));
        assert_eq!(chosen(&better, 1.59, true), (Verdict::MoreWorkGroups, none));
        assert_eq!(chosen(&better, 1.59, false), (Verdict::Prefetch, ring.into()));
        assert_eq!(chosen(&better, 1.50, true), (Verdict::Prefetch, ring.into()));
    }

    #[test]
    fn no_plan_is_worth_it_only_where_something_says_so() {
        let none = [Trial {
            takes: None,
            between: None,
            plan: Plan::none(),
            outcome: timed(1.0),
        }];
        let slow = [Trial {
            takes: None,
            between: None,
            plan: "unroll:4".parse().expect("a plan"),
            outcome: timed(0.9),
        }];
        let seen = Seen {
            is_empty: false,
            left: 131,
            has_telling: true,
            telling_left: 24,
            at_most: Some(5.03),
        };
        let says = |seen: Seen, trials: &[Trial]| seen.supported(Verdict::LeaveIt, trials);
        assert_eq!(says(seen, &none), Verdict::Undecided);
        assert_eq!(seen.supported(Verdict::Unroll, &none), Verdict::Unroll);
        // One of many says nothing of the others; the likely ones do.
        assert_eq!(says(Seen { left: 130, ..seen }, &slow), Verdict::Undecided);
        let likely = Seen {
            left: 107,
            telling_left: 0,
            ..seen
        };
        assert_eq!(says(likely, &slow), Verdict::LeaveIt);
        assert_eq!(says(likely, &none), Verdict::Undecided);
        let others = Seen {
            has_telling: false,
            ..likely
        };
        assert_eq!(says(others, &slow), Verdict::Undecided);
        let full = Seen {
            at_most: Some(1.02),
            ..seen
        };
        assert_eq!(says(full, &none), Verdict::LeaveIt);
        let no_plans = Seen {
            is_empty: true,
            ..seen
        };
        assert_eq!(says(no_plans, &none), Verdict::LeaveIt);
    }

    #[test]
    fn a_plan_in_another_geometry_counts_where_the_work_can_be_split() {
        let trials = [Trial {
            takes: None,
            between: None,
            plan: "v=rolling-registers:4".parse().expect("a plan"),
            outcome: timed(2.0),
        }];
        let elsewhere = |speedup: f64| Elsewhere {
            geometry: Geometry { groups: 2, group: 64 },
            parameters: Vec::new(),
            plan: "unroll:4".parse().expect("a plan"),
            time_ns: 1000.0 / speedup,
            perturbed: None,
            speedup,
            between: None,
        };
        let verdict = |speedup, may_be_split| {
            choose(
                (ONE, 1000.0),
                &trials,
                None,
                Some(&elsewhere(speedup)),
                may_be_split,
            )
            .0
        };
        assert_eq!(verdict(2.5, true), Verdict::MoreWorkGroups);
        assert_eq!(verdict(2.5, false), Verdict::Prefetch);
        let fewer = choose((FOUR, 1000.0), &trials, None, Some(&elsewhere(2.5)), true).0;
        assert_eq!(fewer, Verdict::OtherWorkGroups);
        assert_eq!(verdict(2.02, true), Verdict::Prefetch);
    }

    #[test]
    fn a_plan_that_may_be_slower_by_more_than_it_is_worth_is_not_chosen() {
        let trial = |plan: &str, speedup: f64, low: f64| Trial {
            takes: None,
            between: Some((low, speedup * 1.1)),
            plan: plan.parse().expect("a plan"),
            outcome: timed(speedup),
        };
        let trials = [
            trial("unroll:4", 1.2, 1.05),
            trial("v=rolling-async:4", 1.5, 0.96),
        ];
        let (verdict, best) = choose((ONE, 1000.0), &trials, None, None, false);
        assert_eq!((verdict, best.between), (Verdict::Unroll, trials[0].between));
        let (verdict, best) = choose((ONE, 1000.0), &trials[1..], None, None, false);
        assert_eq!((verdict, best.plan.is_none()), (Verdict::LeaveIt, true));
        let nearly = [trial("v=rolling-async:4", 1.05, 0.98)];
        assert_eq!(
            choose((ONE, 1000.0), &nearly, None, None, false).0,
            Verdict::Prefetch
        );
    }

    #[test]
    fn of_equally_fast_plans_the_first_is_taken() {
        let equal = [("v=rolling-registers:2", 2.0), ("v=rolling-registers:4", 2.0)];
        assert_eq!(
            chosen(&equal, 1.0, false),
            (Verdict::Prefetch, "v=rolling-registers:2".into())
        );
    }
}
