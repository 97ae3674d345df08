//! Lanes of a sub-group that are separated from the running ones: which wait for which, and which continue next.
//!
//! An operation with a mask, and a barrier, waits for lanes that may be in another branch, or behind. The lanes that reached it
//! become a [`Part`] that waits there; the others continue at the end of the region. When no lane can run, the complete groups
//! of waiting parts carry out the operation together, even if they reached different operations of one kind. Then the parts at
//! the lowest step continue first, and parts that reach the end of the same region are merged.
//!
//! ```text
//! if %low {                          lanes 0 to 15 wait here, and 16 to 31 take the other side;
//!   %a = vote any %x among -1: i32   when they wait, too, the party is complete: all of them vote,
//! } else {                           lanes 0 to 15 go on to the end of the `if`,
//!   %b = vote any %y among -1: i32   then 16 to 31, and from there all together
//! }
//! ```

use super::lane_op::LaneOp;
use super::lanes::{LANES, Mask, Slot};
use super::reports::PartyMember;
use super::sub_group::{Observer, Runner, Stop, Waiting};
use super::tape::{Tape, TapeStep};
use super::work_group::{Runners, WorkGroup};
use crate::ir::Place;
use crate::{Error, Result};

/// Lanes that are somewhere else than those that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub step: usize,
    pub active: Mask,
    pub scopes: Vec<Waiting>,
    /// Whether they wait at an operation with a mask or at a barrier; else they can run.
    pub waits: bool,
}

/// Where a lane waits.
#[derive(Clone, Copy)]
struct Stand {
    step: usize,
    place: Place,
    /// At an operation with a mask: the mask.
    party: Option<u32>,
}

/// How a sub-group goes on.
pub(super) enum Next {
    Step(usize),
    Stop(Stop),
}

/// Whether lanes at these places may do what is there together.
fn joins(tape: &Tape, one: Stand, other: Stand) -> bool {
    match (&tape.steps[one.step], &tape.steps[other.step]) {
        _ if one.step == other.step => true,
        (TapeStep::Together { op: one, .. }, TapeStep::Together { op: other, .. }) => one.joins(other),
        _ => false,
    }
}

impl Runner {
    /// Leaves lanes behind, to wait at a step; the rest of the active ones stay active.
    pub(super) fn leave(&mut self, waiting: Mask, step: usize) {
        self.parts.push(Part {
            step,
            active: waiting,
            scopes: vec![Waiting::default(); self.scopes.len()],
            waits: true,
        });
        self.active = self.active.without(waiting);
    }

    /// Those of the active lanes whose party is complete: all that the masks name and that have not ended are here with
    /// the same mask.
    pub(super) fn complete(&self, masks: &[u64]) -> Mask {
        let mut complete = Mask::NONE;
        for lane in self.active.lanes() {
            let party = Mask(masks[lane]).and(self.alive);
            let here = party.without(self.active).is_empty();
            if here && party.lanes().all(|other| masks[other] == masks[lane]) {
                complete = complete.or(Mask::of(lane));
            }
        }
        complete
    }

    /// At the end of a region: merges the parts that wait here, and lets runnable parts that are behind continue first. Gives
    /// their step.
    pub(super) fn gather(&mut self, step: usize) -> Option<usize> {
        loop {
            let ready = self.parts.iter().enumerate().filter(|(_, part)| !part.waits);
            let (index, behind) = ready
                .min_by_key(|(_, part)| part.step)
                .map(|(i, part)| (i, part.step))?;
            if behind > step {
                return None;
            }
            let part = self.parts.swap_remove(index);
            if behind == step {
                self.take_along(&part);
                continue;
            }
            let has_lanes = !self.active.is_empty() || self.scopes.iter().any(Waiting::has_lanes);
            let here = Part {
                step,
                active: self.active,
                scopes: std::mem::replace(&mut self.scopes, part.scopes),
                waits: false,
            };
            if has_lanes {
                self.parts.push(here);
            }
            self.active = part.active;
            return Some(behind);
        }
    }

