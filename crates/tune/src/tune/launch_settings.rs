//! Launch settings of Intel GPUs beside the plan: sub-group size, register file size, work-group size.
//!
//! Intel's notes say that they decide, and which of them are sensible:
//!
//! * *Sub-group size*: it may grow as long as the registers suffice for the wider kernel. The kernel's results must not depend
//!   on it, and its author must not have required one.
//! * *The large register file*: twice the registers for half the threads of a core. It is tried where the compiler makes use of
//!   more registers for the plain kernel or for one of the plans.
//! * *Work-group size*: from 4 threads to all threads of a core. Without barriers, shared memory and atomic operations it does
//!   not matter on a full device. It is changed only if the subject states that the work can be divided otherwise.
//!
//! Each change is timed alone with the plain kernel and with the plan that was chosen without it, so that their gains are distinguished
//! apart. Then changes of different kinds are joined, and the best ways are tried with the fastest plans of other kinds, for more
//! registers favour other plans. [`MOST`] bounds all of that.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Result;
use crate::back::spirv::uses_sub_groups;
use crate::error::Error;
use crate::ir::Kernel;
use crate::ir::effects::Access;
use crate::prefetch::Plan;
use crate::report::{LaunchSettings, Perturbed, Report, SettingsTrial, THRESHOLD, Ways};
use crate::tune::bench::{Bench, Choices, Pressure};
use crate::tune::check::compare;
use crate::tune::check::perturb::{self, Engine, Settings};
use crate::tune::progress::Progress;
use crate::tune::search::proposals::fastest_of_kinds;
use crate::tune::search::{derive, plain};
use crate::tune::subject::Subject;
use crate::tune::subject::workload::Workload;
use crate::tune::threads;
use crate::tune::threads::shielded;

/// How many kernels are timed, at most.
pub const MOST: usize = 40;
/// Plans of other kinds that are tried in a way.
const OTHERS: usize = 4;
/// Ways in which they are.
const TRIED_FURTHER: usize = 2;

/// The report of a search that has ended, with what else a launch decides.
///
/// # Errors
/// The plain kernel cannot be run, or the way that is best computes something else, which is a bug of ours.
pub fn beside_the_plan(
    subject: &dyn Subject,
    bench: &dyn Bench,
    report: Report,
    settings: Settings,
    progress: &dyn Progress,
) -> Result<Report> {
    if report.partial.is_some() || progress.is_stopped() {
        return Ok(report);
    }
    let Some(ways) = ways(subject, bench, &report, settings, progress)? else {
        return Ok(report);
    };
    let (ways, perturbed) = ways;
    let mut report = report.with_ways(ways, perturbed);
    report.taken_for_granted = subject.granted(&report.best.plan)?;
    Ok(report)
}

/// Times the settings to compile and launch a subject whose plans were tried; none for devices without a choice. Beside
/// them are the launches on which the best one's plan was checked.
fn ways(
    subject: &dyn Subject,
    bench: &dyn Bench,
    report: &Report,
    settings: Settings,
    progress: &dyn Progress,
) -> Result<Option<(Ways, Option<Perturbed>)>> {
    let Some(adjustable) = bench.adjustable() else {
        return Ok(None);
    };
    let choices = adjustable.choices();
    let workload = subject.workload()?;
    let kernel = plain(bench, &workload)?;
    let mut timing = Timing {
        bench,
        progress,
        large: adjustable.with_large_registers(),
        shapes: BTreeMap::new(),
        workload,
        baseline_ns: report.baseline_ns,
        found: Ways::default(),
    };
    let plan = &report.best.plan;
    let mut plans = vec![Plan::none()];
    plans.extend(Some(plan.clone()).filter(|plan| !plan.is_none()));
    let others = other_kinds(report, plan);

    let axes = Rules {
        subject,
        choices: &choices,
        kernel: &kernel,
        plans: &[plans.as_slice(), others.as_slice()].concat(),
    }
    .axes(&mut timing)?;
    timing.time(LaunchSettings::default(), &plans)?;
    let Some(usual) = timing.found.trials.first() else {
        if progress.is_stopped() {
            return Ok(None);
        }
        return Err(Error::bug("the plain kernel was not timed"));
    };
    // The following kernels are compared with the plain kernel of this batch: on a device the clock may have drifted since the
    // search.
    timing.baseline_ns = usual.time_ns;
    timing
        .found
        .trials
        .iter_mut()
        .for_each(|trial| trial.speedup = timing.baseline_ns / trial.time_ns);
    for way in axes.iter().flatten() {
        timing.time(*way, &plans)?;
    }
    for way in joined(&axes, &timing.found) {
        timing.time(way, &plans)?;
    }
    if !others.is_empty() {
        for way in fastest_ways(&timing.found) {
            timing.time(way, &others)?;
        }
    }
    let mut found = timing.found;
    found.best = choose(&found, report).cloned();
    let perturbed = match &found.best {
        None => None,
        Some(best) => {
            let way = Arranged::new(subject, bench, &timing.shapes, best.way)?;
            check(&way, bench, &best.plan, settings)?
        }
    };
    Ok(Some((found, perturbed)))
}

