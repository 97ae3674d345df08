//! The simulator's answers held against measurements, case by case.
//!
//! The verdict is that of `headstart tune` and `headstart advise`: the choice among the plans with the simulator's times. It is
//! *wrong* if its plan is slower than the plain kernel in every round, or if it names no plan although 10 % or more can be
//! gained; it does not matter if nothing on either side is 3 % away from the plain kernel.
//!
//! Beside it stands the verdict with the GPU: of `headstart tune` and `headstart advise` on `cuda:0`, which measure twenty
//! plans, recomputed from the recorded measurements. Its gain is the measured one; it can only be wrong in its choice of plans
//! to measure.

use headstart::Result;
use headstart::prefetch::Plan;
use headstart::report::{Geometry, Outcome, Outputs, THRESHOLD, Trial, Verdict};
use headstart::tune::choose::choose;
use headstart::tune::doubt::doubt;
use headstart::tune::interval::Kind;
use headstart::tune::{BATCH, MEASURED, Proposals};

use super::cases;
use super::record::{Entry, Record, Side};

/// Where no other geometry is looked at, the own one does not matter.
const NO_OTHER: Geometry = Geometry { groups: 1, group: 1 };

/// A gain that may not be missed: 10 %.
const TO_BE_HAD: f64 = 1.10;

/// A plan's speedups over the plain kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The plan.
    pub plan: String,
    /// By the simulator.
    pub simulated: f64,
    /// On the GPU.
    pub measured: f64,
}

impl Compared {
    /// Simulated over measured: above 1 the simulator promises too much.
    pub fn ratio(&self) -> f64 {
        self.simulated / self.measured
    }
}

/// How the simulator did on a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The case.
    pub case: String,
    /// The answer from simulation alone.
    pub alone: JudgedVerdict,
    /// Whether that answer says that it is in doubt, and to measure.
    pub doubted: bool,
    /// The speedup that it expects.
    pub expected: f64,
    /// The answer of a search that measures [`MEASURED`] plans.
    pub with_gpu: JudgedVerdict,
    /// The fastest measured plan of all, or `none`.
    pub best: String,
    /// Its measured speedup.
    pub best_speedup: f64,
    /// The plain kernel's simulated time over the measured one.
    pub plain_ratio: f64,
    /// The plans that both sides have.
    pub plans: Vec<Compared>,
    /// Spearman's rank correlation of the two sides' times, the plain kernel among them.
    pub rank_correlation: Option<f64>,
    /// How much slower than the fastest the simulator's first is, of all plans: 0 where it is the fastest.
    pub regret: f64,
    /// The same for the result of a tuner that measures [`MEASURED`] plans, as it would have been with these times.
    pub regret_of_few: f64,
}

/// A verdict, held against the measurement of all plans.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedVerdict {
    /// The verdict.
    pub says: Verdict,
    /// The plan that goes with it, or `none`.
    pub pick: String,
    /// The speedup that was measured of it.
    pub measured: f64,
    /// Whether it stands.
    pub standing: Standing,
}

/// Whether a verdict stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Right,
    /// Nothing is 3 % away from the plain kernel: any verdict does.
    NoMatter,
    /// The plan that it names is slower than the plain kernel.
    Slower,
    /// It names none where 10 % or more can be gained.
    Missed,
    /// The same, and it says that it is in doubt and to be measured.
    Doubted,
    /// The plan that it names could not be measured.
    NotMeasured,
}

/// Judges all cases that have both sides.
///
/// # Errors
/// A plan of the record cannot be read.
pub fn of(record: &Record) -> Result<Vec<Judgement>> {
    let both = record.cases.iter().filter_map(|case| {
        let (measured, simulated) = (case.measured.as_ref()?, case.simulated.as_ref()?);
        let is_whole = |side: &Side| side.error.is_none() && side.plain_ns > 0.0 && side.is_whole();
        (is_whole(measured) && is_whole(simulated)).then_some((&case.case, measured, simulated))
    });
    let known = cases::all();
    both.map(|(name, measured, simulated)| {
        let (searched, likely) = match known.iter().find(|case| case.name() == *name) {
            Some(case) => (case.searched()?, case.likely()?),
            // A case of another version: whatever was simulated.
            None => {
                let all = trials(simulated)?.into_iter().map(|trial| trial.plan);
                (all.collect(), Vec::new())
            }
        };
        judge(name, &searched, &likely, measured, simulated)
    })
    .collect()
}

