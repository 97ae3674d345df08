//! A request to end what is running, from another thread: a user's, or that of a clock.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// Whether runs that look here end as soon as they can. The owner keeps it for as long as the program runs.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Nothing is to end.
    pub const fn new() -> Stop {
        Stop(AtomicBool::new(false))
    }

    /// From now on runs end early, or may go on.
    pub fn set(&self, is_asked: bool) {
        self.0.store(is_asked, Ordering::Relaxed);
    }

    /// Whether runs are to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// The run is to end.
    pub(crate) fn check(stop: Option<&Stop>) -> Result<()> {
        match stop.is_some_and(Stop::is_asked) {
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
