//! Reports: the findings, and their forms as data, as a table on a terminal, as a page.
//!
//! [`Report`] is the output of `headstart tune --json`. [`table`] and [`page`] show it; neither knows how the numbers were
//! made.

mod checked;
pub mod columns;
pub mod detail;
#[doc(hidden)]
pub mod explain;
#[doc(hidden)]
pub mod gains;
pub use crate::number;
#[cfg(feature = "page")]
pub mod page;
mod program;
#[doc(hidden)]
pub mod run;
#[cfg(feature = "page")]
mod sections;
pub(crate) mod series;
pub(crate) mod short;
#[cfg(feature = "page")]
pub mod sweep;
#[cfg(feature = "page")]
pub mod table;
mod taken;
pub mod terms;
mod violation;
pub mod waiting;
mod ways;

use std::collections::BTreeMap;
use std::fmt;

pub use checked::{AtFullSize, Checked};
pub use program::{Answer, KindReport, ProgramReport};
use serde::{Deserialize, Serialize};
pub use taken::{Taken, TakenBy};
pub use violation::Violation;
#[doc(hidden)]
pub use violation::{NO_LAUNCH, broken_rule};
pub use waiting::{Waiting, WaitsFor};
pub use ways::{LaunchSettings, SettingsTrial, Ways};

use crate::evidence::{Bounds, Remedy, Roofline};
use crate::prefetch::Plan;

/// The result of tuning one kernel on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The kernel's name.
    pub kernel: String,
    /// The device, as `--device` spells it.
    pub device: String,
    /// Time of the kernel as it is, in nanoseconds.
    pub baseline_ns: f64,
    /// Every plan that was tried, the plain kernel (`none`) first, rejected ones included.
    pub trials: Vec<Trial>,
    /// The plan to use: `none` where none wins by enough.
    pub best: Best,
    /// Why the launch shows little of the kernel, a sentence each: its loops never run, or it changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The kernel came in a module, which `tune -o` writes with a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_module: bool,
    /// The recommendation.
    pub verdict: Verdict,
    /// Why the verdict is in doubt, where its times are simulated and within the simulator's known error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// What to change before any plan: idle lanes, accesses that are not coalesced, narrow loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<Remedy>,
    /// Why, with numbers: the most important first.
    pub reasons: Vec<String>,
    /// The part of each time that is the launch, in nanoseconds, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_ns: Option<f64>,
    /// Work-groups and work-items in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geometry: Option<Geometry>,
    /// The kernel's parameters as they were set, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// The plain kernel at the geometry where it does the same work fastest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_best_geometry: Option<PlainBest>,
    /// The fastest plan in that geometry, where one is worth it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_elsewhere: Option<Elsewhere>,
    /// The gains of the sub-group size, the register file and the work-group size beside the plan, if they were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<Ways>,
    /// The device's counters, for the plain kernel and for the best plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<Counter>,
    /// How fast the kernel can get at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Where the plans sit under the device's roofs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
    /// Both kernels side by side, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<detail::Detail>,
    /// On how many launches, derived from the one that was timed, the best plan agreed with the plain kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perturbed: Option<Perturbed>,
    /// Further checks of the plans, if they ran on a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// How the numbers were made: simulated or measured, sampled or whole, and with which version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where the kernel's work-groups wait, and for whom: a plan must leave as many resident.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Waiting>,
    /// The requirements of every launch of the rewritten entry beyond those of its module, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_for_granted: Vec<String>,
    /// How far the search came, where it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
}

/// From this share of the time on the launch is named.
const SIZEABLE: f64 = 0.05;

/// A search that was stopped: plans that were not tried may be faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// Plans that were tried.
    pub tried: usize,
    /// Plans that were to be tried.
    pub of: usize,
    /// Those of the plans left that tell what the others may gain: the likely ones, and one of each other kind.
    #[serde(default)]
    pub telling_left: usize,
    /// The kinds of plans that were tried, and those of which none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried_kinds: Vec<String>,
    /// See there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_kinds: Vec<String>,
    /// How long a plan took on average, in seconds of the search; without any, how long the plain kernel took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_a_plan: Option<f64>,
    /// The device's message when it was lost, if nobody stopped the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl fmt::Display for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Stopped after {} of {} plans: others may be faster.",
            self.tried, self.of
        )?;
        for (what, kinds) in [("Tried", &self.tried_kinds), ("Open", &self.open_kinds)] {
            if !kinds.is_empty() {
                write!(f, " {what}: {}.", kinds.join(", "))?;
            }
        }
        match &self.lost {
            Some(error) => write!(f, " The device was lost: {error}."),
            None => Ok(()),
        }
    }
}

