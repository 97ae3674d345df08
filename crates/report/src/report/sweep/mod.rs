//! A sweep: one kernel timed for every combination of some settings, to answer "what if".
//!
//! | file | what it does |
//! |---|---|
//! | `lines` | cuts the points into tables and lines along an axis |
//! | `words` | what a line says: where it is flat, where it is best |
//! | `text` | tables for a terminal, and rows of CSV |
//! | `page` | a self-contained page with the figure |

mod figure;
mod lines;
mod page;
mod text;
mod words;

use serde::{Deserialize, Serialize};

use crate::prefetch::Plan;

pub use page::html;
pub use text::{csv, text};

/// A kernel timed at every combination of the values of some axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The kernel's name.
    pub kernel: String,
    /// The device, as `--device` spells it.
    pub device: String,
    /// The kernel's parameters that are the same everywhere, by name.
    pub parameters: Vec<(String, String)>,
    /// The plan that was timed, where it is the same everywhere but for its distance or strategy.
    pub plan: Option<Plan>,
    /// The varied settings; the last one varies fastest.
    pub axes: Vec<Axis>,
    /// One point for each combination, in order.
    pub points: Vec<Point>,
    /// Notes, a sentence each.
    pub notes: Vec<String>,
    /// The unit of the points' numbers, of a microbenchmark: `cycles a load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// What a sweep shows of its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows<'s> {
    /// The speedup over the plain kernel.
    Speedups,
    /// The plain kernel's time.
    Times,
    /// A microbenchmark's number, in this unit.
    Numbers(&'s str),
}

impl Shows<'_> {
    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Shows::Speedups => "speedup",
            Shows::Times => "time",
            Shows::Numbers(_) => "number",
        }
    }
}

/// The varied setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name, as `--over` spells it: `dram.latency`, `items`, `distance`.
    pub name: String,
    /// Its values, as they were set.
    pub values: Vec<String>,
}

impl Axis {
    /// Its values as numbers; none where one of them is not a number.
    pub(crate) fn numbers(&self) -> Option<Vec<f64>> {
        let numbers = self.values.iter().map(|value| value.parse().ok());
        numbers.collect::<Option<Vec<f64>>>()
    }
}

/// One combination of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The position of its value on each axis.
    pub at: Vec<usize>,
    /// The plan, completed with the parents that it carries.
    pub plan: Plan,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: PointOutcome,
}

/// The outcome of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum PointOutcome {
    /// It ran.
    Ok {
        /// Its time, in nanoseconds.
        time_ns: f64,
        /// The plain kernel's time at the same values, in nanoseconds.
        plain_ns: f64,
        /// The microbenchmark's number there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<f64>,
    },
    /// It could not run.
    Refused {
        /// Why.
        reason: String,
    },
}

