//! Loads with one of Intel's cache controls: what they leave in the caches, and what has to go for it.
//!
//! | control | in L1 | in the cache of all cores |
//! |---|---|---|
//! | cached | the line, in the place of the one that was not used for longest | the line |
//! | uncached | nothing: L1 is passed by | nothing, if the line is not there |
//! | streaming | the line, which goes next: a stream takes one line of each set | |
//! | invalidated after a read | nothing: a line that is there goes when it has been read | |

use super::{Access, Cycles, LoadResponse, MemorySystem, Replaces};
use crate::ir::LscControl;

/// What a load leaves behind in L1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InL1 {
    /// It does not ask L1.
    Nothing,
    /// The line.
    Line(Replaces),
    /// The line, until it has been read.
    UntilRead,
}

impl MemorySystem {
    /// A load from global memory with a cache control.
    pub fn load_controlled(
        &mut self,
        core: usize,
        now: Cycles,
        access: &Access,
        control: LscControl,
    ) -> LoadResponse {
        use LscControl::{Default, L1cL3c, L1cL3uc, L1iarL3c, L1sL3c, L1sL3uc, L1ucL3c, L1ucL3uc};
        self.counters.loads += 1;
        self.is_kept_beyond_l1 = !matches!(control, L1ucL3uc | L1cL3uc | L1sL3uc);
        let left = match control {
            L1ucL3uc | L1ucL3c => InL1::Nothing,
            Default | L1cL3uc | L1cL3c => InL1::Line(Replaces::LeastRecent),
            L1sL3uc | L1sL3c => InL1::Line(Replaces::LeastRecentAndGoesNext),
            L1iarL3c => InL1::UntilRead,
        };
        let response = match left {
            InL1::Nothing => LoadResponse {
                done: self.fetch_all(core, now, access),
                is_near: false,
            },
            InL1::Line(replaces) => self.read(core, now, access, replaces),
            InL1::UntilRead => {
                let response = self.read(core, now, access, Replaces::LeastRecentAndGoesNext);
                self.forget_in_l1(core, access);
                response
            }
        };
        self.is_kept_beyond_l1 = true;
        response
    }
}
