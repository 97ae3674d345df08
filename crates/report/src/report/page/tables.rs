//! The page's tables: the device's counters, every plan that ran, every plan that was refused.

use super::escape::{Escaped, Parts, Prose};
use super::put;
use crate::report::{Outcome, Report, number, taken};

/// Counters of the plain kernel and of the plan beside each other.
pub(super) fn counters(page: &mut String, report: &Report) {
    if report.counters.is_empty() {
        return;
    }
    let with_best = report.counters.iter().any(|counter| counter.best.is_some());
    let head = if with_best {
        "<th class=\"number\" scope=\"col\">the plan</th>"
    } else {
        ""
    };
    put(
        page,
        format_args!(
            "<section>\n<h2>Counters</h2>\n<div class=\"scroll\"><table class=\"sorts\" id=\"counters\">\n<thead><tr><th scope=\"col\">counted\
             </th><th class=\"number\" scope=\"col\">plain kernel</th>{head}</tr></thead>\n<tbody>\n"
        ),
    );
    for counter in &report.counters {
        let value = |value: f64| {
            format!("{} {}", number::figures(value), counter.unit)
                .trim_end()
                .to_owned()
        };
        let best = match (with_best, counter.best) {
            (true, best) => format!(
                "<td class=\"number\"{}>{}</td>",
                best.map_or(String::new(), |best| format!(" data-v=\"{best}\"")),
                Escaped(best.map_or(String::new(), value))
            ),
            (false, _) => String::new(),
        };
        put(
            page,
            format_args!(
                "<tr><td>{}</td><td class=\"number\" data-v=\"{}\">{}</td>{best}</tr>\n",
                Escaped(&counter.name),
                counter.plain,
                Escaped(value(counter.plain))
            ),
        );
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
}

/// The gains of sub-group size, register file and work-group size beside the plans.
pub(super) fn ways(page: &mut String, report: &Report) {
    let Some(found) = &report.ways else { return };
    page.push_str("<section id=\"ways\">\n<h2>Sub-group size, register file, work-group size</h2>\n");
    if !found.trials.is_empty() {
        page.push_str(
            "<div class=\"scroll\"><table class=\"sorts\" id=\"launch-settings\">\n<thead><tr><th scope=\"col\">compiled and launched\
             </th><th scope=\"col\">plan</th><th class=\"number\" scope=\"col\">time</th><th class=\"number\" scope=\"col\">\
             speedup</th></tr></thead>\n<tbody>\n",
        );
    }
    for trial in &found.trials {
        let class = match &found.best {
            Some(best) if best == trial => "chosen",
            _ if trial.way.is_usual() && trial.plan.is_none() => "plain",
            _ => "",
        };
        put(
            page,
            format_args!(
                "<tr class=\"{class}\"><td>{}</td><td class=\"plan\">{}</td><td class=\"number\" data-v=\"{:.1}\">{}</td>\
                 <td class=\"number\" data-v=\"{:.4}\">{}</td></tr>\n",
                Escaped(trial.way),
                Parts(&trial.plan),
                trial.time_ns,
                number::duration(trial.time_ns),
                trial.speedup,
                number::speedup(trial.speedup),
            ),
        );
    }
    if !found.trials.is_empty() {
        page.push_str("</tbody>\n</table></div>\n");
    }
    for reason in &found.left_out {
        put(page, format_args!("<p>Not tried: {}.</p>\n", Prose(reason)));
    }
    for how in found.best.iter().flat_map(|best| best.way.how()) {
        put(page, format_args!("<p>To get {}.</p>\n", Prose(&how)));
    }
    page.push_str("</section>\n");
}

/// Plans with their times, fastest first, and the times of other geometries.
pub(super) fn trials(page: &mut String, report: &Report) {
    let ran = report.fastest_first();
    let fastest = ran
        .iter()
        .filter_map(|trial| trial.measured())
        .map(|(_, speedup)| speedup)
        .fold(1.0, f64::max);
    let more = taken::columns(ran.iter().copied());
    let heads: String = more
        .iter()
        .map(|name| format!("<th class=\"number\" scope=\"col\">{name}</th>"))
        .collect();
    let blank = "<td></td>".repeat(more.len());
    put(
        page,
        format_args!(
            "<section>\n<h2>Every plan that ran</h2>\n<div class=\"scroll\"><table class=\"sorts\" id=\"trials\" \
             data-filter=\"Plans with\">\n<caption>{} plans, \
             fastest first. Each computed the same results as the plain kernel.</caption>\n<thead><tr>\
             <th scope=\"col\">plan</th><th class=\"number\" scope=\"col\">time</th>\
             <th class=\"number\" scope=\"col\">speedup</th><th scope=\"col\">outputs</th>{heads}\
             <td class=\"bar\"></td></tr></thead>\n<tbody>\n",
            ran.len()
        ),
    );
    for trial in ran {
        let Outcome::Ok {
            time_ns,
            speedup,
            outputs,
        } = trial.outcome
        else {
            continue;
        };
        let class = match () {
            () if trial.plan == report.best.plan => "chosen",
            () if trial.plan.is_none() => "plain",
            () => "",
        };
        let outputs = outputs.word();
        let takes: String = more
            .iter()
            .map(|name| format!("<td class=\"number\">{}</td>", taken::entry(trial, name)))
            .collect();
        put(
            page,
            format_args!(
                "<tr class=\"{class}\"><td class=\"plan\">{}</td><td class=\"number\" data-v=\"{time_ns:.1}\">{}</td>\
                 <td class=\"number\" data-v=\"{speedup:.4}\">{}</td><td>{outputs}</td>{takes}<td class=\"bar\"><span style=\"width:{:.1}%\"></span></td></tr>\n",
                Parts(&trial.plan),
                number::duration(time_ns),
                number::speedup(speedup),
                (100.0 * speedup / fastest).clamp(0.0, 100.0),
            ),
        );
    }
    for trial in report.dropped() {
        let Some((after, at_most)) = trial.dropped() else {
            continue;
        };
        put(
            page,
            format_args!(
                "<tr class=\"dropped\"><td class=\"plan\">{}</td><td class=\"number\"></td>\
                 <td class=\"number\" data-v=\"{at_most:.4}\">at most {}</td><td>dropped after {}</td>{blank}<td class=\"bar\"></td></tr>\n",
                Parts(&trial.plan),
                number::speedup(at_most),
                number::percent(after),
            ),
        );
    }
    if let Some(other) = &report.plain_best_geometry {
        put(
            page,
            format_args!(
                "<tr class=\"elsewhere\"><td>none, as {}</td><td class=\"number\" data-v=\"{:.1}\">{}</td><td \
                 class=\"number\" data-v=\"{:.4}\">{}</td><td></td>{blank}<td class=\"bar\"></td></tr>\n",
                Escaped(other.geometry),
                other.time_ns,
                number::duration(other.time_ns),
                other.speedup,
                number::speedup(other.speedup),
            ),
        );
    }
    if let Some(other) = &report.best_elsewhere {
        put(
            page,
            format_args!(
                "<tr class=\"elsewhere\"><td>{}, as {}</td><td class=\"number\" data-v=\"{:.1}\">{}</td><td \
                 class=\"number\" data-v=\"{:.4}\">{}</td><td></td>{blank}<td class=\"bar\"></td></tr>\n",
                Parts(&other.plan),
                Escaped(other.geometry),
                other.time_ns,
                number::duration(other.time_ns),
                other.speedup,
                number::speedup(other.speedup),
            ),
        );
    }
    page.push_str("</tbody>\n</table></div>\n");
    if let Some(cost) = taken::cost(report) {
        put(page, format_args!("<p>{}</p>\n", Prose(&cost)));
    }
    page.push_str("</section>\n");
}

/// Plans that have no time, and why.
pub(super) fn without_time(page: &mut String, report: &Report) {
    let count = report.without_time().count();
    if count == 0 {
        return;
    }
    put(
        page,
        format_args!(
            "<section>\n<h2>Plans that were refused</h2>\n<details open><summary>{count} of {}</summary>\n\
             <div class=\"scroll\"><table class=\"sorts\" id=\"refused\" \
             data-filter=\"Plans or reasons with\">\n<thead><tr><th scope=\"col\">plan</th><th scope=\"col\">why</th>\
             </tr></thead>\n<tbody>\n",
            report.trials.len()
        ),
    );
    for (plan, reason) in report.without_time() {
        put(
            page,
            format_args!(
                "<tr><td class=\"plan\">{}</td><td>{}</td></tr>\n",
                Parts(plan),
                Prose(reason)
            ),
        );
    }
    page.push_str("</tbody>\n</table></div></details>\n</section>\n");
}
