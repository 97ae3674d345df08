//! The slices of L2, where a model has them: each address belongs to one, which serves a request a cycle.
//!
//! A hash spreads addresses over them, whatever the stride. Evenly spread requests are served at the rate of all slices, less
//! the waiting where several requests collide; a line that all cores request at once is served at the rate of one.

use super::port::{Cycles, Port, pick, spread};

/// The slices, or those of them that the simulated cores can claim.
#[derive(Clone, Debug)]
pub(super) struct Slices(Vec<Port>);

impl Slices {
    /// `count` slices that serve `rate` requests a cycle together, of which there is a `share`.
    pub(super) fn new(count: u32, rate: f64, share: f64) -> Option<Slices> {
        let own = (f64::from(count) * share).round().max(1.0);
        (count > 0).then(|| Slices(vec![Port::new(rate * share / own); own as usize]))
    }

    /// Serves requests for a line that come at `now`; gives the start of the service.
    pub(super) fn take(&mut self, now: Cycles, line: u64, requests: f64) -> Cycles {
        let slice = pick(spread(line ^ 0x5bd1_e995), self.0.len());
        self.0[slice].take(now, requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_requests_come_at_the_rate_of_all_and_one_line_at_that_of_one() {
        let count = 64_000;
        let time = |line: &dyn Fn(u64) -> u64| {
            let mut slices = Slices::new(64, 64.0, 1.0).expect("there are some");
            (0..count)
                .map(|request| slices.take(0.0, line(request), 1.0) + 1.0)
                .fold(0.0f64, f64::max)
        };
        let even = time(&|request| request);
        assert!((1000.0..1200.0).contains(&even), "{even}");
        let strided = time(&|request| request * 4096);
        assert!((1000.0..1200.0).contains(&strided), "{strided}");
        assert_eq!(time(&|_| 7), 64_000.0);
    }

    #[test]
    fn a_model_without_slices_has_none() {
        assert!(Slices::new(0, 64.0, 1.0).is_none());
    }
}
