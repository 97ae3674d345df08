//! The advice on one kernel: the checklist's answers, remedies with the cheapest first, and the possible gain.

use serde::Serialize;

use super::hints::{self, HintsAlone};
use super::instead::instead;
use super::profiler::Profiled;
use super::steps::{Answer, Case, ChecklistStep, procedure};
use crate::error::{Error, Result};
use crate::evidence::{Bounds, Remedy, accesses, first, loop_loads};
use crate::model::Vendor;
use crate::prefetch::Plan;
use crate::report::number::percent;
use crate::report::{Geometry, LaunchSettings, Report, TakenBy, Trial, Verdict};
use crate::tune::{self, Bench, GoesOn, MEASURED, Progress, SearchSettings, Subject, Timed};

/// The recommendation for a kernel, with reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The kernel's name.
    pub kernel: String,
    /// The device, as `--device` spells it, or the device of the profiler's run.
    pub device: String,
    /// Work-groups and work-items in each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geometry: Option<Geometry>,
    /// The kernel's parameters as they were set, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// Time of the plain kernel, in nanoseconds.
    pub time_ns: f64,
    /// The procedure, question by question.
    pub steps: Vec<ChecklistStep>,
    /// The possible remedies, the cheapest first; empty if no plan could be tried.
    pub choices: Vec<Choice>,
    /// What hints alone gain, on Intel's GPUs that have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints_alone: Option<HintsAlone>,
    /// Why the launch shows little of the kernel, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// The recommendation.
    pub verdict: Verdict,
    /// The verdict in a sentence with its numbers.
    pub conclusion: String,
    /// The plan to use, where the verdict asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Why nothing is decided, where times are simulated and within the simulator's known error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// What to change before any plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<Remedy>,
    /// Alternatives and additions.
    pub instead: Vec<Remedy>,
    /// How fast the kernel can get at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// The consequence for the program that the kernel is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// How the numbers were made.
    pub notes: Vec<String>,
}

/// One thing that could be done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Its kind.
    pub what: Verdict,
    /// With which plan, where it takes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// How it is compiled and launched, where that is a part of it.
    #[serde(flatten)]
    pub way: LaunchSettings,
    /// In which geometry, where it takes another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geometry: Option<Geometry>,
    /// The time that it would take, in nanoseconds.
    pub time_ns: f64,
    /// The plain kernel's time divided by it.
    pub speedup: f64,
    /// Between which values the speedup lies, in nine of ten cases; none where nothing tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, f64)>,
    /// Its condition, if that is not known to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<&'static str>,
    /// Whether it is the one to do.
    pub chosen: bool,
}

/// Amdahl's law for the program around the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Program {
    /// Share of the program's time that the kernel takes, 0 to 1.
    pub share: f64,
    /// The program's speedup with the verdict carried out.
    pub speedup: f64,
    /// The program's speedup with the kernel at its best possible.
    pub at_most: f64,
}

/// Searches as [`tune::search()`] does, and follows the procedure with the plain kernel's run.
///
/// # Errors
/// As for [`tune::tune`].
pub fn advise(subject: &dyn Subject, bench: &dyn Bench, progress: &dyn Progress) -> Result<Advice> {
    advise_with(subject, bench, None, progress)
}

fn advise_with(
    subject: &dyn Subject,
    bench: &dyn Bench,
    profiled: Option<&Profiled>,
    progress: &dyn Progress,
) -> Result<Advice> {
    let workload = subject.workload()?;
    if let Some(profiled) = profiled {
        profiled.is_of_geometry(workload.geometry())?;
    }
    let kernel = tune::plain(bench, &workload)?;
    let loads = loop_loads(&kernel);
    let fits = |plain: &Timed| match profiled {
        Some(profiled) => {
            let counted = plain.takes.filter(|takes| takes.by == TakenBy::Compiler);
            profiled.is_of_run(plain.evidence.time_ns, counted.map(|takes| takes.registers))
        }
        None => Ok(()),
    };
    let settings = SearchSettings {
        measure: Some(MEASURED),
        goes_on: GoesOn(Some(&fits)),
        ..SearchSettings::default()
    };
    let mut found = tune::search(subject, bench, &settings, progress)?;
    found.report = tune::beside_the_plan(subject, bench, found.report, settings.perturbed, progress)?;
    let own = found.baseline.profile.as_ref();
    let seen = profiled.map(|profiled| profiled.profile.with_gaps_from(own));
    let case = Case {
        evidence: profiled.map_or(&found.baseline.evidence, |profiled| &profiled.evidence),
        profile: seen.as_ref().or(own),
        loads: Some(&loads),
        accesses: &accesses(&kernel, workload.group),
        footprint: Some(workload.bytes()),
    };
    let mut advice = Advice::of_report(&case, &found.report, subject.may_be_split());
    let other = found.report.plain_best_geometry.as_ref();
    let better = tune::search::known(
        &kernel,
        &workload,
        case.evidence,
        case.profile,
        other,
        subject.may_be_split(),
    );
    advice.first.extend(better);
    if bench
        .simulator()
        .is_some_and(|simulator| simulator.model().vendor == Vendor::Intel)
        && !bench.platform().levels().is_empty()
    {
        advice.hints_alone = hints::best_alone(subject, bench, &kernel, &found.report, progress)?;
    }
    if let Some(profiled) = profiled {
        advice.time_ns = profiled.evidence.time_ns;
        advice.notes.splice(0..0, profiled.notes.iter().cloned());
        advice.notes.push(format!(
            "The time above, bandwidth, stalls and occupancy are those of the profile ({} on {}); loops, loads and plans \
             are from the run on {}.",
            profiled.kernel, profiled.device, found.report.device
        ));
    }
    Ok(advice)
}

