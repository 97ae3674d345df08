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
//! The same pass notes which lines the work-groups ask for. From these it follows what they bring to L2 for each other: see
//! [`Reuse`].

use std::sync::Arc;

use super::Timer;
use super::run::{held, meets_others};
use super::slowest::Moments;
use crate::analysis::uniform::Divergence;
use crate::device::Launch;
use crate::functional::{
    CompiledKernel, FastMap, Footprint, LaunchState, Noted, Options, PrefetchBounds, Request,
};
use crate::ir::{Kernel, OpKind, Space};
use crate::memory::{Requests, Reuse, noted, spread, stays_in_l2};
use crate::model::DeviceModel;

/// Work-groups that are counted first; where they have as much to do as each other, the others are taken to have, too.
const FIRST: u64 = 64;

/// Work-groups that differ by no more than this (the standard deviation, of the mean) have as much to do as each other.
const SAME: f64 = 0.01;

/// Steps of sub-groups that may be counted; by choice, a second or two on one thread. Of a launch that has more, evenly
/// spread work-groups are counted.
const MOST: u64 = 60_000_000;

/// Of so many steps every line is noted that they ask for, and one in some of more; of no more than one in [`MOST_ONE_IN`]. A
/// step asks for up to 32 lines, and some millions of requests are kept.
const NOTED: f64 = 2e6;
const MOST_ONE_IN: u64 = 64;

/// Work-groups that have as much to do as each other bring little for each other if no more than this part of the requests of
/// some is for lines that another one of them has asked for, of buffers that L2 cannot keep.
const SHARED: f64 = 0.05;