    /// The lanes of a part at the same step go on with the active ones.
    fn take_along(&mut self, part: &Part) {
        self.active = self.active.or(part.active);
        for (scope, other) in self.scopes.iter_mut().zip(&part.scopes) {
            scope.join(*other);
        }
    }

    /// Lanes have left the region between two steps: no lane may wait at a barrier inside.
    ///
    /// # Errors
    /// A lane does that these do not join there.
    pub(super) fn pass(&self, tape: &Tape, first: usize, end: usize, group: &WorkGroup<'_>) -> Result<()> {
        let Some(passing) = self.active.lanes().next() else {
            return Ok(());
        };
        let inside = |part: &&Part| part.waits && (first..end).contains(&part.step);
        for part in self.parts.iter().filter(inside) {
            if let TapeStep::Barrier { place, .. } = tape.steps[part.step] {
                return Err(group.divergent_barrier(self.runners(part.active, place), passing));
            }
        }
        Ok(())
    }

    /// No lane is left that can run: how the sub-group goes on.
    ///
    /// # Errors
    /// It cannot: the awaited lanes wait elsewhere. Or the group's operation is illegal.
    pub(super) fn next(
        &mut self,
        tape: &Tape,
        group: &mut WorkGroup<'_>,
        observer: &mut impl Observer,
        finish: usize,
    ) -> Result<Next> {
        if self.parts.is_empty() {
            self.step = finish;
            return Ok(Next::Stop(Stop::Ended));
        }
        let mut stands: [Option<Stand>; LANES] = [None; LANES];
        for part in &self.parts {
            for lane in part.active.lanes() {
                stands[lane] = self.stand(tape, part.step, lane);
            }
        }
        let mut waiting = None;
        let mut complete = Mask::NONE;
        for lane in self.alive.lanes() {
            let Some((own, mask)) = stands[lane].and_then(|own| own.party.map(|mask| (own, mask))) else {
                continue;
            };
            let party = Mask(u64::from(mask)).and(self.alive);
            let joins = |other: usize| {
                stands[other].is_some_and(|other| other.party == own.party && joins(tape, own, other))
            };
            let missing = party.lanes().find(|&other| !joins(other));
            match missing {
                Some(missing) => waiting = waiting.or(Some((lane, missing))),
                None if complete.contains(lane) => {}
                None => {
                    self.do_together(tape, party, group, observer)?;
                    complete = complete.or(party);
                }
            }
        }
        if complete.is_empty() {
            return match waiting {
                Some((lane, missing)) => Err(self.incomplete(tape, &stands, lane, missing, group)),
                None => self.stop_at_barrier(tape, &stands, group).map(Next::Stop),
            };
        }
        self.let_go(complete);
        self.scopes.clear();
        let first = self.parts.iter().enumerate().filter(|(_, part)| !part.waits);
        let index = first.min_by_key(|(_, part)| part.step).map(|(index, _)| index);
        let part = self
            .parts
            .swap_remove(index.ok_or_else(|| Error::bug("nobody was let go"))?);
        self.active = part.active;
        self.scopes = part.scopes;
        Ok(Next::Step(part.step))
    }

    /// Where a lane waits that has come to this step.
    fn stand(&self, tape: &Tape, step: usize, lane: usize) -> Option<Stand> {
        match &tape.steps[step] {
            TapeStep::Together { op, .. } => Some(Stand {
                step,
                place: op.place,
                party: op.party.map(|mask| self.registers.get(mask)[lane] as u32),
            }),
            TapeStep::Barrier { place, .. } => Some(Stand {
                step,
                place: *place,
                party: None,
            }),
            _ => None,
        }
    }

