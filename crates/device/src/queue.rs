//! Queues: one on a thread of its own, for devices whose commands block; and one without an order of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Instant;

use super::{Command, Completion, Device, Event, Outcome, Queue};
use crate::{Error, Result};

/// Zeros in the host's memory for what is read back.
///
/// # Errors
/// The host has no room for this many: a launch file may ask for any length.
pub fn host_bytes(length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length_here = usize::try_from(length).unwrap_or(usize::MAX);
    match bytes.try_reserve_exact(length_here) {
        Ok(()) => {
            bytes.resize(length_here, 0);
            Ok(bytes)
        }
        Err(_) => Err(Error::device(format!(
            "the host has no memory for the {length} bytes that are read back"
        ))
        .accepted("a smaller buffer, or more memory for the process")),
    }
}

/// Runs commands one after another on its own thread. Dropping it lets submitted commands finish.
pub struct WorkerQueue(mpsc::Sender<(Submitted, Completion)>);

/// A command on its way.
#[derive(Debug)]
pub struct Submitted {
    /// The command.
    pub command: Command,
    /// The events that it waits for.
    pub after: Vec<Event>,
    /// When it was submitted.
    pub at: Instant,
}

impl WorkerQueue {
    /// Starts the thread. `run` runs one command; the events that it was to wait for have ended well.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn new(run: impl FnMut(Submitted) -> Result<Outcome> + Send + 'static) -> Result<WorkerQueue> {
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new()
            .name("queue".to_owned())
            .spawn(move || serve(receiver, run))
            .map_err(|error| Error::device(format!("no thread for a queue: {error}")))?;
        Ok(WorkerQueue(sender))
    }
}

fn serve(
    receiver: mpsc::Receiver<(Submitted, Completion)>,
    mut run: impl FnMut(Submitted) -> Result<Outcome>,
) {
    for (submitted, completion) in receiver {
        let ready = submitted
            .after
            .iter()
            .try_for_each(|event| event.outcome().map(drop));
        completion.end(ready.and_then(|()| run(submitted)));
    }
}

impl Queue for WorkerQueue {
    fn submit(&self, command: Command, after: &[Event]) -> Event {
        let (event, completion) = Event::pending();
        let submitted = Submitted {
            command,
            after: after.to_vec(),
            at: Instant::now(),
        };
        // If the thread died, the completion dies with the message, and the event says so.
        let _ = self.0.send((submitted, completion));
        event
    }
}

/// A queue whose commands are ordered only by the events that they name: those that do not wait for each other may run at the
/// same time, as far as the device can.
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
    /// One that can have this many commands under way at a time.
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
        // In turn. A command also waits for earlier commands of its lane, which were submitted earlier: so nothing waits for
        // later ones.
        let lane = self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len();
        self.lanes[lane].submit(command, after)
    }
}

/// A queue that reports every error of its commands, once, besides the command's event. A command that did not
/// run because another failed has the other's error, and is reported, too.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use headstart::device::sim::Simulator;
/// use headstart::device::{Device, Telling, TypedBuffer};
/// use headstart::prelude::*;
///
/// #[kernel]
/// fn first(values: &[u32], result: &mut [u32]) {
///     result[global_id()] = values[global_id() + 1];
/// }
///
/// let device = Simulator::untimed();
/// let errors = Arc::new(Mutex::new(Vec::new()));
/// let list = Arc::clone(&errors);
/// let queue = Telling::new(device.queue()?, move |error| list.lock().unwrap().push(error.to_string()));
/// let values = TypedBuffer::from_slice(&device, &[1u32; 4])?;
/// let mut result = TypedBuffer::uninitialized(&device, 4)?;
/// // This event is dropped.
/// let _ = first::compile(&device)?.launch(&queue, Geometry::new(1, 4), first::arguments(&values, &mut result));
/// assert!(queue.finish().is_err());
/// assert!(errors.lock().unwrap()[0].contains("out of bounds"));
/// # Ok::<(), headstart::Error>(())
/// ```
pub struct Telling<Q = Box<dyn Queue>> {
    queue: Q,
    handler: Arc<dyn Fn(&Error) + Send + Sync>,
    /// Submitted commands that have not finished.
    open: Mutex<Vec<Event>>,
}

impl<Q: Queue> Telling<Q> {
    /// One that calls `handler`, on the thread that ends the command: it should not take long, and not wait for events.
    pub fn new(queue: Q, handler: impl Fn(&Error) + Send + Sync + 'static) -> Telling<Q> {
        Telling {
            queue,
            handler: Arc::new(handler),
            open: Mutex::default(),
        }
    }

    /// Waits until everything that was submitted has ended.
    ///
    /// # Errors
    /// The first error, in the order of submission, among the commands since the last call.
    pub fn finish(&self) -> Result<()> {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        let ended: Vec<Result<()>> = open.iter().map(|event| event.wait().map(drop)).collect();
        ended.into_iter().collect()
    }
}

impl<Q: Queue> Queue for Telling<Q> {
    fn submit(&self, command: Command, after: &[Event]) -> Event {
        let event = self.queue.submit(command, after);
        let handler = Arc::clone(&self.handler);
        event.when_ended(move |outcome| {
            if let Err(error) = outcome {
                handler(error);
            }
        });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // A caller that never finishes keeps only the commands in flight, and the first error.
        if open.len() >= 64 {
            let mut has_error = false;
            open.retain(|event| {
                let ended = event.has_ended();
                !ended || (event.outcome().is_err() && !std::mem::replace(&mut has_error, true))
            });
        }
        open.push(event.clone());
        event
    }
}

impl<Q: Queue + ?Sized> Queue for Box<Q> {
    fn submit(&self, command: Command, after: &[Event]) -> Event {
        (**self).submit(command, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_ir::Fault;

    #[test]
    fn more_bytes_than_the_host_has_are_an_error() {
        assert_eq!(host_bytes(3).expect("there is room"), [0; 3]);
        let error = host_bytes(u64::MAX).expect_err("there is none");
        assert_eq!(error.fault(), Fault::Device);
        assert!(
            error.to_string().contains("18446744073709551615 bytes"),
            "{error}"
        );
    }
}
