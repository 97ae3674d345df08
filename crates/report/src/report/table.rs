//! A report as text for a terminal: the figure's numbers, the fastest plans, the verdict and why.

use std::collections::BTreeSet;
use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

use super::columns::{Columns, broken, on_one_line};
use super::series::{self, Series};
use super::short::Short;
use super::{Outcome, Report, Trial, explain, number, taken};
use crate::evidence::Remedy;
use crate::names;
use crate::prefetch::Plan;

/// How many of the fastest plans are listed.
const FASTEST: usize = 5;
/// How many reasons for rejection are listed.
const REASONS: usize = 6;

/// A rule below the heading and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// The whole report, ending with a line break. No line is coloured, so that it reads the same in a file.
pub fn text(report: &Report, columns: Columns) -> String {
    let wrapped = |text: &str, first: &str, following: &str| columns.wrapped(text, first, following);
    let mut text = String::new();
    let mut heading = format!("{} on {}", names::shown(&report.kernel), report.device);
    if let Some(geometry) = report.geometry {
        let _ = write!(heading, ", {geometry}");
    }
    for (name, value) in &report.parameters {
        let _ = write!(heading, ", {name}={value}");
    }
    // Writing to a String cannot fail.
    text.push_str(&columns.fitted(&on_one_line(&heading)));
    text.push_str("\n\n");
    if let Some(matrix) = speedups(report, columns) {
        let plain = number::duration(report.baseline_ns);
        let dropped = match report.dropped().is_empty() {
            true => "",
            false => ", < is the bound of a dropped plan",
        };
        let title = format!("Speedup over the plain kernel ({plain}), by distance; * is the best{dropped}");
        text.push_str(&columns.fitted(&title));
        let _ = writeln!(text, "\n{matrix}\n");
    }
    let _ = writeln!(text, "The fastest\n{}\n", fastest(report, columns));
    for warning in &report.warnings {
        text.push_str(&wrapped(&format!("Warning: {warning}"), "", "  "));
    }
    let _ = writeln!(text, "Verdict: {}", report.verdict);
    text.push_str(&wrapped(&report.conclusion(), "  ", "  "));
    if let Some(doubt) = &report.doubt {
        text.push_str(&wrapped(doubt, "  ", "  "));
    }
    if !report.best.plan.is_none() {
        text.push_str(&plan_line(&report.best.plan, columns));
        for (part, meaning) in explain::plan(&report.best.plan) {
            let _ = writeln!(text, "    {part}");
            text.push_str(&wrapped(&meaning, "      ", "      "));
        }
    }
    text.push_str(&before_any_plan(&report.first, columns));
    let _ = writeln!(text, "\nWhy");
    for reason in &report.reasons {
        text.push_str(&wrapped(reason, "  - ", "    "));
    }
    if report.bounds.is_some() {
        let _ = writeln!(text, "\nHow much there is to gain");
        for sentence in report.gains() {
            text.push_str(&wrapped(&sentence, "  - ", "    "));
        }
    }
    if let Some(ways) = &report.ways {
        text.push_str(&ways.text(columns));
    }
    text.push_str(&dropped(report, columns));
    text.push_str(&rejected(report, columns));
    for note in report.remarks() {
        text.push('\n');
        text.push_str(&wrapped(&note, "", ""));
    }
    text
}

/// What to change before any plan; empty where nothing is.
#[doc(hidden)]
pub fn before_any_plan(first: &[Remedy], columns: Columns) -> String {
    match first.is_empty() {
        true => String::new(),
        false => format!("\nBefore any plan\n{}", remedies(first, columns)),
    }
}

/// Remedies, a point each, with their places.
#[doc(hidden)]
pub fn remedies(remedies: &[Remedy], columns: Columns) -> String {
    let point = |remedy: &Remedy| {
        let place = remedy
            .place
            .as_ref()
            .map_or(String::new(), |place| format!("{place}: "));
        columns.wrapped(&format!("{place}{}", remedy.finding), "  - ", "    ")
    };
    remedies.iter().map(point).collect()
}

