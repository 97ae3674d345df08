//! Which plans to measure if only a few can be: those that are likely to help, and then those like the fastest.
//!
//! Nothing is simulated. The first plans to be measured are one of each family, the likely ones first. What is measured of a plan is
//! then believed of similar plans, weighted by similarity, and the plans that look fastest after that are measured next. Of
//! 59 launches of which all 111 plans were measured on an H200 and on an H100 (`results/accuracy-h200.json`), twenty plans
//! chosen so contain one that is at most 0.6 % slower than the fastest of all.
//!
//! ```
//! use headstart::tune::Proposals;
//!
//! let plans = ["unroll:4", "v=rolling-async:4", "v=rolling-async:8"];
//! let plans = plans.map(|plan| plan.parse().expect("a plan"));
//! // The last one is likely to help.
//! let mut proposals = Proposals::new(&plans, &plans[2..]);
//! // One of each family.
//! assert_eq!(proposals.next(2), [2, 0]);
//! proposals.learn(2, Some(1.0));
//! proposals.learn(0, Some(1.5));
//! assert_eq!(proposals.next(2), [1]);
//! ```

use std::collections::HashSet;

use super::race;
use crate::prefetch::Plan;
use crate::prefetch::plan::{CacheLevel, Layout, LoadName, Strategy, Unroll};

/// The default number of measured plans.
pub const MEASURED: usize = 28;

/// How many of them are measured at a time: few enough to learn from, enough to share the plain kernel's launches.
pub const BATCH: usize = 4;

/// How many of them are measured first, where as many processors compile them: one of each family, from which the search learns.
pub(crate) const FIRST: usize = 8;

/// How much the first guess is believed against one measured plan of the same kind: it orders plans of which nothing is known.
const TRUST: f64 = 0.1;

/// The speedup that is expected of a likely plan, and how much more of one with twice as many iterations on their way, since a
/// kernel that is worth a search waits. Of others none is expected. Only the order matters.
const LIKELY: f64 = 1.1;
const A_DOUBLING: f64 = 0.01;

/// The distance, or the group of unrolling alone, at which a strategy of which nothing is known is tried, in iterations.
const MIDDLE: f64 = 8.0;

/// The rings that are filled one load an iteration.
const RINGS: [&str; 2] = ["rolling-registers", "rolling-async"];

/// A search among plans of which a few are measured.
#[derive(Clone, Debug)]
pub struct Proposals {
    plans: Vec<Proposal>,
}

#[derive(Clone, Debug)]
struct Proposal {
    features: PlanFeatures,
    /// The loads that it names.
    loads: Vec<LoadName>,
    /// The first guess at its speedup.
    guess: f64,
    fate: Fate,
}

/// What became of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Open,
    /// It is not asked for, and says nothing of others.
    LeftOut,
    Refused,
    /// It was measured: the logarithm of its speedup over the guess, if it can be run.
    Measured(Option<f64>),
}

/// The similarity of plans.
#[derive(Clone, Debug, PartialEq)]
struct PlanFeatures {
    /// Iterations of loops inside that are part of the planned one.
    inner: u32,
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
            inner: plan.inner().unwrap_or(0),
            group: match plan.unroll() {
                None => 1,
                // Loads come first, as in the smallest group.
                Some(Unroll::Early) => 2,
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
        self.kind.is_none() && self.group == 1 && self.inner == 0
    }

    /// How many doublings its distance is from the middle one: a strategy at its least distance says little of it.
    fn off_middle(&self) -> f64 {
        match self.distance {
            0 => 0.0,
            distance => (f64::from(distance).log2() - MIDDLE.log2()).abs(),
        }
    }

    /// Whether it is a ring one group of four ahead: the fastest where loops are short.
    fn is_short_ring(&self) -> bool {
        let is_ring = self.kind.is_some_and(|(strategy, _)| RINGS.contains(&strategy));
        is_ring && self.group == 4 && self.distance == 4
    }

    /// Whether two plans do the same in other numbers.
    fn is_kind_of(&self, other: &PlanFeatures) -> bool {
        let grouped = |own: &PlanFeatures| (own.inner > 0, own.group > 1);
        self.kind == other.kind && grouped(self) == grouped(other)
    }

