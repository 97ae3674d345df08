//! Launch settings of Intel GPUs beside the plan (sub-group size, register file, work-group size) and the gain of each, alone
//! and with the plan.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::number::{duration, speedup};
use crate::prefetch::Plan;

/// A way to compile and launch a kernel: its differences from the usual one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaunchSettings {
    /// Work-items of a sub-group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_group: Option<u32>,
    /// Whether each sub-group has twice the registers, and a core half as many sub-groups.
    #[serde(default, skip_serializing_if = "is_false")]
    pub large_registers: bool,
    /// Work-items of a work-group; the launch has the same in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

// The signature that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !value
}

/// A kernel's time in one of the ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingsTrial {
    /// The way.
    #[serde(flatten)]
    pub way: LaunchSettings,
    /// The plan; `none` for the plain kernel.
    pub plan: Plan,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The time of the plain kernel as it was launched divided by its time.
    pub speedup: f64,
}

/// The settings tried beside the plans, and their results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ways {
    /// Every way with the plans that were timed in it, the usual one first.
    pub trials: Vec<SettingsTrial>,
    /// The way and the plan to use, where a way gains by enough over the plan alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<SettingsTrial>,
    /// The settings not tried, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl LaunchSettings {
    /// Whether nothing differs.
    pub fn is_usual(&self) -> bool {
        *self == LaunchSettings::default()
    }

    /// How much differs.
    pub fn changes(&self) -> usize {
        usize::from(self.sub_group.is_some())
            + usize::from(self.large_registers)
            + usize::from(self.group.is_some())
    }

    /// Both changes at once; where both change the same, `other` wins.
    #[must_use]
    pub fn and(self, other: LaunchSettings) -> LaunchSettings {
        LaunchSettings {
            sub_group: other.sub_group.or(self.sub_group),
            large_registers: self.large_registers || other.large_registers,
            group: other.group.or(self.group),
        }
    }

    /// How it is asked for, a sentence for each change.
    pub(crate) fn how(&self) -> Vec<String> {
        let mut how = Vec::new();
        if let Some(size) = self.sub_group {
            how.push(format!(
                "sub-groups of {size}: `[[sycl::reqd_sub_group_size({size})]]` in SYCL, \
                 `__attribute__((intel_reqd_sub_group_size({size})))` in OpenCL C, `#[kernel(sub_group = {size})]` in Rust"
            ));
        }
        if self.large_registers {
            how.push(
                "the large register file: `-ftarget-register-alloc-mode=pvc:large` for DPC++, `-cl-intel-256-GRF-per-thread` \
                 among OpenCL's build options, `-ze-opt-large-register-file` among Level Zero's"
                    .to_owned(),
            );
        }
        if let Some(size) = self.group {
            how.push(format!(
                "work-groups of {size}: the local range of the launch, with the same global range"
            ));
        }
        how
    }
}

impl fmt::Display for LaunchSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.sub_group.map(|size| format!("sub-groups of {size}")),
            self.large_registers.then(|| "the large register file".to_owned()),
            self.group.map(|size| format!("work-groups of {size}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.split_last() {
            None => f.write_str("as launched"),
            Some((last, [])) => f.write_str(last),
            Some((last, others)) => write!(f, "{} and {last}", others.join(", ")),
        }
    }
}

impl Ways {
    /// The speedup of a way with a plan, if it was timed.
    pub fn speedup(&self, way: LaunchSettings, plan: &Plan) -> Option<f64> {
        self.trials
            .iter()
            .find(|trial| trial.way == way && trial.plan == *plan)
            .map(|trial| trial.speedup)
    }

    /// The ways in the order in which they were tried.
    pub fn ways(&self) -> Vec<LaunchSettings> {
        let mut ways: Vec<LaunchSettings> = Vec::new();
        for trial in &self.trials {
            if !ways.contains(&trial.way) {
                ways.push(trial.way);
            }
        }
        ways
    }

