//! Lines that were written lately: reading one at once takes longer.
//!
//! A table of fixed size: a line that another one has taken the place of is forgotten, and read as if it had not been written.

use super::port::{Cycles, pick, spread};

/// Lines that are remembered.
const LINES: usize = 1 << 12;

/// When lines were written.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// Line and time, by the line's hash.
    written: Vec<(u64, Cycles)>,
    /// For how long a line counts as just written.
    span: Cycles,
}

impl Recent {
    /// Nothing was written; what was is remembered for so long.
    pub(super) fn new(span: Cycles) -> Recent {
        Recent {
            written: vec![(u64::MAX, 0.0); LINES],
            span,
        }
    }

    /// A line is written at a time.
    pub(super) fn write(&mut self, line: u64, now: Cycles) {
        self.written[pick(spread(line), LINES)] = (line, now);
    }

    /// Whether a line has just been written.
    pub(super) fn was_written(&self, line: u64, now: Cycles) -> bool {
        let (written, at) = self.written[pick(spread(line), LINES)];
        written == line && now <= at + self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_new_for_a_while() {
        let mut recent = Recent::new(100.0);
        assert!(!recent.was_written(7, 0.0));
        recent.write(7, 50.0);
        assert!(recent.was_written(7, 60.0) && recent.was_written(7, 150.0) && !recent.was_written(7, 151.0));
        assert!(!recent.was_written(8, 60.0));
    }
}