    /// The strategy, or what else it does.
    fn family(&self) -> &'static str {
        match self.kind {
            _ if self.inner > 0 => "inner",
            Some((strategy, _)) => strategy,
            None if self.leaves_code() => "registers",
            None => "unroll",
        }
    }

    /// How unlike two plans are: 0 for the same, about 1 for a doubling of group and distance, more for another strategy.
    fn unlike(&self, other: &PlanFeatures) -> f64 {
        let doublings =
            |one: u32, other: u32| (f64::from(one.max(1)).log2() - f64::from(other.max(1)).log2()).abs();
        let mut unlike = 0.5 * doublings(self.group, other.group);
        if self.inner != other.inner {
            unlike += 1.0;
        }
        if self.kind != other.kind {
            unlike += 1.5;
        }
        if self.registers != other.registers {
            unlike += 1.0;
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

/// Of plans with their speedups, the fastest of this many kinds, the fastest kind first.
pub(in crate::tune) fn fastest_of_kinds(plans: &[(Plan, f64)], count: usize) -> Vec<Plan> {
    let mut fastest: Vec<&(Plan, f64)> = plans.iter().collect();
    fastest.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut chosen: Vec<(PlanFeatures, Plan)> = Vec::new();
    for (plan, _) in fastest {
        let features = PlanFeatures::of(plan);
        if chosen.len() < count && !chosen.iter().any(|(other, _)| other.is_kind_of(&features)) {
            chosen.push((features, plan.clone()));
        }
    }
    chosen.into_iter().map(|(_, plan)| plan).collect()
}

impl Proposal {
    /// Whether it does the same to the same loads in other numbers.
    fn does_same(&self, other: &Proposal) -> bool {
        let (one, two) = (&self.features, &other.features);
        one.is_kind_of(two)
            && (one.registers, one.layout) == (two.registers, two.layout)
            && self.loads == other.loads
    }

    /// Whether it does the same in smaller numbers.
    fn is_smaller(&self, other: &Proposal) -> bool {
        let size = |plan: &Proposal| (plan.features.group, plan.features.distance);
        size(self) < size(other) && self.does_same(other)
    }
}

impl Proposals {
    /// Plans, of which some are likely to help.
    pub fn new(plans: &[Plan], likely: &[Plan]) -> Proposals {
        let likely: HashSet<&Plan> = likely.iter().collect();
        let guess = |plan: &Plan| {
            let doublings = f64::from(race::ahead(plan)).log2();
            // Larger groups take registers, and so work-groups: where these are many, the largest says little of the others.
            let worth = match plan.loads().is_empty() {
                true => MIDDLE.log2() - (doublings - MIDDLE.log2()).abs(),
                false => doublings,
            };
            match likely.contains(plan) || PlanFeatures::of(plan).is_short_ring() {
                true => LIKELY + A_DOUBLING * worth,
                false => 1.0,
            }
        };
        Proposals::guessed(plans.iter().map(|plan| (plan.clone(), guess(plan))))
    }

    /// Plans with the speedups that are expected of them.
    pub(in crate::tune) fn guessed(plans: impl IntoIterator<Item = (Plan, f64)>) -> Proposals {
        let proposal = |(plan, guess): (Plan, f64)| Proposal {
            features: PlanFeatures::of(&plan),
            loads: plan.loads().iter().map(|(name, _)| name.clone()).collect(),
            guess,
            fate: Fate::Open,
        };
        Proposals {
            plans: plans.into_iter().map(proposal).collect(),
        }
    }

    /// The plans to measure next, at most this many; none when all are known.
    pub fn next(&self, count: usize) -> Vec<usize> {
        let mut order: Vec<(usize, f64)> = self
            .plans
            .iter()
            .enumerate()
            .filter(|(_, plan)| plan.fate == Fate::Open && !self.awaits_smaller(plan))
            .map(|(index, plan)| (index, self.expected(plan)))
            .collect();
        // Equal ones: the distance nearest to the middle comes first, then the place in the list.
        order.sort_by(|one, other| {
            let off = |(index, _): &(usize, f64)| self.plans[*index].features.off_middle();
            let by_distance = off(one).total_cmp(&off(other));
            other.1.total_cmp(&one.1).then(by_distance)
        });
        let mut seen: Vec<&'static str> = self
            .plans
            .iter()
            .filter(|plan| matches!(plan.fate, Fate::Measured(_)))
            .map(|plan| plan.features.family())
            .collect();
        if seen.is_empty() {
            // The cheapest answer is measured in any case: a number of registers made 14 kernels of `corpus/` 1.12 to 2.61
            // times as fast.
            order.sort_by_key(|&(index, _)| !self.plans[index].features.leaves_code());
        }
        let mut chosen: Vec<usize> = Vec::new();
        for &(index, _) in &order {
            let family = self.plans[index].features.family();
            if chosen.len() < count && !seen.contains(&family) {
                chosen.push(index);
                seen.push(family);
            }
        }
        let others: Vec<usize> = order.iter().map(|&(index, _)| index).collect();
        let others = others.into_iter().filter(|index| !chosen.contains(index));
        let more: Vec<usize> = others.take(count - chosen.len()).collect();
        chosen.extend(more);
        chosen
    }

    /// A plan was measured: its speedup, or none if it cannot be run.
    pub fn learn(&mut self, index: usize, speedup: Option<f64>) {
        if let Some(plan) = self.plans.get_mut(index) {
            let speedup = speedup.filter(|speedup| *speedup > 0.0);
            plan.fate = Fate::Measured(speedup.map(|speedup| (speedup / plan.guess).ln()));
        }
    }

    /// A plan is not asked for.
    pub(crate) fn leave_out(&mut self, index: usize) {
        if let Some(plan) = self.plans.get_mut(index) {
            plan.fate = Fate::LeftOut;
        }
    }

    /// A plan is illegal: the next of its family has its place. Of those that do the same in other numbers the smallest is next; if
    /// that is illegal, the larger ones are refused with it, which are the result.
    pub(crate) fn refuse(&mut self, index: usize) -> Vec<usize> {
        let Some(plan) = self.plans.get_mut(index) else {
            return Vec::new();
        };
        plan.fate = Fate::Refused;
        let refused = plan.clone();
        let mut smaller = self.plans.iter().filter(|plan| plan.is_smaller(&refused));
        if smaller.any(|plan| plan.fate != Fate::Refused) {
            return Vec::new();
        }
        let is_larger = |plan: &Proposal| plan.fate == Fate::Open && refused.is_smaller(plan);
        let larger = (0..self.plans.len()).filter(|&index| is_larger(&self.plans[index]));
        let larger: Vec<usize> = larger.collect();
        larger
            .iter()
            .for_each(|&index| self.plans[index].fate = Fate::Refused);
        larger
    }

    /// Whether one that does the same in other numbers was illegal, and a smaller one than this is not known yet.
    fn awaits_smaller(&self, plan: &Proposal) -> bool {
        let mut alike = self.plans.iter().filter(|other| other.does_same(plan));
        let is_doubtful = alike.clone().any(|other| other.fate == Fate::Refused);
        is_doubtful && alike.any(|other| other.fate == Fate::Open && other.is_smaller(plan))
    }

    /// The speedup that is expected after all that is known.
    fn expected(&self, plan: &Proposal) -> f64 {
        let (mut sum, mut weights) = (0.0, TRUST);
        for known in &self.plans {
            if let Fate::Measured(Some(error)) = known.fate {
                let weight = (-known.features.unlike(&plan.features)).exp();
                sum += weight * error;
                weights += weight;
            }
        }
        plan.guess * (sum / weights).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(guessed: &[(&str, f64)]) -> Proposals {
        let parsed = guessed
            .iter()
            .map(|&(plan, speedup)| (plan.parse().expect("a plan"), speedup));
        Proposals::guessed(parsed)
    }

    #[test]
    fn every_plan_is_proposed_once() {
        let mut proposals = plans(&[
            ("unroll:4", 2.0),
            ("unroll:8", 1.0),
            ("v=cache:L2:1", 0.4),
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

    /// Rings in shared memory are guessed to gain too much, rings of registers too little.
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
    fn each_family_has_its_turn_whatever_the_others_gain() {
        let mut proposals = plans(&[
            ("v=rolling-async:4", 3.0),
            ("v=rolling-async:8", 2.9),
            ("v=rolling-async:16", 2.8),
            ("unroll:4", 1.0),
            ("v=cache:L2:4", 1.0),
            ("v=cache:L1:4", 0.9),
        ]);
        assert_eq!(proposals.next(2), [0, 3]);
        proposals.learn(0, Some(4.0));
        proposals.learn(3, None);
        // A hint is next, and then the rings that promise most.
        assert_eq!(proposals.next(3), [4, 1, 2]);
        proposals.refuse(4);
        assert_eq!(proposals.next(2), [5, 1], "another of the family has its place");
        proposals.learn(5, Some(1.0));
        assert_eq!(proposals.next(2), [1, 2]);
    }

    #[test]
    fn what_is_illegal_in_the_smallest_numbers_is_not_asked_for_in_larger_ones() {
        let all = [
            ("v=rolling-async:16", 3.0),
            ("v=rolling-async:8", 2.9),
            ("v=rolling-async:2", 1.0),
            ("v=rolling-async:2/plain", 0.9),
            ("w=rolling-async:16", 0.8),
            ("v=cache:L2:2", 0.7),
        ];
        let mut proposals = plans(&all);
        assert_eq!(proposals.next(1), [0]);
        assert!(proposals.refuse(0).is_empty());
        assert_eq!(proposals.next(2), [2, 5], "the smallest, and another family");
        assert_eq!(proposals.refuse(2), [1]);
        // Another layout, or another load, may be legal.
        assert_eq!(proposals.next(9), [3, 5, 4]);

        let mut proposals = plans(&all);
        proposals.refuse(0);
        proposals.learn(2, Some(1.0));
        assert!(proposals.next(9).contains(&1), "the smallest is legal");
    }
}
