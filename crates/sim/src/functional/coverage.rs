//! A run's coverage: sides of branches, exits of loops, trip counts, touched memory.
//!
//! [`Sites`] are the places of a kernel that a run can reach; [`Covered`] has those that one run reached. A test that aims to
//! reach all of a kernel runs it with [`CompiledKernel::run_covering`] and checks the rest.
//!
//! A loop's *trip count* is the number of times that a work-item ran its body. If the loop exits before its first access to
//! memory (`while`), this is the number of jumps back to the top; otherwise (`do … while`) one more. A work-item that never
//! reached the loop has a trip count of 0.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::lane_op::{LaneOp, LaneOpKind, Touches};
use super::lanes::{LANES, Mask, Registers};
use super::options::Options;
use super::run::{CompiledKernel, Groups};
use super::sub_group::Observer;
use super::tape::{Tape, TapeStep};
use super::work_group::{SubGroup, WorkGroup};
use crate::Result;
use crate::device::{Counters, Launch};
use crate::ir::{LoadId, Place};

/// The places of a kernel that a run can go through.
#[derive(Clone, Debug, Default)]
#[doc(hidden)]
pub struct Sites {
    /// Both sides of each branch, then the ways out of loops.
    pub edges: Vec<ControlEdge>,
    /// The loops, the outer ones first.
    pub loops: Vec<LoopSite>,
    /// The kind of each step of the tape.
    steps: Vec<At>,
}

/// An edge of the control flow.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct ControlEdge {
    pub kind: ControlEdgeKind,
    /// Where it leads, or where it is taken.
    pub place: Place,
    /// It only says that something is wrong.
    pub traps: bool,
}

/// The kind of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum ControlEdgeKind {
    /// A branch whose condition holds.
    Then,
    /// A branch whose condition does not hold.
    Otherwise,
    /// A way out of a loop.
    Exit,
}

/// A loop.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct LoopSite {
    /// Its first operation.
    pub place: Place,
    /// It can be left before its first access to memory.
    pub(crate) tested_first: bool,
    /// Its reads, without those of inner loops.
    pub loads: BTreeSet<LoadId>,
    /// There is another loop inside.
    pub is_outer: bool,
}

/// The kind of a step, for coverage.
#[derive(Clone, Copy, Debug, Default)]
enum At {
    #[default]
    Nothing,
    /// The first of the branch's two ways.
    Branch(usize),
    /// Opens this loop.
    Open(usize),
    /// Goes back to the top of this loop.
    Again(usize),
    /// This way out.
    Exit(usize),
    /// Ends this loop.
    End(usize),
}

/// Numbers of iterations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct TripCounts(pub BTreeSet<u32>);

/// How far a buffer was touched, in bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct Extent {
    /// Where the furthest access inside or beyond the buffer ends.
    pub end: u64,
    /// Where the furthest write ends.
    pub written: u64,
}

/// A run's coverage.
#[derive(Clone, Debug, Default)]
#[doc(hidden)]
pub struct Covered {
    /// Of each edge of [`Sites::edges`], whether it was taken.
    pub edges: Vec<bool>,
    /// Of each loop of [`Sites::loops`].
    pub trips: Vec<TripCounts>,
    /// Of each buffer, in the order of the parameters that name them first.
    pub extents: Vec<Extent>,
    /// Operations that sub-groups ran.
    pub operations: u64,
}

impl Sites {
    /// The places of a compiled kernel.
    fn new(tape: &Tape) -> Sites {
        let mut sites = Sites {
            steps: vec![At::Nothing; tape.steps.len()],
            ..Sites::default()
        };
        let mut exits = Vec::new();
        // The loop that each open scope is, if it is one.
        let mut scopes: Vec<Option<usize>> = Vec::new();
        let loops = loop_starts(tape);
        for (index, step) in tape.steps.iter().enumerate() {
            match step {
                TapeStep::Open if loops[index] => {
                    let number = sites.loops.len();
                    sites.steps[index] = At::Open(number);
                    sites.loops.push(loop_site(tape, index));
                    scopes.push(Some(number));
                }
                TapeStep::Open => scopes.push(None),
                TapeStep::If { otherwise, .. } => {
                    sites.steps[index] = At::Branch(sites.edges.len());
                    let sides = [
                        (ControlEdgeKind::Then, index + 1),
                        (ControlEdgeKind::Otherwise, otherwise + 1),
                    ];
                    sites.edges.extend(sides.map(|(kind, start)| ControlEdge {
                        kind,
                        place: tape.place(start),
                        traps: traps(tape, start),
                    }));
                    scopes.push(None);
                }
                TapeStep::Break { depth } if scopes[*depth..].iter().any(Option::is_some) => {
                    exits.push(index)
                }
                TapeStep::Return if scopes.iter().any(Option::is_some) => exits.push(index),
                TapeStep::Continue { depth } => {
                    if let Some(number) = scopes[*depth] {
                        sites.steps[index] = At::Again(number);
                    }
                }
                TapeStep::End { .. } => {
                    scopes.pop();
                }
                TapeStep::EndLoop { .. } => {
                    if let Some(number) = scopes.pop().flatten() {
                        sites.steps[index] = At::End(number);
                    }
                }
                _ => {}
            }
        }
        for index in exits {
            sites.steps[index] = At::Exit(sites.edges.len());
            sites.edges.push(ControlEdge {
                kind: ControlEdgeKind::Exit,
                place: tape.place_before(index),
                traps: false,
            });
        }
        sites
    }

