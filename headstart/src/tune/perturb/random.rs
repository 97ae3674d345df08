//! Random numbers that are the same for the same seed, on every machine.

use crate::device::splitmix64;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { seed, drawn: 0 }
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.drawn += 1;
        splitmix64(self.drawn, self.seed)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The product's high half: no division, and even enough for what it is for.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these; none if there are none.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_a_bound_is_drawn() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 10];
        for _ in 0..1000 {
            seen[random.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.choose::<u8>(&[]), None);
        assert_eq!(Random::new(3).bits(), Random::new(3).bits());
        assert_ne!(Random::new(3).bits(), Random::new(4).bits());
    }
}
