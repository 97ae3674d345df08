//! The search: derive each plan, check it, time it, choose.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::bench::{Bench, Timed};
use super::choose::{Seen, choose};
use super::derivation::Derivation;
use super::doubt::doubt;
use super::drop_in::{placed, said_of_registers};
use super::elsewhere::{self, Here};
use super::idle;
use super::judged::{PATIENCE, explained, first, on_device, small_launches};
use super::log::{Log, Shard};
use super::perturb::{self, Engine, Perturbed, Settings};
use super::race::{self, Race};
use super::reasons::{Findings, reasons};
use super::remainder::{self, Alone, main_loads_beside};
use super::residency;
use super::space::{Space, likely_plans_for, with_registers, without_shared_copies};
use super::subject::Subject;
use super::threads;
use super::trying::{self, Memory, Pair, Trials, Trying, shielded};
use super::workload::Workload;
use crate::device::sim::functional::Options;
use crate::error::{Error, Fault, Result};
use crate::evidence::{self, Bounds, LoopLoad, Roofline, accesses, loop_loads, overview};
use crate::ir::{Kernel, OpKind};
use crate::prefetch::plan::{Distance, LoadName, Strategy, StrategyKind};
use crate::prefetch::{self, Plan};
use crate::report::waiting::{self, Waiting};
use crate::report::{Counter, Outcome, Partial, Perturbed as Agreed, Report, THRESHOLD, Trial, number};

/// Follows a search. Called from several threads.
pub trait Progress: Sync {
    /// Something is understood: told as soon as it is, long before the first plan is done.
    fn understood(&self, sentence: &str) {
        let _ = sentence;
    }
    /// So many plans will be tried.
    fn begin(&self, plans: usize);
    /// One plan is done.
    fn done(&self, trial: &Trial);
    /// One plan was done before: its trial is in the log.
    fn known(&self, trial: &Trial) {
        self.done(trial);
    }
    /// Whether to begin nothing more: the report then covers the trials so far.
    fn is_stopped(&self) -> bool {
        false
    }
    /// Whether plans are being tried from here on: what runs may then be ended, and counts as not tried.
    fn trying(&self, is_trying: bool) {
        let _ = is_trying;
    }
    /// A plan is refused, and costs no time to speak of.
    fn refused(&self, trial: &Trial) {
        let _ = trial;
    }
    /// The time that is left of the search; none where it may take as long as it takes.
    fn left(&self) -> Option<Duration> {
        None
    }
}

/// A kernel with a plan carried out, and the plan as completed.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// The plan with the parents that it carries.
    pub plan: Plan,
}

impl Derived {
    /// Operations of its kernel.
    pub fn operations(&self) -> usize {
        let mut count = 0;
        self.kernel.body.walk(&mut |_| count += 1);
        count
    }
}

/// The kernel with its author's wishes carried out: what every plan starts from, and what is compared with.
///
/// # Errors
/// A wish cannot be carried out.
pub fn plain(bench: &dyn Bench, workload: &Workload) -> Result<Arc<Kernel>> {
    Ok(Arc::new(prefetch::carry_out_wishes(
        &workload.kernel,
        &target_for(bench, workload),
    )?))
}

/// A plain kernel with a plan carried out.
///
/// Where the kernel's work-groups wait for others, the plan leaves as many of them resident, if need be with fewer registers.
///
/// # Errors
/// The plan is not legal for the kernel, or leaves fewer work-groups resident that wait for others.
pub fn derive(bench: &dyn Bench, workload: &Workload, plain: &Kernel, plan: &Plan) -> Result<Derived> {
    let derive = |plan: &Plan| derive_alone(bench, workload, plain, plan);
    residency::kept(bench, workload, plain, derive(plan)?, derive)
}

fn derive_alone(bench: &dyn Bench, workload: &Workload, plain: &Kernel, plan: &Plan) -> Result<Derived> {
    let applied = prefetch::apply(plain, plan, &target_for(bench, workload))?;
    if let Some(original) = workload.original.as_ref().filter(|_| !plan.is_none()) {
        // A plan that cannot be written into its module is useless.
        placed(original, &workload.kernel, &applied.kernel)?;
    }
    Ok(Derived {
        kernel: Arc::new(applied.kernel),
        plan: applied.plan,
    })
}

pub(super) fn target_for(bench: &dyn Bench, workload: &Workload) -> prefetch::PlanTarget {
    prefetch::PlanTarget {
        group_size: Some(workload.group),
        ..bench.target()
    }
}

