//! A sweep for a terminal, and as rows of CSV.

use std::fmt::Write;

use super::lines::{Block, Layout};
use super::words::{answers, refusals, shown};
use super::{PointOutcome, Shows, Sweep};
use crate::error::{Error, Result};
use crate::names;
use crate::report::columns::{Columns, on_one_line};
use crate::report::number;
use crate::report::table::{align_numbers, matrix, plain_table, plan_line};

/// More values than this stand below each other.
const MOST_ACROSS: usize = 16;

/// The sweep as text, ending with a line break.
pub fn text(sweep: &Sweep, columns: Columns) -> String {
    let wrapped = |text: &str, first: &str, following: &str| columns.wrapped(text, first, following);
    let layout = Layout::of(sweep);
    let mut heading = format!("{} on {}", names::shown(&sweep.kernel), sweep.device);
    for (name, value) in &sweep.parameters {
        let _ = write!(heading, ", {name}={value}");
    }
    // Writing to a String cannot fail.
    let mut text = wrapped(&heading, "", "  ");
    if let Some(plan) = sweep.plan.as_ref().filter(|plan| !plan.is_none()) {
        text.push_str(&plan_line(plan, columns));
    }
    let what = match sweep.shows() {
        Shows::Speedups => "Speedup over the plain kernel".to_owned(),
        Shows::Times => "Time".to_owned(),
        Shows::Numbers(unit) => format!("Number in {unit}"),
    };
    let by = &sweep.axes[layout.along].name;
    for block in layout.blocks(sweep) {
        let title = match block.title.is_empty() {
            true => String::new(),
            false => format!(", {}", block.title),
        };
        text.push('\n');
        text.push_str(&wrapped(&format!("{what} by {by}{title}"), "", "  "));
        let _ = writeln!(text, "{}", table(sweep, &layout, &block, columns));
    }
    text.push('\n');
    for answer in answers(sweep) {
        text.push_str(&wrapped(&answer, "  - ", "    "));
    }
    for refusal in refusals(sweep) {
        text.push_str(&wrapped(&refusal, "  - ", "    "));
    }
    for note in &sweep.notes {
        text.push('\n');
        text.push_str(&wrapped(note, "", ""));
    }
    text
}

/// A row per line, a column per value; times stand beside the speedup if there is one line.
fn table(sweep: &Sweep, layout: &Layout, block: &Block<'_>, columns: Columns) -> String {
    let along = &sweep.axes[layout.along];
    let Some(between) = layout.between else {
        let mut table = plain_table();
        let mut header = vec![along.name.clone()];
        header.extend(match sweep.shows() {
            Shows::Speedups => vec!["time".to_owned(), "plain".to_owned(), "speedup".to_owned()],
            Shows::Times => vec!["time".to_owned()],
            Shows::Numbers(unit) => vec![unit.to_owned()],
        });
        table.set_header(header);
        for point in block.lines.iter().flat_map(|line| &line.points) {
            let mut row = vec![along.values[point.at[layout.along]].clone()];
            match &point.outcome {
                PointOutcome::Ok {
                    time_ns, plain_ns, ..
                } if sweep.shows_speedups() => row.extend([
                    number::duration(*time_ns),
                    number::duration(*plain_ns),
                    number::speedup(plain_ns / time_ns),
                ]),
                PointOutcome::Ok { .. } | PointOutcome::Refused { .. } => {
                    row.push(
                        sweep
                            .number(point)
                            .map_or("–".to_owned(), |value| shown(sweep, value)),
                    );
                }
            }
            table.add_row(row.iter().map(|cell| on_one_line(cell)));
        }
        align_numbers(&mut table);
        return table.trim_fmt();
    };
    let rows: Vec<(String, Vec<String>)> = block
        .lines
        .iter()
        .map(|line| {
            let cells = line.points.iter().map(|point| match sweep.number(point) {
                Some(value) if sweep.shows_speedups() => format!("{value:.2}"),
                Some(value) => shown(sweep, value),
                None => "–".to_owned(),
            });
            (on_one_line(line.value.unwrap_or_default()), cells.collect())
        })
        .collect();
    let between = &sweep.axes[between].name;
    let matrix = |rows: &[(String, Vec<String>)]| match along.values.len() > rows.len().max(MOST_ACROSS) {
        false => matrix(between, &along.values, rows, columns),
        true => {
            let across: Vec<String> = rows.iter().map(|(name, _)| name.clone()).collect();
            let down = along.values.iter().enumerate().map(|(at, value)| {
                let cells = rows.iter().map(|(_, cells)| cells[at].clone());
                (value.clone(), cells.collect())
            });
            matrix(&along.name, &across, &down.collect::<Vec<_>>(), columns)
        }
    };
    let speedups = matrix(&rows);
    if !sweep.shows_speedups() {
        return speedups;
    }
    let times = block.lines.iter().map(|line| {
        let cells = line.points.iter().map(|point| match &point.outcome {
            PointOutcome::Ok { time_ns, .. } => number::duration(*time_ns),
            PointOutcome::Refused { .. } => "–".to_owned(),
        });
        (on_one_line(line.value.unwrap_or_default()), cells.collect())
    });
    let times: Vec<(String, Vec<String>)> = times.collect();
    format!("{speedups}\n\nThe times\n{}", matrix(&times))
}

