//! The work of each work-group of a launch, counted without time, and the choice of those that stand for all.
//!
//! If work-groups differ, the first few cores tell little about the others. The work of a work-group is the number of steps
//! that its sub-groups take; counting them takes a fraction of timing them, and is done once for all plans of a kernel, which
//! change how long a work-group takes but hardly how the work is distributed.
//!
//! A sample takes its share of work-groups from each window of neighbours: the window is sorted by work and cut into strata of
//! equal size, and each stratum is represented by the work-group whose work is nearest to the stratum's mean. So the sample has
//! the work of the launch, in its order and with its spread. The longest work-group of all is always included, because the
//! launch may wait for it.
//!
//! The same pass notes which lines the work-groups ask for, if L2 cannot keep all. From these it follows what they bring to L2
//! for each other ([`Reuse`]). If they are alike, some of them show first whether that matters.

mod runs;

use std::sync::Arc;

use self::runs::Runs;
use super::run::{held, meets_others};
use super::slowest::Moments;
use super::{Cores, Timer};
use crate::analysis::uniform::Divergence;
use crate::device::Launch;
use crate::functional::Noted;
use crate::ir::Kernel;
use crate::memory::{Requests, Reuse, may_stay_in_l2, noted, spread, stays_in_l2};
use crate::model::DeviceModel;

/// Work-groups that are counted first; where they have as much to do as each other, the others are taken to have, too.
const FIRST: u64 = 64;

/// Work-groups that differ by no more than this (the standard deviation, of the mean) have as much to do as each other.
const SAME: f64 = 0.01;

/// Steps of sub-groups that may be counted; by choice, a second or two on one thread. Of a launch that has more, evenly
/// spread work-groups are counted.
const MOST: u64 = 60_000_000;

/// How many times as many may be counted where only what decides branches is carried out. A launch of rows of any length ends as
/// its longest row does, which must not be left out.
const BY_BRANCHES: u64 = 4;

/// The part of these that is counted for a first time of a launch.
const FOR_FEW: u64 = 3;

/// Of this many steps every line is noted that they ask for, and one in some of more; of no more than one in [`MOST_ONE_IN`]. A
/// step asks for up to 32 lines, and some millions of requests are kept.
const NOTED: f64 = 2e6;
const MOST_ONE_IN: u64 = 64;

/// Work-groups that have as much to do as each other bring little for each other if they find no more than this part of what
/// they read of buffers that L2 cannot keep. (A sample without it takes up to 2.5 % more time, of the accuracy suite's plain
/// kernels on an H200.)
const SHARED: f64 = 0.05;

/// Steps of work-groups of equal work that are looked at to find that out: a tenth of a second. Neighbours are among them.
const LOOKED_AT: u64 = 500_000;

/// How many times [`MOST`] steps the work-groups take at most that are resident at once.
const FEW_TIMES: u64 = 4;

/// How many times L2 has been filled when work-groups that all do the same find as much in it as later.
const FILLED: f64 = 4.0;

/// Strata of a window.
const STRATA: usize = 8;

/// The work of a launch's work-groups.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Work-groups that were counted, in order, and the instructions that each issues.
    counted: Vec<(u64, u64)>,
    /// Work-groups of the launch.
    of: u64,
    /// Bytes of the lines that they all touch, at most; none where that was not counted.
    touched: Option<u64>,
    /// How often cores find lines that others brought; none where L2 holds all, or it was not found out.
    reuse: Option<Arc<Reuse>>,
    /// Steps that may be counted, and how many times as many the work-groups take at most that are resident at once.
    most_steps: u64,
    few_times: u64,
}

/// Work-groups that stand for a launch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chosen {
    /// They, in order.
    pub groups: Vec<u64>,
    /// The work of the launch over theirs.
    pub ratio: f64,
    /// How many more their cores would have got, which take as long as the later half of these.
    pub left_out: f64,
}

