//! A report as one self-contained page, without external resources.
//!
//! The verdict comes first, then why, the article's figure, the plan in words, and every plan that was tried. It reads
//! in light and dark, on a phone, on paper, and aloud. Everything shown is escaped. A script sorts and filters tables;
//! the page says everything without it, and its policy lets no other script run.

pub(super) mod chart;
mod code;
mod detail;
pub(super) mod escape;
mod figure;
pub(super) mod look;
mod program;
mod roofline;
mod tables;
mod timeline;

use std::fmt::{Display, Write};

use escape::{Escaped, Prose};
use figure::{coincident, speedup_by_distance};
use look::Looks;
pub use program::program;

use super::series::{self, Series};
use super::{Report, Verdict, explain, number};
use crate::names;

const STYLE: &str = include_str!("style.css");
/// Each part documents itself; without them the page has the same content.
const SCRIPT: &str = concat!(include_str!("tables.js"), include_str!("pair.js"));
/// By which a page's policy names its script, so that a browser runs that one and no other; a test computes it.
const DIGEST: &str = "sha256-fm1qx1bPN2dBXVjlG3/WguYovA6PVS6ShRo3GEvWalM=";

/// The figure alone, as a drawing for a document: speedup by distance, a line for each strategy and layout. None where
/// no plan has a distance.
#[doc(hidden)]
pub fn drawing(report: &Report, title: &str) -> Option<String> {
    let all = series::of(report);
    let lines: Vec<&Series> = all.iter().collect();
    let (looks, best) = (Looks::of(&all), &report.best.plan);
    let chart = speedup_by_distance(&lines, &looks, |line| line.label.clone(), best, None, title)?;
    drawn_alone(&chart)
}

/// A chart as a file of its own.
pub(super) fn drawn_alone(chart: &chart::Chart) -> Option<String> {
    let drawn = chart.draw(&chart::DRAWING);
    let (start, rest) = drawn.split_once('>')?;
    Some(format!(
        "{start} font-family=\"system-ui, sans-serif\">\n<style>\n{STYLE}</style>\n{rest}\n"
    ))
}

/// A link that saves a chart, in the page itself.
pub(super) fn saved(page: &mut String, chart: &chart::Chart, name: &str) {
    use std::fmt::Write;
    let Some(drawn) = drawn_alone(chart) else { return };
    put(
        page,
        format_args!(
            "<figcaption><a download=\"{}.svg\" href=\"data:image/svg+xml,",
            escape::Escaped(name)
        ),
    );
    for byte in drawn.bytes() {
        // Writing to a String cannot fail.
        let _ = match byte.is_ascii_alphanumeric() || b" -._:;/=(){},".contains(&byte) {
            true => write!(page, "{}", char::from(byte)),
            false => write!(page, "%{byte:02X}"),
        };
    }
    page.push_str("\">the figure as SVG</a></figcaption>\n");
}

/// The page, a whole HTML document.
pub fn html(report: &Report) -> String {
    let mut page = String::new();
    open(
        &mut page,
        &format!(
            "{}: {} on {}",
            report.verdict,
            names::shown(&report.kernel),
            report.device
        ),
        Some(SCRIPT),
    );
    header(&mut page, report);
    page.push_str("<main>\n");
    first(&mut page, report);
    reasons(&mut page, report);
    figures(&mut page, report);
    gain(&mut page, report);
    plan(&mut page, report);
    tables::ways(&mut page, report);
    tables::counters(&mut page, report);
    if let Some(known) = &report.detail {
        detail::sections(&mut page, known);
    }
    tables::trials(&mut page, report);
    tables::without_time(&mut page, report);
    page.push_str("</main>\n");
    close(&mut page, report.remarks().chain(report.granted()), Some(SCRIPT));
    page
}

/// A page of a text for a terminal: its paragraphs, those that begin with a heading as sections.
#[doc(hidden)]
pub fn of_text(title: &str, text: &str) -> String {
    let mut page = String::new();
    open(&mut page, title, None);
    put(
        &mut page,
        format_args!("<header>\n<h1>{}</h1>\n</header>\n<main>\n", Escaped(title)),
    );
    for part in text.split("\n\n") {
        let (heading, body) = match part.split_once('\n') {
            Some((first, rest)) if rest.starts_with(' ') && !first.starts_with(' ') => (Some(first), rest),
            _ => (None, part),
        };
        let heading = heading.map_or(String::new(), |heading| {
            format!("<h2>{}</h2>\n", Escaped(heading))
        });
        put(
            &mut page,
            format_args!(
                "<section>\n{heading}<pre class=\"wraps\"><code>{}</code></pre>\n</section>\n",
                Escaped(body.trim_end())
            ),
        );
    }
    page.push_str("</main>\n");
    close(&mut page, None, None);
    page
}

