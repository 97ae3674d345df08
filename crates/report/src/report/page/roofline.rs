//! The roofline: operations a nanosecond over operations a byte, both logarithmic. The roofs are lines; the plain kernel, the chosen
//! plan and the others differ by the shape of their marks.

use super::chart::{Axis, Chart, Line, Point};
use super::look::Look;
use crate::evidence::{Roofline, RooflinePoint};
use crate::prefetch::Plan;
use crate::prefetch::plan::Mark;
use crate::report::number;

/// The figure, or nothing where there are no points.
pub(super) fn figure(roofline: &Roofline, best: &Plan) -> Option<Chart> {
    let is_shown = |point: &&RooflinePoint| point.intensity > 0.0 && point.rate > 0.0;
    let points: Vec<&RooflinePoint> = roofline.points.iter().filter(is_shown).collect();
    let (bandwidth, peak) = (roofline.bandwidth, roofline.operations_per_ns);
    if points.is_empty() || bandwidth <= 0.0 || peak <= 0.0 {
        return None;
    }
    // The ridge, where both roofs meet, is always in the picture.
    let intensities = points
        .iter()
        .map(|point| point.intensity)
        .chain([peak / bandwidth]);
    let rates = points.iter().map(|point| point.rate).chain([peak]);
    let horizontal = Axis::around("operations a byte of device memory", intensities, 3.0);
    let vertical = Axis::around("operations a second, in billions", rates, 1.6);
    let marked = |look, name: &str, is_marked: &dyn Fn(&Plan) -> bool| {
        let points = points.iter().filter(|point| is_marked(&point.plan));
        let points = points.map(|point| {
            let (rate, intensity) = (rate(point.rate), number::figures(point.intensity));
            let tooltip = format!("{}: {rate} at {intensity} operations a byte", point.plan);
            Point {
                is_chosen: point.plan == *best && !best.is_none(),
                ..Point::new((point.intensity, point.rate), tooltip)
            }
        });
        Line {
            points: points.collect(),
            ..Line::through(look, name, String::new(), &[])
        }
    };
    let alone = |colour, mark| Look::new(colour, Some(mark), None);
    // The plan and the plain kernel lie over the others.
    let mut lines = vec![
        marked(alone(5, Mark::Diamond), "the plan", &|plan| {
            plan == best && !best.is_none()
        }),
        marked(alone(0, Mark::Square), "plain kernel", &Plan::is_none),
        marked(alone(2, Mark::Circle), "other plans", &|plan| {
            plan != best && !plan.is_none()
        }),
    ];
    lines.retain(|line| !line.points.is_empty());
    // A slope enters the picture at its left edge or at its bottom, and ends where it meets the ceiling.
    let ((first, last), (bottom, _)) = (horizontal.ends(), vertical.ends());
    let slope = |look, name, bandwidth: f64| {
        let start = first.max(bottom / bandwidth);
        let ridge = (peak / bandwidth).clamp(start, last);
        let value = format!("{} GB/s", number::figures(bandwidth));
        Line::through(look, name, value, &[start, ridge].map(|x| (x, bandwidth * x)))
    };
    lines.push(slope(Look::ROOF, "device memory", bandwidth));
    let scattered = roofline.scattered_bandwidth;
    lines.extend(scattered.map(|scattered| slope(Look::PLAIN, "scattered accesses", scattered)));
    let ceiling = [(peak / bandwidth, peak), (f64::INFINITY, peak)];
    lines.push(Line::through(
        Look::CEILING,
        "units that compute",
        rate(peak),
        &ceiling,
    ));
    Some(Chart {
        label: description(roofline, &points, best),
        horizontal,
        vertical,
        lines,
        heading: None,
    })
}

fn rate(rate: f64) -> String {
    format!("{} G/s", number::figures(rate))
}

/// The figure in words, for those who do not see it.
fn description(roofline: &Roofline, points: &[&RooflinePoint], best: &Plan) -> String {
    let of = |plan: &Plan, name: &str| {
        let point = points.iter().find(|point| point.plan == *plan);
        point.map_or(String::new(), |point| {
            let (rate, intensity) = (rate(point.rate), number::figures(point.intensity));
            format!(" {name} does {rate} operations at {intensity} operations a byte.")
        })
    };
    let chosen = if best.is_none() {
        String::new()
    } else {
        of(best, "The plan")
    };
    format!(
        "The plans under the roofs of the device: operations over operations a byte. Device memory delivers {} GB/s, the units \
         that compute do {} operations.{}{chosen}",
        number::figures(roofline.bandwidth),
        rate(roofline.operations_per_ns),
        of(&Plan::none(), "The plain kernel"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::chart::NARROW;

    #[test]
    fn the_figure_says_in_words_what_it_shows() {
        let mut roofline = Roofline {
            operations: 2e9,
            bandwidth: 4540.0,
            scattered_bandwidth: Some(2602.0),
            operations_per_ns: 30_000.0,
            points: Vec::new(),
        };
        let best: Plan = "unroll:8".parse().expect("a plan");
        assert!(figure(&roofline, &best).is_none());
        roofline.add(Plan::none(), 1_230_000.0, 1.15e9);
        roofline.add(best.clone(), 490_000.0, 1.15e9);
        let chart = figure(&roofline, &best).expect("points");
        let (svg, legend) = (chart.draw(&NARROW), chart.legend());
        for expected in [
            "Device memory delivers 4,540 GB/s",
            "The plain kernel does 1,626 G/s operations",
            "The plan does 4,082 G/s operations",
            "<title>unroll:8: 4,082 G/s",
        ] {
            assert!(svg.contains(expected), "{expected}\n{svg}");
        }
        for expected in [
            "device memory",
            "4,540 GB/s",
            "scattered accesses",
            "2,602 GB/s",
            "30,000 G/s",
            "plain kernel",
        ] {
            assert!(legend.contains(expected), "{expected}\n{legend}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