/// A plan in full, to be pasted: spaces after its commas are allowed where it is read.
#[doc(hidden)]
pub fn plan_line(plan: &Plan, columns: Columns) -> String {
    const LEAD: &str = "  plan: ";
    let spelled = broken(
        &plan.to_string(),
        columns.width().saturating_sub(LEAD.len()),
        &[','],
    );
    format!("{LEAD}{}\n", spelled.replace('\n', "\n        "))
}

/// The figure as numbers: a row per strategy, a column per distance; dropped plans with `<` in front of their upper bound. None
/// if no plan has a distance.
pub fn speedups(report: &Report, columns: Columns) -> Option<String> {
    let (all, timed, dropped) = (series::all(report), series::of(report), series::dropped(report));
    let distances: BTreeSet<u32> = all
        .iter()
        .flat_map(|line| &line.points)
        .map(|point| point.distance)
        .collect();
    if distances.is_empty() {
        return None;
    }
    let point = |lines: &[Series], label: &str, distance: u32| {
        let line = lines.iter().find(|line| line.label == label)?;
        line.points
            .iter()
            .find(|point| point.distance == distance)
            .cloned()
    };
    let cell = |label: &str, distance: u32| {
        if let Some(timed) = point(&timed, label, distance) {
            let mark = if timed.plan == report.best.plan { "*" } else { "" };
            return format!("{mark}{:.2}", timed.speedup);
        }
        match point(&dropped, label, distance) {
            // Rounded up: it is a bound.
            Some(dropped) => format!("<{:.1}", (dropped.speedup * 10.0).ceil() / 10.0),
            None => String::new(),
        }
    };
    let rows: Vec<(String, Vec<String>)> = all
        .iter()
        .map(|line| {
            let cells = distances.iter().map(|&distance| cell(&line.label, distance));
            (line.label.clone(), cells.collect())
        })
        .collect();
    let header: Vec<String> = distances.iter().map(u32::to_string).collect();
    Some(matrix("strategy", &header, &rows, columns))
}

/// A table of words and right-aligned numbers. Where it is wider than the terminal, it goes on below with the columns that
/// did not fit.
#[doc(hidden)]
pub fn matrix(corner: &str, header: &[String], rows: &[(String, Vec<String>)], columns: Columns) -> String {
    let length = |text: &str| text.chars().count() + BETWEEN;
    let names = rows.iter().map(|(name, _)| length(name)).max().unwrap_or(0);
    let first = names.max(length(corner)) + LEFT - BETWEEN;
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|(_, cells)| cells.get(column));
        let widest = cells.map(|cell| length(cell)).max().unwrap_or(0);
        widest.max(length(&header[column]))
    };
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut taken = first;
    for column in 0..header.len() {
        let needed = width(column);
        match parts.last_mut() {
            Some(part) if taken + needed <= columns.width() => part.push(column),
            _ => {
                parts.push(vec![column]);
                taken = first;
            }
        }
        taken += needed;
    }
    let tables = parts.iter().map(|part| {
        let mut table = plain_table();
        let named = part.iter().map(|&column| header[column].as_str());
        table.set_header(std::iter::once(corner).chain(named));
        for (name, cells) in rows {
            let cells = part.iter().map(|&column| cells[column].as_str());
            table.add_row(std::iter::once(name.as_str()).chain(cells).map(Cell::new));
        }
        align_numbers(&mut table);
        table.trim_fmt()
    });
    tables.collect::<Vec<_>>().join("\n\n")
}

/// The left margin of a table, and the gap between its columns.
const LEFT: usize = 2;
const BETWEEN: usize = 3;

