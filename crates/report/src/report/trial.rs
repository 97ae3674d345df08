//! One plan that was tried, and its outcome.

use serde::{Deserialize, Serialize};

use super::{Taken, Violation};
use crate::prefetch::Plan;

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
    /// Between which values the speedup lies, in nine of ten cases; none where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, f64)>,
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
    #[doc(hidden)]
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
