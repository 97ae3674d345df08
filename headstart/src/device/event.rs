//! Events: the end of a command, and what came of it.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::Counters;
use crate::back::hints::HintReached;
use crate::{Error, Result};

/// The end of one command, now or later. Clones are the same event.
#[derive(Clone)]
pub struct Event(Arc<State>);

/// The other side of an [`Event`]: the device says here what came of the command. Dropping it without an
/// answer ends the event with an error, so that nobody waits for ever.
pub struct Completion(Option<Arc<State>>);

#[derive(Default)]
struct State {
    outcome: Mutex<Option<Result<Arc<Outcome>>>>,
    ended: Condvar,
}

/// What came of a command that succeeded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When it ran.
    pub times: Times,
    /// What the device counted.
    pub counters: Counters,
    /// What [`Command::Read`](super::Command::Read) read.
    pub bytes: Vec<u8>,
    /// What the kernel printed, where the device hands it over: the simulator does, in the order of the work-items; the
    /// drivers of GPUs write it to the standard output themselves.
    pub printed: String,
    /// What became of each prefetch of the kernel: the level asked for, the one reached, why. Empty on a device without a
    /// model of caches.
    pub prefetches: Vec<HintReached>,
    /// What the kernel's author should know, though it is no error.
    pub notes: Vec<String>,
}

/// When a command was submitted, started and ended: nanoseconds on the device's clock, whose zero is any
/// moment before. A simulated device's clock is the simulated one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The command reached the device.
    pub submitted_ns: f64,
    /// It started to run.
    pub started_ns: f64,
    /// It was done.
    pub ended_ns: f64,
}

impl Times {
    /// How long it ran, in nanoseconds.
    pub fn elapsed_ns(&self) -> f64 {
        self.ended_ns - self.started_ns
    }
}

impl Event {
    /// An event that has not ended, and the handle that ends it.
    pub fn pending() -> (Event, Completion) {
        let state = Arc::new(State::default());
        (Event(Arc::clone(&state)), Completion(Some(state)))
    }

    /// Waits for the end. May be called again, and gives the same again.
    ///
    /// # Errors
    /// The command's own.
    pub fn wait(&self) -> Result<Arc<Outcome>> {
        let mut outcome = self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            outcome = self.0.ended.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it has ended, well or not.
    pub fn has_ended(&self) -> bool {
        let outcome = self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.is_some()
    }
}

impl Completion {
    /// Ends the event.
    pub fn end(mut self, outcome: Result<Outcome>) {
        if let Some(state) = self.0.take() {
            state.end(outcome);
        }
    }
}

impl State {
    fn end(&self, outcome: Result<Outcome>) {
        let mut slot = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(outcome.map(Arc::new));
        self.ended.notify_all();
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            state.end(Err(Error::device(
                "the device gave up a command without an answer",
            )));
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_ended() {
            "Event(ended)"
        } else {
            "Event(pending)"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_once_and_tells_everybody() {
        let (event, completion) = Event::pending();
        assert!(!event.has_ended());
        let other = event.clone();
        let waiter = std::thread::spawn(move || other.wait());
        completion.end(Ok(Outcome {
            bytes: vec![1],
            ..Outcome::default()
        }));
        assert_eq!(waiter.join().expect("no panic").expect("no error").bytes, [1]);
        assert_eq!(event.wait().expect("no error").bytes, [1]);
    }

    #[test]
    fn a_lost_completion_is_an_error_not_a_hang() {
        let (event, completion) = Event::pending();
        drop(completion);
        assert!(event.wait().is_err());
    }
}