impl Survey {
    /// Counts the work of a checked launch's work-groups, and the lines that they touch, as long as L2 could keep them, if they
    /// matter. Where the work-groups differ, or share what L2 cannot keep, it is found out, too, what they bring for each other.
    /// They may write to the launch's buffers, but not the right data. None if that takes too long, or work-groups wait for
    /// others.
    ///
    /// What they bring for each other is taken from the survey of the same work in other work-groups, if that is `known`: nearly
    /// the same requests come in nearly the same order.
    pub(super) fn of(
        timer: &Timer,
        kernel: &Arc<Kernel>,
        launch: &Launch,
        kept: bool,
        known: Option<&Survey>,
    ) -> Option<Survey> {
        let model = timer.model();
        let (most_steps, few_times) = match timer.cores {
            Cores::Few => (MOST / FOR_FEW, FEW_TIMES / 2),
            _ => (MOST, FEW_TIMES),
        };
        let mut runs = Runs::new(model, kernel, launch, kept, MOST, timer.stop)?;
        let stays = stays_in_l2(model);
        let of = launch.group_count();
        let few = FIRST.min(of);
        let meets = meets_others(kernel);
        let bytes = runs.bytes();
        let holds = |reuse: &Reuse| reuse.is_of(runs.buffers(), *model.l2.line);
        let known = known.filter(|known| known.reuse.as_deref().is_none_or(holds));
        let notes = known.is_none() && bytes > stays;
        let (cores, places, l1_bytes) = held(model, &timer.compile(kernel, launch).ok()?, launch).ok()?;
        let resident = (cores * places) as u64;
        // Where no branch depends on who takes it, some tell as much as all.
        let are_same = Divergence::of_launch(kernel).is_nowhere();
        let mut survey = Survey {
            counted: Vec::new(),
            of,
            touched: None,
            reuse: known.and_then(Survey::reuse),
            most_steps,
            few_times,
        };
        // Of how many lines the requests are noted depends on the work.
        let begun = if are_same { 1 } else { few.min(4) };
        let mut even: Vec<u64> = (0..begun).map(|at| at * of / begun).collect();
        runs.count(&even)?;
        survey.counted = runs.counted(&even);
        let lines = notes.then(|| survey.lines(model, survey.noted(resident)));
        // Evenly spread pairs of neighbours, and then those in between.
        for step in [16, 8, 4, 2, 1] {
            let is_next =
                |pair: &u64| pair.is_multiple_of(step) && (step == 16 || !pair.is_multiple_of(2 * step));
            let next = (0..few).filter(|at| is_next(&(at / 2)));
            let next: Vec<u64> = next.map(|at| at / 2 * 2 * of / few + at % 2).collect();
            match lines {
                Some(lines) => runs.note(&next, lines)?,
                None => runs.count(&next)?,
            }
            even.extend(next);
            survey.counted = runs.counted(&even);
            let steps: u64 = survey.counted.iter().map(|&(_, work)| work).sum();
            let is_seen = !notes || steps > LOOKED_AT;
            if are_same && is_seen && runs.have_touched_enough() || steps > most_steps {
                break;
            }
        }
        survey.touched = runs.touched_by(of);
        let differ = survey.spread() > SAME;
        let is_alike = !differ && !meets;
        let lines = lines.filter(|_| !survey.touches_at_most(stays));
        // Whether L2 has a part of what the same launch has left there, and all requests are noted, which tell what that is.
        let noted = survey.noted(resident);
        let remains = kept && noted == of && survey.touches_at_most(may_stay_in_l2(model));
        if let Some(lines) = lines
            && (remains
                || !is_alike
                || runs.met_by_others(false, &lines, model) > SHARED
                || runs.met_by_others(true, &lines, model) > SHARED)
        {
            let first: Vec<u64> = (0..noted).collect();
            let part = survey.until_full(stays);
            let lines = match are_same && !remains && !runs.have_barriers() && runs.touch_evenly(part) {
                true => Noted {
                    most_steps: (part * runs.steps_of_sub_group()) as u64,
                    ..lines
                },
                false => lines,
            };
            runs.note(&first, lines)?;
            let requests = Requests {
                groups: runs.take_requests(&first),
                one_in: lines.one_in,
                buffers: runs.buffers().to_vec(),
                cores,
                places,
                l1_bytes,
            };
            survey.reuse = Some(Arc::new(Reuse::of(model, &requests, remains)));
            if noted == of {
                survey.counted = runs.counted(&first);
                survey.touched = runs.touched_by(of);
                return Some(survey);
            }
        }
        if differ {
            let by_branches = runs.are_soon_counted();
            let most = most_steps * if by_branches { BY_BRANCHES } else { 1 };
            let step = (survey.steps() / most as f64) as u64 + 1;
            let more = (0..of.div_ceil(step)).map(|at| at * step + spread(at) % step);
            let more: Vec<u64> = more.filter(|group| *group < of).collect();
            if by_branches {
                survey.counted = runs.counted_by_branches(&more)?;
            } else {
                runs.count(&more)?;
                even.extend(more);
                survey.counted = runs.counted(&even);
                survey.touched = runs.touched_by(of);
            }
        }
        Some(survey)
    }

