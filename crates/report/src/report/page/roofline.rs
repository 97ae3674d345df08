//! The roofline as SVG: operations a nanosecond over operations a byte, both logarithmic.
//!
//! The roofs are lines with their names; the plain kernel, the chosen plan and the others differ by the shape of their
//! marks, and every mark has its plan and numbers as a tooltip.

use std::fmt::Write;

use super::chart::{self, Frame, Scale, TOP, Words};
use super::escape::Escaped;
use crate::evidence::{Roofline, RooflinePoint};
use crate::prefetch::Plan;
use crate::report::number;

/// The data of a figure.
pub(super) struct RooflineFormat {
    width: f64,
    height: f64,
    id: &'static str,
    class: &'static str,
}

/// For a wide page.
pub(super) const WIDE: RooflineFormat = RooflineFormat {
    width: 900.0,
    height: 360.0,
    id: "roofline-wide",
    class: "wide",
};

/// For a phone.
pub(super) const NARROW: RooflineFormat = RooflineFormat {
    width: 340.0,
    height: 300.0,
    id: "roofline-narrow",
    class: "narrow",
};

/// The name of the ceiling.
const UNITS: &str = "units that compute";

/// The figure, or nothing where there are no points.
pub(super) fn figure(roofline: &Roofline, best: &Plan, format: &RooflineFormat) -> String {
    let is_shown = |point: &&RooflinePoint| point.intensity > 0.0 && point.rate > 0.0;
    let points: Vec<&RooflinePoint> = roofline.points.iter().filter(is_shown).collect();
    let known = roofline.bandwidth > 0.0 && roofline.operations_per_ns > 0.0;
    if points.is_empty() || !known {
        return String::new();
    }
    // The ridge, where both roofs meet, is always in the picture.
    let ridge = roofline.operations_per_ns / roofline.bandwidth;
    let intensities = points.iter().map(|point| point.intensity).chain([ridge]);
    let rates = points
        .iter()
        .map(|point| point.rate)
        .chain([roofline.operations_per_ns]);
    let frame = Frame {
        left: 62.0,
        top: TOP,
        right: format.width - 14.0,
        bottom: format.height - 48.0,
        horizontal: around(intensities, 3.0),
        vertical: around(rates, 1.6),
    };
    let title = "The plans under the roofs of the device";
    let words = Words::Titled(format.id, title, description(roofline, &points, best));
    let mut svg = chart::open(format.class, (format.width, format.height), words);
    let numbered = |scale| ticks(scale).into_iter().map(|tick| (tick, number::figures(tick)));
    frame.rows(&mut svg, numbered(frame.vertical));
    frame.columns(&mut svg, numbered(frame.horizontal), true);
    frame.names(
        &mut svg,
        "operations a second, in billions",
        "operations a byte of device memory",
    );
    let peak = roofline.operations_per_ns;
    let mut slopes = vec![(Slope::new(&frame, roofline.bandwidth, peak), "", "device memory")];
    slopes.extend(roofline.scattered_bandwidth.map(|scattered| {
        let slope = Slope::new(&frame, scattered, peak);
        (slope, " scattered", "scattered accesses")
    }));
    let (x, y) = (frame.right - 4.0, frame.y(peak) - 7.0);
    let mut taken = vec![Area::text((x, y), UNITS, true)];
    taken.extend(points.iter().map(|point| {
        let reach = if point.plan == *best { 13.0 } else { 8.0 };
        Area::around((frame.x(point.intensity), frame.y(point.rate)), reach)
    }));
    for (slope, class, _) in &slopes {
        slope.draw(&mut svg, &frame, class);
        taken.extend((0..=60).map(|step| Area::around(slope.at(&frame, f64::from(step) / 60.0), 2.0)));
    }
    for (slope, _, name) in &slopes {
        draw_name(&mut svg, &frame, slope, name, &mut taken);
    }
    let _ = write!(
        svg,
        "<text class=\"name over\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{UNITS}</text>"
    );
    // The plain kernel and the plan lie over the others.
    let mut order = points;
    order.sort_by_key(|point| (point.plan == *best, point.plan.is_none()));
    for point in order {
        draw_point(&mut svg, &frame, point, best);
    }
    svg.push_str("</svg>");
    svg
}

/// From the least to the greatest number, with room around them.
fn around(numbers: impl Iterator<Item = f64>, room: f64) -> Scale {
    let (least, greatest) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), number| {
        (least.min(number), greatest.max(number))
    });
    Scale {
        first: least / room,
        last: greatest * room,
        is_logarithmic: true,
        margin: 0.0,
    }
}

fn rate(rate: f64) -> String {
    format!("{} G/s", number::figures(rate))
}

