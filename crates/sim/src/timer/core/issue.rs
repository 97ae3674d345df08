//! One instruction of a sub-group: what its issue does, and when the next one can issue.
//!
//! The scheduler has chosen the sub-group. Accesses reserve resources of the memory in the order of issue.

use super::{Core, Groups, Ready, Shared};
use crate::back::machine::MachineProgram;
use crate::functional::{LaneOp, LaneOpKind, Mask, Need, WorkGroup};
use crate::memory::{Access, MemorySystem};
use crate::timer::access::{Direction, Touched, access, largest, prefetch};
use crate::timer::code::{Action, Coded, CodedStep};
use crate::timer::cost::Pipe;
use crate::timer::frames::Frames;
use crate::timer::profile::Traffic;
use crate::timer::stalls::{InstructionProfile, Issue, StallReason, WATCHED};
use crate::timer::sub_group::{Resident, State};
use crate::{Error, Result};

/// An instruction that issues.
struct Issued<'c> {
    instruction: &'c Coded,
    member: usize,
    /// Its number.
    at: usize,
    now: u64,
    mask: Mask,
    touched: Touched,
}

impl Issued<'_> {
    fn access<'a>(&self, addresses: &'a [u64], bytes: u32) -> Access<'a> {
        Access {
            addresses,
            mask: self.mask.0,
            bytes,
        }
    }
}

