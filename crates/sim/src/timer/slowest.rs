//! The end of a launch, which a sample does not show: the slowest of many is later than the slowest of few.
//!
//! If all work-groups of a launch are resident at once, it ends with its slowest sub-group. Sub-groups with equal numbers of
//! instructions end at different times by chance, and the more there are, the later the last one.

use std::f64::consts::PI;

/// Numbers of which the mean and the deviation are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    /// One more number.
    pub(super) fn add(&mut self, number: u64) {
        let number = number as f64;
        self.count += 1.0;
        self.sum += number;
        self.squares += number * number;
    }

    /// The standard deviation.
    pub(super) fn deviation(self) -> f64 {
        match self.count > 0.0 {
            true => {
                let mean = self.sum / self.count;
                (self.squares / self.count - mean * mean).max(0.0).sqrt()
            }
            false => 0.0,
        }
    }

    /// The standard deviation, as a part of the mean.
    pub(super) fn relative(self) -> f64 {
        match self.sum > 0.0 {
            true => self.deviation() * self.count / self.sum,
            false => 0.0,
        }
    }
}

/// The expected delay of the last of this many times as many sub-groups behind the last of these, whose ends are given by core
/// and place. Differences between sub-groups of one place are treated as random; the order of service within a core is not.
pub(super) fn later(ends: &[Vec<u64>], times: f64) -> f64 {
    let places = ends.iter().map(Vec::len).max().unwrap_or(0);
    let (mut count, mut squares, mut free) = (0.0, 0.0, 0.0);
    for place in 0..places {
        let mut here = Moments::default();
        ends.iter()
            .filter_map(|core| core.get(place))
            .for_each(|&end| here.add(end));
        count += here.count;
        squares += here.deviation().powi(2) * here.count;
        free += here.count - 1.0;
    }
    if free < 1.0 {
        return 0.0;
    }
    let more = expected_most(times * count) - expected_most(count);
    (squares / free).sqrt() * more.max(0.0)
}

/// The expected largest of `count` numbers that are distributed normally, in standard deviations from the mean.
/// (The limit for many; 4 % too much for 16.)
fn expected_most(count: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if count < 2.0 {
        return 0.0;
    }
    let level = (2.0 * count.ln()).sqrt();
    level + (EULER - 0.5 * (count.ln().ln() + (4.0 * PI).ln())) / level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_many_is_later() {
        for (count, expected) in [(16.0, 1.766), (128.0, 2.594), (1000.0, 3.241)] {
            let found = expected_most(count);
            assert!((found / expected - 1.0).abs() < 0.06, "{count}: {found}");
        }
        let cores = [
            vec![980, 2000],
            vec![1020, 2000],
            vec![1000, 1980],
            vec![1000, 2020],
        ];
        assert_eq!(later(&cores, 1.0), 0.0);
        // A deviation of 16.3 within a place.
        assert!((20.0..40.0).contains(&later(&cores, 33.0)));
    }

    #[test]
    fn what_ends_together_ends_together_in_all() {
        assert_eq!(later(&vec![vec![5000, 6000, 7000]; 4], 33.0), 0.0);
        assert_eq!(later(&[vec![5000, 6000]], 33.0), 0.0);
    }

    #[test]
    fn deviations_are_of_the_mean() {
        let mut numbers = Moments::default();
        [980, 1000, 1020, 1000]
            .into_iter()
            .for_each(|number| numbers.add(number));
        assert!((numbers.relative() - 0.0141).abs() < 1e-4);
    }
}
