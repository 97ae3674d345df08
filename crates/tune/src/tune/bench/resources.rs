//! What a kernel takes of a core, and what can be chosen on a device beside the plan.

/// Registers are given to work-items in multiples of this.
pub(in crate::tune) const REGISTERS_AT_A_TIME: u32 = 8;

/// What a kernel takes of a core in a launch, by one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Work-groups that a core holds at once.
    pub(crate) groups_per_core: u32,
    /// Registers of a work-item.
    pub registers: u32,
    /// Bytes of a work-item that did not fit into registers.
    pub(crate) spilled_bytes: u32,
    /// Bytes of shared memory of a work-group, with what the launch asks for.
    pub shared_bytes: u64,
}

impl Held {
    /// Whether a planned kernel leaves as much room as this one; `alone` says that others than its own work-groups need it.
    pub(in crate::tune) fn is_kept_by(&self, planned: &Held, alone: bool) -> bool {
        let given = |registers: u32| registers.next_multiple_of(REGISTERS_AT_A_TIME);
        let takes_no_more =
            given(planned.registers) <= given(self.registers) && planned.shared_bytes <= self.shared_bytes;
        planned.groups_per_core >= self.groups_per_core && (takes_no_more || !alone)
    }
}

/// The settings that can be chosen beside the plan on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Sub-group sizes that a kernel can be compiled for.
    pub(crate) sub_group_sizes: Vec<u32>,
    /// The one of a kernel that asks for none.
    pub sub_group_size: u32,
    /// Threads that a core holds, if that is known.
    pub(crate) threads: Option<u32>,
    /// Cores.
    pub cores: u32,
}

/// The registers of a work-item that a kernel's code takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// 32-bit registers.
    pub registers: u32,
    /// Bytes of values that do not fit.
    pub(crate) spilled_bytes: u32,
}
