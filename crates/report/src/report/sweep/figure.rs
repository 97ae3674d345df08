//! The figure of a sweep: its lines along an axis of numbers.
//!
//! A line is told from the others by colour, by the shape of its marks, and by its value at its end. Every mark has its
//! values and number as a tooltip; the table below the figure has the same numbers as text.

use std::fmt::Write;

use super::lines::{Block, Layout, Line};
use super::words::shown;
use super::{Shows, Sweep};
use crate::report::page::escape::Escaped;
use crate::report::page::figure::scale;
use crate::report::page::look::{Look, spread};

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
/// Above and below the plot, and at its left.
const TOP: f64 = 30.0;
const BELOW: f64 = 44.0;
const LEFT: f64 = 64.0;
/// Height that a line's name takes.
const NAME_HEIGHT: f64 = 19.0;
/// An axis whose ends are at least this far apart is logarithmic.
const WIDE_RANGE: f64 = 8.0;

/// Where the numbers lie on the drawing.
struct Axes {
    right: f64,
    bottom: f64,
    numbers: Vec<f64>,
    is_logarithmic: bool,
    highest: f64,
    step: f64,
    /// The divisor of the vertical axis's numbers, and its unit.
    unit: (f64, &'static str),
}

impl Axes {
    fn of(sweep: &Sweep, numbers: Vec<f64>, format: &SweepFigureFormat, names: f64) -> Axes {
        let all = sweep.points.iter().filter_map(|point| sweep.number(point));
        let most = all.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let units = [(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")];
        let unit = match sweep.shows() {
            Shows::Speedups => (1.0, "×"),
            Shows::Numbers(_) => (1.0, ""),
            Shows::Times => units
                .into_iter()
                .find(|&(size, _)| most >= size)
                .unwrap_or((1.0, " ns")),
        };
        let (highest, step) = scale(most / unit.0);
        let ends = (
            numbers.iter().copied().fold(f64::INFINITY, f64::min),
            numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        );
        Axes {
            right: format.width - names - 10.0,
            bottom: TOP + format.height,
            is_logarithmic: ends.0 > 0.0 && ends.1 / ends.0 >= WIDE_RANGE,
            numbers,
            highest,
            step,
            unit,
        }
    }

    fn x(&self, position: usize) -> f64 {
        let place = |number: f64| {
            if self.is_logarithmic {
                number.log2()
            } else {
                number
            }
        };
        let placed = self.numbers.iter().map(|&number| place(number));
        let (first, last) = placed.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), place| {
            (first.min(place), last.max(place))
        });
        let share = match last > first {
            true => (place(self.numbers[position]) - first) / (last - first),
            false => 0.5,
        };
        LEFT + 14.0 + share * (self.right - LEFT - 28.0)
    }

    fn y(&self, number: f64) -> f64 {
        let share = (number / self.unit.0 / self.highest).clamp(0.0, 1.0);
        self.bottom - share * (self.bottom - TOP)
    }
}

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
    let format = SweepFigureFormat {
        height: format.height.max(if names > 0.0 {
            NAME_HEIGHT * block.lines.len() as f64
        } else {
            0.0
        }),
        ..*format
    };
    let axes = Axes::of(sweep, numbers, &format, names);
    let what = match sweep.shows() {
        Shows::Speedups => SPEEDUP,
        Shows::Times => "time",
        Shows::Numbers(unit) => unit,
    };
    let mut svg = format!(
        "<svg class=\"figure {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\" \
         xmlns=\"http://www.w3.org/2000/svg\">",
        class = format.class,
        width = format.width,
        height = axes.bottom + BELOW,
        label = Escaped(format!(
            "{what} by {}; the table below has every number",
            along.name
        )),
    );
    draw_axes(&mut svg, &axes, what, &along.name, &along.values);
    for (position, line) in block.lines.iter().enumerate() {
        draw_line(&mut svg, sweep, layout, &axes, line, Look::in_order(position));
    }
    if names > 0.0 {
        draw_names(&mut svg, sweep, layout, &axes, block);
    }
    svg.push_str("</svg>");
    Some(svg)
}

