//! Which launches take the better kernel, which the original for comparison, and which are timed.
//!
//! The better kernel runs from the first launch on: it was faster in the search. One launch in sixteen of the first 256 is the
//! original, later one in 256, so that a kernel that is slower in this program is noticed. Long launches are compared less often,
//! since a few of them say enough and each costs much. Around short ones, events would cost more than there is to gain: one in a
//! hundred has some.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::record::Counts;

/// Launches that are compared often.
const FIRST: u64 = 256;
/// Launches below this are short, in nanoseconds.
const SHORT_NS: u64 = 20_000;
/// Launches from here on are long.
const LONG_NS: u64 = 1_000_000;
/// The place of a comparison in its period: the very first launches pay for one-time work.
const AT: u64 = 2;

/// The part of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub takes_better: bool,
    pub is_timed: bool,
}

/// The turn of a launch, counted from 0. `usual_ns` is the time that launches take; 0 if it is not known yet.
pub fn of(number: u64, usual_ns: u64) -> Turn {
    let is_short = usual_ns > 0 && usual_ns < SHORT_NS;
    // Powers of two, since every launch pays for this.
    let period: u64 = match (number < FIRST, is_short) {
        (_, true) => 256,
        (true, false) if usual_ns >= LONG_NS => 64,
        (true, false) => 16,
        (false, false) => 256,
    };
    let place = number & (period - 1);
    // A long launch is compared with its neighbours; the first ones are more of them, to decide soon.
    let is_near = place + 1 == AT || (!is_short && place == AT + 1);
    let is_early = !is_short && (1..8).contains(&number);
    Turn {
        takes_better: place != AT,
        is_timed: place == AT || is_near || is_early,
    }
}

/// Timed launches of a better kernel and of its original.
#[derive(Debug, Default)]
pub struct Times {
    /// The shortest time of the better kernel, in nanoseconds; 0 before there is one.
    least_ns: AtomicU64,
}

impl Times {
    pub const fn new() -> Times {
        Times {
            least_ns: AtomicU64::new(0),
        }
    }

    /// A launch took so long; whether the better kernel is slower by all that is known.
    pub fn add(&self, counts: &Counts, is_better: bool, ns: u64) -> bool {
        let (timed, total) = match is_better {
            true => (&counts.replaced_timed, &counts.replaced_ns),
            false => (&counts.original_timed, &counts.original_ns),
        };
        timed.fetch_add(1, Ordering::Relaxed);
        total.fetch_add(ns, Ordering::Relaxed);
        if is_better {
            let least = |now: u64| Some(if now == 0 { ns } else { now.min(ns) }.max(1));
            let _ = self
                .least_ns
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, least);
        }
        let load = |of: &AtomicU64| of.load(Ordering::Relaxed);
        is_slower(
            Timed {
                count: load(&counts.replaced_timed),
                total: load(&counts.replaced_ns),
                least: load(&self.least_ns),
            },
            load(&counts.original_timed),
            load(&counts.original_ns),
        )
    }
}

/// Timed launches.
#[derive(Clone, Copy, Debug)]
struct Timed {
    count: u64,
    total: u64,
    least: u64,
}

/// Whether a better kernel is slower than its original. Launches of a program may be unlike: as long as there are few, all of the
/// better kernel's must be longer than the original's.
fn is_slower(better: Timed, originals: u64, original_ns: u64) -> bool {
    if better.count < 4 || originals == 0 {
        return false;
    }
    let original = original_ns as f64 / originals as f64;
    let mean = better.total as f64 / better.count as f64;
    match originals {
        1 => better.least as f64 > 1.1 * original,
        2 | 3 => better.least as f64 > original && mean > 1.05 * original,
        _ => mean > 1.02 * original,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_first(launches: u64, usual_ns: u64) -> (usize, usize) {
        let turns: Vec<Turn> = (0..launches).map(|number| of(number, usual_ns)).collect();
        (
            turns.iter().filter(|turn| !turn.takes_better).count(),
            turns.iter().filter(|turn| turn.is_timed).count(),
        )
    }

    #[test]
    fn one_launch_in_sixteen_of_the_first_is_the_original() {
        assert!(of(0, 0).takes_better && of(1, 0).takes_better && !of(2, 0).takes_better);
        assert_eq!(of_first(10, 0).0, 1);
        assert_eq!(of_first(256, 100_000).0, 16);
        assert_eq!(of_first(256 * 11, 100_000).0, 16 + 10);
        assert_eq!(of_first(256, 5_000_000).0, 4, "long ones");
    }

    #[test]
    fn one_short_launch_in_a_hundred_has_events() {
        assert_eq!(of_first(2560, 19_999), (10, 20));
        assert!(of_first(200, 20_000).1 > 40);
    }

    #[test]
    fn what_is_slower_is_noticed_within_eight_launches_and_noise_is_not() {
        let slow = |better: u64, original: u64| {
            let (counts, times) = (Counts::default(), Times::new());
            (0..256).find(|&number| {
                let turn = of(number, 0);
                let ns = if turn.takes_better { better } else { original };
                turn.is_timed && times.add(&counts, turn.takes_better, ns)
            })
        };
        assert!(slow(1200, 1000).is_some_and(|number| number < 8));
        assert!(slow(1060, 1000).is_some_and(|number| number < 32));
        assert!(slow(1030, 1000).is_some());
        assert_eq!(slow(1010, 1000), None);
        assert_eq!(slow(500, 1000), None);
        // Launches of a search from level to level: the original got a short one.
        let (counts, times) = (Counts::default(), Times::new());
        let all = [100, 500, 90, 3000, 4000, 95, 700];
        let noticed = all
            .iter()
            .zip(1..)
            .any(|(&ns, number)| times.add(&counts, of(number, 0).takes_better, ns));
        assert!(!noticed);
    }
}
