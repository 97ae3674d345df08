//! What a page shows of a search beyond its numbers: both kernels once more on the simulator.

use std::sync::Arc;

use super::search::{Bench, Looked, Timed, derive, plain};
use super::subject::Subject;
use crate::error::Result;
use crate::ir::{Kernel, print};
use crate::report::Report;
use crate::report::detail::{Detail, Hint};

/// The longest source that a page shows, in bytes.
const MAX_SOURCE: usize = 200_000;

/// The plain kernel and the plan of a report side by side; none where no device here can be looked into.
///
/// # Errors
/// The kernel cannot be had or run any more.
pub fn detail(subject: &dyn Subject, bench: &dyn Bench, report: &Report) -> Result<Option<Detail>> {
    let looked_into = match bench.times_at_once() {
        true => Some(bench),
        false => bench.predictor(),
    };
    let Some(model) = looked_into else { return Ok(None) };
    let workload = subject.workload()?;
    let kernel = plain(bench, &workload)?;
    let bound = workload.bind(model.device())?;
    let plan = &report.best.plan;
    let best = match plan.is_none() {
        true => None,
        false => Some(derive(bench, &workload, &kernel, plan)?.kernel),
    };
    let kernels: Vec<Arc<Kernel>> = std::iter::once(&kernel).chain(&best).cloned().collect();
    let looked = model.look(&bound, &kernels, kernels.len())?;
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
    let hints = bench.prefetches(Arc::as_ref(shown));
    detail.hints = hints
        .into_iter()
        .map(|hint| Hint {
            place: hint.place,
            asked: hint.asked,
            reached: hint.reached.map_or("nothing", |level| level.name()).to_owned(),
            by: hint.by,
        })
        .collect();
    detail.source = best.map(|kernel| print(&kernel)).unwrap_or_default();
    if detail.source.len() > MAX_SOURCE {
        let end = detail.source[..MAX_SOURCE].rfind('\n').unwrap_or(0);
        detail.source.truncate(end);
        detail
            .source
            .push_str("\n… and so on: `headstart emit` prints all of it\n");
    }
    Ok(Some(detail))
}
