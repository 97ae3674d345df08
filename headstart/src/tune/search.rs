//! The search: derive each plan, check it, time it, choose.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rayon::prelude::*;

use super::check::{Checks, compare};
use super::choose::{THRESHOLD, choose};
use super::space::default_plans;
use super::subject::Subject;
use super::workload::{Bound, Workload};
use crate::advise::{Evidence, Findings, reasons};
use crate::device::sim::Clock;
use crate::device::{Counters, Device};
use crate::error::{Error, Fault, Result};
use crate::ir::{CacheLevel, Kernel};
use crate::prefetch::plan::LoadName;
use crate::prefetch::{self, Plan};
use crate::report::{Outcome, Outputs, PlainBest, Report, Trial};

/// Where plans are checked and timed.
pub struct Bench<'d> {
    /// Where the data lies, and what runs kernels whole: a GPU, or the simulator's functional engine.
    pub device: &'d dyn Device,
    /// The simulator's timer, which tells times without computing everything; none where the device tells them.
    pub clock: Option<&'d dyn Clock>,
    /// What the passes must know of the device.
    pub target: prefetch::Target,
    /// The cache levels that the device tells apart, by the names that plans give them.
    pub levels: Vec<CacheLevel>,
    /// Who says what a run tells about its kernel.
    pub witness: &'d dyn Witness,
}

/// Says what a run tells about its kernel.
pub trait Witness: Sync {
    /// The evidence of one run of a kernel with a workload's geometry.
    fn evidence(&self, workload: &Workload, kernel: &Kernel, timed: &Timed) -> Evidence;
}

/// Follows a search. Called from several threads.
pub trait Progress: Sync {
    /// So many plans will be tried.
    fn begin(&self, plans: usize);
    /// One plan is done.
    fn done(&self, trial: &Trial);
}

/// A timed run.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// What the device counted meanwhile.
    pub counters: Counters,
    /// Its outputs, where everything was computed.
    pub outputs: Option<Vec<Vec<u8>>>,
}

/// What a search found.
#[derive(Debug)]
pub struct Tuned {
    /// The report; its counters and notes are still empty.
    pub report: Report,
    /// The plain kernel's run.
    pub plain: Timed,
    /// The run of the best plan, where that is not the plain kernel.
    pub best: Option<Timed>,
}

/// A kernel with a plan carried out, and the plan as completed.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// The plan with the parents that it carries.
    pub plan: Plan,
}

impl Bench<'_> {
    /// The kernel with its author's wishes carried out: what every plan starts from, and what is compared with.
    ///
    /// # Errors
    /// A wish cannot be carried out.
    pub fn plain(&self, workload: &Workload) -> Result<Arc<Kernel>> {
        let target = self.target_for(workload);
        Ok(Arc::new(prefetch::carry_out_wishes(&workload.kernel, &target)?))
    }

    /// A kernel with a plan carried out.
    ///
    /// # Errors
    /// The plan is not legal for the kernel.
    pub fn derive(&self, workload: &Workload, plain: &Kernel, plan: &Plan) -> Result<Derived> {
        let applied = prefetch::apply(plain, plan, &self.target_for(workload))?;
        Ok(Derived {
            kernel: Arc::new(applied.kernel),
            plan: applied.plan,
        })
    }

    fn target_for(&self, workload: &Workload) -> prefetch::Target {
        prefetch::Target {
            group_size: Some(workload.group),
            ..self.target
        }
    }

    /// Times one run.
    ///
    /// # Errors
    /// The device cannot run the kernel, or running it went wrong.
    pub fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        let Some(clock) = self.clock else {
            let (ran, outputs) = bound.run(self.device, kernel)?;
            let time_ns = ran.times.elapsed_ns();
            return Ok(Timed {
                time_ns,
                counters: ran.counters.clone(),
                outputs: Some(outputs),
            });
        };
        let launch = bound.prepare(self.device)?.launch;
        launch.check(kernel, self.device.description())?;
        let timing = clock.time(kernel, &clock.compile(kernel)?, &launch)?;
        Ok(Timed {
            time_ns: timing.elapsed_ns,
            counters: timing.counters,
            outputs: None,
        })
    }

    /// Whether several kernels may be timed at once: a simulator's clock is its own.
    fn times_at_once(&self) -> bool {
        self.clock.is_some()
    }
}

