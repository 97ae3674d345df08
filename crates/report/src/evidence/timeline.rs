//! Where the time of some sub-groups goes, in the middle of a work-group's life, iteration by iteration.

use serde::{Deserialize, Serialize};

use crate::device::sim::timer::{Issue, LaunchTime, StallReason, Watch};
use crate::model::DeviceModel;

/// Moments that are kept: more cannot be told apart in a picture.
const MOMENTS: usize = 2000;

/// A sub-group's activity.
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
    pub(crate) const ALL: [Doing; 3] = [Doing::Computes, Doing::WaitsForMemory, Doing::WaitsOtherwise];

    /// In words.
    pub(crate) fn name(self) -> &'static str {
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
    /// The activity.
    pub(crate) doing: Doing,
    /// From when, in nanoseconds from the start of the window.
    pub(crate) from_ns: f64,
    /// Until when.
    pub(crate) to_ns: f64,
}

/// One sub-group's activity in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Strip {
    /// Without gaps, in order.
    pub(crate) moments: Vec<Moment>,
    /// When each pass through a loop begins, in nanoseconds from the start of the window: where it jumps back.
    pub iterations: Vec<f64>,
}

/// The activity of some sub-groups of a core in a window of the launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// When the window begins, in nanoseconds from the start of the launch.
    pub(crate) from_ns: f64,
    /// Its length.
    pub(crate) length_ns: f64,
    /// How long the work-group lives in whose middle it lies.
    pub(crate) life_ns: f64,
    /// A strip for each sub-group that was there.
    pub(crate) strips: Vec<Strip>,
}

impl Timeline {
    /// Of the sub-groups that were watched; none where none was there.
    pub fn of(model: &DeviceModel, watch: &Watch, time: &LaunchTime) -> Option<Timeline> {
        let strips = time
            .watched
            .iter()
            .map(|issues| Strip::of(model, watch, issues))
            .filter(|strip| !strip.moments.is_empty())
            .collect::<Vec<_>>();
        let life = time
            .lives
            .iter()
            .find(|(from, to)| (*from..*to).contains(&watch.from));
        (!strips.is_empty()).then(|| Timeline {
            from_ns: model.nanoseconds(watch.from as f64),
            length_ns: model.nanoseconds((watch.to - watch.from) as f64),
            life_ns: life.map_or(0.0, |(from, to)| model.nanoseconds((to - from) as f64)),
            strips,
        })
    }

    /// Share of the window in which its sub-groups do this, 0 to 1.
    pub(crate) fn share(&self, doing: Doing) -> f64 {
        let all: f64 = self
            .strips
            .iter()
            .map(|strip| strip.share(doing, 0.0, self.length_ns))
            .sum();
        all / self.strips.len().max(1) as f64
    }
}

impl Strip {
    fn of(model: &DeviceModel, watch: &Watch, issues: &[Issue]) -> Strip {
        // Intervals are clipped to the window.
        let nanoseconds =
            |cycle: u64| model.nanoseconds((cycle.clamp(watch.from, watch.to) - watch.from) as f64);
        let mut strip = Strip::default();
        let mut last = 0;
        for issue in issues {
            if strip.moments.len() >= MOMENTS {
                break;
            }
            if issue.instruction < last && issue.since > watch.from {
                strip.iterations.push(nanoseconds(issue.since));
            }
            last = issue.instruction;
            let parts = [
                (Doing::of(issue.reason), issue.since, issue.held),
                (Doing::WaitsOtherwise, issue.held, issue.at),
                (Doing::Computes, issue.at, issue.at + 1),
            ];
            for (doing, from, to) in parts {
                let (from_ns, to_ns) = (nanoseconds(from), nanoseconds(to));
                if to_ns <= from_ns {
                    continue;
                }
                match strip.moments.last_mut().filter(|last| last.doing == doing) {
                    Some(last) => last.to_ns = to_ns,
                    None => strip.moments.push(Moment {
                        doing,
                        from_ns,
                        to_ns,
                    }),
                }
            }
        }
        strip
    }

    /// Share of a stretch of time in which it does this, 0 to 1.
    pub(crate) fn share(&self, doing: Doing, from_ns: f64, to_ns: f64) -> f64 {
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
    use crate::model::built_in;

    #[test]
    fn a_jump_back_begins_an_iteration_and_the_window_cuts_what_reaches_beyond_it() {
        let model = built_in("h200", &[]).expect("a model");
        let issue = |instruction, since, held, at, reason| Issue {
            instruction,
            since,
            held,
            at,
            reason,
        };
        let issues = [
            issue(0, 10, 10, 10, StallReason::Wait),
            issue(1, 11, 611, 613, StallReason::LongScoreboard),
            issue(0, 614, 618, 618, StallReason::Wait),
            issue(1, 619, 1219, 1219, StallReason::LongScoreboard),
        ];
        let watch = Watch {
            from: 111,
            to: 719,
            sub_groups: 1,
        };
        let strip = Strip::of(&model, &watch, &issues[1..]);
        let doing: Vec<(Doing, f64, f64)> = strip
            .moments
            .iter()
            .map(|moment| (moment.doing, moment.from_ns, moment.to_ns))
            .collect();
        let ns = |cycles: f64| model.nanoseconds(cycles);
        assert_eq!(
            doing,
            [
                (Doing::WaitsForMemory, 0.0, ns(500.0)),
                (Doing::WaitsOtherwise, ns(500.0), ns(502.0)),
                (Doing::Computes, ns(502.0), ns(508.0)),
                (Doing::WaitsForMemory, ns(508.0), ns(608.0)),
            ]
        );
        assert_eq!(strip.iterations, [ns(503.0)]);
        let all: f64 = Doing::ALL
            .iter()
            .map(|&doing| strip.share(doing, 0.0, ns(608.0)))
            .sum();
        assert!((all - 1.0).abs() < 1e-9);
        assert_eq!(Strip::of(&model, &watch, &[]), Strip::default());
    }
}
