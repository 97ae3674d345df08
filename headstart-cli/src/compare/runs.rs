//! Two kernels that are run and timed: two plans of one kernel, or two versions of it.

use std::sync::Arc;

use headstart::back::ptx;
use headstart::ir::Kernel;
use headstart::prefetch::Plan;
use headstart::suggest::quoted;
use headstart::tune::kinds::KnownDevice;
use headstart::tune::perturb::{self, Engine, Settings};
use headstart::tune::{self, Bench, Bound, Subject, Timed, Workload};
use headstart::{Error, Result, ir, names};

use super::code::Difference;
use super::{Comparison, Counted, Side};
use crate::arguments::{CodeForm, DataOptions, KernelOptions};
use crate::kernel::{self, Module, Places};

/// On which device two kernels are run, and in which form their code is compared.
pub struct On<'a> {
    /// The device.
    pub device: &'a dyn KnownDevice,
    /// The same, ready to run.
    pub bench: &'a dyn Bench,
    /// The further checks of plans.
    pub check: Settings,
    /// The form of the code; none for the one that suits both.
    pub form: Option<CodeForm>,
}

/// A kernel that ran.
struct Ran {
    timed: Timed,
    kernel: Arc<Kernel>,
    workload: Workload,
    outputs: Vec<Vec<u8>>,
}

/// Compares two plans of a kernel.
///
/// # Errors
/// A plan is not legal, the kernel goes wrong, or the device cannot run it.
pub fn plans(kernel: &KernelOptions, names: [&str; 2], on: &On<'_>) -> Result<Comparison> {
    let bench = on.bench;
    let mut plans = Vec::new();
    for (side, name) in ["A", "B"].into_iter().zip(names) {
        plans.push(name.parse::<Plan>().map_err(|error| error.about(side))?);
    }
    let subject = kernel::find(kernel, Places::Filled)?;
    let workload = subject.workload()?;
    kernel::tell_made_up(subject.as_ref());
    let plain = tune::plain(bench, &workload)?;
    let bound = workload.bind(bench.device())?;
    let mut derived = Vec::new();
    for (side, plan) in ["A", "B"].into_iter().zip(&plans) {
        let own = tune::derive(bench, &workload, &plain, plan).map_err(|error| error.about(side))?;
        checked(on, subject.as_ref(), &workload, &plain, plan, &own.kernel)?;
        let (_, outputs) = bound.run(bench.device(), &own.kernel)?;
        derived.push((own, outputs));
    }
    tune::check::compare(&workload, &derived[0].1, &derived[1].1)?;
    let kernels: Vec<Arc<Kernel>> = derived.iter().map(|(own, _)| Arc::clone(&own.kernel)).collect();
    let timed = match bench.simulator() {
        Some(_) => kernels
            .iter()
            .map(|kernel| bench.time(&bound, kernel))
            .collect::<Result<_>>()?,
        None => in_turns(bench, &bound, &plain, &kernels)?,
    };
    let mut timed = timed.into_iter();
    let mut ran = derived.into_iter().map(|(own, outputs)| -> Result<(Ran, Plan)> {
        let timed = timed.next().ok_or_else(|| Error::bug("a kernel was not timed"))?;
        let ran = Ran {
            timed,
            kernel: own.kernel,
            workload: workload.clone(),
            outputs,
        };
        Ok((ran, own.plan))
    });
    let mut next = |name: &str| -> Result<(Side, Ran)> {
        let (ran, plan) = ran.next().ok_or_else(|| Error::bug("one kernel is compared"))??;
        Ok((side(name, subject.as_ref(), &ran, plan), ran))
    };
    let (a, ran_a) = next(names[0])?;
    let (b, ran_b) = next(names[1])?;
    // Who brings PTX reads PTX.
    let usual = match Module::of(kernel)?.is_some() && on.device.ptx_target().is_some() {
        true => CodeForm::Ptx,
        false => CodeForm::Ir,
    };
    let code = code(on, on.form.unwrap_or(usual), [&ran_a, &ran_b])?;
    Ok(comparison(on, [a, b], [&ran_a, &ran_b], code))
}

