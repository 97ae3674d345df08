//! Resources that take a while for each request and serve them one after the other.

/// A point in time, or a span of it, in cycles of the cores' clock. Rates are seldom whole.
pub type Cycles = f64;

/// A resource that serves one request at a time, in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Port {
    /// When it is free again.
    free: Cycles,
    /// What one unit of work takes.
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

/// One of `places` for a number. As many consecutive numbers as there are places lie in all of them, in an order that a hash, which
/// `seed` chooses, changes from one round to the next.
pub(super) fn turned(number: u64, places: usize, seed: u64) -> usize {
    let count = places as u64;
    let round = number / count;
    let turned = number - round * count + pick(spread(round ^ seed), places) as u64;
    (if turned >= count { turned - count } else { turned }) as usize
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
