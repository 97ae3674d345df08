//! Sparse matrices in compressed rows: the fixed list that products are measured on.
//!
//! Columns are sorted within a row and distinct. Random parts follow from the row and a seed, so that a matrix is the same on
//! every machine.

use std::sync::Arc;

use headstart::Result;
use headstart::device::splitmix64;

use super::{Words, counted, kept};

const SEED: u64 = 11;

/// Where the entries of a sparse matrix are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparsityPattern {
    /// 16 entries a row, anywhere.
    Random16,
    /// 16 entries a row, side by side at the diagonal.
    Banded,
    /// Rows of 5 to 65,539 entries, mean 16: half of them have 5, and rows of twice the length are half as frequent. Columns
    /// are anywhere.
    PowerLaw,
    /// The 27 neighbours in a cube; fewer at its sides.
    Stencil27,
    /// 4 entries a row, anywhere.
    Random4,
    /// 256 entries a row, anywhere.
    Random256,
}

impl SparsityPattern {
    /// The words for them in settings, in this order.
    pub const WORDS: &'static [&'static str] = &[
        "random16",
        "banded",
        "power-law",
        "stencil27",
        "random4",
        "random256",
    ];
    const ALL: [SparsityPattern; 6] = [
        SparsityPattern::Random16,
        SparsityPattern::Banded,
        SparsityPattern::PowerLaw,
        SparsityPattern::Stencil27,
        SparsityPattern::Random4,
        SparsityPattern::Random256,
    ];

    /// The one that a setting means.
    pub fn of(setting: u64) -> SparsityPattern {
        Self::ALL[(setting as usize).min(Self::ALL.len() - 1)]
    }

    /// The number of rows if about this many are requested, and the side of a stencil's cube.
    fn sides(self, rows: u32) -> (u32, u32) {
        let side = f64::from(rows).cbrt().round() as u32;
        match self {
            SparsityPattern::Stencil27 => (side * side * side, side),
            _ => (rows, side),
        }
    }

    /// The entries of a row.
    fn length(self, row: u32, rows: u32, side: u32) -> u32 {
        let length = match self {
            SparsityPattern::Random16 | SparsityPattern::Banded => 16,
            SparsityPattern::Random4 => 4,
            SparsityPattern::Random256 => 256,
            SparsityPattern::PowerLaw => {
                let bits = splitmix64(u64::from(row), SEED);
                let octave = (bits >> 32).trailing_zeros().min(15);
                4 + (1 << octave) + (bits as u32) % (1 << octave)
            }
            SparsityPattern::Stencil27 => {
                let (x, y, z) = (row % side, row / side % side, row / side / side);
                let near = |at: u32| near(at, side).count() as u32;
                near(x) * near(y) * near(z)
            }
        };
        length.min(rows)
    }

    /// The rows, and the entries of all of them, without building the matrix.
    pub fn counts(self, rows: u32) -> (u64, u64) {
        let (rows, side) = self.sides(rows);
        let count = u64::from(rows);
        let entries = match self {
            SparsityPattern::PowerLaw => (0..rows).map(|row| u64::from(self.length(row, rows, side))).sum(),
            // Along each side all points have both neighbours but the two at the ends.
            SparsityPattern::Stencil27 => (3 * u64::from(side)).saturating_sub(2).pow(3),
            _ => count * u64::from(self.length(0, rows, side)),
        };
        (count, entries)
    }
}

/// A square matrix: where each row starts, and its columns. The entries do not matter here.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// One more than there are rows.
    pub starts: Words,
    /// One for each entry.
    pub columns: Words,
    /// Rows, and columns.
    pub rows: u32,
    /// Entries.
    pub entries: u64,
}

impl Matrix {
    /// A matrix of this pattern with about as many rows: a stencil's are a cube. Built once, then kept.
    ///
    /// # Errors
    /// It has more entries than 32 bits count.
    pub fn new(pattern: SparsityPattern, rows: u32) -> Result<Arc<Matrix>> {
        counted(pattern.counts(rows).1, "entries")?;
        Ok(kept(&format!("matrix {pattern:?} {rows}"), || {
            build(pattern, rows)
        }))
    }

    /// The rows of each work-group, so that none has more than `most` entries or `most_rows` rows, and a row of
    /// more than `alone` entries is by itself: the first row of each, and the number of rows at the end.
    pub fn blocks(&self, most: u32, most_rows: u32, alone: u32) -> Words {
        let mut firsts = vec![0];
        let (mut first, mut held) = (0, 0);
        for row in 0..self.rows {
            let own = self.starts.get(row as usize + 1) - self.starts.get(row as usize);
            let is_long = own > alone;
            if row > first && (held + own > most || row - first >= most_rows || is_long) {
                firsts.push(row);
                (first, held) = (row, 0);
            }
            held += own;
            if is_long && row + 1 < self.rows {
                firsts.push(row + 1);
                (first, held) = (row + 1, 0);
            }
        }
        if self.rows > 0 {
            firsts.push(self.rows);
        }
        Words::new(&firsts)
    }
}

