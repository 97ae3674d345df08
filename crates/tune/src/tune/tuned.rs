//! The best form of a kernel at program start: searched once, then cached.
//!
//! ```no_run
//! use std::sync::Arc;
//! use headstart::device::{Fill, Pattern, model};
//! use headstart::ir::Type;
//! use headstart::tune::{ArgumentSpec, Compare, SimulatedBench, Workload, tuned};
//!
//! # fn main() -> headstart::Result<()> {
//! # let kernel = headstart::ir::read("", "kernel.hsir")?;
//! let device = SimulatedBench::new(model::built_in("h200", &[])?);
//! let input = |length| ArgumentSpec::Input {
//!     element: Type::F32,
//!     length,
//!     fill: Fill::Pattern(Pattern::Fractions { low: 1.0 }),
//! };
//! let workload = Workload::new(Arc::new(kernel), 132, 128).with("values", input(1 << 28))?;
//! let best = tuned(&workload, &device)?;
//! println!("{}: {:.2}x, {:?}", best.plan, best.speedup, best.from);
//! // emit or run `best.kernel` in place of the plain one
//! # Ok(())
//! # }
//! ```
//!
//! Answers are stored in a file (`HEADSTART_CACHE`, or `headstart/tuned.jsonl` in the user's cache folder), one line of JSON
//! each. The key is the hash of the kernel's IR with its alignments, the geometry, the *size class* of every parameter (its
//! length or value up to the next power of two), the device with its driver or model, and our version. A difference in any of
//! them starts a new search. Answers found elsewhere can be shipped: `headstart tune KERNEL --ship FILE` adds to such a file,
//! and [`Answers::with_shipped`] takes its text.
//!
//! An answer is a plan, not code: it is applied to the kernel at hand, by the same passes with the same legality checks. If it
//! is no longer legal, the search is repeated.
//!
//! The search runs the planned kernel on [perturbed launches](crate::tune::check::perturb), and the answer stores the hash of that kernel's
//! text with the outcome. At a later start the launches are not run again if the plan gives the same text: the check was of the
//! kernel, not of one launch. If the text differs (an answer of an earlier version, or a hand-written one), the kernel is run
//! on them before it is used, which takes some tenths of a second once. If it then differs from the plain kernel, the search is
//! repeated.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bench::Bench;
use super::search::{SearchSettings, derive, likely_for, plain, search, wishes};
use super::subject::Subject;
use crate::error::{Error, Result};
use crate::files;
use crate::ir::{Kernel, print};
use crate::prefetch::Plan;
use crate::report::{Perturbed, Report, Verdict};
use crate::suggest::quoted;
use crate::tune::check::perturb::{Engine, check_unless_known};
use crate::tune::hash::hash;
use crate::tune::progress::Progress;
use crate::tune::search::proposals::MEASURED;
use crate::tune::subject::workload::{ArgumentSpec, Workload};
use crate::tune::threads::shielded;

/// The largest file of answers that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The best form of a kernel.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The kernel with the plan carried out, or the plain one where none wins.
    pub kernel: Arc<Kernel>,
    /// The plan; `none` where none wins by enough.
    pub plan: Plan,
    /// The recommendation.
    pub verdict: Verdict,
    /// How many times faster than the plain kernel it was when it was found.
    pub speedup: f64,
    /// Where the answer is from.
    pub from: From,
    /// The launches on which the kernel was checked against the plain one; none for the plain one itself.
    pub perturbed: Option<Perturbed>,
    /// Why the answer could not be kept in the user's folder, where it could not: the next start will search again.
    pub not_kept: Option<Error>,
    /// The plans that the kernel's author wrote with `#[prefetch]`: the plain kernel has them, and the plan comes on top.
    pub written: Vec<String>,
}

impl Tuned {
    /// The plain kernel, for which nothing was looked up or searched.
    pub(super) fn not_searched(kernel: Kernel) -> Tuned {
        Tuned {
            written: wishes(&kernel),
            kernel: Arc::new(kernel),
            plan: Plan::none(),
            verdict: Verdict::LeaveIt,
            speedup: 1.0,
            from: From::NotSearched,
            perturbed: None,
            not_kept: None,
        }
    }
}

