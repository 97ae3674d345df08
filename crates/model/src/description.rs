//! The description of a device and its limits: launches are checked against it, for models and for drivers' devices alike.

use crate::ir::Kernel;
use crate::ir::limits::EXCHANGING_ITEMS;

/// A device's properties and limits.
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

impl Description {
    /// The sub-group size of a kernel if the launch requires none: the kernel's own, or else the default. A kernel that
    /// exchanges values takes the largest size up to [`EXCHANGING_ITEMS`] if the default is larger.
    pub fn sub_group_size(&self, kernel: &Kernel) -> u32 {
        let default = self.default_sub_group_size;
        kernel.sub_group_size.unwrap_or_else(|| {
            if default <= EXCHANGING_ITEMS || !exchanges(kernel) {
                return default;
            }
            let narrow = self.sub_group_sizes.iter().copied();
            let narrow = narrow.filter(|&size| size <= EXCHANGING_ITEMS).max();
            narrow.unwrap_or(default)
        })
    }
}

/// Whether work-items of a sub-group run some of its operations together.
fn exchanges(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel
        .body
        .walk(&mut |op| found |= op.kind.effects().meets_sub_group());
    found
}
