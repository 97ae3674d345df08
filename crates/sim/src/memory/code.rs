//! A cache of code lines, for the instruction caches.

use super::cache::{Cache, Key, Replaces};
use super::lines::LineShape;
use super::port::{Cycles, spread};

/// A cache of code lines that forgets the least recently used.
#[derive(Clone, Debug)]
pub(crate) struct CodeCache(Cache);

/// Lines of a set: enough that only the size counts.
const WAYS: u32 = 16;

impl CodeCache {
    /// A cache of `bytes` in lines of `line`, a power of two.
    pub(crate) fn new(bytes: u64, line: u64) -> CodeCache {
        let ways = WAYS.min(u32::try_from(bytes / line).unwrap_or(WAYS)).max(1);
        CodeCache(Cache::new(bytes as f64, ways, line, LineShape::new(line, line)))
    }

    /// When the line is or was there, if it was asked for.
    pub(crate) fn find(&mut self, line: u32) -> Option<Cycles> {
        let slot = self.0.find(self.key(line))?;
        Some(self.0.present(slot, 1).1)
    }

    /// A line that is not there arrives at a time.
    pub(crate) fn insert(&mut self, line: u32, ready: Cycles) {
        let (slot, _) = self.0.insert(self.key(line), Replaces::LeastRecent);
        self.0.fill(slot, 1, ready);
    }

    fn key(&self, line: u32) -> Key {
        self.0.key(u64::from(line), spread(u64::from(line)))
    }
}