/// The plans of other kinds that were fastest.
fn other_kinds(report: &Report, best: &Plan) -> Vec<Plan> {
    let ran = report.trials.iter().filter_map(|trial| {
        let speedup = trial.measured()?.1;
        (!trial.plan.is_none() && trial.plan != *best).then(|| (trial.plan.clone(), speedup))
    });
    let ran: Vec<(Plan, f64)> = ran.collect();
    fastest_of_kinds(&ran, OTHERS)
}

/// Which changes are sensible.
struct Rules<'a> {
    subject: &'a dyn Subject,
    choices: &'a Choices,
    kernel: &'a Kernel,
    /// The plans that are tried.
    plans: &'a [Plan],
}

impl Rules<'_> {
    /// The changes by kind; why others are left out is noted.
    fn axes(&self, timing: &mut Timing<'_>) -> Result<[Vec<LaunchSettings>; 3]> {
        Ok([
            self.sub_groups(timing)?,
            self.registers(timing)?,
            self.groups(timing)?,
        ])
    }

    fn size(&self) -> u32 {
        self.kernel.sub_group_size.unwrap_or(self.choices.sub_group_size)
    }

    fn sub_groups(&self, timing: &mut Timing<'_>) -> Result<Vec<LaunchSettings>> {
        let reason = match (self.kernel.sub_group_size, uses_sub_groups(self.kernel)) {
            (Some(size), _) => Some(format!("other sub-group sizes: the kernel requires {size}")),
            (None, true) => Some("other sub-group sizes: the kernel's results depend on the size".to_owned()),
            (None, false) if self.choices.sub_group_sizes.len() < 2 => {
                Some("other sub-group sizes: the device has one".to_owned())
            }
            (None, false) => None,
        };
        if let Some(reason) = reason {
            timing.found.left_out.push(reason);
            return Ok(Vec::new());
        }
        let mut ways = Vec::new();
        for &size in self
            .choices
            .sub_group_sizes
            .iter()
            .filter(|&&size| size != self.size())
        {
            let way = LaunchSettings {
                sub_group: Some(size),
                ..LaunchSettings::default()
            };
            let wider = size > self.size();
            match timing.pressure(way, &Plan::none())? {
                Some(pressure) if wider && pressure.spilled_bytes > 0 => timing.found.left_out.push(format!(
                    "{way}: the kernel does not fit their registers, {} bytes of a work-item would be spilled",
                    pressure.spilled_bytes
                )),
                _ => ways.push(way),
            }
        }
        Ok(ways)
    }

    fn registers(&self, timing: &mut Timing<'_>) -> Result<Vec<LaunchSettings>> {
        let way = LaunchSettings {
            large_registers: true,
            ..LaunchSettings::default()
        };
        if let Err(error) = &timing.large {
            let reason = format!("{way}: {error}");
            timing.found.left_out.push(reason);
            return Ok(Vec::new());
        }
        let mut most = 0;
        for plan in self.plans {
            let [usual, large] = [LaunchSettings::default(), way].map(|way| timing.pressure(way, plan));
            match (usual?, large?) {
                (Some(usual), Some(large)) if usual != large => return Ok(vec![way]),
                (Some(usual), Some(_)) => most = most.max(usual.registers),
                // Nothing is known of the code, or the plan cannot be carried out.
                _ if timing
                    .pressure(LaunchSettings::default(), &Plan::none())?
                    .is_none() =>
                {
                    return Ok(vec![way]);
                }
                _ => {}
            }
        }
        timing.found.left_out.push(format!(
            "{way}: the kernel and its fastest plans take {most} registers of a work-item in either, and a core would hold half \
             as many sub-groups"
        ));
        Ok(Vec::new())
    }

    fn groups(&self, timing: &mut Timing<'_>) -> Result<Vec<LaunchSettings>> {
        let named = "work-groups of other sizes";
        let is_full = self.choices.threads.is_some_and(|threads| {
            let geometry = timing.workload.geometry();
            let sub_groups = geometry.groups * u64::from(geometry.group.div_ceil(self.size()));
            sub_groups >= u64::from(threads) * u64::from(self.choices.cores)
        });
        let shapes = match is_full && !needs_one_core(self.kernel) {
            true => Vec::new(),
            false => self.subject.regrouped()?,
        };
        let reason = match (shapes.is_empty(), self.kernel.group_size) {
            (false, _) => None,
            _ if is_full && !needs_one_core(self.kernel) => Some(format!(
                "{named}: without barriers, shared memory and atomic operations they do not matter where the device is full"
            )),
            (true, Some(size)) => {
                let size: u32 = size.iter().product();
                Some(format!("{named}: the kernel requires {size} work-items"))
            }
            (true, None) => Some(format!(
                "{named}: the kernel is not known to allow another division of the work"
            )),
        };
        if let Some(reason) = reason {
            timing.found.left_out.push(reason);
            return Ok(Vec::new());
        }
        let recommended = self
            .choices
            .threads
            .map(|threads| LEAST_THREADS * self.size()..=threads * self.size());
        let mut ways = Vec::new();
        let mut outside = Vec::new();
        for shape in shapes {
            let size = shape.geometry.group;
            if recommended.as_ref().is_some_and(|sizes| !sizes.contains(&size)) {
                outside.push(size.to_string());
                continue;
            }
            timing.shapes.insert(size, shape.workload);
            ways.push(LaunchSettings {
                group: Some(size),
                ..LaunchSettings::default()
            });
        }
        if let (false, Some(sizes)) = (outside.is_empty(), recommended) {
            timing.found.left_out.push(format!(
                "work-groups of {}: the notes recommend {} to {} work-items",
                outside.join(", "),
                sizes.start(),
                sizes.end()
            ));
        }
        Ok(ways)
    }
}