    /// How many work-groups, from the first on, have their requests noted: all if they take at most [`MOST`] steps together,
    /// otherwise the first ones up to that limit. The `resident` work-groups fill the caches together and are noted whole if
    /// they take at most [`FEW_TIMES`] that many steps.
    fn noted(&self, resident: u64) -> u64 {
        let of_group = self.steps() / self.of as f64;
        let most = (self.most_steps as f64 / of_group.max(1.0)) as u64;
        resident.min(self.few_times * most).max(most).clamp(1, self.of)
    }

    /// The part of work-groups that all do the same after which L2, which keeps this many bytes, has been filled [`FILLED`] times,
    /// if they touch memory evenly: the rest finds as much in it.
    fn until_full(&self, keeps: u64) -> f64 {
        match self.touched {
            Some(touched) if self.steps() > self.most_steps as f64 / 4.0 => {
                FILLED * keeps as f64 / touched as f64
            }
            _ => f64::INFINITY,
        }
    }

    /// The lines to note when this many work-groups run.
    fn lines(&self, model: &DeviceModel, groups: u64) -> Noted {
        let of_group = self.steps() / self.of as f64;
        let one_in = (of_group * groups as f64 / NOTED).max(1.0) as u64;
        noted(model, one_in.next_power_of_two().min(MOST_ONE_IN))
    }

    /// How often cores find lines that others brought, if it is known.
    pub(super) fn reuse(&self) -> Option<Arc<Reuse>> {
        self.reuse.clone()
    }

    /// Work-groups of the launch.
    pub(super) fn of_groups(&self) -> u64 {
        self.of
    }

    /// Whether the lines that they all touch have no more bytes than this.
    pub(super) fn touches_at_most(&self, bytes: u64) -> bool {
        self.touched.is_some_and(|touched| touched <= bytes)
    }

    /// Steps of all work-groups, about.
    pub(super) fn steps(&self) -> f64 {
        let counted: u64 = self.counted.iter().map(|&(_, work)| work).sum();
        counted as f64 * self.of as f64 / self.counted.len().max(1) as f64
    }

    /// The standard deviation of the work-groups' work, as a part of the mean.
    pub(crate) fn spread(&self) -> f64 {
        let mut moments = Moments::default();
        self.counted.iter().for_each(|&(_, work)| moments.add(work));
        moments.relative()
    }

