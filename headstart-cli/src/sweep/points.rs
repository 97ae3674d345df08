//! The points of a sweep, and their results.
//!
//! A point has a setting, which is a device and a kernel on its data, and a plan. The plain kernel runs once a setting. A plan
//! is checked once for each kernel and its data, and timed on every device.

use std::collections::HashSet;
use std::sync::Arc;

use headstart::device::CacheState;
use headstart::ir::Kernel;
use headstart::prefetch::Plan;
use headstart::prefetch::plan::{Distance, LoadName};
use headstart::report::sweep::{Point, PointOutcome, Sweep};
use headstart::suggest::quoted;
use headstart::tune::perturb::{Engine, Perturbed, Settings, Thoroughness};
use headstart::tune::{self, Bench, Bound, Subject, Workload, space};
use headstart::{Error, Fault, Result};
use headstart_gallery::micro;
use rayon::prelude::*;

use super::axis::{MOST_POINTS, Over, Varied};
use crate::arguments::KernelOptions;
use crate::calibrate::meter::Meter;
use crate::device;
use crate::kernel::{self, Places};
use crate::output::explain;
use crate::progress::{Clock, Points};

/// The distance of strategies that are compared where none is given.
const DISTANCE: u32 = 4;

/// What a sweep is asked to run.
pub struct SweepRequest<'a> {
    /// The kernel and its data, where nothing is varied.
    pub kernel: &'a KernelOptions,
    /// The device, and the numbers of its model that differ.
    pub device: Option<&'a str>,
    /// As `--model` spells them.
    pub model: &'a [String],
    /// The contents of L2 before each timed launch.
    pub cache: CacheState,
    /// Operations after which a kernel counts as endless, unless it is the command's default.
    pub max_steps: Option<u64>,
    /// The plan whose distance or strategy is varied, or that runs everywhere.
    pub plan: Option<Plan>,
    /// The varied settings.
    pub over: Vec<Over>,
    /// How plans are checked.
    pub check: Settings,
}

/// A device and a kernel on its data.
struct Setting {
    bench: Box<dyn Bench>,
    subject: Box<dyn Subject>,
    /// Which kernel and data: settings that differ in the device alone share it.
    data: usize,
    workload: Workload,
    plain: Arc<Kernel>,
}

/// A setting with its data on the device and the plain kernel's time.
struct Ready {
    bound: Bound,
    plain_ns: f64,
    /// The number, if the kernel is a microbenchmark.
    number: Option<f64>,
}

