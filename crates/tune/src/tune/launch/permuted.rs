//! Permutations in closed form: element by element, without a table.
//!
//! Four rounds of a Feistel network permute the numbers below a power of four; numbers that come out too large go round
//! again until one fits (Black, Rogaway: "Ciphers with arbitrary finite domains", 2002).

use crate::random::splitmix64;

/// Rounds of the network: enough that neighbours are far apart.
const ROUNDS: u64 = 4;

/// A permutation of the numbers below a bound.
#[derive(Clone, Copy, Debug)]
pub(in crate::tune) struct Permutation {
    bound: u64,
    seed: u64,
    /// Bits of half a number.
    half: u32,
}

impl Permutation {
    /// Of the numbers below `bound`; another seed, another one.
    pub(crate) fn new(bound: u64, seed: u64) -> Permutation {
        let bits = 64 - bound.saturating_sub(1).leading_zeros();
        Permutation {
            bound,
            seed,
            half: bits.div_ceil(2).max(1),
        }
    }

    /// Where a number below the bound goes.
    pub(crate) fn at(&self, number: u64) -> u64 {
        if number >= self.bound {
            return number;
        }
        let mut at = number;
        loop {
            at = self.round_trip(at);
            if at < self.bound {
                return at;
            }
        }
    }

    fn round_trip(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for round in 0..ROUNDS {
            let mixed = splitmix64(right, self.seed.wrapping_mul(ROUNDS).wrapping_add(round));
            (left, right) = (right, left ^ mixed & mask);
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_comes_once() {
        for bound in [0, 1, 2, 3, 7, 64, 1000, 4097] {
            for seed in 0..3 {
                let permutation = Permutation::new(bound, seed);
                let mut all: Vec<u64> = (0..bound).map(|number| permutation.at(number)).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..bound), "{bound}, {seed}");
            }
        }
    }
}
