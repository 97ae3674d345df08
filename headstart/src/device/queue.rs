//! A queue on a thread of its own, for devices whose commands block.

use std::sync::mpsc;
use std::thread;

use super::{Command, Completion, Event, Outcome, Queue};
use crate::{Error, Result};

/// Runs commands one after another on its own thread. Dropping it lets what was submitted finish.
pub struct WorkerQueue(mpsc::Sender<Work>);

struct Work {
    command: Command,
    after: Vec<Event>,
    completion: Completion,
}

impl WorkerQueue {
    /// Starts the thread. `run` runs one command.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn new(run: impl FnMut(Command) -> Result<Outcome> + Send + 'static) -> Result<WorkerQueue> {
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new()
            .name("queue".to_owned())
            .spawn(move || serve(receiver, run))
            .map_err(|error| Error::device(format!("no thread for a queue: {error}")))?;
        Ok(WorkerQueue(sender))
    }
}

fn serve(receiver: mpsc::Receiver<Work>, mut run: impl FnMut(Command) -> Result<Outcome>) {
    for work in receiver {
        let ready = work.after.iter().try_for_each(|event| event.wait().map(drop));
        work.completion.end(ready.and_then(|()| run(work.command)));
    }
}

impl Queue for WorkerQueue {
    fn submit(&self, command: Command, after: &[Event]) -> Event {
        let (event, completion) = Event::pending();
        // If the thread died, the completion dies with the message, and the event says so.
        let _ = self.0.send(Work {
            command,
            after: after.to_vec(),
            completion,
        });
        event
    }
}
