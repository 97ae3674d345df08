//! Lines that cores outside the simulation have brought to L2.
//!
//! A sample of the cores has its share of L2, in which a line stays as long as it does in the whole. Ignoring the rest of L2 is
//! harmless if each core reads memory of its own. Scattered loads hit lines there that another core brought, the more often the
//! more the cores read the same memory at about the same time: tables, rows of a matrix, blocks of keys.
//!
//! How often is known from the requests of all work-groups: see [`super::reuse`]. As often, requests of the sample are answered,
//! region by region: by the other cores of the sample where these have the line, else by the rest. A line that the rest has lies
//! in its part of L2, and takes no room in the sample's.

use std::sync::Arc;

use super::port::spread;
use super::reuse::OfBuffer;

/// Answers requests for lines of one buffer.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    reuse: Arc<OfBuffer>,
    /// The launch's work over the sample's.
    ratio: f64,
    regions: Vec<Answered>,
    /// Requests of the sample that count.
    asked: u64,
    /// Those of them for lines in the far half that the rest has, and those with a copy in the near one.
    far: u64,
    copied: u64,
}

/// The requests for lines of a region, those that had hit if all cores were simulated, and those that have.
#[derive(Clone, Copy, Debug)]
struct Answered {
    asked: u64,
    expected: f64,
    found: f64,
}

impl Regions {
    /// For a buffer of a launch that has `ratio` times the sample's work.
    pub(super) fn new(reuse: Arc<OfBuffer>, ratio: f64) -> Regions {
        // Not all begin with a hit, or none.
        let begun = |region: u64| Answered {
            asked: 0,
            expected: 0.0,
            found: (spread(region ^ reuse.lines.start) >> 11) as f64 / f64::powi(2.0, 53),
        };
        Regions {
            regions: (0..reuse.regions() as u64).map(begun).collect(),
            reuse,
            ratio,
            asked: 0,
            far: 0,
            copied: 0,
        }
    }

    /// Whether it has this line.
    pub(super) fn contains(&self, line: u64) -> bool {
        self.reuse.lines.contains(&line)
    }

    /// Whether requests of a core for this line count, too, if it has brought it itself.
    pub(super) fn counts_own(&self, line: u64) -> bool {
        self.reuse.counts_own(self.reuse.region(line))
    }

    /// A core asks for a line that it has not brought itself, and that another one of the sample has, or has not: whether it is
    /// there, or the rest has it.
    pub(super) fn have(&mut self, line: u64, is_found: bool) -> bool {
        let region = self.reuse.region(line);
        let answered = &mut self.regions[region];
        let of_launch = |asked: u64| asked as f64 * self.ratio;
        answered.expected += self
            .reuse
            .hit_rate(region, of_launch(answered.asked), of_launch(self.asked));
        answered.asked += 1;
        self.asked += 1;
        let is_there = is_found || answered.found < answered.expected;
        answered.found += f64::from(u8::from(is_there));
        is_there
    }

    /// The rest has a line in the far half: whether the near one has a copy.
    pub(super) fn have_copy(&mut self) -> bool {
        self.far += 1;
        let is_there = (self.copied as f64) < self.far as f64 * self.reuse.copied;
        self.copied += u64::from(is_there);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::super::reuse::OfBuffer;
    use super::*;

    #[test]
    fn as_many_are_found_as_in_the_whole() {
        let buffer = Arc::new(OfBuffer::uniform(0..100_000, &[0.1, 0.5, 0.5, 0.5], 8e6));
        let mut regions = Regions::new(buffer, 8.0);
        assert!(regions.contains(99_999) && !regions.contains(100_000));
        let mut part = |of_sample: u64| {
            let found = (0..250_000u64).filter(|&at| {
                let is_found = spread(at) % 100 < of_sample;
                regions.have(spread(at + 1) % 100_000, is_found)
            });
            found.count() as f64 / 250e3
        };
        let (first, second, third) = (part(0), part(10), part(40));
        assert!((first - 0.1).abs() < 0.01, "{first}");
        assert!((second - 0.5).abs() < 0.01, "{second}");
        assert!((third - 0.5).abs() < 0.01, "{third}");
    }

    #[test]
    fn copies_are_found_as_often() {
        let mut buffer = OfBuffer::uniform(0..1000, &[0.5], 1e6);
        buffer.copied = 0.75;
        let mut regions = Regions::new(Arc::new(buffer), 8.0);
        let found = (0..1000).filter(|_| regions.have_copy()).count();
        assert_eq!(found, 750);
    }
}