/// Runs a sweep.
///
/// # Errors
/// The kernel, the device or a value is wrong, or no point can run.
pub fn run(request: &SweepRequest<'_>) -> Result<Sweep> {
    let mut clock = Clock::start();
    let combinations = combinations(&request.over)?;
    // The settings, and which of them each combination has.
    let mut keys: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    let mut datas: Vec<Vec<String>> = Vec::new();
    let mut of: Vec<usize> = Vec::with_capacity(combinations.len());
    for at in &combinations {
        let key = (
            spelled(request, at, Varied::Model),
            spelled(request, at, Varied::Parameter),
        );
        of.push(position(&mut keys, key));
    }
    let settings: Vec<Setting> = keys
        .iter()
        .map(|(model, parameters)| setting(request, model, parameters, &mut datas))
        .collect::<Result<_>>()?;
    let first = settings
        .first()
        .ok_or_else(|| Error::bug("a sweep without points"))?;
    let at_once = first.bench.times_at_once();
    clock.over("kernels read, devices opened");
    let progress = Points::new(combinations.len());

    // A kernel that goes wrong has no time. A run waits for a queue that takes the threads of `map`, so it is not part of it.
    let mut bound: Vec<Bound> = Vec::with_capacity(settings.len());
    for setting in &settings {
        bound.push(setting.workload.bind(setting.bench.device())?);
    }
    for position in first_of_each(&settings) {
        let setting = &settings[position];
        bound[position].run(setting.bench.device(), &setting.plain)?;
    }
    let places: Vec<usize> = (0..settings.len()).collect();
    let plain_ns = map(at_once, &places, |&place| {
        let Setting { bench, plain, .. } = &settings[place];
        Ok((
            bench.time(&bound[place], plain)?.time_ns,
            number_of(&settings[place])?,
        ))
    });
    let plain_ns: Vec<(f64, Option<f64>)> = plain_ns.into_iter().collect::<Result<_>>()?;
    let ready: Vec<Ready> = bound
        .into_iter()
        .zip(plain_ns)
        .map(|(bound, (plain_ns, number))| Ready {
            bound,
            plain_ns,
            number,
        })
        .collect();

    clock.over("plain kernels computed and timed");
    let mut notes = Vec::new();
    if request.cache != CacheState::default() {
        notes.push(format!("Each timed launch finds {}.", request.cache));
    }
    let base = base_plan(request, first, &ready[0], &mut notes)?;
    // A value that makes no plan is an error whatever the others are.
    let plans: Vec<Plan> = combinations
        .iter()
        .map(|at| plan_at(request, at, base.as_ref()))
        .collect::<Result<_>>()?;
    let perturbed: Vec<Perturbed> = map(true, &first_of_each(&settings), |&setting| {
        let distinct: HashSet<&Plan> = plans.iter().filter(|plan| !plan.is_none()).collect();
        let mut distinct: Vec<&Plan> = distinct.into_iter().collect();
        distinct.sort();
        let Setting {
            bench,
            subject,
            workload,
            plain,
            ..
        } = &settings[setting];
        let engine = Engine::of(bench.as_ref(), workload);
        Perturbed::new(subject.as_ref(), plain, engine, distinct, request.check)
    })
    .into_iter()
    .collect::<Result<_>>()?;
    clock.over("derived launches made");
    let positions: Vec<usize> = (0..combinations.len()).collect();
    let outcomes = map(at_once, &positions, |&point| {
        let setting = &settings[of[point]];
        let outcome = outcome(
            &plans[point],
            setting,
            &ready[of[point]],
            &perturbed[setting.data],
        );
        progress.done();
        outcome
    });
    clock.over("points timed");
    for (at, outcome) in combinations.iter().zip(&outcomes) {
        if let Ok((plan, PointOutcome::Refused { reason })) = outcome {
            let at = request.over.iter().zip(at);
            let at = at.map(|(over, &at)| format!("{}={}", over.axis.name, over.axis.values[at]));
            let at: Vec<String> = at.collect();
            explain(|| format!("{}, `{plan}`: refused: {reason}", at.join(" ")));
        }
    }
    let points = combinations.iter().zip(outcomes).map(|(at, outcome)| {
        let (plan, outcome) = outcome?;
        Ok(Point {
            at: at.clone(),
            plan,
            outcome,
        })
    });
    let points: Vec<Point> = points.collect::<Result<_>>()?;
    if let Some(reason) = nothing_ran(&points) {
        return Err(Error::usage(format!("no point of the sweep runs: {reason}")));
    }
    let varied: Vec<&str> = request.over.iter().map(|over| over.axis.name.as_str()).collect();
    let parameters = first.subject.parameters().into_iter();
    Ok(Sweep {
        kernel: first.subject.name().to_owned(),
        device: device::find_or_first(request.device, request.model)?.name(),
        parameters: parameters
            .filter(|(name, _)| !varied.contains(&name.as_str()))
            .collect(),
        plan: base.filter(|_| {
            let mut varied = request.over.iter().map(|over| over.varied);
            !varied.any(|varied| matches!(varied, Varied::Plan | Varied::Strategy))
        }),
        axes: request.over.iter().map(|over| over.axis.clone()).collect(),
        unit: ready[0]
            .number
            .and(micro::find(first.subject.name()))
            .map(|micro| micro.unit.to_owned()),
        points,
        notes,
    })
}

