//! What contradicts something else in one advice: bounds and gains, distances and trip counts, answers and verdict.

use headstart::advise::{self, Advice, Answer};
use headstart::report::Verdict;
use headstart::report::columns::Columns;

/// What contradicts something else in an advice.
pub fn contradictions(advice: &Advice) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, what: String| found.extend((!holds).then_some(what));
    let text = advise::text(advice, Columns::UNLIMITED);
    let answer = |question: &str| {
        let step = advice.steps.iter().find(|step| step.question.contains(question));
        step.unwrap_or_else(|| panic!("no question of {question}"))
    };
    let here = || {
        advice
            .choices
            .iter()
            .filter(|choice| !choice.what.is_of_geometry())
    };
    let fastest = here().map(|choice| choice.speedup).fold(1.0, f64::max);
    let chosen: Vec<_> = advice.choices.iter().filter(|choice| choice.chosen).collect();
    let decided = usize::from(advice.verdict != Verdict::Undecided);
    check(
        chosen.len() == decided,
        format!("{} answers are chosen", chosen.len()),
    );
    for choice in &chosen {
        check(
            choice.what == advice.verdict,
            "the choice is not the verdict".into(),
        );
        check(
            choice.condition.is_none(),
            "a condition is taken for granted".into(),
        );
    }
    if let Some(bounds) = &advice.bounds {
        check(
            fastest <= bounds.best_speedup * 1.001,
            format!("at most {} and a plan with {fastest}", bounds.best_speedup),
        );
        for roof in &bounds.roofs {
            let least = advice.time_ns / fastest;
            check(
                roof.least_ns <= least * 1.001,
                format!("{} takes {}, and a plan {least}", roof.name, roof.least_ns),
            );
        }
        let too_far = match (bounds.distance, bounds.iterations) {
            (Some(distance), Some(iterations)) => f64::from(distance) >= iterations,
            _ => false,
        };
        check(
            !too_far || text.contains("would have to start"),
            format!("{:?} ahead in a loop of {:?}", bounds.distance, bounds.iterations),
        );
        if let Some(factor) = bounds.without_waiting {
            let reached = chosen.first().map_or(1.0, |choice| choice.speedup);
            check(
                reached <= factor || text.contains("goes beyond that"),
                format!("{factor} without waiting, and {reached} reached"),
            );
        }
    }
    let waits = answer("mostly wait");
    let waiting = waits.evidence.first().map_or(100.0, |measure| measure.value);
    check(
        waiting >= 10.0 || !text.contains("starved"),
        format!("starved where {waiting} % is waiting"),
    );
    // Whatever was carried out can be: no reason why its load may not be fetched early.
    let independent = answer("independent");
    let planned = here().any(|choice| choice.plan.as_ref().is_some_and(|plan| !plan.loads().is_empty()));
    let first = advice
        .plan
        .as_ref()
        .and_then(|plan| plan.loads().first().map(|(name, _)| name.to_string()));
    if let (true, Answer::No, Some(load)) = (planned, independent.answer, first) {
        check(
            !independent.finding.contains(&format!("`{load}`")),
            format!(
                "`{load}` is fetched early by the plan, and {}",
                independent.finding
            ),
        );
    }
    let measure = |question: &str, name: &str| {
        let evidence = &answer(question).evidence;
        evidence
            .iter()
            .find(|measure| measure.name == name)
            .map(|measure| measure.value)
    };
    let hits = measure("miss in the cache", "hit rate");
    let (misses, lacks) = (answer("miss in the cache"), answer("too few sub-groups"));
    check(
        misses.answer != Answer::Yes || hits.is_none_or(|hits| hits < 90.0),
        format!("its loads miss, and {hits:?} % of them hit"),
    );
    check(
        lacks.answer != Answer::No || !lacks.finding.contains("starved"),
        format!("there are enough sub-groups, and {}", lacks.finding),
    );
    let delivered = measure("bandwidth", "delivered by device memory");
    let most = measure("bandwidth", "bandwidth of device memory");
    if let (Some(delivered), Some(most)) = (delivered, most) {
        check(delivered <= 1.02 * most, format!("{delivered} of {most} GB/s"));
        let flying = measure("in flight", "in flight").zip(measure("in flight", "bandwidth × latency"));
        if let Some((flying, needed)) = flying {
            check(
                flying <= 1.5 * needed || delivered > 0.5 * most,
                format!(
                    "{flying} bytes on their way where {needed} are enough, and {delivered} of {most} GB/s"
                ),
            );
            check(
                delivered > 0.001 * most || flying < 0.02 * needed,
                format!("{flying} bytes on their way, and {delivered} GB/s"),
            );
        }
    }
    found
}
