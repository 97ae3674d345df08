//! The output of `headstart capture`: the manifest of the program, and the table.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitStatus;

use headstart::capture::Process;
use headstart::report::number;

use super::{Kernel, Ptx};
use crate::arguments::Capture;

/// Rows of the table.
const MOST_ROWS: usize = 40;

/// The manifest of the whole capture.
pub(super) fn whole(options: &Capture, kernels: &[Kernel], processes: &[Process], total: f64) -> String {
    let quoted = |text: &str| toml_string(text);
    let mut text = String::from("# A program's launches, from `headstart capture`.\nformat = 1\n");
    let words: Vec<String> = options
        .program
        .iter()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    let _ = writeln!(text, "program = [{}]", words.join(", "));
    let driver = processes.iter().map(|process| process.driver).max().unwrap_or(0);
    let _ = writeln!(text, "driver = {driver}");
    for kernel in kernels {
        let counts = &kernel.counts;
        let ptx = match &kernel.ptx {
            Ptx::Text { .. } => "read".to_owned(),
            Ptx::Unreadable(why) => why.clone(),
            Ptx::Newer(from) => format!("for compute_{from} alone"),
            Ptx::None => "none".to_owned(),
        };
        let _ = writeln!(
            text,
            "\n[[kernels]]\nname = {}\nimage = {}\nlaunches = {}\ntimed = {}\ntotal_ns = {}\nlongest_ns = {}\nlongest = {}\n\
             typical = {}\nin_graphs = {}\nptx = {}",
            quoted(&kernel.name),
            quoted(kernel.image.as_deref().unwrap_or("-")),
            counts.launches,
            counts.timed,
            counts.total_ns,
            counts.longest_ns,
            counts.longest,
            counts.typical().0,
            counts.in_graphs,
            quoted(&ptx)
        );
        if counts.timed > 0 && total > 0.0 {
            let _ = writeln!(
                text,
                "share = {:.4}\nshare_of_typical = {:.4}",
                counts.estimated_ns() / total,
                counts.typical().1
            );
        }
    }
    text
}

/// A string as TOML has it.
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

pub(super) fn table(
    kernels: &[Kernel],
    total: f64,
    captured: &HashMap<usize, std::result::Result<String, String>>,
) -> String {
    let mut rows = vec![["kernel", "launches", "time", "share", "each", "geometry", ""].map(str::to_owned)];
    for (index, kernel) in kernels.iter().enumerate().take(MOST_ROWS) {
        let counts = &kernel.counts;
        let time = counts.estimated_ns();
        let is_timed = counts.timed > 0;
        let dash = || "–".to_owned();
        let geometry = |sizes: [u32; 3]| {
            let used = sizes
                .iter()
                .rposition(|&size| size != 1)
                .map_or(1, |last| last + 1);
            sizes[..used]
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join("×")
        };
        let note = match (captured.get(&index), &kernel.ptx) {
            (Some(Ok(name)), _) => format!("captured: {name}"),
            (Some(Err(why)), _) => format!("not captured: {why}"),
            (None, Ptx::None) => "no PTX, machine code alone".to_owned(),
            (None, Ptx::Newer(from)) => format!("PTX for compute_{from} alone, and this GPU is older"),
            (None, Ptx::Unreadable(why)) => format!("its PTX cannot be read: {why}"),
            (None, Ptx::Text { .. }) => "PTX".to_owned(),
        };
        let launches = match counts.in_graphs {
            0 => counts.launches.to_string(),
            nodes => format!("{} + {nodes} in graphs", counts.launches),
        };
        rows.push([
            kernel.name.clone(),
            launches,
            if is_timed { number::duration(time) } else { dash() },
            if is_timed && total > 0.0 {
                format!("{:.1} %", 100.0 * time / total)
            } else {
                dash()
            },
            if is_timed {
                number::duration(counts.total_ns as f64 / counts.timed as f64)
            } else {
                dash()
            },
            format!("{} of {}", geometry(counts.groups), geometry(counts.group)),
            note,
        ]);
    }
    let mut text = String::new();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..7).map(width).collect();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| match column {
                1..=4 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            });
        let line: Vec<String> = cells.collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
    }
    if kernels.len() > MOST_ROWS {
        let _ = writeln!(text, "… and {} more in capture.toml", kernels.len() - MOST_ROWS);
    }
    text
}

/// The launches of a kernel count as different if fewer than this share of its time is in launches of about the same length.
const SPREAD: f64 = 0.75;

pub(super) fn closing(
    folder: &Path,
    kernels: &[Kernel],
    processes: &[Process],
    status: ExitStatus,
    captured: &HashMap<usize, std::result::Result<String, String>>,
) -> String {
    let mut text = String::new();
    if !status.success() {
        let _ = writeln!(text, "The program ended with {status}.");
    }
    let cut: Vec<String> = processes
        .iter()
        .filter(|process| !process.has_ended)
        .map(|process| process.number.to_string())
        .collect();
    if !cut.is_empty() {
        let _ = writeln!(text, "Cut off before its end: process {}.", cut.join(", "));
    }
    for trouble in processes.iter().flat_map(|process| &process.troubles) {
        let _ = writeln!(text, "Trouble: {trouble}.");
    }
    let shown = folder
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut names: Vec<&String> = captured
        .values()
        .filter_map(|found| found.as_ref().ok())
        .collect();
    names.sort();
    for (index, kernel) in kernels.iter().enumerate() {
        let (launch, share) = kernel.counts.typical();
        if let (Some(Ok(name)), true) = (captured.get(&index), share < SPREAD) {
            let _ = writeln!(
                text,
                "{name}: its launches differ. Launch {launch} was captured, half of its time is in shorter and longer ones; {:.0} % of \
                 it is in launches that take about as long.",
                100.0 * share
            );
        }
    }
    if let Some(name) = names.first() {
        let _ = writeln!(text, "Next: headstart tune {shown}/{name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_toml() {
        let text = "a \"b\" \\ \n c";
        let read: toml::Table = toml::from_str(&format!("x = {}", toml_string(text))).expect("TOML");
        assert_eq!(read["x"].as_str(), Some(text));
    }
}
