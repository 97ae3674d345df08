//! Running a work-group: its sub-groups one after the other, each up to the next barrier, again and again.
//!
//! A sub-group that waits in a loop stops there, too, and goes on after the others. When nothing that any of them did
//! helps, the work-group as a whole waits: for other work-groups, or for ever.

use std::collections::BTreeMap;

use super::lanes::Mask;
use super::run::Totals;
use super::state::LaunchState;
use super::sub_group::{Observer, Position, Runner, Stop};
use super::tape::Tape;
use super::work_group::{SubGroup, WorkGroup};
use crate::ir::Place;
use crate::{Error, Result};

/// One thread's work-group and sub-groups, used again and again.
pub(super) struct Worker<'l> {
    state: &'l LaunchState<'l>,
    tape: &'l Tape,
    pub group: WorkGroup<'l>,
    /// One for each sub-group where they may stop; else one for all.
    runners: Vec<Runner>,
    /// Where each stands; none can run.
    stops: Vec<Option<Stop>>,
    /// The previous states of sub-groups, if progress is checked.
    positions: Vec<Option<Position>>,
    limit: u64,
}

/// Turns in a row of those who wait in loops in which they change memory, after which other work-groups have theirs.
const ROUNDS: u32 = 4;

/// How far a work-group has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All its work-items have ended.
    Ended,
    /// Some wait in loops, and none of the others can run.
    Waits {
        /// All are where they were when this was asked the last time.
        is_stuck: bool,
    },
}

