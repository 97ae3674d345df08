//! Turns for work-groups that may see each other's writes.
//!
//! They run on one thread, so that results are the same on any number of them: one after the other, each to its end, as long as
//! none waits in a loop for another. A waiting one is suspended, and resumes when memory has changed. At most as many are
//! suspended as a device has resident together; further ones begin only when one has ended, as on the device, where a barrier
//! of all work-groups of a larger launch never ends, either.
//!
//! When all wait and nothing has changed, their progress is checked: if every one of them is in the same state as before, in
//! unchanged memory, they wait for ever. A loop that counts its turns may give up; it has until the limit on operations.

use super::histories::Histories;
use super::run::Totals;
use super::state::LaunchState;
use super::sub_group::Observer;
use super::tape::Tape;
use super::worker::{Progress, Worker};
use crate::{Error, Result};

/// Bytes of the work-groups that are put aside, over the most that one may take.
const ASIDE: u64 = 4;

/// The work-groups of a launch, taking turns.
pub(super) struct Turns<'l, O, B, E> {
    state: &'l LaunchState<'l>,
    tape: &'l Tape,
    begin: &'l B,
    end: &'l E,
    totals: &'l Totals,
    /// Those that wait.
    aside: Vec<Turn<'l, O>>,
    /// One whose work-group has ended.
    spare: Option<Worker<'l>>,
    /// The record of global memory, while no sub-group runs.
    histories: Option<Box<Histories>>,
    /// Counts the events that waiting work-items may have waited for.
    events: u64,
    /// Bytes that the largest work-group takes.
    largest: u64,
}

struct Turn<'l, O> {
    number: u64,
    worker: Worker<'l>,
    observer: O,
    /// The count of events when it last ran.
    ran_at: u64,
}

impl<'l, O: Observer, B: Fn(u64) -> O, E: Fn(u64, O)> Turns<'l, O, B, E> {
    pub(super) fn new(
        state: &'l LaunchState<'l>,
        tape: &'l Tape,
        begin: &'l B,
        end: &'l E,
        totals: &'l Totals,
    ) -> Turns<'l, O, B, E> {
        Turns {
            state,
            tape,
            begin,
            end,
            totals,
            aside: Vec::new(),
            spare: None,
            histories: None,
            events: 0,
            largest: 1,
        }
    }

    /// Runs these work-groups.
    ///
    /// # Errors
    /// That of the first in which a check failed, in the order of time; or they wait for ever.
    pub(super) fn run(&mut self, numbers: impl Iterator<Item = u64>, count: u64) -> Result<()> {
        let mut to_come = count;
        for number in numbers {
            to_come -= 1;
            let worker = match self.spare.take() {
                Some(worker) => worker,
                None => Worker::new(self.state, self.tape)?,
            };
            let mut turn = Turn {
                number,
                worker,
                observer: (self.begin)(number),
                ran_at: 0,
            };
            turn.worker.begin(number);
            self.largest = self.largest.max(turn.worker.bytes());
            if self.advance(&mut turn, false)? == Progress::Ended {
                self.finish(turn)?;
            } else {
                self.aside.push(turn);
            }
            self.round()?;
            while to_come > 0 && self.aside.len() as u64 >= self.room() {
                self.wait_for_one(to_come)?;
            }
        }
        while !self.aside.is_empty() {
            self.wait_for_one(0)?;
        }
        if self
            .histories
            .as_ref()
            .is_some_and(|histories| histories.is_incomplete)
        {
            self.state.note_incomplete();
        }
        Ok(())
    }

    /// How many may be put aside.
    fn room(&self) -> u64 {
        self.state
            .options
            .resident_groups
            .min(self.room_in_memory())
            .max(1)
    }

    fn room_in_memory(&self) -> u64 {
        self.state.options.group_memory_limit.saturating_mul(ASIDE) / self.largest
    }

    /// Runs one as far as it comes by itself.
    fn advance(&mut self, turn: &mut Turn<'l, O>, asks: bool) -> Result<Progress> {
        let worker = &mut turn.worker;
        worker.group.give_histories(self.histories.take());
        let before = worker.group.changes;
        let progress = worker.advance(&mut turn.observer, asks)?;
        self.histories = worker.group.take_histories();
        let ended = u64::from(progress == Progress::Ended);
        self.events += worker.group.changes - before + ended;
        turn.ran_at = self.events;
        Ok(progress)
    }

    fn finish(&mut self, mut turn: Turn<'l, O>) -> Result<()> {
        turn.worker.end(self.totals)?;
        (self.end)(turn.number, turn.observer);
        self.spare = Some(turn.worker);
        Ok(())
    }

    /// Lets those go on whose awaited memory may have changed.
    fn round(&mut self) -> Result<()> {
        let mut index = 0;
        while index < self.aside.len() {
            if self.aside[index].ran_at == self.events {
                index += 1;
                continue;
            }
            let mut turn = self.aside.remove(index);
            if self.advance(&mut turn, false)? == Progress::Ended {
                self.finish(turn)?;
            } else {
                self.aside.insert(index, turn);
                index += 1;
            }
        }
        Ok(())
    }

    /// Gives turns to the waiting groups until one of them has ended.
    fn wait_for_one(&mut self, to_come: u64) -> Result<()> {
        let there = self.aside.len();
        while self.aside.len() == there {
            if self.aside.iter().any(|turn| turn.ran_at != self.events) {
                self.round()?;
            } else {
                self.ask_all(to_come)?;
            }
        }
        Ok(())
    }

    /// No awaited memory has changed: lets them go round until some does.
    fn ask_all(&mut self, to_come: u64) -> Result<()> {
        let (events, mut steps) = (self.events, 0);
        let limit = self.state.operation_limit();
        loop {
            let mut all_stuck = true;
            let mut index = 0;
            while index < self.aside.len() {
                let mut turn = self.aside.remove(index);
                let before = turn.worker.steps();
                match self.advance(&mut turn, true)? {
                    Progress::Ended => self.finish(turn)?,
                    Progress::Waits { is_stuck } => {
                        all_stuck &= is_stuck;
                        steps += turn.worker.steps() - before;
                        self.aside.insert(index, turn);
                        index += 1;
                    }
                }
            }
            if self.events != events {
                return Ok(());
            }
            if all_stuck || steps > limit {
                return Err(self.for_ever(to_come));
            }
        }
    }

    fn for_ever(&self, to_come: u64) -> Error {
        let aside = self.aside.len();
        let others = (to_come > 0).then(|| {
            let why = match self.state.options.resident_groups <= self.room_in_memory() {
                true => format!("the device has {aside} work-groups of this launch resident at once"),
                false => format!("the simulator has memory for {aside} such work-groups"),
            };
            format!("{why}, all of them wait, and {to_come} have not begun")
        });
        match self.aside.first() {
            Some(turn) => turn.worker.waits_for_ever(others),
            None => Error::bug("nobody waits, and nobody goes on"),
        }
    }
}
