//! A report as text for a terminal: the figure's numbers, the fastest plans, the verdict and why.

use std::collections::BTreeSet;
use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

use super::series::{self, Series};
use super::{Outcome, Report, explain, gains, number};
use crate::names;

/// How many of the fastest plans are listed.
const FASTEST: usize = 5;
/// Characters in a line of running text.
const WIDTH: usize = 100;
/// How many reasons for rejection are listed.
const REASONS: usize = 6;

/// A rule below the heading and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// The whole report, ending with a line break. No line is coloured, so that it reads the same in a file.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut heading = format!("{} on {}", names::shown(&report.kernel), report.device);
    if let Some(geometry) = report.geometry {
        let _ = write!(heading, ", {geometry}");
    }
    for (name, value) in &report.parameters {
        let _ = write!(heading, ", {name}={value}");
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}\n", on_one_line(&heading));
    if let Some(matrix) = speedups(report) {
        let plain = number::duration(report.baseline_ns);
        let dropped = match report.dropped().is_empty() {
            true => "",
            false => ", < what a dropped plan is below",
        };
        let _ = writeln!(
            text,
            "Speedup over the plain kernel ({plain}), by distance; * is the best{dropped}\n{matrix}\n"
        );
    }
    let _ = writeln!(text, "The fastest\n{}\n", fastest(report));
    for warning in &report.warnings {
        text.push_str(&wrapped(&format!("Warning: {warning}"), "", "  "));
    }
    let _ = writeln!(text, "Verdict: {}", report.verdict);
    text.push_str(&wrapped(&report.conclusion(), "  ", "  "));
    if let Some(doubt) = &report.doubt {
        text.push_str(&wrapped(doubt, "  ", "  "));
    }
    if !report.best.plan.is_none() {
        let _ = writeln!(text, "  plan: {}", report.best.plan);
        for (part, meaning) in explain::plan(&report.best.plan) {
            let _ = writeln!(text, "    {part}");
            text.push_str(&wrapped(&meaning, "      ", "      "));
        }
    }
    let _ = writeln!(text, "\nWhy");
    for reason in &report.reasons {
        text.push_str(&wrapped(reason, "  - ", "    "));
    }
    if let Some(bounds) = &report.bounds {
        let _ = writeln!(text, "\nHow much there is to gain");
        for sentence in gains::sentences(bounds, Some(report.advised_speedup())) {
            text.push_str(&wrapped(&sentence, "  - ", "    "));
        }
    }
    text.push_str(&dropped(report));
    text.push_str(&rejected(report));
    for note in report.remarks() {
        text.push('\n');
        text.push_str(&wrapped(&note, "", ""));
    }
    text
}

/// The figure as numbers: a row a strategy, a column a distance; what was dropped with `<` in front of what it is at most. None
/// where no plan has a distance.
pub fn speedups(report: &Report) -> Option<String> {
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
    let mut table = plain_table();
    table.set_header(std::iter::once("strategy".to_owned()).chain(distances.iter().map(u32::to_string)));
    for Series { label, .. } in &all {
        let cells = distances.iter().map(|&distance| {
            if let Some(timed) = point(&timed, label, distance) {
                let mark = if timed.plan == report.best.plan { "*" } else { "" };
                return format!("{mark}{:.2}", timed.speedup);
            }
            match point(&dropped, label, distance) {
                // Rounded up: it is a bound.
                Some(dropped) => format!("<{:.1}", (dropped.speedup * 10.0).ceil() / 10.0),
                None => String::new(),
            }
        });
        table.add_row(std::iter::once(label.clone()).chain(cells).map(Cell::new));
    }
    align_numbers(&mut table);
    Some(table.trim_fmt())
}

fn fastest(report: &Report) -> String {
    let mut table = plain_table();
    table.set_header(["plan", "time", "speedup", "outputs"]);
    let ran = report.fastest_first();
    let shown = ran
        .iter()
        .enumerate()
        .filter(|(rank, trial)| *rank < FASTEST || trial.plan.is_none());
    for (_, trial) in shown {
        let Outcome::Ok {
            time_ns,
            speedup,
            outputs,
        } = trial.outcome
        else {
            continue;
        };
        let outputs = outputs.word();
        table.add_row([
            trial.plan.to_string(),
            number::duration(time_ns),
            number::speedup(speedup),
            outputs.to_owned(),
        ]);
    }
    if let Some(other) = &report.plain_best_geometry {
        table.add_row([
            format!("none, as {}", other.geometry),
            number::duration(other.time_ns),
            number::speedup(other.speedup),
        ]);
    }
    if let Some(other) = &report.best_elsewhere {
        table.add_row([
            format!("{}, as {}", other.plan, other.geometry),
            number::duration(other.time_ns),
            number::speedup(other.speedup),
        ]);
    }
    align_numbers(&mut table);
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    table.trim_fmt()
}

/// How many plans were dropped, and which came nearest; empty where none was.
fn dropped(report: &Report) -> String {
    let dropped = report.dropped();
    let Some((nearest, (after, at_most))) = dropped.first().and_then(|trial| Some((trial, trial.dropped()?)))
    else {
        return String::new();
    };
    let text = format!(
        "Dropped: {} of {} plans were surely behind before they ended. The nearest, `{}`, was dropped after {}: at most {}.",
        dropped.len(),
        report.trials.len(),
        nearest.plan,
        number::percent(after),
        number::speedup(at_most)
    );
    format!("\n{}", wrapped(&text, "", "  "))
}

/// The rejected plans by reason, the commonest first; empty where none was rejected.
fn rejected(report: &Report) -> String {
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
        text.push_str(&wrapped(&format!("{}{others}: {reason}", plans[0]), "  ", "    "));
    }
    if reasons.len() > REASONS {
        let _ = writeln!(text, "  … and {} other reasons", reasons.len() - REASONS);
    }
    text
}

pub(super) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table
}

/// Numbers stand right-aligned below one another; the first column is words.
pub(super) fn align_numbers(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Text broken into lines of at most [`WIDTH`] characters where it has spaces, each with its indentation.
pub fn wrapped(text: &str, first: &str, following: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in on_one_line(text).split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = following.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}

/// Text from outside (a kernel's name, a reason that quotes it) must not move the cursor.
pub(super) fn on_one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Trial;
    use crate::report::tests::sample;

    #[test]
    fn the_text_shows_verdict_best_and_reasons() {
        let text = text(&sample());
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
    fn a_dropped_plan_is_shown_with_its_bound() {
        let mut report = sample();
        report.trials.push(Trial {
            plan: "values=batched-shared:4/plain".parse().expect("a plan"),
            outcome: Outcome::Dropped {
                after: 0.1,
                at_most: 1.4321,
            },
        });
        let text = text(&report);
        for expected in [
            "< what a dropped plan is below",
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
        let text = text(&report);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }

    #[test]
    fn running_text_is_broken_at_spaces() {
        let text = wrapped(&"word ".repeat(50), "- ", "  ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(text.matches("word").count(), 50);
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(wrapped(&"x".repeat(300), "- ", "  ").lines().count(), 1);
    }

    #[test]
    fn a_report_without_distances_has_no_matrix() {
        let mut report = sample();
        report.trials.truncate(1);
        assert_eq!(speedups(&report), None);
        assert!(text(&report).contains("The fastest"));
    }
}
