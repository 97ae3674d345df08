//! Memory of a simulated device that is taken: a device has no more than its model says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes taken of a device's memory, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    allocated: Arc<AtomicU64>,
    bytes: u64,
}

impl Reservation {
    /// Takes bytes, unless that makes more than `room`.
    pub(crate) fn new(allocated: &Arc<AtomicU64>, bytes: u64, room: u64) -> Option<Reservation> {
        let fits = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= room);
        allocated
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .ok()?;
        Some(Reservation {
            allocated: Arc::clone(allocated),
            bytes,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.allocated.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