fn judge(
    case: &str,
    searched: &[Plan],
    likely: &[Plan],
    measured: &Side,
    simulated: &Side,
) -> Result<Judgement> {
    let pairs: Vec<(&Entry, &Entry)> = simulated
        .plans
        .iter()
        .filter_map(|own| Some((own, measured.plans.iter().find(|other| other.plan == own.plan)?)))
        .collect();
    let mut all = trials(simulated)?;
    for trial in &mut all {
        let between = |(_, speedup)| Kind::of(&trial.plan).around(speedup, None);
        trial.between = trial.measured().map(between);
    }
    let is_measured = |plan: &str| pairs.iter().any(|(own, _)| own.plan == plan);
    let tried: Vec<Trial> = all
        .into_iter()
        .filter(|trial| searched.contains(&trial.plan) && is_measured(&trial.plan.to_string()))
        .collect();
    let (says, choice) = choose((NO_OTHER, simulated.plain_ns), &tried, None, None, false);
    let doubted = doubt(says, &tried).is_some();
    let few = of_few(&pairs, likely)?;
    let (few_say, of_few) = choose((NO_OTHER, measured.plain_ns), &few, None, None, false);
    let best = measured
        .plans
        .iter()
        .filter(|entry| entry.speedup > 1.0)
        .max_by(|one, other| one.speedup.total_cmp(&other.speedup));
    let best_speedup = best.map_or(1.0, |best| best.speedup);
    let answer = |says: Verdict, plan: &Plan, doubted: bool| {
        let pick = plan.to_string();
        let of_pick = measured.plans.iter().find(|entry| entry.plan == pick);
        JudgedVerdict {
            says,
            measured: of_pick.map_or(1.0, |entry| entry.speedup),
            standing: standing(says, of_pick, best, doubted),
            pick,
        }
    };
    let mut ranked = pairs.clone();
    ranked.sort_by(|one, other| other.0.speedup.total_cmp(&one.0.speedup));
    let first = ranked.first().filter(|(own, _)| own.speedup > 1.0);
    let of_first = first.map_or(1.0, |(_, measured)| measured.speedup);
    let with_plain = |side: fn(&(&Entry, &Entry)) -> f64| -> Vec<f64> {
        std::iter::once(1.0).chain(pairs.iter().map(side)).collect()
    };
    Ok(Judgement {
        case: case.to_owned(),
        alone: answer(says, &choice.plan, doubted),
        doubted,
        expected: choice.speedup,
        with_gpu: answer(few_say, &of_few.plan, false),
        best: best.map_or("none".to_owned(), |best| best.plan.clone()),
        best_speedup,
        plain_ratio: simulated.plain_ns / measured.plain_ns,
        plans: pairs
            .iter()
            .map(|(own, measured)| Compared {
                plan: own.plan.clone(),
                simulated: own.speedup,
                measured: measured.speedup,
            })
            .collect(),
        rank_correlation: rank_correlation(
            &with_plain(|pair| pair.0.speedup),
            &with_plain(|pair| pair.1.speedup),
        ),
        regret: best_speedup / of_first - 1.0,
        regret_of_few: best_speedup / fastest(&few) - 1.0,
    })
}

/// Whether a verdict stands that names the plan `of_pick`, where `best` is the fastest of all.
fn standing(says: Verdict, of_pick: Option<&Entry>, best: Option<&Entry>, doubted: bool) -> Standing {
    let least = |entry: &Entry| entry.between.map_or(entry.speedup, |(least, _)| least);
    let most = |entry: &Entry| entry.between.map_or(entry.speedup, |(_, most)| most);
    match of_pick {
        None if says != Verdict::LeaveIt => Standing::NotMeasured,
        Some(entry) if most(entry) < 1.0 / THRESHOLD => Standing::Slower,
        None if best.is_some_and(|best| least(best) >= TO_BE_HAD) => match doubted {
            true => Standing::Doubted,
            false => Standing::Missed,
        },
        _ if best.is_none_or(|best| best.speedup < THRESHOLD) => Standing::NoMatter,
        _ => Standing::Right,
    }
}

/// The plans that a tuner with [`MEASURED`] measurements measures: its search, with the recorded times.
fn of_few(pairs: &[(&Entry, &Entry)], likely: &[Plan]) -> Result<Vec<Trial>> {
    let plans = pairs.iter().map(|(own, _)| own.plan.parse());
    let mut proposals = Proposals::new(&plans.collect::<Result<Vec<Plan>>>()?, likely);
    let mut measured: Vec<usize> = Vec::new();
    while measured.len() < MEASURED {
        let batch = proposals.next(BATCH.min(MEASURED - measured.len()));
        if batch.is_empty() {
            break;
        }
        for index in batch {
            proposals.learn(index, Some(pairs[index].1.speedup));
            measured.push(index);
        }
    }
    // In the order that they are listed, as the tuner reports them.
    measured.sort_unstable();
    measured.into_iter().map(|index| trial(pairs[index].1)).collect()
}