/// Threads that a work-group should at least have: "56 as the thread upper bound, 4 as the thread lower bound".
const LEAST_THREADS: u32 = 4;

/// Whether a work-group's work-items have something to do with one another, or with others at one address.
fn needs_one_core(kernel: &Kernel) -> bool {
    let mut needs = kernel.shared_bytes() > 0;
    kernel.body.walk(&mut |op| {
        let effects = op.kind.effects();
        needs |= effects.is_barrier() || effects.access == Access::Atomic;
    });
    needs
}

/// A timed kernel, and its settings.
struct Timing<'a> {
    bench: &'a dyn Bench,
    progress: &'a dyn Progress,
    /// The same device with the large register file, or why there is none.
    large: Result<Box<dyn Bench>>,
    /// The work in work-groups of other sizes.
    shapes: BTreeMap<u32, Workload>,
    workload: Workload,
    baseline_ns: f64,
    found: Ways,
}

impl Timing<'_> {
    fn bench(&self, way: LaunchSettings) -> &dyn Bench {
        match &self.large {
            Ok(large) if way.large_registers => large.as_ref(),
            _ => self.bench,
        }
    }

    fn workload(&self, way: LaunchSettings) -> Workload {
        let of_size = way.group.and_then(|size| self.shapes.get(&size));
        in_sub_groups(of_size.unwrap_or(&self.workload), way.sub_group)
    }

    /// The registers that a plan takes under a setting; none if unknown, or if the plan cannot be applied.
    fn pressure(&self, way: LaunchSettings, plan: &Plan) -> Result<Option<Pressure>> {
        let (bench, workload) = (self.bench(way), self.workload(way));
        let kernel = plain(bench, &workload)?;
        let Ok(derived) = shielded(|| derive(bench, &workload, &kernel, plan)) else {
            return Ok(None);
        };
        let bound = workload.bind(bench.device())?;
        match bench.adjustable() {
            Some(adjustable) => adjustable.pressure(&bound, &derived.kernel),
            None => Ok(None),
        }
    }

    /// Times plans under a setting, as many as there is room for. Those that cannot be run there are left out.
    fn time(&mut self, way: LaunchSettings, plans: &[Plan]) -> Result<()> {
        let known = |plan: &&Plan| self.found.speedup(way, plan).is_none();
        let room = MOST.saturating_sub(self.found.trials.len());
        let plans: Vec<&Plan> = plans.iter().filter(known).take(room).collect();
        if plans.is_empty() {
            return Ok(());
        }
        if self.progress.is_stopped() {
            self.found.left_out.push(format!("{way}: the time was over"));
            return Ok(());
        }
        let (bench, workload) = (self.bench(way), self.workload(way));
        let kernel = plain(bench, &workload)?;
        let derived: Vec<(&Plan, Arc<Kernel>)> = plans
            .iter()
            .filter_map(|plan| {
                let derived = shielded(|| derive(bench, &workload, &kernel, plan)).ok()?;
                Some((*plan, derived.kernel))
            })
            .collect();
        let bound = workload.bind(bench.device())?;
        self.progress.trying(true);
        let times: Vec<Result<f64>> = match bench.simulator() {
            Some(_) => threads::map(&derived, |(_, kernel)| {
                shielded(|| Ok(bench.time(&bound, kernel)?.time_ns))
            }),
            None => {
                // The plain kernel comes first: the others are compared with its results.
                let turns: Vec<Arc<Kernel>> = std::iter::once(kernel)
                    .chain(derived.iter().map(|(_, kernel)| Arc::clone(kernel)))
                    .collect();
                match bench.time_in_turns(&bound, &turns) {
                    Ok(timed) => {
                        let timed = timed.into_iter().skip(1);
                        timed.map(|timed| Ok(timed?.0.time_ns)).collect()
                    }
                    Err(error) => vec![Err(error)],
                }
            }
        };
        self.progress.trying(false);
        let is_over = self.progress.is_stopped();
        let mut refused = None;
        let mut trials = Vec::new();
        for ((plan, _), time) in derived.iter().zip(times) {
            match time {
                Ok(time_ns) => trials.push(SettingsTrial {
                    way,
                    plan: (*plan).clone(),
                    time_ns,
                    speedup: self.baseline_ns / time_ns,
                }),
                Err(error) if way.is_usual() && !is_over => return Err(error),
                Err(error) => refused = Some(error),
            }
        }
        if let (Some(error), true) = (refused, trials.is_empty()) {
            self.found.left_out.push(match is_over {
                true => format!("{way}: the time was over"),
                false => format!("{way}: {error}"),
            });
        }
        self.found.trials.extend(trials);
        Ok(())
    }
}

