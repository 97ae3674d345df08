//! Work-groups of a launch that run without time, each once: their steps, the lines that they touch, and their requests.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::Stop;
use crate::device::Launch;
use crate::functional::{
    CompiledKernel, FastMap, Flow, Footprint, LaunchState, Needed, Noted, Options, PrefetchBounds, Request,
    Wanted,
};
use crate::ir::Kernel;
use crate::memory::{may_stay_in_l2, stays_in_l2};
use crate::model::DeviceModel;

/// Steps touch memory evenly if each of these many parts touches at least this much of its share.
const PARTS: u32 = 4;
const EVENLY: f64 = 0.5;

/// The requests of a work-group's sub-groups, in order.
type Requested = Vec<Vec<Request>>;

/// What is known of a launch's work-groups so far.
pub(super) struct Runs<'l> {
    compiled: CompiledKernel,
    launch: &'l Launch,
    sub_group_size: u32,
    options: Options,
    line: u64,
    /// The addresses of the launch's buffers.
    buffers: Vec<Range<u64>>,
    /// The lines that the counted work-groups touch, up to as many as L2 can hold. `None` if L2 starts empty, when nothing asks
    /// for them, or if the buffers are too large to note them.
    footprint: Option<Footprint>,
    steps: BTreeMap<u64, u64>,
    requests: BTreeMap<u64, Requested>,
}

