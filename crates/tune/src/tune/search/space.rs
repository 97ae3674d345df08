//! The search space: the plans tried by default.

use std::collections::HashSet;
use std::sync::Arc;

use super::remainder::{Alone, main_loads_beside};
use crate::analysis::uniform::Divergence;
use crate::error::Result;
use crate::ir::{Kernel, OpKind};
use crate::prefetch::plan::{
    CacheLevel, Distance, Layout, LoadName, Plan, Strategy, StrategyKind, TrialPolicy, Unroll,
};
use crate::prefetch::{self, Loads, PlanTarget};
use crate::tune::bench::Bench;
use crate::tune::search::{SearchSettings, derive_one, likely_of_remainders, main_loads, registers_left};
use crate::tune::subject::workload::Workload;
use crate::tune::threads;
use crate::tune::threads::shielded;

/// Distances of single-step plans.
pub(crate) const DISTANCES: [u32; 7] = [1, 2, 4, 6, 8, 12, 16];
/// Iterations in a group, alone and with prefetching.
pub const GROUPS: [u32; 4] = [2, 4, 8, 16];
/// Iterations in a group, and how far ahead, of the likely plans.
const LIKELY: [(u32, u32); 4] = [(4, 8), (8, 8), (8, 16), (16, 16)];
/// Distances of hints that work-items share.
pub(crate) const SHARED_HINTS: [u32; 2] = [4, 16];

/// Every plan of the default space for these loads: unrolling alone; every strategy that fetches values, in every
/// layout, at every distance; hints to each of the `levels`; and the rings that are filled a group at a time, one or
/// two groups ahead.
///
/// The loads are the main ones, not the indices that lead to them: a load that a plan does not name is carried as needed.
/// Several loads get the same strategy together, and each is tried alone with the fewer plans of `DISTANCES`' powers of two.
/// `levels` are the cache levels that the device distinguishes.
///
/// # Errors
/// There are more loads than a plan can name.
pub fn default_plans(loads: &[LoadName], levels: &[CacheLevel]) -> Result<Vec<Plan>> {
    let mut plans = Vec::new();
    for group in GROUPS {
        plans.push(Plan::none().unrolled(Unroll::by(group)?));
    }
    if loads.is_empty() {
        return Ok(plans);
    }
    for distance in DISTANCES {
        let distance = Distance::new(distance)?;
        for strategy in values_at(distance)
            .into_iter()
            .chain(hints_at(distance, levels, TrialPolicy::Alone))
        {
            plans.push(together(Plan::none(), loads, strategy)?);
        }
    }
    for group in GROUPS {
        for groups_ahead in [1, 2] {
            let distance = Distance::new(group * groups_ahead)?;
            for strategy in rings_at(distance) {
                plans.push(together(
                    Plan::none().unrolled(Unroll::by(group)?),
                    loads,
                    strategy,
                )?);
            }
        }
    }
    if loads.len() > 1 {
        for load in loads {
            for distance in DISTANCES
                .into_iter()
                .filter(|distance| distance.is_power_of_two())
            {
                let distance = Distance::new(distance)?;
                for strategy in rings_at(distance) {
                    plans.push(together(Plan::none(), std::slice::from_ref(load), strategy)?);
                }
            }
        }
    }
    Ok(plans)
}

/// The hints that a sub-group shares: joint ones to each of the `levels`, and bulk prefetches. They are legal only if a
/// sub-group's addresses are uniform or adjacent, so only legal ones are tried, and the others are not listed as refused.
///
/// # Errors
/// As for [`default_plans`].
pub fn shared_plans(loads: &[LoadName], levels: &[CacheLevel]) -> Result<Vec<Plan>> {
    let mut plans = Vec::new();
    if loads.is_empty() {
        return Ok(plans);
    }
    for distance in SHARED_HINTS {
        let distance = Distance::new(distance)?;
        for strategy in hints_at(distance, levels, TrialPolicy::WhereShared) {
            plans.push(together(Plan::none(), loads, strategy)?);
        }
    }
    Ok(plans)
}