/// The few plans that are likely to help a kernel on a device: those to measure where nothing predicts, or time is short.
///
/// # Errors
/// The kernel's data cannot be made, or a wish of its author cannot be carried out.
pub fn likely(subject: &dyn Subject, bench: &dyn Bench) -> Result<Vec<Plan>> {
    let workload = subject.workload()?;
    likely_for(&workload, &plain(bench, &workload)?, bench)
}

/// The same for a plain kernel and its launch.
pub(super) fn likely_for(workload: &Workload, plain: &Arc<Kernel>, bench: &dyn Bench) -> Result<Vec<Plan>> {
    let loads = main_loads_beside(plain, &alone(bench, workload, plain));
    let mut plans = likely_plans_for(plain, &loads, &bench.levels())?;
    plans.extend(likely_of_remainders(bench, plain, &loads)?);
    let plans = without_shared_copies(plain, plans);
    Ok(with_registers(plans, registers_left(bench, workload)))
}

/// The remainders that run without their main loops. A device that judges plans itself need not know.
fn alone(bench: &dyn Bench, workload: &Workload, plain: &Arc<Kernel>) -> Alone {
    match bench.checks_on_device() {
        true => Alone::new(),
        false => remainder::alone(workload, plain, bench.device().description()),
    }
}

/// The likely plans of loops that may be all that a launch runs of a loop, beside those for its main loops' loads: for a device
/// that judges plans itself, where nothing has looked at the launch.
pub(super) fn likely_of_remainders(
    bench: &dyn Bench,
    plain: &Kernel,
    main: &[LoadName],
) -> Result<Vec<Plan>> {
    let loads = main_loads_beside(plain, &remainder::every(plain));
    match bench.checks_on_device() && loads != main {
        true => likely_plans_for(plain, &loads, &bench.levels()),
        false => Ok(Vec::new()),
    }
}

/// The registers of a work-item that a launch leaves to a user's module, which does not say so itself.
pub(super) fn registers_left(bench: &dyn Bench, workload: &Workload) -> Option<u32> {
    let original = workload.original.as_ref()?;
    let cores = bench.device().description().cores;
    let left = workload.registers_left(cores, bench.registers_per_core()?);
    left.filter(|_| said_of_registers(original).is_none())
}

/// Tries plans for a kernel and chooses one. `plans` are those to try; none asks for the default space.
///
/// # Errors
/// The plain kernel cannot be run or goes wrong; all of the plans that were asked for are refused.
pub fn tune(
    subject: &dyn Subject,
    bench: &dyn Bench,
    plans: Option<&[Plan]>,
    progress: &dyn Progress,
) -> Result<Report> {
    search(
        subject,
        bench,
        &SearchSettings {
            plans,
            ..SearchSettings::default()
        },
        progress,
    )
    .map(|found| found.report)
}

/// The settings of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchSettings<'a> {
    /// The plans to try; none asks for the default space.
    pub plans: Option<&'a [Plan]>,
    /// The part of them that is tried; none asks for all.
    pub shard: Option<Shard>,
    /// Where trials are looked for before they are made, and written when they end.
    pub log: Option<&'a Log>,
    /// The launches that plans are checked on besides the one at hand.
    pub perturbed: Settings,
    /// How many plans are measured, on a device whose clock drifts; none asks for all. See [`Proposals`](super::Proposals).
    pub measure: Option<usize>,
    /// Whether plans that are surely behind are simulated to their end, too.
    pub every_plan: bool,
}

/// How long a device's plan is checked on the processors after the time of a search.
const OVER: Duration = Duration::from_secs(1);

/// How long launches to check plans on are looked for at least, while a device measures.
const LAUNCHES: Duration = Duration::from_secs(2);

/// The result of a search.
#[derive(Clone, Debug)]
pub struct SearchOutcome {
    /// The report.
    pub report: Report,
    /// The plain kernel's run.
    pub baseline: Timed,
}

