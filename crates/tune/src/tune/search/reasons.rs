//! The reasons for a verdict, in sentences with numbers.

use std::num::NonZeroU32;

use crate::evidence::Evidence;
use crate::prefetch::plan::{Plan, Unroll};
use crate::report::number::{duration, percent, speedup};
use crate::report::run::{bandwidth, filling, flying, sentence};
use crate::report::{Elsewhere, PlainBest, Trial, Verdict};
use crate::tune::search::choose::may_lose;
use crate::tune::search::interval::Kind;

/// The findings that need reasons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Findings<'a> {
    /// The verdict.
    pub verdict: Verdict,
    /// The chosen plan and its speedup.
    pub best: (&'a Plan, f64),
    /// The least speedup at which a plan is recommended.
    pub threshold: f64,
    /// Every plan that was tried.
    pub trials: &'a [Trial],
    /// The plain kernel at the geometry where it does the same work fastest.
    pub plain_best: Option<&'a PlainBest>,
    /// The fastest plan there.
    pub best_elsewhere: Option<&'a Elsewhere>,
    /// Whether the work can be split over more work-groups without changing the results.
    pub may_be_split: bool,
}

/// The reasons for the verdict: first how full the device is and the effect of more work-groups, then whether it waits for
/// memory, then the effect of the plans.
pub(crate) fn reasons(evidence: &Evidence, findings: &Findings<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.extend(fill(evidence, findings));
    reasons.extend(match findings.verdict {
        Verdict::Prefetch => distance(findings.best.0, findings.trials),
        Verdict::Unroll => iterations(findings.best.0, findings.trials),
        _ => None,
    });
    reasons.extend(waiting(evidence));
    reasons.extend(in_flight(evidence, findings));
    reasons.extend(cheaper(findings));
    reasons.extend(choice(evidence, findings));
    reasons.extend(hints(findings));
    reasons
}

/// How full the device is, and the effect of more work-groups.
fn fill(evidence: &Evidence, findings: &Findings<'_>) -> Option<String> {
    let filling = filling(evidence)?;
    Some(match findings.plain_best {
        Some(other) if evidence.is_starved() && other.geometry.groups > evidence.groups => {
            format!("{filling} {}", more_groups(other, findings))
        }
        Some(other) if other.speedup >= findings.threshold => {
            format!("{filling} {}.", sentence(&same_work(other, findings)))
        }
        _ => filling,
    })
}

/// The same work in another geometry, and its time.
fn same_work(other: &PlainBest, findings: &Findings<'_>) -> String {
    let with_plan = findings.best_elsewhere.map_or(String::new(), |planned| {
        format!(", and {} of it with `{}`", speedup(planned.speedup), planned.plan)
    });
    format!(
        "the plain kernel does the same work as {} in {}, {} the speed{with_plan}",
        other.geometry,
        duration(other.time_ns),
        speedup(other.speedup)
    )
}

fn more_groups(other: &PlainBest, findings: &Findings<'_>) -> String {
    let number = same_work(other, findings);
    let how = if findings.may_be_split {
        ""
    } else {
        ", if the caller can combine their results"
    };
    let reached = findings
        .best_elsewhere
        .map_or(other.speedup, |planned| planned.speedup);
    if reached >= findings.best.1 {
        format!("More of them would be faster still{how}: {number}.")
    } else if reached >= findings.threshold {
        format!("More of them would do better than the plain kernel does here{how}: {number}.")
    } else {
        format!("More of them alone would not help: {number}.")
    }
}

/// Whether the kernel waits for memory, and whether memory has bandwidth to spare.
fn waiting(evidence: &Evidence) -> Option<String> {
    let waiting = evidence.waiting_for_loads.map(|share| {
        format!(
            "Sub-groups spend {} of their time waiting for loads from global memory",
            percent(share)
        )
    });
    match (waiting, bandwidth(evidence)) {
        (Some(waiting), Some(bandwidth)) => Some(format!("{waiting}, and {bandwidth}.")),
        (Some(waiting), None) => Some(format!("{waiting}.")),
        (None, Some(bandwidth)) => Some(format!("{}.", sentence(&bandwidth))),
        (None, None) => None,
    }
}

