//! The question of Intel's page on prefetch: is a kernel worth hints, to which level, and how far ahead? Answered for hints alone,
//! however much faster something else is, in the spelling of SYCL's extension and of Intel's builtins.

use serde::Serialize;

use std::time::Duration;

use crate::back::spirv;
use crate::error::{Fault, Result};
use crate::ir::{CacheHint, CacheLevel, Kernel, LscControl};
use crate::prefetch::plan::{Distance, JointScope, LoadName, LoadPlace, Strategy, StrategyKind};
use crate::prefetch::{self, Candidate, Plan};
use crate::report::{Report, Trial};
use crate::tune::{self, Bench, Progress, SearchSettings, Subject};

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
    /// The same hints to the other level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_level: Option<OtherLevel>,
}

/// What the same hints to another level gain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherLevel {
    /// The plan.
    pub plan: Plan,
    /// The plain kernel's time divided by its own.
    pub speedup: f64,
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

/// Tries hints, and gives the fastest of all plans that only give hints, those of `report` among them. None where the device or the
/// kernel has no use for any.
///
/// # Errors
/// As for [`tune::tune`].
pub(super) fn best_alone(
    subject: &dyn Subject,
    bench: &dyn Bench,
    kernel: &Kernel,
    report: &Report,
    progress: &dyn Progress,
) -> Result<Option<HintsAlone>> {
    let progress = &Quiet(progress);
    let plans = plans(kernel, &bench.platform().levels())?;
    let tried = tried(subject, bench, &plans, false, progress)?;
    let reports = [Some(report), tried.as_ref()].into_iter().flatten();
    let trials = reports.flat_map(|report| &report.trials);
    let trials: Vec<&Trial> = trials.filter(|trial| is_alone(&trial.plan)).collect();
    let measured = trials
        .iter()
        .filter_map(|trial| Some((*trial, trial.measured()?)));
    let fastest = measured.min_by(|(_, (one, _)), (_, (other, _))| one.total_cmp(other));
    let Some((Trial { plan, .. }, (time_ns, speedup))) = fastest else {
        return Ok(None);
    };
    let other = to_another_level(plan, &bench.platform().levels())?;
    // A plan that is surely behind is dropped otherwise, and has no time.
    let compared = self::tried(subject, bench, other.as_slice(), true, progress)?;
    let trials = compared.iter().flat_map(|report| &report.trials);
    let mut others = trials.filter(|trial| Some(&trial.plan) == other.as_ref());
    let other_level = others.find_map(|trial| {
        Some(OtherLevel {
            plan: trial.plan.clone(),
            speedup: trial.measured()?.1,
        })
    });
    Ok(Some(HintsAlone {
        plan: plan.clone(),
        time_ns,
        speedup,
        hints: spelled(plan, kernel),
        other_level,
    }))
}

/// The report of these plans; none where there are none, or none is legal. `every` plan is simulated to its end, or those that may win.
fn tried(
    subject: &dyn Subject,
    bench: &dyn Bench,
    plans: &[Plan],
    every: bool,
    progress: &Quiet<'_>,
) -> Result<Option<Report>> {
    if plans.is_empty() || progress.is_stopped() {
        return Ok(None);
    }
    let settings = SearchSettings {
        plans: Some(plans),
        every_plan: every,
        unexplained: true,
        ..SearchSettings::default()
    };
    match tune::search(subject, bench, &settings, progress) {
        Ok(found) => Ok(Some(found.report)),
        Err(error) if error.fault() == Fault::Bug => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether a plan only gives hints.
fn is_alone(plan: &Plan) -> bool {
    let only_hints = plan.loads().iter().all(|(_, strategy)| strategy.is_hint());
    only_hints && !plan.loads().is_empty() && plan.unroll().is_none() && plan.inner().is_none()
}

/// The same hints to another level; none where the device has one alone.
fn to_another_level(plan: &Plan, levels: &[CacheLevel]) -> Result<Option<Plan>> {
    let own = plan.loads().first().and_then(|(_, strategy)| strategy.level());
    let mut levels = levels.iter().copied().map(as_intel_says);
    let Some(other) = levels.find(|level| Some(*level) != own.map(as_intel_says)) else {
        return Ok(None);
    };
    let mut loads = plan.loads().iter();
    let moved = loads.try_fold(Plan::none(), |moved, (load, strategy)| {
        moved.with(load.clone(), strategy.to_level(other))
    });
    moved.map(Some)
}

/// What all cores share is Intel's L3.
fn as_intel_says(level: CacheLevel) -> CacheLevel {
    match level {
        CacheLevel::L2 => CacheLevel::L3,
        level => level,
    }
}

/// Says nothing, since what it would count is no part of the search, and ends with it.
struct Quiet<'p>(&'p dyn Progress);

impl Progress for Quiet<'_> {
    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    fn trying(&self, is_trying: bool) {
        self.0.trying(is_trying);
    }

    fn left(&self) -> Option<Duration> {
        self.0.left()
    }
}

/// Hints of each work-item for itself, at several distances, to each cache that hints reach: for each load with those that lead to
/// it, and for all loads.
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
    let loads = prefetch::candidates(kernel);
    let chains = loads.iter().filter_map(|load| chain(&loads, load));
    let mut chains: Vec<Vec<(&Candidate, u32)>> = chains.take(MOST_LOADS).collect();
    let mut all: Vec<(&Candidate, u32)> = Vec::new();
    for &(load, step) in chains.iter().flatten() {
        match all.iter_mut().find(|(own, _)| own.name == load.name) {
            Some((_, own)) => *own = step.max(*own),
            None => all.push((load, step)),
        }
    }
    chains.push(all);
    let mut plans = Vec::new();
    for chain in chains.iter().filter(|chain| !chain.is_empty()) {
        for &level in levels {
            let level = as_intel_says(level);
            for distance in DISTANCES {
                let plan = chain.iter().try_fold(Plan::none(), |plan, (load, step)| {
                    let ahead = Distance::new(distance * step)?;
                    plan.with(load.name.clone(), Strategy::new(kind, ahead).to_level(level))
                })?;
                if !plans.contains(&plan) {
                    plans.push(plan);
                }
            }
        }
    }
    Ok(plans)
}

/// A load and those of its loop that lead to its address, each a step further ahead than what needs it; none where one of them cannot be
/// fetched early.
fn chain<'l>(loads: &'l [Candidate], load: &'l Candidate) -> Option<Vec<(&'l Candidate, u32)>> {
    let mut chain = vec![(load, 1)];
    let mut at = 0;
    while let Some(&(child, step)) = chain.get(at) {
        if child.refusal.is_some() || child.is_rest {
            return None;
        }
        for id in &child.parents {
            if !chain.iter().any(|(own, _)| own.id == *id) {
                let is_it = |other: &&Candidate| other.id == *id && other.looped == child.looped;
                chain.push((loads.iter().find(is_it)?, step + 1));
            }
        }
        at += 1;
    }
    Some(chain)
}

/// The hints of a plan, as Intel's programs write them.
fn spelled(plan: &Plan, kernel: &Kernel) -> Vec<SpelledHint> {
    let candidates = prefetch::candidates(kernel);
    let hints = plan.loads().iter().filter_map(|(load, strategy)| {
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
    hints.collect()
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
