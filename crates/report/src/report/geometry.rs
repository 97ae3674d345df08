//! How a kernel is launched, and what the same work takes in other geometries.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Perturbed;
use crate::number;
use crate::prefetch::Plan;

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
    /// Between which values the speedup lies, in nine of ten cases; none where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, f64)>,
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
    /// Between which values the speedup lies, in nine of ten cases; none where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, f64)>,
    /// The further launches on which it was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perturbed: Option<Perturbed>,
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
