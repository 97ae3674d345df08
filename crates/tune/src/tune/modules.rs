//! For programs that load PTX themselves: a module in, a faster module out.
//!
//! ```no_run
//! use headstart::tune::{self, LaunchFile, SimulatedBench};
//!
//! # fn main() -> headstart::Result<()> {
//! # let (ptx, model) = (String::new(), headstart::model::built_in("h200", &[])?);
//! let launch = LaunchFile::parse("groups = 132\ngroup = 128", "launch")?;
//! let bench = SimulatedBench::new(model);
//! let tuned = tune::tuned_module(&ptx, "app.ptx", Some("gather"), &launch, &bench)?;
//! // load `tuned.text` in place of `ptx`
//! # Ok(())
//! # }
//! ```

pub mod drop_in;
pub(super) mod edit;
pub(super) mod edits;
pub(super) mod exchanged;
mod flattened;
pub mod granted;
pub(super) mod loop_copies;
pub(super) mod piece;
pub(super) mod redirect;
pub(super) mod spirv;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::sync::Arc;

use self::drop_in::{DropIn, Note};
use self::granted::{Granted, granted};
use super::bench::Bench;
use super::search::tune;
use crate::error::{Error, Result};
use crate::front::ptx::import;
use crate::ir::Kernel;
use crate::prefetch::{self, Applied, Plan};
use crate::report::{Perturbed, Report, Trial, number};
use crate::tune::check::perturb::{self, Engine, Settings};
use crate::tune::check::residency;
use crate::tune::launch::file::LaunchFile;
use crate::tune::progress::Progress;
use crate::tune::subject::Subject;
use crate::tune::subject::file::FileSubject;
use crate::tune::subject::workload::Workload;

/// A module with a plan carried out on one of its entries.
#[derive(Clone, Debug)]
pub struct PlannedModule {
    /// The module's text, with a note at its top.
    pub text: String,
    /// The plan with the parents that it carries.
    pub plan: Plan,
    /// How the entry was rewritten.
    pub drop_in: DropIn,
    /// The requirements of every launch.
    pub granted: Vec<Granted>,
}

/// A module that was tuned.
#[derive(Clone, Debug)]
pub struct TunedModule {
    /// The module's text, with a note at its top; the entry is as it was where no plan is better.
    pub text: String,
    /// The trials and their outcomes.
    pub report: Report,
}

/// Carries out a plan on an entry of a module; `measured` is a sentence for the note. `entry` may be left out where the
/// module has only one.
///
/// The text is read again, and checked against the plain kernel on [perturbed launches](crate::tune::check::perturb) first.
///
/// # Errors
/// The entry cannot be read, the plan is not legal for it, the kernel cannot stand in the module, or it computes something
/// else than the plain one, which is a bug of ours. Or the kernel's work-groups wait for others, and NVIDIA's assembler
/// (`HEADSTART_PTXAS`) does not say that the plan takes no more registers and shared memory.
pub fn planned_module(
    text: &str,
    file: &str,
    entry: Option<&str>,
    launch: &LaunchFile,
    plan: &Plan,
    measured: Option<&str>,
) -> Result<PlannedModule> {
    planned_module_with(text, file, entry, launch, plan, measured, Settings::default())
}

/// The same with other launches.
///
/// # Errors
/// As for [`planned_module`].
pub(crate) fn planned_module_with(
    text: &str,
    file: &str,
    entry: Option<&str>,
    launch: &LaunchFile,
    plan: &Plan,
    measured: Option<&str>,
    settings: Settings,
) -> Result<PlannedModule> {
    let subject = FileSubject::of_module(import(text, file, entry, &launch.facts())?, launch.clone());
    let check = |applied: &Checked<'_>| applied.run(settings).map(Some);
    let module = planned(&subject, plan, measured, check)?;
    // No device says how many work-groups stay resident.
    if module
        .granted
        .iter()
        .any(|granted| matches!(granted, Granted::Residency { .. }))
    {
        let original = subject
            .original()
            .ok_or_else(|| Error::bug("a rewritten module came from none"))?;
        let planned = (module.text.as_str(), module.drop_in.added_shared_bytes);
        residency::takes_no_more(original, &Subject::workload(&subject)?.kernel, planned)?;
    }
    Ok(module)
}

/// The same for a plan that was [derived](super::derive) for a device; checked on no launch without settings, as the note then says.
///
/// # Errors
/// As for [`planned_module`].
#[doc(hidden)]
pub fn derived_module(
    text: &str,
    file: &str,
    entry: Option<&str>,
    launch: &LaunchFile,
    plan: &Plan,
    settings: Option<Settings>,
) -> Result<PlannedModule> {
    let subject = FileSubject::of_module(import(text, file, entry, &launch.facts())?, launch.clone());
    planned(&subject, plan, None, |applied: &Checked<'_>| {
        settings.map(|settings| applied.run(settings)).transpose()
    })
}

/// A planned kernel that is to be checked.
struct Checked<'a> {
    subject: &'a FileSubject,
    plain: &'a Arc<Kernel>,
    group: [u32; 3],
    plan: &'a Plan,
    derived: Arc<Kernel>,
}

impl Checked<'_> {
    fn run(&self, settings: Settings) -> Result<Perturbed> {
        let engine = Engine::of_no_device(self.group);
        perturb::check_written(
            self.subject,
            self.plain,
            engine,
            self.plan,
            &self.derived,
            settings,
        )
    }

    fn run_unless_known(&self, known: Option<&Perturbed>) -> Result<Perturbed> {
        let engine = Engine::of_no_device(self.group);
        perturb::check_unless_known(self.subject, self.plain, engine, self.plan, &self.derived, known)
    }
}

