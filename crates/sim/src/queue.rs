//! The simulator's queue: commands run on a thread, and take their times from the card's [`Timeline`]. The queue of a device that
//! only checks runs them where they are submitted: waking a thread takes longer than most of them.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use super::functional::BufferMemory;
use super::simulator::Shared;
use super::timeline::{Engine, Ticket};
use crate::device::event::HostClock;
use crate::device::{
    Allocation, Buffer, Command, Completion, Event, Outcome, Queue, Times, check_copy, host_bytes,
};
use crate::model::CopyDirection;
use crate::{Error, Result};

/// Bytes that a copy moves at a time.
const CHUNK: u64 = 1 << 20;

/// A queue of a simulated device.
pub(super) struct SimulatorQueue {
    shared: Arc<Shared>,
    host: Arc<HostClock>,
    server: Server,
}

/// Who runs a queue's commands.
enum Server {
    /// A thread of its own.
    Thread(mpsc::Sender<Work>),
    /// Who submits them. When the last one ended, in nanoseconds.
    Caller(Mutex<f64>),
}

struct Work {
    command: Command,
    after: Vec<Event>,
    ticket: Ticket,
    completion: Completion,
}

impl SimulatorQueue {
    /// Starts its thread, if it has one.
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<SimulatorQueue> {
        let server = match shared.only_checks() {
            true => Server::Caller(Mutex::new(0.0)),
            false => {
                let (sender, receiver) = mpsc::channel();
                let serving = Arc::clone(shared);
                thread::Builder::new()
                    .name("queue".to_owned())
                    .spawn(move || serve(&serving, receiver))
                    .map_err(|error| Error::device(format!("no thread for a queue: {error}")))?;
                Server::Thread(sender)
            }
        };
        Ok(SimulatorQueue {
            shared: Arc::clone(shared),
            host: Arc::clone(shared.card.timeline.host()),
            server,
        })
    }
}

impl Queue for SimulatorQueue {
    fn submit(&self, command: Command, after: &[Event]) -> Event {
        let (event, completion) = Event::pending_on(&self.host);
        let ticket = self.shared.card.timeline.admit();
        match &self.server {
            // If the thread died, completion and ticket die with the message.
            Server::Thread(sender) => drop(sender.send(Work {
                command,
                after: after.to_vec(),
                ticket,
                completion,
            })),
            Server::Caller(now_ns) => {
                let mut now_ns = now_ns.lock().unwrap_or_else(PoisonError::into_inner);
                completion.end(one(&self.shared, command, after, ticket, &mut now_ns));
            }
        }
        event
    }
}

fn serve(shared: &Shared, receiver: mpsc::Receiver<Work>) {
    // When the last command ended.
    let mut now_ns = 0.0f64;
    for work in receiver {
        let Work {
            command,
            after,
            ticket,
            completion,
        } = work;
        completion.end(one(shared, command, &after, ticket, &mut now_ns));
    }
}

/// Runs one command when those before it, and `after`, have ended.
fn one(
    shared: &Shared,
    command: Command,
    after: &[Event],
    ticket: Ticket,
    now_ns: &mut f64,
) -> Result<Outcome> {
    let submitted_ns = ticket.submitted_ns;
    let mut ready_ns = submitted_ns.max(*now_ns);
    for event in after {
        ready_ns = ready_ns.max(event.outcome()?.times.ended_ns);
    }
    let (mut outcome, engine, length_ns) = run(shared, command)?;
    let started_ns = match shared.clock {
        Some(_) => ticket.place(engine, ready_ns, length_ns),
        None => ready_ns,
    };
    *now_ns = started_ns + length_ns;
    outcome.times = Times {
        submitted_ns,
        started_ns,
        ended_ns: *now_ns,
    };
    Ok(outcome)
}

/// Runs a command: its outcome, the engine that it occupies, and for how long.
fn run(shared: &Shared, command: Command) -> Result<(Outcome, Engine, f64)> {
    let mut outcome = Outcome::default();
    let cores = Engine::Cores(shared.stack);
    let (direction, bytes) = match command {
        Command::Launch(program, launch) => {
            let (timing, printed) = shared.launch(&program, &launch)?;
            outcome.printed = printed;
            outcome.counters = timing.counters;
            outcome.notes = timing.notes;
            outcome.prefetches = shared
                .clock
                .as_ref()
                .map(|clock| clock.prefetches(program.kernel()))
                .unwrap_or_default();
            return Ok((outcome, cores, timing.elapsed_ns));
        }
        Command::Write {
            buffer,
            offset,
            bytes,
        } => {
            buffer.check_range(offset, bytes.len() as u64)?;
            memory(&buffer)?.copy_in(offset, &bytes);
            (
                direction(Allocation::Host, buffer.allocation()),
                bytes.len() as u64,
            )
        }
        Command::Read {
            buffer,
            offset,
            length,
        } => {
            buffer.check_range(offset, length)?;
            outcome.bytes = host_bytes(length)?;
            memory(&buffer)?.copy_out(offset, &mut outcome.bytes)?;
            (direction(buffer.allocation(), Allocation::Host), length)
        }
        Command::Copy {
            from,
            from_offset,
            to,
            to_offset,
            length,
        } => {
            check_copy(&from, from_offset, &to, to_offset, length)?;
            let (source, target) = (memory(&from)?, memory(&to)?);
            let mut bytes = vec![0; length.min(CHUNK) as usize];
            let mut done = 0;
            while done < length {
                let part = &mut bytes[..(length - done).min(CHUNK) as usize];
                source.copy_out(from_offset + done, part)?;
                target.copy_in(to_offset + done, part);
                done += part.len() as u64;
            }
            (direction(from.allocation(), to.allocation()), length)
        }
    };
    let engine = match direction {
        CopyDirection::In => Engine::In,
        CopyDirection::Out => Engine::Out,
        CopyDirection::Within => Engine::Within(shared.stack),
    };
    let length_ns = shared.clock.as_ref().map(|clock| clock.copy_ns(bytes, direction));
    Ok((outcome, engine, length_ns.unwrap_or(0.0)))
}

fn memory(buffer: &Buffer) -> Result<Arc<BufferMemory>> {
    buffer.implementation()
}

/// Which way bytes go from one kind of memory to another. Shared allocations count as the device's: that is where kernels
/// leave them.
fn direction(from: Allocation, to: Allocation) -> CopyDirection {
    match (from == Allocation::Host, to == Allocation::Host) {
        (true, false) => CopyDirection::In,
        (false, true) => CopyDirection::Out,
        _ => CopyDirection::Within,
    }
}