/// Every combination of the axes' positions, the last axis fastest.
fn combinations(over: &[Over]) -> Result<Vec<Vec<usize>>> {
    let count = over
        .iter()
        .try_fold(1usize, |product, over| {
            product.checked_mul(over.axis.values.len())
        })
        .filter(|&count| count <= MOST_POINTS)
        .ok_or_else(|| {
            Error::usage("the sweep has too many points").accepted(format!("at most {MOST_POINTS}"))
        })?;
    for (position, one) in over.iter().enumerate() {
        if over[..position]
            .iter()
            .any(|other| other.axis.name == one.axis.name)
        {
            return Err(Error::usage(format!("`--over {}` is given twice", one.axis.name))
                .accepted("all values in one `--over`"));
        }
    }
    Ok((0..count)
        .map(|mut rest| {
            let mut at = vec![0; over.len()];
            for (position, over) in over.iter().enumerate().rev() {
                at[position] = rest % over.axis.values.len();
                rest /= over.axis.values.len();
            }
            at
        })
        .collect())
}

/// The values of the axes that vary this, as `NAME=VALUE`.
fn spelled(request: &SweepRequest<'_>, at: &[usize], varied: Varied) -> Vec<String> {
    let axes = request.over.iter().zip(at);
    axes.filter(|(over, _)| over.varied == varied)
        .map(|(over, &at)| format!("{}={}", over.axis.name, over.axis.values[at]))
        .collect()
}

/// The position of an element, which is added if it is not there.
fn position<T: PartialEq>(all: &mut Vec<T>, element: T) -> usize {
    all.iter().position(|other| *other == element).unwrap_or_else(|| {
        all.push(element);
        all.len() - 1
    })
}

fn setting(
    request: &SweepRequest<'_>,
    model: &[String],
    parameters: &[String],
    datas: &mut Vec<Vec<String>>,
) -> Result<Setting> {
    let overrides: Vec<String> = request.model.iter().chain(model).cloned().collect();
    let bench = device::bench(request.device, &overrides, request.cache, request.max_steps)?;
    let mut options = request.kernel.clone();
    options.data.set.extend(parameters.iter().cloned());
    let subject = kernel::find(&options, Places::Filled)?;
    let workload = subject.workload()?;
    let plain = tune::plain(bench.as_ref(), &workload)?;
    Ok(Setting {
        bench,
        subject,
        data: position(datas, parameters.to_vec()),
        workload,
        plain,
    })
}

/// A microbenchmark's number on a model, without its own instructions' part.
fn number_of(setting: &Setting) -> Result<Option<f64>> {
    let (Some(micro), Some(model)) = (micro::find(setting.subject.name()), setting.bench.simulates()) else {
        return Ok(None);
    };
    let settings: Vec<String> = setting
        .subject
        .parameters()
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let (micro, settings) = micro::with(micro.kernel.name, &settings)?;
    Ok(Some(Meter::of_model(model.clone()).net(micro, &settings)?.0))
}

/// Maps in parallel where the device times several kernels at once.
fn map<T: Sync, R: Send>(at_once: bool, all: &[T], each: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
    match at_once {
        true => all.par_iter().map(each).collect(),
        false => all.iter().map(each).collect(),
    }
}

