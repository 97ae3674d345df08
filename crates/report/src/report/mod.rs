//! Reports: the findings, and their forms as data, as a table on a terminal, as a page.
//!
//! [`Report`] is the output of `headstart tune --json`. [`table`] and [`page`] show it; neither knows how the numbers were
//! made.

mod checked;
pub mod columns;
pub mod detail;
#[doc(hidden)]
pub(crate) mod explain;
#[doc(hidden)]
pub mod gains;
mod geometry;
pub use crate::number;
#[cfg(feature = "page")]
pub mod page;
mod partial;
mod perturbed;
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
mod trial;
mod verdict;
mod violation;
pub mod waiting;
mod ways;

pub use checked::{AtFullSize, Checked};
pub use geometry::{Elsewhere, Geometry, PlainBest};
pub use partial::Partial;
pub use perturbed::{OnDevice, Perturbed};
pub use program::{Answer, KindReport, ProgramReport};
use serde::{Deserialize, Serialize};
pub use taken::{Taken, TakenBy};
pub use trial::{Outcome, Outputs, Trial};
pub use verdict::{Best, THRESHOLD, Verdict};
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
    /// Why nothing is decided, where times are simulated and within the simulator's known error.
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
    /// Where the kernel's work-groups wait, and for which others: a plan must leave as many resident.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Waiting>,
    /// The requirements of every launch of the rewritten entry beyond those of its module, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_for_granted: Vec<String>,
    /// Statements of the author's by which more plans would be possible, a sentence each: those that allow most come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlocking: Vec<String>,
    /// How far the search came, where it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
}

