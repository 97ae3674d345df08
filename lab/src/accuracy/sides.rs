//! The two sides of a case: each plan's time on a GPU, and in simulation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headstart::advise::{Bounds, loop_loads};
use headstart::device::CacheState;
use headstart::device::cuda::timing::TimingOptions;
use headstart::ir::Kernel;
use headstart::prefetch;
use headstart::tune::check::compare;
use headstart::tune::gpu::{GpuBench, Measured, Wanted};
use headstart::tune::{
    self, Bench, Launches, OpenClBench, OpenClMeasured, SimulatedBench, Subject, Timed, Workload, threads,
};
use headstart::{Error, Result};

use super::cases::Case;
use super::record::{Entry, Side};

/// The name of the kernel without a plan.
const PLAIN: &str = "none";

/// No launch of the list takes longer by far.
const LIMIT: Duration = Duration::from_secs(2);

/// The same on an OpenCL device, where a launch that takes longer cannot be stopped.
const LIMIT_BY_OPENCL: Duration = Duration::from_secs(20);

/// The kernels of a case.
struct Derived {
    workload: Workload,
    /// By their plans, the plain one first.
    kernels: Vec<(String, Arc<Kernel>)>,
    /// The plans that were refused, with the reasons.
    refused: Vec<(String, String)>,
}

fn derive(case: &Case) -> Result<Derived> {
    let workload = case.chosen()?.workload()?;
    // Both sides get the same kernels.
    let target = prefetch::PlanTarget::of(workload.group);
    let plain = prefetch::carry_out_wishes(&workload.kernel, &target)?;
    let plans = case.plans(&plain)?;
    let apply = |plan: &_| prefetch::apply(&plain, plan, &target);
    let (mut kernels, mut refused) = (Vec::new(), Vec::new());
    for (plan, applied) in plans.iter().zip(threads::map(&plans, apply)) {
        match applied {
            Ok(applied) => kernels.push((plan.to_string(), Arc::new(applied.kernel))),
            Err(error) => refused.push((plan.to_string(), error.to_string())),
        }
    }
    kernels.insert(0, (PLAIN.to_owned(), Arc::new(plain)));
    Ok(Derived {
        workload,
        kernels,
        refused,
    })
}

/// The contents of L2 when a launch starts, for either side.
pub const CACHE: CacheState = CacheState::Flushed;

/// Measures the plans of a case in turns with the plain kernel, none of the data in the L2 cache before a launch.
///
/// # Errors
/// The plain kernel does not run.
pub fn measured(bench: &mut GpuBench, case: &Case, rounds: u32) -> Result<Side> {
    let start = Instant::now();
    let derived = derive(case)?;
    let options = TimingOptions {
        rounds,
        cache: CACHE,
        limit: LIMIT,
        ..TimingOptions::default()
    };
    let all = bench.measure(
        &derived.workload,
        &derived.kernels,
        &mut || Ok(Wanted::Found),
        options,
    )?;
    let mut all = derived.kernels.iter().map(|(plan, _)| plan).zip(all);
    let (_, plain) = all.next().ok_or_else(|| Error::bug("nothing was measured"))?;
    let plain = plain?;
    let right = plain.found.clone().unwrap_or_default();
    let mut without = derived.refused;
    let mut plans = Vec::new();
    for (plan, measured) in all {
        let checked = measured.and_then(|measured| {
            compare(
                &derived.workload,
                &right,
                measured.found.as_deref().unwrap_or_default(),
            )?;
            Ok(measured)
        });
        match checked {
            Ok(measured) => plans.push(entry(plan, &measured, plain.timing.median_ns)),
            Err(error) => without.push((plan.clone(), error.to_string())),
        }
    }
    Ok(Side {
        plain_ns: plain.timing.median_ns,
        rounds: plain.timing.launches,
        wall_s: start.elapsed().as_secs_f64(),
        bounds: None,
        plans,
        without,
        left: Vec::new(),
        error: None,
    })
}

fn entry(plan: &str, measured: &Measured, plain_ns: f64) -> Entry {
    let timing = &measured.timing;
    Entry {
        plan: plan.to_owned(),
        ns: timing.median_ns,
        speedup: timing
            .paired
            .map_or(plain_ns / timing.median_ns, |paired| paired.median),
        between: timing.paired.map(|paired| (paired.least, paired.most)),
        registers: Some(measured.loaded.compiled.registers),
    }
}

/// Plans that are measured in turns with the plain kernel: each has outputs of its own on the device.
const AT_ONCE: usize = 15;

/// As many as the first of them: a slow device has a few times early.
const AT_FIRST: usize = 3;

