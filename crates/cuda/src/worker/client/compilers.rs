//! Processes that compile for a worker: the driver compiles one text at a time in each process, however many threads ask.
//!
//! ```text
//! the modules of a request → their texts, each to the next free process → machine code in files, which the worker loads
//! ```
//!
//! They are started once compiling in the worker alone would take long, and end with it. A text that one of them refuses is left
//! to the worker, whose driver says why.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::{PATIENCE, Process, Reply, Request, Worker, unexpected};
use crate::failure::{Failure, FailureKind};
use crate::ptxas;
use crate::worker::Module;
use crate::worker::compile::late;

/// The most of them. By choice: each holds a context of the GPU, some 500 MB of its memory.
const MOST: usize = 8;

/// How long the worker alone has to take for a request, for them to be worth it. By choice: to open a GPU takes half a second.
const WORTH: Duration = Duration::from_secs(1);

/// The least seconds that compiling a byte of text takes, whatever the driver's cache makes of texts that it knows: ptxas 13.0 takes
/// 0.31 s for RSBench's kernel, 110,572 bytes, on a builder.
const SECONDS_A_BYTE: f64 = 3e-6;

/// The processes, and what is known of compiling.
#[derive(Default)]
pub(super) struct Compilers {
    idle: Vec<Process>,
    /// How long the worker alone took for a byte of text.
    seconds_a_byte: f64,
    /// How many files of machine code were asked for.
    files: usize,
}

/// How one is started.
struct Start<'w> {
    program: &'w Path,
    arguments: &'w [OsString],
    open: &'w Request,
}

impl Start<'_> {
    fn process(&self) -> Result<Process, Failure> {
        let mut process = Process::start(self.program, self.arguments)?;
        match process.exchange(self.open, PATIENCE) {
            Ok(Reply::Opened(_)) => Ok(process),
            other => {
                process.end();
                Err(failure(other))
            }
        }
    }
}

/// A reply that is none of those that were wanted.
fn failure(reply: Result<Reply, Failure>) -> Failure {
    match reply {
        Ok(Reply::Failed(failure)) | Err(failure) => failure,
        Ok(other) => unexpected(&other),
    }
}

impl Compilers {
    /// Notes how long the worker alone took for modules.
    pub(super) fn learn(&mut self, modules: &[Module], took: Duration) {
        let bytes = bytes(modules);
        if bytes > 0 && modules.iter().all(|module| module.code.is_none()) {
            self.seconds_a_byte = took.as_secs_f64() / bytes as f64;
        }
    }

    /// Ends them.
    pub(super) fn end(&mut self) {
        self.idle.drain(..).for_each(Process::end);
    }

    /// Compiles texts on this many processes, each into its file. The outcome of each, in order.
    fn compile(
        &mut self,
        start: &Start<'_>,
        texts: &[(&str, PathBuf)],
        count: usize,
    ) -> Vec<Result<(), Failure>> {
        let next = AtomicUsize::new(0);
        let (limit, idle) = (ptxas::limit(), Mutex::new(std::mem::take(&mut self.idle)));
        let of = |process: &mut Option<Process>, (text, code): &(&str, PathBuf)| {
            let mut own = match process.take() {
                Some(own) => own,
                None => start.process()?,
            };
            let request = Request::Assemble {
                ptx: (*text).to_owned(),
                code: code.clone(),
            };
            let reply = own.exchange(&request, limit);
            match &reply {
                Ok(_) => *process = Some(own),
                // It cannot be stopped but with its process.
                Err(_) => own.end(),
            }
            match reply {
                Ok(Reply::Assembled) => Ok(()),
                Err(failure) if failure.kind == FailureKind::TimeLimit => Err(late(limit)),
                other => Err(failure(other)),
            }
        };
        let work = || {
            let take = || idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let (mut process, mut compiled) = (take(), Vec::new());
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = texts.get(index) else { break };
                compiled.push((index, of(&mut process, text)));
            }
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.extend(process);
            compiled
        };
        let lost = || Failure::new(FailureKind::Worker, "a compiling process gave no answer");
        let mut results: Vec<_> = texts.iter().map(|_| Err(lost())).collect();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
            for (index, result) in threads.into_iter().flat_map(|own| own.join().unwrap_or_default()) {
                results[index] = result;
            }
        });
        self.idle = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        results
    }
}

/// The bytes of text.
fn bytes(modules: &[Module]) -> usize {
    modules.iter().map(|module| module.ptx.len()).sum()
}

impl Worker {
    /// Compiles modules in processes beside the worker, if that is worth it: those that were compiled name a file with their
    /// machine code. The failure of each that took too long, in order.
    pub(super) fn compile_beside(&mut self, modules: &mut [Module]) -> Vec<Option<Failure>> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let count = modules.len().min(threads).min(MOST);
        let alone_s = self.compilers.seconds_a_byte.max(SECONDS_A_BYTE) * bytes(modules) as f64;
        if count < 2 || alone_s < WORTH.as_secs_f64() || ptxas::is_named() {
            return modules.iter().map(|_| None).collect();
        }
        let first = self.compilers.files;
        self.compilers.files += modules.len();
        let files = (first..).map(|number| self.folder.path().join(format!("code-{number}")));
        let texts: Vec<(&str, PathBuf)> = modules.iter().map(|own| &own.ptx[..]).zip(files).collect();
        let start = Start {
            program: &self.program,
            arguments: &self.arguments,
            open: &self.open,
        };
        let compiled = self.compilers.compile(&start, &texts, count);
        let files: Vec<PathBuf> = texts.into_iter().map(|(_, file)| file).collect();
        let of = |((module, file), compiled): ((&mut Module, PathBuf), Result<(), Failure>)| match compiled {
            Ok(()) => {
                module.code = Some(file);
                None
            }
            Err(failure) => Some(failure).filter(|failure| failure.kind == FailureKind::Resources),
        };
        modules.iter_mut().zip(files).zip(compiled).map(of).collect()
    }
}
