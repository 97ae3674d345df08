//! A resident sub-group: its position in the program, and its dependences.

use std::collections::VecDeque;

use super::code::{Code, Coded, CodedControl};
use super::cost::Pipe;
use super::stalls::StallReason;
use crate::functional::{Mask, Registers, SubGroup};

/// Whether a sub-group takes part in scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It can issue from [`Resident::earliest`] on.
    Ready,
    /// It waits for the rest of its work-group.
    AtBarrier,
    /// All its work-items have ended, or there is none.
    Ended,
}

/// A sub-group in one of a core's places. The fields that every instruction reads come first and are adjacent: a core has many.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Resident {
    /// The next instruction.
    pub at: usize,
    /// The cycle after its last issue.
    pub since: u64,
    /// When the next instruction can issue, as far as the sub-group alone is concerned, and why not
    /// earlier.
    pub earliest: u64,
    /// The instruction that the waiting is blamed on.
    pub blame: usize,
    /// Before this it issues nothing, and why.
    free: u64,
    /// Instructions that it issued.
    pub issued: u64,
    /// The place of its work-group in the core.
    pub slot: usize,
    pub active: Mask,
    pub reason: StallReason,
    free_reason: StallReason,
    /// Whether a unit was busy when it could have issued.
    pub throttled: Option<StallReason>,
    pub state: State,
    /// The line of code that it has.
    pub line: Option<u32>,
    registers: Vec<Register>,
    pub values: Registers,
    scopes: Vec<DivergentScope>,
    /// When the last copy that was started is there.
    last_copy: u64,
    copies: InFlight,
    /// Products of its warp group, by the group that they belong to.
    products: InFlight,
    /// How many groups of products there are so far.
    groups_of_products: u64,
    /// When the last result on each scoreboard is there, and how often it was waited for.
    scoreboards: [(u64, u32); 16],
    pub sub_group: SubGroup,
}

/// When a register's value is there.
#[derive(Clone, Copy, Debug)]
struct Register {
    ready: u64,
    /// The stall reason of instructions that wait for it.
    cause: StallReason,
    /// The scoreboard that it arrives on, if it takes no fixed time and was not waited for yet.
    board: Option<u8>,
    /// How often that scoreboard had been waited for when it was issued.
    waits: u32,
    /// The unit that it comes from.
    pipe: Pipe,
}

/// What was started and not waited for: numbers in ascending order, and when each is complete.
#[derive(Clone, Debug, Default)]
struct InFlight(VecDeque<(u64, u64)>);

impl InFlight {
    /// What has this number is complete at a time.
    fn start(&mut self, number: u64, complete: u64) {
        self.0.push_back((number, complete));
    }

    /// When all up to `number` are complete; they are forgotten.
    fn complete(&mut self, number: u64) -> u64 {
        let mut last = 0;
        self.0.retain(|&(own, complete)| {
            let is_waited_for = own <= number;
            if is_waited_for {
                last = last.max(complete);
            }
            !is_waited_for
        });
        last
    }
}

/// All that a sub-group's further way depends on, but memory.
#[derive(Debug)]
pub(super) struct Position {
    at: usize,
    active: Mask,
    scopes: Vec<DivergentScope>,
    values: Registers,
}

impl Position {
    /// Where a sub-group is.
    pub(super) fn of(resident: &Resident) -> Position {
        Position {
            at: resident.at,
            active: resident.active,
            scopes: resident.scopes.clone(),
            values: resident.values.clone(),
        }
    }

    /// Whether this is its next instruction.
    pub(super) fn is_at(&self, instruction: usize) -> bool {
        self.at == instruction
    }

