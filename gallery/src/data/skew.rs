//! Which rows of a table are asked for: all alike, or few of them most of the time.
//!
//! Integers only, so that every machine and every language makes the same numbers.

use headstart::device::{Pattern, splitmix64};
use std::sync::Arc;

/// Odd and prime, larger than most tables: multiplying by it spreads neighbours over the table.
const SPREAD: u64 = 2_654_435_761;

/// How often each row is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// All alike.
    Uniform,
    /// Zipf's law with exponent 1, flat within an octave: the ranks from 2ᵒ to 2ᵒ⁺¹ together are asked for as often for
    /// every `o`. Which row has which rank is spread over the table.
    Zipf,
}

impl Skew {
    /// The words for them in settings, uniform first.
    pub const WORDS: &'static [&'static str] = &["uniform", "zipf"];

    /// The one that a setting means.
    pub fn of(setting: u64) -> Skew {
        match setting {
            0 => Skew::Uniform,
            _ => Skew::Zipf,
        }
    }

    /// The row that access number `access` asks for, of `rows`.
    pub fn row(self, access: u64, rows: u64, seed: u64) -> u64 {
        let bits = splitmix64(access, seed);
        match self {
            Skew::Uniform => bits % rows.max(1),
            Skew::Zipf => {
                let octaves = u64::from(rows.max(1).ilog2()) + 1;
                let octave = (bits >> 40) % octaves;
                let rank = (1 << octave) + (bits & 0xff_ffff_ffff) % (1 << octave) - 1;
                (rank % rows.max(1)).wrapping_mul(SPREAD) % rows.max(1)
            }
        }
    }

    /// The rows of all accesses.
    pub fn pattern(self, rows: u64, seed: u64) -> Pattern {
        match self {
            Skew::Uniform => Pattern::Below { bound: rows, seed },
            Skew::Zipf => Pattern::Function(Arc::new(move |access| self.row(access, rows, seed))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_octaves_have_their_share() {
        let (rows, accesses) = (1 << 16, 100_000);
        let mut counts = std::collections::HashMap::new();
        for access in 0..accesses {
            let row = Skew::Zipf.row(access, rows, 1);
            assert!(row < rows);
            *counts.entry(row).or_insert(0u64) += 1;
        }
        // Rank 1 is an octave of its own, one of 17.
        let most = counts.values().max().copied().unwrap_or(0);
        assert!((accesses / 19..accesses / 15).contains(&most), "{most}");
        assert!(counts.len() > 20_000);
    }

    #[test]
    fn rows_are_those_of_the_pattern() {
        for skew in [Skew::Uniform, Skew::Zipf] {
            for rows in [1, 3, 1000] {
                let pattern = skew.pattern(rows, 7);
                let bits = |access| pattern.bits(headstart::ir::Type::I32, access);
                assert!((0..100).all(|access| bits(access) == skew.row(access, rows, 7)));
            }
        }
    }
}