impl Partial {
    /// What it would take to try the plans that are left; none where that is not known.
    fn cost(&self) -> Option<String> {
        let seconds = self.seconds_a_plan?;
        let time = |plans: usize| number::duration(seconds * 1e9 * plans as f64);
        let left = self.of - self.tried;
        let telling = match self.telling_left {
            0 => String::new(),
            telling if telling == left => String::new(),
            telling => format!(" about {} for the {telling} likely ones,", time(telling)),
        };
        Some(format!(
            "The other {left} plans take{telling} about {} in all: see `--budget`.",
            time(left)
        ))
    }
}

/// One plan that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The plan, the parents that it carries included.
    pub plan: Plan,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What it takes of a core, where it was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Taken>,
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// It ran, and its outputs were right.
    Ok {
        /// Its time, in nanoseconds.
        time_ns: f64,
        /// The plain kernel's time divided by its time.
        speedup: f64,
        /// How its outputs compare with the plain kernel's.
        outputs: Outputs,
    },
    /// It passed its checks, and was surely behind another plan, so that it was not simulated to its end.
    Dropped {
        /// The part of its work that the other plan had done by then, 0 to 1.
        after: f64,
        /// The plain kernel's time divided by its time, at most.
        at_most: f64,
    },
    /// It is not legal for this kernel, or this device cannot run it.
    Rejected {
        /// The rule that refused it, and where.
        reason: String,
    },
    /// It was accepted and then went wrong.
    Failed {
        /// The error.
        reason: String,
        /// The rule that its execution broke, if that is what went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        violation: Option<Violation>,
    },
}

/// How a plan's outputs compare with the plain kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outputs {
    /// Every bit is the same.
    Identical,
    /// Equal in the sense that the kernel declares: as a multiset, or within a tolerance.
    Equivalent,
}

impl Outputs {
    /// Of two comparisons together: identical if both are.
    #[must_use]
    pub fn and(self, other: Outputs) -> Outputs {
        match self {
            Outputs::Identical => other,
            Outputs::Equivalent => self,
        }
    }

    /// The word for it in tables.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Outputs::Identical => "identical",
            Outputs::Equivalent => "equivalent",
        }
    }
}

/// The plan to use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The plan; `none` where none wins by enough.
    pub plan: Plan,
    /// How it is compiled and launched, where that is a part of the answer.
    #[serde(flatten)]
    pub way: LaunchSettings,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The plain kernel's time divided by its time.
    pub speedup: f64,
}

/// The recommendations for a kernel, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// Launch the same work as more work-groups.
    #[serde(rename = "more work-groups")]
    MoreWorkGroups,
    /// Launch the same work as other work-groups, and not as more of them.
    #[serde(rename = "other work-groups")]
    OtherWorkGroups,
    /// Tell the compiler how many registers it may use.
    #[serde(rename = "more registers")]
    MoreRegisters,
    /// Unroll the loop.
    #[serde(rename = "unroll")]
    Unroll,
    /// Prefetch.
    #[serde(rename = "prefetch")]
    Prefetch,
    /// Compile and launch the kernel as it is with other settings.
    #[serde(rename = "launch settings")]
    LaunchSettings,
    /// Leave the kernel as it is.
    #[serde(rename = "leave it")]
    LeaveIt,
    /// None: too little was run to tell.
    #[serde(rename = "undecided")]
    Undecided,
}

/// A dearer answer must be this much faster than a cheaper one: 3 %.
pub const THRESHOLD: f64 = 1.03;

