//! `headstart exec`: a program with the better kernels of a capture in place.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use headstart::capture::{Counts, Process};
use headstart::report::number;
use headstart::suggest::quoted;
use headstart::{Error, Result};
use serde::Deserialize;

use crate::arguments::Exec;
use crate::program::Program;
use crate::terminal;

/// The files that `headstart tune` leaves beside a captured launch.
pub const TUNED: &str = "tuned.toml";
/// The better kernel's module.
pub const TUNED_MODULE: &str = "tuned.ptx";
/// The same, assembled ahead where `HEADSTART_PTXAS` names an assembler.
pub const TUNED_CODE: &str = "tuned.cubin";

/// The better kernel of a captured launch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tuned {
    kernel: String,
    image: String,
    plan: String,
    device: String,
    speedup: f64,
    facts: Vec<String>,
    #[serde(rename = "rests_on")]
    _rests_on: Vec<String>,
    /// A variable of the module, and the variable of the program's whose address it holds.
    addresses: Vec<String>,
}

/// Runs the command; gives the program's own exit status.
pub fn run(options: &Exec) -> Result<u8> {
    let tuned = all_tuned(&options.with)?;
    let folder = tempfile::tempdir()
        .map_err(|error| Error::device(format!("no folder for the program's record: {error}")))?;
    let mut text = String::new();
    for (path, tuned) in &tuned {
        let module = path.join(TUNED_MODULE);
        let _ = writeln!(
            text,
            "kernel\t{}\t{}\t{}\t{}",
            tuned.image,
            tuned.kernel,
            module.display(),
            tuned.kernel
        );
        let code = path.join(TUNED_CODE);
        if code.is_file() {
            let _ = writeln!(text, "assembled\t{}", code.display());
        }
        for fact in &tuned.facts {
            let _ = writeln!(text, "{}", fact.replace(' ', "\t"));
        }
        for address in &tuned.addresses {
            let _ = writeln!(text, "address\t{}", address.replace(' ', "\t"));
        }
    }
    fs::write(folder.path().join("exec.txt"), text)
        .map_err(|error| Error::device(format!("no file for the program's record: {error}")))?;
    let status = Program::new(&options.program)?.run("exec", folder.path(), true)?;
    let processes = Process::all_in(folder.path())?;
    // The program's output stays its own.
    let summary = summary(&tuned, &processes);
    eprint!(
        "{}",
        summary
            .lines()
            .map(|line| terminal::errors().fitted(line) + "\n")
            .collect::<String>()
    );
    Ok(code(status))
}

/// The status that a shell would report.
fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128u8.saturating_add(signal as u8),
        (None, None) => 1,
    }
}

/// The tuned kernels of a capture, or of one of its folders.
fn all_tuned(with: &Path) -> Result<Vec<(PathBuf, Tuned)>> {
    let unreadable = |error: std::io::Error| {
        Error::usage(format!(
            "{} cannot be read: {error}",
            quoted(&with.to_string_lossy())
        ))
        .accepted("a folder that `headstart capture` has written")
    };
    let with = fs::canonicalize(with).map_err(unreadable)?;
    let mut folders = vec![with.clone()];
    for entry in fs::read_dir(&with).map_err(unreadable)? {
        folders.push(entry.map_err(unreadable)?.path());
    }
    folders.sort();
    let mut found = Vec::new();
    for folder in folders {
        let path = folder.join(TUNED);
        if !path.is_file() {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(unreadable)?;
        let tuned: Tuned = toml::from_str(&text).map_err(|error| {
            let said = error.message().lines().collect::<Vec<_>>().join("; ");
            Error::input(format!("not written by `headstart tune`: {said}"))
                .at(quoted(&path.to_string_lossy()))
        })?;
        found.push((folder, tuned));
    }
    Ok(found)
}

/// A kernel's counts over all processes.
fn counts(tuned: &Tuned, processes: &[Process]) -> Counts {
    let mut all = Counts::default();
    let own = |process: &'_ Process| {
        let kernels = process.kernels.iter();
        kernels
            .filter(|seen| seen.name == tuned.kernel && seen.image.as_deref() == Some(&tuned.image))
            .map(|seen| seen.counts)
            .collect::<Vec<_>>()
    };
    for counts in processes.iter().flat_map(own) {
        all.launches += counts.launches;
        all.replaced += counts.replaced;
        all.refused += counts.refused;
        all.in_graphs += counts.in_graphs;
        all.replaced_timed.0 += counts.replaced_timed.0;
        all.replaced_timed.1 += counts.replaced_timed.1;
        all.original_timed.0 += counts.original_timed.0;
        all.original_timed.1 += counts.original_timed.1;
        all.is_switched_back |= counts.is_switched_back;
    }
    all
}

fn summary(tuned: &[(PathBuf, Tuned)], processes: &[Process]) -> String {
    let mut text = String::new();
    for (folder, tuned) in tuned {
        let name = folder
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let counts = counts(tuned, processes);
        let _ = write!(
            text,
            "headstart: {name}: {} of {} launches ran the tuned kernel ({}, {:.2} times as fast on {} in the search)",
            counts.replaced, counts.launches, tuned.plan, tuned.speedup, tuned.device
        );
        let mean = |(timed, total): (u64, u64)| (timed > 0).then(|| total as f64 / timed as f64);
        if let (Some(better), Some(original)) = (mean(counts.replaced_timed), mean(counts.original_timed)) {
            let _ = write!(
                text,
                "; here {} instead of {} (means of {} and {} alternating launches)",
                number::duration(better),
                number::duration(original),
                counts.replaced_timed.0,
                counts.original_timed.0
            );
            let saved = (original - better) * counts.replaced as f64;
            let word = if saved < 0.0 { "lost" } else { "saved" };
            let _ = write!(text, "; {word} {}", number::duration(saved.abs()));
        }
        text.push('\n');
        if counts.refused > 0 {
            let _ = writeln!(
                text,
                "headstart: {name}: {} launches did not meet its assumptions and ran the original",
                counts.refused
            );
        }
        if counts.in_graphs > 0 {
            let _ = writeln!(
                text,
                "headstart: {name}: {} launches in graphs ran the original",
                counts.in_graphs
            );
        }
        if counts.is_switched_back {
            let _ = writeln!(
                text,
                "headstart: {name}: the tuned kernel was slower here, so the original runs again"
            );
        }
    }
    for process in processes {
        for trouble in &process.troubles {
            let _ = writeln!(text, "headstart: process {}: {trouble}", process.number);
        }
    }
    if tuned.is_empty() {
        text.push_str(
            "headstart: this capture has no tuned kernels; `headstart tune DIR/KERNEL` makes them\n",
        );
    }
    if processes.is_empty() {
        text.push_str(
            "headstart: the program did not call the CUDA driver, or could not be observed (linked statically, setuid, or no room on the disk for its record)\n",
        );
    }
    text
}
