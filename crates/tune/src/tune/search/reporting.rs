//! The report of a search.

use std::time::Duration;

use super::ended::Ended;
use super::settling::{Others, Settled};
use super::{Search, SearchOutcome, Understood};
use crate::device::sim::functional::Options;
use crate::error::Result;
use crate::evidence::{self, Roofline, accesses};
use crate::ir::{Kernel, OpKind};
use crate::report::{Best, Counter, Partial, Report, THRESHOLD, Verdict};
use crate::tune::bench::{Judge, Spread, Timed};
use crate::tune::check::idle;
use crate::tune::search::doubt::doubt;
use crate::tune::search::judged::{PATIENCE, answer, explained};
use crate::tune::search::known::known;
use crate::tune::search::reasons::{Findings, reasons};
use crate::tune::search::space::Space;

/// What is in doubt where the plain kernel's run took too long.
const CUT: &str = "That is what a part of its run says, which was ended early: a larger `--budget`, or a smaller launch, tells more.";

impl Search<'_> {
    /// What was found, with its reasons.
    ///
    /// # Errors
    /// What the best plan takes for granted cannot be said.
    pub(super) fn outcome(
        &self,
        launch: &Understood,
        space: &Space,
        mut ended: Ended<'_>,
        others: Others,
        settled: Settled,
    ) -> Result<SearchOutcome> {
        let Search {
            subject,
            bench,
            settings,
            progress,
        } = *self;
        let Understood { workload, kernel, .. } = launch;
        let Settled { chosen, best, agreed } = settled;
        let warnings = self.warnings(launch, &mut ended, &best);
        let bounds = ended.bounds();
        // Where no plans were asked for, nothing is known of any.
        let has_none = space.plans.is_empty() && settings.plans.is_none();
        let mut seen = ended.seen(bench.judge().is_some() || ended.are_proposed);
        seen.is_empty = has_none;
        // What would allow plans is asked for at any rate where there are none.
        let is_over = || settings.unexplained || !has_none && progress.is_stopped();
        let unlocking = subject.unlocking(&is_over);
        let verdict = match seen.supported(chosen, &ended.trials) {
            Verdict::LeaveIt if has_none && !unlocking.is_empty() => Verdict::Undecided,
            verdict => verdict,
        };
        // Where nothing was measured.
        let doubt = match ended.baseline.spread {
            Spread::Cut => Some(CUT.to_owned()),
            Spread::Simulated { .. } => doubt(verdict, &ended.trials),
            Spread::Measured { .. } => None,
        };
        let verdict = match doubt {
            Some(_) => Verdict::Undecided,
            None => verdict,
        };
        let findings = Findings {
            verdict,
            best: (&best.plan, best.speedup),
            threshold: THRESHOLD,
            trials: &ended.trials,
            plain_best: others.plain.as_ref(),
            best_elsewhere: others.planned.as_ref(),
            may_be_split: subject.may_be_split(),
        };
        let reasons = reasons(&ended.baseline.evidence, &findings);
        let roofline = roofline(&ended);
        let position = ended
            .trials
            .iter()
            .skip(1)
            .position(|trial| trial.plan == best.plan);
        let best_run = position.and_then(|at| ended.runs[at].as_ref());
        let counters = counters(&ended.baseline, best_run);
        let Ended {
            baseline,
            trials,
            partial,
            checked,
            note,
            remarks,
            ..
        } = ended;
        let (of_plain, profile) = (&baseline.evidence, baseline.profile.as_ref());
        let mut first = evidence::first(of_plain, profile, &accesses(kernel, workload.group));
        let (plain, is_split) = (others.plain.as_ref(), subject.may_be_split());
        first.extend(known(kernel, workload, of_plain, profile, plain, is_split));
        let report = Report {
            kernel: subject.name().to_owned(),
            device: bench.device().description().name.clone(),
            baseline_ns: baseline.time_ns,
            trials,
            taken_for_granted: subject.granted(&best.plan)?,
            best,
            warnings,
            is_in_module: subject.is_in_module(),
            verdict,
            doubt,
            reasons,
            launch_ns: baseline.evidence.launch_ns,
            first,
            geometry: Some(workload.geometry()),
            parameters: subject.parameters(),
            plain_best_geometry: others.plain,
            best_elsewhere: others.planned,
            ways: None,
            counters,
            bounds,
            roofline,
            detail: None,
            perturbed: agreed,
            checked: checked.filter(|_| bench.judge().and_then(Judge::at_full_size).is_some()),
            notes: std::iter::once(baseline.note.clone())
                .chain(note)
                .chain(partial.as_ref().map(Partial::to_string))
                .chain((has_none && unlocking.is_empty()).then(|| {
                    "There is no plan: no loop has a load from global memory that may be started early."
                        .to_owned()
                }))
                .chain(launch.only_rests.iter().cloned())
                .chain(remarks)
                .collect(),
            unlocking,
            partial,
            waits: launch.waits.clone(),
        };
        Ok(SearchOutcome { report, baseline })
    }

    /// Warnings about the launch; where a device has measured, the simulator explains the plain kernel's time.
    fn warnings(&self, launch: &Understood, ended: &mut Ended<'_>, best: &Best) -> Vec<String> {
        let Understood {
            workload,
            kernel,
            bound,
            ..
        } = launch;
        let warnings = match self.bench.judge() {
            Some(device) => {
                let patience = match self.settings.unexplained {
                    true => Duration::ZERO,
                    false => self.progress.left().map_or(PATIENCE, |left| left.min(PATIENCE)),
                };
                self.tell(&[answer(best)]);
                let Ended {
                    baseline, remarks, ..
                } = ended;
                explained(device, bound, kernel, baseline, patience, remarks)
            }
            None => idle::warnings(bound, self.bench.device(), kernel, Options::CHECKING),
        };
        let first = self.subject.made_up().into_iter().chain(wished(&workload.kernel));
        first.chain(warnings).collect()
    }
}

/// Each kernel's time and bytes beside the device's limits.
fn roofline(ended: &Ended<'_>) -> Option<Roofline> {
    let baseline = &ended.baseline;
    let mut roofline = Roofline::of(&baseline.evidence, baseline.profile.as_ref())?;
    let timed = std::iter::once(Some(baseline)).chain(ended.runs.iter().map(Option::as_ref));
    for (trial, timed) in ended.trials.iter().zip(timed) {
        if let Some((timed, bytes)) = timed.and_then(|timed| Some((timed, timed.evidence.memory_bytes?))) {
            roofline.add(trial.plan.clone(), timed.time_ns, bytes);
        }
    }
    Some(roofline)
}

/// The plans that its author wrote at a kernel's loops: the plain kernel has them.
pub(in crate::tune) fn wishes(kernel: &Kernel) -> Vec<String> {
    let mut plans = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { wishes, .. } = &op.kind {
            plans.extend(wishes.plan.clone());
        }
    });
    plans
}

/// That loops have plans of their author's, which the plain kernel is timed with.
fn wished(kernel: &Kernel) -> Option<String> {
    let plans: Vec<String> = wishes(kernel)
        .iter()
        .map(|plan| format!("`#[prefetch(\"{plan}\")]`"))
        .collect();
    let plans = plans.join(", ");
    (!plans.is_empty())
        .then(|| format!("The kernel has {plans} already: the plain kernel is the one with it."))
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
