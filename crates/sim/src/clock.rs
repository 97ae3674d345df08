//! The clock of a simulated device: how long launches and copies take. Without one the device runs kernels and takes no time.

use std::any::Any;
use std::sync::Arc;

use crate::Result;
use crate::device::{Counters, Launch};
use crate::ir::Kernel;
use crate::model::CopyDirection;
use crate::model::hint::HintReached;

/// Tells how long launches take on a simulated device.
pub trait Clock: Send + Sync {
    /// Prepares a verified kernel; the result comes back with each launch.
    ///
    /// # Errors
    /// The device cannot run the kernel, and why.
    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Arc<dyn Any + Send + Sync>>;

    /// How long a launch takes on a stack of the card. It may write to the launch's buffers: they are copies. The launch has been
    /// checked, and has run to its end functionally.
    ///
    /// # Errors
    /// The device cannot run the launch, and why.
    fn time(
        &self,
        kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
        stack: u32,
    ) -> Result<Timing>;

    /// How many work-groups of a launch the device has resident at once, where that is known.
    fn resident_groups(
        &self,
        kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
    ) -> Option<u64> {
        let _ = (kernel, compiled, launch);
        None
    }

    /// How long a copy of this many bytes takes, in nanoseconds.
    fn copy_ns(&self, bytes: u64, direction: CopyDirection) -> f64 {
        let _ = (bytes, direction);
        0.0
    }

    /// Bytes of the pages in which shared allocations move; none where they do not.
    fn shared_page(&self) -> Option<u64> {
        None
    }

    /// The time that the host waits for this many of them, one after the other, in nanoseconds.
    fn shared_pages_ns(&self, pages: u64) -> f64 {
        let _ = pages;
        0.0
    }

    /// The effect of each prefetch of a kernel.
    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        let _ = kernel;
        Vec::new()
    }
}

/// The time of a launch, and its counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// From start to end, in nanoseconds.
    pub elapsed_ns: f64,
    /// The timer's counters.
    pub counters: Counters,
    /// Warnings for the kernel's author.
    pub(crate) notes: Vec<String>,
}