/// A plan beside the plain kernel on launches with other scalars, data and geometries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Perturbed {
    /// A hash of the planned kernel's text: the check counts for no other kernel. Empty in reports of earlier versions.
    #[serde(default)]
    pub kernel: String,
    /// The seed of the launches: the same seed gives the same command the same launches.
    pub seed: u64,
    /// A hash of the changes in the launches; equal hashes mean equal launches.
    #[serde(default)]
    pub digest: String,
    /// Launches in which the plain kernel is right.
    pub launches: u64,
    /// Draws that were dropped: they make the plain kernel break a rule or take too long. Kept and dropped are all draws.
    pub dropped: u64,
    /// The same by rule: `out-of-bounds`, `not-ended`, `race`, … Empty in reports of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped_for: BTreeMap<String, u64>,
    /// Launches on which the plan left the same as the plain kernel.
    pub agreed: u64,
    /// Launches that the plan is not for: of other work-groups than it is made for, or with other lengths than it relies on.
    pub not_for: u64,
    /// Some of the launches on the device that the plan is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_device: Option<OnDevice>,
    /// Why these launches prove little; empty if they covered everything.
    #[serde(default)]
    pub weakly_checked: Vec<String>,
}

/// Perturbed launches on a device: the plan against the kernel as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnDevice {
    /// Launches on which the plan left the same.
    pub agreed: u64,
    /// Launches at which the kernel as it is faults, does not end, or leaves nothing that can be compared.
    pub dropped: u64,
}

impl Perturbed {
    /// The description of them, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let Perturbed {
            seed,
            launches,
            dropped,
            agreed,
            not_for,
            dropped_for,
            weakly_checked,
            on_device,
            ..
        } = self;
        let mut rules: Vec<(&String, &u64)> = dropped_for.iter().collect();
        rules.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let rules = rules
            .iter()
            .map(|(rule, count)| format!("{} ({count})", broken_rule(rule)));
        let rules = match rules.collect::<Vec<_>>().join(", ") {
            rules if rules.is_empty() => String::new(),
            rules => format!(": {rules}"),
        };
        let mut sentences = Vec::new();
        if *launches > 0 {
            let all = launches - not_for;
            let same = if *agreed == all {
                "all".to_owned()
            } else {
                agreed.to_string()
            };
            let others = match not_for {
                0 => String::new(),
                others => format!("; {others} more are launches that it is not made for"),
            };
            sentences.push(format!(
                "On {all} small launches with other scalars, data and sizes (seed {seed}) the plan left the same bits as the plain \
                 kernel in {same}{others}."
            ));
        }
        match (launches, dropped) {
            (0, 0) => sentences.push(format!("The plan was checked on no other launch (seed {seed}).")),
            (0, _) => sentences.push(format!(
                "The plan was checked on no other launch: on all {dropped} that were made up (seed {seed}) the kernel as it is fails \
                 itself{rules}."
            )),
            (_, 0) => {}
            _ => sentences.push(format!(
                "{dropped} more that were made up do not count, as the kernel as it is fails on them itself{rules}."
            )),
        }
        if let Some(OnDevice { agreed, dropped }) = on_device {
            let dropped = match dropped {
                0 => String::new(),
                dropped => format!(
                    "; {dropped} more do not count, as the kernel as it is fails on them, or leaves something else each time"
                ),
            };
            sentences.push(format!(
                "On the device it left the same as the kernel as it is on {agreed} such launches{dropped}."
            ));
        }
        if !weakly_checked.is_empty() {
            sentences.push(format!("That proves little: {}.", weakly_checked.join("; ")));
        }
        sentences
    }
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Geometry {
    /// Work-groups.
    pub groups: u64,
    /// Work-items in each.
    pub group: u32,
}

/// The plain kernel at the geometry where it does the same work fastest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainBest {
    /// That geometry.
    #[serde(flatten)]
    pub geometry: Geometry,
    /// The parameters that differ so that the work stays the same, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The baseline's time divided by its time.
    pub speedup: f64,
}

/// A plan in another geometry that does the same work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// That geometry.
    #[serde(flatten)]
    pub geometry: Geometry,
    /// The parameters that differ so that the work stays the same, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// The plan.
    pub plan: Plan,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The baseline's time divided by its time.
    pub speedup: f64,
    /// The further launches on which it was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perturbed: Option<Perturbed>,
}

/// One thing that the device counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// The counter, in words.
    pub name: String,
    /// Its unit: `%`, `bytes`, `GB/s`, or empty for a plain count.
    pub unit: String,
    /// Its value for the plain kernel.
    pub plain: f64,
    /// Its value for the best plan, where that is not the plain kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
}

