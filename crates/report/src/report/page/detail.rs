//! The plain kernel and the plan side by side: why they wait, the loads, the levels, the source.

use super::super::detail::{Detail, Stalled};
use super::super::number;
use super::escape::Escaped;
use super::{code, put, timeline};

/// Everything that is known of both.
pub(super) fn sections(page: &mut String, detail: &Detail) {
    timeline::section(page, detail);
    stalls(page, detail);
    loads(page, detail);
    levels(page, detail);
    code::section(page, detail);
}

/// A table's head: the names of its columns, those of numbers set right.
fn table(page: &mut String, id: &str, title: &str, columns: &[(&str, bool)]) {
    put(
        page,
        format_args!(
            "<section>\n<h2>{title}</h2>\n<div class=\"scroll\"><table class=\"sorts\" id=\"{id}\">\n<thead><tr>"
        ),
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
    let mut columns = vec![("what they do", false), ("plain kernel", true)];
    if with_best {
        columns.push(("with the plan", true));
    }
    table(page, "stalls", "Why sub-groups wait", &columns);
    let cell = |share: f64| {
        format!(
            "<td class=\"number share\" data-v=\"{share:.5}\"><span style=\"width:{:.1}%\"></span>{}</td>",
            (100.0 * share).clamp(0.0, 100.0),
            number::percent(share)
        )
    };
    for own in rows {
        put(
            page,
            format_args!(
                "<tr><td>{} <small>{}</small></td>{}",
                Escaped(&own.reason),
                Escaped(&own.profiler),
                cell(own.plain)
            ),
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
            format_args!("<tr><td class=\"plan\">{}</td>", Escaped(&own.name)),
        );
        let numbers = [
            (own.lines, format!("{:.1}", own.lines)),
            (own.fetched, format!("{:.1}", own.fetched)),
            (own.waiting, number::percent(own.waiting)),
            (
                own.best.unwrap_or(-1.0),
                own.best.map_or("–".to_owned(), number::percent),
            ),
        ];
        // On a phone a load is a list, with the column's name before each value.
        put(
            page,
            format_args!("<td data-l=\"{}\">{}</td>", columns[1].0, Escaped(&own.place)),
        );
        for ((name, _), (value, shown)) in columns[2..].iter().zip(numbers) {
            put(
                page,
                format_args!("<td class=\"number\" data-l=\"{name}\" data-v=\"{value:.5}\">{shown}</td>"),
            );
        }
        page.push_str("</tr>\n");
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
    table(page, "levels", "Effect of the hints", &columns);
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