/// A page's beginning, up to and with `<body>`. No script but this one runs in it.
pub(super) fn open(page: &mut String, title: &str, script: Option<&str>) {
    let scripts = script.map_or(String::new(), |_| format!("; script-src '{DIGEST}'"));
    put(
        page,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'{scripts}\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
            Escaped(title),
        ),
    );
}

/// A page's end, with its notes and its script.
pub(super) fn close(page: &mut String, notes: impl IntoIterator<Item = String>, script: Option<&str>) {
    page.push_str("<footer>\n");
    for note in notes {
        put(page, format_args!("<p>{}</p>\n", Prose(&note)));
    }
    put(
        page,
        format_args!(
            "<p>Headstart {}</p>\n</footer>\n{}</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            script.map_or(String::new(), |script| format!("<script>{script}</script>\n"))
        ),
    );
}

/// Adds to a page: writing to a String cannot fail.
pub(super) fn put(page: &mut String, text: impl Display) {
    let _ = write!(page, "{text}");
}

fn header(page: &mut String, report: &Report) {
    let mut settings: Vec<String> = report.geometry.iter().map(ToString::to_string).collect();
    settings.extend(
        report
            .parameters
            .iter()
            .map(|(name, value)| format!("{name} = {value}")),
    );
    let (class, factor) = match report.verdict {
        Verdict::Prefetch => ("prefetch", Some(report.best.speedup)),
        Verdict::Unroll | Verdict::MoreRegisters => ("unroll", Some(report.best.speedup)),
        Verdict::LaunchSettings => ("more", Some(report.best.speedup)),
        Verdict::MoreWorkGroups | Verdict::OtherWorkGroups => ("more", report.advised_speedup()),
        Verdict::LeaveIt | Verdict::Undecided => ("leave", None),
    };
    let factor = factor.map_or(String::new(), |factor| {
        format!("<p class=\"factor\">{}</p>\n", number::speedup(factor))
    });
    let warning = |warning: &String| {
        format!(
            "<p class=\"sentence warning\">Warning: {}</p>\n",
            Escaped(warning)
        )
    };
    let warnings: String = report.warnings.iter().map(warning).collect();
    put(
        page,
        format_args!(
            "<header>\n<h1>{} <span class=\"where\">on {}</span></h1>\n<p class=\"setting\">{}</p>\n\
             {warnings}<section class=\"verdict {class}\" aria-label=\"Verdict\">\n{factor}\
             <p class=\"word\" id=\"verdict\">{}</p>\n<p class=\"sentence\">{}</p>\n",
            Escaped(names::shown(&report.kernel)),
            Escaped(&report.device),
            Escaped(settings.join(" · ")),
            capitalised(report.verdict.name()),
            Escaped(report.conclusion()),
        ),
    );
    if !report.best.plan.is_none() {
        put(
            page,
            format_args!(
                "<p class=\"chosen plan\" id=\"plan\">{}</p>\n",
                Escaped(&report.best.plan)
            ),
        );
    }
    page.push_str("</section>\n</header>\n");
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

/// What to change before any plan.
fn first(page: &mut String, report: &Report) {
    if report.first.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Before any plan</h2>\n<ol class=\"reasons\" id=\"first\">\n");
    for remedy in &report.first {
        let place = remedy.place.iter();
        let place: String = place
            .map(|place| format!("<code>{}</code>: ", Escaped(place)))
            .collect();
        put(page, format_args!("<li>{place}{}</li>\n", Prose(&remedy.finding)));
    }
    page.push_str("</ol>\n</section>\n");
}

fn reasons(page: &mut String, report: &Report) {
    if report.reasons.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Why</h2>\n<ol class=\"reasons\">\n");
    for reason in &report.reasons {
        put(page, format_args!("<li>{}</li>\n", Prose(reason)));
    }
    page.push_str("</ol>\n</section>\n");
}

fn figures(page: &mut String, report: &Report) {
    let all = series::of(report);
    let best = series::best_layouts(&all);
    if best.is_empty() {
        return;
    }
    let looks = Looks::of(&all);
    let title = format!(
        "Speedup of {} on {} by distance, a line a strategy",
        report.kernel, report.device
    );
    let label = |line: &Series| line.label.clone();
    let elsewhere = report.plain_best_geometry.as_ref();
    let chart = speedup_by_distance(&best, &looks, label, &report.best.plan, elsewhere, &title);
    let drawn = chart.map_or(String::new(), |chart| chart.on_any_page());
    put(
        page,
        format_args!("<section>\n<h2>Speedup by distance</h2>\n<figure class=\"panel\">\n{drawn}"),
    );
    let hidden = all.len() - best.len();
    let layouts = if hidden > 0 {
        " Of the layouts in shared memory the fastest is shown; the others are below."
    } else {
        ""
    };
    put(
        page,
        format_args!(
            "<figcaption>Higher is faster; the dashed line is the plain kernel. Where the loop is only unrolled, the \
             distance is the number of iterations in a group. Plans that unroll and prefetch show the best group at \
             each distance.{layouts} {}</figcaption>\n</figure>\n",
            Escaped(coincidence(&best, label))
        ),
    );
    layouts_of(page, report, &all, &looks);
    page.push_str("</section>\n");
}

