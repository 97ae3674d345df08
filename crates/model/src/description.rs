//! The description of a device and its limits: launches are checked against it, for models and for drivers' devices alike.

use crate::ir::limits::EXCHANGING_ITEMS;
use crate::ir::{Kernel, Place};
use crate::{Error, Result};

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
    /// Work-items of the largest sub-group that has block loads and stores.
    pub most_block_items: u32,
    /// Most bytes of shared memory in a work-group.
    pub max_shared_bytes: u64,
    /// Bytes of device memory.
    pub memory_bytes: u64,
}

impl Description {
    /// The sub-group size of a kernel if the launch requires none: the kernel's own, or else the default. If that is too large for a
    /// kernel, it takes the largest that is not: [`EXCHANGING_ITEMS`] for one that exchanges values, and what has blocks for one with
    /// block loads or stores.
    pub fn sub_group_size(&self, kernel: &Kernel) -> u32 {
        let default = self.default_sub_group_size;
        kernel.sub_group_size.unwrap_or_else(|| {
            let mut most = u32::MAX;
            if default > EXCHANGING_ITEMS && exchanges(kernel) {
                most = EXCHANGING_ITEMS;
            }
            if default > self.most_block_items && first_block(kernel).is_some() {
                most = most.min(self.most_block_items);
            }
            let narrow = self.sub_group_sizes.iter().copied();
            let narrow = narrow.filter(|&size| size <= most).max();
            if default <= most {
                default
            } else {
                narrow.unwrap_or(default)
            }
        })
    }

    /// Refuses a kernel whose blocks sub-groups of this size are too large for. Where sub-groups are not full each work-item makes
    /// its own accesses, and any size will do.
    ///
    /// # Errors
    /// It is one.
    pub fn check_blocks(&self, kernel: &Kernel, group: u64, sub_group: u32) -> Result<()> {
        let most = self.most_block_items;
        if sub_group <= most || !group.is_multiple_of(u64::from(sub_group)) {
            return Ok(());
        }
        match first_block(kernel) {
            None => Ok(()),
            Some(place) => Err(too_wide_for_blocks(kernel, place, sub_group, most)),
        }
    }
}

/// The refusal of a block load or store in sub-groups of `sub_group` work-items, where there are blocks for `most`.
#[doc(hidden)]
pub fn too_wide_for_blocks(kernel: &Kernel, place: Place, sub_group: u32, most: u32) -> Error {
    Error::device(format!(
        "`{}` loads or stores blocks with sub-groups of {sub_group} work-items; this GPU has blocks for {most} and fewer",
        kernel.name
    ))
    .at(kernel.describe_place(place))
    .accepted(format!(
        "`sub_group = {most}`; or, for any sub-group, an access of each work-item: `values[i]`"
    ))
}

/// The first load or store that a sub-group makes as a block.
fn first_block(kernel: &Kernel) -> Option<Place> {
    let mut first = None;
    kernel.body.walk(&mut |op| {
        if op.kind.is_block() && first.is_none() {
            first = Some(op.place);
        }
    });
    first
}

/// Whether work-items of a sub-group run some of its operations together.
fn exchanges(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel
        .body
        .walk(&mut |op| found |= op.kind.effects().meets_sub_group());
    found
}
