//! Times of launches, summarised: the median, the quartiles, and a speedup from launches in turns.

use serde::{Deserialize, Serialize};

use super::CacheState;

/// The times of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The middle one, in nanoseconds.
    pub median_ns: f64,
    /// A quarter of the launches were faster than this, in nanoseconds.
    pub lower_quartile_ns: f64,
    /// A quarter of the launches were slower than this, in nanoseconds.
    pub upper_quartile_ns: f64,
    /// The fastest, in nanoseconds.
    pub least_ns: f64,
    /// How many launches were counted.
    pub launches: u32,
    /// The state of the L2 cache before each.
    pub cache: CacheState,
    /// How many times faster than the first candidate it was, each launch against that candidate's in the same round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired: Option<Paired>,
}

/// A speedup from launches in turns. A clock that drifts falls on both launches of a round alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest. With five rounds or more the true median lies between the two with a probability of at least 15/16,
    /// whatever the distribution.
    pub most: f64,
}

impl Paired {
    /// Compares launches of the same rounds, times in nanoseconds. `None` if there are none.
    #[doc(hidden)]
    pub fn of(first: &[f64], own: &[f64]) -> Option<Paired> {
        let mut ratios: Vec<f64> = first.iter().zip(own).map(|(first, own)| first / own).collect();
        ratios.sort_by(f64::total_cmp);
        Some(Paired {
            median: quantile(&ratios, 0.5)?,
            least: *ratios.first()?,
            most: *ratios.last()?,
        })
    }
}

/// The quantile of sorted samples; one between two of them is interpolated, as most statistics packages do.
fn quantile(sorted: &[f64], fraction: f64) -> Option<f64> {
    let position = fraction * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (
        sorted[position.floor() as usize],
        sorted[position.ceil() as usize],
    );
    Some(below + (above - below) * position.fract())
}

impl Timing {
    /// Summarises times in nanoseconds. `None` if there are none.
    pub fn of(mut samples: Vec<f64>, cache: CacheState) -> Option<Timing> {
        samples.sort_by(f64::total_cmp);
        let least_ns = *samples.first()?;
        Some(Timing {
            median_ns: quantile(&samples, 0.5)?,
            lower_quartile_ns: quantile(&samples, 0.25)?,
            upper_quartile_ns: quantile(&samples, 0.75)?,
            least_ns,
            launches: samples.len() as u32,
            cache,
            paired: None,
        })
    }

    /// Half of the launches took between these times, in nanoseconds.
    pub fn quartiles_ns(&self) -> (f64, f64) {
        (self.lower_quartile_ns, self.upper_quartile_ns)
    }

    /// The distance between the quartiles as a share of the median.
    pub fn spread(&self) -> f64 {
        if self.median_ns > 0.0 {
            (self.upper_quartile_ns - self.lower_quartile_ns) / self.median_ns
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_one_slow_launch() {
        let timing = Timing::of(vec![10.0, 12.0, 11.0, 900.0, 11.0], CacheState::Kept).expect("samples");
        assert_eq!(timing.median_ns, 11.0);
        assert_eq!(timing.least_ns, 10.0);
        assert_eq!((timing.lower_quartile_ns, timing.upper_quartile_ns), (11.0, 12.0));
        assert!((timing.spread() - 1.0 / 11.0).abs() < 1e-12);
    }

    #[test]
    fn a_drifting_clock_changes_no_paired_speedup() {
        let paired = Paired::of(&[10.0, 20.0, 40.0], &[5.0, 10.0, 20.0]).expect("rounds");
        assert_eq!((paired.least, paired.median, paired.most), (2.0, 2.0, 2.0));
        assert_eq!(Paired::of(&[], &[]), None);
    }

    #[test]
    fn an_even_number_of_samples_is_interpolated() {
        let timing = Timing::of(vec![4.0, 1.0, 3.0, 2.0], CacheState::Flushed).expect("samples");
        assert_eq!(timing.median_ns, 2.5);
        assert_eq!((timing.lower_quartile_ns, timing.upper_quartile_ns), (1.75, 3.25));
        assert_eq!(Timing::of(Vec::new(), CacheState::Kept), None);
    }
}