/// From this share of the time on the launch is named.
const SIZEABLE: f64 = 0.05;

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
        let all = self
            .partial
            .as_ref()
            .map_or_else(|| count(|_| true), |partial| partial.of);
        let parts = [
            (count(|trial| trial.measured().is_some()), "ran"),
            (
                count(|trial| trial.dropped().is_some()),
                "dropped as certainly slower than the best",
            ),
            (count(|trial| trial.reason().is_some()), "refused"),
            (all.saturating_sub(count(|_| true)), "left"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        let plans = if all == 1 { "plan" } else { "plans" };
        (all > 0).then(|| format!("Of {all} {plans} {}.", parts.join(", ")))
    }

    /// How the advised plan was checked, and how the numbers were made.
    #[doc(hidden)]
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let unlocking = self.unlocking.iter().cloned();
        self.checks()
            .chain(self.weakness())
            .chain(self.notes.iter().cloned())
            .chain(unlocking)
    }

    /// The launches that the advised plan was checked on: one that is advised for another geometry was checked there.
    fn perturbed_there(&self) -> Option<&Perturbed> {
        match self.verdict.is_of_geometry() {
            true => self.best_elsewhere.as_ref()?.perturbed.as_ref(),
            false => self.perturbed.as_ref(),
        }
    }

    /// Why the advised plan's check proves little; none where it covered everything.
    pub(crate) fn weakness(&self) -> Option<String> {
        self.perturbed_there()?.weakness()
    }

    /// How the advised plan was checked.
    pub(crate) fn checks(&self) -> impl Iterator<Item = String> {
        let checked = self.perturbed_there().into_iter().flat_map(Perturbed::sentences);
        let at_full_size = self.checked.iter().flat_map(Checked::sentences);
        let waits = waiting::sentence(&self.waits);
        let waits =
            waits.map(|waits| format!("Of this kernel, {waits}: a plan leaves as many of them resident."));
        checked.chain(at_full_size).chain(waits)
    }

    /// The trials that ran, fastest first; equal times in the order they were tried.
    #[doc(hidden)]
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

    /// Why a module without a plan is written as it was: a search that decided nothing found out nothing about the plans.
    #[doc(hidden)]
    pub fn why_as_it_was(&self) -> &'static str {
        match self.verdict {
            Verdict::Undecided if !self.unlocking.is_empty() => "no plan may be tried for lack of statements",
            Verdict::Undecided if self.doubt.is_some() => {
                "a measurement has to tell whether a plan is worth it"
            }
            Verdict::Undecided => "too few plans were timed to tell whether one is worth it",
            _ => "no plan is worth it",
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
    #[doc(hidden)]
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
                between: None,
            };
            let bounds = self.bounds.take();
            self.bounds = bounds.map(|bounds| bounds.beside_a_plan(self.baseline_ns, best.time_ns));
            self.perturbed = perturbed;
            self.doubt = None;
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
    pub(crate) fn dropped(&self) -> Vec<&Trial> {
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

    /// The plans that were timed, to their end or not: how many, in words and without the plain kernel, and how fast they are at most.
    fn timed(&self) -> Option<(String, f64)> {
        let plans = || self.trials.iter().filter(|trial| !trial.plan.is_none());
        let ran: Vec<f64> = plans().filter_map(|trial| Some(trial.measured()?.1)).collect();
        let dropped: Vec<f64> = plans().filter_map(|trial| Some(trial.dropped()?.1)).collect();
        let counted = match (ran.len(), dropped.len()) {
            (ran, 0) => format!("{ran} that ran"),
            (0, dropped) => format!("{dropped} that were dropped on the way"),
            (ran, dropped) => format!("{ran} that ran and {dropped} that were dropped on the way"),
        };
        let most = ran.into_iter().chain(dropped).reduce(f64::max)?;
        Some((counted, most))
    }

    /// What supports that no plan is worth it.
    fn against_all(&self) -> String {
        let roof = self.bounds.as_ref().and_then(|bounds| bounds.roofs.first());
        match (self.timed(), roof) {
            (Some((counted, most)), _) => {
                let surely = if most >= THRESHOLD { " for sure" } else { "" };
                format!(
                    "of {counted} none is over {}{surely}",
                    number::speedup(if surely.is_empty() { most } else { THRESHOLD })
                )
            }
            (None, Some(roof)) if self.partial.is_some() => {
                format!("the limit is {}, {}", roof.name, number::duration(roof.least_ns))
            }
            (None, _) => "none applies".to_owned(),
        }
    }

    /// What is known where nothing is decided, and what it would take.
    fn unknown(&self) -> String {
        if let Some(doubt) = &self.doubt {
            return doubt.clone();
        }
        let of = self
            .partial
            .as_ref()
            .map_or(self.trials.len() - 1, |partial| partial.of);
        let mut text = match self.timed() {
            None if of == 0 => match self.unlocking.first() {
                Some(statement) => {
                    format!("No plan may be tried yet: nothing says what one would rest on. {statement}")
                }
                None => "No plan was tried.".to_owned(),
            },
            None => format!("None of {of} plans was timed, so nothing is known of what they gain."),
            Some((counted, most)) => format!(
                "Of {of} plans {counted} are at most {}: too few to tell what the others gain.",
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
        let gain = |speedup: f64, between: Option<(f64, f64)>, time_ns: f64| {
            let between = between.map_or(String::new(), |between| {
                format!(" ({} in nine of ten cases)", number::interval(between))
            });
            let speedup = number::speedup(speedup);
            format!(
                "{speedup} the speed of the plain kernel{between}, {} instead of {plain}.",
                number::duration(time_ns)
            )
        };
        // An answer whose condition is not confirmed is named, and not chosen.
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
                    gain(other.speedup, other.between, other.time_ns)
                )
            }
            (verdict, Some(other), None) if verdict.is_of_geometry() => {
                format!(
                    "As {}: {}",
                    other.geometry,
                    gain(other.speedup, other.between, other.time_ns)
                )
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
            _ if self.best.way.is_usual() => {
                gain(self.best.speedup, self.best.between, self.best.time_ns) + &split
            }
            _ => {
                let gain = gain(self.best.speedup, self.best.between, self.best.time_ns);
                format!("With {}: {gain}{split}", self.best.way)
            }
        }
    }
}

#[cfg(test)]
mod tests;