/// A number of nanoseconds with four digits: a model has no more.
fn rounded(nanoseconds: f64) -> String {
    let digits = nanoseconds.abs().max(1e-9).log10().floor() as i32;
    let unit = 10f64.powi(digits - 3);
    let places = usize::try_from(3 - digits).unwrap_or(0);
    format!("{:.places$}", (nanoseconds / unit).round() * unit)
}

/// The points as CSV: a column an axis, then the plan, both times in nanoseconds, the speedup, and why a point did not run. What
/// an axis has no other column has.
///
/// # Errors
/// A bug of ours: a row that does not become CSV.
pub fn csv(sweep: &Sweep) -> Result<String> {
    let failed = |what: String| Error::bug(format!("a sweep does not become CSV: {what}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = sweep.axes.iter().map(|axis| axis.name.as_str());
    let columns = ["plan", "time_ns", "plain_ns", "speedup", "refused"];
    let counted = sweep.unit.iter().map(String::as_str);
    let all: Vec<&str> = names.chain(columns).chain(counted).collect();
    let is_first = |at: &usize| !all[..*at].contains(&all[*at]);
    let kept: Vec<usize> = (0..all.len()).filter(is_first).collect();
    writer
        .write_record(kept.iter().map(|&at| all[at]))
        .map_err(|error| failed(error.to_string()))?;
    for point in &sweep.points {
        let values = sweep.axes.iter().zip(&point.at);
        let mut row: Vec<String> = values.map(|(axis, &at)| axis.values[at].clone()).collect();
        row.push(point.plan.to_string());
        row.extend(match &point.outcome {
            PointOutcome::Ok {
                time_ns, plain_ns, ..
            } => [
                rounded(*time_ns),
                rounded(*plain_ns),
                format!("{:.4}", plain_ns / time_ns),
                String::new(),
            ],
            PointOutcome::Refused { reason } => {
                [String::new(), String::new(), String::new(), on_one_line(reason)]
            }
        });
        if sweep.unit.is_some() {
            row.push(
                sweep
                    .number(point)
                    .map_or(String::new(), |number| number.to_string()),
            );
        }
        writer
            .write_record(kept.iter().map(|&at| &row[at]))
            .map_err(|error| failed(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::Point;
    use super::super::tests::sample;
    use super::*;
    use crate::prefetch::Plan;

    #[test]
    fn the_text_has_the_table_and_the_answers() {
        let text = text(&sample(), Columns::UNLIMITED);
        for expected in [
            "gather on sim:h200, items=64",
            "plan: values=rolling-async:4/interleaved",
            "Speedup over the plain kernel by distance",
            "dram.latency      1      2      4      8",
            "flat from distance=2 on",
            "\nThe times\n",
            "415 ns",
            "1 point did not run: too much shared memory",
        ] {
            assert!(text.contains(expected), "{expected} in:\n{text}");
        }
    }

    #[test]
    fn many_values_stand_below_each_other_and_beside_no_plan_their_times() {
        let mut sweep = sample();
        let plan = sweep.points[0].plan.clone();
        let values = |count: usize| (0..count).map(|value| value.to_string()).collect();
        sweep.axes[0].name = "plan".to_owned();
        sweep.axes[0].values = vec!["none".to_owned(), plan.to_string()];
        sweep.axes[1].values = values(100);
        let point = |line: usize, at: usize| Point {
            at: vec![line, at],
            plan: if line == 0 { Plan::none() } else { plan.clone() },
            outcome: PointOutcome::Ok {
                time_ns: 1000.0 + 10.0 * at as f64,
                plain_ns: 1000.0 + 10.0 * at as f64,
                number: None,
            },
        };
        sweep.points = (0..2)
            .flat_map(|line| (0..100).map(move |at| (line, at)))
            .map(|(line, at)| point(line, at))
            .collect();
        let text = text(&sweep, Columns::UNLIMITED);
        assert!(
            text.contains("Time by distance") && !text.contains("1.00×"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() < 120), "{text}");
        assert!(
            text.lines().filter(|line| line.contains(" µs")).count() >= 100,
            "{text}"
        );
    }

    #[test]
    fn every_point_is_a_row_of_csv() {
        let csv = csv(&sample()).expect("rows");
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 13);
        assert_eq!(
            lines[0],
            "dram.latency,distance,plan,time_ns,plain_ns,speedup,refused"
        );
        assert!(lines[1].starts_with("300,1,values=rolling-async:4/interleaved,"));
        assert!(lines[12].ends_with(",,,,too much shared memory"));
        let mut of_plans = sample();
        of_plans.axes[0].name = "plan".to_owned();
        let csv = super::csv(&of_plans).expect("rows");
        assert!(csv.starts_with("plan,distance,time_ns,"), "{csv}");
        assert!(csv.contains("\n300,1,"), "{csv}");
        assert_eq!(
            [460_123.4, 27.538, 0.5].map(rounded),
            ["460100", "27.54", "0.5000"]
        );
    }
}
