//! Lines that cores outside the simulation have brought to L2, if the first few cores are simulated.
//!
//! A sample has its share of L2. Ignoring the rest is harmless if each core reads memory of its own. Scattered loads of a large
//! buffer, such as a table's, sometimes hit a line in the rest that another core brought: as often as they hit one of another
//! core of the sample, times the number of cores. That often, they hit here, too.

use super::l2::PARTLY;
use super::port::spread;

/// Finds after which there is something to go by.
const LEAST: u64 = 8;

/// At most so often: a buffer of which L2 keeps more is none of those.
const MOST: f64 = 1.0 / PARTLY as f64;

/// Estimates how often the others have a requested line.
#[derive(Clone, Debug)]
pub(super) struct Others {
    /// Cores that are not simulated, for each other one that is.
    for_each: f64,
    so_far: Counted,
    /// When this many requests had been made, and half as many: L2 fills, so the first results mean little.
    marks: [Counted; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    asked: u64,
    /// Lines that another core of the sample had brought.
    found: u64,
}

impl Others {
    /// For so many simulated cores, of so many that are busy.
    pub(super) fn new(simulated: u32, busy: u32) -> Others {
        let for_each = match simulated {
            0 | 1 => 0.0,
            _ => f64::from(busy.saturating_sub(simulated)) / f64::from(simulated - 1),
        };
        Others {
            for_each,
            so_far: Counted::default(),
            marks: [Counted::default(); 2],
        }
    }

    /// Whether there are any.
    pub(super) fn exist(&self) -> bool {
        self.for_each > 0.0
    }

    /// A core asks for something that another one of the sample has brought, or has not: whether one of the others has.
    pub(super) fn have(&mut self, is_found: bool) -> bool {
        self.so_far.asked += 1;
        self.so_far.found += u64::from(is_found);
        if self.so_far.asked >= 2 * self.marks[0].asked {
            self.marks = [self.so_far, self.marks[0]];
        }
        let chance = (spread(self.so_far.asked) >> 11) as f64 / f64::powi(2.0, 53);
        !is_found && chance < self.how_often()
    }

    /// Of the recent requests: at least the latter half.
    fn how_often(&self) -> f64 {
        let since = self.marks[1];
        let found = self.so_far.found - since.found;
        if found < LEAST {
            return 0.0;
        }
        let asked = (self.so_far.asked - since.asked) as f64;
        (found as f64 / asked * self.for_each).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_have_as_much_for_each_of_them_as_those_of_the_sample() {
        let mut others = Others::new(3, 103);
        assert!(others.exist());
        // Two others of the sample have one in 2,000, so that a hundred have one in 40.
        let theirs = (0..1_000_000).filter(|at| others.have(at % 2000 == 0)).count();
        assert!((23_000..27_000).contains(&theirs), "{theirs}");
    }

    #[test]
    fn they_have_nothing_where_nobody_meets() {
        let mut others = Others::new(2, 132);
        assert!((0..100_000).all(|_| !others.have(false)));
        assert!(!Others::new(132, 132).exist());
        assert!(!Others::new(1, 132).exist());
    }
}
