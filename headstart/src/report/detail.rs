//! The plain kernel and the plan side by side, as a simulated run sees them: why each waits, for which loads, and what some
//! sub-groups do in the middle of the launch.

use serde::{Deserialize, Serialize};

use crate::advise::{Profile, Timeline};

/// What a page shows beyond the search's own numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// What was simulated, in words.
    pub note: String,
    /// Why sub-groups did not issue, the commonest reason of the plain kernel first.
    pub stalls: Vec<Stalled>,
    /// The loads of the source, those of the plain kernel with the most waiting first.
    pub loads: Vec<Load>,
    /// What some sub-groups of each do in the middle of the launch, by the plan's name: windows of the same length.
    pub timelines: Vec<(String, Timeline)>,
    /// What became of the plan's hints.
    pub hints: Vec<Hint>,
    /// The kernel with the plan carried out, in the IR's text form; empty where it is the plain one.
    pub source: String,
}

/// A reason to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stalled {
    /// As a profiler calls it.
    pub reason: String,
    /// Share of the resident sub-groups' time, 0 to 1, of the plain kernel.
    pub plain: f64,
    /// The same with the plan.
    pub best: Option<f64>,
}

/// A load of the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The parameter that it reads.
    pub name: String,
    /// Where it is written.
    pub place: String,
    /// Cache lines that one access of a sub-group touches, on average.
    pub lines: f64,
    /// Bytes that device memory delivers for each that a work-item asks for.
    pub fetched: f64,
    /// Share of all waiting for loads that is for its values, 0 to 1, of the plain kernel.
    pub waiting: f64,
    /// The same with the plan.
    pub best: Option<f64>,
}

/// A hint: asked and reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// Where it is in the source.
    pub place: String,
    /// What was asked for.
    pub asked: String,
    /// The level that was reached, or `nothing`.
    pub reached: String,
    /// The instruction that reaches it.
    pub by: String,
}

impl Detail {
    /// Of the runs of the plain kernel and of the one with the plan.
    pub fn of(plain: &Profile, other: Option<&Profile>) -> Detail {
        let stalled = |own: &crate::advise::Stall| Stalled {
            reason: own.reason.name().to_owned(),
            plain: own.share,
            best: other.map(|other| other.share(own.reason)),
        };
        let load = |own: &crate::advise::LoadTime| Load {
            name: own.name.clone(),
            place: own.place.clone(),
            lines: own.lines,
            fetched: own.fetched,
            waiting: own.waiting,
            best: other.map(|other| {
                let same = other
                    .loads
                    .iter()
                    .filter(|load| load.place == own.place && load.name == own.name);
                same.map(|load| load.waiting).sum()
            }),
        };
        Detail {
            stalls: plain.stalls.iter().map(stalled).collect(),
            loads: plain.loads.iter().map(load).collect(),
            ..Detail::default()
        }
    }
}
