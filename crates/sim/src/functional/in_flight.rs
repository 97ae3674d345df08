//! Copies in flight: data that have not arrived yet. [`copies`](super::copies) and [`phases`](super::phases) start and finish them.

use std::collections::VecDeque;

use crate::ir::{MemoryScope, Place};

/// A work-item's asynchronous copies.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    pub(super) started: u64,
    pub(super) in_flight: VecDeque<CopyInFlight>,
}

/// An asynchronous copy that was not waited for yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyInFlight {
    pub(super) number: u64,
    /// Offset in shared memory.
    pub(super) target: u64,
    pub(super) target_address: u64,
    pub(super) source: u64,
    pub(super) bytes: u32,
    pub(super) place: Place,
}

/// A bulk copy in flight.
#[derive(Clone, Debug)]
pub(super) struct BulkCopy {
    /// The barrier's offset in shared memory.
    pub(super) barrier: u64,
    /// The number of the first question about the barrier since the copy started.
    pub(super) asked: Option<u64>,
    pub(super) item: u32,
    pub(super) bytes: u64,
    pub(super) scope: MemoryScope,
    pub(super) pieces: Vec<CopyInFlight>,
}
