//! The article's figure: speedup by distance, a line per strategy.

use std::collections::BTreeSet;

use super::chart::{Axis, Chart, Line, Point};
use super::look::{Look, Looks};
use crate::prefetch::Plan;
use crate::report::PlainBest;
use crate::report::number;
use crate::report::series::Series;

/// The figure of these lines, each with its name, or nothing where there are no points. `best` is the plan whose mark is
/// circled; `elsewhere` is the plain kernel at its own best geometry, a line across the figure.
pub(super) fn speedup_by_distance(
    series: &[&Series],
    looks: &Looks,
    name: impl Fn(&Series) -> String,
    best: &Plan,
    elsewhere: Option<&PlainBest>,
    title: &str,
) -> Option<Chart> {
    let points = || series.iter().flat_map(|line| &line.points);
    let distances: BTreeSet<u32> = points().map(|point| point.distance).collect();
    distances.first()?;
    let speedups = points().map(|point| point.speedup);
    let highest = speedups.filter(|speedup| speedup.is_finite()).fold(1.0, f64::max);
    let ticks = distances
        .iter()
        .map(|&distance| (f64::from(distance), distance.to_string()));
    let is_best = |line: &Series| line.points.iter().any(|point| point.plan == *best);
    let mut fastest_first = series.to_vec();
    fastest_first.sort_by(|one, other| other.best().speedup.total_cmp(&one.best().speedup));
    let mut lines: Vec<Line> = fastest_first
        .into_iter()
        .map(|line| Line {
            look: looks.look(line),
            name: name(line),
            value: number::speedup(line.best().speedup),
            is_bold: is_best(line),
            height: line.best().speedup,
            points: line
                .points
                .iter()
                .map(|point| Point {
                    at: (f64::from(point.distance), point.speedup),
                    tooltip: format!("{}: {}", point.plan, number::speedup(point.speedup)),
                    is_chosen: point.plan == *best,
                })
                .collect(),
        })
        .collect();
    // The best line lies over the others.
    lines.sort_by_key(|line| !line.is_bold);
    lines.extend(elsewhere.map(|other| {
        let (groups, group) = (number::grouped(other.geometry.groups), other.geometry.group);
        let name = format!("plain kernel as {groups} × {group}");
        Line::across(Look::ELSEWHERE, &name, other.speedup)
    }));
    lines.push(Line::across(Look::PLAIN, "plain kernel", 1.0));
    Some(Chart {
        label: format!("{title}. {}", description(series)),
        horizontal: Axis::of("distance: iterations ahead of the use", ticks.collect(), true),
        vertical: Axis::from_zero("speedup over the plain kernel", highest, "×"),
        lines,
        heading: Some(String::new()),
    })
}

/// The figure in words, for those who do not see it.
fn description(series: &[&Series]) -> String {
    let lines = series.iter().map(|line| {
        let best = line.best();
        format!(
            "{} reaches {} at distance {}",
            line.label,
            number::speedup(best.speedup),
            best.distance
        )
    });
    format!(
        "Lines by strategy. {}. The table below has every number.",
        lines.collect::<Vec<_>>().join("; ")
    )
}

/// Lines that cannot be told apart in the figure, in groups.
pub(super) fn coincident<'s>(series: &[&'s Series]) -> Vec<Vec<&'s Series>> {
    let highest = series.iter().flat_map(|line| &line.points);
    let highest = highest.map(|point| point.speedup).fold(1.0, f64::max);
    // Less than three pixels of the height: their marks cover each other.
    let is_same = |one: &Series, other: &Series| {
        one.points.len() == other.points.len()
            && one.points.iter().zip(&other.points).all(|(one, other)| {
                one.distance == other.distance && (one.speedup - other.speedup).abs() <= 0.01 * highest
            })
    };
    let mut groups: Vec<Vec<&Series>> = Vec::new();
    for &line in series {
        match groups.iter_mut().find(|group| is_same(group[0], line)) {
            Some(group) => group.push(line),
            None => groups.push(vec![line]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::chart::WIDE;
    use crate::report::series;

    fn line(label: &str, points: &[(u32, f64)]) -> Series {
        let point = |&(distance, speedup): &(u32, f64)| series::Point {
            distance,
            plan: Plan::none(),
            speedup,
        };
        Series {
            strategy: None,
            grouped: false,
            label: label.to_owned(),
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn names_stand_in_the_order_of_their_numbers_and_lines_on_one_another_are_known() {
        // The first falls at its end below the second.
        let lines = [
            line("first", &[(1, 1.0), (2, 2.5), (4, 1.1)]),
            line("second", &[(1, 1.0), (2, 1.5), (4, 2.0)]),
            line("third", &[(1, 1.002), (2, 1.5), (4, 1.995)]),
            line("fourth", &[(1, 1.0), (2, 1.5)]),
        ];
        let all: Vec<&Series> = lines.iter().collect();
        let groups = coincident(&all);
        let names: Vec<Vec<&str>> = groups
            .iter()
            .map(|group| group.iter().map(|line| line.label.as_str()).collect())
            .collect();
        assert_eq!(names, [["second", "third"]]);
        let looks = Looks::of(&lines);
        let chart = speedup_by_distance(
            &all,
            &looks,
            |line| line.label.clone(),
            &Plan::none(),
            None,
            "test",
        );
        let svg = chart.expect("points").draw(&WIDE);
        let heights: Vec<f64> = ["first", "second", "third", "fourth", "plain kernel"]
            .map(|name| {
                let (before, _) = svg.split_once(&format!("\">{name} <tspan")).expect("its name");
                let (_, y) = before.rsplit_once("y=\"").expect("its height");
                y.split('"').next().expect("a number").parse().expect("a number")
            })
            .into();
        // None on another, though three end near each other.
        assert!(
            heights.is_sorted_by(|one, other| one + 18.0 < *other),
            "{heights:?}"
        );
    }
}