    /// Whether a sub-group is there, in everything.
    pub(super) fn is_of(&self, resident: &Resident) -> bool {
        self.at == resident.at
            && self.active == resident.active
            && self.scopes == resident.scopes
            && self.values == resident.values
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct DivergentScope {
    /// Lanes for the second region, and where that is, until it starts.
    otherwise: Option<(Mask, u32)>,
    left: Mask,
    next: Mask,
    end: u32,
}

impl Resident {
    /// A sub-group at the start of a program.
    pub(super) fn new(
        slot: usize,
        sub_group: SubGroup,
        values: Registers,
        code: &Code,
        now: u64,
    ) -> Resident {
        let there = Register {
            ready: 0,
            cause: StallReason::Wait,
            board: None,
            waits: 0,
            pipe: Pipe::Control,
        };
        Resident {
            slot,
            issued: 0,
            active: sub_group.mask(),
            sub_group,
            values,
            state: State::Ready,
            at: 0,
            scopes: Vec::new(),
            earliest: now,
            reason: StallReason::NoInstruction,
            blame: 0,
            throttled: None,
            since: now,
            free: now,
            free_reason: StallReason::NoInstruction,
            registers: vec![there; code.program.registers as usize],
            scoreboards: [(0, 0); 16],
            copies: InFlight::default(),
            products: InFlight::default(),
            groups_of_products: 0,
            last_copy: 0,
            line: None,
        }
    }

    /// The lanes on which an instruction acts.
    pub(super) fn mask(&self, instruction: &Coded) -> Mask {
        match instruction.guard {
            None => self.active,
            Some((slot, holds)) => {
                let truth = self.values.truth(slot, self.active);
                if holds { truth } else { self.active.without(truth) }
            }
        }
    }

    /// Obeys an instruction's control and moves on to the next instruction.
    pub(super) fn follow(&mut self, control: CodedControl) {
        let here = self.at;
        self.at += 1;
        match control {
            CodedControl::Next => return,
            CodedControl::Open { end } => {
                self.scopes.push(DivergentScope {
                    otherwise: None,
                    left: Mask::NONE,
                    next: Mask::NONE,
                    end,
                });
                return;
            }
            CodedControl::If { cond, otherwise, end } => {
                let holds = self.values.truth(cond, self.active);
                let others = self.active.without(holds);
                let otherwise = Some((others, otherwise));
                self.scopes.push(DivergentScope {
                    otherwise,
                    left: Mask::NONE,
                    next: Mask::NONE,
                    end,
                });
                self.active = holds;
            }
            CodedControl::Else { .. } => {
                let waiting = self.scopes.last_mut().and_then(|scope| scope.otherwise.take());
                self.active = waiting.map_or(Mask::NONE, |(mask, _)| mask);
            }
            CodedControl::End => {
                self.active = self.scopes.pop().map_or(Mask::NONE, |scope| scope.left);
            }
            CodedControl::EndLoop { body } => match self.scopes.last_mut() {
                Some(scope) if !scope.next.is_empty() => {
                    self.active = std::mem::take(&mut scope.next);
                    self.at = body as usize;
                }
                _ => self.active = self.scopes.pop().map_or(Mask::NONE, |scope| scope.left),
            },
            CodedControl::Break { depth } => {
                let scope = &mut self.scopes[depth as usize];
                scope.left = scope.left.or(self.active);
                self.active = Mask::NONE;
            }
            CodedControl::Continue { depth } => {
                let scope = &mut self.scopes[depth as usize];
                scope.next = scope.next.or(self.active);
                self.active = Mask::NONE;
            }
            CodedControl::Return => self.active = Mask::NONE,
        }
        if self.active.is_empty() {
            self.skip(here);
        }
    }

    /// With no lane active: on to where some may come back.
    fn skip(&mut self, here: usize) {
        match self.scopes.last() {
            Some(DivergentScope {
                otherwise: Some((_, at)),
                ..
            }) => self.at = *at as usize,
            Some(scope) => self.at = scope.end as usize,
            None => {
                self.at = here;
                self.state = State::Ended;
            }
        }
    }

    /// Computes when the next instruction can issue. `fetched` is when its code is there; results of another arithmetic unit
    /// take `crossing` cycles longer.
    pub(super) fn wait_for(&mut self, instruction: &Coded, fetched: u64, crossing: u64) {
        let (mut earliest, mut reason) = (self.free, self.free_reason);
        if fetched > earliest {
            (earliest, reason) = (fetched, StallReason::NoInstruction);
        }
        let uses = &instruction.uses[..usize::from(instruction.use_count)];
        let defines = &instruction.defines[..usize::from(instruction.define_count)];
        for &register in uses.iter().chain(defines) {
            let register = &mut self.registers[usize::from(register)];
            // Results on one scoreboard cannot be told apart: the last of them counts. Who has waited
            // for it has waited for all that were on their way.
            if let Some(board) = register.board.take() {
                let (last, waited) = &mut self.scoreboards[usize::from(board)];
                if *waited == register.waits {
                    register.ready = register.ready.max(*last);
                    *waited += 1;
                }
            }
            let mut ready = register.ready;
            if register.pipe != instruction.pipe
                && register.pipe.is_arithmetic()
                && instruction.pipe.is_arithmetic()
            {
                ready += crossing;
            }
            if ready > earliest {
                (earliest, reason) = (ready, register.cause);
            }
        }
        (self.earliest, self.reason) = (earliest, reason);
    }

    /// The sub-group issues nothing before a time.
    pub(super) fn hold(&mut self, until: u64, reason: StallReason) {
        (self.free, self.free_reason) = (until, reason);
    }

    /// An instruction's results are available at a time.
    pub(super) fn define(&mut self, instruction: &Coded, ready: u64, cause: StallReason) {
        let board = instruction.scoreboard;
        let waits = board.map_or(0, |board| self.scoreboards[usize::from(board)].1);
        for &register in &instruction.defines[..usize::from(instruction.define_count)] {
            self.registers[usize::from(register)] = Register {
                ready,
                cause,
                board,
                waits,
                pipe: instruction.pipe,
            };
        }
        if let Some(board) = instruction.scoreboard {
            let (last, _) = &mut self.scoreboards[usize::from(board)];
            *last = (*last).max(ready);
        }
    }

    /// Copy `number` is there at a time.
    pub(super) fn copy_until(&mut self, number: u64, done: u64) {
        self.copies.start(number, done);
        self.last_copy = self.last_copy.max(done);
    }

    /// Something was copied that is not waited for; it is there at a time.
    pub(super) fn scratch_until(&mut self, done: u64) {
        self.last_copy = self.last_copy.max(done);
    }

    /// When the last copy that was started is there.
    pub(super) fn last_copy(&self) -> u64 {
        self.last_copy
    }

    /// When all copies up to `number` are there; they are forgotten.
    pub(super) fn copies_done(&mut self, number: u64) -> u64 {
        self.copies.complete(number)
    }

    /// A product of the warp group is complete at a time.
    pub(super) fn product_until(&mut self, complete: u64) {
        self.products.start(self.groups_of_products, complete);
    }

    /// The products since the last group are one.
    pub(super) fn commit_products(&mut self) {
        self.groups_of_products += 1;
    }

    /// When all groups of products but the last few are complete; they are forgotten.
    pub(super) fn products_complete(&mut self, but: u32) -> u64 {
        match self.groups_of_products.checked_sub(u64::from(but) + 1) {
            Some(last) => self.products.complete(last),
            None => 0,
        }
    }
}