/// Compares two versions of a kernel, each as it is.
///
/// # Errors
/// One cannot be read or goes wrong, or the device cannot run it.
pub fn versions(
    names: [&str; 2],
    data: &DataOptions,
    launch_b: Option<&std::path::Path>,
    on: &On<'_>,
) -> Result<Comparison> {
    let of = |name: &str, data: DataOptions| KernelOptions {
        kernel: name.to_owned(),
        data,
    };
    let data_b = DataOptions {
        launch: launch_b.map(Into::into).or_else(|| data.launch.clone()),
        ..data.clone()
    };
    let options = [of(names[0], data.clone()), of(names[1], data_b)];
    // Both are found before either runs.
    let [one, other] = &options;
    let subjects = [
        kernel::find(one, Places::Filled)?,
        kernel::find(other, Places::Filled)?,
    ];
    let mut sides = Vec::new();
    for (options, subject) in options.iter().zip(&subjects) {
        let ran = ran(subject.as_ref(), on)?;
        kernel::tell_made_up(subject.as_ref());
        sides.push((side(&options.kernel, subject.as_ref(), &ran, Plan::none()), ran));
    }
    let [(a, ran_a), (b, ran_b)] =
        <[_; 2]>::try_from(sides).map_err(|_| Error::bug("two kernels are compared"))?;
    let own = match on.form {
        None => entries(&options)?,
        Some(_) => None,
    };
    let code = match own {
        Some([a, b]) => Some(Difference::between(CodeForm::Ptx, &a, &b)),
        None => code(on, on.form.unwrap_or(CodeForm::Ir), [&ran_a, &ran_b])?,
    };
    let mut comparison = comparison(on, [a, b], [&ran_a, &ran_b], code);
    let (findings, warnings) = outputs(&ran_a, &ran_b);
    comparison.findings.extend(findings);
    comparison.warnings.extend(warnings);
    Ok(comparison)
}

/// Checks a kernel's own plans, runs it and times it.
fn ran(subject: &dyn Subject, on: &On<'_>) -> Result<Ran> {
    let workload = subject.workload()?;
    let kernel = tune::plain(on.bench, &workload)?;
    let engine = Engine::of(on.bench, &workload);
    perturb::check_wishes(subject, &kernel, engine, on.check)?;
    let bound = workload.bind(on.bench.device())?;
    let (_, outputs) = bound.run(on.bench.device(), &kernel)?;
    let timed = match on.bench.simulator() {
        Some(_) => on.bench.time(&bound, &kernel)?,
        None => {
            let timed = in_turns(on.bench, &bound, &kernel, &[])?;
            let first = timed.into_iter().next();
            first.ok_or_else(|| Error::bug("a kernel was not timed"))?
        }
    };
    Ok(Ran {
        timed,
        kernel,
        workload,
        outputs,
    })
}

/// A plan that is right for this launch may be wrong for the next.
fn checked(
    on: &On<'_>,
    subject: &dyn Subject,
    workload: &Workload,
    plain: &Arc<Kernel>,
    plan: &Plan,
    kernel: &Arc<Kernel>,
) -> Result<()> {
    let engine = Engine::of(on.bench, workload);
    match plan.is_none() {
        true => perturb::check_wishes(subject, plain, engine, on.check)?,
        false => Some(perturb::check(subject, plain, engine, plan, kernel, on.check)?),
    };
    Ok(())
}

/// Times kernels in turns with the plain one, whose time comes first if nothing else is asked for.
fn in_turns(
    bench: &dyn Bench,
    bound: &Bound,
    plain: &Arc<Kernel>,
    kernels: &[Arc<Kernel>],
) -> Result<Vec<Timed>> {
    let all: Vec<Arc<Kernel>> = std::iter::once(plain).chain(kernels).map(Arc::clone).collect();
    let timed = bench.time_in_turns(bound, &all)?;
    let timed: Vec<Timed> = timed
        .into_iter()
        .map(|timed| timed.map(|(timed, _)| timed))
        .collect::<Result<_>>()?;
    Ok(match kernels.is_empty() {
        true => timed,
        false => timed.into_iter().skip(1).collect(),
    })
}

