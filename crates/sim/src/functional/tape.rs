//! The tape: a kernel as a flat list of steps, values in register slots.
//!
//! ```text
//! loop @l (i = 0) { … if c { break @l } else { continue @l (j) } }
//!
//! 0  assign i ← 0
//! 1  loop                  opens a scope
//!    …
//! 4  if c, else at 6       opens a scope
//! 5  break 0               these lanes leave the scope at depth 0
//! 6  else, end at 9
//! 7  assign i ← j
//! 8  continue 0
//! 9  end
//! 10 end of loop, body at 2
//! 11 finish
//! ```
//!
//! Running it is described in [`sub_group`](super::sub_group).

use super::lane_op::LaneOp;
use super::lanes::Slot;
use super::needed::{Flow, Need, Needed, Wanted};
use super::slots;
use crate::ir::effects::Meets;
use crate::ir::{Kernel, Label, Meeting, Op, OpKind, Place, Region, Value};

/// A compiled kernel.
#[derive(Debug)]
pub(super) struct Tape {
    pub steps: Vec<TapeStep>,
    /// How many slots the registers need.
    pub slots: u32,
    /// The initial contents of some slots.
    pub constants: Vec<(Slot, u64)>,
    /// Where each parameter's value is wanted.
    pub params: Vec<Slot>,
    pub has_barriers: bool,
    /// Unnamed registers: a result and three operands of a collective operation of lanes that have come to different steps.
    pub between: [Slot; 4],
}

/// One step. `depth` counts the scopes around, 0 is the outermost.
#[derive(Clone, Debug)]
pub(super) enum TapeStep {
    Op(LaneOp),
    /// An access whose data are not needed: only its addresses.
    Touch(LaneOp),
    /// This many operations whose results are not needed.
    Skip(u64),
    /// An operation of those that a mask names. `outside` closes the region around: there the others may be.
    Together {
        op: LaneOp,
        outside: usize,
    },
    /// Opens a scope.
    Open,
    /// Opens a scope, and goes on with the lanes where the condition holds. `otherwise` is its `Else`.
    If {
        cond: Slot,
        otherwise: usize,
    },
    /// Goes on with the lanes where the condition did not hold. `end` is its `End`.
    Else {
        end: usize,
    },
    /// Closes a block or `if` that begins with step `first`. `outside` closes the region around.
    End {
        first: usize,
        outside: usize,
    },
    /// Closes a loop whose first step is `body`.
    EndLoop {
        body: usize,
        outside: usize,
        place: Place,
    },
    /// Each first slot takes the old value of each second one, on active lanes.
    Assign(Box<[(Slot, Slot)]>),
    Break {
        depth: usize,
    },
    Continue {
        depth: usize,
    },
    Return,
    /// The kernel says that something is wrong.
    Trap {
        place: Place,
    },
    Barrier {
        place: Place,
        /// For a named one: its number, and how many sub-groups meet there.
        named: Option<(u32, u32)>,
        /// The vote of all work-items that meet here: a `Bool`.
        asks: Option<Slot>,
        /// Closes the region around: there the others may be.
        outside: usize,
    },
    /// The end of the tape.
    Finish,
}

impl Tape {
    /// Compiles a verified kernel.
    pub(crate) fn new(kernel: &Kernel) -> Tape {
        Tape::with(kernel, None)
    }

    /// The same, but only for what is wanted: of operations whose results that does not depend on, the steps are counted, and of
    /// a choice that is not needed those of its first region ([`needed`](super::needed)).
    pub(crate) fn only_for(wanted: Wanted, kernel: &Kernel) -> Tape {
        Tape::with(kernel, Some(&Needed::of(&Flow::of(kernel), wanted)))
    }

