//! For programs that load PTX themselves: a module in, a better module out.
//!
//! ```no_run
//! use headstart::tune::{self, LaunchFile, SimulatedBench};
//!
//! # fn main() -> headstart::Result<()> {
//! # let (ptx, model) = (String::new(), headstart::device::model::built_in("h200", &[])?);
//! let launch = LaunchFile::parse("groups = 132\ngroup = 128", "launch")?;
//! let bench = SimulatedBench::new(model);
//! let tuned = tune::tuned_module(&ptx, "app.ptx", Some("gather"), &launch, &bench)?;
//! // load `tuned.text` in place of `ptx`
//! # Ok(())
//! # }
//! ```

use std::fmt::Write;
use std::sync::Arc;

use super::drop_in::{DropIn, Note, drop_in};
use super::file_subject::FileSubject;
use super::granted::{Granted, granted};
use super::launch_file::LaunchFile;
use super::perturb::{self, Engine};
use super::search::{Bench, Progress, tune};
use crate::error::Result;
use crate::front::ptx::{Facts, import};
use crate::prefetch::{self, Plan};
use crate::report::{Perturbed, Report, Trial};

/// A module with a plan carried out on one of its entries.
#[derive(Clone, Debug)]
pub struct PlannedModule {
    /// The module's text, with a note at its top.
    pub text: String,
    /// The plan with the parents that it carries.
    pub plan: Plan,
    /// How the entry was rewritten.
    pub drop_in: DropIn,
    /// What every launch must fulfil.
    pub granted: Vec<Granted>,
}

/// A module that was tuned.
#[derive(Clone, Debug)]
pub struct TunedModule {
    /// The module's text, with a note at its top; the entry is as it was where no plan is better.
    pub text: String,
    /// What was tried, and what came of it.
    pub report: Report,
}

/// Carries out a plan on an entry of a module; `measured` is a sentence for the note. `entry` may be left out where the
/// module has only one.
///
/// The planned kernel is checked against the plain one on [perturbed launches](super::perturb) first.
///
/// # Errors
/// The entry cannot be read, the plan is not legal for it, the kernel cannot stand in the module, or it computes something
/// else than the plain one, which is a bug of ours.
pub fn planned_module(
    text: &str,
    file: &str,
    entry: Option<&str>,
    launch: &LaunchFile,
    plan: &Plan,
    measured: Option<&str>,
) -> Result<PlannedModule> {
    let subject = FileSubject::of_module(import(text, file, entry, &launch.facts())?, launch.clone());
    let workload = super::Subject::workload(&subject)?;
    let engine = Engine::of_no_device(workload.group);
    let applied = prefetch::apply(&workload.kernel, plan, &engine.target)?;
    let checked = match plan.is_none() {
        true => None,
        false => Some(perturb::check(
            &subject,
            &workload.kernel,
            engine,
            &applied.plan,
            &Arc::new(applied.kernel),
        )?),
    };
    placed_module(text, file, entry, launch, plan, measured, checked.as_ref())
}

/// Carries out a plan that was checked, or that nobody takes away.
pub(super) fn placed_module(
    text: &str,
    file: &str,
    entry: Option<&str>,
    launch: &LaunchFile,
    plan: &Plan,
    measured: Option<&str>,
    checked: Option<&Perturbed>,
) -> Result<PlannedModule> {
    let facts = launch.facts();
    let imported = import(text, file, entry, &facts)?;
    let subject = FileSubject::of_module(imported, launch.clone());
    let group = super::Subject::workload(&subject)?.group;
    let carried_out = |facts: &Facts| -> Result<_> {
        let imported = import(text, file, entry, facts)?;
        let target = prefetch::Target {
            group_size: Some(group),
            ..prefetch::Target::default()
        };
        let applied = prefetch::apply(&imported.kernel, plan, &target)?;
        let placed = drop_in(&imported.original, &applied.kernel)?;
        Ok((imported.original, applied.plan, placed))
    };
    let (original, plan, placed) = carried_out(&facts)?;
    let granted = granted(&original, &facts, &placed, |facts| {
        carried_out(facts).map(|(_, _, placed)| placed)
    });
    let note = Note {
        plan: &plan,
        measured,
        checked,
        granted: &granted,
    };
    Ok(PlannedModule {
        text: placed.with_note(&original, &note),
        plan,
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

/// The module with the plan that a report found best; with a note alone where that is none.
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
    let measured = format!(
        "{}: {:.3} ms instead of {:.3} ms, {:.2} times as fast.",
        report.device,
        report.best.time_ns * 1e-6,
        report.baseline_ns * 1e-6,
        report.best.speedup
    );
    if report.best.plan.is_none() {
        let mut noted = String::new();
        let device: String = report.device.chars().filter(|c| !c.is_control()).collect();
        let _ = writeln!(
            noted,
            "// Headstart {}: entry `{}` is as it was; no plan makes it faster on {device}.",
            env!("CARGO_PKG_VERSION"),
            report.kernel
        );
        noted.push_str(text);
        return Ok(noted);
    }
    let module = match &report.perturbed {
        Some(checked) => placed_module(
            text,
            file,
            entry,
            launch,
            &report.best.plan,
            Some(&measured),
            Some(checked),
        ),
        // A report of an earlier version does not say on what the plan was checked.
        None => planned_module(text, file, entry, launch, &report.best.plan, Some(&measured)),
    };
    module.map(|module| module.text)
}
