//! Completing a plan: an early load needs its address early, so the loads that the address depends on (its parents) are
//! fetched even earlier.
//!
//! ```text
//! plan       values=rolling-async:8
//! completed  values=rolling-async:8,indices=rolling-registers:16
//! ```
//!
//! A parent that arrives one iteration before its child asks for it makes each iteration wait for the parent's latency, which the
//! child's distance was to cover: `gather` with a ring of 8 took 202 µs so on an H200, 65 µs with the indices a whole ring further
//! ahead (299 µs without a plan). So a parent leads its child by the child's own distance. A child that waits for its own value
//! each iteration (a hint, a store into a slot) gains nothing from that.

use std::collections::HashMap;

use super::loads::parents;
use super::plan::{Carried, Distance, Strategy, StrategyKind};
use crate::analysis::loops::{LoadSite, LoopSummary};
use crate::error::{Error, Result};
use crate::ir::{Kernel, LoadId};

/// The most iterations that a parent leads its child by: each costs a register.
const MOST_LEAD: u32 = 16;

/// Gives the parents that the plan does not name a strategy: registers, as far ahead as their children need.
///
/// # Errors
/// A parent that the plan names arrives too late for its child.
pub(super) fn complete(
    kernel: &Kernel,
    summary: &LoopSummary,
    group: u32,
    strategies: &mut HashMap<LoadId, Strategy>,
) -> Result<()> {
    // The parents that got a strategy here, and by how much each leads its child.
    let mut given: HashMap<LoadId, u32> = HashMap::new();
    // Children lie after their parents, so going backwards meets every child of a load before the load.
    for site in summary.loads.iter().rev() {
        let Some(&strategy) = strategies.get(&site.id) else {
            continue;
        };
        for parent in parents(summary, site.pointer, &site.conditions) {
            if parent == site.id || strategies.contains_key(&parent) {
                continue;
            }
            let lead = lead(strategy, given.get(&site.id), group);
            if let Some(needed) = needed_of_parent(kernel, site, strategy, parent, lead)? {
                strategies.insert(parent, needed);
                given.insert(parent, lead);
            }
        }
    }
    // A parent of several children must serve the one furthest ahead: raise its former distance.
    let mut raised = true;
    while raised {
        raised = false;
        for site in &summary.loads {
            let Some(&strategy) = strategies.get(&site.id) else {
                continue;
            };
            for parent in parents(summary, site.pointer, &site.conditions) {
                if parent == site.id || !given.contains_key(&parent) {
                    continue;
                }
                let lead = lead(strategy, given.get(&site.id), group);
                let Some(needed) = needed_of_parent(kernel, site, strategy, parent, lead)? else {
                    continue;
                };
                let rolling = needed.carried() == Carried::InRegisters;
                if let Some(own) = strategies.get_mut(&parent)
                    && rolling
                    && own.distance() < needed.distance()
                {
                    *own = needed;
                    raised = true;
                }
            }
        }
    }
    summary
        .loads
        .iter()
        .try_for_each(|site| in_time(kernel, summary, group, strategies, site))
}

/// Whether the parents of a load, at their final distances, are there when it needs them.
///
/// # Errors
/// One is not.
fn in_time(
    kernel: &Kernel,
    summary: &LoopSummary,
    group: u32,
    strategies: &HashMap<LoadId, Strategy>,
    site: &LoadSite,
) -> Result<()> {
    let Some(strategy) = strategies.get(&site.id) else {
        return Ok(());
    };
    let needed = strategy.distance().get();
    for parent in parents(summary, site.pointer, &site.conditions) {
        let Some(own) = strategies.get(&parent).filter(|_| parent != site.id) else {
            continue;
        };
        let least = match own.carried() {
            Carried::InRegisters => needed,
            Carried::InSlots => needed + group,
            _ => continue,
        };
        let ahead = own.distance().get();
        if ahead < least && !strategy.carried().is_batch() {
            let by_name = |id: LoadId| kernel.loads[id].name.clone();
            return Err(Error::usage(format!(
                "`{}` at distance {ahead} is not there yet when `{}` needs it {needed} ahead",
                by_name(parent),
                by_name(site.id),
            ))
            .at(kernel.describe_place(site.place))
            .accepted(format!("`{}` at distance {least} or more", by_name(parent))));
        }
    }
    Ok(())
}

/// By how many iterations a parent leads a child with this strategy, which itself leads its own child by `own` if it is one of
/// the parents that got a strategy here.
fn lead(child: Strategy, own: Option<&u32>, group: u32) -> u32 {
    let flies = match child.carried() {
        Carried::InRegisters => true,
        Carried::InSlots => child.descriptor().is_asynchronous,
        _ => false,
    };
    match own {
        Some(&own) => own,
        None if flies => (child.distance().get().min(MOST_LEAD) / group).max(1) * group,
        None => group,
    }
}

/// How a parent is carried for a child with this strategy; nothing if the child reads it itself.
///
/// # Errors
/// It would have to be further ahead than any load can be.
fn needed_of_parent(
    kernel: &Kernel,
    site: &LoadSite,
    child: Strategy,
    parent: LoadId,
    lead: u32,
) -> Result<Option<Strategy>> {
    Ok(match child.carried() {
        Carried::InBatches => Some(Strategy::new(StrategyKind::BatchedRegisters, child.distance())),
        // Such a batch reads its parents itself, all together.
        Carried::InBatchesOfSlots => None,
        _ => {
            let ahead = child.distance().get() + lead;
            let distance = Distance::new(ahead).map_err(|_| {
                let (own, other) = (&kernel.loads[site.id].name, &kernel.loads[parent].name);
                Error::usage(format!(
                    "`{other}` would have to be fetched {ahead} iterations ahead for `{own}`"
                ))
                .at(kernel.describe_place(site.place))
                .accepted(format!("at most {}", Distance::MAX))
            })?;
            Some(Strategy::new(StrategyKind::RollingRegisters, distance))
        }
    })
}