fn build(pattern: SparsityPattern, rows: u32) -> Matrix {
    let (rows, side) = pattern.sides(rows);
    let mut starts = Vec::with_capacity(rows as usize + 1);
    let mut end = 0u32;
    starts.push(0);
    for row in 0..rows {
        end += pattern.length(row, rows, side);
        starts.push(end);
    }
    let columns = Words::in_rows(&starts, |row, columns| match pattern {
        SparsityPattern::Random16
        | SparsityPattern::Random4
        | SparsityPattern::Random256
        | SparsityPattern::PowerLaw => {
            spread(columns, row, rows, pattern.length(row, rows, side));
        }
        SparsityPattern::Banded => {
            let width = pattern.length(row, rows, side);
            let first = row.saturating_sub(8).min(rows - width);
            columns.extend(first..first + width);
        }
        SparsityPattern::Stencil27 => neighbours(columns, row, side),
    });
    Matrix {
        entries: u64::from(end),
        starts: Words::new(&starts),
        columns,
        rows,
    }
}

/// Columns anywhere, one in each of `count` equal parts of the row.
fn spread(columns: &mut Vec<u32>, row: u32, rows: u32, count: u32) {
    let count = u64::from(count.min(rows));
    let part = u64::from(rows) / count.max(1);
    for entry in 0..count {
        let bits = splitmix64(u64::from(row) * 65_537 + entry, SEED + 1);
        columns.push((entry * part + bits % part) as u32);
    }
}

/// The places at most one step away, of this many.
fn near(at: u32, side: u32) -> std::ops::RangeInclusive<u32> {
    at.saturating_sub(1)..=(at + 1).min(side - 1)
}

/// The points at most one step away in each direction.
fn neighbours(columns: &mut Vec<u32>, row: u32, side: u32) {
    let near = |at| near(at, side);
    let (x, y, z) = (row % side, row / side % side, row / side / side);
    for z in near(z) {
        for y in near(y) {
            columns.extend(near(x).map(|x| (z * side + y) * side + x));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_a_sorted_square_matrix_with_its_mean() {
        for (setting, mean) in [16.0, 16.0, 16.0, 25.35, 4.0, 256.0].into_iter().enumerate() {
            let pattern = SparsityPattern::of(setting as u64);
            let matrix = Matrix::new(pattern, 32_768).expect("it fits");
            assert_eq!(pattern.counts(32_768), (u64::from(matrix.rows), matrix.entries));
            assert_eq!(matrix.starts.len(), matrix.rows as usize + 1);
            let found = matrix.entries as f64 / f64::from(matrix.rows);
            let width = if pattern == SparsityPattern::PowerLaw {
                0.25
            } else {
                0.02
            };
            assert!((found / mean - 1.0).abs() < width, "{pattern:?}: {found}");
            for row in [0, 1, 77, matrix.rows as usize - 1] {
                let own = matrix.starts.get(row) as usize..matrix.starts.get(row + 1) as usize;
                let own: Vec<u32> = own.map(|entry| matrix.columns.get(entry)).collect();
                assert!(own.is_sorted_by(|a, b| a < b), "{pattern:?} {own:?}");
                assert!(own.iter().all(|&column| column < matrix.rows));
            }
        }
    }

    #[test]
    fn blocks_hold_whole_rows_and_no_more_than_they_may() {
        for setting in 0..6 {
            let matrix = Matrix::new(SparsityPattern::of(setting), 3000).expect("it fits");
            let blocks: Vec<u32> = matrix.blocks(1024, 100, 256).iter().collect();
            assert_eq!((blocks[0], blocks[blocks.len() - 1]), (0, matrix.rows));
            for pair in blocks.windows(2) {
                assert!(pair[0] < pair[1]);
                let entries = matrix.starts.get(pair[1] as usize) - matrix.starts.get(pair[0] as usize);
                assert!(entries <= 1024 || pair[1] - pair[0] == 1);
                assert!(pair[1] - pair[0] <= 100);
            }
        }
    }

    #[test]
    fn more_entries_than_32_bits_count_are_refused_before_they_are_made() {
        let error = Matrix::new(SparsityPattern::Random256, 1 << 26).expect_err("17 billion entries");
        let said =
            "there are 17,179,869,184 entries, which the kernel counts in 32 bits; up to 4,294,967,295";
        assert!(error.to_string().contains(said), "{error}");
        // The largest that the benchmarks have.
        assert_eq!(SparsityPattern::Random4.counts(1 << 26), (1 << 26, 1 << 28));
        assert_eq!(
            SparsityPattern::Stencil27.counts(246 * 246 * 246),
            (14_886_936, 736 * 736 * 736)
        );
    }
}
