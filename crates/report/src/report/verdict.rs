//! The recommendation: a verdict, and the plan to use.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::LaunchSettings;
use crate::prefetch::Plan;

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
    /// Between which values the speedup lies, in nine of ten cases; none where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, f64)>,
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

impl Verdict {
    /// The verdict that advises a plan.
    #[doc(hidden)]
    pub fn of(plan: &Plan) -> Verdict {
        match (plan.is_none(), plan.leaves_code(), plan.loads().is_empty()) {
            (true, ..) => Verdict::LeaveIt,
            (_, true, _) => Verdict::MoreRegisters,
            (.., true) => Verdict::Unroll,
            _ => Verdict::Prefetch,
        }
    }

    /// The verdict that advises to launch the same work in this many work-groups instead of others.
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
