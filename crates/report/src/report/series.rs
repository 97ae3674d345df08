//! The lines of the figure: the trials of one strategy, by distance.

use std::collections::BTreeSet;

use super::{Report, Trial};
use crate::prefetch::plan::{Layout, Plan, Strategy};

/// The trials of one strategy, in order of distance: one line of the figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// The strategy; none where the loop is only unrolled.
    pub strategy: Option<Strategy>,
    /// Whether each of its plans also unrolls the loop, so that the fetches go in groups.
    pub grouped: bool,
    /// The name of the line.
    pub label: String,
    /// One point a distance, the fastest trial where several plans have the same.
    pub points: Vec<Point>,
}

/// One trial of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Iterations ahead of the use; where the loop is only unrolled, iterations in a group.
    pub distance: u32,
    /// The plan.
    pub plan: Plan,
    /// The plain kernel's time divided by the plan's.
    pub speedup: f64,
}

impl Series {
    /// The fastest point.
    pub(crate) fn best(&self) -> &Point {
        let faster = |one: &&Point, other: &&Point| one.speedup.total_cmp(&other.speedup);
        self.points
            .iter()
            .max_by(faster)
            .expect("a series is made with its first point")
    }

    /// The layout in shared memory, if the strategy has one.
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.strategy.and_then(Strategy::layout)
    }

    /// The load that it is of, where a report has plans of several; else empty.
    pub(crate) fn load(&self) -> &str {
        self.label.split_once(": ").map_or("", |(load, _)| load)
    }

    /// The series without its layout: two series of the same family differ in layout only.
    pub(crate) fn family(&self) -> String {
        let strategy = self
            .strategy
            .map_or("unroll".to_owned(), |strategy| match strategy.layout() {
                Some(_) => strategy.name().to_owned(),
                None => strategy.label(),
            });
        let load = self.load();
        format!("{load}:{}:{strategy}", self.grouped)
    }
}

/// The series of a report, in the order in which their first plans were tried.
///
/// A plan belongs to the series of its first load's strategy. Plans of several first loads (a kernel with two
/// candidates) are kept apart by the load's name in front. The plain kernel and `unroll:full` have no distance, and
/// are no points; nor are plans that were dropped.
pub(crate) fn of(report: &Report) -> Vec<Series> {
    by(report, |trial| trial.measured().map(|(_, speedup)| speedup))
}

/// The same for the dropped plans, with their upper bounds.
pub(crate) fn dropped(report: &Report) -> Vec<Series> {
    by(report, |trial| trial.dropped().map(|(_, at_most)| at_most))
}

/// The same for all plans that have either, for the names and order of the lines.
pub(crate) fn all(report: &Report) -> Vec<Series> {
    let either = |trial: &Trial| trial.measured().or(trial.dropped());
    by(report, |trial| either(trial).map(|(_, speedup)| speedup))
}

/// The series of the plans that have a speedup, by this rule.
fn by(report: &Report, speedup: impl Fn(&Trial) -> Option<f64>) -> Vec<Series> {
    let loads: BTreeSet<&str> = report
        .trials
        .iter()
        .filter_map(|trial| trial.plan.loads().first())
        .map(|(load, _)| load.param())
        .collect();
    let several = loads.len() > 1;
    let mut series: Vec<Series> = Vec::new();
    for trial in &report.trials {
        let placed = speedup(trial).and_then(|speedup| place(trial, speedup, several));
        let Some((start, point)) = placed else {
            continue;
        };
        let line = match series.iter_mut().find(|line| line.label == start.label) {
            Some(line) => line,
            None => series.push_mut(start),
        };
        match line
            .points
            .iter_mut()
            .find(|other| other.distance == point.distance)
        {
            Some(other) if other.speedup >= point.speedup => {}
            Some(other) => *other = point,
            None => line.points.push(point),
        }
    }
    for line in &mut series {
        line.points.sort_by_key(|point| point.distance);
    }
    series
}

/// For each family the series with the fastest point: the lines of the main figure.
pub(crate) fn best_layouts(series: &[Series]) -> Vec<&Series> {
    let mut best: Vec<&Series> = Vec::new();
    for line in series {
        match best.iter_mut().find(|other| other.family() == line.family()) {
            Some(other) if other.best().speedup >= line.best().speedup => {}
            Some(other) => *other = line,
            None => best.push(line),
        }
    }
    best
}

/// The series that a trial belongs to, still empty, and its point.
fn place(trial: &Trial, speedup: f64, several: bool) -> Option<(Series, Point)> {
    let plan = trial.plan.clone();
    let unroll = plan.unroll();
    let (strategy, label, distance) = match plan.loads().first() {
        Some((load, strategy)) => {
            let load = if several {
                format!("{}: ", load.param())
            } else {
                String::new()
            };
            let group = match (plan.inner(), unroll) {
                (Some(_), _) => "inner + ",
                (None, Some(_)) => "unroll + ",
                (None, None) => "",
            };
            (
                Some(*strategy),
                format!("{load}{group}{}", strategy.label()),
                strategy.distance().get(),
            )
        }
        None => (None, "unroll".to_owned(), unroll?.iterations()?),
    };
    let grouped = strategy.is_some() && (unroll.is_some() || plan.inner().is_some());
    Some((
        Series {
            strategy,
            grouped,
            label,
            points: Vec::new(),
        },
        Point {
            distance,
            plan,
            speedup,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::sample;

    #[test]
    fn a_line_a_strategy_and_the_fastest_of_equal_distances() {
        let series = of(&sample());
        let labels: Vec<&str> = series.iter().map(|line| line.label.as_str()).collect();
        let expected = [
            "rolling-async/interleaved",
            "rolling-async/plain",
            "cache:L2",
            "unroll + rolling-async/interleaved",
            "unroll",
        ];
        assert_eq!(labels, expected);
        let distances: Vec<u32> = series[0].points.iter().map(|point| point.distance).collect();
        assert_eq!(distances, [1, 2, 4, 8]);
        // All four groupings have distance 16; the fastest stays.
        assert_eq!(series[3].points.len(), 1);
        assert_eq!(
            series[3].points[0].plan.to_string(),
            "unroll:2,values=rolling-async:16/interleaved"
        );
        let best: Vec<&str> = best_layouts(&series)
            .iter()
            .map(|line| line.label.as_str())
            .collect();
        assert_eq!(
            best,
            [
                "rolling-async/interleaved",
                "cache:L2",
                "unroll + rolling-async/interleaved",
                "unroll"
            ]
        );
    }
}
