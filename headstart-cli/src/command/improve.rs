//! `headstart improve`: a program is captured, its kernels are tuned, and it runs with and without the better kernels, in turns.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use headstart::report::{ProgramReport, number, page};
use headstart::{Error, Result};
use serde::Serialize;

use crate::arguments::Improve;
use crate::command::tune::Asked;
use crate::command::tune::program::{text, tuned};
use crate::command::{capture, exec};
use crate::program::{Ended, Heard, Program};
use headstart_cli::output::{Destination, counted, json_line, print, tell};
use headstart_cli::progress::was_interrupted;
use headstart_cli::terminal;

/// Lines of the program's output that are shown where they differ.
const MOST_LINES: usize = 12;

/// What became of a program.
#[derive(Serialize)]
struct Improved {
    /// What its kernels gain.
    kernels: ProgramReport,
    /// The program with and without the better kernels; nothing if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Compared>,
}

/// Runs of a program in turns: alone, and with the better kernels.
#[derive(Serialize)]
struct Compared {
    /// Seconds of each run alone.
    alone_s: Vec<f64>,
    /// Seconds of each run with the better kernels.
    better_s: Vec<f64>,
    /// Whether each run ended as the first did, and printed the same.
    is_output_same: bool,
    /// The lines of the last runs' output that differ: alone, and with the better kernels.
    lines: Vec<(String, String)>,
    /// What became of the launches in the last run.
    launches: exec::ExecReport,
}

/// Runs the command.
pub fn run(options: &Improve) -> Result<()> {
    let json = Destination::asked("--json", options.json.as_deref())?;
    let html = Destination::asked("--html", options.html.as_deref())?;
    let asked = Asked::for_program(options)?;
    let temporary =
        tempfile::tempdir().map_err(|error| Error::device(format!("no folder for the capture: {error}")))?;
    let folder = options
        .keep
        .clone()
        .unwrap_or_else(|| temporary.path().join("capture"));
    tell("headstart: the program runs twice: its launches are counted, then copied");
    let captured = capture::take(&options.capture(&folder))?;
    print(&captured.table)?;
    print(&captured.remarks)?;
    let (kernels, failure) = tuned(&asked, &captured.folder)?;
    print(&text(&kernels))?;
    if let Some(html) = &html {
        html.write(&terminal::page(&page::program(&kernels)))?;
    }
    let is_faster = kernels.share(|answer| answer.reason().is_none()) > 0.0;
    let compared = match is_faster && !was_interrupted() {
        true => Some(compare(options, &captured.folder)?),
        false => None,
    };
    match &compared {
        Some(compared) => print(&compared.said(options.keep.as_deref()))?,
        None => print("The program keeps its kernels.\n")?,
    }
    if let Some(json) = &json {
        json.write(&json_line(&Improved { kernels, compared })?)?;
    }
    failure.map_or(Ok(()), Err)
}

/// Runs the program alone and with the better kernels, in turns.
fn compare(options: &Improve, folder: &Path) -> Result<Compared> {
    let program = Program::new(&options.program)?;
    let better = exec::better(folder, false)?;
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    let mut last = None;
    for run in 0..options.runs {
        tell(&format!(
            "headstart: run {} of {} in turns",
            run + 1,
            options.runs
        ));
        alone.push(program.run_alone(Heard::Kept)?);
        let (launches, ended) = exec::ran(&program, &better, Heard::Kept)?;
        with.push(ended);
        last = Some(launches);
    }
    let launches = last.ok_or_else(|| Error::usage("`--runs 0` compares nothing").accepted("1 or more"))?;
    let seconds = |all: &[Ended]| all.iter().map(|own| own.took.as_secs_f64()).collect();
    let is_as = |own: &Ended| own.output == alone[0].output && own.status == alone[0].status;
    let text = |of: &[Ended]| {
        let last = of
            .last()
            .map(|own| String::from_utf8_lossy(&own.output).into_owned());
        last.unwrap_or_default()
    };
    Ok(Compared {
        alone_s: seconds(&alone),
        better_s: seconds(&with),
        is_output_same: alone.iter().chain(&with).all(is_as),
        lines: differing(&text(&alone), &text(&with)),
        launches,
    })
}

/// The lines that differ, those of the same place beside each other.
fn differing(one: &str, other: &str) -> Vec<(String, String)> {
    let (mut ones, mut others) = (one.lines(), other.lines());
    let mut found = Vec::new();
    loop {
        match (ones.next(), others.next()) {
            (None, None) => return found,
            (one, other) if one == other => {}
            (one, other) => found.push((
                one.unwrap_or_default().to_owned(),
                other.unwrap_or_default().to_owned(),
            )),
        }
    }
}

/// The median of some seconds.
fn median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

impl Compared {
    fn said(&self, kept: Option<&Path>) -> String {
        let mut text = self.launches.said();
        let (alone, better) = (median(&self.alone_s), median(&self.better_s));
        let time = |seconds: f64| number::duration(Duration::from_secs_f64(seconds).as_nanos() as f64);
        let _ = writeln!(
            text,
            "The whole program, with starting and ending: {} instead of {}, {:.2} times as fast (medians of {} in turns).",
            time(better),
            time(alone),
            alone / better.max(1e-9),
            counted(self.alone_s.len(), "run")
        );
        match (self.is_output_same, self.lines.is_empty()) {
            (true, _) => text.push_str("Its output is the same in every run.\n"),
            (false, true) => text.push_str("Its output differs from run to run.\n"),
            (false, false) => {
                text.push_str("Lines of its output that differ in the last runs:\n");
                for (one, other) in self.lines.iter().take(MOST_LINES) {
                    let _ = writeln!(text, "  alone   {one}\n  better  {other}");
                }
                if let Some(more) = self.lines.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
                    let _ = writeln!(text, "  and {}", counted(more, "other line"));
                }
            }
        }
        let _ = match kept {
            Some(folder) => writeln!(
                text,
                "The faster program: headstart exec --with {} -- PROGRAM",
                folder.display()
            ),
            None => writeln!(
                text,
                "`--keep DIR` keeps the better kernels for `headstart exec`."
            ),
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_beside_each_other() {
        assert_eq!(differing("a\nb\n", "a\nb\n"), []);
        let found = differing("time 3 ms\nsum 4\n", "time 2 ms\nsum 4\nmore\n");
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(found, [pair("time 3 ms", "time 2 ms"), pair("", "more")]);
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}