    fn with(kernel: &Kernel, needed: Option<&Needed>) -> Tape {
        let mut writer = Writer {
            kernel,
            needed,
            steps: Vec::new(),
            scopes: Vec::new(),
            ranges: Vec::new(),
            unresolved: Vec::new(),
            breaks: Vec::new(),
            has_barriers: false,
        };
        writer.region(&kernel.body);
        writer.steps.push(TapeStep::Finish);
        writer.return_at_once();
        let Writer {
            mut steps,
            ranges,
            has_barriers,
            ..
        } = writer;
        let assignment = slots::assign(kernel, &steps, &ranges);
        for step in &mut steps {
            step.map_slots(&mut |slot| *slot = assignment.slot(*slot));
        }
        Tape {
            steps,
            slots: assignment.count + 4,
            between: [0, 1, 2, 3].map(|extra| Slot(assignment.count + extra)),
            params: kernel
                .params
                .iter()
                .map(|param| assignment.slot(virtual_slot(param.value)))
                .collect(),
            constants: assignment.constants,
            has_barriers,
        }
    }
}

impl Tape {
    /// The source of the first operation from a step on.
    pub(crate) fn place(&self, step: usize) -> Place {
        let mut places = self.steps[step..].iter().filter_map(TapeStep::place);
        places
            .find(|&place| place != Kernel::NOWHERE)
            .unwrap_or(Kernel::NOWHERE)
    }

    /// The source of the last operation before a step.
    pub(crate) fn place_before(&self, step: usize) -> Place {
        let mut places = self.steps[..step].iter().rev().filter_map(TapeStep::place);
        places
            .find(|&place| place != Kernel::NOWHERE)
            .unwrap_or(Kernel::NOWHERE)
    }
}

/// Before slots are assigned, a value's slot is its number.
fn virtual_slot(value: Value) -> Slot {
    Slot(value.as_u32())
}

/// The steps between which a label's results, or a loop's parameters, must be kept.
#[derive(Debug)]
pub(super) struct ScopeRange {
    pub first: usize,
    pub last: usize,
    pub is_loop: bool,
    /// Virtual slots of the results.
    pub results: Vec<Slot>,
    /// Virtual slots of the loop's parameters.
    pub params: Vec<Slot>,
}

struct OpenScope<'k> {
    label: Label,
    results: &'k [Value],
    params: &'k [Value],
    /// Its number in [`Writer::ranges`].
    range: usize,
}

struct Writer<'k> {
    kernel: &'k Kernel,
    /// What is carried out; none if all is.
    needed: Option<&'k Needed>,
    steps: Vec<TapeStep>,
    scopes: Vec<OpenScope<'k>>,
    ranges: Vec<ScopeRange>,
    /// Steps in regions that are not closed yet, which name the close.
    unresolved: Vec<usize>,
    /// The steps that leave a scope, and the scope's number in `ranges`.
    breaks: Vec<(usize, usize)>,
    has_barriers: bool,
}

impl<'k> Writer<'k> {
    /// Writes a region; the step that closes it comes next. Scopes directly inside go on there when no
    /// lane is left.
    fn region(&mut self, region: &'k Region) {
        let before = self.unresolved.len();
        for op in &region.ops {
            self.op(op);
        }
        let close = self.steps.len();
        for index in self.unresolved.drain(before..) {
            if let TapeStep::End { outside, .. }
            | TapeStep::EndLoop { outside, .. }
            | TapeStep::Together { outside, .. }
            | TapeStep::Barrier { outside, .. } = &mut self.steps[index]
            {
                *outside = close;
            }
        }
    }