impl Advice {
    /// The advice that follows from a run and the plans that were tried. `may_be_split` says whether the work can be
    /// split over more work-groups without changing its results.
    pub(crate) fn of_report(case: &Case<'_>, report: &Report, may_be_split: bool) -> Advice {
        Advice {
            kernel: report.kernel.clone(),
            device: report.device.clone(),
            geometry: report.geometry,
            parameters: report.parameters.clone(),
            time_ns: report.baseline_ns,
            steps: procedure(case),
            choices: choices(report, may_be_split),
            hints_alone: None,
            warnings: report.warnings.clone(),
            verdict: report.verdict,
            conclusion: report.conclusion(),
            doubt: report.doubt.clone(),
            plan: (!report.best.plan.is_none()).then(|| report.best.plan.clone()),
            first: first(case.evidence, case.profile, case.accesses),
            instead: instead(case),
            bounds: Bounds::of(case.evidence, case.profile, case.loads.unwrap_or_default())
                .map(|bounds| report.beside_the_plans(bounds)),
            program: None,
            notes: report.remarks().chain(report.granted()).collect(),
        }
    }

    /// The advice that follows from a profiler's numbers alone: the procedure decides, and no plan is named.
    pub fn of_profiler(profiled: &Profiled) -> Advice {
        let evidence = &profiled.evidence;
        let case = Case {
            evidence,
            profile: Some(&profiled.profile),
            loads: None,
            accesses: &[],
            footprint: None,
        };
        let steps = procedure(&case);
        let (verdict, conclusion) = by_procedure(&steps, &case);
        let first = first(evidence, case.profile, &[]);
        let (verdict, conclusion) = match (verdict, first.first()) {
            // What the loads ask for changes, and with it what is waited for.
            (Verdict::Prefetch, Some(remedy)) if profiled.profile.is_uncoalesced() => (
                Verdict::Undecided,
                format!(
                    "First: {} Whether a prefetch helps then, another profile tells.",
                    remedy.finding
                ),
            ),
            (verdict, Some(remedy)) => (verdict, format!("First: {} Then: {conclusion}", remedy.finding)),
            (verdict, None) => (verdict, conclusion),
        };
        Advice {
            kernel: profiled.kernel.clone(),
            device: profiled.device.clone(),
            geometry: (evidence.groups > 0 && evidence.group > 0).then_some(Geometry {
                groups: evidence.groups,
                group: evidence.group,
            }),
            parameters: Vec::new(),
            time_ns: evidence.time_ns,
            first,
            instead: instead(&case),
            bounds: Bounds::of(evidence, case.profile, &[]),
            steps,
            choices: Vec::new(),
            hints_alone: None,
            warnings: Vec::new(),
            verdict,
            conclusion,
            plan: None,
            doubt: None,
            program: None,
            notes: profiled.notes.clone(),
        }
    }

    /// The advice on a kernel whose run a profiler has seen, with the plans tried on `bench`. Facts that the profiler does not
    /// report come from the run on `bench`: the stalls, and the spare registers.
    ///
    /// # Errors
    /// As for [`tune::tune`]; and the profile contradicts the launch.
    pub fn of_profiled_kernel(
        profiled: &Profiled,
        subject: &dyn Subject,
        bench: &dyn Bench,
        progress: &dyn Progress,
    ) -> Result<Advice> {
        advise_with(subject, bench, Some(profiled), progress)
    }

    /// Adds the effect of the kernel's speedup on a program of whose time it takes `share`.
    ///
    /// # Errors
    /// The share is not above 0 and at most 1.
    pub fn within_program(mut self, share: f64) -> Result<Advice> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(
                Error::usage(format!("{share} is not a share of the program's time"))
                    .accepted("a number above 0, and at most 1"),
            );
        }
        // Amdahl: the rest of the program takes as long as before.
        let of_program = |speedup: f64| 1.0 / (1.0 - share + share / speedup);
        let chosen = self.choices.iter().find(|choice| choice.chosen);
        self.program = Some(Program {
            share,
            speedup: of_program(chosen.map_or(1.0, |choice| choice.speedup)),
            at_most: self
                .bounds
                .as_ref()
                .map_or(1.0 / (1.0 - share), |bounds| of_program(bounds.best_speedup)),
        });
        Ok(self)
    }
}

