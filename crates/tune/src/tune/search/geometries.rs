//! The same work in other geometries: the fastest one for the plain kernel, and the fastest plan there.
//!
//! With more work-groups other plans win than with few, often none, and a simulation of full cores takes several times as
//! long. So few are tried there: the shortest unrolling and the fastest, and the fastest of the two best other kinds.

use std::sync::{Arc, Mutex, PoisonError};

use super::derivation::Derivation;
use super::interval::{self, Kind};
use super::proposals::fastest_of_kinds;
use super::race::Race;
use super::space::likely_plans_for;
use super::trying::{Memory, Pair, Trying};
use crate::error::{Error, Result};
use crate::ir::{Kernel, print};
use crate::prefetch::Plan;
use crate::report::{Elsewhere, Outcome, PlainBest, THRESHOLD, Trial};
use crate::tune::Log;
use crate::tune::bench::Bench;
use crate::tune::check::perturb::{Engine, Perturbed, Settings, Thoroughness};
use crate::tune::progress::{GoesOn, Progress};
use crate::tune::search::{derive, main_loads, plain, registers_left};
use crate::tune::subject::workload::Workload;
use crate::tune::subject::{Reshaped, Subject};
use crate::tune::threads;
use crate::tune::threads::shielded;

/// How many kinds of plans are tried in another geometry, unrolling not counted.
const KINDS: usize = 2;

/// The search here, for one elsewhere.
pub(crate) struct Here<'a> {
    pub subject: &'a dyn Subject,
    pub bench: &'a dyn Bench,
    pub progress: &'a dyn Progress,
    pub workload: &'a Workload,
    /// The plain kernel.
    pub kernel: &'a Arc<Kernel>,
    /// The plans tried.
    pub trials: &'a [Trial],
    pub log: Option<&'a Log>,
    /// The launches that the plans here are checked on.
    pub perturbed: Option<&'a Perturbed>,
    /// How others are derived.
    pub settings: Settings,
    /// Whether plans that are surely behind are dropped.
    pub race: bool,
    /// An upper bound on a plan's speedup over the plain kernel here, for any geometry, if known.
    pub at_most: Option<f64>,
}

/// A search's end, without a word of what is tried.
struct Silent<'a>(&'a dyn Progress);

impl Progress for Silent<'_> {
    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    fn trying(&self, is_trying: bool) {
        self.0.trying(is_trying);
    }
}

/// The plain kernel at the geometry where it does the same work fastest; none where it is not faster elsewhere.
pub(crate) fn plain_best(
    subject: &dyn Subject,
    bench: &dyn Bench,
    here: &Workload,
    progress: &dyn Progress,
    baseline_ns: f64,
) -> Result<Option<(PlainBest, Reshaped)>> {
    // By how much a geometry is slower than the fastest so far does not matter.
    let fastest_ns = Mutex::new(baseline_ns);
    let fastest = || fastest_ns.lock().unwrap_or_else(PoisonError::into_inner);
    let time = |shape: &Reshaped| -> Result<Option<PlainBest>> {
        // A stopped search begins no other one.
        if progress.is_stopped() {
            return Ok(None);
        }
        let kernel = plain(bench, &shape.workload)?;
        let bound = shape.workload.bind(bench.device())?;
        let limit_ns = *fastest();
        let Some(time_ns) = bench.time_within(&bound, &kernel, limit_ns)? else {
            return Ok(None);
        };
        let mut fastest = fastest();
        *fastest = fastest.min(time_ns);
        Ok(Some(PlainBest {
            geometry: shape.geometry,
            parameters: shape.parameters.clone(),
            time_ns,
            speedup: baseline_ns / time_ns,
            between: bench
                .simulator()
                .map(|_| Kind::Launch.around(baseline_ns / time_ns, None)),
        }))
    };
    // A geometry that the device cannot launch is no candidate.
    let mut shapes = subject.same_work()?;
    for shape in &mut shapes {
        shape.workload.divides = Some((Arc::clone(&here.kernel), here.geometry()));
    }
    let timed: Vec<Result<Option<PlainBest>>> = match bench.simulator() {
        Some(_) => threads::map(&shapes, time),
        None => shapes.iter().map(time).collect(),
    };
    let fastest = timed
        .into_iter()
        .zip(shapes)
        .filter_map(|(timed, shape)| Some((timed.ok()??, shape)))
        .max_by(|(one, _), (other, _)| one.speedup.total_cmp(&other.speedup));
    Ok(fastest.filter(|(fastest, _)| fastest.speedup > 1.0))
}

