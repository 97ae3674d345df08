//! A sweep as one self-contained page: the answers, the figure, and a table that is shaded like a heat map.

use super::figure::figure;
use super::lines::{Block, Layout};
use super::words::{answers, refusals, shown};
use super::{PointOutcome, Shows, Sweep};
use crate::names;
use crate::report::number;
use crate::report::page::escape::{Escaped, Prose};
use crate::report::page::{close, open, put, saved};

/// The page, a whole HTML document.
pub fn html(sweep: &Sweep) -> String {
    let layout = Layout::of(sweep);
    let mut page = String::new();
    let axes: Vec<&str> = sweep.axes.iter().map(|axis| axis.name.as_str()).collect();
    let (kernel, axes) = (names::shown(&sweep.kernel), axes.join(" and "));
    open(
        &mut page,
        &format!("{kernel} on {} by {axes}", sweep.device),
        None,
    );
    let settings = sweep.parameters.iter();
    let mut settings: Vec<String> = settings
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    settings.extend(
        sweep
            .plan
            .iter()
            .filter(|plan| !plan.is_none())
            .map(|plan| format!("plan {plan}")),
    );
    put(
        &mut page,
        format_args!(
            "<header>\n<h1>{} <span class=\"where\">on {}, by {}</span></h1>\n<p class=\"setting\">{}</p>\n</header>\n<main>\n",
            Escaped(kernel),
            Escaped(&sweep.device),
            Escaped(axes),
            Escaped(settings.join(" · ")),
        ),
    );
    page.push_str("<section>\n<h2>The answer</h2>\n<ul class=\"reasons\" id=\"answers\">\n");
    for said in answers(sweep).into_iter().chain(refusals(sweep)) {
        put(&mut page, format_args!("<li>{}</li>\n", Prose(&said)));
    }
    page.push_str("</ul>\n</section>\n");
    for block in layout.blocks(sweep) {
        section(&mut page, sweep, &layout, &block);
    }
    page.push_str("</main>\n");
    close(&mut page, sweep.notes.iter().cloned(), None);
    page
}

fn section(page: &mut String, sweep: &Sweep, layout: &Layout, block: &Block<'_>) {
    let what = match sweep.shows() {
        Shows::Speedups => "Speedup".to_owned(),
        Shows::Times => "Time".to_owned(),
        Shows::Numbers(unit) => format!("Number in {unit}"),
    };
    let along = &sweep.axes[layout.along].name;
    let title = match block.title.is_empty() {
        true => format!("{what} by {along}"),
        false => format!("{what} by {along}, {}", block.title),
    };
    put(page, format_args!("<section>\n<h2>{}</h2>\n", Escaped(&title)));
    if let Some(chart) = figure(sweep, layout, block) {
        put(
            page,
            format_args!("<figure class=\"panel\">\n{}", chart.on_any_page()),
        );
        saved(page, &chart, &format!("{} {title}", names::shown(&sweep.kernel)));
        page.push_str("</figure>\n");
    }
    table(page, sweep, layout, block);
    page.push_str("</section>\n");
}

/// A row a line, a column a value, the better the darker.
fn table(page: &mut String, sweep: &Sweep, layout: &Layout, block: &Block<'_>) {
    let along = &sweep.axes[layout.along];
    let corner = match layout.between {
        Some(between) => format!(
            "{} \u{2193} \u{b7} {} \u{2192}",
            sweep.axes[between].name, along.name
        ),
        None => along.name.clone(),
    };
    put(
        page,
        format_args!(
            "<div class=\"scroll\"><table class=\"heat\">\n<thead><tr><th>{}</th>",
            Escaped(corner)
        ),
    );
    for value in &along.values {
        put(page, format_args!("<th class=\"number\">{}</th>", Escaped(value)));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    let numbers: Vec<f64> = sweep
        .points
        .iter()
        .filter_map(|point| sweep.number(point))
        .collect();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let best = sweep.best();
    for line in &block.lines {
        let name = line.value.unwrap_or(sweep.shows().name());
        put(page, format_args!("<tr><th>{}</th>", Escaped(name)));
        for point in &line.points {
            let Some(value) = sweep.number(point) else {
                let reason = match &point.outcome {
                    PointOutcome::Refused { reason } => reason.as_str(),
                    PointOutcome::Ok { .. } => "",
                };
                put(
                    page,
                    format_args!("<td class=\"number\" title=\"{}\">–</td>", Escaped(reason)),
                );
                continue;
            };
            // Five shades, from the worst to the best; lengths of time are compared as ratios.
            let share = match most > least {
                true => (value / least).ln() / (most / least).ln(),
                false => 0.0,
            };
            let share = if sweep.shows_speedups() {
                share
            } else {
                1.0 - share
            };
            let shade = (share * 4.999).floor() as usize;
            let chosen = match best.is_some_and(|best| std::ptr::eq(best, *point)) {
                true => " best",
                false => "",
            };
            put(
                page,
                format_args!(
                    "<td class=\"number shade{shade}{chosen}\" title=\"{}\">{}</td>",
                    Escaped(title(sweep, &point.outcome, &point.plan)),
                    shown(sweep, value),
                ),
            );
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

/// The tooltip of a table's cell.
fn title(sweep: &Sweep, outcome: &PointOutcome, plan: &crate::prefetch::Plan) -> String {
    match outcome {
        PointOutcome::Ok {
            time_ns, plain_ns, ..
        } if sweep.shows_speedups() => format!(
            "{plan}: {}, plain {}",
            number::duration(*time_ns),
            number::duration(*plain_ns)
        ),
        PointOutcome::Ok { .. } | PointOutcome::Refused { .. } => plan.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn the_page_has_a_mark_and_a_cell_for_each_point_that_ran() {
        let page = html(&sample());
        // The wide figure and the narrow one.
        assert_eq!(page.matches("<g class=\"mark\">").count(), 22);
        // The figure can be saved: a drawing of its own, which runs nothing.
        let (_, link) = page
            .split_once("<a download=\"gather Speedup by distance.svg\" href=\"data:image/svg+xml,")
            .expect("a link");
        let (drawing, _) = link.split_once('"').expect("its end");
        assert!(
            drawing.starts_with("%3Csvg class=%22figure") && drawing.contains("%3Cstyle%3E"),
            "{drawing}"
        );
        assert!(drawing.trim_end().ends_with("%3C/svg%3E%0A"), "{drawing}");
        assert_eq!(page.matches(" shade").count(), 11);
        assert_eq!(page.matches(" best\"").count(), 1);
        assert!(page.contains("title=\"too much shared memory\">–</td>"));
        assert!(page.contains("flat from distance=2 on"));
    }

    #[test]
    fn names_do_not_become_markup() {
        let mut sweep = sample();
        sweep.kernel = "<script>".to_owned();
        sweep.axes[0].name = "<img>".to_owned();
        let page = html(&sweep);
        assert!(!page.contains("<script>") && !page.contains("<img>"));
    }
}
