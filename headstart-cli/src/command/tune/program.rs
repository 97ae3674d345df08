//! `headstart tune DIR` for a whole capture: its kernels by their share of the time, within one budget, in one report.

use std::path::Path;
use std::time::{Duration, Instant};

use headstart::capture::{Captured, CapturedKernel, CapturedProgram, Contraction, LaunchKind};
use headstart::prefetch::Plan;
use headstart::report::{Answer, KindReport, Outcome, ProgramReport, Report, number, page};
use headstart::tune::{self, Bench, SearchSettings, Subject};
use headstart::{Error, Fault, Result};

use super::placed::{Placed, place};
use super::{Asked, contracted, run_again};
use crate::arguments::Tune;
use crate::command::capture::{aligned, geometry};
use headstart_cli::output::{Destination, counted, json_line, print, tell};
use headstart_cli::progress::{Bar, Clock, was_interrupted};
use headstart_cli::terminal;

/// The least time of a search, however small a kernel's share is.
const LEAST: Duration = Duration::from_secs(1);
/// A plan that another kind of the kernel's launches has serves this one, too, if it gains so much of what it gains there.
const AS_GOOD: f64 = 0.9;

/// Tunes all kernels of a capture.
pub fn run(options: &Tune, folder: &Path) -> Result<()> {
    for (option, is_given) in [
        ("--log", options.log.is_some()),
        ("--ship", options.ship.is_some()),
        ("--output", options.output.is_some()),
        ("--diff", options.diff.is_some()),
        ("--set", !options.data.set.is_empty()),
        ("--trace", options.data.trace.is_some()),
        ("--launch", options.data.launch.is_some()),
    ] {
        if is_given {
            return Err(
                Error::usage(format!("`{option}` takes one kernel, not a whole capture"))
                    .accepted("a folder in it, such as `cap/KERNEL`"),
            );
        }
    }
    let json = Destination::asked("--json", options.json.as_deref())?;
    let html = Destination::asked("--html", options.html.as_deref())?;
    let asked = Asked::of(options)?;
    let (report, failure) = tuned(&asked, folder)?;
    if let Some(html) = &html {
        html.write(&terminal::page(&page::program(&report)))?;
    }
    if let Some(json) = &json {
        json.write(&json_line(&report)?)?;
    }
    let taken = [json.as_ref(), html.as_ref()].into_iter().flatten();
    if !taken.into_iter().any(|own| matches!(own, Destination::Standard)) {
        print(&text(&report))?;
        if report.share(|answer| answer.reason().is_none()) > 0.0 {
            print(&format!(
                "Next: headstart exec --with {} -- PROGRAM\n",
                folder.display()
            ))?;
        }
    }
    failure.map_or(Ok(()), Err)
}

/// The report on all kernels of a capture, whose better kernels then lie in it; and the first failure that is none of the program's.
///
/// # Errors
/// The capture cannot be read, or the device cannot be opened.
pub fn tuned(asked: &Asked<'_>, folder: &Path) -> Result<(ProgramReport, Option<Error>)> {
    let program = CapturedProgram::read(folder)?;
    let bench = asked.bench()?;
    let mut all: Vec<(&CapturedKernel, &LaunchKind)> = program.kinds().collect();
    all.sort_by(|(_, one), (_, other)| other.share.total_cmp(&one.share));
    let captured = all.iter().filter(|(_, kind)| kind.folder.is_some());
    let mut left: f64 = captured.clone().map(|(_, kind)| weight(kind)).sum();
    let (count, mut number) = (captured.count(), 0);
    let mut searches = Searches {
        asked,
        bench: bench.as_ref(),
        folder,
        until: asked.budget.map(|budget| Instant::now() + budget),
        failure: None,
    };
    let mut kinds = Vec::new();
    for &(kernel, kind) in &all {
        let (answer, report) = match &kind.folder {
            None => {
                let why = kind.not_captured.clone().unwrap_or_default();
                (Answer::NotCaptured { why }, None)
            }
            Some(_) if searches.are_over() => {
                number += 1;
                let why = format!("the time was over after {} of {count}", number - 1);
                (Answer::Open { why }, None)
            }
            Some(name) => {
                number += 1;
                tell(&format!(
                    "headstart: {number} of {count}: {name}, {} of the time of all kernels",
                    number::percent(kind.share)
                ));
                let part = weight(kind) / left;
                left -= weight(kind);
                searches.of(name, plan_of(&kinds, kernel), part)
            }
        };
        let new = of_kind(kernel, kind, answer, report);
        if new.folder.is_some() {
            tell(&format!("headstart: {}", sentence(&new)));
        }
        kinds.push(new);
    }
    searches.again(&all, &mut kinds);
    let device = bench.device().description().name.clone();
    Ok((
        ProgramReport::new(program.program, device, kinds),
        searches.failure,
    ))
}