/// The fastest plan in that geometry; none where none is worth it there.
///
/// # Errors
/// The plain kernel goes wrong there, or a plan that was accepted does.
pub(crate) fn planned(here: &Here<'_>, there: &PlainBest, shape: &Reshaped) -> Result<Option<Elsewhere>> {
    let is_out_of_reach = here
        .at_most
        .is_some_and(|at_most| there.speedup <= at_most && there.speedup * THRESHOLD > at_most);
    // Where the plain kernel is hardly faster, the plans are the same that were tried here.
    if is_out_of_reach || there.speedup < THRESHOLD {
        return Ok(None);
    }
    let kernel = plain(here.bench, &shape.workload)?;
    // The plans were checked at every number of iterations with this kernel, in work-groups of this size; another is checked
    // at full size only, which is enough where nothing else can be.
    let is_other = shape.workload.group != here.workload.group || kernel.body != here.kernel.body;
    if is_other && here.subject.small(1)?.is_some() {
        return Ok(None);
    }
    // The registers that the launch here leaves are not those that the launch there does.
    let registers = registers_left(here.bench, &shape.workload);
    let with_registers = |plan: Plan| {
        let registers = registers.filter(|_| plan.registers().is_some());
        plan.with_registers(registers)
    };
    let plans = worth_trying(here.trials).into_iter().map(with_registers);
    let plans: Vec<Plan> = plans.filter(|plan| !plan.is_none()).collect();
    let derivation = Derivation::new(&plans, |plan| {
        shielded(|| derive(here.bench, &shape.workload, &kernel, plan))
    });
    derivation.all();
    let pairs: Vec<Pair<'_>> = (0..plans.len()).map(|index| derivation.pair(index)).collect();
    let derived = || pairs.iter().filter_map(|(_, derived)| derived.as_ref().ok());
    let bound = shape.workload.bind(here.bench.device())?;
    // The same kernel in work-groups of the same size has the same launches.
    let is_same = shape.workload.group == here.workload.group && print(&kernel) == print(here.kernel);
    let legal = derived().map(|derived| &derived.plan);
    let own = match here.perturbed.filter(|_| is_same) {
        Some(_) => None,
        None => Some(Perturbed::new(
            &shape.workload,
            &kernel,
            Engine::of(here.bench, &shape.workload),
            legal,
            here.settings,
        )?),
    };
    let perturbed = own.as_ref().or(here.perturbed);
    let likely =
        likely_plans_for(&kernel, &main_loads(&kernel), &here.bench.platform().levels()).unwrap_or_default();
    let trying = Trying {
        subject: &shape.workload,
        bench: here.bench,
        workload: &shape.workload,
        kernel: &kernel,
        bound: &bound,
        memory: &Memory::new(here.log, here.bench, &shape.workload, &kernel),
        perturbed,
        progress: &Silent(here.progress),
        likely: &likely,
        goes_on: GoesOn::default(),
        race: here.race.then(|| Race::new(&kernel, likely.clone())),
    };
    let tried = match here.bench.simulator() {
        Some(simulator) => trying.at_once(simulator, &pairs, |_| ())?.0,
        None => trying.in_turns(&derivation, None, None)?,
    };
    let went_wrong = |(trial, _): &(Trial, _)| match &trial.outcome {
        Outcome::Failed { reason, .. } => Some(Error::bug(format!(
            "plan `{}` as {} went wrong: {reason}",
            trial.plan, there.geometry
        ))),
        Outcome::Ok { .. } | Outcome::Dropped { .. } | Outcome::Rejected { .. } => None,
    };
    if let Some(error) = tried.trials.iter().find_map(went_wrong) {
        return Err(error);
    }
    let ran = tried.trials.iter();
    let fastest = ran
        .filter_map(|(trial, _)| Some((&trial.plan, trial.measured()?.1, trial.between)))
        .max_by(|(_, one, _), (_, other, _)| one.total_cmp(other));
    let Some((plan, speedup, between)) = fastest.filter(|(_, speedup, _)| *speedup >= THRESHOLD) else {
        return Ok(None);
    };
    // A recommended plan has to agree on all launches.
    let of_plan = derived().find(|derived| derived.plan == *plan);
    let (Some(perturbed), Some(of_plan)) = (perturbed, of_plan) else {
        return Err(Error::bug(format!("plan `{plan}` was timed and not derived")));
    };
    let agreed = shielded(|| perturbed.check(plan, &of_plan.kernel, Thoroughness::All))
        .map_err(|error| Error::bug(format!("plan `{plan}` as {} went wrong: {error}", there.geometry)))?;
    Ok(Some(Elsewhere {
        geometry: there.geometry,
        parameters: there.parameters.clone(),
        plan: plan.clone(),
        time_ns: there.time_ns / speedup,
        speedup: there.speedup * speedup,
        between: (there.between.zip(between))
            .map(|(of_there, of_plan)| interval::product((there.speedup, of_there), (speedup, of_plan))),
        perturbed: Some(perturbed.summary(plan, &of_plan.kernel, agreed)),
    }))
}

