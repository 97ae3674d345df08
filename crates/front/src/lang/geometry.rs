//! How many work-items a kernel is run for: by a device, or by the reference on the CPU.

use crate::ir::CacheLevel;
use crate::ir::line::PrintLimits;

/// The number of work-items, and their groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Work-groups along each dimension; dimension 0 varies fastest.
    pub groups: [u32; 3],
    /// Work-items of a work-group along each dimension.
    pub group: [u32; 3],
    /// The required sub-group size. Without one it is the kernel's, or else the device's.
    pub sub_group_size: Option<u32>,
    /// The level of prefetches that name none.
    pub default_level: CacheLevel,
    /// The capacity for the kernel's printed text. Devices other than the simulator have limits of their own.
    pub print_limits: PrintLimits,
}

impl Geometry {
    /// `groups` work-groups of `group` work-items along one dimension.
    pub const fn new(groups: u32, group: u32) -> Geometry {
        Geometry {
            groups: [groups, 1, 1],
            group: [group, 1, 1],
            sub_group_size: None,
            default_level: CacheLevel::L1,
            print_limits: PrintLimits::USUAL,
        }
    }

    /// With this capacity for the kernel's printed text, as in SYCL's `stream(buffer_bytes, line_bytes, …)`: bytes of all
    /// lines, and of one. A line that is too long is truncated, and one that no longer fits is dropped.
    #[must_use]
    pub const fn print_limits(self, buffer_bytes: usize, line_bytes: usize) -> Geometry {
        let print_limits = PrintLimits {
            buffer_bytes,
            line_bytes,
        };
        Geometry { print_limits, ..self }
    }

    /// With prefetches without a level going to this one; the default is L1.
    #[must_use]
    pub const fn default_level(self, level: CacheLevel) -> Geometry {
        Geometry {
            default_level: level,
            ..self
        }
    }

    /// With sub-groups of this size.
    #[must_use]
    pub const fn sub_group_size(self, size: u32) -> Geometry {
        Geometry {
            sub_group_size: Some(size),
            ..self
        }
    }
}
