//! A core: schedulers, units, resident work-groups.
//!
//! Each scheduler issues at most one instruction per cycle, and none while it reads the operands of the last. The policy is
//! greedy-then-oldest across work-groups, and least recently issued within one. (An H200 does the same: of 16 sub-groups of a
//! scheduler that run a chain of multiplications, those of four work-groups of four end after 113 to 117, 220 to 224, 328 to
//! 333 and 438 to 439 cycles a turn. Loops of jumps with eight or twelve multiplications, of 3 to 8 sub-groups of one
//! work-group, take as long as by this rule, within 3 %. If the lowest number always came first, they would take up to 11 %
//! longer; without the greedy rule, up to 19 % less.)
//!
//! The unit for loads and stores, which all schedulers share, has a queue: who waited for it longest is issued first. (On an
//! H200 the work-groups of a core that share a saturated memory end within 1 % of each other; oldest first, they would not.)
//! Nothing happens between issues, so time jumps from one to the next.

mod issue;
mod places;

use std::collections::VecDeque;

use super::balance::Balance;
use super::code::Code;
use super::cost::Pipe;
use super::fetch::Fetch;
use super::stalls::{InstructionProfile, Issue, StallReason, Watch};
use super::standstill::Noted;
use super::sub_group::Resident;
use crate::Result;
use crate::functional::{LaunchState, WorkGroup};
use crate::memory::MemorySystem;
use crate::model::DeviceModel;

/// The most cycles that the unit for loads and stores can be behind before nothing more is issued to it. Its queue takes several
/// instructions, but not many: memory reserves resources in the order of issue.
const MEMORY_QUEUE: f64 = 128.0;

/// Machine instructions that an operation of the engine may take: a sub-group that ends within the engine's limit on operations
/// ends within this many times as many instructions.
const PER_OPERATION: u64 = 8;

/// Where a core's work-groups come from.
pub(super) trait Groups {
    /// The next one for a core, if there are any left.
    fn next(&mut self, core: usize) -> Option<u64>;
}

/// What the simulated cores share.
pub(super) struct Shared<G> {
    pub memory: MemorySystem,
    pub groups: G,
    /// What happened at each instruction, on all cores together. One profile stays in the host's caches; one for each core would
    /// not if the code is large.
    pub profile: Vec<InstructionProfile>,
}

impl<G> Shared<G> {
    /// Nothing has happened yet.
    pub(super) fn new(code: &Code, memory: MemorySystem, groups: G) -> Shared<G> {
        Shared {
            memory,
            groups,
            profile: vec![InstructionProfile::default(); code.instructions.len()],
        }
    }
}

/// A core.
pub(super) struct Core<'l> {
    number: usize,
    code: &'l Code,
    state: &'l LaunchState<'l>,
    pub(super) groups: Vec<ResidentGroup<'l>>,
    pub(super) sub_groups: Vec<Resident>,
    /// Each one's requirement for its next issue.
    ready: Vec<Ready>,
    per_group: usize,
    schedulers: Vec<Scheduler>,
    /// When each scheduler next has something to do.
    next: Vec<u64>,
    memory_pipe: f64,
    /// Sub-groups that wait for the unit for loads and stores, in order of arrival. They are issued in this order, whichever
    /// scheduler they belong to.
    memory_turns: VecDeque<usize>,
    fetch: Fetch,
    barrier_latency: u64,
    /// Cycles from the start of a work-group here to that of the next, at least, and when the next can start.
    start_interval: f64,
    next_start: f64,
    /// Whether a load that misses L1 completes after the copies that the sub-group started before it.
    copies_come_first: bool,
    /// The number of stacks that share the launch.
    stacks: u64,
    /// Cycles, summed over sub-groups, in which they were resident.
    pub resident_cycles: u64,
    /// When each work-group ended.
    pub ended: Vec<u64>,
    /// The number of instructions that each of them issued.
    pub work: Vec<u64>,
    /// How long each of them and each sub-group was there.
    pub balance: Balance,
    /// By place, when the last sub-group there ended, and how many instructions it issued.
    pub last: Vec<(u64, u64)>,
    /// Instructions issued so far.
    pub issued: u64,
    /// Start and end of each work-group in the first place.
    pub lives: Vec<(u64, u64)>,
    watch: Option<Watch>,
    /// The issues of the watched sub-groups, by their place.
    pub watched: Vec<Vec<Issue>>,
    /// A sub-group that issues more instructions than this counts as running an endless loop.
    limit: u64,
    /// Barriers that work-groups have passed.
    pub(super) passed: u64,
    /// Positions of sub-groups, while it is asked whether any of them gets on.
    pub(super) noted: Vec<Option<Noted>>,
}

