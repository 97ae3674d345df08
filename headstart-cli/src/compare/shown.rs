//! A comparison as text and as JSON.

use headstart::report::columns::{Columns, broken};
use headstart::report::number;
use serde_json::{Value, json};

use super::code::{Difference, Whose};
use super::{Comparison, Row, Side};
use headstart_cli::terminal::{self, Changed};

/// Lines of code that are shown unless all are asked for.
const LINES: usize = 60;

/// The width of a column of numbers, and the space before it.
const COLUMN: usize = 12;

/// The most that the names of a table take.
const NAMES: usize = 44;

/// As JSON.
pub fn json(comparison: &Comparison) -> Value {
    json!({
        "device": comparison.device,
        "verdict": comparison.verdict(),
        "conclusion": comparison.conclusion(),
        "ratio": comparison.ratio(),
        "ratio_interval": comparison.ratio_interval(),
        "a": comparison.a,
        "b": comparison.b,
        "counters": comparison.rows(),
        "warnings": comparison.warnings,
        "findings": comparison.findings,
        "code": comparison.code,
        "notes": comparison.notes,
    })
}

/// As text without the code.
pub fn text(comparison: &Comparison, columns: Columns) -> String {
    let mut text = columns.wrapped(&comparison.conclusion(), "", "");
    for warning in &comparison.warnings {
        text.push_str(&columns.wrapped(&format!("Warning: {warning}"), "", "  "));
    }
    text.push('\n');
    let (a, b) = (&comparison.a, &comparison.b);
    for (letter, side) in [("A", a), ("B", b)] {
        let plan = match side.name == side.plan || side.plan == "none" {
            true => String::new(),
            false => format!(", `{}`", side.plan),
        };
        text.push_str(&columns.wrapped(&format!("{letter}  `{}`{plan}", side.name), "", "   "));
    }
    let launches = match a.launch == b.launch && a.kernel == b.kernel {
        true => format!("`{}` on `{}`, {}", a.kernel, comparison.device, a.launch),
        false => format!(
            "`{}`, {}, and `{}`, {}, on `{}`",
            a.kernel, a.launch, b.kernel, b.launch, comparison.device
        ),
    };
    text.push_str(&columns.wrapped(&launches, "   ", "   "));
    text.push('\n');
    text.push_str(&table(comparison, columns));
    for finding in &comparison.findings {
        text.push('\n');
        text.push_str(columns.wrapped(finding, "", "  ").trim_end());
    }
    if !comparison.findings.is_empty() {
        text.push('\n');
    }
    for note in &comparison.notes {
        text.push('\n');
        text.push_str(&columns.wrapped(note, "", "  "));
    }
    text
}

/// Times and counters side by side.
fn table(comparison: &Comparison, columns: Columns) -> String {
    let (a, b) = (&comparison.a, &comparison.b);
    let mut rows: Vec<[String; 4]> = vec![[
        "time".to_owned(),
        number::duration(a.time_ns),
        number::duration(b.time_ns),
        number::speedup(comparison.ratio()),
    ]];
    if a.interval_ns.is_some() || b.interval_ns.is_some() {
        let bound = |side: &Side, of: fn((f64, f64)) -> f64| {
            side.interval_ns
                .map_or_else(String::new, |interval| number::duration(of(interval)))
        };
        let ratio = comparison.ratio_interval();
        let ratio = |of: fn((f64, f64)) -> f64| {
            ratio.map_or_else(String::new, |interval| number::speedup(of(interval)))
        };
        // The greater A is, and the smaller B, the greater is the ratio.
        rows.push([
            "  from".to_owned(),
            bound(a, |interval| interval.0),
            bound(b, |interval| interval.0),
            ratio(|interval| interval.0),
        ]);
        rows.push([
            "  to".to_owned(),
            bound(a, |interval| interval.1),
            bound(b, |interval| interval.1),
            ratio(|interval| interval.1),
        ]);
    }
    rows.extend(comparison.rows().iter().map(counter));
    let widest = rows.iter().map(|row| columns.said(&row[0]).chars().count()).max();
    let names = widest.unwrap_or(0).min(NAMES);
    let line = |row: &[String; 4]| -> String {
        let name = broken(&columns.said(&row[0]), names, &[' ']);
        let mut lines = name.lines();
        let first = lines.next().unwrap_or_default();
        let cells: String = row[1..].iter().map(|cell| format!("{cell:>COLUMN$}")).collect();
        let mut text = format!("{first:<names$}{cells}");
        text.truncate(text.trim_end().len());
        text.push('\n');
        // What is left of a long name stands below.
        for rest in lines {
            text.push_str(&format!("  {rest}\n"));
        }
        text
    };
    let header = [String::new(), "A".to_owned(), "B".to_owned(), "A / B".to_owned()];
    std::iter::once(&header).chain(&rows).map(line).collect()
}

/// A counter as a row.
fn counter(row: &Row) -> [String; 4] {
    let value = |value: Option<f64>| match (value, row.unit.as_str()) {
        (None, _) => "-".to_owned(),
        (Some(value), "%") => number::percent(value / 100.0),
        (Some(value), "bytes") => number::bytes(value),
        (Some(value), unit) => format!("{} {unit}", number::figures(value)).trim_end().to_owned(),
    };
    let ratio = match (row.a, row.b) {
        // Of two shares the difference says more than the ratio does.
        (Some(a), Some(b)) if b != 0.0 && row.unit != "%" => number::speedup(a / b),
        _ => String::new(),
    };
    [row.name.clone(), value(row.a), value(row.b), ratio]
}

/// The code: a heading, and the lines that differ, coloured where that is wanted.
pub fn code(difference: &Difference, is_whole: bool, columns: Columns) -> String {
    if difference.is_none() {
        return columns.fitted(&format!(
            "The {} is the same, but for the numbers of values and source places.\n",
            difference.form
        ));
    }
    let mut text = columns.fitted(&format!(
        "{}: {} lines only in A (-), {} only in B (+); numbers of values and source places are not compared\n\n",
        difference.form, difference.removed, difference.added
    ));
    let shown = match is_whole {
        true => difference.lines.len(),
        false => difference.lines.len().min(LINES),
    };
    // Code is in no one's words.
    let columns = columns.in_terms(None);
    for line in &difference.lines[..shown] {
        let (mark, changed) = match line.of {
            Whose::A => ("- ", Some(Changed::Removed)),
            Whose::B => ("+ ", Some(Changed::Added)),
            Whose::Both => ("  ", None),
            Whose::Place => ("", Some(Changed::Place)),
        };
        let fitted = columns.fitted(&format!("{mark}{}", line.text));
        for line in fitted.lines() {
            match changed {
                Some(changed) => text.push_str(&terminal::changed(changed, line)),
                None => text.push_str(line),
            }
            text.push('\n');
        }
    }
    let left = difference.lines.len() - shown;
    if left > 0 {
        text.push_str(&format!("\n{left} more lines: `--all-code` prints them.\n"));
    }
    text
}
