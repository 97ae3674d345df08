//! Occupancy: how many work-groups of a launch fit into a core at once, and which resource says so.
//!
//! NVIDIA and Intel allot their cores by different rules, so each has its own calculator
//! (`nvidia`, `intel`); both take a [`Footprint`] and give an [`Occupancy`]. Nothing here asks
//! whether more occupancy would help: that is the advisor's business.

use std::fmt;

use serde::Serialize;

pub(crate) mod intel;
pub(crate) mod nvidia;

/// The resources of one work-group of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Footprint {
    /// Work-items of a work-group, all dimensions multiplied.
    pub group: u32,
    /// Work-items of a sub-group.
    pub sub_group: u32,
    /// 32-bit registers of a work-item.
    pub registers: u32,
    /// Bytes of shared memory of a work-group.
    pub shared: u32,
    /// Whether the kernel has a work-group barrier. Only Intel's rules ask.
    pub barrier: bool,
    /// Whether threads get twice the registers (Intel's large register file).
    pub large_register_file: bool,
}

impl Footprint {
    /// Work-groups of `group` work-items in sub-groups of `sub_group`, which need nothing else.
    pub fn new(group: u32, sub_group: u32) -> Footprint {
        Footprint {
            group,
            sub_group,
            registers: 0,
            shared: 0,
            barrier: false,
            large_register_file: false,
        }
    }

    /// Sub-groups of a work-group; the last one may be partial.
    pub fn sub_groups(&self) -> u32 {
        self.group.div_ceil(self.sub_group.max(1))
    }
}

/// A resource that stops a further work-group from becoming resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The work-group is larger than the device launches.
    GroupSize,
    /// Places for sub-groups: warps on NVIDIA, thread contexts on Intel.
    SubGroups,
    /// The register file.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// The number of work-groups that a core keeps track of.
    WorkGroups,
    /// The number of work-groups with a barrier that a core keeps track of.
    Barriers,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::GroupSize => "work-group size",
            Limit::SubGroups => "sub-groups",
            Limit::Registers => "registers",
            Limit::SharedMemory => "shared memory",
            Limit::WorkGroups => "work-groups",
            Limit::Barriers => "barriers",
        })
    }
}

/// How much of a core a launch can occupy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    /// Whole work-groups resident in a core at once; 0 if the launch is impossible.
    pub groups_per_core: u32,
    /// Sub-groups of one work-group.
    pub sub_groups_per_group: u32,
    /// Sub-groups resident in a core at once.
    pub sub_groups_per_core: u32,
    /// `sub_groups_per_core` over the places for sub-groups that the core has, from 0 to 1.
    pub occupancy: f64,
    /// The resources that would be exceeded by one more work-group, in the order of [`Limit`].
    #[serde(rename = "limit")]
    pub limits: Vec<Limit>,
    /// 32-bit registers allotted to a work-group; 0 where registers are not shared out.
    pub registers_per_group: u32,
    /// Bytes of shared memory allotted to a work-group, rounding and reserve included.
    pub shared_per_group: u32,
}

impl Occupancy {
    /// The binding resources in words: `registers`, `sub-groups and registers`.
    pub fn limit(&self) -> String {
        let names: Vec<String> = self.limits.iter().map(Limit::to_string).collect();
        names.join(" and ")
    }
}

/// The least of several bounds on the number of work-groups, and which of them reach it.
fn least(bounds: &[(Limit, u32)]) -> (u32, Vec<Limit>) {
    let groups = bounds.iter().map(|&(_, groups)| groups).min().unwrap_or(0);
    let limits = bounds
        .iter()
        .filter(|bound| bound.1 == groups)
        .map(|bound| bound.0)
        .collect();
    (groups, limits)
}
