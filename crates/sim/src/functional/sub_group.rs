//! Running a tape: one sub-group, its lanes together as long as they go the same way.
//!
//! A stack of scopes holds the waiting lanes. A `break` sends the active lanes to the end of a scope, a `continue` to the next
//! iteration of a loop. Then none is active, and the end of a region always follows, which reactivates the lanes that wait for
//! it:
//!
//! | step | active lanes afterwards |
//! |---|---|
//! | open | unchanged |
//! | if | those where the condition holds; the others wait for the else |
//! | else | those that waited for it |
//! | end | those that a break sent here |
//! | end of loop | those that continued, if any: the body again; else those that a break sent here |
//!
//! Where no lane is active, the steps up to the next close are skipped. Lanes that wait for others of the sub-group
//! which may be elsewhere leave the rest to go on ([`parts`](super::parts)).
//!
//! A loop whose iterations read the same by atomic operations or volatile loads, and change nothing, waits for others:
//! the sub-group stops, for them to have their turn.

use super::lane_op::LaneOp;
use super::lanes::{Lanes, Mask, Registers, Slot};
use super::parts::{Next, Part};
use super::tape::{Tape, TapeStep};
use super::work_group::{SubGroup, WorkGroup};
use crate::Result;
use crate::ir::{Kernel, Place};

/// Watches a sub-group: for the symbolic checker and for coverage. Steps are numbers on the kernel's tape.
#[doc(hidden)]
pub trait Observer {
    /// An operation is about to run on the lanes of `mask`.
    fn op(
        &mut self,
        _op: &LaneOp,
        _registers: &Registers,
        _mask: Mask,
        _sub_group: &SubGroup,
        _group: &WorkGroup<'_>,
    ) {
    }

    /// The scope that is this step opens, on the lanes of `mask`.
    fn open(&mut self, _step: usize, _mask: Mask, _sub_group: &SubGroup) {}

    /// The `if` that is this step parts the lanes.
    fn branch(&mut self, _step: usize, _then: Mask, _otherwise: Mask, _sub_group: &SubGroup) {}

    /// The lanes of `mask` take the `break`, `continue` or `return` that is this step.
    fn jump(&mut self, _step: usize, _mask: Mask, _sub_group: &SubGroup) {}

    /// No lane is left in the loop that ends at this step.
    fn end_loop(&mut self, _step: usize, _sub_group: &SubGroup) {}

    /// Whether a sub-group that has taken this many steps may end with this iteration: the observer needs no more of it.
    fn has_enough(&self, _steps: u64) -> bool {
        false
    }

    /// Each first slot is about to take the value of each second one, on the lanes of `mask`.
    fn assign(
        &mut self,
        _moves: &[(Slot, Slot)],
        _registers: &Registers,
        _mask: Mask,
        _sub_group: &SubGroup,
    ) {
    }
}

/// No observer.
pub(crate) struct Unobserved;

impl Observer for Unobserved {}

/// A sub-group that runs, or waits at a barrier.
pub(super) struct Runner {
    pub sub_group: SubGroup,
    pub(super) registers: Registers,
    pub(super) step: usize,
    pub(super) active: Mask,
    /// Those that have not returned.
    pub(super) alive: Mask,
    pub(super) scopes: Vec<Waiting>,
    /// Those that are neither active nor wait in a scope.
    pub(super) parts: Vec<Part>,
    /// Steps taken and operations run.
    pub steps: u64,
    pub operations: u64,
    waits: Waits,
}

/// How long it has been going round without anything new.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// Iterations in a row that read the same and changed nothing.
    idle: u32,
    /// How many more than [`IDLE`] it takes until others get their turn: more each time.
    patience: u32,
    /// Iterations with strong reads since it began or went on.
    turns: u32,
    digest: u64,
    changes: u64,
}

/// Iterations that read the same and change nothing after which others get their turn.
const IDLE: u32 = 2;
/// Iterations that they wait longer at most.
const PATIENCE: u32 = 255;
/// Iterations with strong reads after which they do, whatever the values.
const TURNS: u32 = 1 << 12;

