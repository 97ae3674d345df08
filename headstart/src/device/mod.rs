//! Devices: what runs kernels, real or simulated, behind one asynchronous trait.
//!
//! A [`Device`] allocates [`Buffer`]s, turns kernels into [`Program`]s, and opens [`Queue`]s. A queue
//! takes [`Command`]s and gives an [`Event`] for each at once; the event ends with an [`Outcome`] (times,
//! counters, bytes read back) or an error, which belongs to that command alone. Commands of one queue run
//! in order; commands of several queues are ordered by the events they name.
//!
//! The traits are small and object-safe: three methods make a device, one makes a queue. What every
//! device needs alike (checking a launch, buffers with a type, a queue on a thread of its own) is here,
//! not in the devices.
//!
//! ```text
//! Device ── allocate(element, length, fill) ─→ Buffer ─┐
//!        ── compile(kernel) ────────────────→ Program ─┤
//!        ── queue() ─→ Queue ── submit(Command, after) ┴─→ Event ── wait() ─→ Outcome | Error
//! ```

mod buffer;
mod counters;
pub mod cuda;
mod event;
mod launch;
mod library;
pub mod model;
pub mod opencl;
mod pattern;
mod queue;
pub mod sim;
mod typed;
mod view;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::ir::{Kernel, Type};
use crate::{Error, Result};

pub use buffer::{Buffer, Fill};
pub use counters::Counters;
pub use event::{Completion, Event, Outcome, Times};
pub use launch::{Argument, ArgumentFacts, Launch};
pub use library::{Cache, Library, Programs};
pub use pattern::{Pattern, splitmix64};
pub use queue::{OutOfOrder, WorkerQueue};
pub use typed::{Element, Item, TypedBuffer};
pub use view::{AsView, BufferView, BufferViewMut};

/// A device that runs kernels.
pub trait Device: Send + Sync {
    /// What it is and what it can hold.
    fn description(&self) -> &Description;

    /// Allocates `length` elements and fills them. A pattern is generated on the device, and costs no
    /// memory where it is never written (the simulator).
    ///
    /// # Errors
    /// The device is out of memory, or `fill` holds another number of bytes than asked for.
    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer>;

    /// Makes a kernel ready to launch.
    ///
    /// # Errors
    /// The device cannot run this kernel, and why.
    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program>;

    /// Opens a queue.
    ///
    /// # Errors
    /// The driver refuses.
    fn queue(&self) -> Result<Box<dyn Queue>>;
}

/// Takes commands and runs them in order, while the caller goes on.
pub trait Queue: Send {
    /// Adds a command, to start when the earlier commands of this queue and all of `after` have ended.
    /// Returns at once. Whatever goes wrong with the command is reported by its event. A command whose
    /// `after` failed does not run and fails with the same error.
    fn submit(&self, command: Command, after: &[Event]) -> Event;
}

/// What a queue can be asked to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Runs a program.
    Launch(Program, Launch),
    /// Writes bytes into a buffer, from a byte offset on.
    Write {
        /// Into this.
        buffer: Buffer,
        /// First byte.
        offset: u64,
        /// What is written.
        bytes: Arc<[u8]>,
    },
    /// Reads bytes of a buffer into [`Outcome::bytes`].
    Read {
        /// From this.
        buffer: Buffer,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
}

/// What a device is and what it can hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// As the command line spells it: `sim:h200`, `cuda:0`.
    pub name: String,
    /// As people call it: `NVIDIA H200`.
    pub title: String,
    /// Cores (SMs, Xe-cores).
    pub cores: u32,
    /// Most work-items in a work-group.
    pub max_group_size: u32,
    /// Most work-items of a work-group along each dimension.
    pub max_group_dimensions: [u32; 3],
    /// Sub-group sizes that a kernel may require, ascending.
    pub sub_group_sizes: Vec<u32>,
    /// The sub-group size of a kernel that requires none.
    pub default_sub_group_size: u32,
    /// Most bytes of shared memory in a work-group.
    pub max_shared_bytes: u64,
    /// Bytes of device memory.
    pub memory_bytes: u64,
}

/// A kernel, ready to launch on the device that made it.
#[derive(Clone)]
pub struct Program {
    kernel: Arc<Kernel>,
    implementation: Arc<dyn Any + Send + Sync>,
}

impl Program {
    /// Wraps what a device made of a kernel.
    pub fn new(kernel: Arc<Kernel>, implementation: impl Any + Send + Sync) -> Program {
        Program {
            kernel,
            implementation: Arc::new(implementation),
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// What the device made of it.
    ///
    /// # Errors
    /// Another device made it.
    pub fn implementation<T: Any + Send + Sync>(&self) -> Result<Arc<T>> {
        let implementation = Arc::clone(&self.implementation);
        implementation
            .downcast()
            .map_err(|_| Error::usage(format!("`{}` was compiled for another device", self.kernel.name)))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("kernel", &self.kernel.name)
            .finish_non_exhaustive()
    }
}
