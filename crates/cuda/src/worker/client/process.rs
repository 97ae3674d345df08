//! A process that runs a worker: its pipes, and its last words.

use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::super::output::{Line, separate};
use super::super::{MARK_VARIABLE, Reply, Request};
use crate::failure::{Failure, FailureKind};
use crate::ptxas;

/// Bytes of a worker's standard error that are kept: its end.
const LAST_WORDS: usize = 4096;

/// A running worker.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    replies: mpsc::Receiver<Line>,
    /// The lines printed before the last reply.
    pub(super) printed: String,
    /// The last line of its standard error, once that ends.
    last_words: mpsc::Receiver<String>,
}

impl Process {
    /// Starts a worker.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn start(program: &Path, arguments: &[OsString]) -> Result<Process, Failure> {
        let failed = |what: String| Failure::new(FailureKind::Worker, format!("no worker: {what}"));
        let mark = mark();
        let mut child = Command::new(program)
            .args(arguments)
            .env(MARK_VARIABLE, &mark)
            .env(ptxas::LIMIT_VARIABLE, ptxas::limit().as_secs_f64().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("{} cannot be started: {error}", program.display())))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed("its pipes are missing".to_owned()));
        };
        let (sender, replies) = mpsc::channel();
        let spawn = |work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new()
                .spawn(work)
                .map(drop)
                .map_err(|error| failed(error.to_string()))
        };
        spawn(Box::new(move || {
            separate(BufReader::new(output), &mark, |line| sender.send(line).is_ok());
        }))?;
        // The driver may write to standard error; it must not block, and the end of it says why a worker ended.
        let (tell, last_words) = mpsc::channel();
        spawn(Box::new(move || {
            let mut errors = errors;
            let (mut piece, mut kept) = ([0; 4096], Vec::new());
            while let Ok(count) = errors.read(&mut piece) {
                if count == 0 {
                    break;
                }
                kept.extend_from_slice(&piece[..count]);
                let too_much = kept.len().saturating_sub(LAST_WORDS);
                kept.drain(..too_much);
            }
            let text = String::from_utf8_lossy(&kept);
            let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
            // The receiver may be gone.
            let _ = tell.send(last.unwrap_or_default().to_owned());
        }))?;
        Ok(Process {
            child,
            input,
            replies,
            printed: String::new(),
            last_words,
        })
    }

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// The worker ended, gives no answer in time, or one that cannot be read.
    pub(super) fn exchange(&mut self, request: &Request, limit: Duration) -> Result<Reply, Failure> {
        let text = serde_json::to_string(request).map_err(|error| {
            Failure::new(
                FailureKind::Request,
                format!("a request cannot be written: {error}"),
            )
        })?;
        let written = writeln!(self.input, "{text}").and_then(|()| self.input.flush());
        if written.is_err() {
            return Err(self.ended());
        }
        match self.replies.recv_timeout(limit) {
            Ok(Line { reply, printed }) => {
                self.printed = printed;
                serde_json::from_str(&reply).map_err(|error| {
                    Failure::new(
                        FailureKind::Worker,
                        format!("the worker's answer cannot be read: {error}"),
                    )
                })
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.ended()),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Failure::new(
                FailureKind::TimeLimit,
                format!("the worker gave no answer within {:.1} s", limit.as_secs_f64()),
            )),
        }
    }

    /// Why there is no worker.
    fn ended(&mut self) -> Failure {
        let status = self
            .child
            .wait()
            .map_or_else(|error| error.to_string(), |status| status.to_string());
        // Its own children may keep its standard error open.
        let said = self.last_words.recv_timeout(Duration::from_secs(1));
        let said = said.unwrap_or_default();
        let said = said.strip_prefix("headstart: ").unwrap_or(&said);
        let colon = if said.is_empty() { "" } else { ": " };
        Failure::new(
            FailureKind::Worker,
            format!("the worker ended without an answer: {status}{colon}{said}"),
        )
    }

    /// Stops the process. A GPU may take its time to give up a kernel, so this does not wait for it.
    pub(super) fn end(self) {
        let Process { mut child, input, .. } = self;
        drop(input);
        // At once, so that nothing is left on the GPU even where this process ends next.
        let _ = child.kill();
        let reap = move || {
            let _ = child.wait();
        };
        // Without a thread the process is left to the system, which ends it with ours.
        let _ = thread::Builder::new().spawn(reap);
    }
}

/// The prefix of a new worker's replies, which no other process can know.
fn mark() -> String {
    use std::hash::{BuildHasher, RandomState};
    // The keys of a `RandomState` come from the system's random numbers.
    let random = RandomState::new().hash_one(std::process::id());
    format!("\u{1}headstart worker {random:016x}: ")
}
