//! Running a tape: one sub-group, its lanes together as long as they go the same way.
//!
//! A stack of scopes holds the lanes that wait. A `break` sends the active lanes to the end of a scope,
//! a `continue` to the next iteration of a loop; then none is active, and what follows is always the
//! close of a region, which brings back those that wait for it:
//!
//! | step | active lanes afterwards |
//! |---|---|
//! | open | unchanged |
//! | if | those where the condition holds; the others wait for the else |
//! | else | those that waited for it |
//! | end | those that a break sent here |
//! | end of loop | those that continued, if any: the body again; else those that a break sent here |
//!
//! Where no lane is active, the steps up to the next close are skipped.

use super::lane_op::LaneOp;
use super::lanes::{Mask, Registers, Slot};
use super::tape::{Step, Tape};
use super::work_group::{SubGroup, WorkGroup};
use crate::Result;
use crate::ir::{Kernel, Place};

/// Watches a sub-group: the symbolic checker and whoever measures coverage do. Steps are numbers on the kernel's tape.
pub(crate) trait Observer {
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

    /// Each first slot is about to take what each second one holds, on the lanes of `mask`.
    fn assign(
        &mut self,
        _moves: &[(Slot, Slot)],
        _registers: &Registers,
        _mask: Mask,
        _sub_group: &SubGroup,
    ) {
    }
}

/// Nobody watches.
pub(crate) struct Unobserved;

impl Observer for Unobserved {}

/// A sub-group that runs, or waits at a barrier.
pub(super) struct Runner {
    pub sub_group: SubGroup,
    registers: Registers,
    step: usize,
    active: Mask,
    /// Those that have not returned.
    alive: Mask,
    scopes: Vec<Waiting>,
    /// Steps taken and operations run.
    pub steps: u64,
    pub operations: u64,
}

/// The lanes that wait in an open scope.
#[derive(Clone, Copy, Default)]
struct Waiting {
    otherwise: Mask,
    left: Mask,
    next: Mask,
}

/// Why a sub-group stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All its work-items have ended.
    Ended,
    /// It has reached the barrier that is this step.
    Barrier {
        step: usize,
        place: Place,
        /// For a named one: its number, and how many sub-groups meet there.
        named: Option<(u32, u32)>,
    },
}

impl Runner {
    /// A sub-group before the first step.
    pub fn new(tape: &Tape, sub_group: SubGroup, arguments: &[u64]) -> Runner {
        let mut registers = Registers::new(tape.slots);
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
            steps: 0,
            operations: 0,
            sub_group,
        };
        runner.begin(runner.sub_group.clone());
        runner
    }

    /// Starts over as another sub-group; constants and parameters are still in their slots.
    pub fn begin(&mut self, sub_group: SubGroup) {
        self.step = 0;
        self.active = sub_group.mask();
        self.alive = self.active;
        self.scopes.clear();
        self.steps = 0;
        self.operations = 0;
        self.sub_group = sub_group;
    }

    /// Runs until the next barrier or the end.
    ///
    /// # Errors
    /// A check failed; the limit on operations is passed; a barrier is reached by some lanes only.
    pub fn run(
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
                Step::Op(op) => {
                    self.operations += u64::from(self.active.count());
                    observer.op(op, &self.registers, self.active, &self.sub_group, group);
                    group.execute(op, &mut self.registers, &self.sub_group, self.active)?;
                    step += 1;
                }
                Step::Assign(moves) => {
                    observer.assign(moves, &self.registers, self.active, &self.sub_group);
                    self.registers.assign(moves, self.active);
                    step += 1;
                }
                Step::Open => {
                    observer.open(step, self.active, &self.sub_group);
                    self.scopes.push(Waiting::default());
                    step += 1;
                }
                Step::If { cond, otherwise } => {
                    let holds = self.registers.truth(*cond, self.active);
                    observer.branch(step, holds, self.active.without(holds), &self.sub_group);
                    self.scopes.push(Waiting {
                        otherwise: self.active.without(holds),
                        ..Waiting::default()
                    });
                    self.active = holds;
                    step = if holds.is_empty() { *otherwise } else { step + 1 };
                }
                Step::Else { end } => {
                    if let Some(scope) = self.scopes.last_mut() {
                        self.active = std::mem::take(&mut scope.otherwise);
                    }
                    step = if self.active.is_empty() { *end } else { step + 1 };
                }
                Step::End { outside } => {
                    self.active = self.scopes.pop().unwrap_or_default().left;
                    step = if self.active.is_empty() {
                        *outside
                    } else {
                        step + 1
                    };
                }
                Step::EndLoop { body, outside, place } => {
                    if self.steps > limit {
                        let inside = tape.place(*body);
                        // A body without operations of its own is told by the loop around it.
                        let place = if inside == Kernel::NOWHERE { *place } else { inside };
                        return Err(group.endless(&self.sub_group, self.alive, limit, place));
                    }
                    let scope = self.scopes.last_mut();
                    let next = scope.map_or(Mask::NONE, |scope| std::mem::take(&mut scope.next));
                    if next.is_empty() {
                        observer.end_loop(step, &self.sub_group);
                        self.active = self.scopes.pop().unwrap_or_default().left;
                        step = if self.active.is_empty() {
                            *outside
                        } else {
                            step + 1
                        };
                    } else {
                        self.active = next;
                        step = *body;
                    }
                }
                Step::Break { depth } => {
                    observer.jump(step, self.active, &self.sub_group);
                    let left = &mut self.scopes[*depth].left;
                    *left = left.or(std::mem::take(&mut self.active));
                    step += 1;
                }
                Step::Continue { depth } => {
                    observer.jump(step, self.active, &self.sub_group);
                    let next = &mut self.scopes[*depth].next;
                    *next = next.or(std::mem::take(&mut self.active));
                    step += 1;
                }
                Step::Return => {
                    observer.jump(step, self.active, &self.sub_group);
                    group.return_(&self.sub_group, self.active)?;
                    self.alive = self.alive.without(self.active);
                    self.active = Mask::NONE;
                    step += 1;
                }
                Step::Trap { place } => return Err(group.trapped(&self.sub_group, self.active, *place)),
                Step::Barrier { place, named } => {
                    let missing = self.alive.without(self.active);
                    if let Some(lane) = missing.lanes().next() {
                        return Err(group.divergent_barrier(&self.sub_group, self.active, lane, *place));
                    }
                    self.step = step + 1;
                    return Ok(Stop::Barrier {
                        step,
                        place: *place,
                        named: *named,
                    });
                }
                Step::Finish => {
                    self.step = step;
                    return Ok(Stop::Ended);
                }
            }
        }
    }
}
