//! The places of a core: work-groups start, meet at barriers and end.
//!
//! Sub-groups of a place are numbered in a row, and stay with their schedulers.

use super::{Core, Groups, Ready, ResidentGroup, Shared};
use crate::Result;
use crate::functional::WorkGroup;
use crate::timer::stalls::{InstructionProfile, StallReason};
use crate::timer::sub_group::{Resident, State};

impl Core<'_> {
    /// Adds a place for a work-group.
    pub(super) fn add_place(&mut self) -> Result<()> {
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

    /// Starts a work-group in a place, now or when the device next starts one on this core.
    pub(super) fn start(
        &mut self,
        slot: usize,
        number: u64,
        now: u64,
        profile: &[InstructionProfile],
    ) -> Result<()> {
        let now = now.max(self.next_start as u64);
        self.next_start = self.next_start.max(now as f64) + self.start_interval;
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

    /// Lets a work-group continue if all its sub-groups are at the barrier.
    pub(super) fn release(&mut self, slot: usize, now: u64, profile: &[InstructionProfile]) -> Result<()> {
        let group = &mut self.groups[slot];
        if group.at_barrier == 0 || group.at_barrier < group.alive {
            return Ok(());
        }
        group.at_barrier = 0;
        group.work_group.barrier();
        self.passed += 1;
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

    /// Ends a sub-group. With the last one of its work-group, the place goes to the next work-group.
    pub(super) fn end(&mut self, member: usize, now: u64, shared: &mut Shared<impl Groups>) -> Result<()> {
        let slot = self.sub_groups[member].slot;
        self.groups[slot].alive -= 1;
        if self.last.len() <= member {
            self.last.resize(member + 1, (0, 0));
        }
        self.last[member] = (now + 1, self.sub_groups[member].issued);
        let life = now + 1 - self.groups[slot].started;
        self.resident_cycles += life;
        self.balance.sub_groups.add(life);
        self.balance.instructions.add(self.sub_groups[member].issued);
        if self.groups[slot].alive > 0 {
            return self.release(slot, now, &shared.profile);
        }
        self.ended.push(now + 1);
        self.balance.groups.add(life);
        if slot == 0 {
            self.lives.push((self.groups[slot].started, now + 1));
        }
        self.work.push(self.groups[slot].issued);
        match shared.groups.next(self.number) {
            Some(group) => self.start(slot, group, now + 1, &shared.profile),
            None => Ok(()),
        }
    }

    /// The run is cut: what is resident counts as ended.
    pub(in crate::timer) fn cut(&mut self, now: u64) {
        for slot in 0..self.groups.len() {
            let ResidentGroup {
                started,
                issued,
                alive,
                ..
            } = self.groups[slot];
            if alive == 0 {
                continue;
            }
            let life = now.saturating_sub(started);
            let members = &self.sub_groups[slot * self.per_group..(slot + 1) * self.per_group];
            for member in members.iter().filter(|member| member.state != State::Ended) {
                self.resident_cycles += life;
                self.balance.sub_groups.add(life);
                self.balance.instructions.add(member.issued);
            }
            self.ended.push(now);
            self.balance.groups.add(life);
            if slot == 0 {
                self.lives.push((started, now));
            }
            self.work.push(issued);
        }
    }

    /// A sub-group can continue: its scheduler may have to look at it earlier than planned.
    fn wake(&mut self, member: usize) {
        let index = member % self.schedulers.len();
        let earliest = self.ready[member].at.max(self.schedulers[index].read as u64);
        self.next[index] = self.next[index].min(earliest);
    }
}
