//! Between which values a speedup lies, in nine of ten cases.
//!
//! A measured speedup has the spread of the launches in turns. A simulated one has the model's error on plans of the same kind that
//! gained about as much (`recorded`: rounds of launches on GPUs over simulated speedups, so that a GPU's own spread is in it). The error
//! of the sample of work-groups is in that, too: a plan and the plain kernel have the same sample, here as in the record. Only a first
//! look adds an error of its own. A plan that may lose by its interval ([`choose`](super::choose)) is not recommended.

use crate::prefetch::Plan;
use crate::prefetch::plan::StrategyKind;
use crate::tune::bench::{Spread, Timed};

mod recorded;

/// What a simulated speedup is of. The model errs differently on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Copies of the loop's body and no prefetch.
    Unroll,
    /// Values that wait in registers.
    Registers,
    /// Values that plain stores bring to shared memory.
    Shared,
    /// Asynchronous copies to shared memory.
    Async,
    /// Hints to caches.
    Hint,
    /// The kernel without a plan in two launches of its own.
    Launch,
    /// Any plan: for those of which none was recorded.
    Any,
}

impl Kind {
    /// The kind of a plan.
    pub fn of(plan: &Plan) -> Kind {
        let strategy = plan.loads().first().map(|(_, strategy)| strategy.kind());
        match strategy {
            Some(StrategyKind::RollingRegisters | StrategyKind::BatchedRegisters) => Kind::Registers,
            Some(StrategyKind::RollingShared | StrategyKind::BatchedShared) => Kind::Shared,
            Some(StrategyKind::RollingAsync) => Kind::Async,
            Some(StrategyKind::Cache | StrategyKind::Joint | StrategyKind::Bulk) => Kind::Hint,
            None if plan.unroll().is_some() || plan.inner().is_some() => Kind::Unroll,
            None => Kind::Any,
        }
    }

    /// The interval of this simulated speedup. `off` is the part by which it may be off as a first look.
    pub fn around(self, speedup: f64, off: Option<f64>) -> (f64, f64) {
        let [low, _, high] = errors(recorded::ROWS, self, speedup);
        // Two causes that have nothing to do with each other; the speedup itself is always possible.
        let (below, above) = (low.min(1.0).ln(), high.max(1.0).ln());
        let off = off.unwrap_or(0.0).ln_1p();
        (
            speedup * (-below.hypot(off)).exp(),
            speedup * above.hypot(off).exp(),
        )
    }

    /// The speedup that half of those reach that are simulated to have this one.
    pub fn expected(self, speedup: f64) -> f64 {
        let [_, middle, _] = errors(recorded::ROWS, self, speedup);
        speedup * middle
    }
}

/// The recorded errors of a kind from a simulated speedup on: measured speedups over simulated ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The kind.
    pub kind: Kind,
    /// The middle one of the simulated speedups.
    pub at: f64,
    /// Those than which one of twenty is lower, half are lower, and one of twenty is higher.
    pub off: [f64; 3],
}

impl Row {
    const fn new(kind: Kind, at: f64, off: [f64; 3]) -> Row {
        Row { kind, at, off }
    }
}

/// The errors of a kind at a simulated speedup: between two rows, what lies between both, so that a plan that is expected to gain more
/// is not refused beside one that gains less.
pub fn errors(rows: &[Row], kind: Kind, speedup: f64) -> [f64; 3] {
    let of = |kind| rows.iter().filter(move |row| row.kind == kind);
    let kind = if of(kind).next().is_some() {
        kind
    } else {
        Kind::Any
    };
    let below = of(kind).rfind(|row| row.at <= speedup);
    match (below, of(kind).find(|row| row.at > speedup)) {
        (Some(one), Some(other)) => {
            let part = (speedup - one.at) / (other.at - one.at);
            std::array::from_fn(|end| one.off[end] + part * (other.off[end] - one.off[end]))
        }
        (Some(row), None) | (None, Some(row)) => row.off,
        (None, None) => [1.0; 3],
    }
}

/// Where the speedups of a kind's rows begin: plans that are slower, as fast, a little faster, and faster.
pub const FROM: [f64; 4] = [0.0, 0.97, 1.05, 1.3];

/// The interval of a plan's speedup over the plain kernel's by its run; none where nothing tells.
pub(in crate::tune) fn of_plan(plan: &Plan, speedup: f64, timed: &Timed) -> Option<(f64, f64)> {
    match timed.spread {
        _ if plan.is_none() => None,
        Spread::Cut => None,
        Spread::Simulated { off } => Some(Kind::of(plan).around(speedup, off)),
        Spread::Measured { paired } => paired,
    }
}

/// The interval of the product of two speedups that have nothing to do with each other.
pub(in crate::tune) fn product(one: (f64, (f64, f64)), other: (f64, (f64, f64))) -> (f64, f64) {
    let off = |of: fn((f64, f64)) -> f64| {
        let part = |(speedup, between): (f64, (f64, f64))| (of(between) / speedup).ln();
        part(one).hypot(part(other))
    };
    let speedup = one.0 * other.0;
    (
        speedup * (-off(|between| between.0)).exp(),
        speedup * off(|between| between.1).exp(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_kind_and_of_the_sample() {
        let plan = |text: &str| Kind::of(&text.parse().expect("a plan"));
        assert_eq!(plan("unroll:4"), Kind::Unroll);
        assert_eq!(plan("unroll:4,v=rolling-async:4"), Kind::Async);
        assert_eq!(plan("v=batched-shared:4/plain"), Kind::Shared);
        assert_eq!(plan("registers:64"), Kind::Any);
        for kind in [
            Kind::Unroll,
            Kind::Registers,
            Kind::Shared,
            Kind::Async,
            Kind::Hint,
            Kind::Launch,
            Kind::Any,
        ] {
            for speedup in [0.5, 1.0, 1.1, 2.0] {
                let (low, high) = kind.around(speedup, None);
                assert!(
                    low <= speedup && speedup <= high && high > low,
                    "{kind:?} {speedup}: {low} to {high}"
                );
                let (lower, higher) = kind.around(speedup, Some(0.08));
                assert!(
                    lower < low && higher > high,
                    "{kind:?} {speedup}: {lower} to {higher}"
                );
            }
        }
    }
}