/// The plans with this many registers of a work-item for the compiler, and that number alone; without a number, the plans as they
/// are.
///
/// A module that serves any launch does not say how many work-groups a core is to hold, and ptxas keeps to 32 registers where it
/// can. On an H100, where the launches left room for more, 14 kernels of `corpus/` were 1.46 times as fast in the median for the
/// number alone; of 40 kernels' fastest plans 10 gained over 3 %, the most 1.37 times (`results/registers-h100.txt`).
pub(crate) fn with_registers(plans: Vec<Plan>, registers: Option<u32>) -> Vec<Plan> {
    let Some(registers) = registers else {
        return plans;
    };
    let all = std::iter::once(Plan::none()).chain(plans);
    all.map(|plan| plan.with_registers(Some(registers))).collect()
}

/// At most this many registers make rings of values spill. On an H200, two kernels over sparse rows took 2.0 and 2.7 ms with
/// `registers:64` and a ring of 16, and 0.30 and 0.44 ms with the ring alone (`results/search-h200.txt`).
const TIGHT: u32 = 128;

/// The plans with this many registers and the likely ones without; where registers are tight, the likely ones with them and all
/// without.
fn in_both_ways(plans: Vec<Plan>, likely: Vec<Plan>, registers: Option<u32>) -> Vec<Plan> {
    let Some(most) = registers else {
        return plans;
    };
    let (limited, free) = match most <= TIGHT {
        true => (likely, plans),
        false => (plans, likely),
    };
    with_registers(limited, registers)
        .into_iter()
        .chain(free)
        .collect()
}

/// The likely plans with this many registers and without; where registers are tight, plans for loads only without.
fn likely_in_both_ways(likely: Vec<Plan>, registers: Option<u32>) -> Vec<Plan> {
    let Some(most) = registers else {
        return likely;
    };
    let limited = likely
        .iter()
        .filter(|plan| most > TIGHT || plan.loads().is_empty());
    let limited = with_registers(limited.cloned().collect(), registers);
    limited.into_iter().chain(likely).collect()
}

/// The few plans of the default space that win most often, for a quick answer: unrolling, the rings that are filled a
/// group at a time, single-step rings, and near hints.
///
/// # Errors
/// As for [`default_plans`].
pub fn likely_plans(loads: &[LoadName], levels: &[CacheLevel]) -> Result<Vec<Plan>> {
    let mut plans = Vec::new();
    // Short loops gain by two.
    for group in GROUPS {
        plans.push(Plan::none().unrolled(Unroll::by(group)?));
    }
    if loads.is_empty() {
        return Ok(plans);
    }
    for (group, ahead) in LIKELY {
        for strategy in rings_at(Distance::new(ahead)?) {
            plans.push(together(
                Plan::none().unrolled(Unroll::by(group)?),
                loads,
                strategy,
            )?);
        }
    }
    for distance in [4, 12] {
        for strategy in rings_at(Distance::new(distance)?) {
            plans.push(together(Plan::none(), loads, strategy)?);
        }
    }
    for strategy in hints_at(Distance::new(2)?, levels, TrialPolicy::Alone) {
        plans.push(together(Plan::none(), loads, strategy)?);
    }
    Ok(plans)
}

/// The likely plans of a kernel: [`likely_plans`] for the loads that matter, and the same counted in iterations of the
/// source where a compiler unrolled the loop.
///
/// An iteration of such a loop is several of the source's: a ring of four iterations is then one of sixteen, and may take more
/// shared memory or registers than there are. A load in the remainder loop is fetched as far ahead as that loop can go.
///
/// # Errors
/// As for [`default_plans`].
pub fn likely_plans_of(kernel: &Kernel, levels: &[CacheLevel]) -> Result<Vec<Plan>> {
    likely_plans_for(kernel, &main_loads(kernel), levels)
}

/// The same for loads that are known to matter in a launch.
pub(crate) fn likely_plans_for(
    kernel: &Kernel,
    loads: &[LoadName],
    levels: &[CacheLevel],
) -> Result<Vec<Plan>> {
    let mut plans = likely_plans(loads, levels)?;
    plans.extend(unrolled_plans(kernel, loads)?);
    let mut seen = HashSet::new();
    plans.retain(|plan| seen.insert(plan.clone()));
    Ok(plans)
}