/// The searches for a capture's kinds of launches, within one time.
struct Searches<'s> {
    asked: &'s Asked<'s>,
    bench: &'s dyn Bench,
    folder: &'s Path,
    until: Option<Instant>,
    /// The first failure that is none of the program's.
    failure: Option<Error>,
}

impl Searches<'_> {
    fn are_over(&self) -> bool {
        was_interrupted() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The answer for one kind of launches, in this part of the time that is left.
    fn of(&mut self, name: &str, before: Option<(Plan, f64)>, part: f64) -> (Answer, Option<Box<Report>>) {
        let time = self.until.map(|until| {
            let time = until.saturating_duration_since(Instant::now());
            time.mul_f64(part.clamp(0.0, 1.0)).max(LEAST)
        });
        match one(self.asked, self.bench, &self.folder.join(name), before, time) {
            Ok(found) => found,
            Err(error) => {
                let why = error.to_string();
                if !matches!(error.fault(), Fault::Input | Fault::Usage) && self.failure.is_none() {
                    self.failure = Some(error);
                }
                (Answer::Refused { why }, None)
            }
        }
    }

    /// Searches again where no answer was found, in the time that others have left over.
    fn again(&mut self, all: &[(&CapturedKernel, &LaunchKind)], kinds: &mut [KindReport]) {
        let is_open = |kind: &KindReport| matches!(kind.answer, Answer::Open { .. });
        let open: Vec<usize> = (0..kinds.len()).filter(|&at| is_open(&kinds[at])).collect();
        let mut left: f64 = open.iter().map(|&at| weight(all[at].1)).sum();
        for at in open {
            let (kernel, kind) = all[at];
            let Some(name) = kind
                .folder
                .as_ref()
                .filter(|_| self.until.is_some() && !self.are_over())
            else {
                return;
            };
            tell(&format!("headstart: {name} again, in the time that is left"));
            let part = weight(kind) / left;
            left -= weight(kind);
            let (answer, report) = self.of(name, plan_of(kinds, kernel), part);
            let new = of_kind(kernel, kind, answer, report);
            tell(&format!("headstart: {}", sentence(&new)));
            kinds[at] = new;
        }
    }
}

/// A kind's part of the time: its share, where times are known.
fn weight(kind: &LaunchKind) -> f64 {
    kind.share.max(1e-3)
}

/// The plan that another kind of the kernel's launches has, and its gain there.
fn plan_of(kinds: &[KindReport], kernel: &CapturedKernel) -> Option<(Plan, f64)> {
    let same = kinds
        .iter()
        .filter(|own| own.kernel == kernel.name && own.image == kernel.image);
    same.into_iter().find_map(|own| match &own.answer {
        Answer::Replaced { plan, speedup, .. } => Some((plan.clone(), *speedup)),
        _ => None,
    })
}

/// Tunes one captured launch. A plan that serves another kind of the kernel's launches is tried first: one plan for all is best.
fn one(
    asked: &Asked<'_>,
    bench: &dyn Bench,
    folder: &Path,
    before: Option<(Plan, f64)>,
    time: Option<Duration>,
) -> Result<(Answer, Option<Box<Report>>)> {
    let mut captured = Captured::read(folder)?;
    for line in run_again(&mut captured, bench, time)?.lines() {
        tell(line);
    }
    let subject: Box<dyn Subject> = Box::new(tune::captured_subject(captured.clone())?);
    // The time is for plans: to read the copy takes as long as it takes.
    let clock = Clock::start();
    let plans = asked.plans_for(subject.as_ref(), bench)?;
    if let (Some((plan, speedup)), None) = (before, &plans) {
        let one = [plan];
        let settings = SearchSettings {
            measure: None,
            unexplained: true,
            ..asked.settings(Some(&one))
        };
        let bar = bar(&clock, time);
        let report = tune::search(subject.as_ref(), bench, &settings, &bar)?.report;
        if !report.best.plan.is_none() && report.best.speedup >= AS_GOOD * speedup {
            return answered(asked, &captured, report);
        }
    }
    let bar = bar(&clock, time);
    let settings = SearchSettings {
        unexplained: true,
        ..asked.settings(plans.as_deref())
    };
    let report = tune::search(subject.as_ref(), bench, &settings, &bar)?.report;
    drop(bar);
    answered(asked, &captured, report)
}