fn draw_axes(svg: &mut String, axes: &Axes, what: &str, name: &str, values: &[String]) {
    let (right, bottom) = (axes.right, axes.bottom);
    let _ = write!(svg, "<text class=\"axis-name\" x=\"4\" y=\"14\">{what}</text>");
    let mut tick = 0.0;
    while tick <= axes.highest + 1e-9 {
        let y = axes.y(tick * axes.unit.0);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{x}\" y=\"{middle:.1}\" text-anchor=\"end\">{tick}{unit}</text>",
            x = LEFT - 6.0,
            middle = y + 4.0,
            unit = axes.unit.1,
        );
        tick += axes.step;
    }
    if what == SPEEDUP {
        let y = axes.y(1.0);
        let _ = write!(
            svg,
            "<line class=\"plain\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        );
    }
    let mut free_from = f64::NEG_INFINITY;
    for (position, value) in values.iter().enumerate() {
        let x = axes.x(position);
        let _ = write!(
            svg,
            "<line class=\"axis-tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{end}\"/>",
            end = bottom + 5.0
        );
        // Numbers that would touch the one before are left out; their ticks stay.
        let half = 3.5 * value.chars().count() as f64;
        if x - half >= free_from {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
                Escaped(value),
                y = bottom + 19.0
            );
            free_from = x + half + 8.0;
        }
    }
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
         <text class=\"axis-name\" x=\"{middle:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
        Escaped(name),
        middle = f64::midpoint(LEFT, right),
        y = bottom + 38.0,
    );
}

fn draw_line(svg: &mut String, sweep: &Sweep, layout: &Layout, axes: &Axes, line: &Line<'_>, look: Look) {
    let all: Vec<usize> = (0..sweep.axes.len()).collect();
    let places: Vec<(f64, f64, String)> = line
        .points
        .iter()
        .filter_map(|point| {
            let number = sweep.number(point)?;
            let tooltip = format!("{}: {}", sweep.values_of(point, &all), shown(sweep, number));
            Some((axes.x(point.at[layout.along]), axes.y(number), tooltip))
        })
        .collect();
    let _ = write!(svg, "<g class=\"{}\">", look.colour_class());
    let path: Vec<String> = places.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
    if path.len() > 1 {
        let _ = write!(
            svg,
            "<polyline class=\"line\"{} points=\"{}\"/>",
            look.dashes(),
            path.join(" ")
        );
    }
    for (x, y, tooltip) in &places {
        let _ = write!(
            svg,
            "<g class=\"mark\"><title>{}</title>{}</g>",
            Escaped(tooltip),
            look.mark(*x, *y)
        );
    }
    svg.push_str("</g>");
}

/// Writes each line's value at the right, near the line's end, without overlaps.
fn draw_names(svg: &mut String, sweep: &Sweep, layout: &Layout, axes: &Axes, block: &Block<'_>) {
    let mut names: Vec<(f64, f64, Look, &str)> = Vec::new();
    for (position, line) in block.lines.iter().enumerate() {
        let last = line
            .points
            .iter()
            .rev()
            .find_map(|point| Some((point, sweep.number(point)?)));
        if let (Some((point, number)), Some(value)) = (last, line.value) {
            let (x, y) = (axes.x(point.at[layout.along]), axes.y(number));
            names.push((y, x, Look::in_order(position), value));
        }
    }
    names.sort_by(|one, other| one.0.total_cmp(&other.0));
    let heights = spread(
        names.iter().map(|name| name.0),
        NAME_HEIGHT,
        TOP - 10.0,
        axes.bottom,
    );
    if let Some(between) = layout.between {
        let _ = write!(
            svg,
            "<text class=\"axis-name\" x=\"{x:.1}\" y=\"14\" text-anchor=\"end\">{}</text>",
            Escaped(&sweep.axes[between].name),
            x = axes.right + 40.0,
        );
    }
    for ((end, from, look, value), y) in names.into_iter().zip(heights) {
        let x = axes.right + 22.0;
        let _ = write!(
            svg,
            "<g class=\"{colour}\"><polyline class=\"leader\" points=\"{from:.1},{end:.1} {right:.1},{end:.1} \
             {to:.1},{y:.1}\"/>{mark}</g><text class=\"name\" x=\"{text:.1}\" y=\"{middle:.1}\">{}</text>",
            Escaped(value),
            colour = look.colour_class(),
            from = from + 7.0,
            right = axes.right + 2.0,
            to = x - 8.0,
            mark = look.mark(x, y),
            text = x + 11.0,
            middle = y + 4.0,
        );
    }
}
