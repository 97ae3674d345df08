//! A sample of the launch's work-groups, with its data: the first, the last, and some at random.
//!
//! A launch of millions of work-items takes minutes on the functional engine. Some of its work-groups take a second, and show
//! whether a plan is correct on the real data: at the ends of buffers, with the real strides and bounds.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::device::sim::functional::{CompiledKernel, Options, Sampled, has_not_ended, runs_apart};
use crate::device::{Counters, Device};
use crate::error::Result;
use crate::ir::{Kernel, verify};
use crate::random::splitmix64;
use crate::tune::subject::workload::{ArgumentSpec, Bound, Output, Prepared, Workload};

/// Operations of sub-groups that the work-groups of a sample may take together; by choice, a fraction of a second.
const OPERATIONS: u64 = 4_000_000;

/// Pieces of the outputs that the work-groups of a sample may touch together: where they write at random, each write takes the
/// host's memory of a [piece](Sampled::touched).
const TOUCHED: u64 = 1 << 15;

/// A sample that touches more of them than this runs under one plan after the other.
const TOUCHED_AT_ONCE: u64 = TOUCHED / 8;

/// Operations after which a sub-group of the plain kernel is given up, and so the sample; a plan may take a few times as many.
const LONGEST: u64 = 1 << 24;
const LONGEST_OF_PLAN: u64 = LONGEST << 3;

/// The least and the most work-groups of a sample.
const GROUPS: Range<u64> = 2..65;

/// How many times as many work-groups as have run may run next.
const AT_ONCE: u64 = 8;

/// Work-groups of a launch to run.
#[derive(Debug)]
pub struct Sample {
    /// Those that run, in order.
    groups: Vec<u64>,
    /// Held while a plan is run and compared, if that takes much memory.
    turn: Option<Mutex<()>>,
}

/// A launch of which some work-groups have run.
pub(in crate::tune) struct Ran {
    pub sampled: Sampled,
    pub outputs: Vec<Output>,
}

/// Runs these work-groups of a bound launch under a plan.
pub(in crate::tune) fn run(
    bound: &Bound,
    device: &dyn Device,
    kernel: &Arc<Kernel>,
    groups: &[u64],
) -> Result<Ran> {
    run_within(bound, device, kernel, groups, LONGEST_OF_PLAN)
}

fn run_within(
    bound: &Bound,
    device: &dyn Device,
    kernel: &Arc<Kernel>,
    groups: &[u64],
    limit: u64,
) -> Result<Ran> {
    verify(kernel)?;
    let Prepared { mut launch, outputs } = bound.prepare(device)?;
    launch.operation_limit = Some(limit);
    launch.check(kernel, device.description())?;
    let size = launch.sub_group_size(kernel, device.description());
    // Every buffer is one of its own here.
    let buffers = bound.workload().given.iter();
    let written: Vec<usize> = buffers
        .filter(|given| !matches!(given, ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. }))
        .enumerate()
        .filter(|(_, given)| matches!(given, ArgumentSpec::Output { .. }))
        .map(|(buffer, _)| buffer)
        .collect();
    let compiled = CompiledKernel::new(Arc::clone(kernel));
    let sampled = compiled.run_sample(&launch, size, Options::CHECKING, groups, &written)?;
    Ok(Ran { sampled, outputs })
}

impl Sample {
    /// Runs the plain kernel's. None if a work-group may see others' writes, so that some alone compute something else, and if
    /// memory lies at addresses that a program chose.
    ///
    /// # Errors
    /// The plain kernel goes wrong.
    pub(in crate::tune) fn of_launch(
        bound: &Bound,
        device: &dyn Device,
        plain: &Arc<Kernel>,
        seed: u64,
    ) -> Result<Option<(Sample, Vec<Output>)>> {
        // Memory that a program has placed is no parameter's own.
        if !runs_apart(plain) || bound.workload().placed.is_some() {
            return Ok(None);
        }
        let of = count(bound.workload());
        let run = |groups: &[u64]| run_within(bound, device, plain, groups, LONGEST);
        let (Ran { sampled, outputs }, groups) = match grown(run, of, seed) {
            // Whether it ends at all, the device will tell.
            Err(error) if has_not_ended(&error) => (run(&[])?, Vec::new()),
            chosen => chosen?,
        };

        let sample = Sample {
            groups,
            turn: (sampled.touched > TOUCHED_AT_ONCE).then(Mutex::default),
        };
        Ok(Some((sample, outputs)))
    }

    /// Waits until no other plan is run that may not run at the same time, which holds until this is dropped.
    pub(in crate::tune) fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let turn = self.turn.as_ref()?;
        Some(turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The work-groups that run, by linear number, in order.
    pub fn groups(&self) -> &[u64] {
        &self.groups
    }
}

/// Runs more and more of a launch's work-groups until they take long enough, or as much memory as they may: where others have a
/// thousand times the work of the first, as those of a graph's busy vertices have, the first does not tell how many that is.
fn grown(run: impl Fn(&[u64]) -> Result<Ran>, of: u64, seed: u64) -> Result<(Ran, Vec<u64>)> {
    let mut groups = vec![0];
    loop {
        let ran = run(&groups)?;
        let operations = ran.sampled.counters.get(Counters::OPERATIONS).unwrap_or(0);
        let ran_so_far = groups.len() as u64;
        let by_work = OPERATIONS.saturating_mul(ran_so_far) / operations.max(1);
        let by_memory = TOUCHED * ran_so_far / ran.sampled.touched.max(1);
        let many = by_work
            .min(by_memory)
            .clamp(GROUPS.start, GROUPS.end - 1)
            .min(ran_so_far * AT_ONCE);
        let more = chosen(of, many, seed);
        if more.len() <= groups.len() {
            return Ok((ran, groups));
        }
        groups = more;
    }
}

/// Work-groups of a launch.
fn count(workload: &Workload) -> u64 {
    workload.groups.iter().map(|&groups| u64::from(groups)).product()
}

/// This many of a launch's work-groups: the first, the last, and others at random; all, where there are no more.
fn chosen(of: u64, many: u64, seed: u64) -> Vec<u64> {
    if of <= many {
        return (0..of).collect();
    }
    let mut groups = BTreeSet::from([0, of - 1]);
    // Where nearly all are to be drawn, a few may be missed.
    for draw in 0..many * 16 {
        if groups.len() as u64 >= many {
            break;
        }
        groups.insert(splitmix64(draw, seed) % of);
    }
    groups.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_are_always_among_them() {
        for (of, many) in [(66_407, 64), (66_407, 2), (200, 64), (1 << 40, 9)] {
            let groups = chosen(of, many, 7);
            assert_eq!(groups.len() as u64, many);
            assert_eq!((groups[0], groups[many as usize - 1]), (0, of - 1));
        }
        assert_eq!(chosen(3, 8, 1), [0, 1, 2]);
        assert_ne!(chosen(1000, 20, 1), chosen(1000, 20, 2));
        assert_eq!(chosen(1000, 20, 1), chosen(1000, 20, 1));
    }
}
