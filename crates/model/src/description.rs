//! The description of a device and its limits: launches are checked against it, for models and for drivers' devices alike.

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
