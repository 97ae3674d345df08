//! Whether a run has come to a standstill: every sub-group that is resident waits for what none of them will do.
//!
//! A work-group may wait in a loop for another one that is not resident, and never will be: it starts when one of those ends
//! that wait for it. The timer looks for this where neither memory changes nor a barrier is passed nor a work-group ends for a
//! while. It then notes the position of each sub-group: its instruction, its lanes and the values of its registers. A sub-group
//! that comes to the same position again in unchanged memory does the same for ever. If all do, the launch never ends. A loop
//! that counts its turns has another position each time, and ends by itself or at the limit on instructions.

use super::core::Core;
use super::sub_group::{Position, Resident, State};

/// Cycles without an event until the positions are noted for the first time.
const FIRST: u64 = 1 << 14;

/// How often a sub-group comes to the same position again before it counts as going round: an answer may come to the second
/// question, as that of a bulk copy does.
const AGAIN: u32 = 4;

/// How many positions are compared at most from one look to the next, for each doubling of the time between them.
const COMPARED: u32 = 16;

/// A sub-group that may go round.
#[derive(Debug)]
pub(super) struct Noted {
    position: Position,
    /// How often it has come back there.
    came_back: u32,
    /// How often it is still looked at.
    looks: u32,
}

impl Noted {
    /// The sub-group has issued an instruction.
    pub(super) fn look(&mut self, resident: &Resident) {
        if self.looks > 0 && self.position.is_at(resident.at) {
            self.looks -= 1;
            self.came_back += u32::from(self.position.is_of(resident));
        }
    }

    fn goes_round(&self) -> bool {
        self.came_back >= AGAIN
    }
}

/// Looks at cores now and then.
#[derive(Debug)]
pub(super) struct Standstill {
    next: u64,
    interval: u64,
    looks: u32,
    /// The number of events at the last look.
    events: u64,
}

impl Standstill {
    /// Before the first cycle. Where the kernel does not wait in a loop (`may_wait`), it never looks.
    pub(super) fn new(may_wait: bool) -> Standstill {
        Standstill {
            next: if may_wait { FIRST } else { u64::MAX },
            interval: FIRST,
            looks: COMPARED,
            events: 0,
        }
    }

    /// Whether the cores have come to a standstill.
    pub(super) fn is_reached(&mut self, now: u64, cores: &mut [Core<'_>]) -> bool {
        if now < self.next {
            return false;
        }
        let events = cores.iter().map(Core::events).fold(0, u64::wrapping_add);
        if events != self.events {
            self.events = events;
            (self.interval, self.looks) = (FIRST, COMPARED);
            cores.iter_mut().for_each(Core::forget);
        } else {
            if cores.iter().all(Core::goes_round) {
                return true;
            }
            // A long round needs a long look.
            self.interval = self.interval.saturating_mul(2);
            self.looks = self.looks.saturating_mul(2);
            cores.iter_mut().for_each(|core| core.note(self.looks));
        }
        self.next = now.saturating_add(self.interval);
        false
    }
}

impl Core<'_> {
    /// Counts what a waiting sub-group may wait for: changes of memory, barriers that are passed, work-groups that end.
    fn events(&self) -> u64 {
        let changes = self.groups.iter().map(|group| group.work_group.changes());
        self.passed + self.ended.len() as u64 + changes.sum::<u64>()
    }

    fn forget(&mut self) {
        self.noted.clear();
    }

    /// Notes where each sub-group is that was not found to go round.
    fn note(&mut self, looks: u32) {
        self.noted.resize_with(self.sub_groups.len(), || None);
        for (noted, resident) in self.noted.iter_mut().zip(&self.sub_groups) {
            if resident.state == State::Ready && !noted.as_ref().is_some_and(Noted::goes_round) {
                *noted = Some(Noted {
                    position: Position::of(resident),
                    came_back: 0,
                    looks,
                });
            }
        }
    }

    /// Whether each of its sub-groups goes round, or waits at a barrier for one that does.
    fn goes_round(&self) -> bool {
        let noted = self.noted.iter().chain(std::iter::repeat(&None));
        self.sub_groups
            .iter()
            .zip(noted)
            .all(|(resident, noted)| match resident.state {
                State::Ready => noted.as_ref().is_some_and(Noted::goes_round),
                State::AtBarrier | State::Ended => true,
            })
    }

    /// An instruction of a sub-group that goes round.
    pub(super) fn waiting_at(&self) -> Option<usize> {
        let ready = |resident: &&Resident| resident.state == State::Ready;
        self.sub_groups.iter().find(ready).map(|resident| resident.at)
    }

    /// Work-groups that are resident.
    pub(super) fn resident(&self) -> usize {
        self.groups.iter().filter(|group| group.alive > 0).count()
    }
}