    fn op(&mut self, op: &'k Op) {
        match &op.kind {
            OpKind::Block { label, body } => {
                let first = self.open(*label, op, &[], &[], TapeStep::Open);
                self.region(body);
                self.end(TapeStep::End { first, outside: 0 });
            }
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                ..
            } => {
                self.open(*label, op, params, initial, TapeStep::Open);
                let start = self.steps.len();
                self.region(body);
                self.end(TapeStep::EndLoop {
                    body: start,
                    outside: 0,
                    place: op.place,
                });
            }
            OpKind::If { cond, then, .. } if self.needed.is_some_and(|needed| !needed.has(*cond)) => {
                self.skip_branch(then);
            }
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => {
                let cond = virtual_slot(*cond);
                let first = self.open(*label, op, &[], &[], TapeStep::If { cond, otherwise: 0 });
                self.region(then);
                let middle = self.steps.len();
                self.steps[first] = TapeStep::If {
                    cond,
                    otherwise: middle,
                };
                self.steps.push(TapeStep::Else { end: 0 });
                self.region(otherwise);
                let end = self.end(TapeStep::End { first, outside: 0 });
                self.steps[middle] = TapeStep::Else { end };
            }
            OpKind::Break(label, values) => {
                let depth = self.depth(*label);
                self.assign(self.scopes[depth].results, values);
                self.breaks.push((self.steps.len(), self.scopes[depth].range));
                self.steps.push(TapeStep::Break { depth });
            }
            OpKind::Continue(label, values) => {
                let depth = self.depth(*label);
                self.assign(self.scopes[depth].params, values);
                self.steps.push(TapeStep::Continue { depth });
            }
            OpKind::Return => self.steps.push(TapeStep::Return),
            OpKind::Trap => self.steps.push(TapeStep::Trap { place: op.place }),
            // Launches follow each other here: there is nothing to wait for.
            OpKind::Depend(_) => {}
            kind if kind.effects().meets == Meets::WorkGroup => {
                self.has_barriers = true;
                let (named, asks) = match *kind {
                    OpKind::Meet(Meeting::Named { number, sub_groups }) => (Some((number, sub_groups)), None),
                    OpKind::GroupVote(_, value) => (None, Some(virtual_slot(value))),
                    _ => (None, None),
                };
                self.waits(TapeStep::Barrier {
                    place: op.place,
                    named,
                    asks,
                    outside: 0,
                });
                // What they make together.
                self.steps
                    .extend(LaneOp::new(self.kernel, op, virtual_slot).map(TapeStep::Op));
            }
            _ => {
                let Some(lane_op) = LaneOp::new(self.kernel, op, virtual_slot) else {
                    return;
                };
                let need = |needed: &Needed| needed.of_op(self.kernel, op);
                match self.needed.map_or(Need::All, need) {
                    _ if lane_op.party.is_some() => self.waits(TapeStep::Together {
                        op: lane_op,
                        outside: 0,
                    }),
                    Need::All => self.steps.push(TapeStep::Op(lane_op)),
                    Need::Access => self.steps.push(TapeStep::Touch(lane_op)),
                    Need::Nothing => self.skip(),
                }
            }
        }
    }

    /// Counts an operation that is not carried out.
    fn skip(&mut self) {
        match self.steps.last_mut() {
            Some(TapeStep::Skip(count)) => *count += 1,
            _ => self.steps.push(TapeStep::Skip(1)),
        }
    }

    /// Counts the steps of a branch that goes into its first region, which only computes.
    fn skip_branch(&mut self, then: &Region) {
        for op in &then.ops {
            match &op.kind {
                OpKind::If { then, .. } => self.skip_branch(then),
                _ => self.skip(),
            }
        }
        // `If` and `End`.
        self.skip();
        self.skip();
    }

    /// Writes a step at which lanes may wait while others go on.
    fn waits(&mut self, step: TapeStep) {
        self.unresolved.push(self.steps.len());
        self.steps.push(step);
    }

    /// Lanes that leave a scope behind which only the way to a return is left return: no lane need wait for them. A jump to the
    /// last instruction of a program does the same.
    fn return_at_once(&mut self) {
        // The last ones first: code behind a scope comes after it.
        let mut breaks = std::mem::take(&mut self.breaks);
        breaks.sort_unstable();
        for (at, range) in breaks.into_iter().rev() {
            let mut behind = self.ranges[range].last + 1;
            while matches!(self.steps.get(behind), Some(TapeStep::Assign(_))) {
                behind += 1;
            }
            if matches!(self.steps.get(behind), Some(TapeStep::Return)) {
                self.steps[at] = TapeStep::Return;
            }
        }
    }

    /// Opens a scope; the index of the step that does.
    fn open(
        &mut self,
        label: Label,
        op: &'k Op,
        params: &'k [Value],
        initial: &[Value],
        step: TapeStep,
    ) -> usize {
        let first = self.steps.len();
        self.assign(params, initial);
        let opened = self.steps.len();
        self.steps.push(step);
        self.scopes.push(OpenScope {
            label,
            results: &op.results,
            params,
            range: self.ranges.len(),
        });
        self.ranges.push(ScopeRange {
            first,
            last: usize::MAX,
            is_loop: false,
            results: op.results.iter().map(|&value| virtual_slot(value)).collect(),
            params: params.iter().map(|&value| virtual_slot(value)).collect(),
        });
        opened
    }

    /// Closes the innermost scope with this step; its index.
    fn end(&mut self, step: TapeStep) -> usize {
        let end = self.steps.len();
        let mut unfinished = self.ranges.iter_mut().rev();
        if let Some(range) = unfinished.find(|range| range.last == usize::MAX) {
            range.last = end;
            range.is_loop = matches!(step, TapeStep::EndLoop { .. });
        }
        self.steps.push(step);
        self.unresolved.push(end);
        self.scopes.pop();
        end
    }

    fn assign(&mut self, to: &[Value], from: &[Value]) {
        let moves: Vec<(Value, Value)> = to
            .iter()
            .zip(from)
            .filter(|(to, from)| to != from)
            .map(|(&to, &from)| (to, from))
            .collect();
        if !moves.is_empty() {
            let needed = moves
                .iter()
                .filter(|(to, _)| self.needed.is_none_or(|needed| needed.has(*to)));
            let needed = needed.map(|&(to, from)| (virtual_slot(to), virtual_slot(from)));
            // It is a step, even if it moves nothing.
            self.steps.push(TapeStep::Assign(needed.collect()));
        }
    }

    /// Where a label's scope stands on the stack; the verifier made sure that it does.
    fn depth(&self, label: Label) -> usize {
        let depth = self.scopes.iter().rposition(|scope| scope.label == label);
        depth.expect("the verifier admits only enclosing labels")
    }
}

