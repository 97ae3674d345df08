//! How a kernel is run: which checks, which limits, and what a device allows.

use crate::Stop;
use crate::model::{DeviceModel, Vendor};

/// The engine's checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Everything.
    Checking,
    /// Accesses out of bounds or misaligned, and endless loops.
    Fast,
}

/// Which prefetches must stay in bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchBounds {
    /// None: on NVIDIA's devices a prefetch out of bounds has no effect.
    Free,
    /// Those to L1, which fault on Intel's devices.
    L1,
    /// All.
    All,
}

/// How a kernel is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The checks.
    pub mode: Mode,
    /// Which prefetches out of bounds are errors.
    pub prefetch_bounds: PrefetchBounds,
    /// Operations of one sub-group before it counts as an endless loop, unless the launch has a limit.
    pub operation_limit: u64,
    /// The most bytes for one work-group: private and shared memory, registers, and the records of the checks.
    pub group_memory_limit: u64,
    /// Work-groups that are resident at once, and so may wait for each other.
    pub resident_groups: u64,
    /// Whether a barrier does not wait for work-items that have ended. So it is on NVIDIA's GPUs since Volta. In OpenCL a
    /// barrier that not all work-items of a work-group reach is undefined.
    pub ended_may_miss_barriers: bool,
    /// What ends a run early.
    pub stop: Option<&'static Stop>,
    /// Whether that it is late ends it, too.
    pub may_be_given_up: bool,
}

impl Options {
    /// All checks.
    pub const CHECKING: Options = Options {
        mode: Mode::Checking,
        prefetch_bounds: PrefetchBounds::L1,
        operation_limit: 1 << 30,
        group_memory_limit: 1 << 30,
        resident_groups: u64::MAX,
        ended_may_miss_barriers: true,
        stop: None,
        may_be_given_up: false,
    };

    /// Checks for errors on an OpenCL device of any vendor.
    pub const CHECKING_OPENCL: Options = Options {
        ended_may_miss_barriers: false,
        ..Options::CHECKING
    };

    /// Checks for errors on a device: on NVIDIA's a prefetch out of bounds has no effect, and a barrier does not wait for
    /// work-items that have ended.
    pub fn checking(model: &DeviceModel) -> Options {
        match model.vendor {
            Vendor::Nvidia => Options {
                prefetch_bounds: PrefetchBounds::Free,
                ..Options::CHECKING
            },
            Vendor::Intel => Options::CHECKING_OPENCL,
        }
    }

    /// As fast as possible.
    pub const FAST: Options = Options {
        mode: Mode::Fast,
        ..Options::CHECKING
    };
}