impl Core<'_> {
    /// Issues the next instruction of a sub-group: runs it, and charges units and memory for it.
    pub(super) fn issue(
        &mut self,
        scheduler: usize,
        member: usize,
        now: u64,
        shared: &mut Shared<impl Groups>,
    ) -> Result<()> {
        let Shared { memory, profile, .. } = shared;
        let code = self.code;
        self.note_issue(member, now);
        let resident = &mut self.sub_groups[member];
        let at = resident.at;
        let instruction = &code.instructions[at];
        let mask = resident.mask(instruction);
        account(profile, resident, now);
        profile[at].issued += 1;
        profile[at].lanes += u64::from(mask.count());
        self.issued += 1;
        if resident.issued >= self.limit {
            return Err(endless(&code.program, at, self.limit));
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
                    if let Some(by) = Touched::by(&op.kind, &resident.values) {
                        touched = by;
                    }
                    do_step(group, resident, op, *need, mask)?;
                }
                CodedStep::Assign(pairs) => resident.values.assign(pairs, mask),
                CodedStep::Nothing => {}
            }
        }

        resident.since = now + 1;
        resident.hold(now + 1, StallReason::Wait);
        resident.blame = usize::MAX;
        let issued = Issued {
            instruction,
            member,
            at,
            now,
            mask,
            touched,
        };
        self.act(&issued, memory, profile);

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
        if let Some(Some(noted)) = self.noted.get_mut(member) {
            noted.look(&self.sub_groups[member]);
        }
        Ok(())
    }

    /// For those who watch this sub-group: which instruction issues, since when it could, and what held it.
    fn note_issue(&mut self, member: usize, now: u64) {
        let resident = &self.sub_groups[member];
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
    }

    /// What an instruction does to the memory, and when its results are there.
    fn act(&mut self, issued: &Issued<'_>, memory: &mut MemorySystem, profile: &mut [InstructionProfile]) {
        let Issued {
            instruction,
            at,
            now,
            mask,
            ref touched,
            ..
        } = *issued;
        let resident = &mut self.sub_groups[issued.member];
        let done_fixed = now + u64::from(instruction.latency);
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
            Action::Load { space, direction, .. } => {
                let before = Traffic::so_far(memory.counters());
                let answer = access(memory, self.number, now, touched, space, mask, direction);
                profile[at].traffic.add_since(before, memory.counters());
                let mut done = answer.done + u64::from(instruction.latency);
                if self.copies_come_first && answer.is_behind_copies {
                    done = done.max(resident.last_copy());
                }
                resident.define(instruction, done, answer.cause);
            }
            Action::Fill { at: offset, bytes } | Action::Spill { at: offset, bytes } => {
                self.reach_frame(issued, (offset, bytes), memory, profile);
            }
            Action::Atomic {
                space,
                direction,
                acquires,
                ..
            } => {
                let answer = access(memory, self.number, now, touched, space, mask, direction);
                let done = answer.done + u64::from(instruction.latency);
                resident.define(instruction, done, answer.cause);
                if acquires && !mask.is_empty() {
                    memory.fence(self.number);
                    resident.hold(done, answer.cause);
                    resident.blame = at;
                }
            }
            Action::Store { space, .. } => {
                access(memory, self.number, now, touched, space, mask, Direction::Store);
            }
            Action::Copy { step } => {
                resident.define(instruction, now + 1, StallReason::Wait);
                self.copy(issued, step, memory, profile);
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
            Action::Prefetch { hint, .. } => {
                let copied = prefetch(memory, self.number, now, touched, mask, hint);
                resident.scratch_until(copied);
            }
            Action::Barrier => {
                resident.state = State::AtBarrier;
                resident.blame = at;
                self.groups[resident.slot].at_barrier += 1;
            }
        }
    }

    /// A register's value goes to the frame in memory, or comes from there.
    fn reach_frame(
        &mut self,
        issued: &Issued<'_>,
        (offset, bytes): (u32, u8),
        memory: &mut MemorySystem,
        profile: &mut [InstructionProfile],
    ) {
        let now = issued.now as f64;
        let addresses = Frames::of(self.code, self.number, issued.member).addresses(offset, bytes);
        let access = issued.access(&addresses, u32::from(bytes));
        if let Action::Spill { .. } = issued.instruction.action {
            memory.spill(self.number, now, &access);
        } else {
            let before = Traffic::so_far(memory.counters());
            let done = memory.fill(self.number, now, &access).ceil() as u64;
            profile[issued.at].traffic.add_since(before, memory.counters());
            let done = done + u64::from(issued.instruction.latency);
            let resident = &mut self.sub_groups[issued.member];
            resident.define(issued.instruction, done, StallReason::LongScoreboard);
        }
    }

    /// An asynchronous copy, whose token is that of this step.
    fn copy(
        &mut self,
        issued: &Issued<'_>,
        step: u32,
        memory: &mut MemorySystem,
        profile: &mut [InstructionProfile],
    ) {
        let Touched::Both(from, to, bytes) = &issued.touched else {
            return;
        };
        let (from, to) = (issued.access(from, *bytes), issued.access(to, *bytes));
        let before = Traffic::so_far(memory.counters());
        let done = memory.copy(self.number, issued.now as f64, &from, &to).ceil() as u64;
        profile[issued.at].traffic.add_since(before, memory.counters());
        if let CodedStep::Op(op, _) = &self.code.steps[step as usize]
            && let LaneOpKind::Copy { to: token, .. } = op.kind
        {
            let resident = &mut self.sub_groups[issued.member];
            let number = largest(resident.values.get(token), issued.mask);
            resident.copy_until(number, done + u64::from(issued.instruction.latency));
        }
    }

    /// Runs the marks that follow and works out when the next instruction can issue.
    pub(super) fn prepare(&mut self, member: usize, profile: &[InstructionProfile]) -> Result<()> {
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
                // Reads the counters of the issue now: otherwise the issue would wait for the host's memory.
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

/// A sub-group has issued as many instructions as it may.
#[cold]
fn endless(program: &MachineProgram, at: usize, limit: u64) -> Error {
    let kernel = &program.kernel;
    let error = Error::input(format!(
        "`{}` does not end: a sub-group has issued {limit} instructions",
        kernel.shown()
    ));
    error
        .at(kernel.describe_place(program.instructions[at].place))
        .accepted("if it does end, raise the limit: `--max-steps`, or `operation_limit` of a launch")
}

/// Counts why a sub-group did not issue earlier.
fn account(profile: &mut [InstructionProfile], resident: &mut Resident, now: u64) {
    let stalls = &mut profile[resident.blame].stalls;
    let own = resident.earliest.clamp(resident.since, now) - resident.since;
    stalls[resident.reason as usize] += own;
    let throttled = resident.throttled.take().unwrap_or(StallReason::NotSelected);
    stalls[throttled as usize] += now - resident.since - own;
}
