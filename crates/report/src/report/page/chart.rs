//! What all charts are drawn with, as SVG: a frame with two axes, lines with marks, names at their ends.
//!
//! A line differs from the others in colour, in the shape of its marks, in its dashes, and by its name at its end, so
//! that colour alone is never needed. Every mark has its numbers as a tooltip; a table below the chart has the same as text.

use std::fmt::Write;

use super::escape::Escaped;
use super::look::{Look, spread};

/// Height that a name at a line's end takes.
pub(in crate::report) const NAME_HEIGHT: f64 = 19.0;
/// Above the plot, for the vertical axis's name, and below it, for the numbers and name of the other one.
pub(in crate::report) const TOP: f64 = 30.0;
pub(in crate::report) const BELOW: f64 = 44.0;

/// Which numbers an axis shows.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Scale {
    pub first: f64,
    pub last: f64,
    pub is_logarithmic: bool,
    /// Pixels at both ends that show none.
    pub margin: f64,
}

impl Scale {
    /// Where a number lies between the ends.
    fn share(&self, number: f64) -> f64 {
        let place = |number: f64| {
            if self.is_logarithmic {
                number.log2()
            } else {
                number
            }
        };
        let (first, last) = (place(self.first), place(self.last));
        match last > first {
            true => ((place(number) - first) / (last - first)).clamp(0.0, 1.0),
            false => 0.5,
        }
    }

    /// From 0 to a round number above the highest one, and the step between its numbers.
    pub(crate) fn from_zero(highest: f64) -> (Scale, f64) {
        let step = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
            .into_iter()
            .find(|step| highest / step <= 6.0)
            .unwrap_or(highest / 6.0);
        let scale = Scale {
            first: 0.0,
            // At least a tenth of a step above the highest point, so that its mark is not cut.
            last: step * ((highest + 0.1 * step) / step).ceil(),
            is_logarithmic: false,
            margin: 0.0,
        };
        (scale, step)
    }
}

/// What a drawing says to those who do not see it.
pub(in crate::report) enum Words<'w> {
    Label(String),
    /// A title and a description, with an id that no other drawing of the page has.
    Titled(&'w str, &'w str, String),
}

/// A point of a line.
pub(in crate::report) struct Marked {
    pub at: (f64, f64),
    pub tooltip: String,
    /// It is circled.
    pub is_chosen: bool,
}

/// The name at a line's end.
pub(in crate::report) struct EndName<'n> {
    pub name: &'n str,
    pub value: Option<String>,
    pub look: Look,
    pub is_bold: bool,
    /// The line's last point, and the height that the name would have if it were alone.
    pub from: (f64, f64),
    pub height: f64,
}

/// Where the plot lies on the drawing, and which numbers it shows.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub horizontal: Scale,
    pub vertical: Scale,
}

impl Frame {
    pub(crate) fn x(&self, number: f64) -> f64 {
        let margin = self.horizontal.margin;
        self.left + margin + self.horizontal.share(number) * (self.right - self.left - 2.0 * margin)
    }

    pub(crate) fn y(&self, number: f64) -> f64 {
        self.bottom - self.vertical.share(number) * (self.bottom - self.top)
    }

