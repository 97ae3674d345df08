//! Lines that were written recently: reading one at once takes longer.
//!
//! A table of fixed size: a line that another one has taken the place of is forgotten, and read as if it had not been written.

use super::l2::Key;
use super::port::{Cycles, pick};

/// Lines that are remembered.
const LINES: usize = 1 << 12;

/// When lines were written.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// Line and time, by the line's hash.
    written: Vec<(u64, Cycles)>,
    /// The latest of those times.
    last: Cycles,
    /// For how long a line counts as just written.
    span: Cycles,
}

impl Recent {
    /// Nothing was written; writes are remembered for so long.
    pub(super) fn new(span: Cycles) -> Recent {
        Recent {
            written: vec![(u64::MAX, 0.0); LINES],
            last: f64::NEG_INFINITY,
            span,
        }
    }

    /// A line is written at a time.
    pub(super) fn write(&mut self, key: &Key, now: Cycles) {
        self.written[pick(key.hash, LINES)] = (key.line, now);
        self.last = self.last.max(now);
    }

    /// Whether a line has just been written.
    pub(super) fn was_written(&self, key: &Key, now: Cycles) -> bool {
        if now > self.last + self.span {
            return false;
        }
        let (written, at) = self.written[pick(key.hash, LINES)];
        written == key.line && now <= at + self.span
    }
}

#[cfg(test)]
mod tests {
    use super::super::l2::{Contents, L2};
    use super::super::lines::LineShape;
    use super::*;

    #[test]
    fn lines_are_new_for_a_while() {
        let l2 = L2::new(
            1,
            1 << 20,
            16,
            LineShape::new(128, 32),
            1.0,
            &[],
            Contents::Nothing,
        );
        let (seven, eight) = (l2.key(7), l2.key(8));
        let mut recent = Recent::new(100.0);
        assert!(!recent.was_written(&seven, 0.0));
        recent.write(&seven, 50.0);
        assert!(recent.was_written(&seven, 60.0) && recent.was_written(&seven, 150.0));
        assert!(!recent.was_written(&seven, 151.0) && !recent.was_written(&eight, 60.0));
    }
}