pub(super) struct ResidentGroup<'l> {
    pub(super) work_group: WorkGroup<'l>,
    started: u64,
    /// The number of instructions that it issued.
    issued: u64,
    /// The stack that it belongs to.
    stack: u64,
    /// Sub-groups that have not ended.
    pub(super) alive: u32,
    at_barrier: u32,
}

struct Scheduler {
    /// Its sub-groups: the oldest work-group first, and within a work-group the least recently issued first.
    members: Vec<usize>,
    last: usize,
    /// Consecutive instructions that it has issued of that one.
    in_turn: u32,
    pipes: [f64; Pipe::COUNT],
    /// When the operands of the last issued instruction have been read.
    read: f64,
}

impl Scheduler {
    /// Moves a sub-group that issues now behind the others of its work-group.
    fn put_last_of_its_group(&mut self, member: usize, per_group: usize) {
        let Some(at) = self.members.iter().position(|&other| other == member) else {
            return;
        };
        // Sub-groups of a work-group are adjacent.
        let is_of_group = |other: &&usize| **other / per_group == member / per_group;
        let behind = self.members[at + 1..].iter().take_while(is_of_group).count();
        self.members[at..=at + behind].rotate_left(1);
    }
}

/// When a sub-group's next instruction can issue, as far as it depends on the sub-group alone, and to which unit. These lie next
/// to each other because the schedulers look at many.
#[derive(Clone, Copy)]
struct Ready {
    at: u64,
    pipe: Pipe,
}

impl Ready {
    /// The sub-group waits for others, or has ended.
    const NEVER: Ready = Ready {
        at: NEVER,
        pipe: Pipe::Control,
    };
}

const NEVER: u64 = u64::MAX;

