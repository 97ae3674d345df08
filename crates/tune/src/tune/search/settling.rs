//! What follows the trials: the plain kernel in other geometries, the choice, and the checks of the chosen plan.

use super::ended::Ended;
use super::{Search, Understood};
use crate::error::{Error, Fault, Result};
use crate::prefetch::Plan;
use crate::report::{Best, Elsewhere, Outcome, Perturbed as Agreed, PlainBest, Trial, Verdict};
use crate::tune::derived::Derived;
use crate::tune::search::choose::choose;
use crate::tune::search::geometries::{self, Here};
use crate::tune::search::judged::{PATIENCE, on_device, small_launches};
use crate::tune::search::trying;
use crate::tune::threads::shielded;

/// What other geometries have to offer.
pub(super) struct Others {
    /// The plain kernel where it is fastest.
    pub plain: Option<PlainBest>,
    /// The fastest plan there.
    pub planned: Option<Elsewhere>,
}

/// The choice.
pub(super) struct Settled {
    /// What to do, if what was run supports it.
    pub chosen: Verdict,
    pub best: Best,
    /// The launches on which the best plan's kernel agrees with the plain one.
    pub agreed: Option<Agreed>,
}

impl Search<'_> {
    /// Tries other geometries, where the search got that far.
    ///
    /// # Errors
    /// The plain kernel, or a plan that was accepted, goes wrong there.
    pub(super) fn others(&self, launch: &Understood, ended: &mut Ended<'_>) -> Result<Others> {
        let progress = self.progress;
        let there = match (&ended.partial, ended.beside.take()) {
            (Some(_), _) => None,
            (None, Some(beside)) => beside?,
            (None, None) if progress.is_stopped() => None,
            (None, None) => self.plain_elsewhere(launch, ended.baseline.time_ns)?,
        };
        let Some((plain, shape)) = there else {
            return Ok(Others {
                plain: None,
                planned: None,
            });
        };
        let here = Here {
            subject: self.subject,
            bench: self.bench,
            progress,
            workload: &launch.workload,
            kernel: &launch.kernel,
            trials: &ended.trials,
            log: self.settings.log,
            perturbed: ended.perturbed.as_ref(),
            settings: self.settings.perturbed,
            race: !self.settings.every_plan,
            // A device may be a little faster than its model allows.
            at_most: ended
                .bounds()
                .filter(|_| self.bench.simulator().is_some())
                .map(|bounds| bounds.best_speedup),
        };
        // Few plans there take about as long as to explain the time here. A part of a search knows too little of which plans are
        // worth it.
        let has_time = progress.left().is_none_or(|left| left > PATIENCE);
        let planned = match self.settings.shard.is_none() && has_time {
            true => geometries::planned(&here, &plain, &shape)?,
            false => None,
        };
        Ok(Others {
            plain: Some(plain),
            planned,
        })
    }

    /// Chooses. The chosen kernel has to agree with the plain one on every launch, not only on the most informative ones: a plan
    /// that does not is refused, and another one is chosen.
    pub(super) fn settled(
        &self,
        launch: &Understood,
        ended: &mut Ended<'_>,
        others: &Others,
    ) -> Result<Settled> {
        let mut remarks = std::mem::take(&mut ended.remarks);
        let (chosen, best, agreed) = loop {
            let (chosen, best) = choose(
                (launch.workload.geometry(), ended.baseline.time_ns),
                &ended.trials,
                others.plain.as_ref(),
                others.planned.as_ref(),
                self.subject.may_be_split(),
            );
            let Some(of_best) = ended.of_plan(&best.plan).cloned() else {
                break (chosen, best, None);
            };
            match shielded(|| self.agrees(launch, ended, &of_best, &mut remarks)) {
                Ok(agreed) => break (chosen, best, agreed),
                Err(error) => refute(&mut ended.trials, &best.plan, &error),
            }
        };
        ended.remarks = remarks;
        Ok(Settled { chosen, best, agreed })
    }

    /// Checks the chosen kernel against the plain one.
    fn agrees(
        &self,
        launch: &Understood,
        ended: &mut Ended<'_>,
        of_best: &Derived,
        remarks: &mut Vec<String>,
    ) -> Result<Option<Agreed>> {
        let Search {
            subject,
            bench,
            progress,
            ..
        } = *self;
        let judge = bench.judge();
        if let Some(checked) = ended.checked.as_mut().filter(|_| judge.is_some()) {
            small_launches(subject, bench, &launch.kernel, of_best, checked, remarks)?;
        }
        let Some(perturbed) = &ended.perturbed else {
            return Ok(None);
        };
        let mut agreed = perturbed.check_written(subject, &of_best.plan, &of_best.kernel)?;
        if let Some(device) = judge {
            agreed.on_device = on_device(device, &launch.workload, perturbed, of_best, progress, remarks)?;
        }
        Ok(Some(agreed))
    }
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
