//! Lines that cores outside the simulation have brought to L2, if the simulated ones stand for all.
//!
//! Such a sample has its share of L2, in which a line stays as long as it does in the whole. Ignoring the rest of L2 is
//! harmless if each core reads memory of its own. Scattered loads hit lines there that another core brought, the more often the
//! more the cores read the same memory at about the same time: tables, rows of a matrix, blocks of keys.
//!
//! How much the others hold of the memory around a line follows from how much the other cores of the sample hold there: if
//! these hold a part `d` of a region, every set of others of the same size does, too, and all others together hold
//! `1 - (1 - d)^k` of it, if there are `k` times as many. This assumes that cores request the lines of a region with equal
//! probability. If the sample itself finds less than that, down to nothing where each core has lines of its own, the estimate
//! is reduced by the same factor. (The sample holds lines that all cores request again and again itself.)

use std::ops::Range;

use super::port::spread;

/// Finds after which there is something to go by.
const LEAST: f64 = 8.0;

/// Regions of a buffer, at most, and their lines, at least.
const REGIONS: u64 = 4096;
const REGION: u64 = 128;

/// Estimates how often the others have a requested line of one buffer.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    lines: Range<u64>,
    /// Lines of a region.
    region: u64,
    /// Sectors of a region.
    sectors: f64,
    cores: usize,
    /// Cores that are not simulated, for each other one that is.
    for_each: f64,
    /// Sectors of each region that the sample's L2 has, by the core that asked for their lines first.
    there: Vec<u32>,
    /// The same of all of these cores.
    of_all: Vec<u32>,
    so_far: Counted,
    /// When this many hits were expected, and half as many: L2 fills, so the first results mean little.
    marks: [Counted; 2],
    asked: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// The expected hits among the requests, if the lines of a region are requested with equal probability.
    expected: f64,
    /// Lines that another core of the sample had brought.
    found: f64,
}

impl Regions {
    /// For a buffer's lines, of so many sectors each, with so many simulated and busy cores.
    pub(super) fn new(lines: Range<u64>, sectors: usize, simulated: u32, busy: u32) -> Regions {
        let for_each = match simulated {
            0 | 1 => 0.0,
            _ => f64::from(busy.saturating_sub(simulated)) / f64::from(simulated - 1),
        };
        let count = (lines.end - lines.start).max(1);
        let region = count.div_ceil(REGIONS).max(REGION);
        let regions = match for_each > 0.0 {
            true => count.div_ceil(region) as usize,
            false => 0,
        };
        let cores = simulated as usize;
        Regions {
            lines,
            region,
            sectors: (region.min(count) * sectors as u64) as f64,
            cores,
            for_each,
            there: vec![0; regions * cores],
            of_all: vec![0; regions],
            so_far: Counted::default(),
            marks: [Counted::default(); 2],
            asked: 0,
        }
    }

    /// Whether there are any that may have this line.
    pub(super) fn may_have(&self, line: u64) -> bool {
        self.for_each > 0.0 && self.lines.contains(&line)
    }

    fn region(&self, line: u64) -> usize {
        ((line - self.lines.start) / self.region) as usize
    }

    /// Sectors of a line come to the sample's L2, or go, which this core asked for first.
    pub(super) fn note(&mut self, line: u64, core: usize, come: u32, go: u32) {
        let region = self.region(line);
        let change = |count: &mut u32| *count = (*count + come).saturating_sub(go);
        change(&mut self.there[region * self.cores + core]);
        change(&mut self.of_all[region]);
    }

    /// A core asks for a line that it has not brought itself; another one of the sample has, or has not: whether one of the
    /// others has.
    pub(super) fn have(&mut self, line: u64, core: usize, is_found: bool) -> bool {
        let region = self.region(line);
        let theirs = self.of_all[region].saturating_sub(self.there[region * self.cores + core]);
        let part = (f64::from(theirs) / self.sectors).min(1.0);
        self.so_far.expected += part;
        self.so_far.found += f64::from(u8::from(is_found));
        if self.so_far.expected >= 2.0 * self.marks[0].expected.max(1.0) {
            self.marks = [self.so_far, self.marks[0]];
        }
        self.asked += 1;
        let chance = (spread(self.asked) >> 11) as f64 / f64::powi(2.0, 53);
        !is_found && chance < self.how_often(part)
    }

    /// By the recent requests, at least the latter half.
    fn how_often(&self, part: f64) -> f64 {
        let since = self.marks[1];
        let found = self.so_far.found - since.found;
        if found < LEAST {
            return 0.0;
        }
        let right = (found / (self.so_far.expected - since.expected).max(1e-9)).min(1.0);
        1.0 - (1.0 - part * right).powf(self.for_each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The overlap of two cores' requests for so many lines, if all lines are requested with equal probability.
    fn found(lines: u64, cores: u32, busy: u32, own: bool) -> f64 {
        let mut others = Regions::new(0..lines, 1, cores, busy);
        let mut there = vec![None; lines as usize];
        let (mut asked, mut theirs) = (0, 0);
        for at in 0..200_000 {
            let core = (spread(at) % u64::from(cores)) as usize;
            let mut line = spread(at + (1 << 40)) % lines;
            if own {
                line = line / u64::from(cores) * u64::from(cores) + core as u64;
            }
            let line = line.min(lines - 1);
            let first = there[line as usize];
            if first == Some(core) {
                continue;
            }
            asked += 1;
            theirs += u64::from(others.have(line, core, first.is_some()));
            if first.is_none() {
                there[line as usize] = Some(core);
                others.note(line, core, 1, 0);
            }
        }
        theirs as f64 / asked as f64
    }

    #[test]
    fn they_have_as_much_for_each_of_them_as_those_of_the_sample() {
        // Most of a million lines is brought by 132 cores while four ask for an eighth of it.
        let often = found(1 << 20, 4, 132, false);
        assert!((0.5..0.95).contains(&often), "{often}");
    }

    #[test]
    fn they_have_nothing_where_nobody_meets() {
        assert!(found(1 << 20, 4, 132, true) < 0.01);
        let whole = Regions::new(0..100, 1, 132, 132);
        assert!(!whole.may_have(5));
        assert!(!Regions::new(0..100, 1, 1, 132).may_have(5));
    }
}