    fn at(&self, step: usize) -> At {
        self.steps.get(step).copied().unwrap_or_default()
    }
}

/// Whether each step opens a loop.
fn loop_starts(tape: &Tape) -> Vec<bool> {
    let mut starts = vec![false; tape.steps.len()];
    for step in &tape.steps {
        if let TapeStep::EndLoop { body, .. } = step
            && let Some(start) = body.checked_sub(1)
        {
            starts[start] = true;
        }
    }
    starts
}

fn loop_site(tape: &Tape, open: usize) -> LoopSite {
    let mut depth = 0usize;
    let own = scope_depth(tape, open);
    let (mut leaves, mut tested_first, mut is_outer) = (false, None, false);
    let mut loads = BTreeSet::new();
    let starts = loop_starts(tape);
    let mut loops_inside: Vec<usize> = Vec::new();
    for (index, step) in tape.steps.iter().enumerate().skip(open + 1) {
        match step {
            TapeStep::Open | TapeStep::If { .. } => {
                depth += 1;
                if starts[index] {
                    is_outer = true;
                    loops_inside.push(depth);
                }
            }
            TapeStep::End { .. } | TapeStep::EndLoop { .. } if depth == 0 => break,
            TapeStep::End { .. } | TapeStep::EndLoop { .. } => {
                if loops_inside.last() == Some(&depth) {
                    loops_inside.pop();
                }
                depth -= 1;
            }
            // Which scope a break leaves follows from where it leads: out of this one, or further.
            TapeStep::Break { depth: target } => leaves |= *target <= own,
            TapeStep::Return => leaves = true,
            TapeStep::Op(op) if touches_memory(op) => {
                tested_first.get_or_insert(leaves);
                if loops_inside.is_empty()
                    && let LaneOpKind::Load { id, .. } | LaneOpKind::Copy { id, .. } = op.kind
                {
                    loads.insert(id);
                }
            }
            _ => {}
        }
    }
    LoopSite {
        place: tape.place(open),
        tested_first: tested_first.unwrap_or(leaves),
        loads,
        is_outer,
    }
}

/// How many scopes are open around a step.
fn scope_depth(tape: &Tape, step: usize) -> usize {
    tape.steps[..step].iter().fold(0usize, |depth, step| match step {
        TapeStep::Open | TapeStep::If { .. } => depth + 1,
        TapeStep::End { .. } | TapeStep::EndLoop { .. } => depth.saturating_sub(1),
        _ => depth,
    })
}

fn touches_memory(op: &LaneOp) -> bool {
    matches!(
        op.kind,
        LaneOpKind::Load { .. }
            | LaneOpKind::Store { .. }
            | LaneOpKind::Atomic { .. }
            | LaneOpKind::Copy { .. }
    )
}

/// Whether the side of a branch that starts at a step ends in a trap, with no way on before.
fn traps(tape: &Tape, start: usize) -> bool {
    for step in &tape.steps[start..] {
        match step {
            TapeStep::Op(_) | TapeStep::Touch(_) | TapeStep::Skip(_) | TapeStep::Assign(_) => {}
            TapeStep::Trap { .. } => return true,
            _ => return false,
        }
    }
    false
}

impl Covered {
    fn new(sites: &Sites, buffers: usize) -> Covered {
        Covered {
            edges: vec![false; sites.edges.len()],
            trips: vec![TripCounts::default(); sites.loops.len()],
            extents: vec![Extent::default(); buffers],
            operations: 0,
        }
    }

    /// Merges another run's coverage; extents belong to one launch, and stay.
    #[doc(hidden)]
    pub fn merge(&mut self, other: &Covered) {
        self.edges.resize(other.edges.len(), false);
        self.trips.resize(other.trips.len(), TripCounts::default());
        for (own, other) in self.edges.iter_mut().zip(&other.edges) {
            *own |= other;
        }
        for (own, other) in self.trips.iter_mut().zip(&other.trips) {
            own.0.extend(&other.0);
        }
        self.operations += other.operations;
    }
}

