//! Trials: a derived plan is checked, timed, compared and recorded; a failure is also a result.
//!
//! A device with its own clock, the simulator, tries plans in parallel: they race (`racing`). On a device whose clock drifts they
//! take turns (`turns`) with the plain kernel. A [`Memory`] has the trials that a log kept.
//!
//! A device that judges plans itself is asked at once. Others are asked about plans that passed their checks on the simulator.

mod memory;
mod racing;
mod turns;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::memory::Memory;
use super::interval;
use super::race::Race;
use crate::error::{Error, Fault, Result};
use crate::ir::Kernel;
use crate::prefetch::Plan;
use crate::report::{Checked, Outcome, Outputs, Trial, Violation};
use crate::tune::bench::{Bench, Judge, Timed};
use crate::tune::check::Checks;
use crate::tune::check::perturb::{Perturbed, Thoroughness};
use crate::tune::derived::Derived;
use crate::tune::progress::{GoesOn, Progress};
use crate::tune::subject::Subject;
use crate::tune::subject::workload::{Bound, Workload};

/// A requested plan, and its outcome.
pub(crate) type Pair<'a> = (&'a Plan, &'a Result<Derived>);

/// The common settings of a search's trials.
pub(crate) struct Trying<'a> {
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
    /// Asked of the plain kernel's run.
    pub goes_on: GoesOn<'a>,
    /// The criterion for abandoning plans that are certainly slower; none if every plan is timed to its end.
    pub race: Option<Race>,
}

/// A trial, and the plan's run if it has run to its end.
pub(crate) type Tried = (Trial, Option<Timed>);

/// The trials.
pub(crate) struct Trials {
    /// The plain kernel's run.
    pub baseline: Timed,
    /// The same as a trial.
    pub none: Trial,
    /// The plans that were tried, in their order, with their runs.
    pub trials: Vec<Tried>,
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
    /// How long those plans took that ran.
    pub took: Took,
}

/// As few plans say nothing of how long the others take: the first run longer, and others are dropped beside them.
const TOO_FEW: usize = 3;

/// How long a plan takes in a search, by those that ran in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Took {
    /// In seconds; none where too few ran.
    pub each: Option<f64>,
    /// Whether that is a first look: no plan ran to its end.
    pub is_a_look: bool,
}

impl Took {
    /// Of plans that took this long all together: the time of those that did not end is a part of what the others took.
    fn of(spent: Duration, ended: usize) -> Took {
        Took {
            each: (ended > TOO_FEW).then(|| spent.as_secs_f64() / ended as f64),
            is_a_look: false,
        }
    }
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
            at_full_size: self.bench.judge().and_then(Judge::at_full_size),
        }
    }

    fn plain_trial(&self, baseline: &Timed) -> Result<Trial> {
        self.goes_on.0.map_or(Ok(()), |goes_on| goes_on(baseline))?;
        let ran = Ok((baseline.clone(), Outputs::Identical));
        let none = trial(Plan::none(), baseline.time_ns, ran).0;
        self.progress.done(&none);
        Ok(none)
    }

    /// A trial of a plan as completed, told to who follows the search.
    fn done(&self, (plan, derived): &Pair<'_>, baseline_ns: f64, result: Result<(Timed, Outputs)>) -> Tried {
        self.told(match derived {
            Ok(derived) => trial(derived.plan.clone(), baseline_ns, result),
            Err(error) => not_derived((*plan).clone(), error),
        })
    }

    fn told(&self, tried: Tried) -> Tried {
        self.progress.done(&tried.0);
        self.memory.keep(&tried);
        tried
    }

    fn known(&self, pair: &Pair<'_>, baseline: &Timed) -> Option<Tried> {
        let known = self
            .memory
            .known(pair.1, baseline, self.bench.simulator().is_some())?;
        if known.0.dropped().is_some() && self.race.is_none() {
            return None;
        }
        self.progress.known(&known.0);
        Some(known)
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

/// A kernel that passed its checks and computes something else at full size is a bug of ours.
fn wrong_output(error: Error) -> Error {
    match error.fault() {
        Fault::Input => Error::bug(error.unblamed()).caused_by(&error),
        _ => error,
    }
}

fn trial(plan: Plan, baseline_ns: f64, result: Result<(Timed, Outputs)>) -> Tried {
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
fn not_derived(plan: Plan, error: &Error) -> Tried {
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

    #[test]
    fn how_long_plans_take_follows_from_those_that_ran() {
        let took = |ended| Took::of(Duration::from_secs(6), ended).each;
        assert_eq!((took(0), took(3), took(4)), (None, None, Some(1.5)));
    }
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
