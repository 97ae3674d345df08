//! The output of `headstart capture`: the manifest of the program, and the table.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitStatus;

use headstart::capture::{CapturedKernel, CapturedProgram, Counts, LaunchKind, Process};
use headstart::report::number;

use super::{Kernel, Kind, Ptx};
use crate::arguments::Capture;

/// Rows of the table.
const MOST_ROWS: usize = 40;

/// The captured program, as `capture.toml` has it.
pub(super) fn whole(
    options: &Capture,
    kernels: &[Kernel],
    processes: &[Process],
    total: f64,
) -> CapturedProgram {
    let share = |ns: f64| if total > 0.0 { ns / total } else { 0.0 };
    let kind = |kernel: &Kernel, kind: &Kind| {
        let counts = &kind.counts;
        let (typical, share_of_typical) = counts.typical();
        LaunchKind {
            launches: counts.launches,
            timed: counts.timed,
            total_ns: counts.estimated_ns(),
            share: share(counts.estimated_ns()),
            longest_ns: counts.longest_ns,
            typical,
            share_of_typical,
            groups: counts.groups,
            group: counts.group,
            shared_bytes: counts.shared_bytes,
            parameters: kind.like.clone(),
            is_typical: kind.is_typical,
            folder: kind.captured.clone().and_then(std::result::Result::ok),
            not_captured: kind.why_not(kernel, options.list),
        }
    };
    let all = kernels.iter().map(|kernel| CapturedKernel {
        name: kernel.name.clone(),
        image: kernel.image.clone().unwrap_or_else(|| "-".to_owned()),
        launches: kernel.counts.launches,
        in_graphs: kernel.counts.in_graphs,
        total_ns: kernel.counts.estimated_ns(),
        share: share(kernel.counts.estimated_ns()),
        ptx: kernel.ptx.refusal().unwrap_or_else(|| "read".to_owned()),
        kinds: kernel.kinds.iter().map(|own| kind(kernel, own)).collect(),
    });
    let words = options.program.iter();
    CapturedProgram::new(
        words.map(|word| word.to_string_lossy().into_owned()).collect(),
        processes.iter().map(|process| process.driver).max().unwrap_or(0),
        total,
        all.collect(),
    )
}

impl Ptx {
    /// Why a kernel with this text is not captured.
    fn refusal(&self) -> Option<String> {
        match self {
            Ptx::Text { .. } => None,
            Ptx::None => Some("no PTX, machine code alone".to_owned()),
            Ptx::Newer(from) => Some(format!("PTX for compute_{from} alone, and this GPU is older")),
            Ptx::Unreadable(why) => Some(format!("its PTX cannot be read: {why}")),
        }
    }
}

impl Kind {
    /// Why no launch of it was captured; nothing if one was.
    fn why_not(&self, kernel: &Kernel, is_listed: bool) -> Option<String> {
        match &self.captured {
            Some(Ok(_)) => None,
            Some(Err(why)) => Some(why.clone()),
            None => Some(kernel.ptx.refusal().unwrap_or_else(|| {
                match is_listed {
                    true => "the program was only listed",
                    false => "too small a share of the time",
                }
                .to_owned()
            })),
        }
    }
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

/// Sizes without those of one behind the last that is larger.
pub fn geometry(sizes: [u32; 3]) -> String {
    let used = sizes
        .iter()
        .rposition(|&size| size != 1)
        .map_or(1, |last| last + 1);
    let used: Vec<String> = sizes[..used].iter().map(u32::to_string).collect();
    used.join("×")
}

/// A row of the table: a kernel's launches, or those of a kind.
fn row(name: String, counts: &Counts, total: f64, note: String) -> [String; 7] {
    let time = counts.estimated_ns();
    let is_timed = counts.timed > 0;
    let dash = || "–".to_owned();
    let launches = match counts.in_graphs {
        0 => counts.launches.to_string(),
        nodes => format!("{} + {nodes} in graphs", counts.launches),
    };
    [
        name,
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
    ]
}

/// Kinds of a kernel that have rows of their own.
const MOST_KIND_ROWS: usize = 8;

pub(super) fn table(kernels: &[Kernel], total: f64) -> String {
    let mut rows = vec![["kernel", "launches", "time", "share", "each", "geometry", ""].map(str::to_owned)];
    let note = |kernel: &Kernel, kind: Option<&Kind>| match kind.and_then(|kind| kind.captured.as_ref()) {
        Some(Ok(name)) => format!("captured: {name}"),
        Some(Err(why)) => format!("not captured: {why}"),
        None => kernel.ptx.refusal().unwrap_or_else(|| "PTX".to_owned()),
    };
    for kernel in kernels.iter().take(MOST_ROWS) {
        let name = kernel.name.clone();
        if kernel.kinds.len() < 2 {
            rows.push(row(
                name,
                &kernel.counts,
                total,
                note(kernel, kernel.kinds.first()),
            ));
            continue;
        }
        let kinds = format!("{} kinds of launches", kernel.kinds.len());
        rows.push(row(name, &kernel.counts, total, kinds));
        for kind in kernel.kinds.iter().take(MOST_KIND_ROWS) {
            let name = format!("  ({})", kind.like);
            rows.push(row(name, &kind.counts, total, note(kernel, Some(kind))));
        }
        if kernel.kinds.len() > MOST_KIND_ROWS {
            let mut rest = Counts::default();
            for kind in &kernel.kinds[MOST_KIND_ROWS..] {
                rest.add(&kind.counts);
            }
            rows.push(row(
                "  all others".to_owned(),
                &rest,
                total,
                "not captured".to_owned(),
            ));
        }
    }
    let mut text = aligned(&rows, 1..5);
    if kernels.len() > MOST_ROWS {
        let _ = writeln!(text, "… and {} more in capture.toml", kernels.len() - MOST_ROWS);
    }
    text
}

/// Rows of cells as text, with columns as wide as their widest cell; the cells of `right` are numbers.
pub fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]], right: std::ops::Range<usize>) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match right.contains(&column) {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line: Vec<String> = cells.collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
    }
    text
}

/// The launches of a kernel count as different if fewer than this share of its time is in launches of about the same length.
const SPREAD: f64 = 0.75;

/// What is remarkable, a line each.
pub(super) fn remarks(kernels: &[Kernel], processes: &[Process], status: ExitStatus) -> String {
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
    for (kind, name) in captured(kernels) {
        let (launch, share) = kind.counts.typical();
        if share < SPREAD && kind.is_typical {
            let _ = writeln!(
                text,
                "{name}: its launches differ. Launch {launch} of its kind was captured, half of its time is in shorter and longer ones; {:.0} % of \
                 it is in launches that take about as long.",
                100.0 * share
            );
        }
    }
    text
}

/// The kinds that were captured, and their folders.
fn captured(kernels: &[Kernel]) -> impl Iterator<Item = (&Kind, &String)> {
    let kinds = kernels.iter().flat_map(|kernel| &kernel.kinds);
    kinds.filter_map(|kind| Some((kind, kind.captured.as_ref()?.as_ref().ok()?)))
}

/// What to do next.
pub(super) fn next(folder: &Path, kernels: &[Kernel]) -> String {
    let shown = folder
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let all: Vec<&String> = captured(kernels).map(|(_, name)| name).collect();
    match all[..] {
        [] => String::new(),
        [name] => format!("Next: headstart tune {shown}/{name}\n"),
        _ => format!("Next: headstart tune {shown}\n"),
    }
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
