//! Timelines of some sub-groups of the plain kernel and of the plan, in the middle of the launch.
//!
//! Each kernel is one drawing that fills any given width, so a wider one shows more detail: the zoom is a choice of widths
//! inside a scrolling frame, and needs no script.

use std::fmt::Write;

use super::escape::Escaped;
use super::put;
use crate::evidence::{Doing, Strip, Timeline};
use crate::report::detail::Detail;
use crate::report::number;

/// Units of a drawing's width: as fine as the closest look on a wide screen.
const UNITS: f64 = 16_000.0;

/// How many times as wide as its frame a drawing can be made. The page's style has a rule for each.
const ZOOMS: [u32; 4] = [1, 2, 4, 16];

/// Height of a strip, and from one to the next.
const STRIP: f64 = 24.0;
const PITCH: f64 = 36.0;

/// Steps of the time axis, at most.
const STEPS: f64 = 5.0;

/// Times of a closer look to each of these.
const MINOR: u32 = 5;

/// Iterations of one sub-group that are listed.
const LISTED: usize = 12;

fn called(plan: &str) -> &'static str {
    if plan == "none" {
        "plain kernel"
    } else {
        "with the plan"
    }
}

/// The section, or nothing where no sub-group was watched.
pub(super) fn section(page: &mut String, detail: &Detail) {
    let Some((_, first)) = detail.timelines.first() else {
        return;
    };
    let length = detail
        .timelines
        .iter()
        .map(|(_, timeline)| timeline.length_ns)
        .fold(f64::INFINITY, f64::min);
    if !(length.is_finite() && length > 0.0) {
        return;
    }
    page.push_str(
        "<section id=\"timeline\">\n<h2>Where the time of sub-groups goes</h2>\n<div class=\"panel\">\n<div \
         class=\"zooms\" role=\"group\" aria-label=\"Zoom\">",
    );
    for zoom in ZOOMS {
        let checked = if zoom == ZOOMS[0] { " checked" } else { "" };
        put(
            page,
            format_args!(
                "<input type=\"radio\" name=\"zoom\" id=\"zoom-{zoom}\"{checked}><label for=\"zoom-{zoom}\">{zoom}×</label>"
            ),
        );
    }
    page.push_str(
        "</div>\n<div class=\"strips\" tabindex=\"0\" role=\"group\" aria-label=\"Strips of time\">\n<div \
         class=\"scaled\">\n",
    );
    for (plan, timeline) in &detail.timelines {
        drawing(page, called(plan), timeline, length);
    }
    axis(page, length);
    page.push_str("</div>\n</div>\n<ul class=\"doing\">\n");
    for doing in Doing::ALL {
        let height = height(doing);
        put(
            page,
            format_args!(
                "<li><svg viewBox=\"0 0 40 24\" aria-hidden=\"true\"><path class=\"{}\" d=\"M0 {}h40v{height}h-40z\"/></svg>{}\
                 </li>\n",
                class(doing),
                STRIP - height,
                doing.name()
            ),
        );
    }
    let many = first.strips.len();
    let which = match many {
        1 => "One sub-group of a core, ".to_owned(),
        many => format!("{many} sub-groups of a core, a strip each, "),
    };
    let lives: Vec<String> = detail
        .timelines
        .iter()
        .map(|(plan, timeline)| {
            format!(
                "{}, from {} after the launch began, of a work-group that lives for {}",
                called(plan),
                number::duration(timeline.from_ns),
                number::duration(timeline.life_ns)
            )
        })
        .collect();
    put(
        page,
        format_args!(
            "</ul>\n<p class=\"caption\">{which}on the simulator, in the middle of a work-group’s life, where the loop runs as \
             it does for most of the time. {} of each are drawn to the same scale ({}). A tick is where a loop begins \
             again.</p>\n",
            number::duration(length),
            lives.join("; "),
        ),
    );
    table(page, detail);
    page.push_str("</div>\n</section>\n");
}

fn class(doing: Doing) -> &'static str {
    match doing {
        Doing::Computes => "do-computes",
        Doing::WaitsForMemory => "do-waits",
        Doing::WaitsOtherwise => "do-other",
    }
}

/// A sub-group's activities differ in height, not in colour alone.
fn height(doing: Doing) -> f64 {
    match doing {
        Doing::Computes => STRIP,
        Doing::WaitsForMemory => 12.0,
        Doing::WaitsOtherwise => 5.0,
    }
}