impl Verdict {
    /// The verdict that advises a plan.
    pub fn of(plan: &Plan) -> Verdict {
        match (plan.is_none(), plan.leaves_code(), plan.loads().is_empty()) {
            (true, ..) => Verdict::LeaveIt,
            (_, true, _) => Verdict::MoreRegisters,
            (.., true) => Verdict::Unroll,
            _ => Verdict::Prefetch,
        }
    }

    /// The verdict that advises to launch the same work in so many work-groups instead of others.
    #[doc(hidden)]
    pub fn in_groups(from: u64, to: u64) -> Verdict {
        match to > from {
            true => Verdict::MoreWorkGroups,
            false => Verdict::OtherWorkGroups,
        }
    }

    /// Whether it advises another geometry.
    #[doc(hidden)]
    pub fn is_of_geometry(self) -> bool {
        matches!(self, Verdict::MoreWorkGroups | Verdict::OtherWorkGroups)
    }

    /// The verdict in a word or two, as the JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::MoreWorkGroups => "more work-groups",
            Verdict::OtherWorkGroups => "other work-groups",
            Verdict::MoreRegisters => "more registers",
            Verdict::Unroll => "unroll",
            Verdict::Prefetch => "prefetch",
            Verdict::LaunchSettings => "launch settings",
            Verdict::LeaveIt => "leave it",
            Verdict::Undecided => "undecided",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        write!(
            f,
            "{} work-group{} of {} work-item{}",
            number::grouped(self.groups),
            plural(self.groups),
            self.group,
            plural(u64::from(self.group))
        )
    }
}

impl Trial {
    /// Time and speedup, if it ran.
    pub fn measured(&self) -> Option<(f64, f64)> {
        match self.outcome {
            Outcome::Ok { time_ns, speedup, .. } => Some((time_ns, speedup)),
            _ => None,
        }
    }

    /// Why there is no time, if there is none.
    pub fn reason(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Ok { .. } | Outcome::Dropped { .. } => None,
            Outcome::Rejected { reason } | Outcome::Failed { reason, .. } => Some(reason),
        }
    }

    /// The part of the leading plan's work that was done when this one was dropped, and its speedup at most, if it was.
    pub fn dropped(&self) -> Option<(f64, f64)> {
        match self.outcome {
            Outcome::Dropped { after, at_most } => Some((after, at_most)),
            _ => None,
        }
    }
}

impl Report {
    /// The requirements of the rewritten entry, in a sentence; none where there are none.
    pub fn granted(&self) -> Option<String> {
        let granted = self.taken_for_granted.join("; ");
        (!granted.is_empty()).then(|| format!("The plan takes for granted: {granted}."))
    }