/// Of the plans that ran, the shortest unrolling and the fastest, and the fastest plans of the best other kinds.
fn worth_trying(trials: &[Trial]) -> Vec<Plan> {
    let ran = trials
        .iter()
        .filter_map(|trial| Some((trial.plan.clone(), trial.measured()?.1)))
        .filter(|(plan, _)| !plan.is_none());
    let (unrollings, others): (Vec<(Plan, f64)>, Vec<(Plan, f64)>) =
        ran.partition(|(plan, _)| plan.loads().is_empty());
    let iterations = |plan: &Plan| plan.unroll().and_then(|unroll| unroll.iterations());
    let shortest = unrollings
        .iter()
        .min_by_key(|(plan, _)| iterations(plan).unwrap_or(u32::MAX));
    let fastest = unrollings
        .iter()
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut plans: Vec<Plan> = shortest
        .into_iter()
        .chain(fastest)
        .map(|(plan, _)| plan.clone())
        .collect();
    plans.dedup();
    plans.extend(fastest_of_kinds(&others, KINDS));
    plans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outputs;

    #[test]
    fn two_unrollings_and_the_fastest_of_two_kinds_are_worth_trying() {
        let trial = |&(plan, speedup): &(&str, f64)| Trial {
            takes: None,
            between: None,
            plan: plan.parse().expect("a plan"),
            outcome: match speedup > 0.0 {
                true => Outcome::Ok {
                    time_ns: 1000.0 / speedup,
                    speedup,
                    outputs: Outputs::Identical,
                },
                false => Outcome::Rejected {
                    reason: "it takes too much shared memory".to_owned(),
                },
            },
        };
        let trials: Vec<Trial> = [
            ("none", 1.0),
            ("unroll:2", 1.1),
            ("unroll:4", 1.2),
            ("unroll:8", 1.5),
            ("unroll:16", 0.0),
            ("v=rolling-async:4", 2.0),
            ("v=rolling-async:8", 2.1),
            ("v=rolling-registers:4", 1.5),
            ("unroll:4,v=rolling-async:8", 3.0),
        ]
        .iter()
        .map(trial)
        .collect();
        let plans: Vec<String> = worth_trying(&trials).iter().map(Plan::to_string).collect();
        assert_eq!(
            plans,
            [
                "unroll:2",
                "unroll:8",
                "unroll:4,v=rolling-async:8/interleaved",
                "v=rolling-async:8/interleaved"
            ]
        );
    }
}
