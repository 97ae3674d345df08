//! A program that measures workloads on request: the path of a workload goes in, a line of JSON comes out: a list of
//! answers, one for each way of doing the work, none if the program has nothing for the kernel. It stays, so that PyTorch
//! is loaded once.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use headstart::{Error, Result};
use serde::Deserialize;

use headstart_cli::output::explain_command;

/// One way in which a program does a workload's work.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProgramResult {
    /// The timed part, in words.
    pub name: String,
    /// Its times in nanoseconds, in the order of the launches.
    pub times_ns: Vec<f64>,
    /// Versions, geometry.
    pub note: String,
    /// The type of the results, where it is another one than the workload's: `f16`.
    pub element: Option<String>,
    /// Why there are no times.
    pub error: Option<String>,
}

/// A line of a program.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Answers(Vec<ProgramResult>),
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
    pub fn measure(&mut self, manifest: &Path) -> Result<Vec<ProgramResult>> {
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
                Ok(Line::Answers(answers)) => return Ok(answers),
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

    fn answering(script: &str) -> Result<Vec<ProgramResult>> {
        let arguments = [OsStr::new("-c"), OsStr::new(script)];
        Process::start(OsStr::new("sh"), &arguments)?.measure(Path::new("case.txt"))
    }

    #[test]
    fn answers_are_read_between_other_lines() {
        let answer = answering(
            r#"read path; echo a library says hello; echo "[{\"name\":\"$path\",\"times_ns\":[2.5]}, {\"error\":\"no memory\"}]""#,
        );
        let answers = answer.expect("answers");
        assert_eq!(
            (answers[0].name.as_str(), answers[0].times_ns[0]),
            ("case.txt", 2.5)
        );
        assert_eq!(answers[1].error.as_deref(), Some("no memory"));
        assert!(
            answering("read path; echo '[]'")
                .expect("it has nothing")
                .is_empty()
        );
    }

    #[test]
    fn what_goes_wrong_is_said() {
        let message = |script: &str| answering(script).expect_err("it goes wrong").to_string();
        assert!(message(r#"read path; echo '{"error":"no such kernel"}'"#).contains("no such kernel"));
        assert!(message("read path").contains("ended"));
        assert!(Process::start(OsStr::new("no-such-program"), &[]).is_err());
    }
}
