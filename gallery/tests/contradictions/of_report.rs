//! What contradicts something else in the report of one search: verdict, plans, bounds and the sentences that give the reasons.

use headstart::device::sim::timer::WORTH;
use headstart::evidence::Evidence;
use headstart::prefetch::Plan;
use headstart::report::columns::Columns;
use headstart::report::{Report, Trial, Verdict, number, table};
use headstart::tune::interval::Kind;

/// A dearer answer must be this much faster than a cheaper one, as the documentation says.
const WORTH_IT: f64 = 1.03;
/// A bound this many times above what was reached bounds nothing.
const FAR: f64 = 3.0;

/// What contradicts something else in a report. `evidence` is that of the plain kernel's run.
pub fn contradictions(report: &Report, evidence: &Evidence) -> Vec<String> {
    let mut found = choice(report);
    found.extend(limits(report));
    found.extend(sentences(report, evidence));
    found
}

/// Verdict, best plan and trials.
fn choice(report: &Report) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, what: String| found.extend((!holds).then_some(what));
    let (verdict, best) = (report.verdict, &report.best);
    let plan = &best.plan;
    let fits = match verdict {
        Verdict::LaunchSettings => plan.is_none() && !best.way.is_usual(),
        Verdict::LeaveIt | Verdict::Undecided => plan.is_none() && best.speedup == 1.0,
        Verdict::MoreWorkGroups | Verdict::OtherWorkGroups => {
            plan.is_none() && report.plain_best_geometry.is_some()
        }
        Verdict::MoreRegisters => plan.leaves_code() && plan.registers().is_some(),
        Verdict::Unroll => plan.loads().is_empty() && plan.unroll().is_some(),
        Verdict::Prefetch => !plan.loads().is_empty(),
    };
    check(fits, format!("{verdict:?} with `{plan}`, {}", best.speedup));
    let own = report.trials.iter().find(|trial| trial.plan == *plan);
    check(
        own.and_then(Trial::measured) == Some((best.time_ns, best.speedup)),
        format!("`{plan}` is the best, and its trial is {own:?}"),
    );
    let fastest = fastest(report);
    for trial in &report.trials {
        if let (Some((_, at_most)), true) = (trial.dropped(), fastest > 1.0) {
            check(
                at_most <= fastest * WORTH * 1.001,
                format!(
                    "`{}` was dropped at {at_most}, and the fastest has {fastest}",
                    trial.plan
                ),
            );
        }
    }
    // A dearer answer is passed over only where it gains too little, or where it may lose: if nothing is chosen instead, nothing is
    // decided, unless half of such plans gain too little.
    let is_unlikely = |trial: &Trial, reached| Kind::of(&trial.plan).expected(reached) < WORTH_IT;
    let says_so = verdict != Verdict::LeaveIt;
    let may_lose = |trial: &Trial| trial.between.is_some_and(|(low, _)| low < 1.0);
    if !verdict.is_of_geometry() {
        for trial in &report.trials {
            let reached = trial.measured().map_or(1.0, |(_, factor)| factor);
            check(
                reached < best.speedup * WORTH_IT
                    || (may_lose(trial) && (says_so || is_unlikely(trial, reached))),
                format!(
                    "`{}` reached {reached}, and {} is chosen",
                    trial.plan, best.speedup
                ),
            );
        }
    }
    check(
        report.doubt.is_none() || verdict == Verdict::Undecided,
        format!("{verdict:?}, and {:?}", report.doubt),
    );
    let conclusion = report.conclusion();
    check(
        conclusion.contains("no plan is worth it") == (verdict == Verdict::LeaveIt),
        format!("{verdict:?}: {conclusion}"),
    );
    found
}

/// What no plan can pass, and what no plan may be chosen for.
fn limits(report: &Report) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, what: String| found.extend((!holds).then_some(what));
    let fastest = fastest(report);
    if let Some(bounds) = &report.bounds {
        check(
            fastest <= bounds.best_speedup * 1.001,
            format!("at most {}, and a plan with {fastest}", bounds.best_speedup),
        );
        let said = table::text(report, Columns::UNLIMITED);
        check(
            bounds.best_speedup <= FAR * anywhere(report, fastest) || !said.contains("At most about"),
            format!("at most {}, and no plan passes {fastest}", bounds.best_speedup),
        );
        for roof in &bounds.roofs {
            check(
                roof.least_ns <= report.baseline_ns / fastest * 1.001,
                format!("{} takes {} ns, and a plan less", roof.name, roof.least_ns),
            );
        }
    }
    if let Some(roofline) = &report.roofline {
        for point in &roofline.points {
            // A little more than the roof: times come from a sample, and the roof from rates.
            let memory = point.rate / point.intensity;
            check(
                !memory.is_finite() || memory <= 1.02 * roofline.bandwidth,
                format!("`{}` takes {memory} of {} GB/s", point.plan, roofline.bandwidth),
            );
        }
    }
    found
}