/// As [`measured`], on an OpenCL device. It continues with the plans that `so_far` lacks, and stops when the time is over;
/// none if not even a few plans were measured until then.
///
/// # Errors
/// The plain kernel does not run.
pub fn measured_by_opencl(
    bench: &mut OpenClBench,
    case: &Case,
    rounds: u32,
    so_far: Option<Side>,
    in_time: &dyn Fn() -> bool,
) -> Result<Option<Side>> {
    let start = Instant::now();
    let derived = derive(case)?;
    let launches = Launches {
        warm_up: TimingOptions::default().warm_up,
        rounds,
        cache: CACHE,
        limit: LIMIT_BY_OPENCL,
    };
    let Some(((_, plain), others)) = derived.kernels.split_first() else {
        return Err(Error::bug("there is no plain kernel"));
    };
    let mut side = so_far.unwrap_or_else(|| Side {
        rounds,
        without: derived.refused,
        ..Side::default()
    });
    let (plans, without) = (&side.plans, &side.without);
    let is_known = |plan: &String| {
        plans.iter().any(|entry| entry.plan == *plan) || without.iter().any(|(other, _)| other == plan)
    };
    let mut left: Vec<&(String, Arc<Kernel>)> = others.iter().filter(|(plan, _)| !is_known(plan)).collect();
    let mut at_once = AT_FIRST;
    while !left.is_empty() {
        let batch = &left[..left.len().min(at_once)];
        let kernels: Vec<Arc<Kernel>> = std::iter::once(plain)
            .chain(batch.iter().map(|(_, kernel)| kernel))
            .map(Arc::clone)
            .collect();
        let Some(all) = bench.measure(&derived.workload, &kernels, launches, true, in_time)? else {
            break;
        };
        let mut all = all.into_iter();
        let plain = all.next().ok_or_else(|| Error::bug("nothing was measured"))??;
        if side.plans.is_empty() {
            side.plain_ns = plain.timing.median_ns;
        }
        for ((plan, _), measured) in batch.iter().zip(all) {
            let checked = measured.and_then(|measured| {
                compare(&derived.workload, &plain.found, &measured.found)?;
                Ok(measured)
            });
            match checked {
                Ok(OpenClMeasured { timing, .. }) => side.plans.push(Entry {
                    plan: plan.clone(),
                    ns: timing.median_ns,
                    speedup: timing
                        .paired
                        .map_or(plain.timing.median_ns / timing.median_ns, |paired| paired.median),
                    between: timing.paired.map(|paired| (paired.least, paired.most)),
                    registers: None,
                }),
                Err(error) => side.without.push((plan.clone(), error.to_string())),
            }
        }
        left.drain(..batch.len());
        at_once = AT_ONCE;
    }
    side.left = left.iter().map(|(plan, _)| plan.clone()).collect();
    side.wall_s += start.elapsed().as_secs_f64();
    Ok((side.plain_ns > 0.0).then_some(side))
}

/// Simulates the plans of a case.
///
/// # Errors
/// The plain kernel does not run.
pub fn simulated(bench: &SimulatedBench, case: &Case) -> Result<Side> {
    let start = Instant::now();
    let derived = derive(case)?;
    let bound = derived.workload.bind(bench.device())?;
    let times = threads::map(&derived.kernels, |(_, kernel)| bench.time(&bound, kernel));
    let mut all = derived.kernels.iter().map(|(plan, _)| plan).zip(times);
    let (_, plain) = all.next().ok_or_else(|| Error::bug("nothing was simulated"))?;
    let plain = plain?;
    let plain_ns = plain.time_ns;
    let bounds = derived
        .kernels
        .first()
        .and_then(|(_, kernel)| bounds_of(&plain, kernel));
    let mut without = derived.refused;
    let mut plans = Vec::new();
    for (plan, timed) in all {
        match timed {
            Ok(timed) => plans.push(Entry {
                plan: plan.clone(),
                ns: timed.time_ns,
                speedup: plain_ns / timed.time_ns,
                between: None,
                registers: None,
            }),
            Err(error) => without.push((plan.clone(), error.to_string())),
        }
    }
    Ok(Side {
        plain_ns,
        rounds: 0,
        wall_s: start.elapsed().as_secs_f64(),
        bounds,
        plans,
        without,
        left: Vec::new(),
        error: None,
    })
}

/// How fast the kernel of a case can get at most, where a simulated side of an earlier version does not tell.
///
/// # Errors
/// The plain kernel does not run.
pub fn bounds(bench: &SimulatedBench, case: &Case) -> Result<Option<Bounds>> {
    let workload = case.chosen()?.workload()?;
    let plain = tune::plain(bench, &workload)?;
    let timed = bench.time(&workload.bind(bench.device())?, &plain)?;
    Ok(bounds_of(&timed, &plain))
}

fn bounds_of(timed: &Timed, plain: &Kernel) -> Option<Bounds> {
    Bounds::of(&timed.evidence, timed.profile.as_ref(), &loop_loads(plain))
}
