//! The findings of a sweep, in sentences.

use std::collections::BTreeMap;

use super::lines::{Layout, Line};
use super::{Point, Shows, Sweep};
use crate::report::number;

/// Points within 3 % of the best of their line are as good: `tune` advises nothing that is not faster by more than that.
const FLAT: f64 = 0.03;
/// How many lines get a sentence each.
const MOST_LINES: usize = 16;

/// The best point, and for each line where it is best and from where on it is flat.
pub(crate) fn answers(sweep: &Sweep) -> Vec<String> {
    let layout = Layout::of(sweep);
    let all: Vec<usize> = (0..sweep.axes.len()).collect();
    let mut answers = Vec::new();
    let name = &sweep.axes[layout.along].name;
    let blocks = layout.blocks(sweep);
    let lines: Vec<(String, &Line<'_>)> = blocks
        .iter()
        .flat_map(|block| block.lines.iter().map(move |line| (&block.title, line)))
        .map(|(title, line)| {
            let own = match (layout.between, line.value) {
                (Some(axis), Some(value)) => format!("{}={value}", sweep.axes[axis].name),
                _ => String::new(),
            };
            let both = [title.as_str(), own.as_str()];
            let parts: Vec<&str> = both.into_iter().filter(|part| !part.is_empty()).collect();
            (parts.join(", "), line)
        })
        .collect();
    // A single line says itself where it is best.
    if let (Some(best), true) = (sweep.best(), lines.len() > 1) {
        let number = sweep.number(best).unwrap_or_default();
        let ran = sweep.points.iter().filter_map(|point| sweep.number(point));
        let as_good = ran.filter(|other| (other / number - 1.0).abs() <= FLAT).count() - 1;
        let others = match as_good {
            0 => String::new(),
            1 => "; 1 other point is within 3 % of it".to_owned(),
            _ => format!("; {as_good} other points are within 3 % of it"),
        };
        answers.push(format!(
            "Best: {} at {}{others}.",
            shown(sweep, number),
            sweep.values_of(best, &all)
        ));
    }
    answers.extend(layout.between.and_then(|axis| indifferent(sweep, axis)));
    for (title, line) in lines.iter().take(MOST_LINES) {
        let Some(said) = sentence(sweep, name, layout.along, line) else {
            continue;
        };
        answers.push(match title.is_empty() {
            true => said,
            false => format!("{title}: {said}"),
        });
    }
    if lines.len() > MOST_LINES {
        answers.push(format!("… and {} other lines", lines.len() - MOST_LINES));
    }
    answers
}

/// That an axis makes no difference at any value of the others, where it makes none.
fn indifferent(sweep: &Sweep, axis: usize) -> Option<String> {
    let mut ranges: BTreeMap<Vec<usize>, (f64, f64)> = BTreeMap::new();
    for point in &sweep.points {
        let number = sweep.number(point)?;
        let others = point.at.iter().enumerate().filter(|(other, _)| *other != axis);
        let others: Vec<usize> = others.map(|(_, &at)| at).collect();
        let range = ranges.entry(others).or_insert((number, number));
        *range = (range.0.min(number), range.1.max(number));
    }
    let (name, values) = (&sweep.axes[axis].name, &sweep.axes[axis].values);
    let is_flat = values.len() > 1 && ranges.values().all(|(least, most)| most / least - 1.0 <= FLAT);
    is_flat.then(|| {
        format!(
            "{name} makes less than 3 % of difference from {} to {}.",
            values[0],
            values[values.len() - 1]
        )
    })
}

/// Which points did not run, and why: a sentence for each reason.
pub(super) fn refusals(sweep: &Sweep) -> Vec<String> {
    let refused = sweep.refused().into_iter();
    refused
        .map(|(reason, count)| {
            let points = if count == 1 { "point" } else { "points" };
            format!("{count} {points} did not run: {reason}")
        })
        .collect()
}

/// A speedup, a time, or a microbenchmark's number.
pub(super) fn shown(sweep: &Sweep, value: f64) -> String {
    match sweep.shows() {
        Shows::Speedups => number::speedup(value),
        Shows::Times => number::duration(value),
        Shows::Numbers(_) => number::figures(value),
    }
}

/// A sentence about one line; none if none of it ran.
fn sentence(sweep: &Sweep, name: &str, along: usize, line: &Line<'_>) -> Option<String> {
    let value = |point: &Point| sweep.axes[along].values[point.at[along]].as_str();
    let ran: Vec<(&str, f64)> = line
        .points
        .iter()
        .filter_map(|point| Some((value(point), sweep.number(point)?)))
        .collect();
    let better = |one: f64, other: f64| match sweep.shows_speedups() {
        true => one > other,
        false => one < other,
    };
    let best = (0..ran.len()).reduce(|best, at| match better(ran[at].1, ran[best].1) {
        true => at,
        false => best,
    })?;
    let as_good = |at: usize| (ran[at].1 / ran[best].1 - 1.0).abs() <= FLAT;
    let first = (0..best)
        .rev()
        .take_while(|&at| as_good(at))
        .last()
        .unwrap_or(best);
    let last = (best + 1..ran.len())
        .take_while(|&at| as_good(at))
        .last()
        .unwrap_or(best);
    let number = shown(sweep, ran[best].1);
    let end = ran.len() - 1;
    let from_one_end = |way: &str, from: usize, to: usize| {
        let change = match sweep.shows() {
            Shows::Times => format!("{} the time", number::speedup(ran[to].1 / ran[from].1)),
            _ => format!("{} to {}", shown(sweep, ran[from].1), shown(sweep, ran[to].1)),
        };
        format!("; {way} {} to {}: {change}", ran[from].0, ran[to].0)
    };
    Some(match (first, last) {
        _ if end == 0 => format!("{number} at {name}={}", ran[0].0),
        (0, last) if last == end => {
            format!(
                "{name} makes less than 3 % of difference from {} to {}: {number}",
                ran[0].0, ran[end].0
            )
        }
        (first, last) if last == end && first < end => {
            format!("{number} at best, flat from {name}={} on", ran[first].0)
        }
        (0, last) if last > 0 => format!(
            "{number} at best, flat up to {name}={}{}",
            ran[last].0,
            from_one_end("from", last, end)
        ),
        (first, last) if first < last => {
            format!(
                "{number} at best, from {name}={} to {}",
                ran[first].0, ran[last].0
            )
        }
        _ if best == 0 => format!(
            "{number} at {name}={}, the best{}",
            ran[0].0,
            from_one_end("from", 0, end)
        ),
        _ if best == end => format!(
            "{number} at {name}={}, the best and the last{}",
            ran[end].0,
            from_one_end("from", 0, end)
        ),
        _ => format!("{number} at {name}={}, the best", ran[best].0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::PointOutcome;
    use super::super::tests::sample;
    use super::*;
    use crate::prefetch::Plan;

    #[test]
    fn lines_say_where_they_are_flat() {
        assert_eq!(
            answers(&sample()),
            [
                "Best: 2.41× at dram.latency=700, distance=8; 1 other point is within 3 % of it.",
                "dram.latency=300: 2.01× at best, flat from distance=2 on",
                "dram.latency=700: 2.41× at best, flat from distance=4 on",
                "dram.latency=1500: 1.90× at distance=4, the best and the last; from 1 to 4: 1.10× to 1.90×",
            ]
        );
    }

    #[test]
    fn an_axis_that_changes_nothing_is_named() {
        let mut sweep = sample();
        for point in &mut sweep.points {
            let distance = 1.0 + point.at[1] as f64;
            point.outcome = PointOutcome::Ok {
                time_ns: 1000.0 / distance,
                plain_ns: 1000.0,
                number: None,
            };
        }
        let answers = answers(&sweep);
        assert!(
            answers[0].ends_with("; 2 other points are within 3 % of it."),
            "{answers:?}"
        );
        assert_eq!(
            answers[1],
            "dram.latency makes less than 3 % of difference from 300 to 1500."
        );
    }

    #[test]
    fn times_say_how_they_grow() {
        let mut sweep = sample();
        sweep.axes.remove(1);
        sweep.points.truncate(3);
        let times = [1000.0, 1500.0, 2500.0];
        for (at, point) in sweep.points.iter_mut().enumerate() {
            point.at = vec![at];
            point.plan = Plan::none();
            point.outcome = PointOutcome::Ok {
                time_ns: times[at],
                plain_ns: times[at],
                number: None,
            };
        }
        assert_eq!(
            answers(&sweep),
            ["1 µs at dram.latency=300, the best; from 300 to 1500: 2.50× the time"]
        );
    }
}