/// Plans whose distances are the source's iterations, where a compiler unrolled; none elsewhere.
fn unrolled_plans(kernel: &Kernel, loads: &[LoadName]) -> Result<Vec<Plan>> {
    let candidates = prefetch::candidates(kernel);
    let named = |name: &LoadName| candidates.iter().find(|load| load.name == *name);
    // Of each load: how often it stands in its loop, and in the loop where it stands most often.
    let copies = |name: &LoadName| {
        let here = named(name)?;
        let everywhere = candidates.iter().filter(|other| other.id == here.id);
        let most = everywhere.map(|other| other.copies).max()?;
        Some((here.copies, most))
    };
    let copies: Vec<(u32, u32)> = loads.iter().map(|name| copies(name).unwrap_or((1, 1))).collect();
    let unrolled = copies.iter().map(|&(_, most)| most).max().unwrap_or(1);
    let mut plans = Vec::new();
    if unrolled < 2 {
        return Ok(plans);
    }
    for (group, ahead) in LIKELY.into_iter().chain([(1, 4), (1, 8), (1, 12), (2, 16)]) {
        let group = (group / unrolled).max(1);
        let start = match group {
            1 => Plan::none(),
            _ => Plan::none().unrolled(Unroll::by(group)?),
        };
        let distances = copies.iter().map(|&(here, most)| {
            let iterations = match here < most {
                // At most one iteration less than the unrolled loop does at once is left over.
                true => ahead.min(most / here),
                false => ahead / here,
            };
            Distance::new(iterations.max(1).next_multiple_of(group))
        });
        let distances: Vec<Distance> = distances.collect::<Result<_>>()?;
        for kind in rings() {
            let mut each = loads.iter().zip(&distances);
            let plan = each.try_fold(start.clone(), |plan: Plan, (load, &distance)| {
                plan.with(load.clone(), Strategy::new(kind, distance))
            });
            plans.push(plan?);
        }
    }
    Ok(plans)
}

/// Iterations of short loops inside others that are tried as part of those, where their number is not known; and the most where it is.
const INNER: [u32; 2] = [4, 8];
const MOST_INNER: u32 = 16;

/// Plans for loads of short loops inside others: as loads of the loop around, in their order, first, or one iteration of it ahead. Also
/// says whether the loops are known to be short.
pub(super) fn inner_plans(
    kernel: &Kernel,
    loads: &[LoadName],
    target: &PlanTarget,
) -> Result<(Vec<Plan>, bool)> {
    let plain = Loads::of(kernel);
    let all = Plan::none().with_inner(Some(MOST_INNER));
    let found = plain.inner_loops(&all, target).unwrap_or_default();
    let is_inside = |name: &&LoadName| {
        let mut own = plain.all().iter().filter(|load| load.name == **name);
        own.any(|load| found.iter().any(|inner| inner.label == load.looped))
    };
    let loads: Vec<LoadName> = loads.iter().filter(is_inside).cloned().collect();
    if loads.is_empty() {
        return Ok((Vec::new(), false));
    }
    let is_known = found.iter().all(|inner| inner.are_all);
    let longest = found.iter().map(|inner| inner.iterations).max();
    let counts = match longest.filter(|_| is_known) {
        Some(longest) => vec![longest],
        None => INNER.to_vec(),
    };
    let mut plans = Vec::new();
    for count in counts {
        let start = Plan::none().with_inner(Some(count));
        plans.extend([start.clone(), start.clone().unrolled(Unroll::Early)]);
        for strategy in rings_at(Distance::new(1)?) {
            plans.push(together(start.clone(), &loads, strategy)?);
        }
    }
    Ok((plans, is_known))
}

