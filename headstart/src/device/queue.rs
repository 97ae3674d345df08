//! Queues: one on a thread of its own, for devices whose commands block; and one without an order of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use super::{Command, Completion, Device, Event, Outcome, Queue};
use crate::{Error, Result};

/// Runs commands one after another on its own thread. Dropping it lets what was submitted finish.
pub struct WorkerQueue(mpsc::Sender<Work>);

struct Work {
    command: Command,
    after: Vec<Event>,
    completion: Completion,
}

impl WorkerQueue {
    /// Starts the thread. `run` runs one command; the events that it was to wait for have ended well.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn new(
        run: impl FnMut(Command, &[Event]) -> Result<Outcome> + Send + 'static,
    ) -> Result<WorkerQueue> {
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new()
            .name("queue".to_owned())
            .spawn(move || serve(receiver, run))
            .map_err(|error| Error::device(format!("no thread for a queue: {error}")))?;
        Ok(WorkerQueue(sender))
    }
}

fn serve(receiver: mpsc::Receiver<Work>, mut run: impl FnMut(Command, &[Event]) -> Result<Outcome>) {
    for work in receiver {
        let ready = work.after.iter().try_for_each(|event| event.wait().map(drop));
        work.completion
            .end(ready.and_then(|()| run(work.command, &work.after)));
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

/// A queue whose commands are ordered by the events that they name, and by nothing else: those that do not wait for
/// each other may run at the same time, as far as the device can.
///
/// ```
/// use headstart::device::sim::Simulator;
/// use headstart::device::{Device, OutOfOrder, TypedBuffer};
/// use headstart::prelude::*;
///
/// #[kernel]
/// fn add(values: &mut [u32], more: &[u32]) {
///     values[global_id()] += more[global_id()];
/// }
///
/// let device = Simulator::untimed();
/// let queue = OutOfOrder::new(&device, 4)?;
/// let compiled = add::compile(&device)?;
/// let mut sums = TypedBuffer::from_slice(&device, &[1u32, 2])?;
/// let more = TypedBuffer::from_slice(&device, &[10u32, 20])?;
/// let geometry = Geometry::new(1, 2);
/// let first = compiled.launch(&queue, geometry, add::arguments(&mut sums, &more));
/// // Both write the same buffer, so the second says that it comes after the first.
/// let second = compiled.launch_after(&queue, geometry, add::arguments(&mut sums, &more), &[first]);
/// let times = second.wait()?.times;
/// assert!(times.submitted_ns <= times.started_ns && times.started_ns <= times.ended_ns);
/// assert_eq!(sums.read_after(&queue, &[second])?, [21, 42]);
/// # Ok::<(), headstart::Error>(())
/// ```
pub struct OutOfOrder {
    lanes: Vec<Box<dyn Queue + Sync>>,
    next: AtomicUsize,
}

impl OutOfOrder {
    /// One that can have so many commands under way at a time.
    ///
    /// # Errors
    /// The device's.
    pub fn new(device: &dyn Device, at_once: usize) -> Result<OutOfOrder> {
        let lanes = (0..at_once.max(1)).map(|_| Ok(Box::new(Lane(Mutex::new(device.queue()?))) as Box<_>));
        Ok(OutOfOrder {
            lanes: lanes.collect::<Result<Vec<_>>>()?,
            next: AtomicUsize::new(0),
        })
    }
}

/// A queue in order that several threads may hand commands to.
struct Lane(Mutex<Box<dyn Queue>>);

impl Queue for Lane {
    fn submit(&self, command: Command, after: &[Event]) -> Event {
        let queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.submit(command, after)
    }
}

impl Queue for OutOfOrder {
    fn submit(&self, command: Command, after: &[Event]) -> Event {
        // In turn. A command waits for those before it in its lane, too, which were submitted earlier: so nothing
        // waits for what comes later.
        let lane = self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len();
        self.lanes[lane].submit(command, after)
    }
}