/// The reasons: each number beside a plan is that plan's, and nothing is said that the trials refute.
fn sentences(report: &Report, evidence: &Evidence) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, what: String| found.extend((!holds).then_some(what));
    let text = report.reasons.join("\n");
    let measured = |accept: &dyn Fn(&Plan) -> bool| {
        let trials = report.trials.iter().filter(|trial| accept(&trial.plan));
        let factors = trials.filter_map(Trial::measured).map(|(_, factor)| factor);
        factors.fold(f64::NEG_INFINITY, f64::max)
    };
    let shown = table::text(report, Columns::UNLIMITED);
    check(
        shown.contains("Simulated on a model of"),
        "how its numbers were made is not said".to_owned(),
    );
    check(
        !shown.contains("start one after the other")
            || !shown.contains("long before the others") && !shown.contains("ends with a tail"),
        "cores are empty for two reasons".to_owned(),
    );
    let roofs = report.bounds.iter().flat_map(|bounds| &bounds.roofs);
    let roofs: Vec<&str> = roofs.map(|roof| roof.name.as_str()).collect();
    check(
        !shown.contains("about the limit for scattered")
            || roofs.is_empty()
            || roofs.contains(&"bandwidth of device memory"),
        format!("device memory is at a limit that bounds nothing: {roofs:?}"),
    );
    let after = |mark: &str| {
        let (_, behind) = shown.split_once(mark)?;
        behind
            .split('×')
            .next()?
            .trim()
            .replace(',', "")
            .parse::<f64>()
            .ok()
    };
    if let Some((most, waiting)) = after("At most about ").zip(after("nothing else changed: ")) {
        check(
            waiting <= 1.01 * most,
            format!("at most {most}, and {waiting} without waiting"),
        );
    }
    for reason in &report.reasons {
        for word in reason.split('`').skip(1).step_by(2) {
            let Ok(plan) = word.parse::<Plan>() else { continue };
            let here = report.trials.iter().find(|trial| trial.plan == plan);
            let here = here.and_then(|trial| Some(trial.measured().or(trial.dropped())?.1));
            let elsewhere = report.best_elsewhere.as_ref().filter(|there| there.plan == plan);
            let factors = here.into_iter().chain(elsewhere.map(|there| there.speedup));
            check(
                factors
                    .map(number::speedup)
                    .any(|factor| reason.contains(&factor)),
                format!("the number of `{plan}` is another one: {reason}"),
            );
        }
    }
    let prefetches = |plan: &Plan| !plan.loads().is_empty();
    let tried = report.trials.iter().any(|trial| prefetches(&trial.plan));
    check(
        !text.contains("no prefetching plan was tried") || !tried,
        "prefetching plans were tried".to_owned(),
    );
    let hints = |plan: &Plan| {
        plan.unroll().is_none()
            && plan
                .loads()
                .first()
                .is_some_and(|(_, strategy)| strategy.is_hint())
    };
    check(
        !text.contains("Cache hints would slow it down") || measured(&hints) < 1.0,
        format!("hints slow it down, and one has {}", measured(&hints)),
    );
    let unrolls = |plan: &Plan| plan.loads().is_empty() && plan.unroll().is_some();
    check(
        !text.contains("Unrolling alone reaches") || measured(&unrolls) <= report.best.speedup,
        format!("unrolling has {}", measured(&unrolls)),
    );
    let more = report.best_elsewhere.as_ref().map(|there| there.speedup);
    let more = more.or(report.plain_best_geometry.as_ref().map(|there| there.speedup));
    let more = more.unwrap_or(1.0);
    check(
        !text.contains("would be faster still") || more >= report.best.speedup,
        format!(
            "more work-groups are better still: {more} and {}",
            report.best.speedup
        ),
    );
    check(
        !text.contains("would not help") || (more < WORTH_IT && !report.verdict.is_of_geometry()),
        format!("more work-groups would not help, and reach {more}"),
    );
    let used = evidence.bandwidth_used().unwrap_or(0.0);
    check(used <= 1.02, format!("{used} of the bandwidth is used"));
    if let Some(waiting) = evidence.waiting_for_loads {
        check(
            waiting >= 0.1 || !text.contains("starved"),
            format!("starved where {waiting} of the time is waiting"),
        );
    }
    found
}

/// The fastest here or in another geometry.
fn anywhere(report: &Report, fastest: f64) -> f64 {
    let plain = report.plain_best_geometry.as_ref().map(|there| there.speedup);
    let planned = report.best_elsewhere.as_ref().map(|there| there.speedup);
    plain.into_iter().chain(planned).fold(fastest, f64::max)
}

/// How fast the fastest plan is, the plain kernel included.
fn fastest(report: &Report) -> f64 {
    let factors = report.trials.iter().filter_map(Trial::measured);
    factors.map(|(_, factor)| factor).fold(1.0, f64::max)
}
