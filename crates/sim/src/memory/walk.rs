//! Which other cores request the lines that a core brings, at any time.
//!
//! A sample of the cores has its share of L2, but not the lines that the others bring there. Each scattered load uses one word
//! of device memory's smallest transfer, and the words beside it may be another core's.

use super::lines::LineShape;
use super::port::spread;
use crate::functional::FastMap;

/// One piece in so many is followed.
const FOLLOWED: u64 = 8;

/// Which core was the first to ask for each piece of memory, as large as device memory gives.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    first: FastMap<usize>,
    asked: u64,
    found: u64,
    /// Pieces of a line.
    pieces: u64,
    /// The sectors of its first piece.
    sectors: u8,
}

impl Walk {
    /// Nobody has asked for anything; device memory gives `granule` bytes at least.
    pub(super) fn new(shape: LineShape, granule: u64) -> Walk {
        let granule = granule.clamp(shape.sector_bytes(), shape.line_bytes());
        Walk {
            first: FastMap::default(),
            asked: 0,
            found: 0,
            pieces: shape.line_bytes() / granule,
            sectors: shape.widen(1, granule),
        }
    }

    /// A core requests sectors of a line; `scattered` says whether for a scattered access. Sequential reads are left to the
    /// sample, which sees as much of them as the others.
    pub(super) fn ask(&mut self, line: u64, sectors: u8, core: usize, scattered: bool) {
        for piece in 0..self.pieces {
            let within = self.sectors << (self.sectors.count_ones() * piece as u32);
            // The map's hash is another one.
            let number = line * self.pieces + piece;
            if sectors & within == 0 || !spread(number).is_multiple_of(FOLLOWED) {
                continue;
            }
            let first = *self.first.entry(number).or_insert(core);
            self.asked += 1;
            self.found += u64::from(scattered && first != core);
        }
    }

    /// The fraction of the requests that another core had made before.
    pub(super) fn found(&self) -> f64 {
        self.found as f64 / self.asked.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_core_brought_is_found() {
        let mut walk = Walk::new(LineShape::new(128, 32), 64);
        let all =
            |walk: &mut Walk, lines: std::ops::Range<u64>, sectors: u8, core: usize, scattered: bool| {
                lines.for_each(|line| walk.ask(line, sectors, core, scattered));
            };
        all(&mut walk, 0..10_000, 0b0001, 0, true);
        all(&mut walk, 0..10_000, 0b0010, 0, true);
        all(&mut walk, 0..10_000, 0b0100, 1, true);
        assert_eq!(walk.found(), 0.0);
        all(&mut walk, 0..10_000, 0b1000, 2, false);
        assert_eq!(walk.found(), 0.0);
        all(&mut walk, 0..10_000, 0b0010, 1, true);
        assert!((walk.found() - 0.2).abs() < 0.02, "{}", walk.found());
    }
}