/// Which lines of a figure lie on one another, in a sentence; empty where none do.
fn coincidence(lines: &[&Series], name: impl Fn(&Series) -> String) -> String {
    let groups: Vec<String> = coincident(lines)
        .into_iter()
        .map(|group| {
            let names: Vec<String> = group.into_iter().map(&name).collect();
            match names.split_last() {
                Some((last, others)) => format!("{} and {last}", others.join(", ")),
                None => String::new(),
            }
        })
        .collect();
    match groups.is_empty() {
        true => String::new(),
        false => format!("Lines that lie on one another: {}.", groups.join("; ")),
    }
}

/// A small figure for each strategy that was tried with several layouts in shared memory.
fn layouts_of(page: &mut String, report: &Report, all: &[Series], looks: &Looks) {
    let mut families: Vec<(String, Vec<&Series>)> = Vec::new();
    for line in all.iter().filter(|line| line.layout().is_some()) {
        let family = line.family();
        match families.iter_mut().find(|(other, _)| *other == family) {
            Some((_, lines)) => lines.push(line),
            None => families.push((family, vec![line])),
        }
    }
    families.retain(|(_, lines)| lines.len() > 1);
    if families.is_empty() {
        return;
    }
    page.push_str("<h2>Layouts in shared memory</h2>\n<div class=\"layouts\">\n");
    for (_, lines) in &families {
        let name = lines[0]
            .label
            .rsplit_once('/')
            .map_or(lines[0].label.as_str(), |(name, _)| name);
        let title = format!("Speedup of {name} by distance, a line a layout");
        let layout = |line: &Series| line.layout().map_or(String::new(), |layout| layout.to_string());
        let chart = speedup_by_distance(lines, looks, layout, &report.best.plan, None, &title);
        let drawn = chart.map_or(String::new(), |chart| chart.draw(&chart::SMALL) + &chart.legend());
        put(
            page,
            format_args!(
                "<figure class=\"panel\"><h3>{}</h3>\n{drawn}<figcaption>{}</figcaption></figure>\n",
                Escaped(name),
                Escaped(coincidence(lines, layout))
            ),
        );
    }
    page.push_str("</div>\n");
}

/// How much there is to gain: the bounds in sentences, and the plans under the device's roofs.
fn gain(page: &mut String, report: &Report) {
    if report.bounds.is_none() {
        return;
    }
    page.push_str("<section id=\"gain\">\n<h2>How much there is to gain</h2>\n<ul class=\"reasons\">\n");
    for sentence in report.gains() {
        put(page, format_args!("<li>{}</li>\n", Prose(&sentence)));
    }
    page.push_str("</ul>\n");
    let chart = report.roofline.as_ref();
    if let Some(chart) = chart.and_then(|found| roofline::figure(found, &report.best.plan)) {
        put(
            page,
            format_args!(
                "<figure class=\"panel roofline\">\n{}<figcaption>The roofline: to the left a kernel is limited by device \
                 memory, to the right by the units that compute. An operation is an instruction, counted for every work-item \
                 that it acts on; those of the plain kernel stand for all plans, so higher is faster. Both axes are \
                 logarithmic.</figcaption>\n</figure>\n",
                chart.on_any_page()
            ),
        );
    }
    page.push_str("</section>\n");
}

fn plan(page: &mut String, report: &Report) {
    if report.best.plan.is_none() {
        return;
    }
    page.push_str("<section>\n<h2>The plan in words</h2>\n<dl>\n");
    for (part, meaning) in explain::plan(&report.best.plan) {
        put(
            page,
            format_args!(
                "<dt class=\"plan\">{}</dt><dd>{}</dd>\n",
                Escaped(part),
                Prose(&meaning)
            ),
        );
    }
    let (how, code) = match report.is_in_module {
        true => (
            "Write the module with it, for the program to load in place of its own",
            "headstart tune … -o FILE".to_owned(),
        ),
        false => (
            "Put it on the loop, and the kernel is built that way",
            format!("#[prefetch(\"{}\")]", report.best.plan),
        ),
    };
    put(
        page,
        format_args!(
            "</dl>\n<p>{how}:</p>\n<pre class=\"wraps\"><code>{}</code></pre>\n</section>\n",
            Escaped(code)
        ),
    );
}

#[cfg(test)]
mod tests;