/// The plan whose distance or strategy is varied, or that runs everywhere; none where the plain kernel does.
fn base_plan(
    request: &SweepRequest<'_>,
    setting: &Setting,
    ready: &Ready,
    notes: &mut Vec<String>,
) -> Result<Option<Plan>> {
    let varies = |varied| request.over.iter().any(|over| over.varied == varied);
    if request.plan.is_some() || !(varies(Varied::Distance) || varies(Varied::Strategy)) {
        return Ok(request.plan.clone());
    }
    let loads = main_loads(setting)?;
    let plans = space::default_plans(&loads, &setting.bench.levels())?;
    let mut alone: Vec<Plan> = Vec::new();
    for plan in plans {
        let is_alone = plan.unroll().is_none() && plan.loads().len() == loads.len();
        let mut strategies = plan.loads().iter().map(|(_, strategy)| strategy);
        if is_alone && strategies.all(|strategy| strategy.distance().get() == DISTANCE) {
            alone.push(plan);
        }
    }
    if varies(Varied::Strategy) {
        // Every strategy is tried, so any of them gives the loads.
        return Ok(alone.into_iter().next());
    }
    let times = map(setting.bench.times_at_once(), &alone, |plan| {
        let derived = tune::derive(setting.bench.as_ref(), &setting.workload, &setting.plain, plan).ok()?;
        Some(setting.bench.time(&ready.bound, &derived.kernel).ok()?.time_ns)
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
    let plans = space::likely_plans_of(&setting.plain, &setting.bench.levels())?;
    let loads = plans.iter().find(|plan| !plan.loads().is_empty());
    let loads = loads.map(|plan| plan.loads().iter().map(|(load, _)| load.clone()).collect());
    loads.ok_or_else(|| Error::input("this kernel has no load in a loop that could be fetched early"))
}

/// The plan of a point.
fn plan_at(request: &SweepRequest<'_>, at: &[usize], base: Option<&Plan>) -> Result<Plan> {
    let value = |varied| {
        let mut axes = request.over.iter().zip(at);
        axes.find(|(over, _)| over.varied == varied)
            .map(|(over, &at)| over.axis.values[at].as_str())
    };
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
    let parts = plan.loads().iter();
    let parts = parts.map(|(load, old)| match strategy.split_once('/') {
        Some((name, layout)) => format!("{load}={name}:{}/{layout}", old.distance()),
        None => format!("{load}={strategy}:{}", old.distance()),
    });
    let unroll = plan.unroll().map(|unroll| unroll.to_string());
    let parts: Vec<String> = unroll.into_iter().chain(parts).collect();
    parts.join(",").parse()
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
    let start = match plan.unroll() {
        Some(unroll) => Plan::none().unrolled(unroll),
        None => Plan::none(),
    };
    plan.loads().iter().try_fold(start, |plan, (load, strategy)| {
        let own = (strategy.distance().get() + distance)
            .saturating_sub(first)
            .max(1);
        plan.with(load.clone(), strategy.at_distance(Distance::new(own)?))
    })
}

/// The completed plan of a point, and its result.
fn outcome(
    plan: &Plan,
    setting: &Setting,
    ready: &Ready,
    perturbed: &Perturbed,
) -> Result<(Plan, PointOutcome)> {
    let plain_ns = ready.plain_ns;
    if plan.is_none() {
        let ran = PointOutcome::Ok {
            time_ns: plain_ns,
            plain_ns,
            number: ready.number,
        };
        return Ok((plan.clone(), ran));
    }
    let bench = setting.bench.as_ref();
    let timed = || -> Result<(Plan, f64)> {
        let derived = tune::derive(bench, &setting.workload, &setting.plain, plan)?;
        perturbed.check(&derived.plan, &derived.kernel, Thoroughness::Quick)?;
        Ok((derived.plan, bench.time(&ready.bound, &derived.kernel)?.time_ns))
    };
    match timed() {
        Ok((plan, time_ns)) => Ok((
            plan,
            PointOutcome::Ok {
                time_ns,
                plain_ns,
                number: None,
            },
        )),
        Err(error) if error.fault() == Fault::Bug => Err(error),
        Err(error) => {
            let reason = error.to_string();
            Ok((plan.clone(), PointOutcome::Refused { reason }))
        }
    }
}

/// For each kernel on its data the first setting that has it.
fn first_of_each(settings: &[Setting]) -> Vec<usize> {
    let datas = settings
        .iter()
        .map(|setting| setting.data)
        .max()
        .map_or(0, |last| last + 1);
    (0..datas)
        .filter_map(|data| settings.iter().position(|setting| setting.data == data))
        .collect()
}

/// The reason of the first point, where none of them ran.
fn nothing_ran(points: &[Point]) -> Option<&str> {
    let mut reasons = points.iter().map(|point| match &point.outcome {
        PointOutcome::Ok { .. } => None,
        PointOutcome::Refused { reason } => Some(reason.as_str()),
    });
    let first = reasons.next()??;
    reasons.all(|reason| reason.is_some()).then_some(first)
}