/// Where an answer is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A file that was shipped.
    Shipped,
    /// An earlier search on this machine.
    Remembered,
    /// A search that was made now.
    Searched,
    /// None: `headstart tune --bin` runs the program to record its launches, and this is the plain kernel.
    NotSearched,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct CachedAnswer {
    key: String,
    plan: Plan,
    verdict: Verdict,
    speedup: f64,
    /// The launches on which the planned kernel was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    perturbed: Option<Perturbed>,
}

/// The known answers, and where new ones are stored.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    shipped: HashMap<String, CachedAnswer>,
    file: Option<PathBuf>,
    /// Whether the file was named, not found among the user's folders: one that cannot be written is a mistake.
    is_named: bool,
}

impl Answers {
    /// Nothing is known, and nothing is kept.
    pub fn none() -> Answers {
        Answers::default()
    }

    /// Those in a file, which need not be there yet.
    pub fn in_file(path: &Path) -> Answers {
        Answers {
            file: Some(path.to_owned()),
            is_named: true,
            ..Answers::default()
        }
    }

    /// Those of this user: the file that `HEADSTART_CACHE` names, or `headstart/tuned.jsonl` in the folder for caches.
    /// Without such a folder nothing is kept.
    pub(crate) fn of_user() -> Answers {
        let of = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        if let Some(file) = of("HEADSTART_CACHE") {
            return Answers::in_file(&file);
        }
        let folder = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
        Answers {
            file: folder.map(|folder| folder.join("headstart/tuned.jsonl")),
            ..Answers::default()
        }
    }

    /// With the answers of a file that was made ahead of time; shipped answers take precedence over remembered ones.
    ///
    /// # Errors
    /// A line is no answer.
    pub fn with_shipped(mut self, text: &str) -> Result<Answers> {
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let answer: CachedAnswer = serde_json::from_str(line).map_err(|error| {
                Error::input(format!("not an answer of the tuner: {error}"))
                    .at(format!("line {}", number + 1))
                    .accepted("a file that `headstart tune KERNEL --ship FILE` writes")
            })?;
            self.shipped.insert(answer.key.clone(), answer);
        }
        Ok(self)
    }

    fn find(&self, key: &str) -> Option<(CachedAnswer, From)> {
        if let Some(answer) = self.shipped.get(key) {
            return Some((answer.clone(), From::Shipped));
        }
        let path = self.file.as_deref()?;
        // A line that was not finished, or that another version wrote, is none of ours.
        let text = files::bytes(path, MAX_BYTES).ok()?;
        let lines = text.split(|&byte| byte == b'\n').rev();
        let answers = lines.filter_map(|line| serde_json::from_slice::<CachedAnswer>(line).ok());
        let answer = answers.into_iter().find(|answer| answer.key == key)?;
        Some((answer, From::Remembered))
    }

    /// The file, for more lines.
    fn opened(&self) -> Result<Option<File>> {
        let Some(path) = &self.file else { return Ok(None) };
        let refused = |error: std::io::Error| {
            Error::usage(format!("answers of the tuner cannot be kept here: {error}"))
                .at(quoted(&path.to_string_lossy()))
                .accepted("a file that can be written, in `HEADSTART_CACHE` or where the program names it")
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(refused)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Some(file.map_err(refused)?))
    }

    fn keep(&self, answer: &CachedAnswer) -> Result<()> {
        let Some(mut file) = self.opened()? else {
            return Ok(());
        };
        let text = serde_json::to_string(answer)
            .map_err(|error| Error::bug(format!("an answer does not become JSON: {error}")))?;
        // One write a line, begun on a line of its own: a line that another process was killed at ends here.
        file.write_all(format!("\n{text}\n").as_bytes())
            .map_err(|error| Error::device(format!("the answer cannot be kept: {error}")))
    }

    /// Stores a search's result.
    ///
    /// # Errors
    /// The kernel cannot be had any more, or the file not be written.
    #[doc(hidden)]
    pub fn remember(&self, subject: &dyn Subject, bench: &dyn Bench, report: &Report) -> Result<()> {
        let workload = subject.workload()?;
        let kernel = plain(bench, &workload)?;
        self.keep(&answer(key(bench, &workload, &kernel), report))
    }
}

fn answer(key: String, report: &Report) -> CachedAnswer {
    CachedAnswer {
        key,
        plan: report.best.plan.clone(),
        verdict: report.verdict,
        speedup: report.best.speedup,
        perturbed: report.perturbed.clone().filter(|_| !report.best.plan.is_none()),
    }
}

