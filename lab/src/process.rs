//! A program that measures workloads on request: the path of a workload goes in, a line of JSON comes out. It stays,
//! so that PyTorch is loaded once.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use headstart::{Error, Result};
use serde::{Deserialize, Serialize};

use headstart_cli::output::explain_command;

/// A program's output for a workload.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ProgramResult {
    /// The timed part, in words.
    pub name: String,
    /// Its times in nanoseconds, in the order of the launches.
    pub times_ns: Vec<f64>,
    /// Versions, geometry.
    #[serde(default)]
    pub note: String,
}

/// A line of a program: an answer, or why there is none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Answer(ProgramResult),
    Error { error: String },
}

/// The longest that a program may take for one workload.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running program.
pub struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &OsStr, arguments: &[&OsStr]) -> Result<Process> {
        let failed = |error: std::io::Error| Error::usage(format!("{}: {error}", program.to_string_lossy()));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        explain_command(&command);
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::bug("a program has no pipes"));
        };
        let (sender, lines) = channel();
        // The thread ends with the program's output.
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(|line| line.ok());
            for line in lines {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Process { child, input, lines })
    }

    /// Measures a workload.
    ///
    /// # Errors
    /// The program says so, ended, or takes too long.
    pub fn measure(&mut self, manifest: &Path) -> Result<ProgramResult> {
        let lost = |what: &str| Error::device(format!("a program to compare with {what}"));
        writeln!(self.input, "{}", manifest.display())
            .and_then(|()| self.input.flush())
            .map_err(|_| lost("ended"))?;
        loop {
            let line = match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => return Err(lost("takes too long")),
                Err(RecvTimeoutError::Disconnected) => return Err(lost("ended")),
            };
            // Libraries print what they like; answers are JSON.
            match serde_json::from_str(&line) {
                Ok(Line::Answer(answer)) if !answer.times_ns.is_empty() => return Ok(answer),
                Ok(Line::Answer(_)) => return Err(lost("measured nothing")),
                Ok(Line::Error { error }) => return Err(Error::device(error)),
                Err(_) => {}
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answering(script: &str) -> Result<ProgramResult> {
        let arguments = [OsStr::new("-c"), OsStr::new(script)];
        Process::start(OsStr::new("sh"), &arguments)?.measure(Path::new("case.txt"))
    }

    #[test]
    fn answers_are_read_between_other_lines() {
        let answer = answering(
            r#"read path; echo a library says hello; echo "{\"name\":\"$path\",\"times_ns\":[2.5]}""#,
        );
        let answer = answer.expect("an answer");
        assert_eq!((answer.name.as_str(), answer.times_ns[0]), ("case.txt", 2.5));
    }

    #[test]
    fn what_goes_wrong_is_said() {
        let message = |script: &str| answering(script).expect_err("it goes wrong").to_string();
        assert!(message(r#"read path; echo '{"error":"no such kernel"}'"#).contains("no such kernel"));
        assert!(message("read path").contains("ended"));
        assert!(Process::start(OsStr::new("no-such-program"), &[]).is_err());
    }
}
