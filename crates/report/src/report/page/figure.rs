//! The article's figure as SVG: speedup by distance, a line per strategy.
//!
//! A line is told from the others by colour, by the shape of its marks, by its dashes, and by its name at its end, so
//! that colour alone is never needed. Every mark has its plan and number as a tooltip; the table below the figure has
//! the same numbers as text.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::escape::Escaped;
use super::look::{self, Looks};
use crate::prefetch::Plan;
use crate::report::PlainBest;
use crate::report::number;
use crate::report::series::{Point, Series};

/// The data of a figure.
pub(super) struct FigureFormat {
    /// Width of the drawing, in pixels at its natural size.
    pub width: f64,
    /// Height of the plot between its axes.
    pub plot_height: f64,
    /// Room at the right for the names of the lines; 0 for none.
    pub names: f64,
    /// Tells the ids of several figures on one page apart.
    pub id: &'static str,
    /// CSS class of the SVG element.
    pub class: &'static str,
}

/// Where the numbers lie on the drawing.
struct Axes {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    distances: Vec<u32>,
    /// Logarithms of the least and the greatest distance.
    ends: (f64, f64),
    highest: f64,
}

impl Axes {
    fn x(&self, distance: u32) -> f64 {
        let (first, last) = self.ends;
        let share = if last > first {
            (f64::from(distance).log2() - first) / (last - first)
        } else {
            0.5
        };
        self.left + 14.0 + share * (self.right - self.left - 28.0)
    }

    fn y(&self, speedup: f64) -> f64 {
        self.bottom - (speedup / self.highest).clamp(0.0, 1.0) * (self.bottom - self.top)
    }
}

/// The figure of these lines, or nothing where there are no points. `best` is the plan whose mark is circled;
/// `elsewhere` is the plain kernel at its own best geometry, a line across the figure.
pub(super) fn speedup_by_distance(
    series: &[&Series],
    looks: &Looks,
    best: &Plan,
    elsewhere: Option<&PlainBest>,
    title: &str,
    format: &FigureFormat,
) -> String {
    let points = || series.iter().flat_map(|line| &line.points);
    let distances: BTreeSet<u32> = points().map(|point| point.distance).collect();
    let (Some(&first), Some(&last)) = (distances.first(), distances.last()) else {
        return String::new();
    };
    let highest = points()
        .map(|point| point.speedup)
        .filter(|speedup| speedup.is_finite())
        .fold(1.0, f64::max);
    let (highest, step) = scale(highest);
    let least_height = if format.names > 0.0 {
        NAME_HEIGHT * series.len() as f64
    } else {
        0.0
    };
    let axes = Axes {
        left: 48.0,
        top: 30.0,
        right: format.width - format.names - 10.0,
        bottom: 30.0 + format.plot_height.max(least_height),
        distances: distances.into_iter().collect(),
        ends: (f64::from(first).log2(), f64::from(last).log2()),
        highest,
    };
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg class=\"figure {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-description\" xmlns=\"http://www.w3.org/2000/svg\">\
         <title id=\"{id}-title\">{title}</title><desc id=\"{id}-description\">{description}</desc>",
        class = format.class,
        width = format.width,
        height = axes.bottom + 44.0,
        id = format.id,
        title = Escaped(title),
        description = Escaped(description(series)),
    );
    draw_axes(&mut svg, &axes, step);
    if let Some(other) = elsewhere {
        draw_elsewhere(&mut svg, &axes, other);
    }
    // The best line is drawn last, over the others.
    let mut order: Vec<&&Series> = series.iter().collect();
    order.sort_by_key(|line| line.points.iter().any(|point| point.plan == *best));
    for line in order {
        draw_line(&mut svg, &axes, line, looks, best);
    }
    let elsewhere = elsewhere.map(|other| {
        let (groups, group) = (number::grouped(other.geometry.groups), other.geometry.group);
        let name = format!("plain kernel as {groups} × {group}");
        ("elsewhere-name", name, axes.y(other.speedup))
    });
    let names: Vec<(&str, String, f64)> = elsewhere
        .into_iter()
        .chain([("plain-name", "plain kernel".to_owned(), axes.y(1.0))])
        .collect();
    draw_names_across(&mut svg, &axes, series, &names);
    if format.names > 0.0 {
        draw_names(&mut svg, &axes, series, looks, best);
    }
    svg.push_str("</svg>");
    svg
}

/// Height that a line's name takes.
const NAME_HEIGHT: f64 = 19.0;