/// All that a sub-group's further way depends on, but memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Position {
    step: usize,
    active: Mask,
    alive: Mask,
    scopes: Vec<Waiting>,
    parts: Vec<Part>,
    registers: Registers,
}

/// The lanes that wait in an open scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    otherwise: Mask,
    left: Mask,
    next: Mask,
}

impl Waiting {
    /// Whether any wait.
    pub(crate) fn has_lanes(&self) -> bool {
        !self.otherwise.or(self.left).or(self.next).is_empty()
    }

    /// Those of another part of the sub-group wait here, too.
    pub(crate) fn join(&mut self, other: Waiting) {
        self.otherwise = self.otherwise.or(other.otherwise);
        self.left = self.left.or(other.left);
        self.next = self.next.or(other.next);
    }
}

/// Why a sub-group stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All its work-items have ended.
    Ended,
    /// It goes round in a loop and reads the same again and again: others may have to do something first.
    Waits { place: Place },
    /// It has reached the barrier that is this step.
    Barrier {
        step: usize,
        place: Place,
        /// For a named one: its number, and how many sub-groups meet there.
        named: Option<(u32, u32)>,
    },
}

impl Runner {
    /// A sub-group before the first step; whole ones have `size` work-items.
    pub(crate) fn new(tape: &Tape, sub_group: SubGroup, size: u32, arguments: &[u64]) -> Runner {
        let mut registers = Registers::new(tape.slots, size);
        for &(slot, bits) in &tape.constants {
            registers.broadcast(slot, bits);
        }
        for (&slot, &bits) in tape.params.iter().zip(arguments) {
            registers.broadcast(slot, bits);
        }
        let mut runner = Runner {
            registers,
            step: 0,
            active: Mask::NONE,
            alive: Mask::NONE,
            scopes: Vec::new(),
            parts: Vec::new(),
            steps: 0,
            operations: 0,
            waits: Waits::default(),
            sub_group,
        };
        runner.begin(runner.sub_group.clone());
        runner
    }

    /// Starts over as another sub-group; constants and parameters are still in their slots.
    pub(crate) fn begin(&mut self, sub_group: SubGroup) {
        self.step = 0;
        self.active = sub_group.mask();
        self.alive = self.active;
        self.scopes.clear();
        self.parts.clear();
        self.steps = 0;
        self.operations = 0;
        self.waits = Waits::default();
        self.sub_group = sub_group;
    }

    /// Where it stands.
    pub(crate) fn position(&self) -> Position {
        Position {
            step: self.step,
            active: self.active,
            alive: self.alive,
            scopes: self.scopes.clone(),
            parts: self.parts.clone(),
            registers: self.registers.clone(),
        }
    }

    /// The first work-item that has ended, if any has.
    pub(crate) fn first_ended(&self) -> Option<u32> {
        let lane = (0..self.sub_group.size()).find(|&lane| !self.alive.contains(lane))?;
        Some(self.sub_group.work_item(lane))
    }

    /// The first of its work-items that has not ended.
    pub(crate) fn first_alive(&self) -> u32 {
        self.sub_group.work_item(self.alive.lanes().next().unwrap_or(0))
    }

    /// Bytes of its registers.
    pub(crate) fn bytes(&self) -> u64 {
        self.registers.bytes()
    }

    /// Its reads in a loop have not changed. The iteration has just ended.
    fn is_waiting(&mut self, group: &mut WorkGroup<'_>) -> bool {
        let polls = std::mem::take(&mut group.polls);
        if polls.count == 0 {
            return false;
        }
        let waits = &mut self.waits;
        if (polls.digest, group.changes) == (waits.digest, waits.changes) {
            waits.idle += 1;
        } else {
            (waits.idle, waits.patience) = (0, 0);
        }
        (waits.digest, waits.changes) = (polls.digest, group.changes);
        waits.turns += 1;
        let is_waiting = waits.idle >= IDLE + waits.patience || waits.turns >= TURNS;
        if is_waiting {
            (waits.idle, waits.turns) = (0, 0);
            // It may count its turns.
            waits.patience = (waits.patience * 2 + 1).min(PATIENCE);
        }
        is_waiting
    }