/// The plans without asynchronous copies of loads whose address is the same for all work-items of a sub-group.
///
/// One request brings such a load to all of them, but each would copy the word for itself. On an H200 that takes several times
/// as long as the plain kernel: `volatilities=rolling-async:8` in `option-pricing`, under `unroll:4`, runs at 0.34 of the plain
/// kernel's speed, and `unroll:4` alone at 1.24 (`results/accuracy-h200.json`).
pub fn without_shared_copies(kernel: &Kernel, plans: Vec<Plan>) -> Vec<Plan> {
    let divergence = Divergence::of(kernel);
    let mut uniform = HashSet::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Load { ptr, id, .. } = op.kind
            && !divergence.differs(ptr)
        {
            uniform.insert(id);
        }
    });
    let candidates = prefetch::candidates(kernel).into_iter();
    let names: HashSet<LoadName> = candidates
        .filter(|load| uniform.contains(&load.id))
        .map(|load| load.name)
        .collect();
    let copies = |plan: &Plan| {
        let mut loads = plan.loads().iter();
        loads.any(|(name, strategy)| strategy.descriptor().is_asynchronous && names.contains(name))
    };
    plans.into_iter().filter(|plan| !copies(plan)).collect()
}

/// Whether the slots of a plan lie as those of searched plans do: interleaved.
///
/// Of 130 launches of which an H200 measured all plans, none loses 0.3 % without the other two layouts, which are 28 % of the
/// plans; asynchronous copies of 16 bytes into them took seven times as long (`results/search-h200.txt`).
fn has_searched_layout(plan: &Plan) -> bool {
    let mut layouts = plan.loads().iter().filter_map(|(_, strategy)| strategy.layout());
    layouts.all(|layout| layout == Layout::Interleaved)
}

/// The strategies that do best where any does: first the one that most needs early requests.
fn rings() -> impl Iterator<Item = StrategyKind> {
    let kinds = StrategyKind::ALL.iter().copied().rev();
    kinds.filter(|kind| kind.descriptor().tried == TrialPolicy::Everywhere)
}

fn rings_at(distance: Distance) -> impl Iterator<Item = Strategy> {
    rings().map(move |kind| Strategy::new(kind, distance))
}

/// The strategies that fetch values, in every layout.
fn values_at(distance: Distance) -> Vec<Strategy> {
    let all = StrategyKind::ALL
        .iter()
        .map(|&kind| Strategy::new(kind, distance));
    let (slots, others): (Vec<Strategy>, Vec<Strategy>) = all
        .filter(|strategy| !strategy.is_hint())
        .partition(|strategy| strategy.layout().is_some());
    let in_layouts = Layout::ALL
        .into_iter()
        .flat_map(|layout| slots.iter().map(move |strategy| strategy.in_layout(layout)));
    others.into_iter().chain(in_layouts).collect()
}

/// The hints that are tried so, to each of the levels that they can go to.
fn hints_at(distance: Distance, levels: &[CacheLevel], tried: TrialPolicy) -> impl Iterator<Item = Strategy> {
    let all = StrategyKind::ALL
        .iter()
        .map(move |&kind| Strategy::new(kind, distance));
    all.filter(move |strategy| strategy.is_hint() && strategy.descriptor().tried == tried)
        .flat_map(move |strategy| {
            let reached = levels
                .iter()
                .filter(move |level| strategy.descriptor().takes.levels.contains(level));
            reached.map(move |&level| strategy.to_level(level))
        })
}

/// The plan with the same strategy for each of the loads.
fn together(start: Plan, loads: &[LoadName], strategy: Strategy) -> Result<Plan> {
    loads
        .iter()
        .try_fold(start, |plan, load| plan.with(load.clone(), strategy))
}

/// The plans of a search.
pub(in crate::tune) struct Space {
    /// Those to try.
    pub plans: Vec<Plan>,
    /// Those that are likely to help.
    pub likely: Vec<Plan>,
}

