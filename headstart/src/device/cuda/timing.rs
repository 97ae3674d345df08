//! Timing candidates against each other on a GPU.
//!
//! Candidates take turns: every round times each of them once, and each round starts with another
//! one, so that a drifting clock or a warming chip falls on all alike. Times are the GPU's own, from
//! an event before a launch to an event after it. What is reported is the median and the quartiles.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::launch::{Arguments, Geometry};
use super::memory::Buffer;
use super::module::Function;
use crate::device::CacheState;

/// How long a GPU is kept busy before anything is counted, so that clocks and caches have settled. By choice; how much
/// of it an H200 needs was not measured.
const WARM_UP: Duration = Duration::from_millis(200);

/// How to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingOptions {
    /// Launches of each candidate that are not counted.
    pub warm_up: u32,
    /// Launches of each candidate that are.
    pub rounds: u32,
    /// The state of the L2 cache before each counted launch.
    pub cache: CacheState,
    /// The longest that one launch may take.
    pub limit: Duration,
}

impl Default for TimingOptions {
    fn default() -> TimingOptions {
        TimingOptions {
            warm_up: 1,
            rounds: 9,
            cache: CacheState::Kept,
            limit: Duration::from_secs(10),
        }
    }
}

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
    /// What the L2 cache held before each.
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
    /// The greatest. Of five rounds or more the true median lies between the two with a probability of at least 15/16,
    /// whatever the distribution.
    pub most: f64,
}

impl Paired {
    /// Compares launches of the same rounds, times in nanoseconds. `None` if there are none.
    fn of(first: &[f64], own: &[f64]) -> Option<Paired> {
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

/// A launch that is to be timed.
pub struct Candidate {
    /// The kernel.
    pub function: Function,
    /// How it is launched.
    pub geometry: Geometry,
    /// What it is given.
    pub arguments: Arguments,
}

/// Times every candidate. The results are in the candidates' order. `before` is done before each launch, untimed: where a
/// launch leaves what the next one must not find.
///
/// A failing launch ends the whole measurement, because it loses the context: check every candidate
/// once with a launch of its own before.
pub fn time(
    gpu: &Gpu,
    candidates: &[Candidate],
    options: &TimingOptions,
    before: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Vec<Timing>, Failure> {
    if options.rounds == 0 {
        return Err(Failure::new(FailureKind::Request, "0 rounds were asked for").accepted("at least 1"));
    }
    let flush = match options.cache {
        CacheState::Kept => None,
        CacheState::Flushed => Some(Flush::new(gpu)?),
    };
    let mut start = gpu.event()?;
    let mut end = gpu.event()?;
    let begun = Instant::now();
    for candidate in candidates.iter().cycle() {
        if begun.elapsed() >= WARM_UP {
            break;
        }
        before()?;
        candidate
            .function
            .launch(candidate.geometry, &candidate.arguments)?;
        end.record()?;
        end.wait(options.limit)?;
    }
    let mut samples = vec![Vec::with_capacity(options.rounds as usize); candidates.len()];
    for round in 0..options.warm_up + options.rounds {
        for turn in 0..candidates.len() {
            let which = (turn + round as usize) % candidates.len();
            let candidate = &candidates[which];
            before()?;
            if let Some(flush) = &flush {
                flush.run()?;
            }
            start.record()?;
            candidate
                .function
                .launch(candidate.geometry, &candidate.arguments)?;
            end.record()?;
            end.wait(options.limit)?;
            if round >= options.warm_up {
                samples[which].push(end.since(&start)?.as_secs_f64() * 1e9);
            }
        }
    }
    let summarise = |own: &Vec<f64>| Timing {
        paired: Paired::of(&samples[0], own),
        ..Timing::of(own.clone(), options.cache).expect("there is at least one round")
    };
    Ok(samples.iter().map(summarise).collect())
}

/// Reads a buffer of four times the L2 cache's size, so that the cache holds nothing else, and
/// nothing that would have to be written back.
struct Flush {
    function: Function,
    geometry: Geometry,
    arguments: Arguments,
    _buffer: Buffer,
}

impl Flush {
    fn new(gpu: &Gpu) -> Result<Flush, Failure> {
        let bytes = (gpu.facts().l2_bytes.max(1 << 20) as usize * 4).next_multiple_of(1 << 20);
        let mut buffer = gpu.allocate(bytes)?;
        buffer.fill(0)?;
        let mut arguments = Arguments::new();
        arguments.push_address(buffer.address());
        arguments.push(&((bytes / 16) as u64).to_le_bytes());
        Ok(Flush {
            function: gpu.load(include_str!("flush.ptx"), "flush")?,
            geometry: Geometry {
                groups: [gpu.facts().cores * 8, 1, 1],
                group: [256, 1, 1],
                dynamic_shared_bytes: 0,
            },
            arguments,
            _buffer: buffer,
        })
    }

    fn run(&self) -> Result<(), Failure> {
        self.function.launch(self.geometry, &self.arguments)
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
