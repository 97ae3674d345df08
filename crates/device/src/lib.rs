//! Devices, real or simulated, behind one asynchronous trait.
//!
//! A [`Device`] allocates [`Buffer`]s, turns kernels into [`Program`]s, and opens [`Queue`]s. A queue
//! takes [`Command`]s and gives an [`Event`] for each at once; the event ends with an [`Outcome`] (times,
//! counters, bytes read back) or an error, which belongs to that command alone. Commands of one queue run
//! in order; commands of several queues are ordered by the events they name.
//!
//! The traits are small and object-safe: a device needs four methods, a queue one; the others are optional. The parts that
//! every device needs (checking a launch, typed buffers, a queue on a thread of its own) are here, not in the devices.
//!
//! ```text
//! Device ── allocate(element, length, fill) ─→ Buffer ─┐
//!        ── compile(kernel) ────────────────→ Program ─┤
//!        ── queue() ─→ Queue ── submit(Command, after) ┴─→ Event ── wait() ─→ Outcome | Error
//! ```
//!
//! | a SYCL or CUDA programmer looks for | here |
//! |---|---|
//! | device, host (pinned) and shared (managed) allocations | [`Device::allocate_as`], [`Allocation`], [`TypedBuffer::get`] |
//! | copies that overlap kernels | [`Command::Copy`] in a queue of its own, [`TypedBuffer::copy_to`] |
//! | times of events | [`Times`]: submitted, started, ended, on one clock for all queues of a device |
//! | queues out of order | [`OutOfOrder`] |
//! | an asynchronous error handler, `wait_and_throw` | [`Telling`] |
//! | sub-devices | [`Device::sub_devices`] |
//! | one job on several devices | `Split` |
//! | compiled once, and ahead of time | [`Cache`], [`Library`], [`Bundle`] |

mod buffer;
mod bundle;
mod cache_state;
mod counters;
#[doc(hidden)]
pub mod event;
mod image;
mod launch;
mod library;
mod pattern;
mod queue;
mod timing;
mod typed;
mod view;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use headstart_ir::{Error, Result, analysis, files, ir, random, suggest};

use crate::ir::{Kernel, Type};

pub use headstart_ir::ir::{Element, Item};
pub use headstart_ir::random::splitmix64;
pub use headstart_model::{self as model, Description};

pub use buffer::{Allocation, Buffer, Fill, HostSide};
pub use bundle::Bundle;
pub use cache_state::CacheState;
pub use counters::Counters;
pub use event::{Completion, Event, Outcome, Times};
pub use image::{Image, Images};
pub use launch::{Argument, Launch, Piece};
pub use library::{Cache, Library, Programs};
pub use pattern::Pattern;
#[doc(hidden)]
pub use queue::host_bytes;
pub use queue::{OutOfOrder, Submitted, Telling, WorkerQueue};
pub use timing::{Paired, Timing};
pub use typed::TypedBuffer;
pub use view::{AsView, BufferView, BufferViewMut};

/// A device that runs kernels.
pub trait Device: Send + Sync {
    /// The device's properties and limits.
    fn description(&self) -> &Description;

    /// Allocates `length` elements and fills them. A pattern is generated on the device, and costs no
    /// memory where it is never written (the simulator).
    ///
    /// # Errors
    /// The device is out of memory, or `fill` holds another number of bytes than asked for.
    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer>;

    /// As [`Device::allocate`], of another kind. Without an implementation of its own a device has memory of its own
    /// alone.
    ///
    /// # Errors
    /// As those of [`Device::allocate`]; the device has no such memory.
    fn allocate_as(&self, allocation: Allocation, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        match allocation {
            Allocation::Device => self.allocate(element, length, fill),
            other => Err(Error::device(format!(
                "{} has no {} allocations",
                self.description().name,
                other.name()
            ))
            .accepted("device allocations")),
        }
    }

    /// The parts of the device that are devices themselves: stacks of a card, nodes of a machine. Each has queues and
    /// memory of its own, and reaches the others' memory, so that their buffers can be passed to each of them. Empty if
    /// it has none.
    ///
    /// # Errors
    /// The driver refuses.
    fn sub_devices(&self) -> Result<Vec<Box<dyn Device>>> {
        Ok(Vec::new())
    }

    /// Makes a kernel ready to launch.
    ///
    /// # Errors
    /// The device cannot run this kernel, and why.
    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program>;

    /// Machine code that [`Device::load`] takes in place of a compilation, for a file. None if the device compiles
    /// nothing that is worth keeping.
    ///
    /// # Errors
    /// The program is another device's, or the driver refuses.
    fn image(&self, program: &Program) -> Result<Option<Image>> {
        let _ = program;
        Ok(None)
    }

    /// As [`Device::compile`], with images of kernels from any devices: one of the same kernel, by this version, for such a
    /// device and driver, is used. Without one the kernel is compiled.
    ///
    /// # Errors
    /// As those of [`Device::compile`].
    fn load(&self, kernel: &Arc<Kernel>, images: &Images) -> Result<Program> {
        let _ = images;
        self.compile(kernel)
    }

    /// Opens a queue.
    ///
    /// # Errors
    /// The driver refuses.
    fn queue(&self) -> Result<Box<dyn Queue>>;
}

/// Takes commands and runs them in order, while the caller goes on.
pub trait Queue: Send {
    /// Adds a command, to start when the earlier commands of this queue and all of `after` have ended. Returns at once. The
    /// event reports any failure of the command. A command whose `after` failed does not run and fails with the same error.
    fn submit(&self, command: Command, after: &[Event]) -> Event;
}

/// The commands of a queue.
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
        /// The bytes to write.
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
    /// Copies bytes from a buffer to another, or to other bytes of the same. Copies from and to host allocations overlap
    /// kernels.
    Copy {
        /// From this.
        from: Buffer,
        /// First byte that is read.
        from_offset: u64,
        /// Into this.
        to: Buffer,
        /// First byte that is written.
        to_offset: u64,
        /// Number of bytes.
        length: u64,
    },
}

/// Checks the ranges of a copy: inside, and apart.
#[doc(hidden)]
pub fn check_copy(from: &Buffer, from_offset: u64, to: &Buffer, to_offset: u64, length: u64) -> Result<()> {
    from.check_range(from_offset, length)?;
    to.check_range(to_offset, length)?;
    if from.is_same(to) && from_offset.abs_diff(to_offset) < length {
        return Err(
            Error::usage("a copy inside a buffer overlaps itself").accepted("two ranges that are apart")
        );
    }
    Ok(())
}

/// A kernel, ready to launch on the device that made it.
#[derive(Clone)]
pub struct Program {
    kernel: Arc<Kernel>,
    implementation: Arc<dyn Any + Send + Sync>,
}

impl Program {
    /// Wraps a device's compiled kernel.
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

    /// The device's compiled kernel.
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

/// Runs nothing: libraries and bundles need a device that takes kernels.
#[cfg(test)]
pub(crate) mod idle {
    use headstart_ir::Error;

    use super::*;

    pub(crate) struct Idle(Description);

    impl Idle {
        pub(crate) fn new() -> Idle {
            let model = headstart_model::built_in("h200", &[]).expect("built in");
            Idle(model.description())
        }
    }

    impl Device for Idle {
        fn description(&self) -> &Description {
            &self.0
        }

        fn allocate(&self, _: Type, _: u64, _: Fill) -> Result<Buffer> {
            Err(Error::device("no memory"))
        }

        fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
            Ok(Program::new(Arc::clone(kernel), ()))
        }

        fn queue(&self) -> Result<Box<dyn Queue>> {
            Err(Error::device("no queue"))
        }
    }
}
