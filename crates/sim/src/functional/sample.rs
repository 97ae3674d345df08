//! Some work-groups of a launch, and those of their writes that equal the whole launch's.
//!
//! A work-group that reads only memory that no work-group writes, or its own writes, computes the same alone as among all
//! others. Its writes are then those of the whole launch, unless another work-group writes the same place, which is a race. A
//! work-group that reads a buffer that others may write is reported separately: it read the contents from before the launch.

use std::ops::Range;
use std::sync::PoisonError;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::address::bit_of;
use super::atomics;
use super::footprint::{Footprint, Touching};
use super::options::Options;
use super::run::{CompiledKernel, Totals, run_group};
use super::state::LaunchState;
use super::sub_group::Unobserved;
use super::worker::Worker;
use crate::device::{Counters, Launch};
use crate::ir::effects::Access;
use crate::ir::{Kernel, OpKind, Space};
use crate::{Error, Result};

/// The results of some work-groups.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// The counters.
    pub counters: Counters,
    /// Work-groups that read nothing that others may write, in order.
    pub alone: Vec<u64>,
    /// The bytes that these wrote and no other work-group of the sample touched: the buffer, counted in the order of the
    /// parameters that name it first, and a range. In order; neighbours are one range.
    pub written: Vec<(usize, Range<u64>)>,
    /// How many pieces of 128 cells of memory that may be written were touched. Each takes some 8 KiB of the host's memory while
    /// the sample runs.
    pub touched: u64,
}

/// Whether a work-group may observe another's results.
#[doc(hidden)]
pub fn sees_others(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| {
        found |= match &op.kind {
            OpKind::Fence(_, scope) => scope.is_wide(),
            kind => {
                let effects = kind.effects();
                let is_far = |pointer| kernel.ty(pointer).space() != Some(Space::Shared);
                effects.access == Access::Atomic && effects.pointers().any(is_far)
            }
        };
    });
    found
}

/// Whether work-groups of a kernel can be run without the others: none can wait for another, or see its writes.
#[doc(hidden)]
pub fn runs_apart(kernel: &Kernel) -> bool {
    !sees_others(kernel) && !atomics::depends_on_order(kernel)
}

impl CompiledKernel {
    /// Runs these work-groups of a launch that has passed [`Launch::check`]: the number of steps of each group's sub-groups, in
    /// the given order. Their accesses are noted in `footprint`. If work-groups see each other, they run one after the other.
    ///
    /// # Errors
    /// The first failing group's error; or that there is no such work-group. One that waits for a work-group that does not run
    /// fails, too.
    pub(crate) fn steps_of(
        &self,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &[u64],
        footprint: Option<&Footprint>,
    ) -> Result<Vec<u64>> {
        let state = self.bind(launch, sub_group_size, options)?;
        are_there(launch, groups)?;
        let run = |worker: &mut Option<_>, number: u64| {
            let totals = Totals::default();
            match run_group(
                worker,
                &state,
                self.tape(),
                number,
                &mut Touching(footprint),
                &totals,
            ) {
                Some(error) => Err(error),
                None => Ok(totals.steps()),
            }
        };
        each_of(&state, groups, run)
    }

    /// Runs these work-groups of a launch that has passed [`Launch::check`], of a kernel that [`runs_apart`]. `outputs` are
    /// the buffers that the launch may write.
    ///
    /// # Errors
    /// As those of [`CompiledKernel::run`]; there is no such work-group.
    #[doc(hidden)]
    pub fn run_sample(
        &self,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &[u64],
        outputs: &[usize],
    ) -> Result<Sampled> {
        let state = self.bind(launch, sub_group_size, options)?;
        if state.in_order || !state.is_checking() {
            return Err(Error::bug("work-groups that see each other were sampled"));
        }
        are_there(launch, groups)?;
        let totals = Totals::default();
        let run = |worker: &mut Option<_>, &number: &u64| {
            run_group(worker, &state, self.tape(), number, &mut Unobserved, &totals)
        };
        let failed = groups
            .par_iter()
            .map_init(|| None, run)
            .find_map_first(|error| error);
        if let Some(error) = failed {
            return Err(error);
        }
        state.finish()?;

        let may_change = outputs.iter().fold(0, |all, &buffer| all | bit_of(buffer));
        let looked = state.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let looks = |group: &u64| looked.get(group).is_some_and(|buffers| buffers & may_change != 0);
        let mut alone: Vec<u64> = groups.iter().copied().filter(|group| !looks(group)).collect();
        alone.sort_unstable();
        alone.dedup();
        let cell = 1u64 << state.cells.global;
        let mut cells: Vec<(usize, u64)> = Vec::new();
        state.shadow.written_by_one(|group, buffer, offset| {
            if alone.binary_search(&group).is_ok() {
                cells.push((buffer, offset));
            }
        });
        cells.sort_unstable();
        let mut written: Vec<(usize, Range<u64>)> = Vec::new();
        for (buffer, offset) in cells {
            match written.last_mut() {
                Some((last, range)) if *last == buffer && range.end == offset => range.end += cell,
                _ => written.push((buffer, offset..offset + cell)),
            }
        }
        Ok(Sampled {
            counters: totals.counters(),
            alone,
            written,
            touched: state.shadow.pages(),
        })
    }
}

/// What `run` gives for each of these work-groups, in the given order. It gets the worker of its thread, which it makes. If
/// work-groups see each other, they run one after the other.
pub(super) fn each_of<'l, R: Send>(
    state: &LaunchState<'l>,
    groups: &[u64],
    run: impl Fn(&mut Option<Worker<'l>>, u64) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    match state.in_order {
        true => {
            let mut worker = None;
            groups.iter().map(|&number| run(&mut worker, number)).collect()
        }
        false => groups
            .par_iter()
            .map_init(|| None, |worker, &number| run(worker, number))
            .collect(),
    }
}

/// Whether a launch has these work-groups.
pub(super) fn are_there(launch: &Launch, groups: &[u64]) -> Result<()> {
    match groups.iter().find(|&&number| number >= launch.group_count()) {
        None => Ok(()),
        Some(number) => Err(Error::usage(format!("there is no work-group {number}"))
            .accepted(format!("the launch has {}", launch.group_count()))),
    }
}
