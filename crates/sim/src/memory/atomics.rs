//! Lines that atomic operations changed recently: the next one there waits for those before it.
//!
//! A table of fixed size: a line that another one has taken the place of is forgotten, and taken to be free.

use super::port::{Cycles, pick, spread};

/// Lines that are remembered.
const LINES: usize = 1 << 14;

/// Words that are changed together. (On an H200 32 work-items add to 32 words of a line in 24 cycles, to one in 1.4.)
const TOGETHER: usize = 2;

/// When lines take the next operation.
#[derive(Clone, Debug)]
pub(super) struct Changed {
    /// Line and time, by the line's hash.
    free: Vec<(u64, Cycles)>,
    /// The time of one operation.
    interval: Cycles,
}

impl Changed {
    /// No line has been changed; each takes this many operations a cycle.
    pub(super) fn new(rate: f64) -> Changed {
        Changed {
            free: vec![(u64::MAX, 0.0); LINES],
            interval: 1.0 / rate,
        }
    }

    /// Operations on this many words of a line that come at a time; when the last is done.
    pub(super) fn change(&mut self, line: u64, now: Cycles, words: usize) -> Cycles {
        let place = &mut self.free[pick(spread(line), LINES)];
        let before = if place.0 == line { place.1 } else { 0.0 };
        let took = self.interval * words.div_ceil(TOGETHER) as f64;
        // The first one is served at once: its time is part of the latency of L2.
        *place = (line, before.max(now - self.interval) + took);
        place.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_on_one_line_wait_for_each_other() {
        let mut changed = Changed::new(0.5);
        assert_eq!(changed.change(64, 100.0, 1), 100.0);
        assert_eq!(changed.change(64, 100.0, 1), 102.0);
        assert_eq!(changed.change(64, 100.0, 1), 104.0);
        assert_eq!(changed.change(68, 100.0, 1), 100.0);
        assert_eq!(changed.change(64, 200.0, 2), 200.0);
        assert_eq!(changed.change(64, 300.0, 5), 304.0);
    }
}
