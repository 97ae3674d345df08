//! The figure of a sweep: its lines along an axis of numbers.

use super::lines::{Block, Layout};
use super::words::shown;
use super::{Shows, Sweep};
use crate::report::page::chart::{Axis, Chart, Line, Point};
use crate::report::page::look::Look;

/// An axis whose ends are at least this far apart is logarithmic.
const WIDE_RANGE: f64 = 8.0;

/// The figure of one block; none where the values along its lines are no numbers.
pub(super) fn figure(sweep: &Sweep, layout: &Layout, block: &Block<'_>) -> Option<Chart> {
    let along = &sweep.axes[layout.along];
    let numbers = along.numbers()?;
    // The divisor of the vertical axis's numbers, and its unit.
    let all = sweep.points.iter().filter_map(|point| sweep.number(point));
    let most = all.fold(0.0, f64::max);
    let units = [(1e9, " s"), (1e6, " ms"), (1e3, " µs")];
    let (what, (divisor, unit)) = match sweep.shows() {
        Shows::Speedups => ("speedup over the plain kernel", (1.0, "×")),
        Shows::Numbers(unit) => (unit, (1.0, "")),
        Shows::Times => {
            let unit = units.into_iter().find(|&(size, _)| most >= size);
            ("time", unit.unwrap_or((1.0, " ns")))
        }
    };
    let first = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let last = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let ticks = numbers
        .iter()
        .copied()
        .zip(along.values.iter().cloned())
        .collect();
    let every: Vec<usize> = (0..sweep.axes.len()).collect();
    let between = layout.between.map(|between| sweep.axes[between].name.clone());
    let lines = block.lines.iter().enumerate().map(|(position, line)| {
        let points = line.points.iter().filter_map(|point| {
            let number = sweep.number(point)?;
            let tooltip = format!("{}: {}", sweep.values_of(point, &every), shown(sweep, number));
            Some(Point::new(
                (numbers[point.at[layout.along]], number / divisor),
                tooltip,
            ))
        });
        let points: Vec<Point> = points.collect();
        let ends: Vec<(f64, f64)> = points.iter().map(|point| point.at).collect();
        Line {
            points,
            ..Line::through(
                Look::in_order(position),
                line.value.unwrap_or_default(),
                String::new(),
                &ends,
            )
        }
    });
    let mut lines: Vec<Line> = lines
        .filter(|line| between.is_some() || !line.points.is_empty())
        .collect();
    if matches!(sweep.shows(), Shows::Speedups) {
        lines.push(Line::across(Look::PLAIN, "plain kernel", 1.0));
    }
    Some(Chart {
        label: format!("{what} by {}; the table below has every number", along.name),
        horizontal: Axis::of(&along.name, ticks, first > 0.0 && last / first >= WIDE_RANGE),
        vertical: Axis::from_zero(what, most / divisor, unit),
        lines,
        heading: between,
    })
}