    /// Runs until the next barrier or the end, or until it waits for others.
    ///
    /// # Errors
    /// A check failed; the limit on operations is passed; a barrier, or an operation with a mask, is reached by some
    /// of the lanes only that must reach it.
    pub(crate) fn run(
        &mut self,
        tape: &Tape,
        group: &mut WorkGroup<'_>,
        limit: u64,
        observer: &mut impl Observer,
    ) -> Result<Stop> {
        let mut step = self.step;
        loop {
            self.steps += 1;
            match &tape.steps[step] {
                TapeStep::Op(op) => {
                    self.execute(op, group, observer)?;
                    step += 1;
                }
                TapeStep::Touch(op) => {
                    observer.op(op, &self.registers, self.active, &self.sub_group, group);
                    group.touch(op, &mut self.registers, &self.sub_group, self.active)?;
                    step += 1;
                }
                TapeStep::Skip(count) => {
                    self.steps += count - 1;
                    step += 1;
                }
                TapeStep::Together { op, outside } => {
                    self.leave_incomplete(op, step, group)?;
                    if !self.active.is_empty() {
                        self.execute(op, group, observer)?;
                    }
                    step = self.behind(step, *outside);
                }
                TapeStep::Assign(moves) => {
                    observer.assign(moves, &self.registers, self.active, &self.sub_group);
                    self.registers.assign(moves, self.active);
                    if group.state.has_products {
                        group.move_in_flight(moves, &self.sub_group);
                    }
                    step += 1;
                }
                TapeStep::Open => {
                    observer.open(step, self.active, &self.sub_group);
                    self.scopes.push(Waiting::default());
                    step += 1;
                }
                TapeStep::If { cond, otherwise } => {
                    let holds = self.registers.truth(*cond, self.active);
                    observer.branch(step, holds, self.active.without(holds), &self.sub_group);
                    self.scopes.push(Waiting {
                        otherwise: self.active.without(holds),
                        ..Waiting::default()
                    });
                    self.active = holds;
                    step = self.behind(step, *otherwise);
                }
                TapeStep::Else { .. }
                | TapeStep::End { .. }
                | TapeStep::EndLoop { .. }
                | TapeStep::Finish
                    if !self.parts.is_empty()
                        && let Some(behind) = self.gather(step) =>
                {
                    step = behind;
                }
                TapeStep::Else { end } => {
                    if let Some(scope) = self.scopes.last_mut() {
                        self.active = std::mem::take(&mut scope.otherwise);
                    }
                    step = self.behind(step, *end);
                }
                TapeStep::End { first, outside } => {
                    self.close(tape, *first, step, group)?;
                    step = self.behind(step, *outside);
                }
                TapeStep::EndLoop { body, outside, place } => {
                    let ends = (*body, *outside, *place);
                    match self.end_loop(step, ends, tape, group, limit, observer)? {
                        Next::Step(next) => step = next,
                        Next::Stop(stop) => return Ok(stop),
                    }
                }
                TapeStep::Break { depth } => {
                    observer.jump(step, self.active, &self.sub_group);
                    let left = &mut self.scopes[*depth].left;
                    *left = left.or(std::mem::take(&mut self.active));
                    step += 1;
                }
                TapeStep::Continue { depth } => {
                    observer.jump(step, self.active, &self.sub_group);
                    let next = &mut self.scopes[*depth].next;
                    *next = next.or(std::mem::take(&mut self.active));
                    step += 1;
                }
                TapeStep::Return => {
                    observer.jump(step, self.active, &self.sub_group);
                    group.return_(&self.sub_group, self.active)?;
                    self.alive = self.alive.without(self.active);
                    self.active = Mask::NONE;
                    step += 1;
                }
                TapeStep::Trap { place } => return Err(group.trapped(&self.sub_group, self.active, *place)),
                TapeStep::Barrier { outside, .. } if !self.alive.without(self.active).is_empty() => {
                    // The others may be about to end.
                    self.leave(self.active, step);
                    step = *outside;
                }
                TapeStep::Barrier { place, named, .. } => {
                    self.step = step + 1;
                    return Ok(Stop::Barrier {
                        step,
                        place: *place,
                        named: *named,
                    });
                }
                TapeStep::Finish => match self.next(tape, group, observer, step)? {
                    Next::Step(behind) => step = behind,
                    Next::Stop(stop) => return Ok(stop),
                },
            }
        }
    }