    /// How many plans were tried, and with what result; none where there was none to try.
    pub(crate) fn tried(&self) -> Option<String> {
        let plans = self.trials.iter().filter(|trial| !trial.plan.is_none());
        let count = |accept: fn(&Trial) -> bool| plans.clone().filter(|trial| accept(trial)).count();
        let all = count(|_| true);
        let parts = [
            (count(|trial| trial.measured().is_some()), "ran"),
            (
                count(|trial| trial.dropped().is_some()),
                "dropped as certainly slower than the best",
            ),
            (count(|trial| trial.reason().is_some()), "refused"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        (all > 0).then(|| format!("Of {all} plans {}.", parts.join(", ")))
    }

    /// How the advised plan was checked, and how the numbers were made.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.checks().chain(self.notes.iter().cloned())
    }

    /// How the advised plan was checked.
    pub(crate) fn checks(&self) -> impl Iterator<Item = String> {
        // A plan advised for another geometry was checked there.
        let elsewhere = self
            .best_elsewhere
            .as_ref()
            .and_then(|other| other.perturbed.as_ref());
        let checked = match self.verdict.is_of_geometry() {
            true => elsewhere,
            false => self.perturbed.as_ref(),
        };
        let checked = checked.into_iter().flat_map(Perturbed::sentences);
        let at_full_size = self.checked.iter().flat_map(Checked::sentences);
        let waits = waiting::sentence(&self.waits);
        let waits =
            waits.map(|waits| format!("Of this kernel, {waits}: a plan leaves as many of them resident."));
        checked.chain(at_full_size).chain(waits)
    }

    /// The trials that ran, fastest first; equal times in the order they were tried.
    pub fn fastest_first(&self) -> Vec<&Trial> {
        let mut ran: Vec<&Trial> = self
            .trials
            .iter()
            .filter(|trial| trial.measured().is_some())
            .collect();
        let time = |trial: &Trial| trial.measured().map_or(f64::INFINITY, |(time_ns, _)| time_ns);
        ran.sort_by(|one, other| time(one).total_cmp(&time(other)));
        ran
    }

    /// The speedup of the fastest plan, here or in another geometry; at least the plain kernel's.
    pub(crate) fn fastest(&self) -> f64 {
        let here = self
            .trials
            .iter()
            .filter_map(Trial::measured)
            .map(|(_, factor)| factor);
        let plain = self.plain_best_geometry.iter().map(|there| there.speedup);
        let elsewhere = self.best_elsewhere.iter().map(|there| there.speedup);
        here.chain(plain).chain(elsewhere).fold(1.0, f64::max)
    }

    /// The speedup of the verdict's recommendation; none where there is none.
    pub(crate) fn advised_speedup(&self) -> Option<f64> {
        match (self.verdict, &self.plain_best_geometry, &self.best_elsewhere) {
            (Verdict::LeaveIt | Verdict::Undecided, ..) => None,
            (verdict, _, Some(other)) if verdict.is_of_geometry() => Some(other.speedup),
            (verdict, Some(other), None) if verdict.is_of_geometry() => Some(other.speedup),
            _ => Some(self.best.speedup),
        }
    }

    /// The possible gain, in sentences.
    pub(crate) fn gains(&self) -> Vec<String> {
        let bounds = self.bounds.iter();
        bounds
            .flat_map(|bounds| gains::sentences(bounds, self.fastest(), self.advised_speedup()))
            .collect()
    }

    /// The same with the settings tried beside the plans. Where they are better than the plan alone, they are the answer, which was
    /// checked on the launches `perturbed`.
    #[must_use]
    pub fn with_ways(mut self, ways: Ways, perturbed: Option<Perturbed>) -> Report {
        self.reasons.extend(ways.reason(&self.best.plan));
        let advised = self.advised_speedup().unwrap_or(1.0);
        if let Some(best) = ways.best.as_ref().filter(|best| best.speedup > advised) {
            self.verdict = match best.plan.is_none() {
                true => Verdict::LaunchSettings,
                false => Verdict::of(&best.plan),
            };
            self.best = Best {
                plan: best.plan.clone(),
                way: best.way,
                time_ns: best.time_ns,
                speedup: best.speedup,
            };
            let bounds = self.bounds.take();
            self.bounds = bounds.map(|bounds| bounds.beside_a_plan(self.baseline_ns, best.time_ns));
            self.perturbed = perturbed;
        }
        self.ways = Some(ways);
        self
    }

    /// The bounds that follow from the plain kernel, beside the plans' times.
    #[doc(hidden)]
    pub fn beside_the_plans(&self, bounds: Bounds) -> Bounds {
        let fastest = self.fastest_first().first().and_then(|trial| trial.measured());
        match fastest {
            Some((fastest_ns, _)) => bounds.beside_a_plan(self.baseline_ns, fastest_ns),
            None => bounds,
        }
    }

    /// The trials that were dropped, those that might be fastest first.
    pub fn dropped(&self) -> Vec<&Trial> {
        let mut dropped: Vec<&Trial> = self
            .trials
            .iter()
            .filter(|trial| trial.dropped().is_some())
            .collect();
        let at_most = |trial: &Trial| trial.dropped().map_or(0.0, |(_, at_most)| at_most);
        dropped.sort_by(|one, other| at_most(other).total_cmp(&at_most(one)));
        dropped
    }

    /// The trials that did not run, in the order they were tried.
    pub(crate) fn without_time(&self) -> impl Iterator<Item = (&Plan, &str)> {
        self.trials
            .iter()
            .filter_map(|trial| trial.reason().map(|reason| (&trial.plan, reason)))
    }

    /// The plans that were timed: how many, without the plain kernel, and how fast they are at most.
    fn timed(&self) -> (usize, f64) {
        let plans = self.trials.iter().filter(|trial| !trial.plan.is_none());
        let factors = plans.filter_map(|trial| Some(trial.measured().or(trial.dropped())?.1));
        factors.fold((0, 0.0), |(count, most), factor| {
            (count + 1, f64::max(most, factor))
        })
    }

    /// What supports that no plan is worth it.
    fn against_all(&self) -> String {
        let roof = self.bounds.as_ref().and_then(|bounds| bounds.roofs.first());
        match (self.timed(), roof) {
            ((0, _), _) if self.partial.is_none() => "none applies".to_owned(),
            ((0, _), Some(roof)) => format!("{} alone takes {}", roof.name, number::duration(roof.least_ns)),
            ((count, most), _) => {
                format!(
                    "of {count} that were timed none is over {}",
                    number::speedup(most)
                )
            }
        }
    }

    /// What is known where nothing is decided, and what it would take.
    fn unknown(&self) -> String {
        let of = self
            .partial
            .as_ref()
            .map_or(self.trials.len() - 1, |partial| partial.of);
        let mut text = match self.timed() {
            (0, _) if of == 0 => "No plan was tried.".to_owned(),
            (0, _) => format!("None of {of} plans was timed, so nothing is known of what they gain."),
            (count, most) => format!(
                "{count} of {of} plans were timed, none of them over {}: too few to tell what the others gain.",
                number::speedup(most)
            ),
        };
        let fastest = self.fastest();
        if let Some((limit, factor)) = self.bounds.as_ref().and_then(|bounds| bounds.nearest(fastest)) {
            text.push_str(&format!(
                " The first limit, {limit}, would allow {}.",
                number::speedup(factor)
            ));
        }
        if let Some(cost) = self.partial.as_ref().and_then(Partial::cost) {
            text.push_str(&format!(" {cost}"));
        }
        text
    }

    /// The meaning of the verdict here, in one sentence with its numbers.
    pub fn conclusion(&self) -> String {
        let launch = self
            .launch_ns
            .filter(|launch| *launch >= SIZEABLE * self.baseline_ns);
        let launch = launch.map_or(String::new(), |launch| {
            format!(" ({} of it the launch)", number::duration(launch))
        });
        let plain = number::duration(self.baseline_ns) + &launch;
        let gain = |speedup: f64, time_ns: f64| {
            let speedup = number::speedup(speedup);
            format!(
                "{speedup} the speed of the plain kernel, {} instead of {plain}.",
                number::duration(time_ns)
            )
        };
        // An answer whose condition nobody has confirmed is named, and not chosen.
        let split = self
            .plain_best_geometry
            .as_ref()
            .filter(|other| other.speedup >= self.best.speedup.max(THRESHOLD))
            .map_or(String::new(), |other| {
                format!(
                    " If its work can be split, {} take {} without a plan.",
                    other.geometry,
                    number::duration(other.time_ns)
                )
            });
        let ways = self.ways.as_ref().filter(|_| self.best.way.is_usual());
        let ways = ways.and_then(Ways::conclusion);
        let ways = ways.map_or(String::new(), |ways| format!(" {ways}"));
        let split = split + &ways;
        match (self.verdict, &self.plain_best_geometry, &self.best_elsewhere) {
            (verdict, _, Some(other)) if verdict.is_of_geometry() => {
                format!(
                    "As {}, with `{}`: {}",
                    other.geometry,
                    other.plan,
                    gain(other.speedup, other.time_ns)
                )
            }
            (verdict, Some(other), None) if verdict.is_of_geometry() => {
                format!("As {}: {}", other.geometry, gain(other.speedup, other.time_ns))
            }
            (Verdict::LeaveIt, ..) => {
                format!(
                    "The kernel takes {plain} without a plan, and no plan is worth it: {}.{split}",
                    self.against_all()
                )
            }
            (Verdict::Undecided, ..) => format!(
                "The kernel takes {plain} without a plan. {}{split}",
                self.unknown()
            ),
            _ if self.best.way.is_usual() => gain(self.best.speedup, self.best.time_ns) + &split,
            _ => {
                let gain = gain(self.best.speedup, self.best.time_ns);
                format!("With {}: {gain}{split}", self.best.way)
            }
        }
    }
}

#[cfg(test)]
mod tests;
