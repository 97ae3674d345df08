//! CUDA programs written by hand: built, run, and their times read from their output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use headstart::{Error, Result};
use serde::Serialize;

use headstart_cli::output::explain_command;

/// A program's output.
#[derive(Clone, Debug, Serialize)]
pub struct Peer {
    /// The program's file.
    pub file: String,
    /// Times, in the order they were printed.
    pub times: Vec<PeerTime>,
    /// All of its output.
    pub output: String,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A time that a program printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerTime {
    /// The last line that was no time or began a group of them.
    pub section: String,
    /// The timed part.
    pub name: String,
    /// In nanoseconds.
    pub time_ns: f64,
}

/// Builds and runs every `.cu` file of a folder, in alphabetical order. A program that cannot be built or run says so
/// in its place.
///
/// # Errors
/// The folder cannot be read.
pub fn run(folder: &Path, nvcc: &Path, architecture: &str) -> Result<Vec<Peer>> {
    let unreadable = |error: std::io::Error| Error::usage(format!("--peers {}: {error}", folder.display()));
    let mut sources: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(unreadable)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .collect();
    sources.sort();
    let built = tempfile::tempdir().map_err(unreadable)?;
    let run = |source: &PathBuf| {
        run_one(source, nvcc, architecture, built.path()).unwrap_or_else(|error| Peer {
            file: file_name(source),
            times: Vec::new(),
            output: String::new(),
            error: Some(error.to_string()),
        })
    };
    Ok(sources.iter().map(run).collect())
}

fn file_name(source: &Path) -> String {
    source
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn run_one(source: &Path, nvcc: &Path, architecture: &str, folder: &Path) -> Result<Peer> {
    let program = folder.join(source.file_stem().unwrap_or_default());
    let mut build = Command::new(nvcc);
    build
        .args(["-O3", "-arch", architecture, "-o"])
        .arg(&program)
        .arg(source);
    succeed(&mut build, source)?;
    let output = succeed(&mut Command::new(&program), source)?;
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(Peer {
        file: file_name(source),
        times: times(&output),
        output,
        error: None,
    })
}

fn succeed(command: &mut Command, source: &Path) -> Result<Output> {
    let failed = |what: String| Error::input(format!("{}: {what}", source.display()));
    explain_command(command);
    let output = command
        .output()
        .map_err(|error| failed(format!("{:?}: {error}", command.get_program())))?;
    if output.status.success() {
        return Ok(output);
    }
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let last = said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("")
        .trim()
        .to_owned();
    Err(failed(format!(
        "{:?} failed ({}): {last}",
        command.get_program(),
        output.status
    )))
}

/// The times in a program's output: a number before the word `ms`, named by the text before it.
fn times(output: &str) -> Vec<PeerTime> {
    let mut section = String::new();
    let mut times = Vec::new();
    for line in output.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "ms").filter(|at| *at > 0);
        let time = at.and_then(|at| Some((at, words[at - 1].parse::<f64>().ok()?)));
        let Some((at, milliseconds)) = time else {
            section = line.to_owned();
            continue;
        };
        let mut name = words[..at - 1].join(" ");
        // A line such as `gather W=8 132x128: base 1.285 ms` begins a section.
        if name.contains('=') && name.contains("base") {
            let (heading, rest) = name.split_once("base").unwrap_or((&name, ""));
            section = heading.trim_end_matches([':', ' ']).to_owned();
            name = format!("base{rest}");
        }
        times.push(PeerTime {
            section: section.clone(),
            name,
            time_ns: milliseconds * 1e6,
        });
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_sections() {
        let output = "== blog W=1 blocks=132\nbase    1.378 ms 307 GB/s\nunroll   P= 2    1.384 ms x1.00\n\
                      gather W=8 132x128 items 1024: base 1.285 ms\n  ring 8,2  0.425 ms x3.02\n";
        let found = times(output);
        let time = |index: usize| {
            (
                found[index].section.as_str(),
                found[index].name.as_str(),
                found[index].time_ns,
            )
        };
        assert_eq!(found.len(), 4);
        assert_eq!(time(0), ("== blog W=1 blocks=132", "base", 1.378e6));
        assert_eq!(time(1), ("== blog W=1 blocks=132", "unroll P= 2", 1.384e6));
        assert_eq!(time(2), ("gather W=8 132x128 items 1024", "base", 1.285e6));
        assert_eq!(time(3), ("gather W=8 132x128 items 1024", "ring 8,2", 0.425e6));
    }
}
