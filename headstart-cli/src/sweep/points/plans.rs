//! The plans of a sweep's points.

use headstart::prefetch::Plan;
use headstart::prefetch::plan::{Distance, LoadName};
use headstart::suggest::quoted;
use headstart::tune::{self, Bound, space};
use headstart::{Error, Result};

use super::super::axis::Varied;
use super::{Setting, SweepRequest, map, value};

/// The distance of strategies that are compared where none is given.
const DISTANCE: u32 = 4;

/// The plan whose distance or strategy is varied, or that runs everywhere; none where the plain kernel does.
pub(super) fn base_plan(
    request: &SweepRequest<'_>,
    setting: &Setting,
    bound: &Bound,
    notes: &mut Vec<String>,
) -> Result<Option<Plan>> {
    let varies = |varied| request.over.iter().any(|over| over.varied == varied);
    if request.plan.is_some() || !(varies(Varied::Distance) || varies(Varied::Strategy)) {
        return Ok(request.plan.clone());
    }
    let loads = main_loads(setting)?;
    let plans = space::default_plans(&loads, &setting.bench.platform().levels())?;
    let mut alone: Vec<Plan> = Vec::new();
    for plan in plans {
        let is_alone = plan.unroll().is_none() && plan.inner().is_none() && plan.loads().len() == loads.len();
        let mut strategies = plan.loads().iter().map(|(_, strategy)| strategy);
        if is_alone && strategies.all(|strategy| strategy.distance().get() == DISTANCE) {
            alone.push(plan);
        }
    }
    if varies(Varied::Strategy) {
        // Every strategy is tried, so any of them gives the loads.
        return Ok(alone.into_iter().next());
    }
    let times = map(setting.bench.simulator().is_some(), &alone, |plan| {
        let derived = tune::derive(setting.bench.as_ref(), &setting.workload, &setting.plain, plan).ok()?;
        Some(setting.bench.time(bound, &derived.kernel).ok()?.time_ns)
    });
    let ran = alone
        .iter()
        .zip(times)
        .filter_map(|(plan, time)| Some((plan, time?)));
    let fastest = ran.min_by(|(_, one), (_, other)| one.total_cmp(other));
    let (plan, _) = fastest.ok_or_else(|| {
        Error::usage("no single strategy applies to this kernel").accepted("`--plan PLAN`, the plan to vary")
    })?;
    notes.push(format!(
        "The plan is the fastest of {} with one strategy at distance {DISTANCE}, at the first point; `--plan` takes another.",
        alone.len()
    ));
    Ok(Some(plan.clone()))
}

/// The loads that plans are about.
fn main_loads(setting: &Setting) -> Result<Vec<LoadName>> {
    let plans = space::likely_plans_of(&setting.plain, &setting.bench.platform().levels())?;
    let loads = plans.iter().find(|plan| !plan.loads().is_empty());
    let loads = loads.map(|plan| plan.loads().iter().map(|(load, _)| load.clone()).collect());
    loads.ok_or_else(|| Error::input("this kernel has no load in a loop that could be fetched early"))
}

/// The plan of a point.
pub(super) fn plan_at(request: &SweepRequest<'_>, at: &[usize], base: Option<&Plan>) -> Result<Plan> {
    let value = |varied| value(request, at, varied);
    let mut plan = base.cloned().unwrap_or_default();
    if let Some(value) = value(Varied::Plan) {
        plan = value.parse()?;
    }
    if let Some(value) = value(Varied::Strategy) {
        plan = with_strategy(&plan, value)?;
    }
    if let Some(value) = value(Varied::Distance) {
        plan = with_distance(&plan, value)?;
    }
    Ok(plan)
}

/// The plan with another strategy for each of its loads, each at its distance.
fn with_strategy(plan: &Plan, strategy: &str) -> Result<Plan> {
    let start = plan.clone().without_loads();
    plan.loads().iter().try_fold(start, |plan, (load, old)| {
        let other = match strategy.split_once('/') {
            Some((name, layout)) => format!("{name}:{}/{layout}", old.distance()),
            None => format!("{strategy}:{}", old.distance()),
        };
        plan.with(load.clone(), other.parse()?)
    })
}

/// The plan with this distance for its first load; the others keep their lead over it.
fn with_distance(plan: &Plan, distance: &str) -> Result<Plan> {
    let distance: u32 = distance.parse().map_err(|_| {
        Error::usage(format!("invalid distance {}", quoted(distance))).accepted("a number from 1")
    })?;
    let distance = Distance::new(distance)?.get();
    let Some((_, first)) = plan.loads().first() else {
        return Err(Error::usage("the plan has no distance to vary")
            .accepted("`--plan` with a load, such as `values=rolling-async:4`"));
    };
    let first = first.distance().get();
    let start = plan.clone().without_loads();
    plan.loads().iter().try_fold(start, |plan, (load, strategy)| {
        let own = (strategy.distance().get() + distance)
            .saturating_sub(first)
            .max(1);
        plan.with(load.clone(), strategy.at_distance(Distance::new(own)?))
    })
}