fn planned(
    subject: &FileSubject,
    plan: &Plan,
    measured: Option<&str>,
    check: impl Fn(&Checked<'_>) -> Result<Option<Perturbed>>,
) -> Result<PlannedModule> {
    let workload = super::Subject::workload(subject)?;
    let applied = prefetch::apply(&workload.kernel, plan, &target_for(workload.group))?;
    let checked = match plan.is_none() {
        true => None,
        false => check(&Checked {
            subject,
            plain: &workload.kernel,
            group: workload.group,
            plan: &applied.plan,
            derived: Arc::new(applied.kernel.clone()),
        })?,
    };
    place(subject, &workload, plan, applied, measured, checked.as_ref())
}

/// The requirements of every launch of a module's entry with a plan.
///
/// # Errors
/// The plan is not legal, or its kernel cannot stand in the module.
pub(super) fn granted_for(subject: &FileSubject, plan: &Plan) -> Result<Vec<Granted>> {
    let workload = super::Subject::workload(subject)?;
    let applied = prefetch::apply(&workload.kernel, plan, &target_for(workload.group))?;
    place(subject, &workload, plan, applied, None, None).map(|module| module.granted)
}

/// A module of one entry with a plan applied and not run: for tests of the written text.
#[cfg(test)]
pub(super) fn placed_module(text: &str, launch: &LaunchFile, plan: &Plan) -> Result<PlannedModule> {
    let subject = FileSubject::of_module(import(text, "k.ptx", None, &launch.facts())?, launch.clone());
    let workload = super::Subject::workload(&subject)?;
    let applied = prefetch::apply(&workload.kernel, plan, &target_for(workload.group))?;
    place(&subject, &workload, plan, applied, None, None)
}

pub(super) fn target_for(group: [u32; 3]) -> prefetch::PlanTarget {
    prefetch::PlanTarget::of(group)
}

/// Puts a planned kernel into its module.
fn place(
    subject: &FileSubject,
    workload: &Workload,
    plan: &Plan,
    applied: Applied,
    measured: Option<&str>,
    checked: Option<&Perturbed>,
) -> Result<PlannedModule> {
    let original = subject
        .original()
        .ok_or_else(|| Error::bug("a kernel that came from no module is put into one"))?;
    let placed = drop_in::placed(original, &workload.kernel, &applied.kernel)?;
    let facts = subject.launch().facts();
    let target = target_for(workload.group);
    let granted = granted(original, &facts, &placed, |facts| {
        drop_in::placed_under(original, facts, plan, &target)
    });
    let waits = residency::granted(&workload.kernel).filter(|_| !plan.is_none());
    let granted: Vec<Granted> = granted.into_iter().chain(waits).collect();
    let note = Note {
        plan: &applied.plan,
        measured,
        checked,
        granted: &granted,
    };
    Ok(PlannedModule {
        text: match plan.is_none() {
            true => placed.module(original),
            false => placed.with_note(original, &note),
        },
        plan: applied.plan,
        drop_in: placed,
        granted,
    })
}

/// Tunes an entry of a module on a device, and carries out the best plan.
///
/// # Errors
/// As for [`planned_module`] and [`tune`].
pub fn tuned_module(
    text: &str,
    file: &str,
    entry: Option<&str>,
    launch: &LaunchFile,
    bench: &dyn Bench,
) -> Result<TunedModule> {
    struct Quiet;
    impl Progress for Quiet {
        fn begin(&self, _plans: usize) {}
        fn done(&self, _trial: &Trial) {}
    }
    let imported = import(text, file, entry, &launch.facts())?;
    let subject = FileSubject::of_module(imported, launch.clone());
    let report = tune(&subject, bench, None, &Quiet)?;
    let text = best_module(text, file, entry, launch, &report)?;
    Ok(TunedModule { text, report })
}

/// The module with a report's best plan; with a note alone if there is none. If the plan gives another kernel here than the one
/// that the report's launches were run with, it is checked first.
///
/// # Errors
/// As for [`planned_module`].
pub fn best_module(
    text: &str,
    file: &str,
    entry: Option<&str>,
    launch: &LaunchFile,
    report: &Report,
) -> Result<String> {
    if report.best.plan.is_none() {
        let mut noted = String::new();
        let device = drop_in::commented(&report.device);
        let _ = writeln!(
            noted,
            "// Headstart {}: entry `{}` is as it was; on {device} {}.",
            env!("CARGO_PKG_VERSION"),
            report.kernel,
            report.why_as_it_was()
        );
        noted.push_str(text);
        return Ok(noted);
    }
    let subject = FileSubject::of_module(import(text, file, entry, &launch.facts())?, launch.clone());
    best_planned(&subject, report).map(|module| module.text)
}

/// The same for a subject, with the rewritten entry's assumptions.
///
/// # Errors
/// As for [`planned_module`].
pub fn best_planned(subject: &FileSubject, report: &Report) -> Result<PlannedModule> {
    let measured = format!(
        "{}: {} instead of {}, {:.2} times as fast.",
        report.device,
        number::duration(report.best.time_ns),
        number::duration(report.baseline_ns),
        report.best.speedup
    );
    // A report may be of another module or launch, or of an earlier version: its checks hold for the same kernel.
    let check = |applied: &Checked<'_>| applied.run_unless_known(report.perturbed.as_ref()).map(Some);
    planned(subject, &report.best.plan, Some(&measured), check)
}