/// The figure in words, for those who do not see it.
fn description(roofline: &Roofline, points: &[&RooflinePoint], best: &Plan) -> String {
    let of = |plan: &Plan, name: &str| {
        let point = points.iter().find(|point| point.plan == *plan)?;
        Some(format!(
            " {name} does {} operations at {} operations a byte.",
            rate(point.rate),
            number::figures(point.intensity)
        ))
    };
    let none = Plan::none();
    let plain = of(&none, "The plain kernel").unwrap_or_default();
    let chosen = if best.is_none() {
        None
    } else {
        of(best, "The plan")
    };
    format!(
        "Operations over operations a byte. Device memory delivers {} GB/s, the units that compute do {} operations.{plain}{}",
        number::figures(roofline.bandwidth),
        rate(roofline.operations_per_ns),
        chosen.unwrap_or_default()
    )
}

/// Powers of ten, and twice and five times each where there are few.
fn ticks(scale: Scale) -> Vec<f64> {
    let (first, last) = (scale.first.log10(), scale.last.log10());
    let steps: &[f64] = if last - first < 2.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let mut ticks = Vec::new();
    let mut decade = first.floor();
    while decade <= last {
        ticks.extend(steps.iter().map(|step| step * 10f64.powf(decade)));
        decade += 1.0;
    }
    ticks.retain(|tick| (scale.first..=scale.last).contains(tick));
    ticks
}

/// A roof: memory's slope up to the units' ceiling.
struct Slope {
    bandwidth: f64,
    peak: f64,
    /// Intensities where the slope enters the picture, at its left edge or at its bottom, and where it meets the ceiling.
    start: f64,
    ridge: f64,
}

impl Slope {
    fn new(frame: &Frame, bandwidth: f64, peak: f64) -> Slope {
        let (first, last) = (frame.horizontal.first, frame.horizontal.last);
        let start = first.max(frame.vertical.first / bandwidth);
        Slope {
            bandwidth,
            peak,
            start,
            ridge: (peak / bandwidth).clamp(start, last),
        }
    }

    /// A point of the slope, 0 at its start and 1 at the ridge.
    fn at(&self, frame: &Frame, share: f64) -> (f64, f64) {
        let intensity = self.start * (self.ridge / self.start).powf(share);
        (frame.x(intensity), frame.y(self.bandwidth * intensity))
    }

    fn draw(&self, svg: &mut String, frame: &Frame, class: &str) {
        let (start, ridge) = (self.at(frame, 0.0), self.at(frame, 1.0));
        let last = frame.horizontal.last;
        let _ = write!(
            svg,
            "<polyline class=\"roof{class}\" points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/>",
            start.0,
            start.1,
            ridge.0,
            ridge.1,
            frame.x(last),
            frame.y(self.peak.min(self.bandwidth * last)),
        );
    }
}

/// A part of the picture that something takes.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    /// Around a point.
    fn around((x, y): (f64, f64), reach: f64) -> Area {
        Area {
            left: x - reach,
            top: y - reach,
            right: x + reach,
            bottom: y + reach,
        }
    }

    /// Of a text whose baseline begins or ends at a point. A character of 13 px is 7 px wide on average.
    fn text((x, y): (f64, f64), text: &str, ends: bool) -> Area {
        let width = 7.0 * text.chars().count() as f64;
        Area {
            left: if ends { x - width } else { x },
            top: y - 12.0,
            right: if ends { x } else { x + width },
            bottom: y + 4.0,
        }
    }

    fn meets(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn is_within(&self, frame: &Frame) -> bool {
        self.left >= frame.left + 2.0
            && self.right <= frame.right
            && self.top >= frame.top - 14.0
            && self.bottom <= frame.bottom - 2.0
    }
}

/// Writes a slope's name beside it, with its bandwidth if there is room, where nothing else is. If there is no such place it is
/// left out: the text below the figure names all ceilings.
fn draw_name(svg: &mut String, frame: &Frame, slope: &Slope, name: &str, taken: &mut Vec<Area>) {
    let value = format!("{} GB/s", number::figures(slope.bandwidth));
    // First in the middle of the slope, where it is clearest whose name it is.
    let shares = [0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2, 0.9, 0.1];
    for value in [Some(value.as_str()), None] {
        let text = value.map_or(name.to_owned(), |value| format!("{name} {value}"));
        for (share, ends) in shares.iter().flat_map(|share| [(share, true), (share, false)]) {
            let (x, y) = slope.at(frame, *share);
            let place = if ends {
                (x - 9.0, y - 3.0)
            } else {
                (x + 9.0, y + 13.0)
            };
            let area = Area::text(place, &text, ends);
            if !area.is_within(frame) || taken.iter().any(|other| other.meets(&area)) {
                continue;
            }
            let anchor = if ends { "end" } else { "start" };
            let value = value.map_or(String::new(), |value| {
                format!(" <tspan class=\"value\">{value}</tspan>")
            });
            let _ = write!(
                svg,
                "<text class=\"name over\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{name}{value}</text>",
                place.0, place.1
            );
            taken.push(area);
            return;
        }
    }
}

/// The ceilings in a sentence.
pub(super) fn ceilings(roofline: &Roofline) -> String {
    let scattered = roofline.scattered_bandwidth.map_or(String::new(), |scattered| {
        format!(
            "; device memory under scattered accesses, {} GB/s (dashed)",
            number::figures(scattered)
        )
    });
    format!(
        "The ceilings: device memory, {} GB/s{scattered}; the units that compute, {} operations.",
        number::figures(roofline.bandwidth),
        rate(roofline.operations_per_ns)
    )
}

