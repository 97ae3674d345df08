//! A launch timed from a part of it: from work-groups of each stratum where they differ, or else from some cores.

use super::pace::{FEW, Pace};
use super::report::{self, Sample};
use super::run::{CORES_OF_STRATA, CORES_TO_AVERAGE, Job, LEAST_ROUNDS, SHORT, SOON, WHILE};
use super::simulated::Simulated;
use super::survey::{Chosen, Survey};
use super::{Cores, LaunchTime, Raced};
use crate::Result;
use crate::model::occupancy::Footprint;

/// A launch, once it is known what is simulated of it.
pub(super) struct Part<'r> {
    pub job: &'r Job<'r>,
    pub cores: Cores,
    /// The cores that give a first time soon, if that is what is wanted.
    pub few: Option<u32>,
    /// Work-groups of the launch.
    pub groups: u64,
    pub seed: u64,
    pub footprint: Footprint,
    pub pace: Option<&'r Pace>,
}

impl Part<'_> {
    /// Simulates work-groups of each stratum, since they differ.
    pub(crate) fn of_strata(&self, survey: &Survey) -> Result<Raced> {
        let Job {
            model, busy, places, ..
        } = *self.job;
        let groups = self.groups as f64;
        // A short launch is soon simulated, and ends as its last few work-groups do.
        let simulated = match self.few {
            Some(cores) => cores,
            None if survey.steps() <= SHORT => busy,
            None => CORES_OF_STRATA.min(busy),
        };
        let of_core = groups / f64::from(busy);
        // The launch ends as its fullest cores do: of few cores, each is one of those.
        let of_core = if self.few.is_some() {
            of_core.ceil()
        } else {
            of_core
        };
        let all = of_core * f64::from(simulated);
        let round = f64::from(simulated * places);
        // As many rounds as can be had in a while.
        let long = if self.few.is_some() { SOON } else { WHILE };
        let rounds = long / (survey.steps() / groups * round);
        let most = all.min(round * rounds.max(LEAST_ROUNDS));
        let choose = |count: f64| {
            let mut chosen = survey.choose(count.round() as usize, self.seed);
            if all > count {
                chosen.left_out = all - count;
                chosen.ratio = f64::from(busy) / f64::from(simulated);
            }
            chosen
        };
        let chosen = (simulated < busy).then(|| choose(most));
        // The same for all plans, so that their small samples are the same.
        let resident = *model.core.sub_groups / self.job.occupancy.sub_groups_per_group.max(1);
        let has_few = FEW * most >= LEAST_ROUNDS * f64::from(simulated * resident.max(1));
        let mut by_few = None;
        if let Some(pace) = self
            .pace
            .filter(|pace| chosen.is_some() && has_few && pace.wants_few())
        {
            // As they are: what is left out of so few says little of the end of a launch.
            let few = Chosen {
                left_out: 0.0,
                ..choose(FEW * most)
            };
            // Compared with none: its progress is not that of a whole sample.
            let (result, course) = match self.job.simulate(simulated, Some(&few), None)? {
                Ok(ended) => ended,
                Err(behind) => return Ok(Raced::Behind(behind)),
            };
            if result.cut.is_some() {
                let time = self.time(result, simulated, true);
                return Ok(Raced::Ended(Box::new(time), course));
            }
            if let Some(behind) = pace.behind_from_few(result.cycles) {
                return Ok(Raced::Behind(behind));
            }
            by_few = Some(result.cycles);
        }
        let (result, course) = match self.job.simulate(simulated, chosen.as_ref(), self.pace)? {
            Ok(ended) => ended,
            Err(behind) => return Ok(Raced::Behind(behind)),
        };
        let time = self.time(result, simulated, chosen.is_some());
        Ok(Raced::Ended(Box::new(time), course.after_few(by_few)))
    }

    /// Simulates some cores, and more of them if they do not speak for the others.
    pub(crate) fn of_cores(&self, first: u32, wanted: u32) -> Result<Raced> {
        let busy = self.job.busy;
        let mut simulated = first;
        loop {
            let (result, course) = match self.job.simulate(simulated, None, self.pace)? {
                Ok(ended) => ended,
                Err(behind) => return Ok(Raced::Behind(behind)),
            };
            if simulated < wanted && result.cut.is_none() {
                simulated = wanted;
                continue;
            }
            if self.cores == Cores::Sampled && simulated < busy && result.cut.is_none() {
                if !result.same_instructions {
                    simulated = busy;
                    continue;
                }
                let is_enough = result.alike || result.same_work && simulated >= CORES_TO_AVERAGE;
                if !is_enough {
                    simulated = match result.same_work {
                        true if result.steps(self.groups) <= SHORT => busy,
                        true => CORES_TO_AVERAGE.min(busy),
                        false => simulated.saturating_mul(8).min(busy),
                    };
                    continue;
                }
            }
            let time = self.time(result, simulated, false);
            return Ok(Raced::Ended(Box::new(time), course));
        }
    }

    fn time(&self, result: Simulated, simulated: u32, is_stratified: bool) -> LaunchTime {
        let Job { model, code, .. } = *self.job;
        let sample = Sample {
            cores: simulated,
            of_cores: self.job.busy,
            groups: result.groups,
            of_groups: self.groups,
            is_stratified,
            is_few: self.few.is_some(),
            is_apart: self.job.is_uncounted && result.groups < self.groups,
            cut: result.cut,
        };
        report::launch_time(
            model,
            code,
            result,
            sample,
            self.footprint,
            self.job.occupancy.clone(),
        )
    }
}