/// The bytes in flight against those that would saturate memory.
fn in_flight(evidence: &Evidence, findings: &Findings<'_>) -> Option<String> {
    let (in_flight, needed) = evidence.in_flight()?;
    if findings.verdict == Verdict::LeaveIt && in_flight < 0.5 * needed && !evidence.is_starved() {
        // Neither full nor helped by more in flight: something else limits it, and this number would mislead.
        return None;
    }
    Some(flying(in_flight, needed))
}

/// The gains of more registers and of unrolling alone, if something dearer is chosen.
fn cheaper(findings: &Findings<'_>) -> Vec<String> {
    let registers = |plan: &Plan| Verdict::of(plan) == Verdict::MoreRegisters;
    let unrolling = |plan: &Plan| Verdict::of(plan) == Verdict::Unroll;
    let is_dearer = matches!(findings.verdict, Verdict::Unroll | Verdict::Prefetch);
    let registers = fastest(findings, registers)
        .filter(|_| is_dearer)
        .map(|(plan, factor)| format!("More registers alone reach {factor}, with `{plan}`."));
    let unrolling = fastest(findings, unrolling)
        .filter(|_| findings.verdict == Verdict::Prefetch)
        .map(|(plan, factor)| format!("Unrolling alone reaches {factor}, with `{plan}`."));
    registers.into_iter().chain(unrolling).collect()
}

/// The effect of the chosen plan, or why none is chosen.
fn choice(evidence: &Evidence, findings: &Findings<'_>) -> Option<String> {
    let (plan, factor) = findings.best;
    let within = if evidence.is_starved() {
        "In this geometry"
    } else {
        "Here"
    };
    match findings.verdict {
        Verdict::Prefetch => None,
        Verdict::MoreRegisters => Some(format!(
            "{within} more registers are the answer: {} with `{plan}`, which only tells the compiler how many it may use; {}.",
            speedup(factor),
            over_cheaper(findings)
        )),
        Verdict::Unroll => Some(format!(
            "{within} unrolling is the answer: {} with `{plan}`; {}.",
            speedup(factor),
            over_cheaper(findings)
        )),
        Verdict::MoreWorkGroups | Verdict::OtherWorkGroups => {
            Some(match fastest(findings, |plan| !plan.is_none()) {
                Some((plan, factor)) => {
                    format!("In this geometry the fastest plan, `{plan}`, reaches {factor}.")
                }
                None => "In this geometry no plan was timed.".to_owned(),
            })
        }
        Verdict::LeaveIt | Verdict::LaunchSettings | Verdict::Undecided => {
            let (plan, factor) = fastest(findings, |plan| !plan.is_none())?;
            let unsure = unsure(findings, plan, findings.threshold).map_or(String::new(), |low| {
                let low = speedup(low);
                let half = match (findings.verdict, &factor) {
                    // Not in doubt, since that is too little.
                    (Verdict::LeaveIt, Reached::Exactly(reached)) => {
                        format!(", in half of them under {}", speedup(Kind::of(plan).expected(*reached)))
                    }
                    _ => String::new(),
                };
                format!(", if it is not slower than the plain kernel: in one of twenty cases this one is under {low}{half}")
            });
            let (factor, threshold) = (factor.to_string(), speedup(findings.threshold));
            // What rounds to the threshold is below it all the same.
            let below = if factor == threshold && unsure.is_empty() {
                "just less than "
            } else {
                ""
            };
            Some(format!(
                "The fastest plan, `{plan}`, reaches {below}{factor}; a change is worth it from {threshold} on{unsure}.",
            ))
        }
    }
}