/// A workload whose kernel is compiled for sub-groups of a size.
fn in_sub_groups(workload: &Workload, size: Option<u32>) -> Workload {
    let Some(size) = size else {
        return workload.clone();
    };
    let mut kernel: Kernel = (*workload.kernel).clone();
    kernel.sub_group_size = Some(size);
    Workload {
        kernel: Arc::new(kernel),
        ..workload.clone()
    }
}

/// How fast a way is at its best.
fn reached(found: &Ways, way: LaunchSettings) -> f64 {
    let own = found.trials.iter().filter(|trial| trial.way == way);
    own.map(|trial| trial.speedup).fold(0.0, f64::max)
}

/// The best change of each kind joined with those of the others.
fn joined(axes: &[Vec<LaunchSettings>; 3], found: &Ways) -> Vec<LaunchSettings> {
    let best: Vec<LaunchSettings> = axes
        .iter()
        .filter_map(|ways| {
            let tried = ways.iter().copied().filter(|&way| reached(found, way) > 0.0);
            tried.max_by(|&one, &other| reached(found, one).total_cmp(&reached(found, other)))
        })
        .collect();
    let mut joined = Vec::new();
    for number in 1usize..1 << best.len() {
        let members = best
            .iter()
            .enumerate()
            .filter(|(place, _)| number & 1 << place != 0);
        let way = members.fold(LaunchSettings::default(), |way, (_, &other)| way.and(other));
        if way.changes() > 1 {
            joined.push(way);
        }
    }
    joined.sort_by_key(LaunchSettings::changes);
    joined
}

/// The fastest ways, the usual one left out: its plans were tried.
fn fastest_ways(found: &Ways) -> Vec<LaunchSettings> {
    let mut ways: Vec<LaunchSettings> = found.ways().into_iter().filter(|way| !way.is_usual()).collect();
    ways.sort_by(|&one, &other| reached(found, other).total_cmp(&reached(found, one)));
    ways.truncate(TRIED_FURTHER);
    ways
}

