//! What a search does on a device that judges plans itself, beside asking it: the first line, the checks of the plan that is to
//! be chosen on small launches, and the simulator's explanation.
//!
//! The device says what is right and how long it takes. The simulator refuses a plan that it sees go wrong, and nothing else: a
//! kernel that ran is right, whatever the simulator says of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Fault, Result};
use crate::ir::Kernel;
use crate::report::{Best, Checked, OnDevice, number};
use crate::tune::bench::{Bench, Judge, Timed};
use crate::tune::check::perturb::Perturbed;
use crate::tune::check::{AtFullSize, Checks};
use crate::tune::derived::Derived;
use crate::tune::progress::Progress;
use crate::tune::subject::Subject;
use crate::tune::subject::workload::{Bound, Workload};

/// The kernel as it is on a device that judges plans itself: its first result.
pub(crate) fn first(
    bench: &dyn Bench,
    bound: &Bound,
    kernel: &Arc<Kernel>,
    progress: &dyn Progress,
) -> Result<Timed> {
    let mut timed = bench.time_in_turns(bound, std::slice::from_ref(kernel))?;
    let (timed, _) = timed
        .pop()
        .ok_or_else(|| Error::bug("the plain kernel was not timed"))??;
    let time = number::duration(timed.time_ns);
    let at_full_size = bench.judge().and_then(Judge::at_full_size);
    let findings = at_full_size.map(|at| at.findings).unwrap_or_default();
    let bits = match findings.is_empty() {
        true => ", the same results in each launch",
        false => "",
    };
    progress.understood(&format!("as it is: {time}{bits}"));
    findings.iter().for_each(|finding| progress.understood(finding));
    Ok(timed)
}

/// Checks a plan that is to be chosen on small launches on the simulator: its loops at the numbers of iterations where derived
/// loops go wrong, and symbolically. What the simulator says of the kernel as it is refuses nothing, since it ran.
pub(crate) fn small_launches(
    subject: &dyn Subject,
    bench: &dyn Bench,
    kernel: &Arc<Kernel>,
    of_best: &Derived,
    checked: &mut Checked,
    remarks: &mut Vec<String>,
) -> Result<()> {
    let plans = std::iter::once(&of_best.plan);
    match Checks::with(subject, kernel, bench.device(), plans, AtFullSize::Nothing) {
        Ok(checks) => {
            checks.check_small(&of_best.plan, &of_best.kernel)?;
            checked.sizes = checks.sizes().collect();
            checked.symbolic_sizes = checks.symbolic_sizes().collect();
        }
        Err(error) => {
            let remark = format!(
                "On a small launch the simulator says of the kernel as it is: {}. No plan is refused for that.",
                error.unblamed()
            );
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
    }
    Ok(())
}

/// How long perturbed launches may be tried on the device where a search may take as long as it takes.
const PERTURBED: Duration = Duration::from_secs(3);

/// Checks a plan that is to be chosen on perturbed launches on the device, in what is left of the search.
pub(crate) fn on_device(
    device: &dyn Judge,
    workload: &Workload,
    perturbed: &Perturbed,
    of_best: &Derived,
    progress: &dyn Progress,
    remarks: &mut Vec<String>,
) -> Result<Option<OnDevice>> {
    let until = Instant::now() + progress.left().map_or(PERTURBED, |left| left.min(PERTURBED));
    let is_over = || Instant::now() >= until || progress.is_stopped();
    let plan = (&of_best.plan, &of_best.kernel);
    match perturbed.check_on_device(device, workload, plan, &is_over) {
        // That the device is lost says nothing of the plan.
        Err(error) if error.fault() == Fault::Device => {
            remarks.push(format!(
                "The plan was not checked on perturbed launches on the device: {}.",
                error.unblamed()
            ));
            Ok(None)
        }
        found => Ok(Some(found?).filter(|found| found.agreed + found.dropped > 0)),
    }
}

/// How long the simulator has to explain a time where a search may take as long as it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// The answer in a sentence, before anything explains it.
pub(crate) fn answer(best: &Best) -> String {
    match best.plan.is_none() {
        true => "no measured plan is faster".to_owned(),
        false => format!(
            "the answer: `{}`, {}, {}",
            best.plan,
            number::speedup(best.speedup),
            number::duration(best.time_ns)
        ),
    }
}

/// Explains the plain kernel's time, if the simulator can in this time: warnings about the launch.
pub(crate) fn explained(
    device: &dyn Judge,
    bound: &Bound,
    kernel: &Arc<Kernel>,
    baseline: &mut Timed,
    patience: Duration,
    remarks: &mut Vec<String>,
) -> Vec<String> {
    if patience.is_zero() {
        remarks.push(
            "Not explained: bytes moved, and where the time goes. No time was left for the simulator."
                .to_owned(),
        );
        return Vec::new();
    }
    let explanation = device.explain(bound, kernel, patience).unwrap_or_default();
    match &explanation.simulated {
        Some(simulated) => {
            baseline.explained_by(simulated);
            remarks.push("Bytes moved and stall shares come from the simulator.".to_owned());
        }
        None => remarks.push(format!(
            "Not explained: bytes moved, and where the time goes. The simulator did not say in {}.",
            number::duration(patience.as_secs_f64() * 1e9)
        )),
    }
    explanation.warnings
}