fn draw_point(svg: &mut String, frame: &Frame, point: &RooflinePoint, best: &Plan) {
    let (x, y) = (frame.x(point.intensity), frame.y(point.rate));
    let tooltip = format!(
        "{}: {} at {} operations a byte",
        point.plan,
        rate(point.rate),
        number::figures(point.intensity)
    );
    let (class, mark) = if point.plan == *best && !best.is_none() {
        (
            "s5",
            format!(
                "<circle class=\"halo\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"11\"/><path class=\"solid\" d=\"M{x:.1} {:.1}l6 6l-6 \
                 6l-6 -6z\"/>",
                y - 6.0
            ),
        )
    } else if point.plan.is_none() {
        (
            "s0",
            format!(
                "<rect class=\"solid\" x=\"{:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\"/>",
                x - 5.5,
                y - 5.5
            ),
        )
    } else {
        (
            "s2 other",
            format!("<circle class=\"solid\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"),
        )
    };
    let _ = write!(
        svg,
        "<g class=\"mark {class}\"><title>{}</title>{mark}</g>",
        Escaped(tooltip)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roofline() -> Roofline {
        let mut roofline = Roofline {
            operations: 2e9,
            bandwidth: 4540.0,
            scattered_bandwidth: Some(2602.0),
            operations_per_ns: 30_000.0,
            points: Vec::new(),
        };
        roofline.add(Plan::none(), 1_230_000.0, 1.15e9);
        roofline.add("unroll:8".parse().expect("a plan"), 490_000.0, 1.15e9);
        roofline
    }

    #[test]
    fn the_figure_says_in_words_what_it_shows() {
        let best: Plan = "unroll:8".parse().expect("a plan");
        let svg = figure(&roofline(), &best, &WIDE);
        for expected in [
            "Device memory delivers 4,540 GB/s",
            "The plain kernel does 1,626 G/s operations",
            "The plan does 4,082 G/s operations",
            "scattered accesses",
            "<title>unroll:8: 4,082 G/s",
        ] {
            assert!(svg.contains(expected), "{expected}\n{svg}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn no_name_lies_on_a_mark_or_reaches_out_of_the_plot() {
        let number = |text: &str, name: &str| -> f64 {
            let (_, rest) = text.split_once(&format!("{name}=\"")).expect("an attribute");
            rest.split_once('"')
                .expect("its end")
                .0
                .parse()
                .expect("a number")
        };
        // The plans fill the figure, which leaves no room for a name.
        for (count, is_full) in [(3, false), (40, false), (4000, true)] {
            let mut roofline = roofline();
            for at in 0..count {
                let (x, y) = (f64::from(at % 61) / 61.0, f64::from(at % 67) / 67.0);
                let plan = format!("unroll:{}", 2 + at % 1000).parse().expect("a plan");
                roofline.add(plan, 10f64.powf(5.0 + 1.5 * y), 10f64.powf(8.0 + 2.0 * x));
            }
            for format in [&WIDE, &NARROW] {
                let svg = figure(&roofline, &Plan::none(), format);
                let names: Vec<&str> = svg.split("<text class=\"name over\"").skip(1).collect();
                assert!(
                    is_full || names.len() > 1 || count > 3,
                    "{count}: {}",
                    names.len()
                );
                for name in names.iter().filter(|name| !name.contains(UNITS)) {
                    let text = name.split_once('>').expect("a tag").1;
                    let text = text.split_once("</text>").expect("its end").0;
                    let shown = text
                        .replace(" <tspan class=\"value\">", " ")
                        .replace("</tspan>", "");
                    let place = (number(name, "x"), number(name, "y"));
                    let area = Area::text(place, &shown, name.contains("anchor=\"end\""));
                    assert!(area.left >= 62.0 && area.right <= format.width - 14.0, "{name}");
                    for circle in svg.split("<circle class=\"solid\"").skip(1) {
                        let dot = Area::around((number(circle, "cx"), number(circle, "cy")), 3.5);
                        assert!(!area.meets(&dot), "{name}");
                    }
                }
            }
        }
        assert_eq!(
            ceilings(&roofline()),
            "The ceilings: device memory, 4,540 GB/s; device memory under scattered accesses, 2,602 GB/s (dashed); the units \
             that compute, 30,000 G/s operations."
        );
    }

    #[test]
    fn without_points_there_is_no_figure() {
        let mut roofline = roofline();
        roofline.points.clear();
        assert_eq!(figure(&roofline, &Plan::none(), &NARROW), "");
    }

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let between = |first, last| ticks(around([first, last].into_iter(), 1.0));
        assert_eq!(between(3.2, 32.0), [5.0, 10.0, 20.0]);
        assert_eq!(between(1.0, 1000.0), [1.0, 10.0, 100.0, 1000.0]);
    }
}
