//! The location of a buffer: the device's memory, the host's, or page by page the side that touched it last.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a buffer lies.
#[derive(Clone, Debug, Default)]
pub(crate) enum Home {
    /// In the device's memory.
    #[default]
    Device,
    /// In the host's.
    Host,
    /// Each page where it was touched last.
    Shared(Arc<Pages>),
}

/// The pages of a shared allocation. Untouched pages belong to the host, which allocates them.
#[derive(Debug)]
pub(crate) struct Pages {
    bytes: u64,
    size: u64,
    /// Whether each is on the device.
    on_device: Mutex<Vec<bool>>,
}

impl Pages {
    /// Those of this many bytes, of this size each.
    pub(crate) fn new(bytes: u64, size: u64) -> Pages {
        let size = size.max(1);
        let count = usize::try_from(bytes.div_ceil(size)).unwrap_or(usize::MAX);
        Pages {
            bytes,
            size,
            on_device: Mutex::new(vec![false; count]),
        }
    }

    /// The host touches bytes: how many pages come over.
    pub(crate) fn touched_by_host(&self, offset: u64, length: u64) -> u64 {
        let mut on_device = self.on_device.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = offset / self.size..(offset + length).min(self.bytes).div_ceil(self.size);
        let mut moved = 0;
        for page in pages {
            if let Some(page) = on_device.get_mut(page as usize) {
                moved += u64::from(std::mem::take(page));
            }
        }
        moved
    }

    /// A kernel has gone through the allocation: its pages are on the device.
    pub(crate) fn taken_by_device(&self) {
        let mut on_device = self.on_device.lock().unwrap_or_else(PoisonError::into_inner);
        on_device.fill(true);
    }

    /// The bytes that are with the host, in pieces.
    pub(crate) fn on_host(&self) -> Vec<Range<u64>> {
        let on_device = self.on_device.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pieces: Vec<Range<u64>> = Vec::new();
        for (page, _) in on_device.iter().enumerate().filter(|(_, is_there)| !**is_there) {
            let start = page as u64 * self.size;
            let end = (start + self.size).min(self.bytes);
            match pieces.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => pieces.push(start..end),
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_move_when_they_are_touched_and_only_then() {
        let pages = Pages::new(10_000, 4096);
        let on_host = |first: u64| {
            pages
                .on_host()
                .first()
                .is_some_and(|piece| *piece == (first..10_000))
        };
        assert!(on_host(0));
        assert_eq!(pages.touched_by_host(0, 10_000), 0);
        pages.taken_by_device();
        assert!(pages.on_host().is_empty());
        // One byte brings its page, bytes on both sides of an edge bring two, and a page comes once.
        assert_eq!(pages.touched_by_host(5000, 1), 1);
        assert_eq!(pages.touched_by_host(8191, 2), 1);
        assert!(on_host(4096));
        assert_eq!(pages.touched_by_host(0, 10_000), 1);
    }
}