fn side(name: &str, subject: &dyn Subject, ran: &Ran, plan: Plan) -> Side {
    let counted = ran.timed.counted.iter().map(|&(name, unit, value)| Counted {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
    });
    let set: Vec<String> = subject
        .parameters()
        .into_iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let set = match set.is_empty() {
        true => String::new(),
        false => format!("; {}", set.join(", ")),
    };
    Side {
        name: name.to_owned(),
        kernel: names::shown(subject.name()).into_owned(),
        launch: format!("{}{set}", ran.workload.geometry()),
        plan: plan.to_string(),
        time_ns: ran.timed.time_ns,
        interval_ns: ran.timed.interval_ns,
        counted: counted.collect(),
    }
}

fn comparison(on: &On<'_>, [a, b]: [Side; 2], ran: [&Ran; 2], code: Option<Difference>) -> Comparison {
    let mut notes = vec![ran[0].timed.note.clone()];
    if ran[1].timed.note != ran[0].timed.note {
        notes = vec![
            format!("A: {}", ran[0].timed.note),
            format!("B: {}", ran[1].timed.note),
        ];
    }
    Comparison {
        a,
        b,
        device: on.device.name(),
        warnings: Vec::new(),
        findings: Vec::new(),
        code,
        notes,
    }
}

/// The differences in a form of the code that both kernels have.
fn code(on: &On<'_>, form: CodeForm, ran: [&Ran; 2]) -> Result<Option<Difference>> {
    let text = |ran: &Ran| -> Result<String> {
        let kernel = &ran.kernel;
        match form {
            CodeForm::Ir | CodeForm::None => Ok(ir::print(kernel)),
            CodeForm::Ptx => {
                if let Some(original) = &ran.workload.original {
                    return Ok(tune::in_place(original, &ran.workload, kernel)?.text);
                }
                let target = on.device.ptx_target().ok_or_else(|| {
                    Error::device(format!("{} does not run PTX", on.device.name()))
                        .accepted("`--code ir`, or an NVIDIA device")
                })?;
                let how = ptx::Options {
                    group: Some(ran.workload.group),
                    groups_per_core: on.device.groups_promised(&ran.workload),
                    ..ptx::Options::new(target)
                };
                Ok(ptx::emit(kernel, &how)?.text)
            }
            CodeForm::Machine => {
                let model = on.device.model().ok_or_else(|| {
                    Error::device(format!("{} has its own instruction set", on.device.name()))
                        .accepted("`--code ptx` or `--code ir`, or a simulated device")
                })?;
                Ok(ran.workload.lowered(&ran.kernel, model)?.to_string())
            }
        }
    };
    match form {
        CodeForm::None => Ok(None),
        _ => Ok(Some(Difference::between(form, &text(ran[0])?, &text(ran[1])?))),
    }
}

/// The entries' own text, where both are PTX.
fn entries(options: &[KernelOptions; 2]) -> Result<Option<[String; 2]>> {
    let mut texts = Vec::new();
    for options in options {
        match Module::of(options)? {
            Some(module) => texts.extend(module.entry_text()?),
            None => return Ok(None),
        }
    }
    Ok(<[String; 2]>::try_from(texts).ok())
}

/// Whether both left the same in the outputs that they have in common: findings, and warnings.
fn outputs(a: &Ran, b: &Ran) -> (Vec<String>, Vec<String>) {
    let (mut same, mut differ, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let names_b: Vec<String> = b.workload.output_names().collect();
    let names_a: Vec<String> = a.workload.output_names().collect();
    for (name, bytes) in names_a.iter().zip(&a.outputs) {
        let other = names_b.iter().position(|other| other == name);
        match other.and_then(|other| b.outputs.get(other)) {
            Some(other) if other == bytes => same.push(quoted(name)),
            Some(_) => differ.push(quoted(name)),
            None => missing.push(quoted(name)),
        }
    }
    let in_b = names_b.iter().filter(|name| !names_a.contains(name));
    missing.extend(in_b.map(|name| quoted(name)));
    let mut findings = Vec::new();
    if !same.is_empty() {
        findings.push(format!("Both leave the same bits in {}.", same.join(", ")));
    }
    let mut warnings = Vec::new();
    if !differ.is_empty() {
        warnings.push(format!("they leave different bits in {}.", differ.join(", ")));
    }
    if !missing.is_empty() {
        warnings.push(format!(
            "only one of them has the output {}, so it is not compared.",
            missing.join(", ")
        ));
    }
    (findings, warnings)
}
