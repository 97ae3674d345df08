//! The busy times of a simulated card's engines: the cores of each stack, the copy engine of its memory, and the link to the
//! host in each direction.
//!
//! Commands of several queues overlap if they use different engines; a command for a busy engine starts in its first gap that
//! is long enough. Engines are assigned in the order in which commands were submitted, whatever threads run them, so that the
//! same program has the same times in every run. A kernel occupies all cores of its stack, as a kernel that fills them does.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::device::event::HostClock;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// The link, from the host's memory to the card's.
    In,
    /// The link, from the card's memory to the host's.
    Out,
    /// The cores of a stack.
    Cores(u32),
    /// The copy engine inside a stack's memory.
    Within(u32),
}

/// The engines of one card.
#[derive(Debug)]
pub(super) struct Timeline {
    state: Mutex<State>,
    turn: Condvar,
    host: Arc<HostClock>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the next ticket.
    next: u64,
    /// The ticket whose turn it is.
    turn: u64,
    /// Later tickets that were given back.
    returned: BTreeSet<u64>,
    engines: Vec<Busy>,
}

/// Intervals in which an engine is busy: ascending and apart, in nanoseconds.
#[derive(Debug, Default)]
struct Busy(Vec<(f64, f64)>);

/// A command's place in the order of submission. Given back when dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    timeline: Arc<Timeline>,
    number: u64,
    /// When the host submitted it.
    pub submitted_ns: f64,
}

impl Timeline {
    pub(crate) fn new() -> Timeline {
        Timeline {
            state: Mutex::default(),
            turn: Condvar::new(),
            host: Arc::default(),
        }
    }

    /// The host's clock.
    pub(crate) fn host(&self) -> &Arc<HostClock> {
        &self.host
    }

    /// A command is submitted now.
    pub(crate) fn admit(self: &Arc<Self>) -> Ticket {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        drop(state);
        Ticket {
            timeline: Arc::clone(self),
            number,
            submitted_ns: self.host.now_ns(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Takes an engine for so long, from `ready_ns` on or as soon as it is free. When that is. Waits until all commands
    /// that were submitted before have their times.
    pub(crate) fn place(self, engine: Engine, ready_ns: f64, length_ns: f64) -> f64 {
        let timeline = Arc::clone(&self.timeline);
        let mut state = timeline.lock();
        while state.turn != self.number {
            state = timeline.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let index = match engine {
            Engine::In => 0,
            Engine::Out => 1,
            Engine::Cores(stack) => 2 + 2 * stack as usize,
            Engine::Within(stack) => 3 + 2 * stack as usize,
        };
        if state.engines.len() <= index {
            state.engines.resize_with(index + 1, Busy::default);
        }
        state.engines[index].take(ready_ns, length_ns)
        // Dropping the ticket gives the turn to the next.
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.timeline.lock();
        state.returned.insert(self.number);
        while {
            let turn = state.turn;
            state.returned.remove(&turn)
        } {
            state.turn += 1;
        }
        drop(state);
        self.timeline.turn.notify_all();
    }
}

impl Busy {
    /// The start of the first gap from `ready` on that is long enough, which is one no more.
    fn take(&mut self, ready: f64, length: f64) -> f64 {
        let mut start = ready;
        let mut at = self.0.partition_point(|&(_, end)| end <= ready);
        while let Some(&(begin, end)) = self.0.get(at)
            && begin < start + length
        {
            start = end;
            at += 1;
        }
        if length <= 0.0 {
            return start;
        }
        // Intervals that touch are one.
        let joins_before = at > 0 && self.0[at - 1].1 == start;
        let joins_after = self.0.get(at).is_some_and(|&(begin, _)| begin == start + length);
        match (joins_before, joins_after) {
            (true, true) => {
                self.0[at - 1].1 = self.0[at].1;
                self.0.remove(at);
            }
            (true, false) => self.0[at - 1].1 = start + length,
            (false, true) => self.0[at].0 = start,
            (false, false) => self.0.insert(at, (start, start + length)),
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_that_is_long_enough_is_taken() {
        let mut busy = Busy::default();
        assert_eq!(busy.take(10.0, 5.0), 10.0);
        assert_eq!(busy.take(20.0, 5.0), 20.0);
        assert_eq!(busy.take(0.0, 11.0), 25.0, "no gap before is long enough");
        assert_eq!(busy.take(12.0, 5.0), 15.0, "the gap fits exactly");
        assert_eq!(busy.0, [(10.0, 36.0)]);
        assert_eq!(busy.take(0.0, 10.0), 0.0);
        assert_eq!(busy.0, [(0.0, 36.0)]);
        assert_eq!(busy.take(3.0, 0.0), 36.0);
        assert_eq!(busy.take(40.0, 1.0), 40.0);
        assert_eq!(busy.0.len(), 2);
    }

    #[test]
    fn engines_are_given_out_in_the_order_of_submission() {
        let timeline = Arc::new(Timeline::new());
        let [first, second, third] = [(), (), ()].map(|()| timeline.admit());
        // The last asks first, and waits.
        let last = std::thread::spawn(move || third.place(Engine::Cores(0), 0.0, 2.0));
        drop(first);
        assert_eq!(second.place(Engine::Cores(0), 0.0, 10.0), 0.0);
        assert_eq!(last.join().expect("no panic"), 10.0);
        assert_eq!(timeline.admit().place(Engine::In, 1.0, 2.0), 1.0);
        assert_eq!(timeline.admit().place(Engine::Cores(1), 0.0, 2.0), 0.0);
    }
}