/// The same, with the plain kernel's run, in parts, and with a log.
///
/// # Errors
/// As for [`tune`]; the log cannot be written.
pub fn search(
    subject: &dyn Subject,
    bench: &dyn Bench,
    settings: &SearchSettings<'_>,
    progress: &dyn Progress,
) -> Result<SearchOutcome> {
    // The kernel is the same at every size, and small data are made at once.
    let small = subject.small(1).ok().flatten();
    let told = small.as_ref().map(|small| overview(&small.kernel));
    let tell = |sentences: Vec<String>| {
        sentences
            .iter()
            .for_each(|sentence| progress.understood(sentence))
    };
    let is_told = told.is_some();
    tell(told.unwrap_or_default());
    let workload = subject.workload()?;
    workload.check_fits(bench.device().description())?;
    if !is_told {
        tell(overview(&workload.kernel));
    }
    let (geometry, bytes) = (workload.geometry(), number::bytes(workload.bytes() as f64));
    progress.understood(&format!(
        "{geometry}, {bytes} of data, on {}",
        bench.device().description().name
    ));
    let kernel = plain(bench, &workload)?;
    let is_judge = bench.checks_on_device();
    let alone = alone(bench, &workload, &kernel);
    let only_rests = remainder::sentences(&kernel, &alone);
    let waits = Waiting::of(&kernel);
    tell(
        only_rests
            .iter()
            .cloned()
            .chain(waiting::sentence(&waits))
            .collect(),
    );
    let bound = workload.bind(bench.device())?;
    let listed = || Space::of(bench, &workload, &kernel, &alone, settings);
    // A device is asked about the kernel as it is while plans are listed.
    let (space, first) = match is_judge {
        true => {
            let (space, first) = threads::both(listed, || first(bench, &bound, &kernel, progress));
            (space?, Some(first?))
        }
        false => (listed()?, None),
    };
    let Space { plans, likely } = &space;
    let memory = Memory::new(settings.log, bench, &workload, &kernel);
    let derivation = Derivation::new(plans, |plan| shielded(|| derive(bench, &workload, &kernel, plan)));
    let engine = || Engine::of(bench, &workload);
    let launches = |plans: &[&Plan], is_wanted: &(dyn Fn() -> bool + Sync)| -> Result<Option<Perturbed>> {
        perturb::check_wishes(subject, &kernel, engine(), settings.perturbed)?;
        match plans.is_empty() {
            true => Ok(None),
            false => {
                let (plans, settings) = (plans.iter().copied(), settings.perturbed);
                Perturbed::while_wanted(subject, &kernel, engine(), plans, settings, is_wanted).map(Some)
            }
        }
    };
    let early = match is_judge {
        true => None,
        false => {
            // Illegal plans are rejected at once, and legal ones checked at sizes that follow from the plan.
            derivation.all();
            let legal = (0..plans.len()).filter_map(|index| derivation.pair(index).1.as_ref().ok());
            launches(&legal.map(|derived| &derived.plan).collect::<Vec<_>>(), &|| true)?
        }
    };
    let trying = Trying {
        subject,
        bench,
        workload: &workload,
        kernel: &kernel,
        bound: &bound,
        memory: &memory,
        perturbed: early.as_ref(),
        progress,
        likely,
        race: (!settings.every_plan).then(|| Race::new(&kernel, likely.clone())),
    };
    let plain_best = |baseline_ns| elsewhere::plain_best(subject, bench, &workload, progress, baseline_ns);
    let mut remarks: Vec<String> = Vec::new();
    let (tried, beside, late) = match first {
        _ if bench.times_at_once() => {
            let pairs: Vec<Pair<'_>> = (0..plans.len()).map(|index| derivation.pair(index)).collect();
            let (tried, plain_best) = trying.at_once(&pairs, plain_best)?;
            (tried, Some(plain_best), None)
        }
        None => (trying.in_turns(&derivation, None, settings.measure)?, None, None),
        // Meanwhile the processors derive plans, and look for launches to check them on.
        Some(first) => {
            let is_over = AtomicBool::new(false);
            let measure = || {
                let tried = trying.in_turns(&derivation, Some(first), settings.measure);
                is_over.store(true, Ordering::Relaxed);
                tried
            };
            let is_measuring = || !is_over.load(Ordering::Relaxed) && !progress.is_stopped();
            // Few plans are measured soon.
            let began = Instant::now();
            let is_wanted = || is_measuring() || began.elapsed() < LAUNCHES && !progress.is_stopped();
            let all: Vec<&Plan> = plans.iter().collect();
            let work = || {
                threads::both(
                    || derivation.ahead(|| !is_measuring()),
                    || launches(&all, &is_wanted),
                )
                .1
            };
            let (tried, late) = threads::both(measure, work);
            let late = late.unwrap_or_else(|error| {
                remarks.push(format!(
                    "The plans were not checked on perturbed launches on the simulator: {error}."
                ));
                None
            });
            (tried?, None, late)
        }
    };
    let perturbed = early.or(late).map(|perturbed| match (is_judge, progress.left()) {
        (true, Some(left)) => perturbed.until(Instant::now() + left + OVER),
        _ => perturbed,
    });
    let derived = derivation.ended();
    let pairs: Vec<Pair<'_>> = plans.iter().zip(&derived).collect();
    let Trials {
        mut baseline,
        none,
        trials: tried,
        note,
        lost,
        is_cut,
        mut checked,
        a_plan,
    } = tried;
    let baseline_ns = baseline.time_ns;
    if let Some(refusal) = everything_refused(&tried, &derived) {
        return Err(refusal);
    }

    settings.log.map_or(Ok(()), Log::check)?;
    let (trials, runs): (Vec<Trial>, Vec<Option<Timed>>) = tried.into_iter().unzip();
    let mut trials: Vec<Trial> = std::iter::once(none).chain(trials).collect();
    let loads = loop_loads(&kernel);
    let asked: Vec<&Plan> = pairs.iter().map(|(asked, _)| *asked).collect();
    let telling = race::telling(&asked, likely);
    let has_run = |trial: &&Trial| trial.measured().or(trial.dropped()).is_some();
    let tried_kinds = kinds(trials.iter().filter(has_run).map(|trial| &trial.plan));
    let left = pairs.iter().filter(|pair| is_left(pair, &trials));
    let open_kinds = &kinds(left.map(|(asked, _)| *asked)) - &tried_kinds;
    let partial = (lost.is_some() || is_cut || progress.is_stopped()).then(|| Partial {
        tried: trials.len() - 1,
        of: plans.len(),
        telling_left: telling
            .iter()
            .filter(|&&index| is_left(&pairs[index], &trials))
            .count(),
        tried_kinds: tried_kinds.iter().map(ToString::to_string).collect(),
        open_kinds: open_kinds.iter().map(ToString::to_string).collect(),
        seconds_a_plan: Some(a_plan.as_secs_f64()),
        lost: lost.map(|error| error.to_string()),
    });
    let plain_best = match &partial {
        Some(_) => None,
        None => beside.unwrap_or_else(|| plain_best(baseline_ns))?,
    };
    let here = Here {
        subject,
        bench,
        workload: &workload,
        kernel: &kernel,
        trials: &trials,
        log: settings.log,
        perturbed: perturbed.as_ref(),
        settings: settings.perturbed,
        race: !settings.every_plan,
        // A device may be a little faster than its model allows.
        at_most: bounds(&baseline, &loads, &trials)
            .filter(|_| bench.times_at_once())
            .map(|bounds| bounds.best_speedup),
    };
    // Few plans there take about as long as to explain the time here.
    let has_time = progress.left().is_none_or(|left| left > PATIENCE);
    // A part of a search knows too little of which plans are worth it.
    let best_elsewhere = match &plain_best {
        Some((there, shape)) if settings.shard.is_none() && has_time => {
            elsewhere::planned(&here, there, shape)?
        }
        _ => None,
    };
    let plain_best = plain_best.map(|(there, _)| there);
    // The chosen kernel has to agree with the plain one on every launch, not only on the most informative ones.
    let (chosen, best, agreed) = loop {
        let (chosen, best) = choose(
            (workload.geometry(), baseline_ns),
            &trials,
            plain_best.as_ref(),
            best_elsewhere.as_ref(),
            subject.may_be_split(),
        );
        let of_best = derived.iter().flatten().find(|derived| derived.plan == best.plan);
        let Some(of_best) = of_best else {
            break (chosen, best, None);
        };
        let check = || -> Result<Option<Agreed>> {
            if let Some(checked) = checked.as_mut().filter(|_| is_judge) {
                small_launches(subject, bench, &kernel, of_best, checked, &mut remarks)?;
            }
            let Some(perturbed) = &perturbed else {
                return Ok(None);
            };
            let mut agreed = perturbed.check_written(subject, &of_best.plan, &of_best.kernel)?;
            if is_judge {
                agreed.on_device = on_device(bench, &workload, perturbed, of_best, progress, &mut remarks)?;
            }
            Ok(Some(agreed))
        };
        match shielded(check) {
            Ok(agreed) => break (chosen, best, agreed),
            Err(error) => refute(&mut trials, &best.plan, &error),
        }
    };
    let warnings = match is_judge {
        true => explained(
            bench,
            &bound,
            &kernel,
            &best,
            &mut baseline,
            progress,
            &mut remarks,
        ),
        false => idle::warnings(&bound, bench.device(), &kernel, Options::CHECKING),
    };
    let first = subject.made_up().into_iter().chain(wished(&workload.kernel));
    let warnings: Vec<String> = first.chain(warnings).collect();
    let bounds = bounds(&baseline, &loads, &trials);
    let seen = Seen {
        // Where none was asked for, nothing is known of any.
        is_empty: plans.is_empty() && settings.plans.is_none(),
        ..seen(&pairs, likely, &telling, &trials, bounds.as_ref())
    };
    // Where few are measured, one of each kind tells of the others.
    let seen = match is_judge {
        true => Seen {
            has_telling: true,
            telling_left: open_kinds.len(),
            ..seen
        },
        false => seen,
    };
    let verdict = seen.supported(chosen, &trials);
    let findings = Findings {
        verdict,
        best: (&best.plan, best.speedup),
        threshold: THRESHOLD,
        trials: &trials,
        plain_best: plain_best.as_ref(),
        best_elsewhere: best_elsewhere.as_ref(),
        may_be_split: subject.may_be_split(),
    };
    let reasons = reasons(&baseline.evidence, &findings);
    let mut roofline = Roofline::of(&baseline.evidence, baseline.profile.as_ref());
    if let Some(roofline) = &mut roofline {
        let timed = std::iter::once(Some(&baseline)).chain(runs.iter().map(Option::as_ref));
        for (trial, timed) in trials.iter().zip(timed) {
            if let Some((timed, bytes)) = timed.and_then(|timed| Some((timed, timed.evidence.memory_bytes?)))
            {
                roofline.add(trial.plan.clone(), timed.time_ns, bytes);
            }
        }
    }
    let best_run = trials
        .iter()
        .skip(1)
        .zip(runs)
        .find(|(trial, _)| trial.plan == best.plan)
        .and_then(|(_, run)| run);
    // Where nothing was measured.
    let doubt = match bench.times_at_once() {
        true => doubt(verdict, &best, &trials, bounds.as_ref()),
        false => None,
    };
    let taken_for_granted = subject.granted(&best.plan)?;
    let accesses = accesses(&kernel, workload.group);
    let before_plans = evidence::first(&baseline.evidence, baseline.profile.as_ref(), &accesses);
    let report = Report {
        kernel: subject.name().to_owned(),
        device: bench.device().description().name.clone(),
        baseline_ns,
        trials,
        best,
        warnings,
        is_in_module: subject.is_in_module(),
        verdict,
        doubt,
        reasons,
        launch_ns: baseline.evidence.launch_ns,
        first: before_plans,
        geometry: Some(workload.geometry()),
        parameters: subject.parameters(),
        plain_best_geometry: plain_best,
        best_elsewhere,
        ways: None,
        counters: counters(&baseline, best_run.as_ref()),
        bounds,
        roofline,
        detail: None,
        perturbed: agreed,
        checked: checked.filter(|_| bench.at_full_size().is_some()),
        notes: std::iter::once(baseline.note.clone())
            .chain(note)
            .chain(partial.as_ref().map(Partial::to_string))
            .chain(only_rests)
            .chain(remarks)
            .chain(subject.unlocking())
            .collect(),
        partial,
        waits,
        taken_for_granted,
    };
    Ok(SearchOutcome { report, baseline })
}

