//! Which plans to measure if only a few can be: the simulator proposes, the device decides.
//!
//! The first plans to be measured are the best of their kinds by the simulator's times. A measured plan's simulator error is
//! then applied to similar plans, weighted by similarity, and the plans that look fastest after that are measured next.
//!
//! ```
//! use headstart::tune::Proposals;
//!
//! let predicted = [("unroll:4", 1.5), ("v=rolling-async:4", 2.0), ("v=rolling-async:8", 2.1)];
//! let plans = predicted.map(|(plan, speedup)| (plan.parse().expect("a plan"), speedup));
//! let mut proposals = Proposals::new(plans.to_vec());
//! // One of each kind, the fastest first.
//! assert_eq!(proposals.next(2), [2, 0]);
//! proposals.learn(2, Some(1.0));
//! proposals.learn(0, Some(1.5));
//! assert_eq!(proposals.next(2), [1]);
//! ```

use crate::prefetch::Plan;
use crate::prefetch::plan::{CacheLevel, Layout, Strategy, Unroll};

/// The default number of measured plans.
pub const MEASURED: usize = 12;

/// How many of them are measured at a time: few enough to learn from, enough to share the plain kernel's launches.
pub const BATCH: usize = 4;

/// How much the simulator is believed against one measured plan of the same kind.
const TRUST: f64 = 0.3;

/// A search among plans whose times are predicted.
#[derive(Clone, Debug)]
pub struct Proposals {
    plans: Vec<Proposal>,
}

#[derive(Clone, Debug)]
struct Proposal {
    features: PlanFeatures,
    /// Predicted speedup; 0 where there is none.
    predicted: f64,
    /// Whether it was asked for.
    is_known: bool,
    /// Logarithm of measured over predicted speedup.
    error: Option<f64>,
}

/// The similarity of plans.
#[derive(Clone, Debug, PartialEq)]
struct PlanFeatures {
    /// Iterations in a group.
    group: u32,
    /// The registers that the compiler may use.
    registers: Option<u32>,
    /// How the first of its loads is fetched.
    kind: Option<(&'static str, Option<CacheLevel>)>,
    /// How many loads it names.
    loads: usize,
    distance: u32,
    layout: Option<Layout>,
}

impl PlanFeatures {
    fn of(plan: &Plan) -> PlanFeatures {
        let first = plan.loads().first().map(|(_, strategy)| *strategy);
        PlanFeatures {
            group: match plan.unroll() {
                None => 1,
                Some(Unroll::By(count)) => count.get(),
                Some(Unroll::Full) => u32::MAX,
            },
            registers: plan.registers(),
            kind: first.map(|strategy| (strategy.name(), strategy.level())),
            loads: plan.loads().len(),
            distance: first.map_or(0, |strategy| strategy.distance().get()),
            layout: first.and_then(Strategy::layout),
        }
    }

    /// Whether the code stays as it is.
    fn leaves_code(&self) -> bool {
        self.kind.is_none() && self.group == 1
    }

    /// Whether two plans do the same in other numbers.
    fn is_kind_of(&self, other: &PlanFeatures) -> bool {
        self.kind == other.kind && (self.group > 1) == (other.group > 1)
    }

    /// How unlike two plans are: 0 for the same, about 1 for a doubling of group and distance, more for another strategy.
    fn unlike(&self, other: &PlanFeatures) -> f64 {
        let doublings =
            |one: u32, other: u32| (f64::from(one.max(1)).log2() - f64::from(other.max(1)).log2()).abs();
        let mut unlike = 0.5 * doublings(self.group, other.group);
        if self.kind != other.kind {
            unlike += 1.5;
        }
        if self.registers != other.registers {
            unlike += 0.5;
        }
        if self.layout != other.layout || self.loads != other.loads {
            unlike += 0.5;
        }
        if (self.group > 1) != (other.group > 1) {
            unlike += 1.0;
        }
        if self.distance > 0 && other.distance > 0 {
            unlike += 0.5 * doublings(self.distance, other.distance);
        }
        unlike
    }
}

impl Proposals {
    /// Plans with their predicted speedups; 0 where nothing is predicted.
    pub fn new(predicted: Vec<(Plan, f64)>) -> Proposals {
        let proposal = |(plan, predicted): (Plan, f64)| Proposal {
            features: PlanFeatures::of(&plan),
            predicted: predicted.max(0.0),
            is_known: false,
            error: None,
        };
        Proposals {
            plans: predicted.into_iter().map(proposal).collect(),
        }
    }

