//! Plans carried out on a launch's kernel, and those that are likely to help.

use std::sync::Arc;

use crate::error::Result;
use crate::ir::Kernel;
use crate::prefetch::plan::LoadName;
use crate::prefetch::{self, Loads, Plan};
use crate::tune::bench::Bench;
use crate::tune::check::residency;
use crate::tune::derived::Derived;
use crate::tune::modules::drop_in::{placed, said_of_registers};
use crate::tune::search::remainder::{self, Alone, main_loads_beside};
use crate::tune::search::space::{inner_plans, likely_plans_for, with_registers, without_shared_copies};
use crate::tune::subject::Subject;
use crate::tune::subject::workload::Workload;

/// The kernel with its author's wishes carried out: what every plan starts from, and what is compared with.
///
/// # Errors
/// A wish cannot be carried out.
pub fn plain(bench: &dyn Bench, workload: &Workload) -> Result<Arc<Kernel>> {
    Ok(Arc::new(prefetch::carry_out_wishes(
        &workload.kernel,
        &bench.platform().target_for(workload),
    )?))
}

/// A plain kernel with a plan carried out.
///
/// Where the kernel's work-groups wait for others, the plan leaves as many of them resident, if need be with fewer registers.
///
/// # Errors
/// The plan is not legal for the kernel, or leaves fewer work-groups resident that wait for others.
pub fn derive(bench: &dyn Bench, workload: &Workload, plain: &Kernel, plan: &Plan) -> Result<Derived> {
    derive_one(bench, workload, &Loads::of(plain), plan)
}

/// One of many plans.
pub(in crate::tune) fn derive_one(
    bench: &dyn Bench,
    workload: &Workload,
    plain: &Loads<'_>,
    plan: &Plan,
) -> Result<Derived> {
    let derive = |plan: &Plan| derive_alone(bench, workload, plain, plan);
    residency::kept(bench, workload, plain.kernel(), derive(plan)?, derive)
}

fn derive_alone(bench: &dyn Bench, workload: &Workload, plain: &Loads<'_>, plan: &Plan) -> Result<Derived> {
    let applied = plain.apply(plan, &bench.platform().target_for(workload))?;
    if let Some(original) = workload.original.as_ref().filter(|_| !plan.is_none()) {
        // A plan that cannot be written into its module is useless.
        placed(original, &workload.kernel, &applied.kernel)?;
    }
    Ok(Derived {
        kernel: Arc::new(applied.kernel),
        plan: applied.plan,
    })
}

/// The few plans that are likely to help a kernel on a device: those to measure where nothing predicts, or time is short.
///
/// # Errors
/// The kernel's data cannot be made, or a wish of its author cannot be carried out.
pub fn likely(subject: &dyn Subject, bench: &dyn Bench) -> Result<Vec<Plan>> {
    let workload = subject.workload()?;
    likely_for(&workload, &plain(bench, &workload)?, bench)
}

/// The same for a plain kernel and its launch.
pub(in crate::tune) fn likely_for(
    workload: &Workload,
    plain: &Arc<Kernel>,
    bench: &dyn Bench,
) -> Result<Vec<Plan>> {
    let loads = main_loads_beside(plain, &alone(bench, workload, plain));
    let mut plans = likely_plans_for(plain, &loads, &bench.platform().levels())?;
    plans.extend(likely_of_remainders(bench, plain, &loads)?);
    if let (inner, true) = inner_plans(plain, &loads, &bench.platform().target_for(workload))? {
        plans.extend(inner);
    }
    let plans = without_shared_copies(plain, plans);
    Ok(with_registers(plans, registers_left(bench, workload)))
}

/// The remainders that run without their main loops. A device that judges plans itself need not know.
pub(super) fn alone(bench: &dyn Bench, workload: &Workload, plain: &Arc<Kernel>) -> Alone {
    match bench.judge() {
        Some(_) => Alone::new(),
        None => remainder::alone(workload, plain, bench.device().description()),
    }
}

/// The likely plans of loops that may be all that a launch runs of a loop, beside those for its main loops' loads: for a device
/// that judges plans itself, where nothing has looked at the launch.
pub(in crate::tune) fn likely_of_remainders(
    bench: &dyn Bench,
    plain: &Kernel,
    main: &[LoadName],
) -> Result<Vec<Plan>> {
    let loads = main_loads_beside(plain, &remainder::every(plain));
    match bench.judge().is_some() && loads != main {
        true => likely_plans_for(plain, &loads, &bench.platform().levels()),
        false => Ok(Vec::new()),
    }
}

/// The registers of a work-item that a launch leaves to a user's module, which does not say so itself.
pub(in crate::tune) fn registers_left(bench: &dyn Bench, workload: &Workload) -> Option<u32> {
    let original = workload.original.as_ref()?;
    let cores = bench.device().description().cores;
    let left = workload.registers_left(cores, bench.platform().registers_per_core()?);
    left.filter(|_| said_of_registers(original).is_none())
}

/// The loads that plans of the default space name: those that can be fetched early and lead to no other such load.
pub fn main_loads(kernel: &Kernel) -> Vec<LoadName> {
    main_loads_beside(kernel, &Alone::new())
}
