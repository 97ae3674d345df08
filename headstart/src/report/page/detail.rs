//! The plain kernel and the plan side by side: a timeline, why they wait, the loads, the levels, the source.

use super::super::detail::{Detail, Stalled};
use super::super::number;
use super::escape::Escaped;
use super::put;
use crate::advise::{Doing, Timeline};

/// Iterations of the plain kernel that are shown.
const ITERATIONS: usize = 6;

/// A drawing's size.
struct Size {
    width: f64,
    class: &'static str,
}

const WIDE: Size = Size {
    width: 900.0,
    class: "wide",
};
const NARROW: Size = Size {
    width: 340.0,
    class: "narrow",
};

/// Everything that is known of both.
pub(super) fn sections(page: &mut String, detail: &Detail) {
    timeline(page, detail);
    stalls(page, detail);
    loads(page, detail);
    levels(page, detail);
    source(page, detail);
}

/// The stretch of time that is shown: some iterations of the plain kernel, as far as both are known.
fn shown(detail: &Detail) -> Option<f64> {
    let (_, plain) = detail.timelines.first()?;
    let end = detail
        .timelines
        .iter()
        .map(|(_, timeline)| timeline.end_ns())
        .fold(f64::INFINITY, f64::min);
    let wanted = plain.iterations.get(ITERATIONS).copied().unwrap_or(end);
    Some(wanted.min(end)).filter(|end| *end > 0.0 && end.is_finite())
}

fn called(plan: &str) -> &str {
    if plan == "none" {
        "plain kernel"
    } else {
        "with the plan"
    }
}