    /// The gain of each setting alone and with the plan chosen for the usual one, and the best combination: a sentence or more;
    /// none if no setting was tried.
    pub(crate) fn reason(&self, plan: &Plan) -> Option<String> {
        let list = |plan: &Plan, changes: &dyn Fn(usize) -> bool, word: &str| -> Vec<String> {
            let own = self.trials.iter().filter(|trial| trial.plan == *plan);
            let own = own.filter(|trial| changes(trial.way.changes()));
            own.map(|trial| format!("{}{word} {}", trial.way, speedup(trial.speedup)))
                .collect()
        };
        let alone = list(&Plan::none(), &|changes| changes == 1, " alone");
        if alone.is_empty() {
            return None;
        }
        let mut reason = format!("Beside the plan: {}", alone.join("; "));
        if !plan.is_none() {
            let usual = self.speedup(LaunchSettings::default(), plan);
            let usual = usual.map_or(String::new(), |usual| format!(" {} as launched,", speedup(usual)));
            let with = list(plan, &|changes| changes > 0, "");
            reason.push_str(&format!("; with `{plan}`{usual} {}", with.join(", ")));
        }
        reason.push('.');
        match &self.best {
            None => reason.push_str(" None of them is worth it."),
            Some(best) if best.plan.is_none() => reason.push_str(&format!(
                " The best of these is the plain kernel with {}: {}.",
                best.way,
                speedup(best.speedup)
            )),
            Some(best) => reason.push_str(&format!(
                " The best of these is {} with `{}`: {}.",
                best.way,
                best.plan,
                speedup(best.speedup)
            )),
        }
        Some(reason)
    }

    /// The meaning of the best setting, as a sentence with its numbers.
    pub(crate) fn conclusion(&self) -> Option<String> {
        let best = self.best.as_ref()?;
        let with = match best.plan.is_none() {
            true => "without a plan".to_owned(),
            false => format!("with `{}`", best.plan),
        };
        Some(format!(
            "With {}, {with}: {}, {}.",
            best.way,
            speedup(best.speedup),
            duration(best.time_ns)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(way: LaunchSettings, plan: &str, factor: f64) -> SettingsTrial {
        SettingsTrial {
            way,
            plan: plan.parse().expect("a plan"),
            time_ns: 1000.0 / factor,
            speedup: factor,
        }
    }

    fn sample() -> Ways {
        let narrow = LaunchSettings {
            sub_group: Some(16),
            ..LaunchSettings::default()
        };
        let large = LaunchSettings {
            large_registers: true,
            ..LaunchSettings::default()
        };
        let trials = vec![
            trial(LaunchSettings::default(), "none", 1.0),
            trial(LaunchSettings::default(), "unroll:16", 4.0),
            trial(narrow, "none", 1.12),
            trial(narrow, "unroll:16", 5.0),
            trial(large, "none", 1.05),
            trial(large, "unroll:16", 4.5),
            trial(narrow.and(large), "unroll:16", 6.0),
        ];
        Ways {
            best: trials.last().cloned(),
            trials,
            left_out: vec!["work-groups of other sizes: the kernel requires 256".to_owned()],
        }
    }

    #[test]
    fn what_gives_what_is_said_apart() {
        let plan: Plan = "unroll:16".parse().expect("a plan");
        assert_eq!(
            sample().reason(&plan).as_deref(),
            Some(
                "Beside the plan: sub-groups of 16 alone 1.12×; the large register file alone 1.05×; with `unroll:16` 4.00× \
                 as launched, sub-groups of 16 5.00×, the large register file 4.50×, sub-groups of 16 and the large register \
                 file 6.00×. The best of these is sub-groups of 16 and the large register file with `unroll:16`: 6.00×."
            )
        );
        assert_eq!(Ways::default().reason(&plan), None);
    }

    #[test]
    fn it_is_read_back_as_it_was_written() {
        let text = serde_json::to_string(&sample()).expect("data");
        assert!(
            text.contains(r#"{"sub_group":16,"large_registers":true,"plan":"unroll:16""#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Ways>(&text).expect("read back"), sample());
    }
}
