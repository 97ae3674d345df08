//! A report as text for a terminal, and its tables.

use std::collections::BTreeSet;
use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

use super::columns::{Columns, broken, on_one_line};
use super::sections::{self, Sections};
use super::series::{self, Series};
use super::short::Short;
use super::{Report, Trial, Verdict, explain, number, taken};
use crate::evidence::Remedy;
use crate::names;
use crate::prefetch::Plan;

/// How many of the fastest plans are listed, besides the advised one and the kernel as it is.
const FASTEST: usize = 3;
/// How many reasons for rejection are listed.
const REASONS: usize = 6;

/// A rule below the heading and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// The report for a terminal, ending with a line break: the verdict, its plan, the fastest plans, why, how sure and at what cost.
/// It has at most 40 lines of 100 characters. No line is coloured, so that it reads the same in a file.
pub fn text(report: &Report, columns: Columns) -> String {
    // What is left out does not depend on the terminal. Plans make room for what is always said.
    let (sections, wide) = (Sections::of_report(report), columns.of_width(sections::WIDTH));
    let above = |plans| beginning(report, wide, plans).lines().count();
    let plans = (1..=FASTEST)
        .rev()
        .find(|plans| above(*plans) + sections.least(wide) <= sections::LINES);
    let plans = plans.unwrap_or(1);
    beginning(report, columns, plans) + &sections.within(columns, above(plans))
}

/// The same with all its points, the speedups by distance, and the plans that were dropped or rejected.
#[doc(hidden)]
pub fn in_full(report: &Report, columns: Columns) -> String {
    let mut text = beginning(report, columns, FASTEST) + &Sections::of_report(report).all(columns);
    if let Some(matrix) = speedups(report, columns) {
        let plain = number::duration(report.baseline_ns);
        let dropped = match report.dropped().is_empty() {
            true => "",
            false => ", < is the bound of a dropped plan",
        };
        let title = format!("Speedup over the plain kernel ({plain}), by distance; * is the best{dropped}");
        let _ = writeln!(text, "\n{}\n{matrix}", columns.fitted(&title));
    }
    text + &rejected(report, columns)
}

/// The first part of a report: the launch, the verdict, the plan, and the `plans` fastest plans.
fn beginning(report: &Report, columns: Columns, plans: usize) -> String {
    let mut heading = format!("{} on {}", names::shown(&report.kernel), report.device);
    if let Some(geometry) = report.geometry {
        let _ = write!(heading, ", {geometry}");
    }
    for (name, value) in &report.parameters {
        let _ = write!(heading, ", {name}={value}");
    }
    // Writing to a String cannot fail.
    let mut text = columns.fitted(&on_one_line(&heading)) + "\n\n";
    let verdict = Stated {
        warnings: &report.warnings,
        verdict: report.verdict,
        conclusion: &report.conclusion(),
        plan: Some(&report.best.plan).filter(|plan| !plan.is_none()),
    };
    text.push_str(&verdict.text(columns));
    if report.trials.iter().any(|trial| !trial.plan.is_none()) || report.plain_best_geometry.is_some() {
        let _ = writeln!(text, "\n{}", fastest(report, columns, plans));
    }
    text
}

/// A verdict with what belongs to it, of a report or of advice.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Stated<'r> {
    /// Why the launch shows little.
    pub warnings: &'r [String],
    /// The verdict.
    pub verdict: Verdict,
    /// Its meaning here.
    pub conclusion: &'r str,
    /// The plan, where one is advised.
    pub plan: Option<&'r Plan>,
}