/// The gain of prefetching if something cheaper is chosen: only of the plans tried.
fn over_cheaper(findings: &Findings<'_>) -> String {
    let prefetches = |plan: &Plan| !plan.loads().is_empty();
    let was_tried = findings.trials.iter().any(|trial| prefetches(&trial.plan));
    match (fastest(findings, prefetches), was_tried) {
        (Some((plan, factor)), _) if unsure(findings, plan, findings.best.1).is_some() => format!(
            "prefetching may be slower than the plain kernel, though it is expected to reach {factor} with `{plan}`"
        ),
        (Some((plan, factor)), _) => format!(
            "prefetching gains less than {} over it: {factor} with `{plan}`",
            percent(findings.threshold - 1.0)
        ),
        (None, true) => "no prefetching plan that was tried could be timed".to_owned(),
        (None, false) => "no prefetching plan was tried here".to_owned(),
    }
}

/// The low end of a plan's speedup, where that is expected to be over this and the plan may lose.
fn unsure(findings: &Findings<'_>, plan: &Plan, over: f64) -> Option<f64> {
    let trial = findings.trials.iter().find(|trial| trial.plan == *plan)?;
    let (low, _) = trial.between.filter(|(low, _)| may_lose(*low))?;
    trial
        .measured()
        .filter(|(_, factor)| *factor >= over)
        .map(|_| low)
}

/// Why the first load of a plan is fetched this far ahead: what half and twice the distance reach with the same strategies.
fn distance(plan: &Plan, trials: &[Trial]) -> Option<String> {
    let (load, strategy) = plan.loads().first()?;
    let here = strategy.distance().get();
    let alike = |trial: &&Trial, there: u32| {
        let (own, other) = (plan.loads(), trial.plan.loads());
        let same = own.len() == other.len()
            && own.iter().zip(other).all(|((load, one), (name, other))| {
                load == name && one.at_distance(other.distance()) == *other
            });
        let grouped = |plan: &Plan| (plan.inner(), plan.unroll());
        same && grouped(plan) == grouped(&trial.plan) && other[0].1.distance().get() == there
    };
    let others = half_and_twice(here, trials, alike)?;
    let plural = if here == 1 { "" } else { "s" };
    Some(format!(
        "Why `{load}` is fetched {here} iteration{plural} ahead: {others}."
    ))
}

/// Why a loop runs this many iterations at a time: what half and twice as many reach.
fn iterations(plan: &Plan, trials: &[Trial]) -> Option<String> {
    let Some(Unroll::By(here)) = plan.unroll() else {
        return None;
    };
    let alike = |trial: &&Trial, there: u32| {
        let unroll = NonZeroU32::new(there).map(Unroll::By);
        trial.plan.loads().is_empty() && (trial.plan.inner(), trial.plan.unroll()) == (plan.inner(), unroll)
    };
    let others = half_and_twice(here.get(), trials, alike)?;
    Some(format!("Why {here} iterations at a time: {others}."))
}

/// What trials alike with half and twice a number reach; none where neither was tried. Several may be alike: the fastest counts.
fn half_and_twice(here: u32, trials: &[Trial], alike: impl Fn(&&Trial, u32) -> bool) -> Option<String> {
    let reached = |there: u32| {
        let tried = || trials.iter().filter(|trial| alike(trial, there));
        let timed = tried().filter_map(Trial::measured).map(|(_, factor)| factor);
        let dropped = tried().filter_map(Trial::dropped).map(|(_, factor)| factor);
        let timed = timed.reduce(f64::max).map(Reached::Exactly);
        match timed.or_else(|| dropped.reduce(f64::max).map(Reached::AtMost)) {
            Some(factor) => (true, format!("{there} reach {factor}")),
            None if tried().next().is_some() => (true, format!("{there} are refused")),
            None => (false, format!("{there} were not tried")),
        }
    };
    let others = [here.is_multiple_of(2).then_some(here / 2), here.checked_mul(2)];
    let (known, others): (Vec<bool>, Vec<String>) = others.into_iter().flatten().map(reached).unzip();
    known.contains(&true).then(|| others.join(", and "))
}