fn drawing(page: &mut String, name: &str, timeline: &Timeline, length: f64) {
    let said = format!(
        "{name}: computes {} of the time, waits for loads {}",
        number::percent(timeline.share(Doing::Computes)),
        number::percent(timeline.share(Doing::WaitsForMemory)),
    );
    put(
        page,
        format_args!(
            "<p class=\"strip-name\">{}</p>\n<svg class=\"timeline\" viewBox=\"0 0 {UNITS} {height}\" style=\"height:{height}px\" \
             preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
            Escaped(&said),
            Escaped(&said),
            height = PITCH * timeline.strips.len() as f64,
        ),
    );
    for (row, strip) in timeline.strips.iter().enumerate() {
        let top = PITCH * row as f64;
        page.push_str("<g>");
        for doing in Doing::ALL {
            path(page, doing, strip, top, length);
        }
        let mut ticks = String::new();
        for &start in &strip.iterations {
            let _ = write!(ticks, "M{:.0} {}v6", at(start, length), top + STRIP + 2.0);
        }
        if !ticks.is_empty() {
            put(page, format_args!("<path class=\"tick-marks\" d=\"{ticks}\"/>"));
        }
        page.push_str("</g>");
    }
    page.push_str("</svg>\n");
}

fn at(ns: f64, length: f64) -> f64 {
    (ns / length * UNITS).clamp(0.0, UNITS)
}

/// All moments of a strip in which the sub-group does one thing.
fn path(page: &mut String, doing: Doing, strip: &Strip, top: f64, length: f64) {
    let height = height(doing);
    let mut path = String::new();
    for moment in strip.moments.iter().filter(|moment| moment.doing == doing) {
        let (from, to) = (
            at(moment.from_ns, length).round(),
            at(moment.to_ns, length).round(),
        );
        let width = (to - from).max(1.0);
        let _ = write!(
            path,
            "M{from} {}h{width}v{height}h-{width}z",
            top + STRIP - height
        );
    }
    if !path.is_empty() {
        put(
            page,
            format_args!("<path class=\"{}\" d=\"{path}\"/>", class(doing)),
        );
    }
}

/// Times below the strips, as text that is not stretched with them. Those of a closer look are hidden until it is taken.
fn axis(page: &mut String, length: f64) {
    page.push_str("<p class=\"time-axis\" aria-hidden=\"true\">");
    let step = step(length) / f64::from(MINOR);
    for number in 0..=(length / step) as u32 {
        let time = f64::from(number) * step;
        let share = 100.0 * time / length;
        let mut classes = Vec::new();
        if number % MINOR != 0 {
            classes.push("minor");
        }
        // What would reach beyond the end stands to the left of its mark.
        if share > 80.0 {
            classes.push("before");
        }
        let shown = match number {
            0 => "0".to_owned(),
            _ => number::duration(time),
        };
        put(
            page,
            format_args!(
                "<span class=\"{}\" style=\"left:{share:.2}%\">{shown}</span>",
                classes.join(" ")
            ),
        );
    }
    page.push_str("</p>\n");
}

/// A round step that divides a length into a few parts.
fn step(length: f64) -> f64 {
    let rough = length / STEPS;
    let power = 10f64.powf(rough.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|round| round * power >= rough);
    round.unwrap_or(10.0) * power
}

fn table(page: &mut String, detail: &Detail) {
    page.push_str(
        "<details><summary>The same as a table</summary>\n<div class=\"scroll\"><table id=\"iterations\">\n<thead><tr>\
         <th scope=\"col\">kernel</th><th class=\"number\" scope=\"col\">sub-group</th><th class=\"number\" scope=\"col\">\
         iteration</th><th class=\"number\" scope=\"col\">takes</th>",
    );
    for doing in Doing::ALL {
        put(
            page,
            format_args!("<th class=\"number\" scope=\"col\">{}</th>", doing.name()),
        );
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (plan, timeline) in &detail.timelines {
        for (number, strip) in timeline.strips.iter().enumerate() {
            let whole = ("all".to_owned(), 0.0, timeline.length_ns);
            // Only those that lie in the window from start to end.
            let iterations = strip.iterations.windows(2).take(LISTED).enumerate();
            let iterations = iterations.map(|(number, ends)| ((number + 1).to_string(), ends[0], ends[1]));
            for (iteration, from, to) in std::iter::once(whole).chain(iterations) {
                put(
                    page,
                    format_args!(
                        "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{iteration}</td><td \
                         class=\"number\">{}</td>",
                        called(plan),
                        number + 1,
                        number::duration(to - from)
                    ),
                );
                for doing in Doing::ALL {
                    let share = strip.share(doing, from, to);
                    put(
                        page,
                        format_args!("<td class=\"number\">{}</td>", number::percent(share)),
                    );
                }
                page.push_str("</tr>\n");
            }
        }
    }
    page.push_str("</tbody>\n</table></div></details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_axis_are_round_and_few() {
        for (length, expected) in [(1000.0, 200.0), (5100.0, 2000.0), (37.0, 10.0), (260.0, 100.0)] {
            assert_eq!(step(length), expected, "{length}");
        }
    }
}
