//! Where the time of one sub-group goes, from its start, iteration by iteration.

use serde::{Deserialize, Serialize};

use crate::device::model::DeviceModel;
use crate::device::sim::timer::{Issue, StallReason};

/// Moments that are kept: more cannot be told apart in a picture.
const MOMENTS: usize = 600;

/// What a sub-group does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// It issues instructions, or waits for results that take a fixed few cycles.
    Computes,
    /// It waits for a load from global memory, or for an asynchronous copy.
    WaitsForMemory,
    /// It waits for something else: a unit, the barrier, its code, other sub-groups.
    WaitsOtherwise,
}

impl Doing {
    /// All of them, in the order of legends.
    pub const ALL: [Doing; 3] = [Doing::Computes, Doing::WaitsForMemory, Doing::WaitsOtherwise];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Doing::Computes => "computes",
            Doing::WaitsForMemory => "waits for loads",
            Doing::WaitsOtherwise => "waits for something else",
        }
    }

    fn of(reason: StallReason) -> Doing {
        match reason {
            StallReason::LongScoreboard | StallReason::AsyncCopy => Doing::WaitsForMemory,
            StallReason::Wait | StallReason::ShortScoreboard | StallReason::BranchResolving => {
                Doing::Computes
            }
            _ => Doing::WaitsOtherwise,
        }
    }
}

/// A stretch of time in which a sub-group does one thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// What.
    pub doing: Doing,
    /// From when, in nanoseconds from its start.
    pub from_ns: f64,
    /// Until when.
    pub to_ns: f64,
}

/// The beginning of a sub-group's life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Without gaps, in order.
    pub moments: Vec<Moment>,
    /// When each pass through the loop begins, in nanoseconds from the start: where it jumps back.
    pub iterations: Vec<f64>,
}

impl Timeline {
    /// Of a sub-group that was followed; none where it did nothing.
    pub fn of(model: &DeviceModel, followed: &[Issue]) -> Option<Timeline> {
        let start = followed.first()?.since;
        let nanoseconds = |cycle: u64| model.nanoseconds(cycle.saturating_sub(start) as f64);
        let mut moments: Vec<Moment> = Vec::new();
        let mut iterations = Vec::new();
        let mut last = 0;
        for issue in followed {
            if moments.len() >= MOMENTS {
                break;
            }
            if issue.instruction < last {
                iterations.push(nanoseconds(issue.since));
            }
            last = issue.instruction;
            let parts = [
                (Doing::of(issue.reason), issue.since, issue.held),
                (Doing::WaitsOtherwise, issue.held, issue.at),
                (Doing::Computes, issue.at, issue.at + 1),
            ];
            for (doing, from, to) in parts.into_iter().filter(|(_, from, to)| to > from) {
                let (from_ns, to_ns) = (nanoseconds(from), nanoseconds(to));
                match moments.last_mut().filter(|last| last.doing == doing) {
                    Some(last) => last.to_ns = to_ns,
                    None => moments.push(Moment {
                        doing,
                        from_ns,
                        to_ns,
                    }),
                }
            }
        }
        Some(Timeline { moments, iterations })
    }

    /// When it ends, in nanoseconds from the start.
    pub fn end_ns(&self) -> f64 {
        self.moments.last().map_or(0.0, |last| last.to_ns)
    }

    /// The part that begins before this.
    pub fn until(&self, end_ns: f64) -> Timeline {
        let moments = self.moments.iter().filter(|moment| moment.from_ns < end_ns);
        Timeline {
            moments: moments
                .map(|moment| Moment {
                    to_ns: moment.to_ns.min(end_ns),
                    ..*moment
                })
                .collect(),
            iterations: self
                .iterations
                .iter()
                .copied()
                .filter(|&at| at < end_ns)
                .collect(),
        }
    }

    /// Share of a stretch of time in which it does this, 0 to 1.
    pub fn share(&self, doing: Doing, from_ns: f64, to_ns: f64) -> f64 {
        let own = self.moments.iter().filter(|moment| moment.doing == doing);
        let time: f64 = own
            .map(|moment| (moment.to_ns.min(to_ns) - moment.from_ns.max(from_ns)).max(0.0))
            .sum();
        if to_ns > from_ns {
            time / (to_ns - from_ns)
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::model::built_in;

    #[test]
    fn a_jump_back_begins_an_iteration_and_no_time_is_lost() {
        let model = built_in("h200", &[]).expect("a model");
        let issue = |instruction, since, held, at, reason| Issue {
            instruction,
            since,
            held,
            at,
            reason,
        };
        let followed = [
            issue(0, 10, 10, 10, StallReason::Wait),
            issue(1, 11, 611, 613, StallReason::LongScoreboard),
            issue(0, 614, 618, 618, StallReason::Wait),
        ];
        let timeline = Timeline::of(&model, &followed).expect("it did something");
        let doing: Vec<Doing> = timeline.moments.iter().map(|moment| moment.doing).collect();
        assert_eq!(
            doing,
            [
                Doing::Computes,
                Doing::WaitsForMemory,
                Doing::WaitsOtherwise,
                Doing::Computes
            ]
        );
        assert_eq!(timeline.iterations, [model.nanoseconds(604.0)]);
        let end = timeline.end_ns();
        assert_eq!(end, model.nanoseconds(609.0));
        let all: f64 = Doing::ALL
            .iter()
            .map(|&doing| timeline.share(doing, 0.0, end))
            .sum();
        assert!((all - 1.0).abs() < 1e-9);
        assert!(timeline.until(end / 2.0).end_ns() <= end / 2.0);
        assert_eq!(Timeline::of(&model, &[]), None);
    }
}
