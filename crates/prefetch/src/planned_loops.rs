//! Which loops a plan is for.

use std::collections::HashMap;

use super::candidate::Candidate;
use super::loads::{candidates, find_loop, may_change, resolve};
use super::parts::{is_inside, planned_rests};
use super::plan::{Plan, Strategy};
use crate::error::{Error, Result};
use crate::ir::{Kernel, Label, LoadId};

/// A loop and the strategies of its loads.
type Planning = (Label, HashMap<LoadId, Strategy>);

/// How many loads' loops are inside a loop.
pub(super) fn depth(kernel: &Kernel, all: &[Candidate], label: Label) -> usize {
    let Some(op) = find_loop(&kernel.body, label) else {
        return 0;
    };
    let is_inside = |other: &&Candidate| op.kind.regions().any(|r| find_loop(r, other.looped).is_some());
    all.iter().filter(is_inside).count()
}

/// The loops that a plan is for, each with the strategies of its loads.
pub(super) fn strategies_by_loop(kernel: &Kernel, plan: &Plan, all: &[Candidate]) -> Result<Vec<Planning>> {
    let mut by_loop: Vec<Planning> = Vec::new();
    for (name, strategy) in plan.loads() {
        for candidate in resolve(kernel, all, name)? {
            may_change(kernel, candidate.looped, name.param())?;
            let position = by_loop.iter().position(|(label, _)| *label == candidate.looped);
            let position = position.unwrap_or_else(|| {
                by_loop.push((candidate.looped, HashMap::new()));
                by_loop.len() - 1
            });
            by_loop[position].1.insert(candidate.id, *strategy);
        }
    }
    if by_loop.is_empty() {
        let loops = loops_to_unroll(kernel, all)?.into_iter();
        by_loop.extend(loops.map(|label| (label, HashMap::new())));
    }
    Ok(by_loop)
}

/// The loops that a plan changes, remainders included.
///
/// # Errors
/// The plan names a load that is not there.
#[doc(hidden)]
pub fn planned_loops(kernel: &Kernel, plan: &Plan) -> Result<Vec<Label>> {
    let all = candidates(kernel);
    let by_loop = strategies_by_loop(kernel, plan, &all)?;
    let rests = planned_rests(kernel, &all, &by_loop)?;
    Ok(by_loop.iter().chain(&rests).map(|(label, _)| *label).collect())
}

/// The innermost loops that load from global memory.
fn loops_to_unroll(kernel: &Kernel, all: &[Candidate]) -> Result<Vec<Label>> {
    // What is left of a loop inside, after some of its iterations, is no loop to unroll.
    let is_left = |load: &Candidate| {
        let mut others = all.iter().filter(|other| other.id == load.id);
        load.is_rest && others.any(|other| is_inside(kernel, load.looped, other.looped))
    };
    let own = all
        .iter()
        .filter(|load| !kernel.labels[load.looped].is_called && !is_left(load));
    let mut loops: Vec<Label> = own.map(|load| load.looped).collect();
    loops.sort();
    loops.dedup();
    let outer = |label: Label| loops.iter().any(|&other| is_inside(kernel, other, label));
    let mut loops: Vec<Label> = loops.iter().copied().filter(|&label| !outer(label)).collect();
    // An unrolled loop and its remainder have the same loads: the first is meant.
    let ids = |label: Label| {
        let own = all.iter().filter(|candidate| candidate.looped == label);
        let mut ids: Vec<LoadId> = own.map(|candidate| candidate.id).collect();
        ids.sort();
        ids
    };
    if loops.len() > 1 && loops.iter().all(|&label| ids(label) == ids(loops[0])) {
        let size = |label: &Label| {
            let mut operations = 0usize;
            if let Some(op) = find_loop(&kernel.body, *label) {
                op.kind
                    .regions()
                    .for_each(|region| region.walk(&mut |_| operations += 1));
            }
            operations
        };
        let largest = loops.iter().copied().max_by_key(size);
        loops = largest.into_iter().collect();
    }
    match (loops.is_empty(), all.first()) {
        (false, _) => Ok(loops),
        (true, Some(load)) => may_change(kernel, load.looped, load.name.param()).map(|()| loops),
        (true, None) => Err(Error::usage(format!(
            "kernel `{}` has no loop that loads from global memory",
            kernel.shown()
        ))),
    }
}