    /// The plans to measure next, at most so many; none when all are known.
    pub fn next(&self, count: usize) -> Vec<usize> {
        let nothing_is_known = self.plans.iter().all(|plan| !plan.is_known);
        let mut order: Vec<(usize, f64)> = self
            .plans
            .iter()
            .enumerate()
            .filter(|(_, plan)| !plan.is_known)
            .map(|(index, plan)| (index, self.expected(plan)))
            .collect();
        // A stable order: of equal ones the first.
        order.sort_by(|one, other| other.1.total_cmp(&one.1));
        if nothing_is_known {
            // The cheapest answer is measured in any case. The simulator sees little of it: where a number of registers made 14
            // kernels of `corpus/` 1.12 to 2.61 times as fast, it predicts less than 1.05 for nine of them.
            order.sort_by_key(|&(index, _)| !self.plans[index].features.leaves_code());
        }
        let mut chosen: Vec<usize> = Vec::new();
        for &(index, _) in &order {
            let features = &self.plans[index].features;
            let is_new = || {
                chosen
                    .iter()
                    .all(|&other| !self.plans[other].features.is_kind_of(features))
            };
            if chosen.len() < count && (!nothing_is_known || is_new()) {
                chosen.push(index);
            }
        }
        chosen
    }

    /// The outcome of a plan: its speedup, or that it cannot be run.
    pub fn learn(&mut self, index: usize, measured: Option<f64>) {
        let Some(plan) = self.plans.get_mut(index) else {
            return;
        };
        plan.is_known = true;
        plan.error = measured
            .filter(|measured| *measured > 0.0 && plan.predicted > 0.0)
            .map(|measured| (measured / plan.predicted).ln());
    }

    /// The speedup that is expected after all that is known.
    fn expected(&self, plan: &Proposal) -> f64 {
        let (mut sum, mut weights) = (0.0, TRUST);
        for known in &self.plans {
            if let Some(error) = known.error {
                let weight = (-known.features.unlike(&plan.features)).exp();
                sum += weight * error;
                weights += weight;
            }
        }
        plan.predicted * (sum / weights).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(predicted: &[(&str, f64)]) -> Proposals {
        let parsed = predicted
            .iter()
            .map(|&(plan, speedup)| (plan.parse().expect("a plan"), speedup));
        Proposals::new(parsed.collect())
    }

    #[test]
    fn every_plan_is_proposed_once() {
        let mut proposals = plans(&[
            ("unroll:4", 2.0),
            ("unroll:8", 1.0),
            ("v=cache:L2:1", 0.0),
            ("v=cache:L1:1", 0.5),
        ]);
        let mut seen = Vec::new();
        loop {
            let next = proposals.next(2);
            if next.is_empty() {
                break;
            }
            for index in next {
                proposals.learn(index, Some(1.0));
                seen.push(index);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3]);
    }

    /// Rings in shared memory are promised too much, rings of registers too little.
    #[test]
    fn what_a_plan_shows_is_believed_of_its_kind() {
        let mut proposals = plans(&[
            ("v=rolling-async:4", 3.0),
            ("v=rolling-async:8", 2.9),
            ("v=rolling-registers:4", 2.0),
            ("v=rolling-registers:8", 1.9),
        ]);
        assert_eq!(proposals.next(2), [0, 2]);
        proposals.learn(0, Some(1.0));
        proposals.learn(2, Some(2.4));
        assert_eq!(proposals.next(1), [3]);
    }

    #[test]
    fn more_registers_alone_are_measured_in_any_case() {
        let proposals = plans(&[
            ("unroll:4,registers:128", 2.0),
            ("registers:128", 1.0),
            ("registers:128,v=rolling-async:8", 2.9),
        ]);
        assert_eq!(proposals.next(2), [1, 2]);
    }

    #[test]
    fn what_cannot_be_run_teaches_nothing() {
        let mut proposals = plans(&[("v=rolling-async:4", 3.0), ("v=rolling-async:8", 2.9)]);
        proposals.learn(0, None);
        assert_eq!(proposals.next(4), [1]);
    }
}
