//! A captured program as one page: its kernels by their share of the time, then each with its verdict, reasons and plans.

use super::escape::{Escaped, Parts, Prose};
use super::{SCRIPT, close, open, put};
use crate::names;
use crate::report::number;
use crate::report::{Answer, KindReport, ProgramReport};

/// Plans of a kernel that are shown, the fastest first.
const MOST_PLANS: usize = 12;

/// The page, a whole HTML document.
pub fn program(report: &ProgramReport) -> String {
    let mut page = String::new();
    let title = report.program.join(" ");
    open(&mut page, &format!("{title} on {}", report.device), Some(SCRIPT));
    let share = |is_of: fn(&Answer) -> bool| number::percent(report.share(is_of));
    put(
        &mut page,
        format_args!(
            "<header>\n<h1>{} <span class=\"where\">on {}</span></h1>\n<p class=\"setting\">All kernels together {} as fast. {} of \
             their time is in launches with a better kernel, {} in launches that keep theirs.</p>\n</header>\n<main>\n",
            Escaped(&title),
            Escaped(&report.device),
            number::speedup(report.speedup),
            share(|answer| matches!(answer, Answer::Replaced { .. })),
            share(|answer| matches!(answer, Answer::Kept { .. })),
        ),
    );
    table(&mut page, report);
    for kind in &report.kinds {
        section(&mut page, kind);
    }
    page.push_str("</main>\n");
    close(&mut page, [], Some(SCRIPT));
    page
}

fn table(page: &mut String, report: &ProgramReport) {
    page.push_str(
        "<section>\n<h2>Kernels by time</h2>\n<div class=\"scroll\"><table class=\"sorts\" id=\"kernels\">\n<thead><tr><th \
         scope=\"col\">kernel</th><th class=\"number\" scope=\"col\">launches</th><th class=\"number\" scope=\"col\">share</th>\
         <th class=\"number\" scope=\"col\">each</th><th scope=\"col\">geometry</th><th class=\"number\" scope=\"col\">speedup</th>\
         <th scope=\"col\">answer</th></tr></thead>\n<tbody>\n",
    );
    for kind in &report.kinds {
        let speedup = match kind.answer {
            Answer::Replaced { speedup, .. } => number::speedup(speedup),
            _ => String::new(),
        };
        put(
            page,
            format_args!(
                "<tr><td>{}</td><td class=\"number\" data-v=\"{}\">{}</td><td class=\"number\" data-v=\"{:.4}\">{}</td><td \
                 class=\"number\" data-v=\"{:.1}\">{}</td><td>{}</td><td class=\"number\">{speedup}</td><td>{}</td></tr>\n",
                Escaped(names::shown(&kind.kernel)),
                kind.launches,
                number::grouped(kind.launches),
                kind.share,
                number::percent(kind.share),
                kind.mean_ns.unwrap_or(0.0),
                kind.mean_ns.map_or(String::new(), number::duration),
                Escaped(geometry(kind)),
                kind.answer.name(),
            ),
        );
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
}

fn geometry(kind: &KindReport) -> String {
    let sizes = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join("×");
    format!("{} of {}", sizes(kind.groups), sizes(kind.group))
}

fn section(page: &mut String, kind: &KindReport) {
    put(
        page,
        format_args!(
            "<section>\n<h2>{}, {} of the time</h2>\n<p class=\"setting\">{} launches of {}, parameters {}</p>\n",
            Escaped(names::shown(&kind.kernel)),
            number::percent(kind.share),
            number::grouped(kind.launches),
            Escaped(geometry(kind)),
            Escaped(&kind.parameters),
        ),
    );
    match &kind.answer {
        Answer::Replaced {
            plan,
            speedup,
            rests_on,
        } => {
            put(
                page,
                format_args!(
                    "<p class=\"sentence\">{} as fast.</p>\n<p class=\"chosen plan\">{}</p>\n",
                    number::speedup(*speedup),
                    Escaped(plan)
                ),
            );
            page.push_str("<p class=\"sentence\">Checked at every launch:</p>\n");
            list(page, rests_on);
        }
        answer => put(
            page,
            format_args!(
                "<p class=\"sentence\">{}</p>\n",
                Prose(answer.reason().unwrap_or_default())
            ),
        ),
    }
    if let Some(report) = &kind.report {
        put(
            page,
            format_args!("<p class=\"sentence\">{}</p>\n", Escaped(report.conclusion())),
        );
        list(page, &report.reasons);
        let mut timed: Vec<_> = report
            .trials
            .iter()
            .filter_map(|trial| Some((trial, trial.measured()?)))
            .collect();
        timed.sort_by(|(_, (one, _)), (_, (other, _))| one.total_cmp(other));
        page.push_str(
            "<div class=\"scroll\"><table class=\"sorts\">\n<thead><tr><th scope=\"col\">plan</th><th class=\"number\" \
             scope=\"col\">time</th><th class=\"number\" scope=\"col\">speedup</th></tr></thead>\n<tbody>\n",
        );
        for (trial, (time_ns, speedup)) in timed.into_iter().take(MOST_PLANS) {
            put(
                page,
                format_args!(
                    "<tr><td class=\"plan\">{}</td><td class=\"number\" data-v=\"{time_ns:.1}\">{}</td><td class=\"number\" \
                     data-v=\"{speedup:.4}\">{}</td></tr>\n",
                    Parts(&trial.plan),
                    number::duration(time_ns),
                    number::speedup(speedup)
                ),
            );
        }
        page.push_str("</tbody>\n</table></div>\n");
    }
    page.push_str("</section>\n");
}

fn list(page: &mut String, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    page.push_str("<ul class=\"reasons\">\n");
    for sentence in sentences {
        put(page, format_args!("<li>{}</li>\n", Prose(sentence)));
    }
    page.push_str("</ul>\n");
}
