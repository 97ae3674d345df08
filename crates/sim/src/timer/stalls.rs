//! Why sub-groups wait: reasons as a profiler names them, counted for each instruction.

use super::profile::Traffic;

/// Why a resident sub-group did not issue in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StallReason {
    /// A value from global or private memory is on its way.
    LongScoreboard,
    /// A value from shared memory or the special-function unit is on its way.
    ShortScoreboard,
    /// A result of fixed latency is not there yet.
    Wait,
    /// An asynchronous copy is on its way.
    AsyncCopy,
    /// Other sub-groups have not reached the barrier.
    Barrier,
    /// The code is not in the instruction cache.
    NoInstruction,
    /// A jump is being taken.
    BranchResolving,
    /// The arithmetic unit is busy.
    MathPipeThrottle,
    /// The unit for loads and stores, or its queue, is busy.
    MemoryThrottle,
    /// Another sub-group was issued.
    NotSelected,
}

impl StallReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [StallReason; 10] = [
        StallReason::LongScoreboard,
        StallReason::ShortScoreboard,
        StallReason::Wait,
        StallReason::AsyncCopy,
        StallReason::Barrier,
        StallReason::NoInstruction,
        StallReason::BranchResolving,
        StallReason::MathPipeThrottle,
        StallReason::MemoryThrottle,
        StallReason::NotSelected,
    ];

    /// The name that NVIDIA's profilers use, or one like theirs.
    pub fn name(self) -> &'static str {
        match self {
            StallReason::LongScoreboard => "long scoreboard",
            StallReason::ShortScoreboard => "short scoreboard",
            StallReason::Wait => "wait",
            StallReason::AsyncCopy => "asynchronous copy",
            StallReason::Barrier => "barrier",
            StallReason::NoInstruction => "no instruction",
            StallReason::BranchResolving => "branch resolving",
            StallReason::MathPipeThrottle => "math pipe throttle",
            StallReason::MemoryThrottle => "memory throttle",
            StallReason::NotSelected => "not selected",
        }
    }

    /// A sub-group's activity meanwhile, in the words of reports and pages: its one name there.
    pub fn words(self) -> &'static str {
        match self {
            StallReason::LongScoreboard => "waiting for loads from global memory",
            StallReason::ShortScoreboard => "waiting for shared memory or special functions",
            StallReason::Wait => "waiting for arithmetic",
            StallReason::AsyncCopy => "waiting for asynchronous copies",
            StallReason::Barrier => "waiting at barriers",
            StallReason::NoInstruction => "waiting for instructions",
            StallReason::BranchResolving => "waiting for jumps",
            StallReason::MathPipeThrottle => "waiting for a free arithmetic unit",
            StallReason::MemoryThrottle => "waiting for the load and store unit",
            StallReason::NotSelected => "ready, while another issued",
        }
    }

    /// The name of its counter: cycles of sub-groups.
    pub(crate) fn counter(self) -> &'static str {
        match self {
            StallReason::LongScoreboard => "stalled: long scoreboard",
            StallReason::ShortScoreboard => "stalled: short scoreboard",
            StallReason::Wait => "stalled: wait",
            StallReason::AsyncCopy => "stalled: asynchronous copy",
            StallReason::Barrier => "stalled: barrier",
            StallReason::NoInstruction => "stalled: no instruction",
            StallReason::BranchResolving => "stalled: branch resolving",
            StallReason::MathPipeThrottle => "stalled: math pipe throttle",
            StallReason::MemoryThrottle => "stalled: memory throttle",
            StallReason::NotSelected => "stalled: not selected",
        }
    }
}

/// Instructions of one sub-group that are watched at most: more cannot be told apart in a picture.
pub(super) const WATCHED: usize = 4096;

/// Which sub-groups are watched, and when: the first few places of the first core that is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The first cycle.
    pub from: u64,
    /// The cycle after the last one.
    pub to: u64,
    /// How many sub-groups.
    pub sub_groups: usize,
}

/// How one sub-group came to issue an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The instruction's number in the program.
    pub instruction: usize,
    /// The cycle after its last one.
    pub since: u64,
    /// The cycle up to which it waited for `reason`; from there to `at` the unit was busy, or others were issued.
    pub held: u64,
    /// The cycle of this one.
    pub at: u64,
    /// Why it waited.
    pub reason: StallReason,
}

/// What happened at one instruction, all sub-groups together. It is written at each issue, and lies in two lines of the host's
/// memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct InstructionProfile {
    /// How often it was issued.
    pub issued: u64,
    /// For how many work-items.
    pub lanes: u64,
    /// Cycles that sub-groups waited before it, by reason.
    pub stalls: [u64; StallReason::ALL.len()],
    /// The requests of its loads and copies to the memory hierarchy.
    pub traffic: Traffic,
}