impl CompiledKernel {
    /// The places that a run can go through.
    #[doc(hidden)]
    pub fn sites(&self) -> Sites {
        Sites::new(self.tape())
    }

    /// Runs work-groups of a launch, as [`CompiledKernel::run`], and gives their coverage: up to the fault, if there was one.
    #[doc(hidden)]
    pub fn run_covering(
        &self,
        sites: &Sites,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &Groups,
    ) -> (Result<Counters>, Covered) {
        let buffers = launch.arguments.len();
        let all = Mutex::new(Covered::new(sites, buffers));
        let begin = |_| Watching::new(sites, &all, launch, sub_group_size);
        let end = |_, mut watching: Watching<'_>| watching.ended = true;
        let ran = self.run_observed(launch, sub_group_size, options, groups, &begin, &end);
        let covered = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        (ran.map(|(counters, _)| counters), covered)
    }
}

/// Watches a work-group.
struct Watching<'s> {
    sites: &'s Sites,
    all: &'s Mutex<Covered>,
    own: Covered,
    sub_groups: Vec<Trips>,
    /// All its work-items have ended well.
    ended: bool,
}

/// The loops of a sub-group.
struct Trips {
    mask: Mask,
    /// Of each loop: how often each lane went back to the top since it came to it.
    again: Vec<[u32; LANES]>,
    /// Of each loop: the lanes that are or were in it since it was opened.
    inside: Vec<Mask>,
    /// Of each loop: the lanes that ever came to it.
    ever: Vec<Mask>,
}

impl<'s> Watching<'s> {
    fn new(sites: &'s Sites, all: &'s Mutex<Covered>, launch: &Launch, sub_group_size: u32) -> Watching<'s> {
        let items = launch.group_items() as u32;
        let loops = sites.loops.len();
        let trips = |first: u32| Trips {
            mask: Mask::first((items - first).min(sub_group_size)),
            again: vec![[0; LANES]; loops],
            inside: vec![Mask::NONE; loops],
            ever: vec![Mask::NONE; loops],
        };
        Watching {
            sites,
            all,
            own: Covered::new(sites, launch.arguments.len()),
            sub_groups: (0..items).step_by(sub_group_size as usize).map(trips).collect(),
            ended: false,
        }
    }

    fn touched(&mut self, touches: Touches, registers: &Registers, mask: Mask, group: &WorkGroup<'_>) {
        let addresses = registers.get(touches.ptr);
        for lane in mask.lanes() {
            let Some((buffer, offset)) = group.state.buffer_of(touches.space, addresses[lane]) else {
                continue;
            };
            let Some(extent) = self.own.extents.get_mut(buffer) else {
                continue;
            };
            let end = offset + u64::from(touches.bytes);
            extent.end = extent.end.max(end);
            if touches.writes {
                extent.written = extent.written.max(end);
            }
        }
    }
}