/// A bar for a launch's part of the time.
fn bar(clock: &Clock, time: Option<Duration>) -> Bar {
    match time {
        Some(time) => Bar::about(clock, time),
        None => Bar::new(clock, None),
    }
}

fn answered(asked: &Asked<'_>, captured: &Captured, report: Report) -> Result<(Answer, Option<Box<Report>>)> {
    if let Some(lost) = report.partial.as_ref().and_then(|partial| partial.lost.clone()) {
        return Err(Error::device(format!("the device was lost: {lost}")));
    }
    let failed = report.trials.iter().find_map(|trial| match &trial.outcome {
        Outcome::Failed { reason, .. } => Some(format!("plan `{}` failed: {reason}", trial.plan)),
        Outcome::Ok { .. } | Outcome::Dropped { .. } | Outcome::Rejected { .. } => None,
    });
    if let Some(failed) = failed {
        return Err(Error::bug(failed));
    }
    let answer = match place(captured, &report, asked.gpu().as_ref())? {
        Placed::Better { rests_on, .. } => Answer::Replaced {
            plan: report.best.plan.clone(),
            speedup: report.best.speedup,
            rests_on,
        },
        Placed::Kept(why) => match captured.contraction {
            Contraction::Untold(_)
            | Contraction::NoneFits
            | Contraction::OtherAssembler
            | Contraction::TooLong => Answer::Refused {
                why: contracted(&captured.contraction).trim_end().to_owned(),
            },
            _ => Answer::Kept { why },
        },
        Placed::Open(why) => Answer::Open { why },
    };
    Ok((answer, Some(Box::new(report))))
}

fn of_kind(
    kernel: &CapturedKernel,
    kind: &LaunchKind,
    answer: Answer,
    report: Option<Box<Report>>,
) -> KindReport {
    KindReport {
        kernel: kernel.name.clone(),
        image: kernel.image.clone(),
        folder: kind.folder.clone(),
        launches: kind.launches,
        share: kind.share,
        mean_ns: kind.mean_ns(),
        groups: kind.groups,
        group: kind.group,
        shared_bytes: kind.shared_bytes,
        parameters: kind.parameters.clone(),
        answer,
        report,
    }
}

/// A kind and its answer, in a sentence.
fn sentence(kind: &KindReport) -> String {
    let name = kind.folder.as_deref().unwrap_or(&kind.kernel);
    match &kind.answer {
        Answer::Replaced { plan, speedup, .. } => {
            format!("{name}: {} as fast with {plan}", number::speedup(*speedup))
        }
        answer => format!(
            "{name}: {}: {}",
            answer.name(),
            answer.reason().unwrap_or_default()
        ),
    }
}

/// Kinds of launches without a copy that have rows of their own.
const MOST_ROWS: usize = 24;

/// The report for a terminal.
pub fn text(report: &ProgramReport) -> String {
    let heads = [
        "kernel", "launches", "share", "each", "geometry", "speedup", "answer",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    for kind in report.kinds.iter().take(MOST_ROWS) {
        let (speedup, answer) = match &kind.answer {
            Answer::Replaced { plan, speedup, .. } => (number::speedup(*speedup), plan.to_string()),
            answer => (
                "–".to_owned(),
                format!("{}: {}", answer.name(), answer.reason().unwrap_or_default()),
            ),
        };
        rows.push([
            kind.folder.clone().unwrap_or_else(|| kind.kernel.clone()),
            kind.launches.to_string(),
            number::percent(kind.share),
            kind.mean_ns.map_or("–".to_owned(), number::duration),
            format!("{} of {}", geometry(kind.groups), geometry(kind.group)),
            speedup,
            answer,
        ]);
    }
    let mut text = aligned(&rows, 1..4);
    if let Some(more) = report.kinds.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
        text.push_str(&format!("… and {}\n", counted(more, "other kind of launches")));
    }
    let share = |is_of: fn(&Answer) -> bool| number::percent(report.share(is_of));
    text.push_str(&format!(
        "Of the time of all kernels {} is in launches with a faster kernel, {} in launches that keep theirs, {} in launches without \
         an answer. All kernels together are {:.2} times as fast.\n",
        share(|answer| matches!(answer, Answer::Replaced { .. })),
        share(|answer| matches!(answer, Answer::Kept { .. })),
        share(|answer| {
            matches!(
                answer,
                Answer::Open { .. } | Answer::Refused { .. } | Answer::NotCaptured { .. }
            )
        }),
        report.speedup
    ));
    text
}
