//! The launch settings that matter on an Intel GPU besides the plan: sub-group size, register file size, work-group size.
//!
//! Intel's notes say that they decide: the compiler picks the widest sub-groups whose values fit the registers, a thread can have
//! twice the registers at half the threads, and a work-group should have from 4 threads to as many as a core. Each is timed on the
//! model, one at a time, with the plain kernel and with the chosen plan, so that its gain is told apart from the plan's.

use std::fmt;
use std::sync::Arc;

use super::bench::Bench;
use super::choose::THRESHOLD;
use super::kinds::simulated::bench::SimulatedBench;
use super::search::{derive, plain};
use super::subject::Subject;
use super::workload::Workload;
use crate::Result;
use crate::back::spirv::uses_sub_groups;
use crate::device::CacheState;
use crate::ir::Kernel;
use crate::model::{DeviceModel, Registers, Vendor};
use crate::prefetch::Plan;
use crate::report::number::speedup;

/// A way to launch a kernel, and its times.
#[derive(Clone, Debug, PartialEq)]
pub struct Launched {
    /// What is different from the usual way, as people say it; none for the usual way.
    pub change: Option<String>,
    /// Nanoseconds of the plain kernel.
    pub plain_ns: f64,
    /// The same with the plan.
    pub planned_ns: Option<f64>,
    /// What the notes say against it.
    pub against: Option<String>,
}

/// The ways to launch a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Ways {
    /// The usual way first.
    pub ways: Vec<Launched>,
    /// What could not be chosen, and why.
    pub fixed: Vec<String>,
}

/// Times the ways to launch a subject on a model, with the plan that was chosen for it, if any; none for devices of other makers.
///
/// # Errors
/// The subject contradicts itself, or the plan is not legal for it.
pub fn ways(
    model: &DeviceModel,
    cache: CacheState,
    subject: &dyn Subject,
    plan: Option<&Plan>,
) -> Result<Option<Ways>> {
    let (Vendor::Intel, Registers::Fixed(registers)) = (model.vendor, &model.registers) else {
        return Ok(None);
    };
    let workload = subject.workload()?;
    let usual = SimulatedBench::new(model.clone()).with_cache(cache);
    let kernel = plain(&usual, &workload)?;
    let time = |bench: &SimulatedBench,
                workload: &Workload,
                sub_group: Option<u32>,
                plan: Option<&Plan>|
     -> Result<f64> {
        let mut kernel: Kernel = (*plain(bench, workload)?).clone();
        kernel.sub_group_size = sub_group.or(kernel.sub_group_size);
        let kernel = match plan {
            Some(plan) => derive(bench, workload, &kernel, plan)?.kernel,
            None => Arc::new(kernel),
        };
        bench.time_ns(&workload.bind(bench.device())?, &kernel)
    };
    let both =
        |bench: &SimulatedBench, workload: &Workload, sub_group: Option<u32>| -> Result<(f64, Option<f64>)> {
            let planned = plan
                .map(|plan| time(bench, workload, sub_group, Some(plan)))
                .transpose()?;
            Ok((time(bench, workload, sub_group, None)?, planned))
        };
    let size = kernel.sub_group_size.unwrap_or(*model.core.sub_group_size);
    let mut fixed = Vec::new();
    let mut ways = Vec::new();
    let mut add = |change: Option<String>, (plain_ns, planned_ns), against| {
        ways.push(Launched {
            change,
            plain_ns,
            planned_ns,
            against,
        });
    };
    add(None, both(&usual, &workload, None)?, None);
    match (kernel.sub_group_size, uses_sub_groups(&kernel)) {
        (Some(size), _) => fixed.push(format!("the kernel requires sub-groups of {size}")),
        (None, true) => fixed.push("what the kernel computes depends on the sub-group size".to_owned()),
        (None, false) => {
            let others = model.core.sub_group_sizes.iter().filter(|&&other| other != size);
            for &other in others {
                let timed = both(&usual, &workload, Some(other))?;
                add(Some(format!("sub-groups of {other}")), timed, None);
            }
        }
    }
    match registers.has_large_mode {
        true => {
            let large = SimulatedBench::new(model.clone())
                .with_cache(cache)
                .with_large_registers();
            let timed = both(&large, &workload, None)?;
            add(Some("the large register file".to_owned()), timed, None);
        }
        false => fixed.push("the device has one size of register files".to_owned()),
    }
    for shape in subject.regrouped()? {
        // A size that the device cannot launch is no candidate.
        let Ok(timed) = both(&usual, &shape.workload, None) else {
            continue;
        };
        let items = shape.workload.group.iter().product();
        let against = model
            .recommended_group(size)
            .filter(|recommended| !recommended.contains(&items))
            .map(|recommended| {
                format!(
                    "the notes recommend {} to {} work-items",
                    recommended.start(),
                    recommended.end()
                )
            });
        add(Some(format!("work-groups of {items}")), timed, against);
    }
    Ok(Some(Ways { ways, fixed }))
}

impl Ways {
    /// How many times as fast the best way is as the usual one, and which it is, for the plain kernel or with the plan; none where no
    /// other way gains what counts.
    pub fn best(&self, with_plan: bool) -> Option<(&Launched, f64)> {
        let time = |way: &Launched| match with_plan {
            true => way.planned_ns,
            false => Some(way.plain_ns),
        };
        let usual = self.ways.first().and_then(time)?;
        let faster = self.ways[1..]
            .iter()
            .filter_map(|way| Some((way, usual / time(way)?)));
        faster
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
            .filter(|(_, speedup)| *speedup >= THRESHOLD)
    }
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(usual) = self.ways.first() else {
            return Ok(());
        };
        writeln!(
            f,
            "\nSub-group size, register file and work-group size, speedup over the plain kernel"
        )?;
        let mut rows: Vec<[String; 4]> = Vec::new();
        for way in &self.ways {
            let times = |ns: f64| speedup(usual.plain_ns / ns);
            rows.push([
                way.change.clone().unwrap_or_else(|| "as launched".to_owned()),
                times(way.plain_ns),
                way.planned_ns.map_or(String::new(), times),
                way.against.clone().unwrap_or_default(),
            ]);
        }
        let widest = rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
        writeln!(f, "  {:widest$}  {:>8}  {:>9}", "", "plain", "with plan")?;
        for [name, plain, planned, against] in &rows {
            let line = format!("  {name:widest$}  {plain:>8}  {planned:>9}  {against}");
            writeln!(f, "{}", line.trim_end())?;
        }
        for fixed in &self.fixed {
            writeln!(f, "  Not varied: {fixed}.")?;
        }
        let given = |with_plan: bool| {
            self.best(with_plan).map_or("nothing".to_owned(), |(way, gain)| {
                format!(
                    "{} ({})",
                    speedup(gain),
                    way.change.as_deref().unwrap_or_default()
                )
            })
        };
        match usual.planned_ns.map(|ns| speedup(usual.plain_ns / ns)) {
            Some(gain) => writeln!(
                f,
                "  The plan gains {gain}. These settings add {} to it; without the plan they gain {}.",
                given(true),
                given(false)
            ),
            None => writeln!(f, "  These settings gain {}; no plan gains.", given(false)),
        }
    }
}
