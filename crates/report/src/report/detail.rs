//! The plain kernel and the plan side by side, in a simulated run: why each waits, for which loads, and the timeline of some
//! sub-groups in the middle of the launch.

use serde::{Deserialize, Serialize};

use crate::evidence::{Profile, Timeline};

/// A page's data beyond the search's own numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// The simulated part, in words.
    pub note: String,
    /// Why sub-groups did not issue, the commonest reason of the plain kernel first.
    pub(crate) stalls: Vec<Stalled>,
    /// The loads of the source, those of the plain kernel with the most waiting first.
    pub loads: Vec<Load>,
    /// The activity of some sub-groups of each in the middle of the launch, by the plan's name: windows of the same length.
    pub timelines: Vec<(String, Timeline)>,
    /// The effect of the plan's hints.
    pub hints: Vec<Hint>,
    /// The code of the plain kernel, of the plan, and of the next best few, in this order.
    pub codes: Vec<Code>,
    /// The files that the places of the code lie in, as far as they can be read.
    pub sources: Vec<Source>,
}

/// A kernel's code in several forms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Code {
    /// The plan.
    pub plan: String,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The forms that there are.
    pub listings: Vec<Listing>,
}

/// A kernel's code in one form.
///
/// Each line states its source in its format: the IR by `#1:46:17` at its end, PTX by `.loc 1 46 17` before it, machine code as
/// the IR does. Machine code has the share of waiting before each line, and behind ` ! ` the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// `IR`, `PTX` or `machine code`.
    pub form: String,
    /// The lines.
    pub text: String,
    /// Lines that are not shown: there are too many.
    pub cut: usize,
}

/// Lines of a source file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The file, as the places name it.
    pub file: String,
    /// The number of the first line, from 1.
    pub first: u32,
    /// The lines.
    pub lines: Vec<String>,
}

/// A reason to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stalled {
    /// The sub-groups' activity meanwhile.
    pub reason: String,
    /// As NVIDIA's profilers call it, or much like it.
    pub profiler: String,
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
    pub(crate) waiting: f64,
    /// The same with the plan.
    pub best: Option<f64>,
}

/// A hint: asked and reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// Where it is in the source.
    pub place: String,
    /// The request.
    pub asked: String,
    /// The level that was reached, or `nothing`.
    pub reached: String,
    /// The instruction that reaches it.
    pub by: String,
}

impl Detail {
    /// Of the runs of the plain kernel and of the one with the plan.
    pub fn of(plain: &Profile, other: Option<&Profile>) -> Detail {
        let stalled = |own: &crate::evidence::Stall| Stalled {
            reason: own.reason.words().to_owned(),
            profiler: own.reason.name().to_owned(),
            plain: own.share,
            best: other.map(|other| other.share(own.reason)),
        };
        let load = |own: &crate::evidence::LoadTime| Load {
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