impl<'l> Runs<'l> {
    /// No work-group has run yet. The lines that they touch are noted if L2 has `kept` what an earlier launch left there. A
    /// work-group that takes more than `limit` steps is an error.
    pub(crate) fn new(
        model: &DeviceModel,
        kernel: &Arc<Kernel>,
        launch: &'l Launch,
        kept: bool,
        limit: u64,
        stop: Option<&'static Stop>,
    ) -> Option<Runs<'l>> {
        let sub_group_size = launch.sub_group_size(kernel, &model.description());
        let options = Options {
            prefetch_bounds: PrefetchBounds::Free,
            operation_limit: limit,
            stop,
            may_be_given_up: true,
            ..Options::FAST
        };
        let state = LaunchState::new(kernel, launch, sub_group_size, options).ok()?;
        let buffers = state.extents();
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.end - buffer.start).collect();
        let line = *model.l2.line;
        let footprint = match kept {
            true => Footprint::new(&sizes, line, may_stay_in_l2(model) + line),
            false => None,
        };
        Some(Runs {
            compiled: CompiledKernel::only_for(Wanted::Addresses, Arc::clone(kernel)),
            launch,
            sub_group_size,
            options,
            line,
            buffers,
            footprint,
            steps: BTreeMap::new(),
            requests: BTreeMap::new(),
        })
    }

    /// Whether its sub-groups wait for each other.
    pub(crate) fn have_barriers(&self) -> bool {
        self.compiled.has_barriers()
    }

    /// The addresses of the launch's buffers.
    pub(crate) fn buffers(&self) -> &[Range<u64>] {
        &self.buffers
    }

    /// How many bytes these have.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.end - buffer.start).sum()
    }

    /// Counts the steps of these work-groups. None if one goes wrong, or takes too long.
    pub(crate) fn count(&mut self, groups: &[u64]) -> Option<()> {
        let new: Vec<u64> = groups
            .iter()
            .copied()
            .filter(|at| !self.steps.contains_key(at))
            .collect();
        let (launch, size) = (self.launch, self.sub_group_size);
        let steps = self
            .compiled
            .steps_of(launch, size, self.options, &new, self.footprint.as_ref());
        self.steps.extend(new.into_iter().zip(steps.ok()?));
        Some(())
    }

    /// Whether the steps of all are soon [counted by their branches](Self::counted_by_branches): no iteration reads memory to find
    /// out whether another one follows.
    pub(crate) fn are_soon_counted(&self) -> bool {
        let kernel = self.compiled.kernel();
        !Needed::of(&Flow::of(kernel), Wanted::Branches).accesses_in_loops(kernel)
    }

    /// These work-groups and their steps, of which only what decides branches is carried out: the lines that they touch are not
    /// noted. None as for [`Self::count`].
    pub(crate) fn counted_by_branches(&self, groups: &[u64]) -> Option<Vec<(u64, u64)>> {
        let kernel = Arc::clone(self.compiled.kernel());
        let compiled = CompiledKernel::only_for(Wanted::Branches, kernel);
        let steps = compiled.steps_of(self.launch, self.sub_group_size, self.options, groups, None);
        Some(groups.iter().copied().zip(steps.ok()?).collect())
    }

    /// Counts the steps of these work-groups, and notes their requests for some lines: the same ones each time, and as many steps of each sub-group.
    pub(crate) fn note(&mut self, groups: &[u64], lines: Noted) -> Option<()> {
        let of_whole = lines.most_steps == u64::MAX;
        if !of_whole {
            self.requests.clear();
        }
        let is_new = |at: &u64| !self.requests.contains_key(at);
        let new: Vec<u64> = groups.iter().copied().filter(is_new).collect();
        let (launch, size) = (self.launch, self.sub_group_size);
        let touched = self.footprint.as_ref();
        let runs = self
            .compiled
            .requests_of(launch, size, self.options, &new, lines, touched);
        for (group, (steps, requests)) in new.into_iter().zip(runs.ok()?) {
            if of_whole {
                // A second time it may have less to do.
                self.steps.entry(group).or_insert(steps);
            }
            self.requests.insert(group, requests);
        }
        Some(())
    }

    /// Steps of a sub-group, on average.
    pub(crate) fn steps_of_sub_group(&self) -> f64 {
        let groups = self.steps.len().max(1) as f64;
        let sub_groups = self.launch.group_items().div_ceil(u64::from(self.sub_group_size));
        self.steps.values().sum::<u64>() as f64 / groups / sub_groups as f64
    }

    /// These work-groups that have run, and their steps, in order.
    pub(crate) fn counted(&self, groups: &[u64]) -> Vec<(u64, u64)> {
        let groups: BTreeSet<u64> = groups.iter().copied().collect();
        let known = groups
            .into_iter()
            .filter_map(|at| Some((at, *self.steps.get(&at)?)));
        known.collect()
    }

    /// Whether the lines that more of them touch do not matter.
    pub(crate) fn have_touched_enough(&self) -> bool {
        self.footprint.as_ref().is_none_or(Footprint::is_full)
    }

    /// Bytes of the lines that this many of them touch, at most: those that have not run are taken to touch no common memory, as far
    /// as the buffers have as much.
    pub(crate) fn touched_by(&self, all: u64) -> Option<u64> {
        let bytes = self.footprint.as_ref()?.bytes();
        let of_all = bytes as f64 * all as f64 / self.steps.len().max(1) as f64;
        Some((of_all as u64).min(self.bytes()))
    }

    /// Whether the first part of each sub-group's steps touches new lines as the rest does: see [`are_even`].
    pub(crate) fn touch_evenly(&self, part: f64) -> bool {
        part >= 1.0 || are_even(self.requests.values().flatten(), part)
    }

    /// The part of the noted reads, or writes, of buffers that do not stay in L2 whose data another one of the work-groups has
    /// read, or written, before. As many more find some as L2 holds the data of, or as have run if these are more.
    pub(crate) fn met_by_others(&self, writes: bool, lines: &Noted, model: &DeviceModel) -> f64 {
        let stays = stays_in_l2(model);
        let large = self.lines_of_large(stays);
        let granule = (*model.dram.granule).clamp(lines.sector, lines.line);
        let (pieces, sectors) = (lines.line / granule, granule / lines.sector);
        // Who has used each piece of memory first.
        let mut first: FastMap<u64> = FastMap::default();
        let (mut asked, mut found) = (0u64, 0u64);
        for (&group, requests) in &self.requests {
            let such = requests
                .iter()
                .flatten()
                .filter(|request| request.writes() == writes);
            for request in such.filter(|request| large.iter().any(|lines| lines.contains(&request.line()))) {
                for piece in 0..pieces {
                    if u64::from(request.sectors()) >> (piece * sectors) & ((1 << sectors) - 1) != 0 {
                        asked += 1;
                        let first = *first.entry(request.line() * pieces + piece).or_insert(group);
                        found += u64::from(first != group);
                    }
                }
            }
        }
        let run = self.requests.len().max(1) as f64;
        let bytes = first.len() as f64 * lines.one_in as f64 * lines.line as f64;
        let held = (stays as f64 * run / bytes.max(1.0)).clamp(run, self.launch.group_count() as f64);
        found as f64 / asked.max(1) as f64 * (held - 1.0) / (run - 1.0).max(1.0)
    }

    /// The lines of the large buffers: the buffers are filled into `bytes` from the smallest on, and those that do not fit are
    /// large.
    fn lines_of_large(&self, bytes: u64) -> Vec<Range<u64>> {
        let mut left = Some(bytes);
        let mut ascending: Vec<&Range<u64>> = self.buffers.iter().collect();
        ascending.sort_by_key(|buffer| buffer.end - buffer.start);
        let is_large = |buffer: &&&Range<u64>| {
            left = left.and_then(|left| left.checked_sub(buffer.end - buffer.start));
            left.is_none()
        };
        let large = ascending.iter().filter(is_large);
        large
            .map(|buffer| buffer.start / self.line..buffer.end.div_ceil(self.line))
            .collect()
    }

    /// The requests of these work-groups, in the given order; nothing is kept.
    pub(crate) fn take_requests(&mut self, groups: &[u64]) -> Vec<Requested> {
        let mut all = std::mem::take(&mut self.requests);
        groups
            .iter()
            .map(|at| all.remove(at).unwrap_or_default())
            .collect()
    }
}

