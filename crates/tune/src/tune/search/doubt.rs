//! Doubt: the simulator's answer is within its known error, so a measurement has to decide.

use super::choose::is_sure;
use super::interval::Kind;
use crate::evidence::Bounds;
use crate::report::number::{interval, speedup};
use crate::report::{THRESHOLD, Trial, Verdict};

/// A gain that may not be missed: 10 %.
pub const TO_BE_HAD: f64 = 1.10;

/// Whether the simulator can tell which of two kernels is faster, of which one has this speedup over the other.
pub fn settles(speedup: f64) -> bool {
    is_sure(Some(Kind::Launch.around(speedup.max(1.0 / speedup), None)))
}

/// Why a verdict from simulated times is in doubt, and how to resolve it; none if it is not in doubt. What is recommended is
/// not: it is faster by its whole [interval](super::interval).
pub fn doubt(verdict: Verdict, trials: &[Trial], bounds: Option<&Bounds>) -> Option<String> {
    if verdict != Verdict::LeaveIt {
        return None;
    }
    let (trial, reached) = trials
        .iter()
        .filter(|trial| !trial.plan.is_none())
        .filter_map(|trial| Some((trial, trial.measured()?.1)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let (low, high) = trial.between?;
    let limit = bounds.filter(|bounds| bounds.best_speedup >= TO_BE_HAD);
    // It was not chosen for what it may lose, or it may gain what the device's limits leave.
    let is_near = reached >= THRESHOLD && low < 1.0;
    if !is_near && (limit.is_none() || high < TO_BE_HAD) {
        return None;
    }
    let limit = limit.and_then(|bounds| bounds.nearest(reached));
    let limit = limit.map_or(String::new(), |(limit, factor)| {
        format!(", and {limit} would allow {}", speedup(factor))
    });
    Some(format!(
        "The simulator cannot settle this: `{}` is predicted to reach {}, in nine of ten cases {}{limit}. Measure it on the \
         device.",
        trial.plan,
        speedup(reached),
        interval((low, high)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Roof;
    use crate::prefetch::Plan;
    use crate::report::{Outcome, Outputs};

    fn doubted(verdict: Verdict, reached: f64, room: f64) -> Option<String> {
        let plan: Plan = "unroll:2".parse().expect("a plan");
        let trials = [Trial {
            takes: None,
            between: Some((reached * 0.9, reached * 1.2)),
            plan,
            outcome: Outcome::Ok {
                time_ns: 1000.0 / reached,
                speedup: reached,
                outputs: Outputs::Identical,
            },
        }];
        let bounds = Bounds {
            roofs: vec![Roof {
                name: "bandwidth of device memory".to_owned(),
                least_ns: 1000.0 / room,
            }],
            best_speedup: room,
            without_waiting: None,
            distance: None,
            iterations: None,
        };
        doubt(verdict, &trials, Some(&bounds))
    }

    #[test]
    fn a_no_is_in_doubt_where_a_plan_may_gain_what_the_device_leaves() {
        let text = doubted(Verdict::LeaveIt, 0.95, 2.04).expect("a doubt");
        assert!(
            text.contains("`unroll:2` is predicted to reach 0.95×, in nine of ten cases 0.85–1.14×, and bandwidth of device memory would allow 2.04×"),
            "{text}"
        );
        assert_eq!(doubted(Verdict::LeaveIt, 0.95, 1.04), None);
        assert_eq!(doubted(Verdict::LeaveIt, 0.5, 2.04), None);
        assert_eq!(doubted(Verdict::Prefetch, 1.5, 2.0), None);
    }

    #[test]
    fn a_gain_that_may_be_a_loss_is_in_doubt_whatever_the_limits() {
        let text = doubted(Verdict::LeaveIt, 1.05, 1.0).expect("a doubt");
        assert!(
            text.contains("reach 1.05×, in nine of ten cases 0.95–1.26×. Measure"),
            "{text}"
        );
    }
}