/// Tries plans for a kernel and chooses one. `plans` are those to try; none asks for the default space.
///
/// # Errors
/// The plain kernel cannot be run or goes wrong; all of the plans that were asked for are refused.
pub fn tune(
    subject: &dyn Subject,
    bench: &Bench<'_>,
    plans: Option<&[Plan]>,
    progress: &dyn Progress,
) -> Result<Tuned> {
    let workload = subject.workload()?;
    let kernel = bench.plain(&workload)?;
    let plans = match plans {
        Some(plans) => plans.to_vec(),
        None => default_plans(&main_loads(&kernel), &bench.levels)?,
    };
    let plans: Vec<Plan> = plans.into_iter().filter(|plan| !plan.is_none()).collect();
    progress.begin(plans.len() + 1);

    // What is not legal is known at once, and what is legal is checked at sizes that follow from the plan.
    let derive = |plan: &Plan| shielded(|| bench.derive(&workload, &kernel, plan));
    let derived: Vec<Result<Derived>> = plans.par_iter().map(derive).collect();
    let completed = || derived.iter().flatten().map(|derived| &derived.plan);
    let checks = Checks::new(subject, &kernel, bench.device, completed())?;

    let bound = workload.bind(bench.device)?;
    let plain = bench.time(&bound, &kernel)?;
    let baseline_ns = plain.time_ns;
    let none = trial(Plan::none(), baseline_ns, Ok((plain.clone(), Outputs::Identical))).0;
    progress.done(&none);

    let try_plan = |(plan, derived): (&Plan, &Result<Derived>)| {
        let run = || -> Result<(Timed, Outputs)> {
            let derived = derived.as_ref().map_err(Error::clone)?;
            let mut outputs = checks.check(&derived.plan, &derived.kernel)?;
            let timed = bench.time(&bound, &derived.kernel)?;
            if let (Some(right), Some(found)) = (&plain.outputs, &timed.outputs)
                && compare(&workload, right, found).map_err(|error| Error::bug(error.to_string()))?
                    != Outputs::Identical
            {
                outputs = Outputs::Equivalent;
            }
            Ok((timed, outputs))
        };
        let plan = derived.as_ref().map_or(plan, |derived| &derived.plan);
        let tried = trial(plan.clone(), baseline_ns, shielded(run));
        progress.done(&tried.0);
        tried
    };
    let pairs: Vec<_> = plans.iter().zip(&derived).collect();
    let tried: Vec<(Trial, Option<Timed>)> = match bench.times_at_once() {
        true => pairs.into_par_iter().map(try_plan).collect(),
        false => pairs.into_iter().map(try_plan).collect(),
    };
    if let Some(refusal) = everything_refused(&tried, &derived) {
        return Err(refusal);
    }

    let (trials, runs): (Vec<Trial>, Vec<Option<Timed>>) = tried.into_iter().unzip();
    let trials: Vec<Trial> = std::iter::once(none).chain(trials).collect();
    let plain_best = plain_best(subject, bench, baseline_ns)?;
    let (verdict, best) = choose(baseline_ns, &trials, plain_best.as_ref(), subject.may_be_split());
    let findings = Findings {
        verdict,
        best: (&best.plan, best.speedup),
        threshold: THRESHOLD,
        trials: &trials,
        plain_best: plain_best.as_ref(),
        may_be_split: subject.may_be_split(),
    };
    let reasons = reasons(&bench.witness.evidence(&workload, &kernel, &plain), &findings);
    let best_run = trials
        .iter()
        .skip(1)
        .zip(runs)
        .find(|(trial, _)| trial.plan == best.plan)
        .and_then(|(_, run)| run);
    let report = Report {
        kernel: subject.name().to_owned(),
        device: bench.device.description().name.clone(),
        baseline_ns,
        trials,
        best,
        verdict,
        reasons,
        geometry: Some(workload.geometry()),
        parameters: subject.parameters(),
        plain_best_geometry: plain_best,
        counters: Vec::new(),
        notes: Vec::new(),
    };
    Ok(Tuned {
        report,
        plain,
        best: best_run,
    })
}

/// The loads that plans of the default space name: those that may be fetched early and lead to no other load.
pub fn main_loads(kernel: &Kernel) -> Vec<LoadName> {
    let all = prefetch::candidates(kernel);
    let leads_on = |id| {
        all.iter()
            .any(|other| other.id != id && other.parents.contains(&id))
    };
    let main = all
        .iter()
        .filter(|load| load.refusal.is_none() && !leads_on(load.id));
    let mut names: Vec<LoadName> = main.map(|load| load.name.clone()).collect();
    names.dedup();
    names
}

/// Runs one trial's work. A panic in it is a bug of ours, and costs this trial only.
fn shielded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        let said = said
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("it stopped without a word");
        Err(Error::bug(said.replace('\n', " ")))
    })
}

fn trial(plan: Plan, baseline_ns: f64, result: Result<(Timed, Outputs)>) -> (Trial, Option<Timed>) {
    match result {
        Ok((timed, outputs)) => {
            let time_ns = timed.time_ns;
            let outcome = Outcome::Ok {
                time_ns,
                speedup: baseline_ns / time_ns,
                outputs,
            };
            (Trial { plan, outcome }, Some(timed))
        }
        Err(error) => {
            // The status says whose fault it is.
            let reason = error.to_string().replacen("a bug in Headstart: ", "", 1);
            let outcome = match error.fault() {
                Fault::Usage | Fault::Device => Outcome::Rejected { reason },
                Fault::Input | Fault::Bug => Outcome::Failed { reason },
            };
            (Trial { plan, outcome }, None)
        }
    }
}

/// The first refusal, where there were plans and none could be derived.
fn everything_refused(tried: &[(Trial, Option<Timed>)], derived: &[Result<Derived>]) -> Option<Error> {
    let nothing_ran = !tried.is_empty() && tried.iter().all(|(_, run)| run.is_none());
    let refusal = derived.iter().find_map(|derived| derived.as_ref().err());
    refusal.filter(|_| nothing_ran).cloned()
}

/// The plain kernel at the geometry where it does the same work fastest; none where it is not faster elsewhere.
fn plain_best(subject: &dyn Subject, bench: &Bench<'_>, baseline_ns: f64) -> Result<Option<PlainBest>> {
    let time = |shape: super::Reshaped| -> Result<PlainBest> {
        let kernel = bench.plain(&shape.workload)?;
        let time_ns = bench.time(&shape.workload.bind(bench.device)?, &kernel)?.time_ns;
        Ok(PlainBest {
            geometry: shape.geometry,
            parameters: shape.parameters,
            time_ns,
            speedup: baseline_ns / time_ns,
        })
    };
    // A geometry that the device cannot launch is no candidate.
    let shapes = subject.same_work()?;
    let timed: Vec<Result<PlainBest>> = match bench.times_at_once() {
        true => shapes.into_par_iter().map(time).collect(),
        false => shapes.into_iter().map(time).collect(),
    };
    let fastest = timed
        .into_iter()
        .flatten()
        .max_by(|one, other| one.speedup.total_cmp(&other.speedup));
    Ok(fastest.filter(|fastest| fastest.speedup > 1.0))
}
