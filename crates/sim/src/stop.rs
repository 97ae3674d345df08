//! A request to end what is running, from another thread: a user's, or that of a clock.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// Whether runs that look here end as soon as they can, and whether it is late: what is only there to make a time more exact is
/// given up then. The owner keeps it for as long as the program runs.
#[derive(Debug, Default)]
pub struct Stop {
    is_asked: AtomicBool,
    is_late: AtomicBool,
    is_cut: AtomicBool,
}

impl Stop {
    /// Nothing is to end.
    pub const fn new() -> Stop {
        Stop {
            is_asked: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
        }
    }

    /// From now on runs end early, or may go on.
    pub fn set(&self, is_asked: bool) {
        self.is_asked.store(is_asked, Ordering::Relaxed);
    }

    /// From now on it is late, or not any more.
    pub fn set_late(&self, is_late: bool) {
        self.is_late.store(is_late, Ordering::Relaxed);
    }

    /// From now on timed runs end where they are, and their times follow from the part of the work that is done, or not any more.
    pub fn set_cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Whether timed runs end where they are.
    pub(crate) fn cuts(stop: Option<&Stop>) -> bool {
        stop.is_some_and(|stop| stop.is_cut.load(Ordering::Relaxed))
    }

    /// # Errors
    /// The run is to end; one that `may_be_given_up` already if it is late.
    pub(crate) fn check(stop: Option<&Stop>, may_be_given_up: bool) -> Result<()> {
        let ends = |stop: &Stop| {
            stop.is_asked.load(Ordering::Relaxed) || may_be_given_up && stop.is_late.load(Ordering::Relaxed)
        };
        match stop.is_some_and(ends) {
            true => Err(Error::device("the run was stopped before its end")),
            false => Ok(()),
        }
    }
}

impl PartialEq for Stop {
    fn eq(&self, other: &Stop) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Stop {}
