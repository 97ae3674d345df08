//! The figure of a sweep: its lines along an axis of numbers.

use std::fmt::Write;

use super::lines::{Block, Layout};
use super::words::shown;
use super::{Shows, Sweep};
use crate::report::page::chart::{self, BELOW, EndName, Frame, Marked, NAME_HEIGHT, Scale, TOP, Words};
use crate::report::page::escape::Escaped;
use crate::report::page::look::Look;

/// The data of a figure.
pub(super) struct SweepFigureFormat {
    /// Width of the drawing, in pixels at its natural size.
    pub width: f64,
    /// Height of the plot between its axes.
    pub height: f64,
    /// Whether the lines' values stand at their ends.
    pub names: bool,
    /// CSS class of the SVG element.
    pub class: &'static str,
}

/// The name of the vertical axis of speedups.
const SPEEDUP: &str = "speedup over the plain kernel";
/// An axis whose ends are at least this far apart is logarithmic.
const WIDE_RANGE: f64 = 8.0;

/// The figure of one block; none where the values along its lines are no numbers.
pub(super) fn figure(
    sweep: &Sweep,
    layout: &Layout,
    block: &Block<'_>,
    format: &SweepFigureFormat,
) -> Option<String> {
    let along = &sweep.axes[layout.along];
    let numbers = along.numbers()?;
    let longest = block
        .lines
        .iter()
        .map(|line| line.value.unwrap_or_default().chars().count());
    let names = match format.names && layout.between.is_some() {
        true => 40.0 + 8.0 * longest.max().unwrap_or(0) as f64,
        false => 0.0,
    };
    let named = if names > 0.0 { block.lines.len() } else { 0 };
    // The divisor of the vertical axis's numbers, and its unit.
    let all = sweep.points.iter().filter_map(|point| sweep.number(point));
    let most = all.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let units = [(1e9, " s"), (1e6, " ms"), (1e3, " µs")];
    let (what, (divisor, unit)) = match sweep.shows() {
        Shows::Speedups => (SPEEDUP, (1.0, "×")),
        Shows::Numbers(unit) => (unit, (1.0, "")),
        Shows::Times => {
            let unit = units.into_iter().find(|&(size, _)| most >= size);
            ("time", unit.unwrap_or((1.0, " ns")))
        }
    };
    let (vertical, step) = Scale::from_zero(most / divisor);
    let first = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let last = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let frame = Frame {
        left: 64.0,
        top: TOP,
        right: format.width - names - 10.0,
        bottom: TOP + format.height.max(NAME_HEIGHT * named as f64),
        horizontal: Scale {
            first,
            last,
            is_logarithmic: first > 0.0 && last / first >= WIDE_RANGE,
            margin: 14.0,
        },
        vertical,
    };
    let label = format!("{what} by {}; the table below has every number", along.name);
    let size = (format.width, frame.bottom + BELOW);
    let mut svg = chart::open(format.class, size, Words::Label(label));
    let rows = (0..).map(|number| f64::from(number) * step);
    let rows = rows.take_while(|tick| *tick <= vertical.last + 1e-9);
    frame.rows(&mut svg, rows.map(|tick| (tick, format!("{tick}{unit}"))));
    if what == SPEEDUP {
        frame.across(&mut svg, "plain", 1.0);
    }
    frame.columns(
        &mut svg,
        numbers.iter().copied().zip(along.values.iter().cloned()),
        false,
    );
    frame.names(&mut svg, what, &along.name);
    let every: Vec<usize> = (0..sweep.axes.len()).collect();
    let mut ends = Vec::new();
    for (position, line) in block.lines.iter().enumerate() {
        let look = Look::in_order(position);
        let marked = line.points.iter().filter_map(|point| {
            let number = sweep.number(point)?;
            Some(Marked {
                at: (
                    frame.x(numbers[point.at[layout.along]]),
                    frame.y(number / divisor),
                ),
                tooltip: format!("{}: {}", sweep.values_of(point, &every), shown(sweep, number)),
                is_chosen: false,
            })
        });
        let marked: Vec<Marked> = marked.collect();
        frame.line(&mut svg, look, false, &marked);
        if let (Some(&Marked { at, .. }), Some(name)) = (marked.last(), line.value) {
            ends.push(EndName {
                name,
                value: None,
                look,
                is_bold: false,
                from: at,
                height: at.1,
            });
        }
    }
    if let Some(between) = layout.between.filter(|_| names > 0.0) {
        let _ = write!(
            svg,
            "<text class=\"axis-name\" x=\"{x:.1}\" y=\"14\" text-anchor=\"end\">{}</text>",
            Escaped(&sweep.axes[between].name),
            x = frame.right + 40.0,
        );
        frame.end_names(&mut svg, ends);
    }
    svg.push_str("</svg>");
    Some(svg)
}
