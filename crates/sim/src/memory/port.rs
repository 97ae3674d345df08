//! Resources that take a while for each request and serve them one after the other.

/// A point in time, or a span of it, in cycles of the cores' clock. Rates are seldom whole.
pub(crate) type Cycles = f64;

/// A resource that serves one request at a time, in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Port {
    /// When it is free again.
    free: Cycles,
    /// The time of one unit of work.
    interval: Cycles,
}

impl Port {
    /// A port that serves `rate` units per cycle.
    pub(super) fn new(rate: f64) -> Port {
        Port {
            free: 0.0,
            interval: 1.0 / rate,
        }
    }

    /// Serves `units` that arrive at `now`; gives the start of the service.
    pub(super) fn take(&mut self, now: Cycles, units: f64) -> Cycles {
        let start = self.free.max(now);
        self.free = start + units * self.interval;
        start
    }

    /// Keeps the port busy until a time.
    pub(super) fn block(&mut self, until: Cycles) {
        self.free = self.free.max(until);
    }

    /// When it is free again.
    pub(super) fn free(&self) -> Cycles {
        self.free
    }
}

/// Spreads numbers (lines, pages) evenly, as the address hashes of the devices do.
pub(crate) fn spread(number: u64) -> u64 {
    // The finalizer of MurmurHash3: every input bit reaches every output bit.
    let mut hash = number;
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// `number` reduced to below `below`, evenly, from the upper bits of its hash.
pub(super) fn pick(hash: u64, below: usize) -> usize {
    ((u128::from(hash) * below as u128) >> 64) as usize
}

/// Gives each number one of several places. Any run of as many consecutive numbers as there are places covers all of them, in
/// an order that a seeded hash changes from one round to the next.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    places: u64,
    seed: u64,
    /// 2⁶⁴ divided by the number of places, rounded up: numbers below [`Turns::EXACT`] are divided by a multiplication.
    inverse: u64,
}

impl Turns {
    /// Up to this number of places, and for numbers below `EXACT`, the quotient is exact: the error of the inverse is below
    /// 2²⁴ / 2⁶⁴, and with numbers below 2⁴⁰ the product's is below one in 2⁶⁴.
    const MOST_PLACES: u64 = 1 << 24;
    const EXACT: u64 = 1 << 40;

    /// At least one place.
    pub(super) fn new(places: usize, seed: u64) -> Turns {
        let places = places.max(1) as u64;
        let inverse = match places {
            2..=Turns::MOST_PLACES => (u64::MAX / places) + 1,
            _ => 0,
        };
        Turns {
            places,
            seed,
            inverse,
        }
    }

    /// The place of a number.
    pub(super) fn place(&self, number: u64) -> usize {
        let round = match number < Turns::EXACT && self.inverse != 0 {
            true => ((u128::from(number) * u128::from(self.inverse)) >> 64) as u64,
            false => number / self.places,
        };
        let first = pick(spread(round ^ self.seed), self.places as usize) as u64;
        let turned = number - round * self.places + first;
        (if turned >= self.places {
            turned - self.places
        } else {
            turned
        }) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_queue() {
        let mut port = Port::new(0.5);
        assert_eq!(port.take(10.0, 1.0), 10.0);
        assert_eq!(port.take(10.0, 2.0), 12.0);
        assert_eq!(port.take(11.0, 1.0), 16.0);
        assert_eq!(port.take(100.0, 1.0), 100.0);
    }

    #[test]
    fn quotients_are_exact() {
        for places in [
            1,
            2,
            3,
            7,
            64,
            1000,
            1664,
            65_535,
            65_536,
            (1 << 24) - 1,
            1 << 24,
            (1 << 24) + 1,
        ] {
            let turns = Turns::new(places as usize, 5);
            let numbers = [
                0,
                1,
                places - 1,
                places,
                7 * places - 1,
                7 * places,
                (1 << 40) - 1,
                1 << 40,
                1 << 60,
            ];
            let last = ((1 << 40) / places) * places;
            for number in numbers.into_iter().chain([last - 1, last]) {
                let (round, rest) = (number / places, number % places);
                let first = pick(spread(round ^ 5), places as usize) as u64;
                assert_eq!(
                    turns.place(number) as u64,
                    (rest + first) % places,
                    "{number} of {places}"
                );
            }
        }
    }

    #[test]
    fn lines_are_spread_evenly() {
        let mut banks = [0u32; 64];
        for line in 0..64 * 1000 {
            banks[pick(spread(line), 64)] += 1;
        }
        assert!(
            banks.iter().all(|&count| (850..1150).contains(&count)),
            "{banks:?}"
        );
    }
}