    /// A line across the plot.
    pub(crate) fn across(&self, svg: &mut String, class: &str, number: f64) {
        let (left, right, y) = (self.left, self.right, self.y(number));
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        );
    }

    /// The lines and numbers of the vertical axis.
    pub(crate) fn rows(&self, svg: &mut String, ticks: impl IntoIterator<Item = (f64, String)>) {
        for (number, text) in ticks {
            self.across(svg, "grid", number);
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{text}</text>",
                x = self.left - 6.0,
                y = self.y(number) + 4.0,
            );
        }
    }

    /// The numbers of the horizontal axis, with lines through the plot where it is a grid. What would touch the number before
    /// is left out; its tick stays.
    pub(crate) fn columns(
        &self,
        svg: &mut String,
        ticks: impl IntoIterator<Item = (f64, String)>,
        is_grid: bool,
    ) {
        let (class, from, to) = match is_grid {
            true => ("grid", self.top, self.bottom),
            false => ("axis-tick", self.bottom, self.bottom + 5.0),
        };
        let mut free_from = f64::NEG_INFINITY;
        for (number, text) in ticks {
            let x = self.x(number);
            let _ = write!(
                svg,
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from}\" y2=\"{to}\"/>"
            );
            let half = 3.5 * text.chars().count() as f64;
            if is_grid || x - half >= free_from {
                let _ = write!(
                    svg,
                    "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
                    Escaped(text),
                    y = self.bottom + 19.0,
                );
                free_from = x + half + 8.0;
            }
        }
    }

    /// The axis at the bottom, and the names of both.
    pub(crate) fn names(&self, svg: &mut String, vertical: &str, horizontal: &str) {
        let (left, right, bottom) = (self.left, self.right, self.bottom);
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"axis-name\" x=\"4\" y=\"14\">{}</text>\
             <text class=\"axis-name\" x=\"{middle:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
            Escaped(vertical),
            Escaped(horizontal),
            middle = f64::midpoint(left, right),
            y = bottom + 38.0,
        );
    }

    /// A line through its points.
    pub(crate) fn line(&self, svg: &mut String, look: Look, is_bold: bool, points: &[Marked]) {
        let bold = if is_bold { " best" } else { "" };
        let _ = write!(svg, "<g class=\"{}{bold}\">", look.colour_class());
        if points.len() > 1 {
            let path: Vec<String> = points
                .iter()
                .map(|Marked { at: (x, y), .. }| format!("{x:.1},{y:.1}"))
                .collect();
            let (dashes, path) = (look.dashes(), path.join(" "));
            let _ = write!(svg, "<polyline class=\"line\"{dashes} points=\"{path}\"/>");
        }
        for Marked {
            at: (x, y),
            tooltip,
            is_chosen,
        } in points
        {
            if *is_chosen {
                let _ = write!(
                    svg,
                    "<circle class=\"halo\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"10\"/>"
                );
            }
            let _ = write!(
                svg,
                "<g class=\"mark\"><title>{}</title>{}</g>",
                Escaped(tooltip),
                look.mark(*x, *y)
            );
        }
        svg.push_str("</g>");
    }

    /// Names at the right, in the order of their heights, without overlaps.
    pub(crate) fn end_names(&self, svg: &mut String, mut names: Vec<EndName<'_>>) {
        names.sort_by(|one, other| one.height.total_cmp(&other.height));
        let heights = names.iter().map(|name| name.height);
        let heights = spread(heights, NAME_HEIGHT, self.top - 10.0, self.bottom);
        for (name, y) in names.into_iter().zip(heights) {
            let x = self.right + 22.0;
            let value = name.value.map_or(String::new(), |value| {
                format!(" <tspan class=\"value\">{value}</tspan>")
            });
            let (from, end) = name.from;
            let _ = write!(
                svg,
                "<g class=\"{colour}\"><polyline class=\"leader\" points=\"{from:.1},{end:.1} {right:.1},{end:.1} \
                 {to:.1},{y:.1}\"/>{mark}</g>\
                 <text class=\"name{bold}\" x=\"{text:.1}\" y=\"{middle:.1}\">{}{value}</text>",
                Escaped(name.name),
                colour = name.look.colour_class(),
                from = from + 7.0,
                right = self.right + 2.0,
                to = x - 8.0,
                mark = name.look.mark(x, y),
                bold = if name.is_bold { " best" } else { "" },
                text = x + 11.0,
                middle = y + 4.0,
            );
        }
    }
}

/// The beginning of a drawing of this size.
pub(in crate::report) fn open(class: &str, (width, height): (f64, f64), words: Words<'_>) -> String {
    let (attribute, inside) = match words {
        Words::Label(label) => (format!("aria-label=\"{}\"", Escaped(label)), String::new()),
        Words::Titled(id, title, description) => (
            format!("aria-labelledby=\"{id}-title {id}-description\""),
            format!(
                "<title id=\"{id}-title\">{}</title><desc id=\"{id}-description\">{}</desc>",
                Escaped(title),
                Escaped(description)
            ),
        ),
    };
    format!(
        "<svg class=\"figure {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" {attribute} \
         xmlns=\"http://www.w3.org/2000/svg\">{inside}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_leaves_room_above_the_highest_point() {
        let scale = |highest| {
            let (scale, step) = Scale::from_zero(highest);
            (scale.last, step)
        };
        assert_eq!(scale(1.0), (1.25, 0.25));
        assert_eq!(scale(2.38), (2.5, 0.5));
        assert_eq!(scale(3.0), (3.5, 0.5));
        assert_eq!(scale(8.8), (10.0, 2.0));
        let (top, step) = scale(12_345.0);
        assert!(top > 12_345.0 && step > 0.0);
    }
}
