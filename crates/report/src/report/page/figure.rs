//! The article's figure: speedup by distance, a line per strategy.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::chart::{self, BELOW, EndName, Frame, Marked, NAME_HEIGHT, Scale, TOP, Words};
use super::look::Looks;
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
    let (vertical, step) = Scale::from_zero(highest);
    let least_height = if format.names > 0.0 {
        NAME_HEIGHT * series.len() as f64
    } else {
        0.0
    };
    let frame = Frame {
        left: 48.0,
        top: TOP,
        right: format.width - format.names - 10.0,
        bottom: TOP + format.plot_height.max(least_height),
        horizontal: Scale {
            first: f64::from(first),
            last: f64::from(last),
            is_logarithmic: true,
            margin: 14.0,
        },
        vertical,
    };
    let words = Words::Titled(format.id, title, description(series));
    let mut svg = chart::open(format.class, (format.width, frame.bottom + BELOW), words);
    let rows = (0..).map(|number| f64::from(number) * step);
    let rows = rows.take_while(|tick| *tick <= vertical.last + 1e-9);
    frame.rows(&mut svg, rows.map(|tick| (tick, format!("{tick}×"))));
    frame.across(&mut svg, "plain", 1.0);
    let columns = distances
        .iter()
        .map(|&distance| (f64::from(distance), distance.to_string()));
    frame.columns(&mut svg, columns, false);
    frame.names(
        &mut svg,
        "speedup over the plain kernel",
        "distance: iterations ahead of the use",
    );
    if let Some(other) = elsewhere {
        frame.across(&mut svg, "elsewhere", other.speedup);
    }
    let is_best = |line: &Series| line.points.iter().any(|point| point.plan == *best);
    let place = |point: &Point| (frame.x(f64::from(point.distance)), frame.y(point.speedup));
    // The best line is drawn last, over the others.
    let mut order = series.to_vec();
    order.sort_by_key(|line| is_best(line));
    for line in order {
        let marked = line.points.iter().map(|point| Marked {
            at: place(point),
            tooltip: format!("{}: {}", point.plan, number::speedup(point.speedup)),
            is_chosen: point.plan == *best,
        });
        frame.line(
            &mut svg,
            looks.look(line),
            is_best(line),
            &marked.collect::<Vec<_>>(),
        );
    }
    let elsewhere = elsewhere.map(|other| {
        let (groups, group) = (number::grouped(other.geometry.groups), other.geometry.group);
        let name = format!("plain kernel as {groups} × {group}");
        ("elsewhere-name", name, frame.y(other.speedup))
    });
    let names: Vec<(&str, String, f64)> = elsewhere
        .into_iter()
        .chain([("plain-name", "plain kernel".to_owned(), frame.y(1.0))])
        .collect();
    let marks: Vec<(f64, f64)> = points().map(place).collect();
    draw_names_across(&mut svg, &frame, &marks, &names);
    if format.names > 0.0 {
        let names = series.iter().map(|line| EndName {
            name: &line.label,
            value: Some(number::speedup(line.best().speedup)),
            look: looks.look(line),
            is_bold: is_best(line),
            from: line.points.last().map_or((frame.right, frame.bottom), place),
            height: frame.y(line.best().speedup),
        });
        frame.end_names(&mut svg, names.collect());
    }
    svg.push_str("</svg>");
    svg
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

/// Writes the names of the lines across the figure beside them, each where the fewest marks and no other name lie.
fn draw_names_across(svg: &mut String, frame: &Frame, marks: &[(f64, f64)], names: &[(&str, String, f64)]) {
    const CHARACTER: f64 = 7.2;
    const HEIGHT: f64 = 16.0;
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
        let (first, last) = (frame.left + 4.0, frame.right - 4.0 - width);
        let places = [line - 6.0, line + HEIGHT, line - 22.0]
            .map(|y| [first, last, f64::midpoint(first, last)].map(|x| (x, y)));
        let places = places.into_iter().flatten();
        let places = places.filter(|(_, y)| (frame.top..frame.bottom).contains(y));
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
}