/// The effect of cache hints if they slow the kernel down: people try them first.
fn hints(findings: &Findings<'_>) -> Option<String> {
    let is_hint = |plan: &Plan| {
        let loads = plan.loads();
        plan.unroll().is_none() && loads.first().is_some_and(|(_, strategy)| strategy.is_hint())
    };
    let (plan, factor) = fastest(findings, is_hint)?;
    let (Reached::Exactly(most) | Reached::AtMost(most)) = factor;
    (most < 2.0 - findings.threshold)
        .then(|| format!("Cache hints would slow it down: the best, `{plan}`, runs at {factor}."))
}

/// How fast a plan is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reached {
    Exactly(f64),
    /// It was dropped on the way.
    AtMost(f64),
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reached::Exactly(factor) => write!(f, "{}", speedup(*factor)),
            Reached::AtMost(factor) => write!(f, "at most {}", speedup(*factor)),
        }
    }
}

/// The fastest of the timed plans or, if all of them were dropped, the one with the best bound.
fn fastest<'a>(findings: &Findings<'a>, accept: impl Fn(&Plan) -> bool) -> Option<(&'a Plan, Reached)> {
    let tried = || findings.trials.iter().filter(|trial| accept(&trial.plan));
    let ended = tried().filter_map(|trial| Some((&trial.plan, trial.measured()?.1)));
    let dropped = tried().filter_map(|trial| Some((&trial.plan, trial.dropped()?.1)));
    let most = |(_, one): &(&Plan, f64), (_, other): &(&Plan, f64)| one.total_cmp(other);
    let exactly = |(plan, factor)| (plan, Reached::Exactly(factor));
    let at_most = |(plan, factor)| (plan, Reached::AtMost(factor));
    ended
        .max_by(most)
        .map(exactly)
        .or_else(|| dropped.max_by(most).map(at_most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Geometry, Outcome, Outputs};
    use headstart_report::samples::starved;

    fn trial(plan: &str, speedup: f64) -> Trial {
        let outcome = Outcome::Ok {
            time_ns: 1000.0 / speedup,
            speedup,
            outputs: Outputs::Identical,
        };
        Trial {
            takes: None,
            between: None,
            plan: plan.parse().expect("a plan"),
            outcome,
        }
    }

    fn plain_best(speedup: f64) -> PlainBest {
        let geometry = Geometry {
            groups: 2112,
            group: 128,
        };
        PlainBest {
            geometry,
            parameters: Vec::new(),
            time_ns: 423_000.0,
            speedup,
            between: None,
        }
    }

    #[test]
    fn a_starved_kernel_is_told_of_more_work_groups_first() {
        let trials = [
            trial("none", 1.0),
            trial("unroll:16", 1.36),
            trial(
                "unroll:8,values=rolling-async:16,indices=rolling-registers:24",
                2.99,
            ),
            trial("values=cache:L2:16", 0.75),
            trial(
                "unroll:8,values=rolling-async:8,indices=rolling-registers:16",
                2.61,
            ),
            Trial {
                outcome: Outcome::Dropped {
                    after: 0.2,
                    at_most: 2.4,
                },
                ..trial(
                    "unroll:8,values=rolling-async:32,indices=rolling-registers:40",
                    1.0,
                )
            },
        ];
        let other = plain_best(3.01);
        let findings = Findings {
            verdict: Verdict::Prefetch,
            best: (&trials[2].plan, 2.99),
            threshold: 1.03,
            trials: &trials,
            plain_best: Some(&other),
            best_elsewhere: None,
            may_be_split: false,
        };
        let reasons = reasons(&starved(), &findings);
        let expected = [
            "starved of work-groups: with 132 work-groups of 128 work-items only 4 of 64 sub-groups are resident on each \
             core (6.2 % occupancy), where 64 would fit. More of them would be faster still, if the caller can combine their results: the plain kernel does the same work as 2,112 work-groups of 128 work-items in 423 µs, 3.01×",
            "Why `values` is fetched 16 iterations ahead: 8 reach 2.61×, and 32 reach at most 2.40×.",
            "83 % of their time waiting for loads from global memory, and device memory delivers 489 of 4,540 GB/s (11 %)",
            "159 kB are in flight from or to device memory; saturating it needs 1.47 MB in flight",
            "Unrolling alone reaches 1.36×, with `unroll:16`.",
            "Cache hints would slow it down: the best, `values=cache:L2:16`, runs at 0.75×.",
        ];
        for (reason, expected) in reasons.iter().zip(expected) {
            assert!(reason.contains(expected), "{expected}\n{reason}");
        }
        assert_eq!(reasons.len(), expected.len());
    }

    #[test]
    fn a_number_of_iterations_is_compared_with_what_was_tried() {
        let plan = |text: &str| text.parse::<Plan>().expect("a plan");
        let trials = [trial("unroll:4", 1.2), trial("unroll:8", 1.5)];
        let why = iterations(&plan("unroll:8"), &trials);
        assert_eq!(
            why.as_deref(),
            Some("Why 8 iterations at a time: 4 reach 1.20×, and 16 were not tried.")
        );
        // Where neither was tried there is nothing to say.
        assert_eq!(iterations(&plan("unroll:32"), &trials), None);
        assert_eq!(distance(&plan("values=rolling-async:4"), &trials), None);
    }

    #[test]
    fn a_full_device_is_left_alone() {
        let trials = [
            trial("none", 1.0),
            trial("unroll:8", 1.01),
            trial("values=cache:L2:4", 0.56),
        ];
        let findings = Findings {
            verdict: Verdict::LeaveIt,
            best: (&trials[0].plan, 1.0),
            threshold: 1.03,
            trials: &trials,
            plain_best: None,
            best_elsewhere: None,
            may_be_split: false,
        };
        let evidence = Evidence {
            groups: 132 * 16,
            ..starved()
        };
        let text = reasons(&evidence, &findings).join("\n");
        assert!(
            text.contains("64 of 64 sub-groups are resident on each core (100 % occupancy)"),
            "{text}"
        );
        assert!(
            text.contains("The fastest plan, `unroll:8`, reaches 1.01×; a change is worth it from 1.03×"),
            "{text}"
        );
        assert!(text.contains("runs at 0.56×"), "{text}");
        let near = [trial("none", 1.0), trial("unroll:8", 1.0299)];
        let findings = Findings {
            trials: &near,
            ..findings
        };
        let text = reasons(&evidence, &findings).join("\n");
        assert!(
            text.contains("reaches just less than 1.03×; a change is worth it from 1.03×"),
            "{text}"
        );
    }

    #[test]
    fn a_device_that_tells_nothing_leaves_the_plans_numbers() {
        let evidence = Evidence {
            fits: None,
            memory_bytes: None,
            bandwidth: None,
            scattered_bandwidth: None,
            bytes_in_flight: None,
            latency_ns: None,
            waiting_for_loads: None,
            issued: None,
            ..starved()
        };
        let trials = [trial("none", 1.0), trial("unroll:8", 1.5)];
        let findings = Findings {
            verdict: Verdict::Unroll,
            best: (&trials[1].plan, 1.5),
            threshold: 1.03,
            trials: &trials,
            plain_best: None,
            best_elsewhere: None,
            may_be_split: false,
        };
        let reasons = reasons(&evidence, &findings);
        assert_eq!(
            reasons,
            ["Here unrolling is the answer: 1.50× with `unroll:8`; no prefetching plan was tried here."]
        );
    }
}