impl TapeStep {
    /// Where it was written, if it does something itself.
    fn place(&self) -> Option<Place> {
        match self {
            TapeStep::Op(op) | TapeStep::Touch(op) | TapeStep::Together { op, .. } => Some(op.place),
            TapeStep::Barrier { place, .. } | TapeStep::Trap { place } => Some(*place),
            _ => None,
        }
    }

    /// The vote at a barrier, if there is one.
    pub(crate) fn asks(&self) -> Option<Slot> {
        match self {
            TapeStep::Barrier { asks, .. } => *asks,
            _ => None,
        }
    }

    /// Calls `visit` on each slot that the step reads or writes.
    pub(crate) fn for_each_slot(&self, visit: &mut impl FnMut(Slot)) {
        self.clone().map_slots(&mut |slot| visit(*slot));
    }

    /// Calls `map` on each slot that the step reads or writes.
    pub(crate) fn map_slots(&mut self, map: &mut impl FnMut(&mut Slot)) {
        match self {
            TapeStep::Op(op) | TapeStep::Touch(op) | TapeStep::Together { op, .. } => op.map_slots(map),
            TapeStep::If { cond, .. } => map(cond),
            TapeStep::Barrier { asks: Some(slot), .. } => map(slot),
            TapeStep::Assign(moves) => moves.iter_mut().for_each(|(to, from)| {
                map(to);
                map(from);
            }),
            _ => {}
        }
    }
}