/// The end of the vertical axis and the step between its numbers.
pub(in crate::report) fn scale(highest: f64) -> (f64, f64) {
    let step = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
        .into_iter()
        .find(|step| highest / step <= 6.0)
        .unwrap_or(highest / 6.0);
    // At least a tenth of a step above the highest point, so that its mark is not cut.
    (step * ((highest + 0.1 * step) / step).ceil(), step)
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

fn draw_axes(svg: &mut String, axes: &Axes, step: f64) {
    let Axes {
        left, right, bottom, ..
    } = *axes;
    let _ = write!(
        svg,
        "<text class=\"axis-name\" x=\"4\" y=\"14\">speedup over the plain kernel</text>"
    );
    let mut tick = 0.0;
    while tick <= axes.highest + 1e-9 {
        let y = axes.y(tick);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{x}\" y=\"{middle:.1}\" text-anchor=\"end\">{tick}×</text>",
            x = left - 6.0,
            middle = y + 4.0,
        );
        tick += step;
    }
    let plain = axes.y(1.0);
    let _ = write!(
        svg,
        "<line class=\"plain\" x1=\"{left}\" x2=\"{right}\" y1=\"{plain:.1}\" y2=\"{plain:.1}\"/>"
    );
    let mut free_from = f64::NEG_INFINITY;
    for &distance in &axes.distances {
        let x = axes.x(distance);
        let _ = write!(
            svg,
            "<line class=\"axis-tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{end}\"/>",
            end = bottom + 5.0
        );
        // Numbers that would touch the one before are left out; their ticks stay.
        if x >= free_from {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{distance}</text>",
                y = bottom + 19.0
            );
            free_from = x + 8.0 + 7.0 * distance.to_string().len() as f64;
        }
    }
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
         <text class=\"axis-name\" x=\"{middle:.1}\" y=\"{y}\" text-anchor=\"middle\">\
         distance: iterations ahead of the use</text>",
        middle = f64::midpoint(left, right),
        y = bottom + 38.0,
    );
}

/// The line of the plain kernel at another geometry.
fn draw_elsewhere(svg: &mut String, axes: &Axes, other: &PlainBest) {
    let y = axes.y(other.speedup);
    let _ = write!(
        svg,
        "<line class=\"elsewhere\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
        left = axes.left,
        right = axes.right,
    );
}

/// Writes the names of the lines across the figure beside them, each where the fewest marks and no other name lie.
fn draw_names_across(svg: &mut String, axes: &Axes, series: &[&Series], names: &[(&str, String, f64)]) {
    const CHARACTER: f64 = 7.2;
    const HEIGHT: f64 = 16.0;
    let marks: Vec<(f64, f64)> = series
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| (axes.x(point.distance), axes.y(point.speedup)))
        .collect();
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for (class, name, line) in names {
        let width = CHARACTER * name.chars().count() as f64;
        let covered = |&(x, y): &(f64, f64)| {
            let near = |&&(mark_x, mark_y): &&(f64, f64)| {
                (x - 9.0..x + width + 9.0).contains(&mark_x) && (y - 17.0..y + 9.0).contains(&mark_y)
            };
            let meets = |&&(other_x, other_y, other_width): &&(f64, f64, f64)| {
                x < other_x + other_width && other_x < x + width && (y - other_y).abs() < HEIGHT
            };
            (
                taken.iter().filter(meets).count(),
                marks.iter().filter(near).count(),
            )
        };
        let (first, last) = (axes.left + 4.0, axes.right - 4.0 - width);
        let places = [line - 6.0, line + HEIGHT, line - 22.0]
            .map(|y| [first, last, f64::midpoint(first, last)].map(|x| (x, y)));
        let places = places.into_iter().flatten();
        let places = places.filter(|(_, y)| (axes.top..axes.bottom).contains(y));
        let Some((x, y)) = places.min_by_key(covered) else {
            continue;
        };
        taken.push((x, y, width));
        let _ = write!(
            svg,
            "<text class=\"{class} over\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>"
        );
    }
}

fn draw_line(svg: &mut String, axes: &Axes, line: &Series, looks: &Looks, best: &Plan) {
    let look = looks.look(line);
    let emphasis = if line.points.iter().any(|point| point.plan == *best) {
        " best"
    } else {
        ""
    };
    let _ = write!(svg, "<g class=\"{}{emphasis}\">", look.colour_class());
    let place = |point: &Point| (axes.x(point.distance), axes.y(point.speedup));
    if line.points.len() > 1 {
        let path: Vec<String> = line
            .points
            .iter()
            .map(place)
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = write!(
            svg,
            "<polyline class=\"line\"{} points=\"{}\"/>",
            look.dashes(),
            path.join(" ")
        );
    }
    for point in &line.points {
        let (x, y) = place(point);
        if point.plan == *best {
            let _ = write!(
                svg,
                "<circle class=\"halo\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"10\"/>"
            );
        }
        let tooltip = format!("{}: {}", point.plan, number::speedup(point.speedup));
        let _ = write!(
            svg,
            "<g class=\"mark\"><title>{}</title>{}</g>",
            Escaped(tooltip),
            look.mark(x, y)
        );
    }
    svg.push_str("</g>");
}