fn timeline(page: &mut String, detail: &Detail) {
    let Some(end) = shown(detail) else { return };
    let parts: Vec<(&str, Timeline)> = detail
        .timelines
        .iter()
        .map(|(plan, timeline)| (called(plan), timeline.until(end)))
        .collect();
    page.push_str(
        "<section id=\"timeline\">\n<h2>Where one sub-group's time goes</h2>\n<figure class=\"panel\">\n",
    );
    for size in [WIDE, NARROW] {
        drawing(page, &parts, end, &size);
    }
    page.push_str("<ul class=\"doing\">\n");
    for doing in Doing::ALL {
        put(
            page,
            format_args!(
                "<li><svg viewBox=\"0 0 40 24\" aria-hidden=\"true\">{}</svg>{}</li>\n",
                bar(doing, 0.0, 40.0, 0.0),
                doing.name()
            ),
        );
    }
    put(
        page,
        format_args!(
            "</ul>\n<figcaption>The first sub-group of the launch, from its start, on the simulator. Both are drawn to the same \
             scale; a tick is where the loop begins again.</figcaption>\n</figure>\n<details><summary>The same as a table\
             </summary>\n<div class=\"scroll\"><table id=\"iterations\">\n<thead><tr><th scope=\"col\">kernel</th>\
             <th class=\"number\" scope=\"col\">iteration</th><th class=\"number\" scope=\"col\">takes</th>"
        ),
    );
    for doing in Doing::ALL {
        put(
            page,
            format_args!("<th class=\"number\" scope=\"col\">{}</th>", doing.name()),
        );
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (name, timeline) in &parts {
        let mut starts = vec![0.0];
        starts.extend(&timeline.iterations);
        starts.push(timeline.end_ns());
        for (number, stretch) in starts.windows(2).take(3 * ITERATIONS).enumerate() {
            let (from, to) = (stretch[0], stretch[1]);
            put(
                page,
                format_args!(
                    "<tr><td>{name}</td><td class=\"number\">{number}</td><td class=\"number\">{}</td>",
                    number::duration(to - from)
                ),
            );
            for doing in Doing::ALL {
                let share = timeline.share(doing, from, to);
                put(
                    page,
                    format_args!("<td class=\"number\">{}</td>", number::percent(share)),
                );
            }
            page.push_str("</tr>\n");
        }
    }
    page.push_str("</tbody>\n</table></div></details>\n</section>\n");
}

/// What a sub-group does differs in height and filling, not in colour alone.
fn bar(doing: Doing, from: f64, to: f64, top: f64) -> String {
    let (class, height) = match doing {
        Doing::Computes => ("do-computes", 24.0),
        Doing::WaitsForMemory => ("do-waits", 12.0),
        Doing::WaitsOtherwise => ("do-other", 5.0),
    };
    format!(
        "<rect class=\"{class}\" x=\"{from:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{height}\"/>",
        top + 24.0 - height,
        (to - from).max(0.1)
    )
}

fn drawing(page: &mut String, parts: &[(&str, Timeline)], end: f64, size: &Size) {
    const ROW: f64 = 62.0;
    let height = ROW * parts.len() as f64 + 26.0;
    let at = |ns: f64| ns / end * (size.width - 2.0) + 1.0;
    let said: Vec<String> = parts
        .iter()
        .map(|(name, timeline)| {
            format!(
                "{name}: {} of the first {} waiting for loads, {} iterations begun",
                number::percent(timeline.share(Doing::WaitsForMemory, 0.0, end)),
                number::duration(end),
                timeline.iterations.len() + 1
            )
        })
        .collect();
    put(
        page,
        format_args!(
            "<svg class=\"figure timeline {}\" viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"{}\">\n",
            size.class,
            size.width,
            Escaped(said.join("; "))
        ),
    );
    for (row, (name, timeline)) in parts.iter().enumerate() {
        let top = ROW * row as f64;
        put(
            page,
            format_args!("<text x=\"1\" y=\"{:.0}\">{}</text>\n", top + 14.0, Escaped(name)),
        );
        for moment in &timeline.moments {
            page.push_str(&bar(
                moment.doing,
                at(moment.from_ns),
                at(moment.to_ns),
                top + 22.0,
            ));
        }
        for &start in &timeline.iterations {
            let x = at(start);
            put(
                page,
                format_args!(
                    "<line class=\"axis-tick\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{:.0}\" y2=\"{:.0}\"/>",
                    top + 46.0,
                    top + 53.0
                ),
            );
        }
        page.push('\n');
    }
    put(
        page,
        format_args!(
            "<text class=\"tick\" x=\"1\" y=\"{0:.0}\">0</text><text class=\"tick\" x=\"{1}\" y=\"{0:.0}\" \
             text-anchor=\"end\">{2}</text>\n</svg>\n",
            height - 6.0,
            size.width - 1.0,
            number::duration(end)
        ),
    );
}

/// A table's head: the names of its columns, those of numbers set right.
fn table(page: &mut String, id: &str, title: &str, columns: &[(&str, bool)]) {
    put(
        page,
        format_args!("<section>\n<h2>{title}</h2>\n<div class=\"scroll\"><table id=\"{id}\">\n<thead><tr>"),
    );
    for (name, is_number) in columns {
        let class = if *is_number { " class=\"number\"" } else { "" };
        put(page, format_args!("<th{class} scope=\"col\">{name}</th>"));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
}

const END: &str = "</tbody>\n</table></div>\n</section>\n";

fn stalls(page: &mut String, detail: &Detail) {
    let noticed = |own: &&Stalled| own.plain >= 0.005 || own.best.is_some_and(|best| best >= 0.005);
    let rows: Vec<&Stalled> = detail.stalls.iter().filter(noticed).collect();
    if rows.is_empty() {
        return;
    }
    let with_best = rows.iter().any(|own| own.best.is_some());
    let mut columns = vec![("reason", false), ("plain kernel", true)];
    if with_best {
        columns.push(("with the plan", true));
    }
    table(page, "stalls", "Why sub-groups wait", &columns);
    let cell = |share: f64| {
        format!(
            "<td class=\"number share\"><span style=\"width:{:.1}%\"></span>{}</td>",
            (100.0 * share).clamp(0.0, 100.0),
            number::percent(share)
        )
    };
    for own in rows {
        put(
            page,
            format_args!("<tr><td>{}</td>{}", Escaped(&own.reason), cell(own.plain)),
        );
        if with_best {
            page.push_str(&cell(own.best.unwrap_or(0.0)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str(END);
}

fn loads(page: &mut String, detail: &Detail) {
    if detail.loads.is_empty() {
        return;
    }
    let columns = [
        ("load", false),
        ("where", false),
        ("lines an access", true),
        ("bytes fetched for each used", true),
        ("of the waiting, plain", true),
        ("with the plan", true),
    ];
    table(page, "loads", "Load by load", &columns);
    for own in &detail.loads {
        put(
            page,
            format_args!(
                "<tr><td class=\"plan\">{}</td><td>{}</td><td class=\"number\">{:.1}</td><td class=\"number\">{:.1}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
                Escaped(&own.name),
                Escaped(&own.place),
                own.lines,
                own.fetched,
                number::percent(own.waiting),
                own.best.map_or("–".to_owned(), number::percent)
            ),
        );
    }
    page.push_str(END);
}

fn levels(page: &mut String, detail: &Detail) {
    if detail.hints.is_empty() {
        return;
    }
    let columns = [
        ("asked", false),
        ("reached", false),
        ("by", false),
        ("where", false),
    ];
    table(page, "levels", "What becomes of the hints", &columns);
    for own in &detail.hints {
        put(
            page,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td><code>{}</code></td><td>{}</td></tr>\n",
                Escaped(&own.asked),
                Escaped(&own.reached),
                Escaped(&own.by),
                Escaped(&own.place)
            ),
        );
    }
    page.push_str(END);
}

fn source(page: &mut String, detail: &Detail) {
    if detail.source.is_empty() {
        return;
    }
    put(
        page,
        format_args!(
            "<section>\n<h2>The kernel with the plan</h2>\n<details id=\"source\"><summary>{} lines</summary>\n\
             <pre tabindex=\"0\"><code>{}</code></pre></details>\n</section>\n",
            number::grouped(detail.source.lines().count() as u64),
            Escaped(&detail.source)
        ),
    );
}
