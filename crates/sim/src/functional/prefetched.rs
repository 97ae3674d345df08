//! What is noted of a work-group's prefetches, for their rules: [`prefetch`](super::prefetch) checks them.

use std::collections::VecDeque;

use super::shadow::FastMap;
use crate::ir::Place;

/// A work-group's prefetches.
#[derive(Debug, Default)]
pub(super) struct Prefetches {
    /// Prefetches of the whole work-group, by place.
    pub(super) joint: FastMap<Calls>,
    /// Lines prefetched to L1 and not read since: by which sub-group, after how many of its fences, where.
    pub(super) lines: FastMap<(u32, u32, Place)>,
    /// How many fences each sub-group has passed, and where the last one was.
    pub(super) fences: Vec<(u32, Place)>,
}

/// The requests of the sub-groups at one place.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// From call number `first` on.
    pub(super) calls: VecDeque<Call>,
    pub(super) first: u64,
    /// How many calls each sub-group has made.
    pub(super) made: Vec<u64>,
    /// There were too many to keep.
    pub(super) is_incomplete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) address: u64,
    pub(super) count: u64,
    pub(super) item: u32,
}

/// A prefetch that a fence undid before its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CutOff {
    pub(super) prefetch: Place,
    pub(super) fence: Place,
    pub(super) load: Place,
}

impl Prefetches {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.joint.clear();
        self.lines.clear();
        self.fences.clear();
    }
}
