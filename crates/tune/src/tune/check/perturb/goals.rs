//! Coverage goals of the launches before a plan counts as checked, and the goals missed.

use std::collections::BTreeSet;

use super::plain::Compiled;
use super::search::Launches;
use crate::device::sim::functional::{ControlEdgeKind, Covered, LoopSite};
use crate::ir::{Kernel, Label, OpKind};
use crate::prefetch::{self, Plan};
use crate::report;
use crate::tune::check::iterations;

/// The longest loop that a launch is looked for.
const MOST_ITERATIONS: u64 = 80;
/// How many places are named in one sentence.
const NAMED: usize = 3;

/// Whether a run covered anything that others did not.
pub(super) fn is_new(so_far: &Covered, run: &Covered) -> bool {
    let edge = run
        .edges
        .iter()
        .enumerate()
        .any(|(edge, &taken)| taken && !so_far.edges.get(edge).copied().unwrap_or(false));
    let trips = run.trips.iter().enumerate().any(|(number, trips)| {
        let known = so_far.trips.get(number);
        trips.0.iter().any(|&count| {
            // Of long loops one is like another.
            u64::from(count) <= MOST_ITERATIONS && !known.is_some_and(|known| known.0.contains(&count))
        })
    });
    edge || trips
}

/// The numbers of iterations at which any of these plans may go wrong.
pub(super) fn targets<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> Vec<u64> {
    let all: BTreeSet<u64> = plans
        .into_iter()
        .flat_map(iterations)
        .chain([0, 1, 2, 3])
        .collect();
    all.into_iter()
        .filter(|&count| count <= MOST_ITERATIONS)
        .collect()
}

/// How far ahead a plan goes: its distances and groups.
pub(super) fn distances(plan: &Plan) -> BTreeSet<u64> {
    let loads = plan
        .loads()
        .iter()
        .map(|(_, strategy)| u64::from(strategy.distance().get()));
    let group = plan
        .unroll()
        .and_then(|unroll| unroll.iterations())
        .map(u64::from);
    loads.chain(group).collect()
}

/// Why launches prove little about a plan; empty if they prove enough.
pub(super) fn left_out(plain: &Compiled, launches: &Launches, plan: &Plan) -> Vec<String> {
    let kernel = plain.kernel.kernel();
    let mut reasons = Vec::new();
    let (kept, dropped) = (launches.kept.len() as u64, launches.dropped.values().sum::<u64>());
    if kept == 0 {
        return vec!["the kernel as it is fails on every small launch that was made up".to_owned()];
    }
    if kept < dropped {
        let most = launches.dropped.iter().max_by_key(|(_, count)| **count);
        let most = most.map_or("", |(kind, _)| report::broken_rule(kind));
        reasons.push(format!(
            "on {dropped} of {} launches that were made up the kernel as it is fails itself, mostly by {most}",
            kept + dropped
        ));
    }
    reasons.extend(ways_left_out(plain, kernel, &launches.covered));
    for (site, trips) in plain.sites.loops.iter().zip(&launches.covered.trips) {
        if is_planned(kernel, plan, site) {
            reasons.extend(trips_left_out(kernel, site, &trips.0, plan));
        }
    }
    reasons
}

fn ways_left_out(plain: &Compiled, kernel: &Kernel, covered: &Covered) -> Option<String> {
    let left = plain
        .sites
        .edges
        .iter()
        .zip(&covered.edges)
        .filter(|(edge, taken)| !**taken && !edge.traps);
    let places: BTreeSet<String> = left
        .map(|(edge, _)| {
            let place = kernel.describe_place(edge.place);
            match edge.kind {
                ControlEdgeKind::Then | ControlEdgeKind::Otherwise => format!("the branch to {place}"),
                ControlEdgeKind::Exit => format!("the way out of a loop after {place}"),
            }
        })
        .collect();
    if places.is_empty() {
        return None;
    }
    let named: Vec<&str> = places.iter().map(String::as_str).take(NAMED).collect();
    let more = match places.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("no launch took {}{more}", named.join(", ")))
}

/// Whether a plan changes a loop: one of its loads is read there, or it is unrolled.
fn is_planned(kernel: &Kernel, plan: &Plan, site: &LoopSite) -> bool {
    if plan.loads().is_empty() {
        let is_changed = plan.unroll().is_some() || plan.inner().is_some();
        return is_changed && !site.loads.is_empty() && !site.is_outer;
    }
    let of_loop = |label: Label| {
        let mut is_it = false;
        kernel.body.walk(&mut |op| {
            is_it |= op.place == site.place
                && matches!(&op.kind, OpKind::Loop { label: own, .. } if *own == label);
        });
        is_it
    };
    prefetch::candidates(kernel).into_iter().any(|candidate| {
        // The remainder of an unrolled loop is planned only by its own name.
        let mut named = plan.loads().iter().filter(|(name, _)| match candidate.is_rest {
            true => *name == candidate.name,
            false => name.param() == candidate.name.param(),
        });
        named.next().is_some() && site.loads.contains(&candidate.id) && of_loop(candidate.looped)
    })
}

/// The numbers of iterations that a plan's loop never had.
fn trips_left_out(kernel: &Kernel, site: &LoopSite, trips: &BTreeSet<u32>, plan: &Plan) -> Option<String> {
    // A loop that always runs the same number of iterations, or none, in any launch, has no others.
    if trips.iter().filter(|&&count| count > 0).count() <= 1 {
        return None;
    }
    let distances = distances(plan);
    let mut wanted: BTreeSet<u64> = BTreeSet::from([0, 1]);
    for &distance in &distances {
        wanted.extend([distance.saturating_sub(1), distance, distance + 1]);
    }
    let most = distances.last().map_or(1, |distance| distance + 1);
    let missing: Vec<String> = wanted
        .into_iter()
        .filter(|&count| !trips.contains(&(count as u32)))
        .map(|count| count.to_string())
        .chain((!trips.iter().any(|&count| u64::from(count) > most)).then(|| format!("more than {most}")))
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "the loop at {} never had {} iterations",
            kernel.describe_place(site.place),
            missing.join(", ")
        )
    })
}