fn fastest(report: &Report, columns: Columns) -> String {
    let ran = report.fastest_first();
    let shown = ran
        .iter()
        .enumerate()
        .filter(|(rank, trial)| *rank < FASTEST || trial.plan.is_none());
    let shown: Vec<&Trial> = shown.map(|(_, trial)| *trial).collect();
    // Time, speedup and whether outputs are identical stand beside the plan.
    const OTHERS: usize = LEFT + 3 * BETWEEN + "1,000 µs".len() + "speedup".len() + "within bounds".len();
    let more = taken::columns(shown.iter().copied());
    let others = OTHERS + more.iter().map(|name| BETWEEN + name.len()).sum::<usize>();
    let width = columns.width().saturating_sub(others);
    let elsewhere = report.best_elsewhere.as_ref();
    let plans: Vec<&Plan> = shown
        .iter()
        .map(|trial| &trial.plan)
        .chain(elsewhere.map(|other| &other.plan))
        .collect();
    let short = Short::of(plans, width);
    let mut table = plain_table();
    let names = ["plan", "time", "speedup", "outputs"];
    table.set_header(names.iter().chain(&more).map(|name| columns.said(name)));
    for trial in &shown {
        let Outcome::Ok {
            time_ns,
            speedup,
            outputs,
        } = trial.outcome
        else {
            continue;
        };
        let outputs = outputs.word();
        let row = [
            short.plan(&trial.plan, width),
            number::duration(time_ns),
            number::speedup(speedup),
            outputs.to_owned(),
        ];
        table.add_row(
            row.into_iter()
                .chain(more.iter().map(|name| taken::entry(trial, name))),
        );
    }
    let mut other = |plan: &Plan, geometry, time_ns, speedup| {
        let named = columns.said(&format!("{}, as {geometry}", short.plan(plan, width)));
        table.add_row([
            broken(&named, width, &[' ']),
            number::duration(time_ns),
            number::speedup(speedup),
        ]);
    };
    if let Some(found) = &report.plain_best_geometry {
        other(&Plan::none(), found.geometry, found.time_ns, found.speedup);
    }
    if let Some(found) = elsewhere {
        other(&found.plan, found.geometry, found.time_ns, found.speedup);
    }
    align_numbers(&mut table);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    let table = table.trim_fmt();
    let source = match more.is_empty() {
        true => String::new(),
        false => format!(
            "\n{}",
            columns
                .wrapped(taken::source(shown.iter().copied()), "  ", "  ")
                .trim_end()
        ),
    };
    match short.legend() {
        Some(legend) => format!("{}{table}{source}", columns.wrapped(&legend, "  ", "  ")),
        None => table + &source,
    }
}

/// How many plans were dropped, and which came nearest; empty where none was.
fn dropped(report: &Report, columns: Columns) -> String {
    let dropped = report.dropped();
    let Some((nearest, (after, at_most))) = dropped.first().and_then(|trial| Some((trial, trial.dropped()?)))
    else {
        return String::new();
    };
    let text = format!(
        "Dropped: {} of {} plans were certain not to be 2 % faster than the best so far. The closest, `{}`, was dropped after {}: at most {}.",
        dropped.len(),
        report.trials.len(),
        nearest.plan,
        number::percent(after),
        number::speedup(at_most)
    );
    format!("\n{}", columns.wrapped(&text, "", "  "))
}

/// The rejected plans by reason, the commonest first; empty where none was rejected.
fn rejected(report: &Report, columns: Columns) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (plan, reason) in report.without_time() {
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, plans)) => plans.push(plan.to_string()),
            None => reasons.push((reason, vec![plan.to_string()])),
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    reasons.sort_by_key(|(_, plans)| std::cmp::Reverse(plans.len()));
    let mut text = format!(
        "\nRejected: {} of {} plans\n",
        report.without_time().count(),
        report.trials.len()
    );
    for (reason, plans) in reasons.iter().take(REASONS) {
        let others = match plans.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        text.push_str(&columns.wrapped(&format!("{}{others}: {reason}", plans[0]), "  ", "    "));
    }
    if reasons.len() > REASONS {
        let _ = writeln!(text, "  … and {} other reasons", reasons.len() - REASONS);
    }
    text
}

#[doc(hidden)]
pub fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table
}

