//! Details for a page: both kernels once more on the simulator.

use std::path::Path;
use std::sync::Arc;

use super::bench::{Bench, Looked, Timed};
use super::listing;
use super::search::{derive, plain};
use super::subject::Subject;
use crate::error::Result;
use crate::ir::Kernel;
use crate::prefetch::Plan;
use crate::report::Report;
use crate::report::detail::{Code, Detail, Hint};

/// Plans whose code is listed, beside the plain kernel.
const LISTED: usize = 3;

/// The plain kernel and the plan of a report side by side; none where no device here can be looked into.
///
/// # Errors
/// The kernel cannot be had or run any more.
pub fn detail(subject: &dyn Subject, bench: &dyn Bench, report: &Report) -> Result<Option<Detail>> {
    let workload = subject.workload()?;
    let kernel = plain(bench, &workload)?;
    let bound = workload.bind(bench.device())?;
    let plan = &report.best.plan;
    let best = match plan.is_none() {
        true => None,
        false => Some(derive(bench, &workload, &kernel, plan)?.kernel),
    };
    // The plain kernel, the plan, and the next best: these are looked into, and the first two watched.
    let mut kernels: Vec<(Plan, Arc<Kernel>)> = vec![(Plan::none(), Arc::clone(&kernel))];
    kernels.extend(best.iter().map(|best| (plan.clone(), Arc::clone(best))));
    let watched = kernels.len();
    for trial in report.fastest_first() {
        if kernels.len() > LISTED {
            break;
        }
        if kernels.iter().any(|(known, _)| *known == trial.plan) {
            continue;
        }
        // The plan that is advised could be derived; of another one, its code is just not shown.
        if let Ok(derived) = derive(bench, &workload, &kernel, &trial.plan) {
            kernels.push((trial.plan.clone(), derived.kernel));
        }
    }
    let derived: Vec<Arc<Kernel>> = kernels.iter().map(|(_, kernel)| Arc::clone(kernel)).collect();
    let looked = bench.look(&bound, &derived, watched)?;
    let Some(Looked {
        timed: Timed {
            profile: Some(profile),
            note,
            ..
        },
        ..
    }) = looked.first()
    else {
        return Ok(None);
    };
    let other = looked.get(1).and_then(|run| run.timed.profile.as_ref());
    let mut detail = Detail::of(profile, other);
    detail.note = note.clone();
    let names = ["none".to_owned(), plan.to_string()];
    detail.timelines = names
        .into_iter()
        .zip(looked.iter().map(|run| run.timeline.clone()))
        .filter_map(|(name, timeline)| Some((name, timeline?)))
        .collect();
    let shown = best.as_ref().unwrap_or(&kernel);
    let hints = bench.platform().prefetches(Arc::as_ref(shown));
    detail.hints = hints
        .into_iter()
        .map(|hint| Hint {
            place: hint.place,
            asked: hint.asked,
            reached: hint.reached.map_or("nothing", |level| level.name()).to_owned(),
            by: hint.by,
        })
        .collect();
    let trials = |plan: &Plan| report.trials.iter().find(|trial| trial.plan == *plan);
    for ((plan, kernel), looked) in kernels.iter().zip(&looked) {
        let measured = trials(plan).and_then(|trial| trial.measured());
        detail.codes.push(Code {
            plan: plan.to_string(),
            time_ns: measured.map_or(looked.timed.time_ns, |(time_ns, _)| time_ns),
            listings: listing::listings(kernel, looked),
        });
    }
    detail.sources = listing::sources(&derived, Path::new("."));
    Ok(Some(detail))
}
