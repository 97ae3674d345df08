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

use std::collections::VecDeque;

use super::access::{Direction, Touched, access, largest, prefetch};
use super::code::{Action, Code, CodedStep};
use super::cost::Pipe;
use super::fetch::Fetch;
use super::frames::Frames;
use super::profile::Traffic;
use super::stalls::{InstructionProfile, Issue, StallReason, WATCHED, Watch};
use super::sub_group::{Resident, State};
use crate::functional::{LaneOp, LaneOpKind, LaunchState, Mask, Need, QUAD_BYTES, WorkGroup};
use crate::memory::{Access, MemorySystem};
use crate::model::DeviceModel;
use crate::{Error, Result};

/// How far behind the unit for loads and stores can be before nothing is issued to it, in cycles. Its
/// queue takes several instructions; memory reserves resources in the order of issue, so not many.
const MEMORY_QUEUE: f64 = 128.0;

/// Where a core's work-groups come from.
pub(super) trait Groups {
    /// The next one for a core, if there are any left.
    fn next(&mut self, core: usize) -> Option<u64>;
}

/// What the simulated cores share.
pub(super) struct Shared<G> {
    pub memory: MemorySystem,
    pub groups: G,
    /// What happened at each instruction, on all cores together: it stays in the host's caches, which one for each of many cores
    /// does not if the code is large.
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
    groups: Vec<ResidentGroup<'l>>,
    sub_groups: Vec<Resident>,
    /// Each one's requirement for its next issue.
    ready: Vec<Ready>,
    per_group: usize,
    schedulers: Vec<Scheduler>,
    /// When each scheduler next has something to do.
    next: Vec<u64>,
    memory_pipe: f64,
    /// Sub-groups that wait for the unit for loads and stores, in the order of their coming: it is their
    /// turn in this order, whichever scheduler they belong to.
    memory_turns: VecDeque<usize>,
    fetch: Fetch,
    barrier_latency: u64,
    /// Whether a load that misses L1 comes after the copies that the sub-group started before it.
    copies_come_first: bool,
    /// Stacks that the launch is divided over.
    stacks: u64,
    /// Cycles, summed over sub-groups, in which they were resident.
    pub resident_cycles: u64,
    /// When each work-group ended.
    pub ended: Vec<u64>,
    /// Instructions that each of them issued.
    pub work: Vec<u64>,
    /// By place, when the last sub-group there ended, and how many instructions it issued.
    pub last: Vec<(u64, u64)>,
    /// Instructions issued so far.
    pub issued: u64,
    /// From when until when each work-group of its first place was there.
    pub lives: Vec<(u64, u64)>,
    watch: Option<Watch>,
    /// How those that are watched came along, by their place.
    pub watched: Vec<Vec<Issue>>,
    /// More than these show a loop without end.
    limit: u64,
}

struct ResidentGroup<'l> {
    work_group: WorkGroup<'l>,
    started: u64,
    /// Instructions that it issued.
    issued: u64,
    /// The stack that it belongs to.
    stack: u64,
    /// Sub-groups that have not ended.
    alive: u32,
    at_barrier: u32,
}

struct Scheduler {
    /// Its sub-groups, those of the oldest work-group first, of each work-group the one that issued least lately first.
    members: Vec<usize>,
    last: usize,
    /// How many instructions it has issued of that one, with no other in between.
    in_turn: u32,
    pipes: [f64; Pipe::COUNT],
    /// When the operands of the last issued instruction have been read.
    read: f64,
}

impl Scheduler {
    /// Lets the others of its work-group go before a sub-group that it issues now.
    fn put_last_of_its_group(&mut self, member: usize, per_group: usize) {
        let Some(at) = self.members.iter().position(|&other| other == member) else {
            return;
        };
        // Those of a work-group stand side by side.
        let is_of_group = |other: &&usize| **other / per_group == member / per_group;
        let behind = self.members[at + 1..].iter().take_while(is_of_group).count();
        self.members[at..=at + behind].rotate_left(1);
    }
}

