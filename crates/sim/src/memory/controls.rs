//! Loads and hints with one of Intel's cache controls: what they leave in the caches, and what has to go for it.
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
    pub(crate) fn load_controlled(
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

    /// A hint for the lines of an access, into L1, with a cache control where the device acts on it. A line that is invalidated after
    /// it is read goes next, as one of a stream does.
    pub(super) fn hint_to_l1(
        &mut self,
        core: usize,
        now: Cycles,
        access: &Access,
        control: Option<LscControl>,
    ) {
        use LscControl::{L1cL3uc, L1iarL3c, L1sL3c, L1sL3uc};
        let replaces = match control {
            Some(L1sL3uc | L1sL3c | L1iarL3c) => Replaces::LeastRecentAndGoesNext,
            _ => Replaces::Any,
        };
        self.is_kept_beyond_l1 = !matches!(control, Some(L1cL3uc | L1sL3uc));
        self.read(core, now, access, replaces);
        self.is_kept_beyond_l1 = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Contents, Extent, Placement};
    use super::*;
    use crate::model::{Reached, built_in};

    #[test]
    fn a_hint_leaves_its_line_where_its_control_says() {
        let model = built_in("pvc-1550", &[]).expect("a model");
        let extent = Extent {
            simulated: 1,
            busy: 1,
            reuse: None,
            ratio: 1.0,
            l1_bytes: 512 << 10,
            buffers: std::iter::once(0..1 << 20).collect(),
            contents: Contents::Nothing,
            was_full: false,
            placement: Placement::default(),
            compressible: Vec::new(),
        };
        let addresses: crate::functional::Lanes = std::array::from_fn(|lane| 4 * lane as u64);
        let access = Access {
            addresses: &addresses,
            mask: 1,
            bytes: 4,
        };
        for (control, is_in_l3) in [
            (LscControl::L1cL3c, true),
            (LscControl::L1sL3c, true),
            (LscControl::L1cL3uc, false),
            (LscControl::L1sL3uc, false),
        ] {
            let mut memory = MemorySystem::new(&model, &extent);
            memory.prefetch(0, 0.0, &access, Reached::L1, Some(control));
            let key = memory.l2.key(0);
            assert_eq!(memory.l2.holds(&key), is_in_l3, "{control:?}");
            let later = memory.load(0, 1e5, &access);
            assert!(later.is_near, "{control:?}");
        }
    }
}
