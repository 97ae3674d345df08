//! Timelines of some sub-groups of the plain kernel and of the plan, in the middle of the launch.
//!
//! Each kernel is one drawing that fills any given width, so a wider one shows more detail: the zoom is a choice of widths
//! inside a scrolling frame, and needs no script.

use std::fmt::Write;

use super::chart::round_step;
use super::escape::Escaped;
use crate::evidence::{Doing, Strip, Timeline};
use crate::report::detail::Detail;
use crate::report::number::{duration, percent};

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
    match plan {
        "none" => "plain kernel",
        _ => "with the plan",
    }
}

/// The section, or nothing where no sub-group was watched.
pub(super) fn section(page: &mut String, detail: &Detail) {
    let Some((_, first)) = detail.timelines.first() else {
        return;
    };
    let lengths = detail.timelines.iter().map(|(_, timeline)| timeline.length_ns);
    let length = lengths.fold(f64::INFINITY, f64::min);
    if !(length.is_finite() && length > 0.0) {
        return;
    }
    page.push_str(
        "<section id=\"timeline\">\n<h2>Where the time of sub-groups goes</h2>\n<div class=\"panel\">\n<div \
         class=\"zooms\" role=\"group\" aria-label=\"Zoom\">",
    );
    for zoom in ZOOMS {
        let checked = if zoom == ZOOMS[0] { " checked" } else { "" };
        let input = format!("<input type=\"radio\" name=\"zoom\" id=\"zoom-{zoom}\"{checked}>");
        let _ = write!(page, "{input}<label for=\"zoom-{zoom}\">{zoom}×</label>");
    }
    page.push_str(
        "</div>\n<div class=\"strips\" tabindex=\"0\" role=\"group\" aria-label=\"Strips of time\">\n<div \
         class=\"scaled\">\n",
    );
    let mut lives = Vec::new();
    for (plan, timeline) in &detail.timelines {
        let name = called(plan);
        drawing(page, name, timeline, length);
        let (from, life) = (duration(timeline.from_ns), duration(timeline.life_ns));
        lives.push(format!(
            "{name}, from {from} after the launch began, of a work-group that lives for {life}"
        ));
    }
    axis(page, length);
    page.push_str("</div>\n</div>\n<ul class=\"doing\">\n");
    for doing in Doing::ALL {
        let bar = bar(0.0, 40.0, 0.0, doing);
        let (class, name) = (class(doing), doing.name());
        let drawn = format!(
            "<svg viewBox=\"0 0 40 24\" aria-hidden=\"true\"><path class=\"{class}\" d=\"{bar}\"/></svg>"
        );
        let _ = writeln!(page, "<li>{drawn}{name}</li>");
    }
    let which = match first.strips.len() {
        1 => "One sub-group of a core, ".to_owned(),
        many => format!("{many} sub-groups of a core, a strip each, "),
    };
    let _ = writeln!(
        page,
        "</ul>\n<p class=\"caption\">{which}on the simulator, in the middle of a work-group’s life, where the loop runs as it \
         does for most of the time. {} of each are drawn to the same scale ({}). A tick is where a loop begins again.</p>",
        duration(length),
        lives.join("; "),
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

/// A bar of what a sub-group does: activities differ in height, not in colour alone.
fn bar(from: f64, width: f64, top: f64, doing: Doing) -> String {
    let height = match doing {
        Doing::Computes => STRIP,
        Doing::WaitsForMemory => 12.0,
        Doing::WaitsOtherwise => 5.0,
    };
    format!("M{from} {}h{width}v{height}h-{width}z", top + STRIP - height)
}

fn drawing(page: &mut String, name: &str, timeline: &Timeline, length: f64) {
    let [computes, waits] =
        [Doing::Computes, Doing::WaitsForMemory].map(|doing| percent(timeline.share(doing)));
    let said = Escaped(format!(
        "{name}: computes {computes} of the time, waits for loads {waits}"
    ));
    let height = PITCH * timeline.strips.len() as f64;
    let _ = write!(
        page,
        "<p class=\"strip-name\">{said}</p>\n<svg class=\"timeline\" viewBox=\"0 0 {UNITS} {height}\" \
         style=\"height:{height}px\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{said}\">",
    );
    let at = |ns: f64| (ns / length * UNITS).clamp(0.0, UNITS).round();
    for (
        row,
        Strip {
            moments, iterations, ..
        },
    ) in timeline.strips.iter().enumerate()
    {
        let top = PITCH * row as f64;
        let path = |class: &str, parts: Vec<String>| match parts.is_empty() {
            true => String::new(),
            false => format!("<path class=\"{class}\" d=\"{}\"/>", parts.concat()),
        };
        page.push_str("<g>");
        for doing in Doing::ALL {
            let moments = moments.iter().filter(|moment| moment.doing == doing);
            let bars = moments.map(|moment| {
                let (from, to) = (at(moment.from_ns), at(moment.to_ns));
                bar(from, (to - from).max(1.0), top, doing)
            });
            page.push_str(&path(class(doing), bars.collect()));
        }
        let ticks = iterations
            .iter()
            .map(|start| format!("M{} {}v6", at(*start), top + STRIP + 2.0));
        page.push_str(&path("tick-marks", ticks.collect()));
        page.push_str("</g>");
    }
    page.push_str("</svg>\n");
}

/// Times below the strips, as text that is not stretched with them. Those of a closer look are hidden until it is taken.
fn axis(page: &mut String, length: f64) {
    page.push_str("<p class=\"time-axis\" aria-hidden=\"true\">");
    let step = round_step(length, STEPS) / f64::from(MINOR);
    for number in 0..=(length / step) as u32 {
        let time = f64::from(number) * step;
        let share = 100.0 * time / length;
        let minor = if number % MINOR == 0 { "" } else { "minor " };
        // What would reach beyond the end stands to the left of its mark.
        let before = if share > 80.0 { "before" } else { "" };
        let shown = if number == 0 {
            "0".to_owned()
        } else {
            duration(time)
        };
        let _ = write!(
            page,
            "<span class=\"{minor}{before}\" style=\"left:{share:.2}%\">{shown}</span>"
        );
    }
    page.push_str("</p>\n");
}

fn table(page: &mut String, detail: &Detail) {
    let number = "class=\"number\"";
    let _ = write!(
        page,
        "<details><summary>The same as a table</summary>\n<div class=\"scroll\"><table id=\"iterations\">\n<thead><tr>\
         <th scope=\"col\">kernel</th>"
    );
    let columns = ["sub-group", "iteration", "takes"];
    for name in columns.into_iter().chain(Doing::ALL.map(Doing::name)) {
        let _ = write!(page, "<th {number} scope=\"col\">{name}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (plan, timeline) in &detail.timelines {
        for (position, strip) in timeline.strips.iter().enumerate() {
            let whole = ("all".to_owned(), 0.0, timeline.length_ns);
            // Only those that lie in the window from start to end.
            let iterations = strip.iterations.windows(2).take(LISTED).enumerate();
            let iterations = iterations.map(|(number, ends)| ((number + 1).to_string(), ends[0], ends[1]));
            for (iteration, from, to) in std::iter::once(whole).chain(iterations) {
                let _ = write!(page, "<tr><td>{}</td>", called(plan));
                let cells = [(position + 1).to_string(), iteration, duration(to - from)];
                let shares = Doing::ALL.map(|doing| percent(strip.share(doing, from, to)));
                for cell in cells.into_iter().chain(shares) {
                    let _ = write!(page, "<td {number}>{cell}</td>");
                }
                page.push_str("</tr>\n");
            }
        }
    }
    page.push_str("</tbody>\n</table></div></details>\n");
}
