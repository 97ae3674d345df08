//! How far the scheduler looks ahead in a segment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::draft::Draft;
use super::program::Class;

/// The drafts that the scheduler looks at.
pub(super) struct Window {
    /// Those before this one.
    end: usize,
    /// Those that wait for nothing but a time, and were not given yet.
    offered: BinaryHeap<Reverse<(usize, u32)>>,
}

impl Window {
    /// At the beginning of a segment: the first `look_ahead` instructions in the source of those that are not issued.
    pub(super) fn new(drafts: &[Draft], look_ahead: usize) -> Window {
        let mut issued = (0..drafts.len()).filter(|&at| is_issued(&drafts[at]));
        Window {
            end: issued.nth(look_ahead).unwrap_or(drafts.len()),
            offered: BinaryHeap::new(),
        }
    }

    /// A draft waits for nothing but a time.
    pub(super) fn offer(&mut self, at: usize, time: u32) {
        self.offered.push(Reverse((at, time)));
    }

    /// One of those in the window, and its time; it is given once.
    pub(super) fn next(&mut self) -> Option<(usize, u32)> {
        let &Reverse((at, time)) = self.offered.peek()?;
        if at >= self.end {
            return None;
        }
        self.offered.pop();
        Some((at, time))
    }

    /// The first one behind the window, for when all in it wait for such.
    pub(super) fn behind(&mut self) -> Option<usize> {
        self.offered.pop().map(|Reverse((at, _))| at)
    }

    /// A draft is issued: the window takes in the next instruction, and the free ones behind it.
    pub(super) fn issue(&mut self, drafts: &[Draft], at: usize) {
        if !is_issued(&drafts[at]) || self.end >= drafts.len() {
            return;
        }
        self.end += 1;
        while self.end < drafts.len() && !is_issued(&drafts[self.end]) {
            self.end += 1;
        }
    }
}

/// Whether a draft is an instruction, not one that costs nothing.
pub(super) fn is_issued(draft: &Draft) -> bool {
    draft.class != Class::None
}