/// How many times [`MOST`] steps the work-groups take at most that are resident at once.
const FEW_TIMES: u64 = 4;

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
    /// matter. Where the work-groups differ, or go where data lead them, it is found out, too, what they bring for each other.
    /// They may write to the launch's buffers, but not the right data. None if that takes too long, or work-groups wait for
    /// others.
    pub(super) fn of(timer: &Timer, kernel: &Arc<Kernel>, launch: &Launch, kept: bool) -> Option<Survey> {
        let model = timer.model();
        let sub_group_size = launch.sub_group_size(kernel, &model.description());
        let options = Options {
            prefetch_bounds: PrefetchBounds::Free,
            operation_limit: MOST,
            ..Options::FAST
        };
        let compiled = CompiledKernel::of_addresses(Arc::clone(kernel));
        let state = LaunchState::new(kernel, launch, sub_group_size, options).ok()?;
        let buffers = state.extents();
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.end - buffer.start).collect();
        let line = *model.l2.line;
        let stays = stays_in_l2(model);
        let footprint = match kept {
            true => Footprint::new(&sizes, line, stays + line),
            false => None,
        };
        let count = |groups: &[u64]| -> Option<Vec<(u64, u64)>> {
            let work = compiled.steps_of(launch, sub_group_size, options, groups, footprint.as_ref());
            Some(groups.iter().copied().zip(work.ok()?).collect())
        };
        let of = launch.group_count();
        let sum = |counted: &[(u64, u64)]| counted.iter().map(|&(_, work)| work).sum::<u64>();
        let few = FIRST.min(of);
        let mut counted: Vec<(u64, u64)> = Vec::new();
        // Where no branch depends on who takes it, some tell as much as all.
        let are_same = Divergence::of_launch(kernel).is_nowhere();
        // Evenly spread, and then those in between.
        for step in [16, 8, 4, 2, 1] {
            let next = (0..few).filter(|at| at % step == 0 && (step == 16 || at % (2 * step) != 0));
            let next: Vec<u64> = next.map(|at| at * of / few).collect();
            counted.extend(count(&next)?);
            let is_enough = are_same && footprint.as_ref().is_none_or(Footprint::is_full);
            if is_enough || sum(&counted) > MOST {
                break;
            }
        }
        counted.sort_unstable();
        // Work-groups outside the counted ones are assumed to touch no common memory.
        let touched = |counted: usize| {
            let bytes = footprint.as_ref()?.bytes();
            Some((bytes as f64 * of as f64 / counted.max(1) as f64) as u64)
        };
        let mut survey = Survey {
            touched: touched(counted.len()),
            reuse: None,
            counted,
            of,
        };
        let differ = survey.spread() > SAME;
        let is_alike = !differ && !meets_others(kernel);
        let is_large = sizes.iter().sum::<u64>() > stays && !survey.touches_at_most(stays);
        if of <= few || is_alike && !(is_large && follows_data(kernel)) {
            return Some(survey);
        }
        let requests = |groups: &[u64], noted: Noted| {
            let touched = footprint.as_ref();
            let runs = compiled.requests_of(launch, sub_group_size, options, groups, noted, touched);
            Some(runs.ok()?.into_iter().unzip::<u64, _, Vec<u64>, Vec<_>>())
        };
        if is_alike {
            let some: Vec<u64> = (0..few).map(|at| at * of / few).collect();
            let (_, asked) = requests(&some, survey.one_in(few, model))?;
            let large = buffers.iter().filter(|buffer| buffer.end - buffer.start > stays);
            let large: Vec<_> = large
                .map(|buffer| buffer.start / line..buffer.end.div_ceil(line))
                .collect();
            if found_by_others(&asked, |at| large.iter().any(|lines| lines.contains(&at))) <= SHARED {
                return Some(survey);
            }
        }
        if is_large {
            let code = timer.compile(kernel, launch).ok()?;
            let (cores, places, l1_bytes) = held(model, &code, launch).ok()?;
            let (noted, one_in) = survey.noted((cores * places) as u64, model);
            let (steps, groups) = requests(&(0..noted).collect::<Vec<u64>>(), one_in)?;
            let requests = Requests {
                groups,
                one_in: one_in.one_in,
                buffers,
                cores,
                places,
                l1_bytes,
            };
            survey.reuse = Some(Arc::new(Reuse::of(model, &requests)));
            if noted == of {
                let mut counted: Vec<(u64, u64)> = (0..).zip(steps).collect();
                // A second time they may have less to do.
                for &(group, work) in &survey.counted {
                    counted[group as usize].1 = work;
                }
                survey.touched = touched(counted.len());
                survey.counted = counted;
                return Some(survey);
            }
        }
        if differ {
            let step = (survey.steps() / MOST as f64) as u64 + 1;
            let known = &survey.counted;
            let more: Vec<u64> = (0..of.div_ceil(step))
                .map(|at| at * step + spread(at) % step)
                .filter(|group| {
                    *group < of && known.binary_search_by_key(group, |&(known, _)| known).is_err()
                })
                .collect();
            survey.counted.extend(count(&more)?);
            survey.counted.sort_unstable();
            survey.touched = touched(survey.counted.len());
        }
        Some(survey)
    }

    /// How many of the first work-groups are run to find out what they bring for each other, and which lines are noted. All, or
    /// as many as have [`MOST`] steps; but of those that are `resident` at once, which fill the caches together, [`FEW_TIMES`]
    /// as many.
    fn noted(&self, resident: u64, model: &DeviceModel) -> (u64, Noted) {
        let of_group = self.steps() / self.of as f64;
        let most = (MOST as f64 / of_group.max(1.0)) as u64;
        let groups = resident.min(FEW_TIMES * most).max(most).clamp(1, self.of);
        (groups, self.one_in(groups, model))
    }

    /// The lines to note when this many work-groups run.
    fn one_in(&self, groups: u64, model: &DeviceModel) -> Noted {
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
    pub fn spread(&self) -> f64 {
        let mut moments = Moments::default();
        self.counted.iter().for_each(|&(_, work)| moments.add(work));
        moments.relative()
    }

    /// So many work-groups that stand for all. Another `seed` chooses others.
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

/// Whether a load's address depends on what lies in memory.
fn follows_data(kernel: &Kernel) -> bool {
    let known = Divergence::by_contents(kernel);
    let mut follows = false;
    kernel.body.walk(&mut |op| {
        if let OpKind::Load { ptr, .. } = &op.kind {
            follows |= known.differs(*ptr) && kernel.ty(*ptr).space() == Some(Space::Global);
        }
    });
    follows
}

/// The part of the work-groups' requests for some lines that are for such as another one of them has asked for before.
fn found_by_others(groups: &[Vec<Vec<Request>>], is_one: impl Fn(u64) -> bool) -> f64 {
    let mut first: FastMap<usize> = FastMap::default();
    let (mut asked, mut found) = (0u64, 0u64);
    for (group, requests) in groups.iter().enumerate() {
        for request in requests.iter().flatten().filter(|request| is_one(request.line())) {
            asked += 1;
            found += u64::from(*first.entry(request.line()).or_insert(group) != group);
        }
    }
    found as f64 / asked.max(1) as f64
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
