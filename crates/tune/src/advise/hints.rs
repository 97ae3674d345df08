//! The question of Intel's page on prefetch: is a kernel worth hints, to which level, and how far ahead? Answered for hints alone,
//! however much faster something else is, in the spelling of SYCL's extension and of Intel's builtins.

use serde::Serialize;

use crate::back::spirv;
use crate::error::Result;
use crate::ir::{CacheHint, CacheLevel, Kernel, LscControl};
use crate::prefetch::plan::{Distance, JointScope, LoadName, LoadPlace, Strategy, StrategyKind};
use crate::prefetch::{self, Plan};
use crate::report::{Report, Trial};
use crate::tune::{self, Bench, Progress, Subject};

/// The fastest plan that only gives hints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HintsAlone {
    /// The plan.
    pub plan: Plan,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The plain kernel's time divided by it.
    pub speedup: f64,
    /// Its hints.
    pub hints: Vec<SpelledHint>,
}

/// A hint as Intel's programs write it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpelledHint {
    /// The load, as plans name it.
    pub load: String,
    /// The level that it asks for: `L1`.
    pub level: &'static str,
    /// Iterations ahead.
    pub ahead: u32,
    /// In SYCL: a call of `sycl_ext_oneapi_prefetch`.
    pub sycl: String,
    /// With Intel's builtins: a call for each piece.
    pub lsc: Vec<String>,
}

/// Iterations ahead that are tried.
const DISTANCES: [u32; 4] = [1, 2, 4, 8];

/// The most loads whose hints are tried.
const MOST_LOADS: usize = 4;

/// Tries hints for each load whose address needs no other load of its loop, and gives the fastest of all plans that only give hints,
/// those of `report` among them. None where the device or the kernel has no use for any.
///
/// # Errors
/// As for [`tune::tune`].
pub(super) fn best_alone(
    subject: &dyn Subject,
    bench: &dyn Bench,
    kernel: &Kernel,
    report: &Report,
) -> Result<Option<HintsAlone>> {
    let plans = plans(kernel, &bench.levels())?;
    let mut found = alone(report, kernel);
    if !plans.is_empty() {
        let tried = tune::tune(subject, bench, Some(&plans), &Quiet)?;
        let own = alone(&tried, kernel);
        if own.as_ref().map(|own| own.time_ns) < found.as_ref().map(|found| found.time_ns) || found.is_none()
        {
            found = own.or(found);
        }
    }
    Ok(found)
}

/// Says nothing: what it would count is no part of the search.
struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _: usize) {}
    fn done(&self, _: &Trial) {}
}

/// Hints of each work-item for itself, at several distances, to each cache that hints reach.
fn plans(kernel: &Kernel, levels: &[CacheLevel]) -> Result<Vec<Plan>> {
    let one = Distance::new(1)?;
    let own = |kind: &&StrategyKind| {
        let strategy = Strategy::new(**kind, one);
        strategy.is_hint()
            && !strategy.is_joint()
            && strategy.descriptor().takes.levels.contains(&CacheLevel::L3)
    };
    let Some(&kind) = StrategyKind::ALL.iter().find(own) else {
        return Ok(Vec::new());
    };
    let mut plans = Vec::new();
    let loads = prefetch::candidates(kernel).into_iter();
    let loads = loads.filter(|load| load.refusal.is_none() && load.parents.is_empty() && !load.is_rest);
    for load in loads.take(MOST_LOADS) {
        for &level in levels {
            // What all cores share is Intel's L3.
            let level = if level == CacheLevel::L2 {
                CacheLevel::L3
            } else {
                level
            };
            for distance in DISTANCES {
                let strategy = Strategy::new(kind, Distance::new(distance)?).to_level(level);
                plans.push(Plan::none().with(load.name.clone(), strategy)?);
            }
        }
    }
    Ok(plans)
}

/// The fastest of a report's plans that only give hints.
fn alone(report: &Report, kernel: &Kernel) -> Option<HintsAlone> {
    let is_alone = |plan: &Plan| {
        let only_hints = plan.loads().iter().all(|(_, strategy)| strategy.is_hint());
        only_hints && !plan.loads().is_empty() && plan.unroll().is_none()
    };
    let trial = report
        .fastest_first()
        .into_iter()
        .find(|trial| is_alone(&trial.plan))?;
    let (time_ns, speedup) = trial.measured()?;
    let candidates = prefetch::candidates(kernel);
    let hints = trial.plan.loads().iter().filter_map(|(load, strategy)| {
        let hint = CacheHint {
            level: strategy.level()?,
            nontemporal: strategy.is_nontemporal(),
        };
        let same = |name: &LoadName| {
            name == load || (load.place() == Some(&LoadPlace::Everywhere) && name.param() == load.param())
        };
        let bytes = candidates.iter().find(|candidate| same(&candidate.name));
        Some(SpelledHint {
            load: load.to_string(),
            level: hint.level.name(),
            ahead: strategy.distance().get(),
            sycl: in_sycl(hint, strategy.is_joint().then(|| strategy.scope())),
            lsc: with_builtins(hint, bytes.map_or(4, |candidate| candidate.bytes)),
        })
    });
    Some(HintsAlone {
        plan: trial.plan.clone(),
        time_ns,
        speedup,
        hints: hints.collect(),
    })
}

fn in_sycl(hint: CacheHint, shared_by: Option<JointScope>) -> String {
    let (function, group) = match shared_by {
        Some(JointScope::WorkGroup) => ("joint_prefetch", "item.get_group(), "),
        Some(_) => ("joint_prefetch", "item.get_sub_group(), "),
        None => ("prefetch", ""),
    };
    let nontemporal = if hint.nontemporal { "_nt" } else { "" };
    format!(
        "syclex::{function}({group}next, syclex::properties{{syclex::prefetch_hint_{}{nontemporal}}})",
        hint.level.name()
    )
}

fn with_builtins(hint: CacheHint, bytes: u32) -> Vec<String> {
    let messages = spirv::messages(bytes, bytes).into_iter();
    let calls = messages.map(|message| {
        let pointer = match message.offset {
            0 => "next".to_owned(),
            offset => format!("next + {offset}"),
        };
        format!(
            "__builtin_IB_lsc_prefetch_global_{}({pointer}, 0, LSC_LDCC_{})",
            message.element.name(),
            LscControl::of(hint).name()
        )
    });
    calls.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_spelled_as_intel_s_programs_write_them() {
        let (near, far) = (CacheHint::to(CacheLevel::L1), CacheHint::to(CacheLevel::L3));
        assert_eq!(
            in_sycl(near, None),
            "syclex::prefetch(next, syclex::properties{syclex::prefetch_hint_L1})"
        );
        assert_eq!(
            in_sycl(far.nontemporal(), Some(JointScope::SubGroup)),
            "syclex::joint_prefetch(item.get_sub_group(), next, syclex::properties{syclex::prefetch_hint_L3_nt})"
        );
        assert_eq!(
            with_builtins(near, 4),
            ["__builtin_IB_lsc_prefetch_global_uint(next, 0, LSC_LDCC_L1C_L3C)"]
        );
        assert_eq!(
            with_builtins(near.nontemporal(), 8),
            ["__builtin_IB_lsc_prefetch_global_uint2(next, 0, LSC_LDCC_L1S_L3C)"]
        );
        assert_eq!(
            with_builtins(far, 2),
            ["__builtin_IB_lsc_prefetch_global_ushort(next, 0, LSC_LDCC_L1UC_L3C)"]
        );
    }
}