/// Numbers stand right-aligned below one another; the first column is words.
#[doc(hidden)]
pub fn align_numbers(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Taken, TakenBy, Trial};
    use crate::samples::sample;

    #[test]
    fn the_text_shows_verdict_best_and_reasons() {
        let text = text(&sample(), Columns::UNLIMITED);
        for expected in [
            "gather on sim:h200, 132 work-groups of 128 work-items, items=1024",
            "*2.96",
            "Verdict: prefetch",
            "plan: unroll:2,values=rolling-async:16/interleaved",
            "  - 4 warps a core are too few.",
            "Rejected: 1 of",
            "unroll:4, as 1,056 work-groups of 256 work-items",
            "unroll:64: needs 300 registers",
        ] {
            assert!(text.contains(expected), "{expected} in:\n{text}");
        }
    }

    #[test]
    fn what_a_plan_takes_stands_beside_its_time() {
        let mut report = sample();
        assert!(!text(&report, Columns::UNLIMITED).contains("resident"));
        let takes = |registers, spilled_bytes, by| Taken {
            registers,
            spilled_bytes,
            groups_per_core: Some(7),
            by,
        };
        let line = |report: &Report, plan: &str| {
            let text = text(report, Columns::UNLIMITED);
            let table = text.split("The fastest").nth(1).map(str::to_owned);
            let table = table.expect("a table");
            let line = table
                .lines()
                .find(|line| line.trim_start().starts_with(plan))
                .map(str::to_owned);
            let line = line.expect("the plan's line");
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            (words, table)
        };
        let none = report.trials[0].plan.to_string();
        report.trials[0].takes = Some(takes(40, 0, TakenBy::Compiler));
        let (own, table) = line(&report, &none);
        assert!(
            own.ends_with(&["identical", "40", "7"].map(str::to_owned)),
            "{own:?}"
        );
        assert!(
            !table.contains("spilled  ") && table.contains("compiled"),
            "{table}"
        );
        report.trials[0].takes = Some(takes(64, 772, TakenBy::Model));
        let (own, table) = line(&report, &none);
        assert!(
            own.ends_with(&["64", "772", "B", "7"].map(str::to_owned)),
            "{own:?}"
        );
        assert!(table.contains("The model estimates registers"), "{table}");
    }

    #[test]
    fn a_dropped_plan_is_shown_with_its_bound() {
        let mut report = sample();
        report.trials.push(Trial {
            takes: None,
            between: None,
            plan: "values=batched-shared:4/plain".parse().expect("a plan"),
            outcome: Outcome::Dropped {
                after: 0.1,
                at_most: 1.4321,
            },
        });
        let text = text(&report, Columns::UNLIMITED);
        for expected in [
            "< is the bound of a dropped plan",
            "batched-shared/plain",
            "<1.5",
            "Dropped: 1 of",
            "`values=batched-shared:4/plain`, was dropped after 10 %: at most 1.43×.",
        ] {
            let in_one_line = text.replace("\n  ", " ");
            assert!(
                text.contains(expected) || in_one_line.contains(expected),
                "{expected} in:\n{text}"
            );
        }
        let json = serde_json::to_value(&report).expect("serializable");
        let last = json["trials"].as_array().and_then(|trials| trials.last());
        assert_eq!(last.expect("a trial")["status"], "dropped");
        let back: Report = serde_json::from_value(json).expect("read back");
        assert_eq!(back, report);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut report = sample();
        report.kernel = "evil\u{1b}[2J\r\nname".to_owned();
        report.reasons = vec!["\u{7}".to_owned()];
        let text = text(&report, Columns::UNLIMITED);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }

    #[test]
    fn a_report_fits_the_terminal() {
        let mut report = sample();
        let long = "unroll:8,param_3@L__BB1_4=rolling-async:8,param_4@L__BB1_4=rolling-async:8,x=rolling-registers:16";
        let mut trial = report.fastest_first()[0].clone();
        trial.plan = long.parse().expect("a plan");
        if let Outcome::Ok { time_ns, speedup, .. } = &mut trial.outcome {
            (*time_ns, *speedup) = (1.0, 100.0);
        }
        report.trials.push(trial);
        report.best.plan = long.parse().expect("a plan");
        for width in [80, 100, 140] {
            let text = text(&report, Columns::new(width));
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(text.contains("A is `param_3@L__BB1_4`"), "{text}");
            let plan = text.split("  plan: ").nth(1).expect("the plan");
            let plan: String = plan
                .lines()
                .take_while(|line| !line.starts_with("    unroll"))
                .collect();
            assert_eq!(plan.parse::<Plan>().expect("to be pasted"), report.best.plan);
        }
    }

    #[test]
    fn a_report_without_distances_has_no_matrix() {
        let mut report = sample();
        report.trials.truncate(1);
        assert_eq!(speedups(&report, Columns::UNLIMITED), None);
        assert!(text(&report, Columns::UNLIMITED).contains("The fastest"));
    }
}