    /// The step after this one: `outside`, if no lane is active.
    #[inline]
    fn behind(&self, step: usize, outside: usize) -> usize {
        match self.active.is_empty() {
            true => outside,
            false => step + 1,
        }
    }

    /// At the end of a scope that begins at `first`: those go on who have left it.
    #[inline]
    fn close(&mut self, tape: &Tape, first: usize, step: usize, group: &WorkGroup<'_>) -> Result<()> {
        self.active = self.scopes.pop().unwrap_or_default().left;
        match self.parts.is_empty() {
            true => Ok(()),
            false => self.pass(tape, first, step, group),
        }
    }

    /// At the end of a loop: those go on in the body who continued, or else those behind it who have left it.
    fn end_loop(
        &mut self,
        step: usize,
        (body, outside, place): (usize, usize, Place),
        tape: &Tape,
        group: &mut WorkGroup<'_>,
        limit: u64,
        observer: &mut impl Observer,
    ) -> Result<Next> {
        // A body without operations of its own is reported by the loop around it.
        let place = || match tape.place(body) {
            Kernel::NOWHERE => place,
            inside => inside,
        };
        group.state.check_stop()?;
        if self.steps > limit {
            return Err(group.endless(&self.sub_group, self.alive, limit, place()));
        }
        let scope = self.scopes.last_mut();
        let next = scope.map_or(Mask::NONE, |scope| std::mem::take(&mut scope.next));
        if next.is_empty() {
            observer.end_loop(step, &self.sub_group);
            self.close(tape, body, step, group)?;
            return Ok(Next::Step(self.behind(step, outside)));
        }
        if observer.has_enough(self.steps) {
            return Ok(Next::Stop(Stop::Ended));
        }
        self.active = next;
        if group.state.may_spin && self.is_waiting(group) {
            self.step = body;
            return Ok(Next::Stop(Stop::Waits { place: place() }));
        }
        Ok(Next::Step(body))
    }

    /// Before an operation with a mask: those wait there whose party is not complete.
    fn leave_incomplete(&mut self, op: &LaneOp, step: usize, group: &WorkGroup<'_>) -> Result<()> {
        if let Some(mask) = op.party {
            let masks = self.registers.get(mask);
            group.are_in_their_parties(op, masks, &self.sub_group, self.active)?;
            let waiting = self.active.without(self.complete(masks));
            if !waiting.is_empty() {
                self.leave(waiting, step);
            }
        }
        Ok(())
    }

    /// Runs an operation on the active lanes.
    pub(super) fn execute(
        &mut self,
        op: &LaneOp,
        group: &mut WorkGroup<'_>,
        observer: &mut impl Observer,
    ) -> Result<()> {
        self.operations += u64::from(self.active.count());
        observer.op(op, &self.registers, self.active, &self.sub_group, group);
        if group.state.has_products {
            group.check_in_flight(op, &self.sub_group)?;
        }
        if self.parts.is_empty() {
            return group.execute(op, &mut self.registers, &self.sub_group, self.active);
        }
        // The other parts may be anywhere, and need what is in their lanes.
        let results = op.results();
        let before: Vec<(Slot, Lanes)> = results
            .iter()
            .map(|&slot| (slot, self.registers.lanes(slot)))
            .collect();
        group.execute(op, &mut self.registers, &self.sub_group, self.active)?;
        for (slot, before) in &before {
            let others = self.sub_group.mask().without(self.active);
            self.registers.restore(*slot, before, others);
        }
        Ok(())
    }
}
