//! Events: the end of a command, and its outcome.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::Counters;
use crate::model::hint::HintReached;
use crate::{Error, Result};

/// The end of one command, now or later. Clones are the same event.
#[derive(Clone)]
pub struct Event(Arc<State>);

/// The device's side of an [`Event`]: it delivers the command's outcome here. Dropping it without an answer ends the event with
/// an error, so that no wait is endless.
pub struct Completion(Option<Arc<State>>);

#[derive(Default)]
struct State {
    slot: Mutex<Slot>,
    ended: Condvar,
    /// The clock that the host's waiting advances.
    host: Option<Arc<HostClock>>,
}

/// The state of a command's end.
#[derive(Default)]
struct Slot {
    outcome: Option<Result<Arc<Outcome>>>,
    /// The callbacks at the end.
    callbacks: Vec<Callback>,
}

/// Called with the command's outcome.
type Callback = Box<dyn FnOnce(&Result<Arc<Outcome>>) + Send>;

/// The host's time on a device with a simulated clock: the latest end of a command that the host has waited for. Later
/// submissions come after it.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct HostClock(AtomicU64);

impl HostClock {
    /// The time, in nanoseconds.
    #[doc(hidden)]
    pub fn now_ns(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Acquire))
    }

    /// So much passes on the host.
    #[doc(hidden)]
    pub fn pass(&self, ns: f64) {
        let later = |bits: u64| Some((f64::from_bits(bits) + ns.max(0.0)).to_bits());
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
    }

    /// The host knows of this moment. Times are not negative, so their bits are ordered as they are.
    fn reach(&self, ns: f64) {
        self.0.fetch_max(ns.max(0.0).to_bits(), Ordering::AcqRel);
    }
}

/// The outcome of a command that succeeded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When it ran.
    pub times: Times,
    /// The device's counters.
    pub counters: Counters,
    /// The bytes that [`Command::Read`](super::Command::Read) read.
    pub bytes: Vec<u8>,
    /// The kernel's printed lines, if the device delivers them: the simulator does, in the order of the work-items; GPU drivers
    /// write them to the standard output themselves.
    pub printed: String,
    /// The outcome of each prefetch of the kernel: the level requested, the one reached, and why. Empty on a device without a
    /// model of caches.
    pub prefetches: Vec<HintReached>,
    /// Warnings for the kernel's author.
    pub notes: Vec<String>,
}

/// When a command was submitted, started and ended: nanoseconds on the device's clock, which is common to its queues and has an
/// arbitrary zero before that. On a simulated device's clock the host takes no time except for waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The host handed it to the queue.
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

    /// How long both ran at the same time, in nanoseconds: 0 if one ended before the other started.
    pub fn overlap_ns(&self, other: &Times) -> f64 {
        let (start, end) = (
            self.started_ns.max(other.started_ns),
            self.ended_ns.min(other.ended_ns),
        );
        (end - start).max(0.0)
    }
}

impl Event {
    /// An event that has not ended, and the handle that ends it.
    #[doc(hidden)]
    pub fn pending() -> (Event, Completion) {
        Event::of(State::default())
    }

    /// An event on a simulated clock, which waiting for it moves on.
    #[doc(hidden)]
    pub fn pending_on(host: &Arc<HostClock>) -> (Event, Completion) {
        Event::of(State {
            host: Some(Arc::clone(host)),
            ..State::default()
        })
    }

    fn of(state: State) -> (Event, Completion) {
        let state = Arc::new(state);
        (Event(Arc::clone(&state)), Completion(Some(state)))
    }

    /// Waits for the end. May be called again, and gives the same again.
    ///
    /// # Errors
    /// The command's own.
    pub fn wait(&self) -> Result<Arc<Outcome>> {
        let outcome = self.outcome();
        if let (Some(host), Ok(outcome)) = (&self.0.host, &outcome) {
            host.reach(outcome.times.ended_ns);
        }
        outcome
    }

    /// On a device with a simulated clock, the host's time now, in nanoseconds: it has waited for commands and for pages of
    /// shared allocations.
    pub fn host_ns(&self) -> Option<f64> {
        self.0.host.as_ref().map(|host| host.now_ns())
    }

    /// As [`Event::wait`], by a queue: the host has not waited.
    #[doc(hidden)]
    pub fn outcome(&self) -> Result<Arc<Outcome>> {
        let mut slot = self.0.slot.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = &slot.outcome {
                return outcome.clone();
            }
            slot = self.0.ended.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it has ended, well or not.
    pub fn has_ended(&self) -> bool {
        let slot = self.0.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.outcome.is_some()
    }

    /// Calls `told` with the command's outcome, once it has ended: now, or on the thread that ends it, which should not be
    /// blocked for long.
    pub(crate) fn when_ended(&self, told: impl FnOnce(&Result<Arc<Outcome>>) + Send + 'static) {
        let mut slot = self.0.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.outcome.clone() {
            Some(outcome) => {
                drop(slot);
                told(&outcome);
            }
            None => slot.callbacks.push(Box::new(told)),
        }
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
        let outcome = outcome.map(Arc::new);
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.outcome = Some(outcome.clone());
        let callbacks = std::mem::take(&mut slot.callbacks);
        drop(slot);
        // Callbacks run before waiters are woken, so that waiters see their effects.
        callbacks.into_iter().for_each(|callback| callback(&outcome));
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
    fn who_asks_is_told_once_before_or_after_the_end() {
        let (event, completion) = Event::pending();
        let count = Arc::new(AtomicU64::new(0));
        let tell = |event: &Event| {
            let count = Arc::clone(&count);
            event.when_ended(move |outcome| {
                assert!(outcome.is_ok());
                count.fetch_add(1, Ordering::Relaxed);
            });
        };
        tell(&event);
        assert_eq!(count.load(Ordering::Relaxed), 0);
        completion.end(Ok(Outcome::default()));
        tell(&event);
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn overlap_is_what_both_intervals_have() {
        let times = |started_ns: f64, ended_ns: f64| Times {
            submitted_ns: 0.0,
            started_ns,
            ended_ns,
        };
        assert_eq!(times(1.0, 5.0).overlap_ns(&times(3.0, 9.0)), 2.0);
        assert_eq!(times(1.0, 5.0).overlap_ns(&times(2.0, 3.0)), 1.0);
        assert_eq!(times(1.0, 5.0).overlap_ns(&times(5.0, 9.0)), 0.0);
        assert_eq!(times(1.0, 2.0).overlap_ns(&times(5.0, 9.0)), 0.0);
    }

    #[test]
    fn a_lost_completion_is_an_error_not_a_hang() {
        let (event, completion) = Event::pending();
        drop(completion);
        assert!(event.wait().is_err());
    }
}
