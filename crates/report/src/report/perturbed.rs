//! The launches on which a plan agreed with the plain kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::broken_rule;

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
                others => {
                    format!("; {others} more have sizes that the plan is not for, and would run the original")
                }
            };
            sentences.push(format!(
                "On {all} small launches with other scalars, data and sizes (seed {seed}) the plan left the same bits as the plain \
                 kernel in {same}{others}."
            ));
        }
        match (launches, dropped) {
            (0, 0) => sentences.push(format!("The plan was checked on no other launch (seed {seed}).")),
            (0, _) => sentences.push(format!(
                "The plan was checked on no other launch: of {dropped} generated test launches (seed {seed}) all were thrown away, \
                 because the original kernel itself failed on them{rules}."
            )),
            (_, 0) => {}
            _ => sentences.push(format!(
                "{dropped} more generated test launches were thrown away, because the original kernel itself failed on them{rules}."
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
        sentences
    }

    /// Why these launches prove little; none where they covered everything.
    pub fn weakness(&self) -> Option<String> {
        let weakly = self.weakly_checked.join("; ");
        (!weakly.is_empty()).then(|| format!("The check on other launches proves little: {weakly}."))
    }
}