/// The greatest speedup; the plain kernel is always among the measured ones.
fn fastest(trials: &[Trial]) -> f64 {
    let speedups = trials.iter().filter_map(Trial::measured);
    speedups.fold(1.0, |fastest, (_, speedup)| f64::max(fastest, speedup))
}

fn trials(side: &Side) -> Result<Vec<Trial>> {
    side.plans.iter().map(trial).collect()
}

fn trial(entry: &Entry) -> Result<Trial> {
    Ok(Trial {
        takes: None,
        between: entry.between,
        plan: entry.plan.parse::<Plan>()?,
        outcome: Outcome::Ok {
            time_ns: entry.ns,
            speedup: entry.speedup,
            outputs: Outputs::Identical,
        },
    })
}

/// Spearman's: the correlation of ranks; equal values share the mean of theirs. None where a side has one value only.
pub fn rank_correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let (one, other) = (ranks(one), ranks(other));
    let mean = (one.len() as f64 - 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum() };
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    (scale > 0.0).then(|| product(&one, &other) / scale)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The middle one; of none 0.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn side(speedups: &[(&str, f64)]) -> Side {
        let entry = |&(plan, speedup): &(&str, f64)| Entry {
            plan: plan.to_owned(),
            ns: 1000.0 / speedup,
            speedup,
            between: Some((speedup * 0.99, speedup * 1.01)),
            registers: None,
        };
        Side {
            plain_ns: 1000.0,
            plans: speedups.iter().map(entry).collect(),
            ..Side::default()
        }
    }

    fn judged(simulated: &[(&str, f64)], measured: &[(&str, f64)]) -> Judgement {
        let searched: Vec<Plan> = simulated
            .iter()
            .map(|(plan, _)| plan.parse().expect("a plan"))
            .collect();
        judge("case", &searched, &[], &side(measured), &side(simulated)).expect("plans")
    }

    #[test]
    fn a_verdict_stands_or_falls_with_the_measurement() {
        let (ring, hint) = ("v=rolling-registers:4", "v=cache:L2:2");
        let right = judged(
            &[("unroll:4", 1.2), (ring, 2.0)],
            &[("unroll:4", 1.5), (ring, 1.8)],
        );
        assert_eq!(
            (right.alone.standing, right.alone.pick.as_str()),
            (Standing::Right, ring)
        );
        assert_eq!(
            (right.expected, right.alone.measured, right.regret),
            (2.0, 1.8, 0.0)
        );
        assert_eq!(right.rank_correlation, Some(1.0));
        let slower = judged(&[(ring, 1.2)], &[(ring, 0.8)]);
        assert_eq!(slower.alone.standing, Standing::Slower);
        // A measurement shows it.
        assert_eq!(
            (slower.with_gpu.standing, slower.with_gpu.says),
            (Standing::NoMatter, Verdict::LeaveIt)
        );
        let missed = judged(&[(ring, 1.0)], &[(ring, 1.2)]);
        assert_eq!(
            (missed.alone.standing, missed.alone.pick.as_str()),
            (Standing::Missed, "none")
        );
        assert_eq!(
            (missed.with_gpu.standing, missed.with_gpu.pick.as_str()),
            (Standing::Right, ring)
        );
        // A little too slow, or a little missed.
        assert_eq!(
            judged(&[(ring, 1.2)], &[(ring, 0.99)]).alone.standing,
            Standing::NoMatter
        );
        assert_eq!(
            judged(&[(ring, 1.0)], &[(ring, 1.05)]).alone.standing,
            Standing::Right
        );
        let other = judged(&[(hint, 1.5), (ring, 1.4)], &[(hint, 1.0), (ring, 2.0)]);
        assert!((other.regret - 1.0).abs() < 1e-12 && other.regret_of_few == 0.0);
        assert_eq!(other.alone.measured, 1.0);
    }

    #[test]
    fn a_no_in_doubt_is_told_apart() {
        let hint = "v=cache:L2:4";
        let searched = [hint.parse().expect("a plan")];
        let judged = judge(
            "case",
            &searched,
            &[],
            &side(&[(hint, 1.2)]),
            &side(&[(hint, 1.04)]),
        )
        .expect("plans");
        assert_eq!((judged.alone.standing, judged.doubted), (Standing::Doubted, true));
    }

    #[test]
    fn ranks_share_what_is_equal() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[9.0, 8.0, 7.0]), Some(-1.0));
        assert_eq!(rank_correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), 2.5);
    }
}