/// What another geometry is called beside that of a report.
fn in_groups(report: &Report, other: Geometry) -> Verdict {
    let own = report.geometry.map_or(0, |own| own.groups);
    Verdict::in_groups(own, other.groups)
}

/// The possible remedies, the cheapest first.
fn choices(report: &Report, may_be_split: bool) -> Vec<Choice> {
    let (best, usual) = (&report.best, LaunchSettings::default());
    let mut choices = vec![Choice {
        what: Verdict::LeaveIt,
        plan: None,
        way: usual,
        geometry: report.geometry,
        time_ns: report.baseline_ns,
        speedup: 1.0,
        between: None,
        condition: None,
        chosen: report.verdict == Verdict::LeaveIt,
    }];
    choices.extend(report.plain_best_geometry.as_ref().map(|other| Choice {
        what: in_groups(report, other.geometry),
        plan: None,
        way: usual,
        geometry: Some(other.geometry),
        time_ns: other.time_ns,
        speedup: other.speedup,
        between: other.between,
        condition: (!may_be_split).then_some("where the results of more of them can be combined"),
        chosen: report.verdict.is_of_geometry() && report.best_elsewhere.is_none(),
    }));
    choices.extend(report.best_elsewhere.as_ref().map(|other| Choice {
        what: in_groups(report, other.geometry),
        plan: Some(other.plan.clone()),
        way: usual,
        geometry: Some(other.geometry),
        time_ns: other.time_ns,
        speedup: other.speedup,
        between: other.between,
        condition: (!may_be_split).then_some("where the results of more of them can be combined"),
        chosen: report.verdict.is_of_geometry(),
    }));
    for what in [Verdict::MoreRegisters, Verdict::Unroll, Verdict::Prefetch] {
        // The answer may be a cheaper plan that is nearly as fast.
        let is_shown = |trial: &&Trial| {
            let is_answer = report.verdict == what && best.way.is_usual();
            Verdict::of(&trial.plan) == what && (!is_answer || trial.plan == best.plan)
        };
        let shown = report.fastest_first().into_iter().find(is_shown);
        choices.extend(shown.and_then(|trial| {
            let (time_ns, speedup) = trial.measured()?;
            Some(Choice {
                what,
                plan: Some(trial.plan.clone()),
                way: usual,
                geometry: None,
                time_ns,
                speedup,
                between: trial.between,
                condition: None,
                chosen: report.verdict == what && best.way.is_usual(),
            })
        }));
    }
    choices.extend((!best.way.is_usual()).then(|| Choice {
        what: report.verdict,
        plan: (!best.plan.is_none()).then(|| best.plan.clone()),
        way: best.way,
        geometry: None,
        time_ns: best.time_ns,
        speedup: best.speedup,
        between: best.between,
        condition: None,
        chosen: true,
    }));
    choices
}

/// Units that are busy for this share of the time leave nothing to waiting.
const BUSY: f64 = 0.8;

/// The verdict if no plan could be tried: the documents' statement on such answers.
fn by_procedure(steps: &[ChecklistStep], case: &Case<'_>) -> (Verdict, String) {
    let evidence = case.evidence;
    // Bandwidth to spare, and waiting for device memory: without these there is nothing to gain.
    let required = &steps[..2];
    if let Some(no) = required.iter().find(|step| step.answer == Answer::No) {
        return (
            Verdict::LeaveIt,
            format!("Prefetching would not help. {} No: {}", no.question, no.finding),
        );
    }
    let busiest = case.profile.and_then(|profile| profile.units.first());
    if let Some(unit) = busiest.filter(|unit| unit.busy_ns >= BUSY * evidence.time_ns) {
        return (
            Verdict::LeaveIt,
            format!(
                "Prefetching would not help. The units for {} are busy {} of the time.",
                unit.name,
                percent((unit.busy_ns / evidence.time_ns).min(1.0))
            ),
        );
    }
    if let Some(unknown) = required.iter().find(|step| step.answer == Answer::Unknown) {
        return (
            Verdict::Undecided,
            format!(
                "Too little is known to change anything. {} {}",
                unknown.question, unknown.finding
            ),
        );
    }
    if evidence.is_starved() {
        // As wherever it is not known whether the work can be split: see `tune::choose`.
        return (
            Verdict::Prefetch,
            "The kernel waits for memory that has bandwidth to spare, and more work-groups would fit. Where its work can \
             be split over more of them, do that first. Otherwise unroll the loop, or prefetch in it if its iterations \
             are independent: with the kernel as FILE.hsir, Headstart says with which plan."
                .to_owned(),
        );
    }
    let filled = match evidence.occupancy() {
        Some(_) => ", and no more work-groups fit",
        None => "",
    };
    (
        Verdict::Prefetch,
        format!(
            "The kernel waits for memory that has bandwidth to spare{filled}: unroll the loop or prefetch in it. With the \
             kernel as FILE.hsir, Headstart says with which plan."
        ),
    )
}
