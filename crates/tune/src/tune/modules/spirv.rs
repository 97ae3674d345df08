//! A SPIR-V module with a plan applied to one of its entries.

use std::sync::Arc;

use super::exchanged::{exchanged, in_sub_groups};
use super::granted::Granted;
use crate::back::spirv::{Options, SpirvTarget};
use crate::error::{Error, Result};
use crate::front::ptx::Facts;
use crate::front::spirv::Original;
use crate::ir::{BinaryOp, Kernel, OpKind};
use crate::prefetch::{self, Plan};
use crate::report::{LaunchSettings, Report};
use crate::tune::check::perturb::{self, Engine, Settings};
use crate::tune::subject::Subject;
use crate::tune::subject::file::FileSubject;

/// A module of SPIR-V with a plan carried out on one of its entries.
#[derive(Clone, Debug)]
pub struct PlannedSpirv {
    /// The module.
    pub words: Vec<u32>,
    /// The plan with the parents that it carries.
    pub plan: Plan,
    /// The requirements of every launch, a sentence each.
    pub granted: Vec<String>,
    /// The host's further requests, which a module cannot contain: build options, the work-group's size. A sentence each.
    pub asked: Vec<String>,
}

impl PlannedSpirv {
    /// The module's binary form, little-endian, as files hold it.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Carries out a plan on the entry that a subject was read from, for devices of a kind. The planned kernel is checked
/// against the plain one on [perturbed launches](crate::tune::check::perturb) first.
///
/// # Errors
/// The subject is from no module of SPIR-V, the plan is not legal for it, the kernel cannot stand in the module, or it
/// computes something else than the plain one, which is a bug of ours.
pub fn planned_spirv(
    subject: &FileSubject,
    plan: &Plan,
    target: SpirvTarget,
    settings: Settings,
) -> Result<PlannedSpirv> {
    planned(
        subject,
        plan,
        target,
        LaunchSettings::default(),
        |plain, group, plan, derived| {
            let engine = Engine::of_no_device(group);
            perturb::check(subject, plain, engine, plan, derived, settings).map(drop)
        },
    )
}

/// The module with the best result of a report: the plan, and the sub-group size if it is part of the answer. It is unchanged
/// if nothing is better. The host must request the large register file and the work-group's size.
///
/// # Errors
/// As for [`planned_spirv`].
pub fn best_spirv(subject: &FileSubject, report: &Report, target: SpirvTarget) -> Result<PlannedSpirv> {
    let (plan, way) = (&report.best.plan, report.best.way);
    if plan.is_none() {
        let original = original(subject)?;
        return Ok(PlannedSpirv {
            words: match way.sub_group {
                Some(size) => in_sub_groups(original, size)?,
                None => original.words.to_vec(),
            },
            plan: plan.clone(),
            granted: Vec::new(),
            asked: asked(way),
        });
    }
    planned(subject, plan, target, way, |plain, group, plan, derived| {
        let engine = Engine::of_no_device(group);
        let known = report.perturbed.as_ref();
        perturb::check_unless_known(subject, plain, engine, plan, derived, known).map(drop)
    })
}

/// The host's requests beside a module.
fn asked(way: LaunchSettings) -> Vec<String> {
    let mut asked = Vec::new();
    if way.large_registers {
        asked.push(
            "the large register file, which a module cannot ask for: build it with `-cl-intel-256-GRF-per-thread` for OpenCL, \
             `-ze-opt-large-register-file` for Level Zero"
                .to_owned(),
        );
    }
    if let Some(size) = way.group {
        asked.push(format!(
            "work-groups of {size}: the local range of the launch, with the same global range"
        ));
    }
    asked
}

/// The requirements of every launch of an entry with a plan.
///
/// # Errors
/// The plan is not legal, or its kernel cannot stand in the module.
pub(in crate::tune) fn granted_for(subject: &FileSubject, plan: &Plan) -> Result<Vec<String>> {
    let planned = planned(
        subject,
        plan,
        SpirvTarget::Portable,
        LaunchSettings::default(),
        |_, _, _, _| Ok(()),
    )?;
    Ok(planned.granted)
}

fn original(subject: &FileSubject) -> Result<&Arc<Original>> {
    let original = subject.spirv();
    original.ok_or_else(|| Error::bug("a kernel that came from no module is put into one"))
}

fn planned(
    subject: &FileSubject,
    plan: &Plan,
    target: SpirvTarget,
    way: LaunchSettings,
    check: impl Fn(&Arc<Kernel>, [u32; 3], &Plan, &Arc<Kernel>) -> Result<()>,
) -> Result<PlannedSpirv> {
    let original = original(subject)?;
    let mut workload = subject.workload()?;
    if let Some(size) = way.group {
        let shapes = subject.regrouped()?.into_iter();
        let shape = shapes
            .map(|shape| shape.workload)
            .find(|shape| shape.geometry().group == size);
        workload = shape.ok_or_else(|| Error::bug("a work-group size that was tried is lost"))?;
    }
    let sized = |kernel: &Kernel| Kernel {
        sub_group_size: way.sub_group.or(kernel.sub_group_size),
        ..kernel.clone()
    };
    workload.kernel = Arc::new(sized(&workload.kernel));
    let group = workload.group;
    let options = Options::new(target);
    let for_group = prefetch::PlanTarget {
        group_size: Some(group),
        ..prefetch::PlanTarget::default()
    };
    let applied = prefetch::apply(&workload.kernel, plan, &for_group)?;
    if !plan.is_none() {
        check(
            &workload.kernel,
            group,
            &applied.plan,
            &Arc::new(applied.kernel.clone()),
        )?;
    }
    let words = exchanged(original, &applied.kernel, &options)?;
    let with = |facts: &Facts| -> Result<Vec<u32>> {
        let imported = original.again(facts)?;
        let applied = prefetch::apply(&sized(&imported.kernel), plan, &for_group)?;
        exchanged(&imported.original, &applied.kernel, &options)
    };
    let mut granted = granted(&subject.launch().facts(), &words, with);
    if applied.kernel.group_size.is_some() && workload.kernel.group_size.is_none() {
        let [x, y, z] = group;
        granted.push(format!("work-groups of {x} x {y} x {z}"));
    }
    if original.may_fuse && multiplies(&workload.kernel) {
        granted.push(
            "the device fuses products and sums as it did before: the module leaves that to it".to_owned(),
        );
    }
    Ok(PlannedSpirv {
        words,
        plan: applied.plan,
        granted,
        asked: asked(way),
    })
}

/// Whether a kernel has products of floats.
fn multiplies(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel
        .body
        .walk(&mut |op| found |= matches!(op.kind, OpKind::Binary(BinaryOp::FMul, ..)));
    found
}

/// The caller's facts that the module assumes: those without which it would be another one.
fn granted(facts: &Facts, words: &[u32], with: impl Fn(&Facts) -> Result<Vec<u32>>) -> Vec<String> {
    let mut left = facts.clone();
    let mut granted = Vec::new();
    let mut needed = |left: &mut Facts, without: Facts, fact: Granted| match with(&without) {
        Ok(other) if other == words => *left = without,
        _ => granted.push(fact.to_string()),
    };
    for name in facts.parameters.keys() {
        let own = facts.parameters[name];
        let change = |left: &Facts, change: &dyn Fn(&mut crate::front::ptx::ParameterFacts)| {
            let mut without = left.clone();
            without
                .parameters
                .entry(name.clone())
                .and_modify(|own| change(own));
            without
        };
        if own.read_only {
            let without = change(&left, &|own| own.read_only = false);
            needed(&mut left, without, Granted::ReadOnly(name.clone()));
        }
        if own.unaliased {
            let without = change(&left, &|own| own.unaliased = false);
            needed(&mut left, without, Granted::Unaliased(name.clone()));
        }
        if let Some(length) = own.length {
            let without = change(&left, &|own| own.length = None);
            needed(&mut left, without, Granted::Length(name.clone(), length));
        }
    }
    if facts.no_overflow {
        let without = Facts {
            no_overflow: false,
            ..left.clone()
        };
        needed(&mut left, without, Granted::NoOverflow);
    }
    granted
}
