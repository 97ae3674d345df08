//! What a search tells while it runs, and what it asks.

use std::time::Duration;

use crate::error::Result;
use crate::report::Trial;
use crate::tune::bench::Timed;

/// Follows a search. Called from several threads.
pub trait Progress: Sync {
    /// Something is understood: told as soon as it is, long before the first plan is done.
    fn understood(&self, sentence: &str) {
        let _ = sentence;
    }
    /// This many plans will be tried.
    fn begin(&self, plans: usize) {
        let _ = plans;
    }
    /// One plan is done.
    fn done(&self, trial: &Trial) {
        let _ = trial;
    }
    /// One plan was done before: its trial is in the log.
    fn known(&self, trial: &Trial) {
        self.done(trial);
    }
    /// Whether to begin nothing more: the report then covers the trials so far.
    fn is_stopped(&self) -> bool {
        false
    }
    /// Whether plans are being tried from here on: what runs may then be ended, and counts as not tried.
    fn trying(&self, is_trying: bool) {
        let _ = is_trying;
    }
    /// A plan is refused, and costs no time to speak of.
    fn refused(&self, trial: &Trial) {
        let _ = trial;
    }
    /// The time that is left of the search; none where it may take as long as it takes.
    fn left(&self) -> Option<Duration> {
        None
    }
}

/// Progress that is not shown.
impl Progress for () {}

/// Decides by the plain kernel's run whether a search goes on; without a function it always does.
#[derive(Clone, Copy, Default)]
pub struct GoesOn<'a>(pub Option<&'a (dyn Fn(&Timed) -> Result<()> + Sync)>);

impl std::fmt::Debug for GoesOn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GoesOn").field(&self.0.is_some()).finish()
    }
}