impl Stated<'_> {
    /// As lines.
    pub fn text(&self, columns: Columns) -> String {
        let warnings = self.warnings.iter();
        let warnings = warnings.map(|warning| columns.wrapped(&format!("Warning: {warning}"), "", "  "));
        let mut text: String = warnings.collect();
        let _ = writeln!(text, "Verdict: {}", columns.said(self.verdict.name()));
        text.push_str(&columns.wrapped(self.conclusion, "  ", "  "));
        if let Some(plan) = self.plan {
            text.push_str(&plan_line(plan, columns));
            for (_, meaning) in explain::plan(plan) {
                text.push_str(&columns.wrapped(&meaning, "    ", "    "));
            }
        }
        text
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
pub(crate) fn plan_line(plan: &Plan, columns: Columns) -> String {
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
pub(crate) fn speedups(report: &Report, columns: Columns) -> Option<String> {
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

fn fastest(report: &Report, columns: Columns, listed: usize) -> String {
    let ran = report.fastest_first();
    let shown = ran
        .iter()
        .enumerate()
        .filter(|(rank, trial)| *rank < listed || trial.plan.is_none() || trial.plan == report.best.plan);
    let shown: Vec<&Trial> = shown.map(|(_, trial)| *trial).collect();
    // Time and speedup stand beside the plan.
    const OTHERS: usize = LEFT + 2 * BETWEEN + "1,000 µs".len() + "speedup".len();
    let more = taken::columns(shown.iter().copied());
    let wide = |name: &str| {
        let entries = shown
            .iter()
            .map(|trial| taken::entry(trial, name).chars().count());
        BETWEEN + entries.fold(name.len(), usize::max)
    };
    let others = OTHERS + more.iter().map(|name| wide(name)).sum::<usize>();
    let width = columns.width().saturating_sub(others);
    let elsewhere = report.best_elsewhere.as_ref();
    let plans: Vec<&Plan> = shown
        .iter()
        .map(|trial| &trial.plan)
        .chain(elsewhere.map(|other| &other.plan))
        .collect();
    let short = Short::of(plans, width);
    let mut table = plain_table();
    let names = ["plan", "time", "speedup"];
    table.set_header(names.iter().chain(&more).map(|name| columns.said(name)));
    for trial in &shown {
        let Some((time_ns, speedup)) = trial.measured() else {
            continue;
        };
        let row = [
            short.plan(&trial.plan, width),
            number::duration(time_ns),
            number::speedup(speedup),
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
    let table = table.trim_fmt();
    match short.legend() {
        Some(legend) => format!("{}{table}", columns.wrapped(&legend, "  ", "  ")),
        None => table,
    }
}

/// The rejected plans by reason; empty where none was rejected.
fn rejected(report: &Report, columns: Columns) -> String {
    let refusals = refusals(report);
    if refusals.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\nRejected: {} of {} plans\n",
        report.without_time().count(),
        report.trials.len()
    );
    for refusal in refusals.iter().take(REASONS) {
        text.push_str(&columns.wrapped(refusal, "  ", "    "));
    }
    if refusals.len() > REASONS {
        let _ = writeln!(text, "  … and {} other reasons", refusals.len() - REASONS);
    }
    text
}

/// The reasons for which plans were rejected, the commonest first, each with a plan.
pub(super) fn refusals(report: &Report) -> Vec<String> {
    let mut reasons: Vec<(&str, &Plan, usize)> = Vec::new();
    for (plan, reason) in report.without_time() {
        match reasons.iter_mut().find(|(other, ..)| *other == reason) {
            Some((.., count)) => *count += 1,
            None => reasons.push((reason, plan, 1)),
        }
    }
    reasons.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
    let said = reasons.iter().map(|(reason, plan, count)| match count {
        1 => format!("{plan}: {reason}"),
        count => format!("{plan} and {} more: {reason}", count - 1),
    });
    said.collect()
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
    use crate::report::{Outcome, Taken, TakenBy};
    use crate::samples::sample;

    #[test]
    fn the_text_shows_verdict_best_and_reasons() {
        let text = in_full(&sample(), Columns::UNLIMITED);
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
        let takes = |registers, spilled_bytes| Taken {
            registers,
            spilled_bytes,
            groups_per_core: Some(7),
            shared_bytes: Some(4096),
            code_bytes: None,
            occupancy: Some(0.5),
            by: TakenBy::Model,
        };
        report.trials[0].takes = Some(takes(40, 0));
        let said = text(&report, Columns::UNLIMITED);
        let row = said.lines().find(|line| line.trim_start().starts_with("none "));
        let row: Vec<&str> = row.expect("the plain kernel's row").split_whitespace().collect();
        assert!(row.ends_with(&["40", "7"]), "{row:?}");
        assert!(
            !said.contains("What it costs"),
            "nothing is known of the plan: {said}"
        );
        let best = report.best.plan.clone();
        let best = report.trials.iter_mut().find(|trial| trial.plan == best);
        best.expect("it ran").takes = Some(Taken {
            shared_bytes: Some(12_288),
            occupancy: Some(0.25),
            groups_per_core: Some(3),
            ..takes(64, 772)
        });
        let said = text(&report, Columns::UNLIMITED);
        for expected in [
            "What it costs\n  - By the model's estimates: registers of a work-item 40 → 64",
            "spilled 0 → 772 B",
            "shared memory of a work-group 4 → 12 KiB",
            "work-groups of a core 7 → 3 (occupancy 50 → 25 %)",
        ] {
            let one_line = said.replace("\n    ", " ");
            assert!(one_line.contains(expected), "{expected} in:\n{said}");
        }
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
        assert!(!text(&report, Columns::UNLIMITED).contains("<1.5"));
        let text = in_full(&report, Columns::UNLIMITED);
        for expected in [
            "< is the bound of a dropped plan",
            "batched-shared/plain",
            "<1.5",
            "1 dropped as certainly slower",
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
        trial.between = Some((90.0, 110.0));
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
                .take_while(|line| !line.starts_with("    The loop"))
                .collect();
            assert_eq!(plan.parse::<Plan>().expect("to be pasted"), report.best.plan);
        }
    }

    #[test]
    fn a_report_without_distances_has_no_matrix() {
        let mut report = sample();
        report.trials.truncate(1);
        assert_eq!(speedups(&report, Columns::UNLIMITED), None);
        assert!(text(&report, Columns::UNLIMITED).contains("none, as 1,056"));
    }
}