impl<'l> Worker<'l> {
    pub(crate) fn new(state: &'l LaunchState<'l>, tape: &'l Tape) -> Result<Worker<'l>> {
        let group = WorkGroup::new(state)?;
        let count = match tape.has_barriers || state.may_spin {
            true => state.sub_groups(),
            false => 1,
        };
        let runners = (0..count)
            .map(|number| {
                Runner::new(
                    tape,
                    group.sub_group(number),
                    state.sub_group_size,
                    state.arguments(),
                )
            })
            .collect();
        Ok(Worker {
            state,
            tape,
            group,
            runners,
            stops: Vec::new(),
            positions: Vec::new(),
            limit: state.operation_limit(),
        })
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.group.bytes() + self.runners.iter().map(Runner::bytes).sum::<u64>()
    }

    /// Steps that its sub-groups have taken.
    pub(crate) fn steps(&self) -> u64 {
        self.runners.iter().map(|runner| runner.steps).sum()
    }

    /// Runs a work-group that sees no others, from the beginning to its end.
    pub(crate) fn run(&mut self, number: u64, observer: &mut impl Observer, totals: &Totals) -> Result<()> {
        self.begin(number);
        let mut asks = false;
        loop {
            match self.advance(observer, asks)? {
                Progress::Ended => break,
                Progress::Waits { is_stuck: true } => return Err(self.waits_for_ever(None)),
                Progress::Waits { is_stuck: false } => asks = true,
            }
        }
        self.end(totals)
    }

    /// Starts over, as work-group `number`.
    pub(crate) fn begin(&mut self, number: u64) {
        self.group.begin(number);
        if self.runners.len() == self.state.sub_groups() as usize {
            for (runner, number) in self.runners.iter_mut().zip(0..) {
                runner.begin(self.group.sub_group(number));
            }
        }
        self.stops = vec![None; self.runners.len()];
        self.positions = vec![None; self.runners.len()];
    }

    /// The work-group has ended.
    pub(crate) fn end(&mut self, totals: &Totals) -> Result<()> {
        self.group.end()?;
        let operations = self.runners.iter().map(|runner| runner.operations).sum();
        totals.add(self.steps(), operations, self.group.traffic);
        Ok(())
    }

    /// Runs every runnable sub-group, repeatedly, until all have ended or wait. If `asks`, it says whether all are in the same
    /// state as the last time.
    pub(crate) fn advance(&mut self, observer: &mut impl Observer, asks: bool) -> Result<Progress> {
        self.state.check_stop()?;
        if !self.tape.has_barriers && !self.state.may_spin {
            return self.run_one_by_one(observer);
        }
        let mut rounds = 0;
        loop {
            let changes = self.group.changes;
            let mut has_moved = false;
            for (runner, stop) in self.runners.iter_mut().zip(&mut self.stops) {
                if matches!(stop, None | Some(Stop::Waits { .. })) {
                    let now = runner.run(self.tape, &mut self.group, self.limit, observer)?;
                    has_moved |= !matches!(now, Stop::Waits { .. });
                    *stop = Some(now);
                }
            }
            if self.meet()? {
                continue;
            }
            let waits = self
                .stops
                .iter()
                .any(|stop| matches!(stop, Some(Stop::Waits { .. })));
            // Only what changed memory helps the waiting ones: who came to a barrier may wait there for them. Changes by
            // waiting work-items may help the others, but not for ever.
            rounds = if has_moved { 0 } else { rounds + 1 };
            if waits && rounds < ROUNDS && changes != self.group.changes {
                continue;
            }
            if waits {
                return Ok(Progress::Waits {
                    is_stuck: asks && self.is_stuck(),
                });
            }
            let Some(first) = self.at_barrier()? else {
                return Ok(Progress::Ended);
            };
            if let Stop::Barrier {
                named: Some((number, wanted)),
                place,
                ..
            } = first.1
            {
                return Err(self.group.lonely_meeting(first.0, number, wanted, place));
            }
            if let Stop::Barrier { place, .. } = first.1
                && !self.state.options.ended_may_miss_barriers
                && let Some(missing) = self.ended()
            {
                return Err(self.group.ended_before_barrier(first.0, missing, place));
            }
            let asks = match first.1 {
                Stop::Barrier { step, .. } => self.tape.steps[step].asks(),
                _ => None,
            };
            let mut asked = (0, 0);
            for (stop, runner) in self.stops.iter_mut().zip(&self.runners) {
                if matches!(stop, Some(Stop::Barrier { .. })) {
                    *stop = None;
                    if let Some(slot) = asks {
                        asked.0 += runner.registers.truth(slot, runner.alive).count();
                        asked.1 += runner.alive.count();
                    }
                }
            }
            self.group.asked = asks.map(|_| asked);
            self.group.barrier();
        }
    }

    /// A work-item that has ended, if any has.
    fn ended(&self) -> Option<u32> {
        self.runners.iter().find_map(|runner| runner.first_ended())
    }

    fn run_one_by_one(&mut self, observer: &mut impl Observer) -> Result<Progress> {
        let Some(runner) = self.runners.first_mut() else {
            return Ok(Progress::Ended);
        };
        let (mut steps, mut operations) = (0, 0);
        for number in 0..self.state.sub_groups() {
            runner.begin(self.group.sub_group(number));
            runner.run(self.tape, &mut self.group, self.limit, observer)?;
            steps += runner.steps;
            operations += runner.operations;
        }
        (runner.steps, runner.operations) = (steps, operations);
        Ok(Progress::Ended)
    }

    /// Whether those that have not ended are in the same state as the last time; then only others can help them. One at a
    /// barrier in the loop in which others wait may have counted a turn.
    fn is_stuck(&mut self) -> bool {
        let mut is_stuck = true;
        for ((runner, stop), known) in self.runners.iter().zip(&self.stops).zip(&mut self.positions) {
            if !matches!(stop, Some(Stop::Ended)) {
                let position = Some(runner.position());
                is_stuck &= *known == position;
                *known = position;
            }
        }
        is_stuck
    }

    /// The message for a work-item that waits for ever. `others` says why the others do not help.
    pub(crate) fn waits_for_ever(&self, others: Option<String>) -> Error {
        let waiting = self
            .runners
            .iter()
            .zip(&self.stops)
            .find_map(|(runner, stop)| match stop {
                Some(Stop::Waits { place }) => Some((runner, *place)),
                _ => None,
            });
        let (item, place) = waiting.map_or((0, crate::ir::Kernel::NOWHERE), |(runner, place)| {
            (runner.first_alive(), place)
        });
        self.group.waits_for_ever(item, place, others)
    }

    /// Lets those go on who have met at a named barrier; whether any have.
    fn meet(&mut self) -> Result<bool> {
        let mut waiting: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let named = |stop: &Option<Stop>| match stop {
            Some(Stop::Barrier {
                named: Some(named),
                place,
                ..
            }) => Some((*named, *place)),
            _ => None,
        };
        for (index, stop) in self.stops.iter().enumerate() {
            if let Some(((number, _), _)) = named(stop) {
                waiting.entry(number).or_default().push(index);
            }
        }
        let mut any = false;
        for (number, members) in waiting {
            let found = members.first().and_then(|&member| named(&self.stops[member]));
            let Some(((_, wanted), place)) = found else {
                continue;
            };
            let item = |member: usize| self.runners[member].sub_group.work_item(0);
            let differs =
                |&&member: &&usize| named(&self.stops[member]).is_some_and(|((_, other), _)| other != wanted);
            if let Some(&member) = members.iter().find(differs) {
                return Err(self
                    .group
                    .different_meetings(item(member), item(members[0]), number, place));
            }
            if members.len() < wanted as usize {
                continue;
            }
            // The first to come are those with the lowest numbers: they run in this order.
            let members = &members[..wanted as usize];
            for &member in members {
                self.stops[member] = None;
            }
            let groups: Vec<(&SubGroup, Mask)> = members
                .iter()
                .map(|&member| &self.runners[member].sub_group)
                .map(|sub_group| (sub_group, sub_group.mask()))
                .collect();
            self.group.met(&groups);
            any = true;
        }
        Ok(any)
    }

    /// A lane that waits at a barrier, if any does; at a named one if any.
    fn at_barrier(&self) -> Result<Option<(u32, Stop)>> {
        let mut found: Option<(u32, usize, Place)> = None;
        for (runner, stop) in self.runners.iter().zip(&self.stops) {
            let Some(stop @ Stop::Barrier { step, place, named }) = *stop else {
                continue;
            };
            let item = runner.sub_group.work_item(0);
            if named.is_some() {
                return Ok(Some((item, stop)));
            }
            match found {
                Some((first, other, there)) if other != step => {
                    return Err(self.group.different_barriers(item, place, first, there));
                }
                Some(_) => {}
                None => found = Some((item, step, place)),
            }
        }
        Ok(found.map(|(item, step, place)| {
            let stop = Stop::Barrier {
                step,
                place,
                named: None,
            };
            (item, stop)
        }))
    }
}
