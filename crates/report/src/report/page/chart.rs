//! All charts with two axes, as SVG: who has the data says what the lines are, and this file places and draws them.
//!
//! A line differs from the others in colour, in the shape of its marks, in its dashes, and by its name at its end or in the
//! legend, so that colour alone is never needed. Every mark has its numbers as a tooltip; a table below has the same as text.

use std::fmt::Write;

use super::escape::Escaped;
use super::look::{Look, spread};

/// What a drawing has room for: its class, its width, the plot's least height, and whether names stand at the lines' ends.
pub(in crate::report) struct Size(&'static str, f64, f64, bool);

/// For a wide page, for a phone, for one of several beside each other, and for a document.
pub(in crate::report) const WIDE: Size = Size("wide", 900.0, 340.0, true);
pub(in crate::report) const NARROW: Size = Size("narrow", 340.0, 260.0, false);
pub(in crate::report) const SMALL: Size = Size("small", 340.0, 200.0, false);
pub(in crate::report) const DRAWING: Size = Size("drawing", 860.0, 380.0, true);

/// Where the plot begins; what is below it; the height of a name and the least distance between numbers.
const LEFT: f64 = 64.0;
const TOP: f64 = 30.0;
const BELOW: f64 = 44.0;
const NAME_HEIGHT: f64 = 19.0;

/// The numbers of an axis.
pub(in crate::report) struct Axis {
    name: String,
    first: f64,
    last: f64,
    is_logarithmic: bool,
    /// Lines across the plot at its ticks.
    is_grid: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// With these ticks, from the first to the last.
    pub(in crate::report) fn of(name: &str, ticks: Vec<(f64, String)>, is_logarithmic: bool) -> Axis {
        let numbers = || ticks.iter().map(|(number, _)| *number);
        Axis {
            name: name.to_owned(),
            first: numbers().fold(f64::INFINITY, f64::min),
            last: numbers().fold(f64::NEG_INFINITY, f64::max),
            is_logarithmic,
            is_grid: false,
            ticks,
        }
    }

    /// From 0 to a round number, at least a tenth of a step above the highest one, so that its mark is not cut.
    pub(in crate::report) fn from_zero(name: &str, highest: f64, unit: &str) -> Axis {
        let highest = highest.max(1e-6);
        let step = round_step(highest, 6.0);
        let steps = ((highest + 0.1 * step) / step).ceil() as u32;
        let tick = |number| {
            // Without the last digits that come of 0.1 and its like.
            let tick = (step * f64::from(number) * 1e9).round() / 1e9;
            (tick, format!("{tick}{unit}"))
        };
        Axis {
            is_grid: true,
            ..Axis::of(name, (0..=steps).map(tick).collect(), false)
        }
    }

    /// Logarithmic, from the least to the greatest number with room around them; its ticks are powers of ten, and twice and five
    /// times each where there are few.
    pub(in crate::report) fn around(name: &str, numbers: impl Iterator<Item = f64>, room: f64) -> Axis {
        let (least, greatest) = numbers
            .fold((f64::INFINITY, 0.0), |(least, greatest): (f64, f64), number| {
                (least.min(number), greatest.max(number))
            });
        let (first, last) = (least / room, greatest * room);
        let steps: &[f64] = match last / first < 100.0 {
            true => &[1.0, 2.0, 5.0],
            false => &[1.0],
        };
        let decades = first.log10().floor() as i32..=last.log10() as i32;
        let ticks = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
        let ticks = ticks.filter(|tick| (first..=last).contains(tick));
        let ticks = ticks.map(|tick| (tick, crate::number::figures(tick)));
        Axis {
            first,
            last,
            is_grid: true,
            ..Axis::of(name, ticks.collect(), true)
        }
    }

    pub(in crate::report) fn ends(&self) -> (f64, f64) {
        (self.first, self.last)
    }

    /// Where a number lies between the ends.
    fn share(&self, number: f64) -> f64 {
        let place = |number: f64| match self.is_logarithmic {
            true => number.log2(),
            false => number,
        };
        let (first, last) = (place(self.first), place(self.last));
        match last > first {
            true => ((place(number) - first) / (last - first)).clamp(0.0, 1.0),
            false => 0.5,
        }
    }
}

/// A round step that divides a length into few parts.
pub(super) fn round_step(length: f64, most: f64) -> f64 {
    let power = 10f64.powf((length / most).log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| length / step <= most)
        .unwrap_or(10.0 * power)
}

/// A point of a line, by its numbers. An infinite one is at the edge of the plot.
pub(in crate::report) struct Point {
    pub at: (f64, f64),
    pub tooltip: String,
    /// It is circled.
    pub is_chosen: bool,
}

impl Point {
    pub(in crate::report) fn new(at: (f64, f64), tooltip: String) -> Point {
        Point {
            at,
            tooltip,
            is_chosen: false,
        }
    }
}

/// Points that belong together, joined or not as the look says.
pub(in crate::report) struct Line {
    pub look: Look,
    pub name: String,
    pub value: String,
    pub is_bold: bool,
    /// The number beside which the name stands.
    pub height: f64,
    pub points: Vec<Point>,
}

impl Line {
    /// A line through these, whose points are not marked.
    pub(in crate::report) fn through(look: Look, name: &str, value: String, points: &[(f64, f64)]) -> Line {
        Line {
            look,
            name: name.to_owned(),
            value,
            is_bold: false,
            height: points.last().map_or(0.0, |point| point.1),
            points: points.iter().map(|&at| Point::new(at, String::new())).collect(),
        }
    }

    /// A line across the plot.
    pub(in crate::report) fn across(look: Look, name: &str, height: f64) -> Line {
        let ends = [f64::NEG_INFINITY, f64::INFINITY].map(|x| (x, height));
        Line::through(look, name, String::new(), &ends)
    }
}

pub(in crate::report) struct Chart {
    /// The picture in words, for those who do not see it.
    pub label: String,
    pub horizontal: Axis,
    pub vertical: Axis,
    /// The first lies over the others.
    pub lines: Vec<Line>,
    /// What stands above the names at the lines' ends; none where only the legend has names.
    pub heading: Option<String>,
}

impl Chart {
    /// For wide and for narrow pages, with the names for those that have no room for them.
    pub(in crate::report) fn on_any_page(&self) -> String {
        format!("{}\n{}\n{}", self.draw(&WIDE), self.draw(&NARROW), self.legend())
    }

    pub(in crate::report) fn draw(&self, &Size(class, width, height, has_names): &Size) -> String {
        let heading = self.heading.as_ref().filter(|_| has_names);
        let named: Vec<&Line> = heading.iter().flat_map(|_| &self.lines).collect();
        let longest = named
            .iter()
            .map(|line| line.name.chars().count() + line.value.chars().count());
        // The mark, the line that leads there, and the longest name, set bold.
        let names = longest.max().map_or(0.0, |longest| 48.0 + 7.7 * longest as f64);
        let right = width - names - 10.0;
        let bottom = TOP + height.max(NAME_HEIGHT * named.len() as f64);
        let margin = if self.horizontal.is_grid { 0.0 } else { 14.0 };
        let x = |number: f64| match number {
            f64::NEG_INFINITY => LEFT,
            f64::INFINITY => right,
            _ => LEFT + margin + self.horizontal.share(number) * (right - LEFT - 2.0 * margin),
        };
        let y = |number: f64| bottom - self.vertical.share(number) * (bottom - TOP);
        let (whole, label) = (bottom + BELOW, Escaped(&self.label));
        let mut svg = format!(
            "<svg class=\"figure {class}\" viewBox=\"0 0 {width} {whole}\" role=\"img\" aria-label=\"{label}\" \
             xmlns=\"http://www.w3.org/2000/svg\">"
        );
        for (number, text) in &self.vertical.ticks {
            let (y, end) = (y(*number), LEFT - 6.0);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right:.1}\"/>\
                 <text class=\"tick\" x=\"{end}\" y=\"{0:.1}\" text-anchor=\"end\">{text}</text>",
                y + 4.0
            );
        }
        let (class, from, to) = match self.horizontal.is_grid {
            true => ("grid", TOP, bottom),
            false => ("axis", bottom, bottom + 5.0),
        };
        let mut free_from = f64::NEG_INFINITY;
        for (number, text) in &self.horizontal.ticks {
            let x = x(*number);
            let _ = write!(svg, "<path class=\"{class}\" d=\"M{x:.1} {from}V{to}\"/>");
            // What would touch the number before is left out; its tick stays.
            let half = 3.5 * text.chars().count() as f64;
            if x - half >= free_from {
                let (text, y) = (Escaped(text), bottom + 19.0);
                let _ = write!(
                    svg,
                    "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>"
                );
                free_from = x + half + 8.0;
            }
        }
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{LEFT} {bottom}H{right:.1}\"/><text class=\"axis-name\" x=\"4\" y=\"14\">{}</text>\
             <text class=\"axis-name\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            Escaped(&self.vertical.name),
            f64::midpoint(LEFT, right),
            bottom + 38.0,
            Escaped(&self.horizontal.name),
        );
        for line in self.lines.iter().rev() {
            line.draw(&mut svg, |(horizontal, vertical)| (x(horizontal), y(vertical)));
        }
        if let Some(heading) = heading {
            let (x, heading) = (right + 33.0, Escaped(heading));
            let _ = write!(
                svg,
                "<text class=\"axis-name\" x=\"{x:.1}\" y=\"14\">{heading}</text>"
            );
        }
        // In the order of their heights, without overlaps.
        let mut named: Vec<(f64, &Line)> = named.into_iter().map(|line| (y(line.height), line)).collect();
        named.sort_by(|one, other| one.0.total_cmp(&other.0));
        let heights = spread(named.iter().map(|name| name.0), NAME_HEIGHT, TOP - 10.0, bottom);
        for ((_, line), height) in named.into_iter().zip(heights) {
            let end = line.points.last().map_or((f64::INFINITY, 0.0), |point| point.at);
            let (from, end, edge, at) = ((x(end.0) + 7.0).min(right), y(end.1), right + 2.0, right + 22.0);
            let (to, name_at, below) = (at - 8.0, at + 11.0, height + 4.0);
            let mark = match line.look.mark(at, height) {
                none if none.is_empty() => line.look.stroke(&format!("M{to:.1} {height:.1}h16")),
                mark => mark,
            };
            let (class, bold, name, value) = (
                line.look.class(),
                line.bold(),
                Escaped(&line.name),
                Escaped(&line.value),
            );
            let _ = write!(
                svg,
                "<g class=\"{class}\"><path class=\"leader\" d=\"M{from:.1} {end:.1}H{edge:.1}L{to:.1} {height:.1}\"/>{mark}</g>\
                 <text class=\"name{bold}\" x=\"{name_at:.1}\" y=\"{below:.1}\">{name} <tspan class=\"value\">{value}</tspan></text>",
            );
        }
        svg.push_str("</svg>");
        svg
    }

    /// The lines' names as a list.
    pub(in crate::report) fn legend(&self) -> String {
        let mut list = "<ul class=\"legend\">\n".to_owned();
        let heading = self.heading.iter().filter(|heading| !heading.is_empty());
        list.extend(heading.map(|heading| format!("<li class=\"value\">{}</li>\n", Escaped(heading))));
        for Line {
            look, name, value, ..
        } in self.lines.iter().filter(|line| !line.name.is_empty())
        {
            let (class, stroke, mark) = (look.class(), look.stroke("M0 7H40"), look.mark(20.0, 7.0));
            let (name, value) = (Escaped(name), Escaped(value));
            let _ = writeln!(
                list,
                "<li><svg viewBox=\"0 0 40 14\" class=\"{class}\" aria-hidden=\"true\">{stroke}{mark}</svg>{name}\
                 <span class=\"value\">{value}</span></li>"
            );
        }
        list.push_str("</ul>\n");
        list
    }
}

