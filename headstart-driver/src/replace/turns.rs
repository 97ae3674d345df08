//! Which launches take the better kernel, which the original for comparison, and which are timed.
//!
//! The better kernel runs from the first launch on: it was faster in the search. One launch in sixteen of the first 256 is the
//! original, later one in 256, so that a kernel that is slower in this program is noticed. Long launches are compared less often,
//! since a few of them say enough and each costs much. Around short ones, events would cost more than there is to gain: one in a
//! hundred has some.

use std::sync::atomic::{AtomicU64, Ordering};

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

/// Timed launches of a better kernel and of its original, or of graphs with the one and the other.
#[derive(Debug, Default)]
pub struct Times {
    better: Timed,
    original: Timed,
}

/// Timed launches, in nanoseconds.
#[derive(Debug, Default)]
struct Timed {
    count: AtomicU64,
    total: AtomicU64,
    /// The shortest; 0 before there is one.
    least: AtomicU64,
}

impl Timed {
    fn add(&self, ns: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(ns, Ordering::Relaxed);
        let least = |now: u64| Some(if now == 0 { ns } else { now.min(ns) }.max(1));
        let _ = self
            .least
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, least);
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn mean(&self) -> f64 {
        self.total.load(Ordering::Relaxed) as f64 / self.count().max(1) as f64
    }
}

impl Times {
    /// A launch took so long; whether the better kernel is slower by all that is known.
    pub fn add(&self, is_better: bool, ns: u64) -> bool {
        match is_better {
            true => self.better.add(ns),
            false => self.original.add(ns),
        }
        self.is_slower()
    }

    /// What the original usually takes, in nanoseconds; 0 as long as it is not known.
    pub fn usual_ns(&self) -> u64 {
        self.original.mean() as u64
    }

    /// Whether the better kernel is slower. Launches of a program may be unlike: as long as there are few, all of the better
    /// kernel's must be longer than the original's.
    pub fn is_slower(&self) -> bool {
        let (originals, original) = (self.original.count(), self.original.mean());
        if self.better.count() < 4 || originals == 0 {
            return false;
        }
        let (least, mean) = (
            self.better.least.load(Ordering::Relaxed) as f64,
            self.better.mean(),
        );
        match originals {
            1 => least > 1.1 * original,
            2 | 3 => least > original && mean > 1.05 * original,
            _ => mean > 1.02 * original,
        }
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
            let times = Times::default();
            (0..256).find(|&number| {
                let turn = of(number, 0);
                let ns = if turn.takes_better { better } else { original };
                turn.is_timed && times.add(turn.takes_better, ns)
            })
        };
        assert!(slow(1200, 1000).is_some_and(|number| number < 8));
        assert!(slow(1060, 1000).is_some_and(|number| number < 32));
        assert!(slow(1030, 1000).is_some());
        assert_eq!(slow(1010, 1000), None);
        assert_eq!(slow(500, 1000), None);
        // Launches of a search from level to level: the original got a short one.
        let times = Times::default();
        let all = [100, 500, 90, 3000, 4000, 95, 700];
        let noticed = all
            .iter()
            .zip(1..)
            .any(|(&ns, number)| times.add(of(number, 0).takes_better, ns));
        assert!(!noticed);
    }
}