impl<'l> Core<'l> {
    /// A core with its first work-groups.
    pub(super) fn new(
        number: usize,
        code: &'l Code,
        state: &'l LaunchState<'l>,
        model: &DeviceModel,
        places: u32,
        start_interval: f64,
        shared: &mut Shared<impl Groups>,
    ) -> Result<Core<'l>> {
        let per_group = state.sub_groups() as usize;
        let scheduler = |_| Scheduler {
            members: Vec::new(),
            last: 0,
            in_turn: 0,
            pipes: [0.0; Pipe::COUNT],
            read: 0.0,
        };
        let mut core = Core {
            number,
            code,
            state,
            groups: Vec::new(),
            sub_groups: Vec::new(),
            ready: Vec::new(),
            per_group,
            schedulers: (0..*model.core.schedulers).map(scheduler).collect(),
            next: vec![NEVER; *model.core.schedulers as usize],
            memory_pipe: 0.0,
            memory_turns: VecDeque::new(),
            fetch: Fetch::new(model, code.program.code_bytes),
            barrier_latency: u64::from(*model.instructions.barrier.latency),
            start_interval,
            next_start: 0.0,
            stacks: u64::from(*model.core.stacks),
            copies_come_first: model.l1.as_ref().is_some_and(|l1| l1.copies_come_first.value),
            resident_cycles: 0,
            ended: Vec::new(),
            work: Vec::new(),
            balance: Balance::default(),
            last: Vec::new(),
            issued: 0,
            lives: Vec::new(),
            watch: None,
            watched: Vec::new(),
            limit: state.operation_limit().saturating_mul(PER_OPERATION),
            passed: 0,
            noted: Vec::new(),
        };
        for _ in 0..places {
            let Some(group) = shared.groups.next(number) else {
                break;
            };
            core.add_place()?;
            core.start(core.groups.len() - 1, group, 0, &shared.profile)?;
        }
        Ok(core)
    }

    /// Watches sub-groups. The core must not have run yet.
    pub(super) fn watched(mut self, watch: Option<Watch>) -> Core<'l> {
        let places = watch.map_or(0, |watch| watch.sub_groups.min(self.sub_groups.len()));
        self.watched = vec![Vec::new(); places];
        self.watch = watch;
        self
    }

    /// When something next happens; none if all is done.
    pub(super) fn next(&self) -> Option<u64> {
        let next = self.next.iter().copied().min().unwrap_or(NEVER);
        (next != NEVER).then_some(next)
    }

    /// Runs until a time.
    ///
    /// # Errors
    /// The kernel faults, or does not end.
    pub(super) fn run(&mut self, until: u64, shared: &mut Shared<impl Groups>) -> Result<()> {
        loop {
            let (mut first, mut now) = (0, NEVER);
            for (index, &next) in self.next.iter().enumerate() {
                if next < now {
                    (first, now) = (index, next);
                }
            }
            if now >= until {
                return Ok(());
            }
            self.step(first, now, shared)?;
        }
    }

    /// One cycle of a scheduler.
    fn step(&mut self, index: usize, now: u64, shared: &mut Shared<impl Groups>) -> Result<()> {
        let memory_free = self
            .memory_pipe
            .max(shared.memory.port_free(self.number) - MEMORY_QUEUE);
        // A unit that is free within this cycle takes an instruction.
        let memory_is_free = memory_free < (now + 1) as f64;
        if memory_is_free
            && let Some(&member) = self.memory_turns.front()
            && member % self.schedulers.len() == index
        {
            self.memory_turns.pop_front();
            return self.issue_next(index, member, now, shared);
        }
        let scheduler = &self.schedulers[index];
        let mut next = NEVER;
        let members = std::iter::once(&scheduler.last).chain(&scheduler.members);
        for &member in members {
            let Some(&Ready { at, pipe }) = self.ready.get(member) else {
                continue;
            };
            if at > now {
                next = next.min(at);
                continue;
            }
            let (is_free, free) = match pipe {
                Pipe::Memory => (memory_is_free && self.memory_turns.is_empty(), memory_free),
                pipe => {
                    let free = scheduler.pipes[pipe as usize];
                    (free < (now + 1) as f64, free)
                }
            };
            if !is_free {
                let reason = match pipe {
                    Pipe::Memory => StallReason::MemoryThrottle,
                    _ => StallReason::MathPipeThrottle,
                };
                let known = self.sub_groups[member].throttled.replace(reason).is_some();
                if !known && pipe == Pipe::Memory {
                    self.memory_turns.push_back(member);
                }
                next = next.min((free as u64).max(now + 1));
                continue;
            }
            return self.issue_next(index, member, now, shared);
        }
        self.next[index] = next;
        Ok(())
    }

    fn issue_next(
        &mut self,
        index: usize,
        member: usize,
        now: u64,
        shared: &mut Shared<impl Groups>,
    ) -> Result<()> {
        let scheduler = &mut self.schedulers[index];
        if scheduler.last != member {
            (scheduler.last, scheduler.in_turn) = (member, 0);
            scheduler.put_last_of_its_group(member, self.per_group);
        }
        self.next[index] = now + 1;
        self.issue(index, member, now, shared)?;
        if self.schedulers[index].members.len() == 1 {
            // No other sub-group can go on earlier.
            self.next[index] = self.ready[member].at.max(now + 1);
        }
        self.next[index] = self.next[index].max(self.schedulers[index].read as u64);
        Ok(())
    }
}