/// The best form of a kernel on a device: remembered, or searched for now and remembered for the next time.
///
/// # Errors
/// The plain kernel cannot be run or goes wrong; a search is needed, and the file that was named for its answer cannot be written.
pub fn tuned(subject: &dyn Subject, bench: &dyn Bench) -> Result<Tuned> {
    tuned_with(subject, bench, &Answers::of_user())
}

/// The same with answers from elsewhere.
///
/// # Errors
/// As for [`tuned`].
pub fn tuned_with(subject: &dyn Subject, bench: &dyn Bench, answers: &Answers) -> Result<Tuned> {
    tuned_telling(subject, bench, answers, &())
}

/// The same with a listener for the search's progress.
///
/// # Errors
/// As for [`tuned`].
pub(crate) fn tuned_telling(
    subject: &dyn Subject,
    bench: &dyn Bench,
    answers: &Answers,
    progress: &dyn Progress,
) -> Result<Tuned> {
    let workload = subject.workload()?;
    let kernel = plain(bench, &workload)?;
    let key = key(bench, &workload, &kernel);
    let engine = || Engine::of(bench, &workload);
    // The kernel with a plan, and how it was checked.
    let carried_out = |answer: &CachedAnswer| -> Result<(Arc<Kernel>, Option<Perturbed>)> {
        if answer.plan.is_none() {
            return Ok((Arc::clone(&kernel), None));
        }
        let derived = derive(bench, &workload, &kernel, &answer.plan)?;
        let known = answer.perturbed.as_ref();
        let (plan, derived) = (&derived.plan, derived.kernel);
        let checked = shielded(|| check_unless_known(subject, &kernel, engine(), plan, &derived, known))?;
        Ok((derived, Some(checked)))
    };
    let tuned = |answer: CachedAnswer, (kernel, perturbed), from: From, not_kept: Option<Error>| Tuned {
        kernel,
        plan: answer.plan,
        verdict: answer.verdict,
        speedup: answer.speedup,
        from,
        perturbed,
        not_kept,
        written: wishes(&workload.kernel),
    };
    if let Some((mut answer, from)) = answers.find(&key)
        && let Ok(found) = carried_out(&answer)
    {
        let mut not_kept = None;
        // The checks are remembered for the next start.
        if answer.perturbed != found.1 {
            answer.perturbed.clone_from(&found.1);
            if from == From::Remembered {
                not_kept = answers.keep(&answer).err();
            }
        }
        return Ok(tuned(answer, found, from, not_kept));
    }
    if answers.is_named {
        answers.opened()?;
    }
    // A simulated device has no model to ask first which plans are worth their time.
    let likely = match bench.simulator() {
        Some(_) => Some(likely_for(&workload, &kernel, bench)?),
        None => None,
    };
    let asked = SearchSettings {
        plans: likely.as_deref(),
        measure: Some(MEASURED),
        ..SearchSettings::default()
    };
    let report = search(subject, bench, &asked, progress)?.report;
    let answer = answer(key, &report);
    let found = carried_out(&answer)?;
    let not_kept = answers.keep(&answer).err();
    Ok(tuned(answer, found, From::Searched, not_kept))
}

/// The key of an answer.
fn key(bench: &dyn Bench, workload: &Workload, plain: &Kernel) -> String {
    let classes: Vec<String> = workload.given.iter().map(size_class).collect();
    format!(
        "{} {} as {:?} x {:?} of {} on {}, headstart {}",
        plain.name,
        hash(&print(plain)),
        workload.groups,
        workload.group,
        hash(&classes.join(" ")),
        hash(&bench.platform().identity()),
        env!("CARGO_PKG_VERSION")
    )
}

/// A length or value up to the next power of two, with its type.
fn size_class(given: &ArgumentSpec) -> String {
    let bits = |value: u64| u64::BITS - value.leading_zeros();
    match given {
        ArgumentSpec::Scalar(ty, value) => format!("{}:{}", ty.name(), bits(*value)),
        ArgumentSpec::Input { element, length, .. } => format!("[{}:{}]", element.name(), bits(*length)),
        ArgumentSpec::Output { element, length, .. } => format!("[mut {}:{}]", element.name(), bits(*length)),
        ArgumentSpec::Part { of, .. } => format!("[in {of}]"),
    }
}