/// Whether the first part of each sub-group's requests touches new lines as the rest does. The first steps of a search do not: all
/// ask for the same few lines.
fn are_even<'r>(sub_groups: impl Iterator<Item = &'r Vec<Request>>, part: f64) -> bool {
    // The earliest place in its sub-group at which each line is asked for.
    let mut earliest: FastMap<f64> = FastMap::default();
    for requests in sub_groups {
        let all = requests.last().map_or(1.0, |last| f64::from(last.after) + 1.0);
        for request in requests {
            let place = f64::from(request.after) / all;
            let earliest = earliest.entry(request.line()).or_insert(place);
            *earliest = earliest.min(place);
        }
    }
    let touched = |part: f64| earliest.values().filter(|&&place| place < part).count() as f64;
    (1..=PARTS).all(|at| {
        let part = part * f64::from(at) / f64::from(PARTS);
        touched(part) >= EVENLY * part * earliest.len() as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::spread;

    /// 64 sub-groups that make 512 requests each, of lines that follow from the sub-group and the place.
    fn sub_groups(line: impl Fn(u64, u64) -> u64) -> Vec<Vec<Request>> {
        let request = |of, at| Request::new(at as u32, line(of, at), 1, false);
        (0..64)
            .map(|of| (0..512).map(|at| request(of, at)).collect())
            .collect()
    }

    #[test]
    fn a_stream_is_even_and_the_first_level_of_a_search_is_not() {
        let stream = sub_groups(|of, at| of * 512 + at);
        let random = sub_groups(|of, at| spread(of * 512 + at) % 100_000);
        // Each level has twice as many lines as the one before; after sixteen the next search begins.
        let search = sub_groups(|of, at| {
            let lines = 1 << (at % 16);
            lines + spread(of * 512 + at) % lines
        });
        for part in [0.02, 0.1, 0.5] {
            assert!(are_even(stream.iter(), part), "{part}");
            assert!(are_even(random.iter(), part), "{part}");
        }
        assert!(!are_even(search.iter(), 0.02));
    }
}
