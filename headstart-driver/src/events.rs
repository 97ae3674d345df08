//! How long launches take, by the driver's own events around them.
//!
//! Nothing waits here: the time of a launch is taken when a later one finds that it has ended. A stream that is being captured
//! is left alone, because events recorded there become part of the graph.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;
use std::ptr;

use crate::abi::{Handle, NOT_READY, SUCCESS};
use crate::lock::Lock;
use crate::real;

/// Launches whose end is awaited at most; others are counted without their time.
const MOST_PENDING: usize = 512;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_int = 2;

/// The receiver of a measured time: nanoseconds, and the launch.
pub type Told = Box<dyn FnOnce(u64) + Send>;

/// A launch that has begun.
pub struct Running {
    context: usize,
    pair: Pair,
}

#[derive(Clone, Copy)]
struct Pair {
    start: usize,
    end: usize,
}

struct Pending {
    context: usize,
    pair: Pair,
    told: Told,
}

#[derive(Default)]
struct Events {
    free: Option<HashMap<usize, Vec<Pair>>>,
    pending: VecDeque<Pending>,
}

static EVENTS: Lock<Events> = Lock::new(Events {
    free: None,
    pending: VecDeque::new(),
});

/// Holds the lock for the time of a fork.
pub fn hold() {
    EVENTS.hold();
}

/// Ends [`hold`].
pub fn release() {
    EVENTS.release();
}

/// Whether times can be taken, or their thread has ended.
pub fn comes_free() -> bool {
    EVENTS.comes_free()
}

/// Calls the driver in a way that a capture of another stream does not forbid.
pub fn relaxed<T>(call: impl FnOnce() -> T) -> T {
    let mut mode = RELAXED;
    // SAFETY: a mode to exchange for this thread's.
    let exchanged = unsafe { real::cuThreadExchangeStreamCaptureMode(&raw mut mode) } == SUCCESS;
    let result = call();
    if exchanged {
        // SAFETY: the mode that it was.
        let _ = unsafe { real::cuThreadExchangeStreamCaptureMode(&raw mut mode) };
    }
    result
}

/// Whether a stream is being captured, or may not be asked.
pub fn is_captured(stream: Handle, per_thread: bool) -> bool {
    let mut status = 0;
    // SAFETY: the stream that the program launches on.
    let result = unsafe {
        match per_thread {
            true => real::cuStreamIsCapturing_ptsz(stream, &raw mut status),
            false => real::cuStreamIsCapturing(stream, &raw mut status),
        }
    };
    match result {
        SUCCESS => status != 0,
        // A driver that has no such function has no captures.
        crate::abi::NOT_FOUND => false,
        _ => true,
    }
}

/// The current context; 0 if there is none.
pub fn context() -> usize {
    let mut context = ptr::null_mut();
    // SAFETY: a place for a handle.
    match unsafe { real::cuCtxGetCurrent(&raw mut context) } {
        SUCCESS => context as usize,
        _ => 0,
    }
}

unsafe fn record(event: usize, stream: Handle, per_thread: bool) -> bool {
    // SAFETY: an event of the current context, and the program's stream.
    unsafe {
        SUCCESS
            == match per_thread {
                true => real::cuEventRecord_ptsz(event as Handle, stream),
                false => real::cuEventRecord(event as Handle, stream),
            }
    }
}

/// A launch is about to be made on this stream, which is not captured.
///
/// # Safety
/// It is the program's stream.
pub unsafe fn begin(stream: Handle, per_thread: bool) -> Option<Running> {
    let context = context();
    if context == 0 {
        return None;
    }
    let pair = {
        let mut events = EVENTS.take();
        if events.pending.len() >= MOST_PENDING {
            return None;
        }
        events
            .free
            .get_or_insert_default()
            .entry(context)
            .or_default()
            .pop()
    };
    let pair = match pair {
        Some(pair) => pair,
        None => relaxed(|| {
            Some(Pair {
                start: new()?,
                end: new()?,
            })
        })?,
    };
    // SAFETY: see above.
    match unsafe { record(pair.start, stream, per_thread) } {
        true => Some(Running { context, pair }),
        false => {
            give_back(context, pair);
            None
        }
    }
}

fn new() -> Option<usize> {
    let mut event = ptr::null_mut();
    // SAFETY: a place for a handle; 0 asks for an event with times.
    (unsafe { real::cuEventCreate(&raw mut event, 0) } == SUCCESS).then_some(event as usize)
}

fn give_back(context: usize, pair: Pair) {
    EVENTS
        .take()
        .free
        .get_or_insert_default()
        .entry(context)
        .or_default()
        .push(pair);
}

/// The launch has been made; `told` hears how long it took, some time.
///
/// # Safety
/// It is the stream that it was begun on.
pub unsafe fn end(running: Running, stream: Handle, per_thread: bool, told: Told) {
    let Running { context, pair } = running;
    // SAFETY: see above.
    match unsafe { record(pair.end, stream, per_thread) } {
        true => EVENTS.take().pending.push_back(Pending { context, pair, told }),
        false => give_back(context, pair),
    }
    harvest(4);
}

/// Takes the times of launches that have ended, of at most this many.
pub fn harvest(most: usize) {
    for _ in 0..most {
        let own = context();
        let pending = {
            let mut events = EVENTS.take();
            match events.pending.front() {
                Some(first) if first.context == own => events.pending.pop_front(),
                Some(_) if events.pending.len() >= MOST_PENDING => {
                    // Of a context without further launches.
                    events.pending.pop_front();
                    None
                }
                _ => None,
            }
        };
        let Some(pending) = pending else { return };
        let mut milliseconds = 0f32;
        // SAFETY: events of this context.
        let result = relaxed(|| unsafe {
            match real::cuEventQuery(pending.pair.end as Handle) {
                SUCCESS => real::cuEventElapsedTime(
                    &raw mut milliseconds,
                    pending.pair.start as Handle,
                    pending.pair.end as Handle,
                ),
                other => other,
            }
        });
        match result {
            NOT_READY => {
                EVENTS.take().pending.push_front(pending);
                return;
            }
            SUCCESS => {
                give_back(pending.context, pending.pair);
                (pending.told)((f64::from(milliseconds) * 1e6) as u64);
            }
            // The context is broken, or gone; its events with it.
            _ => {}
        }
    }
}

/// A context ends: completed launches in it are taken, the others given up.
pub fn leave(context: Handle) {
    harvest(MOST_PENDING);
    let mut events = EVENTS.take();
    events
        .pending
        .retain(|pending| pending.context != context as usize);
    if let Some(free) = events.free.as_mut() {
        free.remove(&(context as usize));
    }
}

/// A child after a fork has none of them.
pub fn forget() {
    let mut events = EVENTS.take();
    events.pending.clear();
    events.free = None;
}