impl Sweep {
    /// The numbers to show: speedups where all points have a plan; elsewhere a microbenchmark's numbers, or times. (The kernel without a
    /// plan is as fast as itself whatever is varied.)
    pub(crate) fn shows(&self) -> Shows<'_> {
        match &self.unit {
            _ if self.points.iter().all(|point| !point.plan.is_none()) => Shows::Speedups,
            Some(unit) => Shows::Numbers(unit),
            None => Shows::Times,
        }
    }

    /// Whether they are speedups, of which more is better.
    pub(crate) fn shows_speedups(&self) -> bool {
        self.shows() == Shows::Speedups
    }

    /// The number to show of a point: a speedup, a time in nanoseconds, or a microbenchmark's number. None where it could not run.
    pub(crate) fn number(&self, point: &Point) -> Option<f64> {
        let PointOutcome::Ok {
            time_ns,
            plain_ns,
            number,
        } = point.outcome
        else {
            return None;
        };
        match self.shows() {
            Shows::Speedups => Some(plain_ns / time_ns),
            Shows::Times => Some(time_ns),
            Shows::Numbers(_) => number,
        }
    }

    /// The best point: the greatest speedup, or the least time. None where nothing ran.
    pub(crate) fn best(&self) -> Option<&Point> {
        let ranked = self
            .points
            .iter()
            .filter_map(|point| Some((point, self.number(point)?)));
        let best = match self.shows_speedups() {
            true => ranked.max_by(|(_, one), (_, other)| one.total_cmp(other)),
            false => ranked.min_by(|(_, one), (_, other)| one.total_cmp(other)),
        };
        best.map(|(point, _)| point)
    }

    /// The values of a point as `name=value`, of the axes given by position.
    pub(crate) fn values_of(&self, point: &Point, axes: &[usize]) -> String {
        let values = axes
            .iter()
            .filter_map(|&axis| Some((self.axes.get(axis)?, *point.at.get(axis)?)));
        let values = values.filter_map(|(axis, at)| Some(format!("{}={}", axis.name, axis.values.get(at)?)));
        values.collect::<Vec<_>>().join(", ")
    }

    /// The reasons why points could not run, each with how many have it, the commonest first.
    pub(crate) fn refused(&self) -> Vec<(&str, usize)> {
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        for point in &self.points {
            let PointOutcome::Refused { reason } = &point.outcome else {
                continue;
            };
            match reasons.iter_mut().find(|(other, _)| other == reason) {
                Some((_, count)) => *count += 1,
                None => reasons.push((reason, 1)),
            }
        }
        reasons.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        reasons
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Speedups by latency and distance; the last point is refused.
    pub(crate) fn sample() -> Sweep {
        let speedups = [[1.5, 2.0, 2.01, 2.0], [1.2, 1.6, 2.4, 2.41], [1.1, 1.3, 1.9, 0.0]];
        let plan: Plan = "values=rolling-async:4".parse().expect("a plan");
        let mut points = Vec::new();
        for (row, line) in speedups.iter().enumerate() {
            for (column, &speedup) in line.iter().enumerate() {
                points.push(Point {
                    at: vec![row, column],
                    plan: plan.clone(),
                    outcome: match speedup > 0.0 {
                        true => PointOutcome::Ok {
                            time_ns: 1000.0 / speedup,
                            plain_ns: 1000.0,
                            number: None,
                        },
                        false => PointOutcome::Refused {
                            reason: "too much shared memory".to_owned(),
                        },
                    },
                });
            }
        }
        let axis = |name: &str, values: &[&str]| Axis {
            name: name.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        Sweep {
            kernel: "gather".to_owned(),
            device: "sim:h200".to_owned(),
            parameters: vec![("items".to_owned(), "64".to_owned())],
            plan: Some(plan),
            axes: vec![
                axis("dram.latency", &["300", "700", "1500"]),
                axis("distance", &["1", "2", "4", "8"]),
            ],
            points,
            notes: Vec::new(),
            unit: None,
        }
    }

    #[test]
    fn a_sweep_shows_speedups_where_plans_ran_and_times_elsewhere() {
        let mut sweep = sample();
        assert!(sweep.shows_speedups());
        let best = sweep.best().expect("a point").clone();
        assert_eq!(sweep.values_of(&best, &[0, 1]), "dram.latency=700, distance=8");
        assert_eq!(sweep.refused(), [("too much shared memory", 1)]);
        for point in &mut sweep.points {
            point.plan = Plan::none();
        }
        assert!(!sweep.shows_speedups());
        // The fastest is the one that takes least.
        assert_eq!(sweep.best().expect("a point").at, best.at);
    }

    #[test]
    fn a_sweep_of_a_microbenchmark_shows_its_numbers() {
        let mut sweep = sample();
        sweep.unit = Some("cycles a load".to_owned());
        for (position, point) in sweep.points.iter_mut().enumerate() {
            point.plan = Plan::none();
            if let PointOutcome::Ok { number, .. } = &mut point.outcome {
                *number = Some(50.0 + position as f64);
            }
        }
        assert_eq!(sweep.number(&sweep.points[3]), Some(53.0));
        let text = super::text(&sweep, crate::report::columns::Columns::UNLIMITED);
        assert!(text.contains("Number in cycles a load by distance"), "{text}");
        assert!(csv(&sweep).expect("CSV").contains(",53\n"), "a column of its own");
        assert!(html(&sweep).contains("cycles a load"));
    }

    #[test]
    fn a_sweep_is_the_same_after_json() {
        let sweep = sample();
        let text = serde_json::to_string(&sweep).expect("serializable");
        assert_eq!(serde_json::from_str::<Sweep>(&text).expect("read back"), sweep);
    }
}