/// That loops have plans of their author's, which the plain kernel is timed with.
fn wished(kernel: &Kernel) -> Option<String> {
    let mut plans = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { wishes, .. } = &op.kind {
            plans.extend(wishes.plan.clone());
        }
    });
    let plans: Vec<String> = plans
        .iter()
        .map(|plan| format!("`#[prefetch(\"{plan}\")]`"))
        .collect();
    let plans = plans.join(", ");
    (!plans.is_empty())
        .then(|| format!("The kernel has {plans} already: the plain kernel is the one with it."))
}

/// The kinds of plans: the strategies, `unroll` and `registers`.
fn kinds<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> BTreeSet<&'static str> {
    let kind = |plan: &Plan| match (plan.loads().first(), plan.leaves_code()) {
        (Some((_, strategy)), _) => strategy.name(),
        (None, true) => "registers",
        (None, false) => "unroll",
    };
    let plans = plans.into_iter().filter(|plan| !plan.is_none());
    plans.map(kind).collect()
}

/// How much of the plans was tried.
fn seen(
    pairs: &[Pair<'_>],
    likely: &[Plan],
    telling: &[usize],
    trials: &[Trial],
    bounds: Option<&Bounds>,
) -> Seen {
    Seen {
        is_empty: false,
        left: pairs.iter().filter(|pair| is_left(pair, trials)).count(),
        has_telling: pairs.iter().any(|(asked, _)| likely.contains(asked)),
        telling_left: telling
            .iter()
            .filter(|&&index| is_left(&pairs[index], trials))
            .count(),
        at_most: bounds.map(|bounds| bounds.best_speedup),
    }
}

/// Whether a plan was not tried.
fn is_left((asked, derived): &Pair<'_>, trials: &[Trial]) -> bool {
    let plan = derived.as_ref().map_or(*asked, |derived| &derived.plan);
    !trials.iter().any(|trial| trial.plan == *plan)
}

/// What a device's limits leave to gain, by what is known of the plain kernel's run.
fn bounds(baseline: &Timed, loads: &[LoopLoad], trials: &[Trial]) -> Option<Bounds> {
    let times = trials
        .iter()
        .filter_map(Trial::measured)
        .map(|(time_ns, _)| time_ns);
    let fastest_ns = times.fold(baseline.time_ns, f64::min);
    let bounds = Bounds::of(&baseline.evidence, baseline.profile.as_ref(), loads);
    bounds.map(|bounds| bounds.beside_a_plan(baseline.time_ns, fastest_ns))
}

/// A plan that was tried is not accepted after all.
fn refute(trials: &mut [Trial], plan: &Plan, error: &Error) {
    for trial in trials.iter_mut().filter(|trial| trial.plan == *plan) {
        trial.outcome = match error.fault() {
            // A kernel that we cannot write is not used, like one that is not legal.
            Fault::Input => Outcome::Rejected {
                reason: error.unblamed(),
            },
            _ => trying::went_wrong(error),
        };
    }
}

/// The loads that plans of the default space name: those that can be fetched early and lead to no other such load.
pub fn main_loads(kernel: &Kernel) -> Vec<LoadName> {
    main_loads_beside(kernel, &Alone::new())
}

/// Whether a load can be fetched even one iteration early: the answer of a register ring, which needs nothing but an address.
pub(super) fn can_be_early(kernel: &Kernel, load: &LoadName) -> bool {
    let one = Distance::new(1).map(|distance| Strategy::new(StrategyKind::RollingRegisters, distance));
    let plan = one.and_then(|strategy| Plan::none().with(load.clone(), strategy));
    plan.and_then(|plan| prefetch::apply(kernel, &plan, &prefetch::PlanTarget::default()))
        .is_ok()
}

/// The counters, side by side.
fn counters(plain: &Timed, best: Option<&Timed>) -> Vec<Counter> {
    let of_best = |name: &str| {
        let counted = best?.counted.iter().find(|(other, ..)| *other == name)?;
        Some(counted.2)
    };
    let both = |&(name, unit, value): &(&'static str, &'static str, f64)| Counter {
        name: name.to_owned(),
        unit: unit.to_owned(),
        plain: value,
        best: of_best(name),
    };
    plain.counted.iter().map(both).collect()
}

/// The first refusal, where there were plans and none could be derived.
fn everything_refused(tried: &[(Trial, Option<Timed>)], derived: &[Result<Derived>]) -> Option<Error> {
    // A plan that was dropped has run.
    let has_run = |(trial, run): &(Trial, Option<Timed>)| run.is_some() || trial.dropped().is_some();
    let nothing_ran = !tried.is_empty() && !tried.iter().any(has_run);
    let refusal = derived.iter().find_map(|derived| derived.as_ref().err());
    refusal.filter(|_| nothing_ran).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outcome;

    #[test]
    fn a_search_is_refused_only_where_no_plan_has_run() {
        let refused = [Err(Error::usage("16 copies are too large"))];
        let tried = |outcome: Outcome| {
            let plan = "unroll:8".parse().expect("a plan");
            [(
                Trial {
                    plan,
                    outcome,
                    takes: None,
                },
                None,
            )]
        };
        let rejected = tried(Outcome::Rejected {
            reason: "it is too large".to_owned(),
        });
        assert!(everything_refused(&rejected, &refused).is_some());
        assert!(everything_refused(&rejected, &[]).is_none());
        // All others were dropped: they are slower, and that is an answer.
        let dropped = tried(Outcome::Dropped {
            after: 0.1,
            at_most: 0.9,
        });
        assert!(everything_refused(&dropped, &refused).is_none());
    }
}