    /// The collective operation of a group whose lanes may have reached different operations of one kind: their operands are
    /// copied to separate registers, and the results from there to each one's.
    fn do_together(
        &mut self,
        tape: &Tape,
        party: Mask,
        group: &mut WorkGroup<'_>,
        observer: &mut impl Observer,
    ) -> Result<()> {
        let mut at: Vec<(&LaneOp, Mask)> = Vec::new();
        for part in &self.parts {
            let lanes = part.active.and(party);
            if let TapeStep::Together { op, .. } = &tape.steps[part.step]
                && !lanes.is_empty()
            {
                at.push((op, lanes));
            }
        }
        let Some(&(first, _)) = at.first() else {
            return Err(Error::bug("a party of nobody"));
        };
        for (op, lanes) in &at {
            let mut between = tape.between.into_iter();
            let mut moves = Vec::new();
            LaneOp::clone(op).map_slots(|own| moves.extend(between.next().map(|common| (common, *own))));
            let moves = &moves[op.results().len()..];
            observer.assign(moves, &self.registers, *lanes, &self.sub_group);
            self.registers.assign(moves, *lanes);
        }
        let mut joint = first.clone();
        let mut between = tape.between.into_iter();
        joint.map_slots(|own| *own = between.next().unwrap_or(*own));
        self.active = party;
        self.execute(&joint, group, observer)?;
        self.active = Mask::NONE;
        for (op, lanes) in &at {
            let results = op.results().iter().copied();
            let moves: Vec<(Slot, Slot)> = results.zip(joint.results().iter().copied()).collect();
            observer.assign(&moves, &self.registers, *lanes, &self.sub_group);
            self.registers.assign(&moves, *lanes);
        }
        Ok(())
    }

    /// Lanes whose groups were complete continue behind the operation.
    fn let_go(&mut self, complete: Mask) {
        for mut part in std::mem::take(&mut self.parts) {
            let going = part.active.and(complete);
            if !going.is_empty() {
                let behind = part.step + 1;
                let same = |other: &&mut Part| !other.waits && other.step == behind;
                match self.parts.iter_mut().find(same) {
                    Some(other) => other.active = other.active.or(going),
                    None => self.parts.push(Part {
                        step: behind,
                        active: going,
                        scopes: part.scopes.clone(),
                        waits: false,
                    }),
                }
            }
            part.active = part.active.without(complete);
            if !part.active.is_empty() {
                self.parts.push(part);
            }
        }
    }

    fn runners(&self, mask: Mask, place: Place) -> Runners<'_> {
        let sub_group = &self.sub_group;
        Runners {
            sub_group,
            mask,
            place,
        }
    }

    /// All wait at a barrier of the work-group.
    ///
    /// # Errors
    /// They wait at different ones.
    fn stop_at_barrier(
        &mut self,
        tape: &Tape,
        stands: &[Option<Stand>; LANES],
        group: &WorkGroup<'_>,
    ) -> Result<Stop> {
        let Some(first) = self.parts.first() else {
            return Err(Error::bug("nobody waits"));
        };
        let step = first.step;
        let TapeStep::Barrier { place, named, .. } = tape.steps[step] else {
            return Err(Error::bug("a sub-group waits at something other than a barrier"));
        };
        let elsewhere = |&lane: &usize| stands[lane].is_none_or(|stand| stand.step != step);
        if let Some(lane) = self.alive.lanes().find(elsewhere) {
            return Err(group.divergent_barrier(self.runners(first.active, place), lane));
        }
        self.scopes = first.scopes.clone();
        self.active = self.alive;
        self.parts.clear();
        self.step = step + 1;
        Ok(Stop::Barrier { step, place, named })
    }

    /// A lane waits for another that waits elsewhere.
    fn incomplete(
        &self,
        tape: &Tape,
        stands: &[Option<Stand>; LANES],
        lane: usize,
        missing: usize,
        group: &WorkGroup<'_>,
    ) -> Error {
        let member = |lane: usize| {
            stands[lane].map(|stand| PartyMember {
                item: self.sub_group.work_item(lane),
                place: stand.place,
                mask: stand.party,
            })
        };
        let what = match stands[lane].map(|stand| &tape.steps[stand.step]) {
            Some(TapeStep::Together { op, .. }) => op.kind.of_sub_group(),
            _ => "barrier",
        };
        match (member(lane), member(missing)) {
            (Some(waiting), Some(missing)) => group.party_incomplete(what, waiting, missing),
            _ => Error::bug("a work-item of a sub-group is lost"),
        }
    }
}