impl Observer for Watching<'_> {
    fn op(
        &mut self,
        op: &LaneOp,
        registers: &Registers,
        mask: Mask,
        _sub_group: &SubGroup,
        group: &WorkGroup<'_>,
    ) {
        self.own.operations += 1;
        if let Some(touches) = op.kind.touches() {
            self.touched(touches, registers, mask, group);
        }
    }

    fn open(&mut self, step: usize, mask: Mask, sub_group: &SubGroup) {
        let At::Open(number) = self.sites.at(step) else {
            return;
        };
        if let Some(trips) = self.sub_groups.get_mut(sub_group.number() as usize) {
            trips.again[number] = [0; LANES];
            trips.inside[number] = mask;
            trips.ever[number] = trips.ever[number].or(mask);
        }
    }

    fn branch(&mut self, step: usize, then: Mask, otherwise: Mask, _sub_group: &SubGroup) {
        if let At::Branch(edge) = self.sites.at(step) {
            self.own.edges[edge] |= !then.is_empty();
            self.own.edges[edge + 1] |= !otherwise.is_empty();
        }
    }

    fn jump(&mut self, step: usize, mask: Mask, sub_group: &SubGroup) {
        match self.sites.at(step) {
            At::Exit(edge) => self.own.edges[edge] |= !mask.is_empty(),
            At::Again(number) => {
                if let Some(trips) = self.sub_groups.get_mut(sub_group.number() as usize) {
                    for lane in mask.lanes() {
                        trips.again[number][lane] += 1;
                    }
                }
            }
            _ => {}
        }
    }

    fn end_loop(&mut self, step: usize, sub_group: &SubGroup) {
        let At::End(number) = self.sites.at(step) else {
            return;
        };
        let first = u32::from(!self.sites.loops[number].tested_first);
        if let Some(trips) = self.sub_groups.get_mut(sub_group.number() as usize) {
            let lanes = trips.inside[number].lanes();
            let counts = lanes.map(|lane| trips.again[number][lane] + first);
            self.own.trips[number].0.extend(counts);
        }
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if self.ended {
            for trips in &self.sub_groups {
                for (own, ever) in self.own.trips.iter_mut().zip(&trips.ever) {
                    if !trips.mask.without(*ever).is_empty() {
                        own.0.insert(0);
                    }
                }
            }
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.merge(&self.own);
        for (all, own) in all.extents.iter_mut().zip(&self.own.extents) {
            all.end = all.end.max(own.end);
            all.written = all.written.max(own.written);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::{Argument, Buffer, Fill, Pattern};
    use crate::functional::BufferMemory;
    use crate::ir::{Type, parse, verify};

    /// Runs one work-group of four work-items on `p`, which holds 0, 1, 2, …, and `n`.
    fn covered(body: &str, n: u64) -> (Sites, Covered) {
        let text = format!(
            "hsir 1\nkernel @k(%p: ptr.global i32[] align 4, %n: i32) {{\n  load @p\n  %lane = id.local.x\n{body}  return\n}}\n"
        );
        let kernel = parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        verify(&kernel).unwrap_or_else(|error| panic!("{error}"));
        let compiled = CompiledKernel::new(Arc::new(kernel));
        let fill = Fill::Pattern(Pattern::Steps { first: 0, step: 1 });
        let memory = Arc::new(BufferMemory::new(Type::I32, 64, fill).expect("fits"));
        let buffer = Argument::Buffer(Buffer::new(Type::I32, 64, memory));
        let launch = Launch::new(1, 4, vec![buffer, Argument::Scalar(Type::I32, n)]);
        let sites = compiled.sites();
        let (ran, covered) = compiled.run_covering(&sites, &launch, 32, Options::CHECKING, &Groups::OneByOne);
        ran.unwrap_or_else(|error| panic!("{error}"));
        (sites, covered)
    }

    const WHILE: &str = "  loop 'l (%i = %lane) {
    %more = lt.s %i, %n
    if %more { yield } else { break 'l }
    %wide = extend.u %i to i64
    %at = address %p + %wide * 4
    %x = load i32 %at, @p
    %odd = eq %x, 5:i32
    if %odd { break 'l } else { yield }
    %next = add %i, 1:i32
    continue 'l %next
  }
";

    #[test]
    fn each_work_item_has_its_number_of_iterations() {
        let (sites, covered) = covered(WHILE, 3);
        assert!(sites.loops[0].tested_first && !sites.loops[0].is_outer && sites.loops[0].loads.len() == 1);
        assert_eq!(covered.trips[0].0, BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(covered.extents[0].end, 12);
        assert_eq!(covered.extents[0].written, 0);
        // Both branches have two sides, and there are two ways out.
        let taken = |kind| {
            let edges = sites
                .edges
                .iter()
                .zip(&covered.edges)
                .filter(|(edge, _)| edge.kind == kind);
            edges.map(|(_, taken)| *taken).collect::<Vec<_>>()
        };
        assert_eq!(taken(ControlEdgeKind::Then), [true, false]);
        assert_eq!(taken(ControlEdgeKind::Otherwise), [true, true]);
        assert_eq!(taken(ControlEdgeKind::Exit), [true, false]);
    }

    #[test]
    fn what_one_run_leaves_out_another_may_reach() {
        let (_, mut all) = covered(WHILE, 3);
        let (sites, more) = covered(WHILE, 9);
        all.merge(&more);
        assert_eq!(all.edges, vec![true; sites.edges.len()]);
        assert!(all.trips[0].0.contains(&5));
    }

    #[test]
    fn a_loop_that_is_tested_at_its_end_and_passed_by_has_no_iterations() {
        let body = "  %any = lt.s %lane, %n
  if %any {
    loop 'l (%i = 0:i32) {
      %wide = extend.u %i to i64
      %at = address %p + %wide * 4
      store %at, %i
      %next = add %i, 1:i32
      %more = lt.s %next, %n
      if %more { yield } else { break 'l }
      continue 'l %next
    }
    yield
  } else { yield }
";
        let body = body.replace("store %at, %i", "%x = load i32 %at, @p");
        let (sites, found) = covered(&body, 2);
        assert!(!sites.loops[0].tested_first);
        assert_eq!(
            found.trips[0].0,
            BTreeSet::from([0, 2]),
            "two of the four work-items pass it by"
        );
        let (_, found) = covered(&body, 7);
        assert_eq!(found.trips[0].0, BTreeSet::from([7]));
    }
}
