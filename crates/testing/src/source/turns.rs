//! Turns for work-groups that wait for each other: one interprets its statements, the others stand still, until it waits
//! for what another is to do.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What all work-groups share.
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The arrays, while no group has them.
    memory: Vec<Vec<u64>>,
    /// Whose turn it is.
    turn: usize,
    /// Those that have not ended.
    live: Vec<bool>,
    /// Turns since something was written.
    idle: usize,
    /// They wait for ever, or one did what has no meaning: all end.
    over: bool,
}

/// They wait for ever.
pub(super) struct Over;

impl Turns {
    pub(crate) fn new(memory: Vec<Vec<u64>>, groups: usize) -> Turns {
        Turns {
            state: Mutex::new(State {
                memory,
                turn: 0,
                live: vec![true; groups],
                idle: 0,
                over: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// While this lives, a panic of the work-group's thread ends the others, too.
    pub(crate) fn released_by_panic(&self, group: usize) -> impl Drop + '_ {
        Released { turns: self, group }
    }

    /// Waits for the first turn; gives the memory.
    pub(crate) fn begin(&self, group: usize) -> Result<Vec<Vec<u64>>, Over> {
        self.wait(self.lock(), group)
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, group: usize) -> Result<Vec<Vec<u64>>, Over> {
        while !state.over && state.turn != group {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.over {
            true => Err(Over),
            false => Ok(std::mem::take(&mut state.memory)),
        }
    }

    /// Lets the next one go on, until it is this one's turn again. `wrote` says whether anything has changed since its
    /// last turn.
    pub(crate) fn pass(&self, group: usize, memory: &mut Vec<Vec<u64>>, wrote: bool) -> Result<(), Over> {
        let mut state = self.lock();
        state.memory = std::mem::take(memory);
        state.idle = if wrote { 0 } else { state.idle + 1 };
        // Each has looked in vain.
        state.over |= state.idle > state.live.len();
        state.next();
        self.changed.notify_all();
        *memory = self.wait(state, group)?;
        Ok(())
    }

    /// The work-group has ended; `well` if it did nothing without meaning.
    pub(crate) fn end(&self, memory: Vec<Vec<u64>>, group: usize, well: bool) {
        let mut state = self.lock();
        if !memory.is_empty() {
            state.memory = memory;
        }
        state.live[group] = false;
        state.idle = 0;
        state.over |= !well;
        state.next();
        self.changed.notify_all();
    }

    /// The arrays afterwards.
    pub(crate) fn into_memory(self) -> Vec<Vec<u64>> {
        self.state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .memory
    }
}

struct Released<'t> {
    turns: &'t Turns,
    group: usize,
}

impl Drop for Released<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.turns.end(Vec::new(), self.group, false);
        }
    }
}

impl State {
    fn next(&mut self) {
        let groups = self.live.len();
        let others = (1..=groups).map(|by| (self.turn + by) % groups);
        if let Some(next) = others.into_iter().find(|&group| self.live[group]) {
            self.turn = next;
        }
    }
}