impl Space {
    /// Lists them.
    ///
    /// # Errors
    /// As for [`default_plans`].
    pub(crate) fn of(
        bench: &dyn Bench,
        workload: &Workload,
        kernel: &Arc<Kernel>,
        alone: &Alone,
        settings: &SearchSettings<'_>,
    ) -> Result<Space> {
        let loads = main_loads_beside(kernel, alone);
        let levels = bench.platform().levels();
        // Where there are more loads than a plan can name, plans that were asked for are tried all the same.
        let mut likely = likely_plans_for(kernel, &loads, &levels).unwrap_or_default();
        likely.extend(likely_of_remainders(bench, kernel, &loads).unwrap_or_default());
        let (inner, is_known) = inner_plans(kernel, &loads, &bench.platform().target_for(workload))?;
        if is_known {
            likely.extend(inner.iter().cloned());
        }
        let registers = registers_left(bench, workload);
        let plans = match settings.plans {
            Some(plans) => plans.to_vec(),
            // Iterations in groups, and registers, help where no load can be fetched early, too.
            None if loads.is_empty() => {
                let groups = match Loads::of(kernel).all() {
                    [] => Vec::new(),
                    _ => default_plans(&[], &levels)?,
                };
                in_both_ways(groups, Vec::new(), registers)
            }
            None => {
                let mut plans = default_plans(&loads, &levels)?;
                plans.retain(has_searched_layout);
                for plan in likely.iter().chain(&inner) {
                    if !plans.contains(plan) {
                        plans.push(plan.clone());
                    }
                }
                let plans = without_shared_copies(kernel, plans);
                let own = without_shared_copies(kernel, likely.clone());
                let mut plans = in_both_ways(plans, own, registers);
                let shared = shared_plans(&loads, &levels)?;
                let plain = Loads::of(kernel);
                let legal = threads::map(&shared, |plan| {
                    shielded(|| derive_one(bench, workload, &plain, plan)).is_ok()
                });
                plans.extend(
                    shared
                        .into_iter()
                        .zip(legal)
                        .filter(|(_, legal)| *legal)
                        .map(|(plan, _)| plan),
                );
                plans
            }
        };
        let plans: Vec<Plan> = plans.into_iter().filter(|plan| !plan.is_none()).collect();
        Ok(Space {
            plans: settings.shard.map_or(plans.clone(), |shard| shard.of(plans)),
            // A simulation takes seconds, and a simulated compiler spills less.
            likely: match bench.judge() {
                Some(_) => likely_in_both_ways(likely, registers),
                None => with_registers(likely, registers),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(names: &[&str]) -> Vec<LoadName> {
        names
            .iter()
            .map(|name| LoadName::of_param(*name).expect("a name"))
            .collect()
    }

    #[test]
    fn the_space_has_the_plans_that_win_and_none_twice() {
        let plans = default_plans(&loads(&["values"]), &[CacheLevel::L1, CacheLevel::L2]).expect("one load");
        let distinct: HashSet<&Plan> = plans.iter().collect();
        assert_eq!(distinct.len(), plans.len());
        assert_eq!(plans.len(), 4 + 7 * (2 + 9 + 2) + 16);
        for text in [
            "unroll:8,values=rolling-async:16",
            "unroll:16,values=rolling-registers:16",
            "values=rolling-async:4/padded",
            "values=cache:L2:1",
            "unroll:16",
        ] {
            assert!(plans.contains(&text.parse().expect("a plan")), "{text}");
        }
    }

    #[test]
    fn the_likely_plans_are_few_and_of_the_default_space() {
        let levels = [CacheLevel::L1, CacheLevel::L2];
        let all = default_plans(&loads(&["a"]), &levels).expect("one load");
        let likely = likely_plans(&loads(&["a"]), &levels).expect("one load");
        assert!(likely.len() < 20);
        for plan in &likely {
            assert!(all.contains(plan), "{plan}");
        }
    }

    #[test]
    fn shared_hints_go_to_each_level() {
        let plans = shared_plans(&loads(&["a"]), &[CacheLevel::L1, CacheLevel::L2]).expect("one load");
        let spelled: Vec<String> = plans.iter().map(ToString::to_string).collect();
        assert_eq!(
            spelled,
            [
                "a=joint:L1:4",
                "a=joint:L2:4",
                "a=bulk:L2:4",
                "a=joint:L1:16",
                "a=joint:L2:16",
                "a=bulk:L2:16"
            ]
        );
    }

    #[test]
    fn several_loads_are_tried_together_and_alone() {
        let plans = default_plans(&loads(&["a", "b"]), &[]).expect("two loads");
        for text in [
            "a=rolling-registers:4,b=rolling-registers:4",
            "a=rolling-registers:4",
            "b=rolling-async:16",
        ] {
            assert!(plans.contains(&text.parse().expect("a plan")), "{text}");
        }
        assert_eq!(
            default_plans(&[], &[CacheLevel::L1]).expect("no load").len(),
            GROUPS.len()
        );
    }
}
