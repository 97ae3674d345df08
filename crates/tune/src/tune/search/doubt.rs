//! Doubt: the simulator's answer is within its known error, so a measurement has to decide.

use super::choose::may_lose;
use super::interval::Kind;
use crate::report::number::{interval, speedup};
use crate::report::{THRESHOLD, Trial, Verdict};

/// Whether the simulator can tell which of two kernels is faster, of which one has this speedup over the other.
pub fn settles(speedup: f64) -> bool {
    Kind::Launch.around(speedup.max(1.0 / speedup), None).0 >= 1.0
}

/// Why a verdict from simulated times is in doubt, and how to resolve it; none if it is not in doubt: a plan was not chosen, because
/// it may lose by its [interval](super::interval), and half of those of its kind are worth it.
pub fn doubt(verdict: Verdict, trials: &[Trial]) -> Option<String> {
    let expected = |&(trial, reached): &(&Trial, f64)| Kind::of(&trial.plan).expected(reached);
    let (trial, reached) = trials
        .iter()
        .filter(|trial| !trial.plan.is_none())
        .filter_map(|trial| Some((trial, trial.measured()?.1)))
        .max_by(|one, other| expected(one).total_cmp(&expected(other)))
        .filter(|one| verdict == Verdict::LeaveIt && expected(one) >= THRESHOLD)?;
    Some(format!(
        "The simulator cannot settle this: `{}` is predicted to reach {}, in nine of ten cases {}. Measure it on the device.",
        trial.plan,
        speedup(reached),
        interval(trial.between.filter(|(low, _)| may_lose(*low))?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefetch::Plan;
    use crate::report::{Outcome, Outputs};

    #[test]
    fn a_gain_that_may_be_a_loss_is_in_doubt_and_nothing_else() {
        let doubted = |verdict: Verdict, reached: f64| {
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
            doubt(verdict, &trials)
        };
        let text = doubted(Verdict::LeaveIt, 1.05).expect("a doubt");
        assert!(
            text.contains("reach 1.05×, in nine of ten cases 0.95–1.26×. Measure"),
            "{text}"
        );
        // What is not expected to be worth it is not, however far its interval reaches.
        assert_eq!(doubted(Verdict::LeaveIt, 0.95), None);
        assert_eq!(doubted(Verdict::Prefetch, 1.05), None);
    }
}
