//! `headstart exec`: a program with the better kernels of a capture in place.

mod shown;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use headstart::capture::{CapturedProgram, Process};
use headstart::report::number;
use headstart::suggest::quoted;
use headstart::{Error, Result};
use serde::Deserialize;

use crate::arguments::Exec;
use crate::program::{Ended, Heard, Program};
use headstart_cli::output::{Destination, json_line};
use headstart_cli::terminal;
pub use shown::{ExecReport, report};

/// The files that `headstart tune` leaves beside a captured launch.
pub const TUNED: &str = "tuned.toml";
/// The better kernel's module.
pub const TUNED_MODULE: &str = "tuned.ptx";
/// The same, assembled ahead.
pub const TUNED_CODE: &str = "tuned.cubin";

/// What loading machine code costs a program, in nanoseconds: the driver copies it to the device, and the host waits.
const LOADING_NS: f64 = 1e6;
/// What the driver takes to compile a kernel, in nanoseconds: 90 to 600 ms were measured (`results/programs-h100.txt`).
const COMPILING_NS: f64 = 200e6;

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
    rests_on: Vec<String>,
    /// A variable of the module, and the variable of the program's whose address it holds.
    addresses: Vec<String>,
}

/// A better kernel with its folder.
pub struct Better {
    folder: PathBuf,
    tuned: Tuned,
    /// Mean time of the original's launches in the capture, in nanoseconds; nothing if it is not known.
    usual_ns: Option<f64>,
    /// Why it is not put in place.
    left_out: Option<String>,
}

/// Runs the command; gives the program's own exit status.
pub fn run(options: &Exec) -> Result<u8> {
    let json = Destination::asked("--json", options.json.as_deref())?;
    let better = better(&options.with, options.always)?;
    let (ran, _) = ran(&Program::new(&options.program)?, &better, Heard::Aloud)?;
    // The program's output stays its own.
    let summary = ran.said();
    eprint!(
        "{}",
        summary
            .lines()
            .map(|line| terminal::errors().fitted(line) + "\n")
            .collect::<String>()
    );
    if let Some(json) = &json {
        json.write(&json_line(&ran)?)?;
    }
    Ok(ran.status)
}

/// Runs a program with better kernels in place. Without any the program runs as if this command were not there.
///
/// # Errors
/// There is nowhere to write what it did, or it cannot be started.
pub fn ran(program: &Program, better: &[Better], heard: Heard) -> Result<(ExecReport, Ended)> {
    if better.iter().all(|own| own.left_out.is_some()) {
        let ended = program.run_alone(heard)?;
        return Ok((report(better, None, code(ended.status)), ended));
    }
    let folder = tempfile::tempdir()
        .map_err(|error| Error::device(format!("no folder for the program's record: {error}")))?;
    fs::write(folder.path().join("exec.txt"), lines(better))
        .map_err(|error| Error::device(format!("no file for the program's record: {error}")))?;
    let ended = program.run("exec", folder.path(), heard)?;
    let processes = Process::all_in(folder.path())?;
    Ok((report(better, Some(&processes), code(ended.status)), ended))
}

/// What the preloaded library reads.
fn lines(better: &[Better]) -> String {
    let mut text = String::new();
    for own in better.iter().filter(|own| own.left_out.is_none()) {
        let tuned = &own.tuned;
        let _ = writeln!(
            text,
            "kernel\t{}\t{}\t{}\t{}",
            tuned.image,
            tuned.kernel,
            own.module().display(),
            tuned.kernel
        );
        let code = own.folder.join(TUNED_CODE);
        if code.is_file() {
            let _ = writeln!(text, "assembled\t{}", code.display());
        }
        if let Some(ns) = own.usual_ns {
            let _ = writeln!(text, "takes\t{ns:.0}");
        }
        for fact in &tuned.facts {
            let _ = writeln!(text, "{}", fact.replace(' ', "\t"));
        }
        for address in &tuned.addresses {
            let _ = writeln!(text, "address\t{}", address.replace(' ', "\t"));
        }
    }
    text
}

/// The status that a shell would report.
fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128u8.saturating_add(signal as u8),
        (None, None) => 1,
    }
}

/// The better kernels of a capture, or of one of its folders, those that save most first. Unless all are wanted, those that are
/// expected to save less than it takes to load them are left out.
///
/// # Errors
/// The folder cannot be read.
pub fn better(with: &Path, always: bool) -> Result<Vec<Better>> {
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
        found.push(Better::of(folder, tuned, always)?);
    }
    found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    Ok(found.into_iter().map(|(own, _)| own).collect())
}

impl Better {
    /// A better kernel, and the nanoseconds that it is expected to save.
    fn of(folder: PathBuf, tuned: Tuned, always: bool) -> Result<(Better, f64)> {
        let parent = folder.parent().unwrap_or(&folder);
        let program = match CapturedProgram::is_in(parent) {
            true => Some(CapturedProgram::read(parent)?),
            false => None,
        };
        let name = name(&folder);
        let kind = program.as_ref().and_then(|program| program.kind_in(&name));
        let kind = kind.map(|(_, kind)| kind);
        let saved = kind
            .filter(|kind| kind.timed > 0)
            .map(|kind| kind.total_ns * (1.0 - 1.0 / tuned.speedup));
        let (costs, how) = match folder.join(TUNED_CODE).is_file() {
            true => (LOADING_NS, "loading it"),
            false => (COMPILING_NS, "compiling it"),
        };
        let left_out = match (saved, kind) {
            (Some(saved), Some(kind)) if saved < costs && !always => Some(format!(
                "it is expected to save {} in {} launches, and {how} takes about {}; `--always` puts it in place",
                number::duration(saved.max(0.0)),
                kind.launches,
                number::duration(costs)
            )),
            _ => None,
        };
        let usual_ns = kind.and_then(|kind| kind.mean_ns());
        let own = Better {
            folder,
            tuned,
            usual_ns,
            left_out,
        };
        Ok((own, saved.unwrap_or(f64::MAX)))
    }

    fn module(&self) -> PathBuf {
        self.folder.join(TUNED_MODULE)
    }
}

fn name(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