impl Line {
    fn bold(&self) -> &'static str {
        if self.is_bold { " best" } else { "" }
    }

    fn draw(&self, svg: &mut String, place: impl Fn((f64, f64)) -> (f64, f64)) {
        let _ = write!(svg, "<g class=\"{}{}\">", self.look.class(), self.bold());
        let mut path = String::new();
        for (number, point) in self.points.iter().enumerate() {
            let (x, y) = place(point.at);
            let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
        }
        svg.push_str(&self.look.stroke(&path));
        for Point {
            at,
            tooltip,
            is_chosen,
        } in self.points.iter().filter(|point| !point.tooltip.is_empty())
        {
            let (x, y) = place(*at);
            if *is_chosen {
                let _ = write!(
                    svg,
                    "<circle class=\"halo\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"10\"/>"
                );
            }
            let (tooltip, mark) = (Escaped(tooltip), self.look.mark(x, y));
            let _ = write!(svg, "<g class=\"mark\"><title>{tooltip}</title>{mark}</g>");
        }
        svg.push_str("</g>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_few_and_leave_room_above_the_highest_point() {
        let shown = |axis: Axis| -> Vec<String> { axis.ticks.into_iter().map(|(_, text)| text).collect() };
        let from_zero = |highest| shown(Axis::from_zero("", highest, "×"));
        assert_eq!(
            from_zero(1.0),
            ["0×", "0.2×", "0.4×", "0.6×", "0.8×", "1×", "1.2×"]
        );
        assert_eq!(from_zero(3.0).last().expect("a tick"), "3.5×");
        assert_eq!(from_zero(8.8), ["0×", "2×", "4×", "6×", "8×", "10×"]);
        let (_, top) = Axis::from_zero("", 12_345.0, "").ends();
        assert!(top > 12_345.0);
        let around = |first, last| shown(Axis::around("", [first, last].into_iter(), 1.0));
        assert_eq!(around(3.2, 32.0), ["5", "10", "20"]);
        assert_eq!(around(1.0, 1000.0), ["1", "10", "100", "1,000"]);
        for (length, expected) in [(1000.0, 200.0), (5100.0, 2000.0), (37.0, 10.0), (260.0, 100.0)] {
            assert_eq!(round_step(length, 5.0), expected, "{length}");
        }
    }
}