    /// This many work-groups that stand for all. Another `seed` chooses others.
    pub(super) fn choose(&self, count: usize, seed: u64) -> Chosen {
        let all = self.counted.len();
        let count = count.clamp(1, all);
        let windows = count.div_ceil(STRATA);
        let longest = self.counted.iter().max_by_key(|&&(group, work)| (work, group));
        let mut chosen: Vec<(u64, u64)> = Vec::with_capacity(count);
        for window in 0..windows {
            let part = |of: usize| of * window / windows..of * (window + 1) / windows;
            let mut sorted = self.counted[part(all)].to_vec();
            sorted.sort_unstable_by_key(|&(group, work)| (work, group));
            let strata = part(count).len();
            for stratum in 0..strata {
                let of = &sorted[stratum * sorted.len() / strata..(stratum + 1) * sorted.len() / strata];
                match longest {
                    Some(longest) if of.contains(longest) => chosen.push(*longest),
                    _ => chosen.extend(stands_for(of, spread(seed ^ chosen.len() as u64), seed > 0)),
                }
            }
        }
        chosen.sort_unstable();
        let sum = |groups: &[(u64, u64)]| groups.iter().map(|&(_, work)| work as f64).sum::<f64>();
        Chosen {
            ratio: self.steps() / sum(&chosen).max(1.0),
            groups: chosen.into_iter().map(|(group, _)| group).collect(),
            left_out: 0.0,
        }
    }
}

/// The work-group of a stratum, in order of work, whose work is nearest to the mean; or one of the half of them around it.
fn stands_for(stratum: &[(u64, u64)], random: u64, any: bool) -> Option<(u64, u64)> {
    let mean = stratum.iter().map(|&(_, work)| work as f64).sum::<f64>() / stratum.len().max(1) as f64;
    let off = |at: &usize| (stratum[*at].1 as f64 - mean).abs();
    let nearest = (0..stratum.len()).min_by(|one, other| off(one).total_cmp(&off(other)))?;
    let half = stratum.len() / 2;
    let shift = if any {
        (random % (half as u64 + 1)) as usize
    } else {
        half / 2
    };
    stratum
        .get((nearest + shift).saturating_sub(half / 2).min(stratum.len() - 1))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A launch whose work-groups have this to do.
    fn survey(work: impl Iterator<Item = u64>) -> Survey {
        let counted: Vec<(u64, u64)> = (0..).zip(work).collect();
        Survey {
            of: counted.len() as u64,
            counted,
            touched: None,
            reuse: None,
            most_steps: MOST,
            few_times: FEW_TIMES,
        }
    }

    #[test]
    fn those_that_stand_for_all_have_the_work_of_all_and_the_longest_is_there() {
        // A few that have much to do, and many that have little.
        let power = survey((0..5000).map(|at| 100 + 1_000_000 / (100 + spread(at) % 10_000)));
        assert!(power.spread() > 0.5);
        for (count, seed) in [(600, 0), (600, 1), (600, 2), (75, 0), (5000, 0), (1, 0)] {
            let chosen = power.choose(count, seed);
            assert_eq!(chosen.groups.len(), count);
            assert!(chosen.groups.is_sorted_by(|one, other| one < other));
            let longest = power.counted.iter().max_by_key(|&&(_, work)| work).unwrap().0;
            assert!(chosen.groups.contains(&longest), "{count} {seed}");
            let share = 5000.0 / count as f64;
            if count >= 600 {
                assert!(
                    (chosen.ratio / share - 1.0).abs() < 0.15,
                    "{} of {share}",
                    chosen.ratio
                );
            }
        }
        assert_ne!(power.choose(600, 1), power.choose(600, 2));
    }

    #[test]
    fn every_part_of_the_launch_is_there() {
        let grows = survey((0..1000).map(|at| 10 + at));
        let chosen = grows.choose(100, 0);
        for part in 0..10 {
            let there = chosen.groups.iter().filter(|&&group| group / 100 == part).count();
            assert!((8..=12).contains(&there), "{there} of part {part}");
        }
        assert!((chosen.ratio - 10.0).abs() < 0.2);
    }
}