/// When a sub-group's next instruction can issue, as far as the sub-group alone is concerned, and to which
/// unit: next to each other, for the schedulers look at many.
#[derive(Clone, Copy)]
struct Ready {
    at: u64,
    pipe: Pipe,
}

impl Ready {
    /// It waits for others, or has ended.
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
        limit: u64,
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
            stacks: u64::from(*model.core.stacks),
            copies_come_first: model.l1.as_ref().is_some_and(|l1| l1.copies_come_first.value),
            resident_cycles: 0,
            ended: Vec::new(),
            work: Vec::new(),
            last: Vec::new(),
            issued: 0,
            lives: Vec::new(),
            watch: None,
            watched: Vec::new(),
            limit,
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

    /// The same, watched: nothing has happened yet.
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
            // Nobody else can go on earlier.
            self.next[index] = self.ready[member].at.max(now + 1);
        }
        self.next[index] = self.next[index].max(self.schedulers[index].read as u64);
        Ok(())
    }

    fn issue(
        &mut self,
        scheduler: usize,
        member: usize,
        now: u64,
        shared: &mut Shared<impl Groups>,
    ) -> Result<()> {
        let Shared { memory, profile, .. } = shared;
        let code = self.code;
        let resident = &mut self.sub_groups[member];
        let at = resident.at;
        let instruction = &code.instructions[at];
        let mask = resident.mask(instruction);
        if let Some(watch) = self.watch
            && let Some(issues) = self.watched.get_mut(member)
            && now >= watch.from
            && resident.since < watch.to
            && issues.len() < WATCHED
        {
            issues.push(Issue {
                instruction: resident.at,
                since: resident.since,
                held: resident.earliest.clamp(resident.since, now),
                at: now,
                reason: resident.reason,
            });
        }
        account(profile, resident, now);
        profile[at].issued += 1;
        profile[at].lanes += u64::from(mask.count());
        self.issued += 1;
        if self.issued > self.limit {
            return Err(Error::input(format!(
                "`{}` does not end: a core has issued {} instructions",
                code.program.kernel.shown(),
                self.limit
            )));
        }
        let issuing = &mut self.schedulers[scheduler];
        issuing.read = issuing.read.max(now as f64) + instruction.reading(issuing.in_turn);
        issuing.in_turn += 1;
        let pipe = match instruction.pipe {
            Pipe::Memory => &mut self.memory_pipe,
            pipe => &mut issuing.pipes[pipe as usize],
        };
        *pipe = pipe.max(now as f64) + instruction.interval;

        resident.issued += 1;
        let group = &mut self.groups[resident.slot];
        group.issued += 1;
        if self.stacks > 1 {
            memory.run_on_stack(self.number, group.stack);
        }
        let group = &mut group.work_group;
        let mut touched = Touched::None;
        for step in instruction.first_step..instruction.end_step {
            match &code.steps[step as usize] {
                CodedStep::Op(op, need) => {
                    // Addresses, before the result takes the pointer's place.
                    match op.kind {
                        LaneOpKind::Load { ptr, ty, to, .. } => {
                            touched = Touched::At(*resident.values.get(ptr), ty.bytes() * to.length());
                        }
                        LaneOpKind::Store { ptr, ty, values, .. } => {
                            touched = Touched::At(*resident.values.get(ptr), ty.bytes() * values.length());
                        }
                        LaneOpKind::Atomic { ptr, ty, .. } => {
                            let bytes = ty.bytes() * op.kind.atomic_values();
                            touched = Touched::At(*resident.values.get(ptr), bytes);
                        }
                        LaneOpKind::Prefetch { ptr, bytes, .. } => {
                            touched = Touched::At(*resident.values.get(ptr), bytes);
                        }
                        LaneOpKind::Copy {
                            target,
                            source,
                            bytes,
                            ..
                        } => {
                            let values = &resident.values;
                            touched = Touched::Both(*values.get(source), *values.get(target), bytes);
                        }
                        LaneOpKind::Opaque {
                            ref what, ref values, ..
                        } => {
                            if what.moves().is_some() {
                                touched = Touched::Several(what.pieces(values, &resident.values));
                            } else if let Some(quad) = what.quad() {
                                touched = Touched::At(quad.addresses(values, &resident.values), QUAD_BYTES);
                            }
                        }
                        _ => {}
                    }
                    do_step(group, resident, op, *need, mask)?;
                }
                CodedStep::Assign(pairs) => resident.values.assign(pairs, mask),
                CodedStep::Nothing => {}
            }
        }

        let done_fixed = now + u64::from(instruction.latency);
        resident.since = now + 1;
        resident.hold(now + 1, StallReason::Wait);
        resident.blame = usize::MAX;
        match instruction.action {
            Action::Mark | Action::Exit => {}
            Action::Compute => {
                let cause = match instruction.pipe {
                    Pipe::Special => StallReason::ShortScoreboard,
                    _ => StallReason::Wait,
                };
                resident.define(instruction, done_fixed, cause);
            }
            Action::Jump | Action::Fence => {
                let mut done = done_fixed;
                if instruction.action == Action::Fence && !mask.is_empty() {
                    memory.fence(self.number);
                    done += (memory.order(now as f64) - now as f64).ceil() as u64;
                }
                resident.define(instruction, done, StallReason::Wait);
                resident.hold(done, StallReason::BranchResolving);
            }
            Action::Load { space, .. } => {
                let before = Traffic::so_far(memory.counters());
                let answer = access(memory, self.number, now, &touched, space, mask, Direction::Load);
                profile[at].traffic.add_since(before, memory.counters());
                let mut done = answer.done + u64::from(instruction.latency);
                if self.copies_come_first && answer.is_behind_copies {
                    done = done.max(resident.last_copy());
                }
                resident.define(instruction, done, answer.cause);
            }
            Action::Fill { at: offset, bytes } | Action::Spill { at: offset, bytes } => {
                let addresses = Frames::of(code, self.number, member).addresses(offset, bytes);
                let access = Access {
                    addresses: &addresses,
                    mask: mask.0,
                    bytes: u32::from(bytes),
                };
                if let Action::Spill { .. } = instruction.action {
                    memory.spill(self.number, now as f64, &access);
                } else {
                    let before = Traffic::so_far(memory.counters());
                    let done = memory.fill(self.number, now as f64, &access).ceil() as u64;
                    profile[at].traffic.add_since(before, memory.counters());
                    let done = done + u64::from(instruction.latency);
                    resident.define(instruction, done, StallReason::LongScoreboard);
                }
            }
            Action::Atomic {
                space,
                direction,
                acquires,
                ..
            } => {
                let answer = access(memory, self.number, now, &touched, space, mask, direction);
                let done = answer.done + u64::from(instruction.latency);
                resident.define(instruction, done, answer.cause);
                if acquires && !mask.is_empty() {
                    memory.fence(self.number);
                    resident.hold(done, answer.cause);
                    resident.blame = at;
                }
            }
            Action::Store { space, .. } => {
                access(memory, self.number, now, &touched, space, mask, Direction::Store);
            }
            Action::Copy { step } => {
                if let Touched::Both(from, to, bytes) = &touched {
                    let from = Access {
                        addresses: from,
                        mask: mask.0,
                        bytes: *bytes,
                    };
                    let to = Access {
                        addresses: to,
                        mask: mask.0,
                        bytes: *bytes,
                    };
                    let before = Traffic::so_far(memory.counters());
                    let done = memory.copy(self.number, now as f64, &from, &to).ceil() as u64;
                    profile[at].traffic.add_since(before, memory.counters());
                    if let CodedStep::Op(op, _) = &code.steps[step as usize]
                        && let LaneOpKind::Copy { to: token, .. } = op.kind
                    {
                        let number = largest(resident.values.get(token), mask);
                        resident.copy_until(number, done + u64::from(instruction.latency));
                    }
                }
                resident.define(instruction, now + 1, StallReason::Wait);
            }
            Action::Wait { token } => {
                let number = largest(resident.values.get(token), mask);
                let done = resident.copies_done(number).max(now) + u64::from(instruction.latency);
                resident.hold(done, StallReason::AsyncCopy);
                resident.blame = at;
            }
            Action::Product { complete } => {
                resident.define(instruction, done_fixed, StallReason::Wait);
                resident.product_until(now + u64::from(complete));
            }
            Action::CommitProducts => resident.commit_products(),
            Action::WaitForProducts { in_flight } => {
                let complete = resident.products_complete(in_flight).max(now);
                resident.hold(complete + u64::from(instruction.latency), StallReason::Wait);
                resident.blame = at;
            }
            Action::Prefetch { reached, by, .. } => {
                let copied = prefetch(memory, self.number, now, &touched, mask, reached, by);
                resident.scratch_until(copied);
            }
            Action::Barrier => {
                resident.state = State::AtBarrier;
                resident.blame = at;
                self.groups[resident.slot].at_barrier += 1;
            }
        }

        let control = instruction.control;
        let is_barrier = instruction.action == Action::Barrier;
        self.sub_groups[member].follow(control);
        self.ready[member] = Ready::NEVER;
        match self.sub_groups[member].state {
            State::Ready => self.prepare(member, profile)?,
            State::AtBarrier => self.release(self.sub_groups[member].slot, now, profile)?,
            State::Ended => {}
        }
        if self.sub_groups[member].state == State::Ended {
            if is_barrier {
                self.groups[self.sub_groups[member].slot].at_barrier -= 1;
            }
            self.end(member, now, shared)?;
        }
        Ok(())
    }

    /// Runs the marks that follow and works out when the next instruction can issue.
    fn prepare(&mut self, member: usize, profile: &[InstructionProfile]) -> Result<()> {
        let code = self.code;
        let resident = &mut self.sub_groups[member];
        loop {
            let instruction = &code.instructions[resident.at];
            if instruction.action != Action::Mark {
                let fetched = match resident.line {
                    Some(line) if line == instruction.line => 0,
                    _ => self.fetch.line(instruction.line, resident.since),
                };
                resident.line = Some(instruction.line);
                resident.wait_for(instruction, fetched, code.crossing);
                if resident.blame == usize::MAX {
                    resident.blame = resident.at;
                }
                self.ready[member] = Ready {
                    at: resident.earliest,
                    pipe: instruction.pipe,
                };
                // What its issue will count in is read now, or the issue would wait for the host's memory.
                let own = &profile[resident.blame];
                std::hint::black_box(own.stalls[resident.reason as usize] ^ own.issued);
                return Ok(());
            }
            let mask = resident.mask(instruction);
            for step in instruction.first_step..instruction.end_step {
                match &code.steps[step as usize] {
                    CodedStep::Op(op, need) => {
                        let group = &mut self.groups[resident.slot].work_group;
                        do_step(group, resident, op, *need, mask)?;
                    }
                    CodedStep::Assign(pairs) => resident.values.assign(pairs, mask),
                    CodedStep::Nothing => {}
                }
            }
            resident.follow(instruction.control);
            if resident.state == State::Ended {
                return Ok(());
            }
        }
    }

    /// Lets a work-group go on if all its sub-groups have come to the barrier.
    fn release(&mut self, slot: usize, now: u64, profile: &[InstructionProfile]) -> Result<()> {
        let group = &mut self.groups[slot];
        if group.at_barrier == 0 || group.at_barrier < group.alive {
            return Ok(());
        }
        group.at_barrier = 0;
        group.work_group.barrier();
        for member in slot * self.per_group..(slot + 1) * self.per_group {
            if self.sub_groups[member].state == State::AtBarrier {
                self.sub_groups[member].state = State::Ready;
                self.sub_groups[member].hold(now + self.barrier_latency, StallReason::Barrier);
                self.prepare(member, profile)?;
                self.wake(member);
            }
        }
        Ok(())
    }

    /// A sub-group has ended.
    fn end(&mut self, member: usize, now: u64, shared: &mut Shared<impl Groups>) -> Result<()> {
        let slot = self.sub_groups[member].slot;
        self.groups[slot].alive -= 1;
        if self.last.len() <= member {
            self.last.resize(member + 1, (0, 0));
        }
        self.last[member] = (now + 1, self.sub_groups[member].issued);
        self.resident_cycles += now + 1 - self.groups[slot].started;
        if self.groups[slot].alive > 0 {
            return self.release(slot, now, &shared.profile);
        }
        self.ended.push(now + 1);
        if slot == 0 {
            self.lives.push((self.groups[slot].started, now + 1));
        }
        self.work.push(self.groups[slot].issued);
        match shared.groups.next(self.number) {
            Some(group) => self.start(slot, group, now + 1, &shared.profile),
            None => Ok(()),
        }
    }

    /// Adds a place for a work-group.
    fn add_place(&mut self) -> Result<()> {
        self.groups.push(ResidentGroup {
            work_group: WorkGroup::new(self.state)?,
            started: 0,
            issued: 0,
            stack: 0,
            alive: 0,
            at_barrier: 0,
        });
        Ok(())
    }

    /// A work-group takes its place.
    fn start(&mut self, slot: usize, number: u64, now: u64, profile: &[InstructionProfile]) -> Result<()> {
        let group = &mut self.groups[slot];
        group.work_group.begin(number);
        (group.started, group.issued) = (now, 0);
        group.stack = number * self.stacks / self.state.group_count().max(1);
        (group.alive, group.at_barrier) = (self.per_group as u32, 0);
        for index in 0..self.per_group {
            let member = slot * self.per_group + index;
            let sub_group = self.groups[slot].work_group.sub_group(index as u32);
            let values = self.code.registers(self.state.arguments());
            let resident = Resident::new(slot, sub_group, values, self.code, now);
            match self.sub_groups.get_mut(member) {
                Some(place) => *place = resident,
                None => {
                    self.sub_groups.push(resident);
                    self.ready.push(Ready::NEVER);
                }
            }
            let schedulers = self.schedulers.len();
            let members = &mut self.schedulers[member % schedulers].members;
            members.retain(|&other| other != member);
            members.push(member);
            self.prepare(member, profile)?;
            self.wake(member);
        }
        Ok(())
    }

    /// A sub-group can go on: its scheduler may have to look earlier than it thought.
    fn wake(&mut self, member: usize) {
        let index = member % self.schedulers.len();
        let earliest = self.ready[member].at.max(self.schedulers[index].read as u64);
        self.next[index] = self.next[index].min(earliest);
    }
}

/// Does as much of an operation as is needed.
#[inline]
fn do_step(
    group: &mut WorkGroup,
    resident: &mut Resident,
    op: &LaneOp,
    need: Need,
    mask: Mask,
) -> Result<()> {
    match need {
        Need::All => group.execute(op, &mut resident.values, &resident.sub_group, mask),
        Need::Access => group.touch(op, &mut resident.values, &resident.sub_group, mask),
        Need::Nothing => Ok(()),
    }
}

/// Counts why a sub-group did not issue earlier.
fn account(profile: &mut [InstructionProfile], resident: &mut Resident, now: u64) {
    let stalls = &mut profile[resident.blame].stalls;
    let own = resident.earliest.clamp(resident.since, now) - resident.since;
    stalls[resident.reason as usize] += own;
    let throttled = resident.throttled.take().unwrap_or(StallReason::NotSelected);
    stalls[throttled as usize] += now - resident.since - own;
}