/// Writes each line's name at the right with its best speedup, in the order of these, without overlaps.
fn draw_names(svg: &mut String, axes: &Axes, series: &[&Series], looks: &Looks, best: &Plan) {
    let mut names: Vec<(f64, &Series)> = series
        .iter()
        .map(|line| (axes.y(line.best().speedup), *line))
        .collect();
    names.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let heights = look::spread(
        names.iter().map(|&(y, _)| y),
        NAME_HEIGHT,
        axes.top - 10.0,
        axes.bottom,
    );
    for ((best_height, line), y) in names.into_iter().zip(heights) {
        let look = looks.look(line);
        let (last, end) = line.points.last().map_or((axes.right, best_height), |point| {
            (axes.x(point.distance), axes.y(point.speedup))
        });
        let x = axes.right + 22.0;
        let bold = if line.points.iter().any(|point| point.plan == *best) {
            " best"
        } else {
            ""
        };
        let _ = write!(
            svg,
            "<g class=\"{colour}\"><polyline class=\"leader\" points=\"{from:.1},{end:.1} {right:.1},{end:.1} \
             {to:.1},{y:.1}\"/>{mark}</g>\
             <text class=\"name{bold}\" x=\"{text:.1}\" y=\"{middle:.1}\">{label} \
             <tspan class=\"value\">{value}</tspan></text>",
            colour = look.colour_class(),
            from = last + 7.0,
            right = axes.right + 2.0,
            to = x - 8.0,
            mark = look.mark(x, y),
            text = x + 11.0,
            middle = y + 4.0,
            label = Escaped(&line.label),
            value = number::speedup(line.best().speedup),
        );
    }
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
    use crate::report::Geometry;

    fn line(label: &str, points: &[(u32, f64)]) -> Series {
        let point = |&(distance, speedup): &(u32, f64)| Point {
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
        let format = FigureFormat {
            width: 900.0,
            plot_height: 300.0,
            names: 200.0,
            id: "test",
            class: "wide",
        };
        let svg = speedup_by_distance(&all, &Looks::of(&lines), &Plan::none(), None, "test", &format);
        let heights: Vec<f64> = ["first", "second", "third", "fourth"]
            .map(|name| {
                let (before, _) = svg.split_once(&format!("\">{name} <tspan")).expect("its name");
                let (_, y) = before.rsplit_once("y=\"").expect("its height");
                y.split('"').next().expect("a number").parse().expect("a number")
            })
            .into();
        assert!(heights.is_sorted_by(|one, other| one < other), "{heights:?}");
    }

    #[test]
    fn names_across_the_figure_keep_off_each_other_and_off_marks() {
        // Marks along the plain kernel's line at its left and middle, and another line just above it.
        let lines = [line(
            "one",
            &[(1, 1.05), (2, 1.02), (4, 1.05), (8, 1.04), (32, 0.3)],
        )];
        let elsewhere = PlainBest {
            geometry: Geometry {
                groups: 16_384,
                group: 128,
            },
            parameters: Vec::new(),
            time_ns: 1.0,
            speedup: 1.03,
            between: None,
        };
        let format = FigureFormat {
            width: 340.0,
            plot_height: 260.0,
            names: 0.0,
            id: "test",
            class: "narrow",
        };
        let all: Vec<&Series> = lines.iter().collect();
        let looks = Looks::of(&lines);
        let svg = speedup_by_distance(&all, &looks, &Plan::none(), Some(&elsewhere), "test", &format);
        let place = |class: &str| {
            let (_, rest) = svg
                .split_once(&format!("<text class=\"{class} over\" x=\""))
                .expect("a name");
            let (x, rest) = rest.split_once("\" y=\"").expect("a height");
            let y = rest.split('"').next().expect("a number");
            (x.parse::<f64>().expect("x"), y.parse::<f64>().expect("y"))
        };
        let (one, other) = (place("plain-name"), place("elsewhere-name"));
        assert!(
            (one.1 - other.1).abs() >= 16.0 || (one.0 - other.0).abs() > 150.0,
            "{one:?} {other:?}"
        );
    }

    #[test]
    fn the_scale_leaves_room_above_the_highest_point() {
        assert_eq!(scale(1.0), (1.25, 0.25));
        assert_eq!(scale(2.38), (2.5, 0.5));
        assert_eq!(scale(3.0), (3.5, 0.5));
        assert_eq!(scale(8.8), (10.0, 2.0));
        let (top, step) = scale(12_345.0);
        assert!(top > 12_345.0 && step > 0.0);
    }
}
