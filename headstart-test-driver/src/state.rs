//! What is one of a kind: the device, its clock, contexts, streams, events, and the error that sticks.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use headstart::device::model::DeviceModel;
use headstart::device::sim::Simulator;
use headstart::device::{Command, Device, Outcome, Queue};

use crate::abi::{CUresult, Handle, SUCCESS};
use crate::memory::Memory;

/// The driver.
pub struct State {
    /// The simulated device.
    pub device: Simulator,
    /// What of a kernel fits into its cores: the model's, which is an H200's where none gives the times.
    pub model: Arc<DeviceModel>,
    queue: Box<dyn Queue + Send>,
    /// Allocations.
    pub memory: Memory,
    /// What a kernel did wrong; from then on everything fails.
    pub failed: Option<CUresult>,
    /// The device's time, in nanoseconds, where it is simulated.
    simulated_ns: Option<f64>,
    started: Instant,
}

/// Says something on standard error: a program that goes wrong says no more than a number.
pub fn say(what: impl std::fmt::Display) {
    eprintln!("headstart test driver: {what}");
}

/// The driver, for one thread at a time.
pub fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    let state = STATE.get_or_init(|| {
        let named = std::env::var("HEADSTART_TEST_MODEL").ok();
        let model = named.and_then(|name| match headstart::device::model::built_in(&name, &[]) {
            Ok(model) => Some(model),
            Err(error) => {
                say(error);
                None
            }
        });
        let is_timed = model.is_some();
        let of_cores = match &model {
            Some(model) => model.clone(),
            None => headstart::device::model::built_in("h200", &[]).unwrap_or_else(|error| panic!("{error}")),
        };
        let device = model.map_or_else(Simulator::untimed, Simulator::of);
        let queue = device.queue().unwrap_or_else(|error| panic!("{error}"));
        Mutex::new(State {
            queue: Box::new(Kept(queue)),
            device,
            model: Arc::new(of_cores),
            memory: Memory::default(),
            failed: None,
            simulated_ns: is_timed.then_some(0.0),
            started: Instant::now(),
        })
    });
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A queue that one thread at a time uses.
struct Kept(Box<dyn Queue>);

// SAFETY: it is behind the state's lock; the data passed to its thread may be sent there.
unsafe impl Send for Kept {}

impl Queue for Kept {
    fn submit(&self, command: Command, after: &[headstart::device::Event]) -> headstart::device::Event {
        self.0.submit(command, after)
    }
}

impl State {
    /// Runs a command to its end.
    ///
    /// # Errors
    /// The simulator's.
    pub fn run(&mut self, command: Command) -> headstart::Result<std::sync::Arc<Outcome>> {
        let outcome = self.queue.submit(command, &[]).wait()?;
        if let Some(now) = &mut self.simulated_ns {
            *now += outcome.times.ended_ns - outcome.times.started_ns;
        }
        Ok(outcome)
    }

    /// The device's time, in nanoseconds.
    pub fn now_ns(&self) -> f64 {
        self.simulated_ns
            .unwrap_or_else(|| self.started.elapsed().as_nanos() as f64)
    }

    /// The error that sticks, or success.
    pub fn result(&self) -> CUresult {
        self.failed.unwrap_or(SUCCESS)
    }
}

thread_local! {
    /// The contexts of this thread, the current one last. It is never freed: a program may ask while its thread ends.
    static CONTEXTS: Cell<*mut Vec<usize>> = const { Cell::new(std::ptr::null_mut()) };
}

fn with_contexts<T>(use_them: impl FnOnce(&mut Vec<usize>) -> T) -> T {
    CONTEXTS.with(|all| {
        if all.get().is_null() {
            all.set(Box::into_raw(Box::default()));
        }
        // SAFETY: it is this thread's alone, and nothing that is called here asks for it again.
        use_them(unsafe { &mut *all.get() })
    })
}

/// The context that all programs share; it is distinguished from others by its address alone.
pub fn primary() -> Handle {
    static PRIMARY: u64 = 0x6865_6164;
    (&raw const PRIMARY).cast::<c_void>().cast_mut()
}

/// A new handle that nothing else has.
pub fn handle() -> Handle {
    Box::into_raw(Box::new(0u64)).cast()
}

/// This thread's context; null if there is none.
pub fn current() -> Handle {
    with_contexts(|all| all.last().copied().unwrap_or(0) as Handle)
}

/// Makes a context this thread's, in place of the current one.
pub fn set_current(context: Handle) {
    with_contexts(|all| {
        all.pop();
        if !context.is_null() {
            all.push(context as usize);
        }
    });
}

/// Makes a context current; the one before comes back afterwards.
pub fn push(context: Handle) {
    with_contexts(|all| all.push(context as usize));
}

/// Takes the current context away.
pub fn pop() -> Handle {
    with_contexts(|all| all.pop().unwrap_or(0) as Handle)
}