/// The way and the plan to use, the cheapest first: a way without a plan, the plan alone, both. A dearer answer, a further change
/// included, must be [`THRESHOLD`] times as fast. None where no way is part of the answer.
fn choose<'f>(found: &'f Ways, report: &Report) -> Option<&'f SettingsTrial> {
    let mut best: Option<&SettingsTrial> = None;
    let mut to_beat = 1.0;
    let consider = |plain: bool, to_beat: f64| {
        let of_kind = found
            .trials
            .iter()
            .filter(|trial| trial.plan.is_none() == plain && !trial.way.is_usual());
        let mut chosen: Option<&SettingsTrial> = None;
        for changes in 1..=3 {
            let own = of_kind.clone().filter(|trial| trial.way.changes() == changes);
            let fastest = own.max_by(|one, other| one.speedup.total_cmp(&other.speedup));
            let least = chosen.map_or(to_beat, |chosen| chosen.speedup) * THRESHOLD;
            if let Some(fastest) = fastest.filter(|fastest| fastest.speedup >= least) {
                chosen = Some(fastest);
            }
        }
        chosen
    };
    if let Some(way) = consider(true, to_beat) {
        (best, to_beat) = (Some(way), way.speedup);
    }
    let planned = found
        .speedup(LaunchSettings::default(), &report.best.plan)
        .filter(|_| !report.best.plan.is_none());
    if let Some(planned) = planned.filter(|&planned| planned >= to_beat * THRESHOLD) {
        (best, to_beat) = (None, planned);
    }
    consider(false, to_beat).or(best)
}

/// A subject in one of the ways.
struct Arranged<'a> {
    inner: &'a dyn Subject,
    workload: Workload,
    way: LaunchSettings,
}

impl<'a> Arranged<'a> {
    fn new(
        inner: &'a dyn Subject,
        bench: &dyn Bench,
        shapes: &BTreeMap<u32, Workload>,
        way: LaunchSettings,
    ) -> Result<Arranged<'a>> {
        let workload = match way.group.and_then(|size| shapes.get(&size)) {
            Some(shape) => shape.clone(),
            None => inner.workload()?,
        };
        let mut workload = in_sub_groups(&workload, way.sub_group);
        workload.kernel = plain(bench, &workload)?;
        Ok(Arranged { inner, workload, way })
    }
}

impl Subject for Arranged<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn workload(&self) -> Result<Workload> {
        Ok(self.workload.clone())
    }

    fn small(&self, iterations: u64) -> Result<Option<Workload>> {
        // Its small launches have work-groups of the usual size.
        if self.way.group.is_some() {
            return Ok(None);
        }
        let small = self.inner.small(iterations)?;
        Ok(small.map(|small| in_sub_groups(&small, self.way.sub_group)))
    }

    fn with_shared_bytes(&self, bytes: u32) -> Result<Option<Arc<Kernel>>> {
        let Some(kernel) = self.inner.with_shared_bytes(bytes)? else {
            return Ok(None);
        };
        let mut kernel: Kernel = (*kernel).clone();
        kernel.sub_group_size = self.way.sub_group.or(kernel.sub_group_size);
        Ok(Some(Arc::new(kernel)))
    }
}

/// Whether the plain kernel computes the same in sub-groups of another size, and the plan the same as the plain kernel there, and
/// on which launches the plan did.
fn check(
    arranged: &Arranged<'_>,
    bench: &dyn Bench,
    plan: &Plan,
    settings: Settings,
) -> Result<Option<Perturbed>> {
    let wrong = |error: Error| Error::bug(format!("`{plan}` with {} went wrong: {error}", arranged.way));
    if arranged.way.sub_group.is_some()
        && let (Some(usual), Some(other)) = (arranged.inner.small(ITERATIONS)?, arranged.small(ITERATIONS)?)
    {
        let device = bench.device();
        let run = |workload: &Workload| -> Result<Vec<Vec<u8>>> {
            Ok(workload.bind(device)?.run(device, &plain(bench, workload)?)?.1)
        };
        compare(&usual, &run(&usual)?, &run(&other)?).map_err(wrong)?;
    }
    if plan.is_none() {
        return Ok(None);
    }
    let workload = &arranged.workload;
    let derived = derive(bench, workload, &workload.kernel, plan)?;
    let engine = Engine::of(bench, workload);
    shielded(|| {
        perturb::check(
            arranged,
            &workload.kernel,
            engine,
            &derived.plan,
            &derived.kernel,
            settings,
        )
    })
    .map(Some)
    .map_err(wrong)
}

/// Iterations of the loop in the launch that is compared across sub-group sizes.
const ITERATIONS: u64 = 5;

#[cfg(test)]
mod tests;
