//! The race of the plans: which are timed first, and which are dropped because they are certain not to be 2 % faster
//! than the fastest so far.
//!
//! Plans run in an order, a few at once. When one starts, the fastest of those before it leads, and the plan is dropped as soon
//! as it is certain to fall behind ([`Pace`]). The likely plans run first, so that there is a fast leader early. Plans without
//! loads, which only unroll, race each other: the gain of unrolling alone is part of every answer.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::device::sim::timer::{Behind, Course, Pace};
use crate::ir::Kernel;
use crate::prefetch::{self, Plan};
use crate::report::{Outcome, Trial};

/// Plans that run at once, of the likely ones and of the others. These numbers do not depend on the machine: which plans are
/// dropped follows from them. (Of `gather`, with 1 to 4 likely ones at once: 16.4, 15.3, 17.3 and 20.8 s of processor time, 12.4,
/// 10.5, 11.2 and 12.7 s on two cores. Who sees fewer leaders runs longer.)
const LIKELY_AT_ONCE: usize = 2;
const OTHERS_AT_ONCE: usize = 32;

/// A race.
#[derive(Clone, Debug)]
pub(crate) struct Race {
    pace: Pace,
    /// Of plans that only unroll.
    unrolling: Pace,
    likely: Vec<Plan>,
}

/// The order in which plans run.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The plans' positions in the search.
    pub plans: Vec<usize>,
    /// How many of them are likely; they come first.
    likely: usize,
}

impl Order {
    /// The same order, those first that have first times, the fastest of them first.
    pub(crate) fn after_soon(self, soon: &[(usize, f64)]) -> Order {
        let mut first = soon.to_vec();
        first.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let mut plans: Vec<usize> = first.into_iter().map(|(index, _)| index).collect();
        let others = self.plans.into_iter().filter(|index| !plans.contains(index));
        let others: Vec<usize> = others.collect();
        let likely = self.likely.max(plans.len());
        plans.extend(others);
        Order { plans, likely }
    }

    /// How many plans may be under way when the one in this place starts, itself included.
    pub(crate) fn abreast(&self, place: usize) -> usize {
        match place.checked_sub(self.likely) {
            None => LIKELY_AT_ONCE,
            // The first of the others see nearly all of the likely ones.
            Some(other) => OTHERS_AT_ONCE.min(other + LIKELY_AT_ONCE),
        }
    }
}

impl Race {
    /// A race of a plain kernel's plans, the `likely` ones first. Progress is measured by the loads that lead to no other.
    pub(crate) fn new(kernel: &Kernel, likely: Vec<Plan>) -> Race {
        let all = prefetch::candidates(kernel);
        let leads_on = |id| {
            all.iter()
                .any(|other| other.id != id && other.parents.contains(&id))
        };
        let last = all.iter().filter(|load| !leads_on(load.id));
        let loads: Vec<_> = last.map(|load| load.id).collect();
        Race {
            pace: Pace::new(loads.clone()),
            unrolling: Pace::new(loads),
            likely,
        }
    }

    /// Every plan runs to its end.
    pub(crate) fn without_dropping() -> Race {
        Race {
            pace: Pace::new(Vec::new()),
            unrolling: Pace::new(Vec::new()),
            likely: Vec::new(),
        }
    }

    /// What a plan is held against; the plain kernel is held against nothing yet.
    pub(crate) fn pace(&self, plan: &Plan) -> &Pace {
        match plan.loads().is_empty() {
            true => &self.unrolling,
            false => &self.pace,
        }
    }

    /// The order in which plans run, by their positions: the likely ones first, and of them those with the most iterations on
    /// their way. But the half of them with the larger kernels comes later, the smallest first: large code takes several times
    /// as long to simulate, and less so if there is a fast plan to compare it with. Of the others one of each kind comes
    /// first: a search that is stopped then knows something of all.
    pub(crate) fn order(&self, plans: &[&Plan], operations: impl Fn(usize) -> usize) -> Order {
        let (mut likely, mut rest): (Vec<usize>, Vec<usize>) =
            (0..plans.len()).partition(|&index| self.likely.contains(plans[index]));
        let telling = telling(plans, &self.likely);
        rest.sort_by_key(|index| !telling.contains(index));
        likely.sort_by_key(|&index| operations(index));
        let middle = likely.get(likely.len() / 2).map_or(0, |&index| operations(index));
        let (mut small, large): (Vec<usize>, Vec<usize>) =
            likely.into_iter().partition(|&index| operations(index) <= middle);
        small.sort_by_key(|&index| (Reverse(ahead(plans[index])), index));
        Order {
            likely: small.len() + large.len(),
            plans: [small, large, rest].concat(),
        }
    }

    /// The plain kernel has run.
    pub(crate) fn start(&mut self, course: Option<&Course>) {
        if let Some(course) = course {
            self.came(&Plan::none(), 1.0, course);
        }
    }

    /// A plan has been tried.
    pub(crate) fn ended(&mut self, trial: &Trial, course: &Course) {
        if let Some((_, speedup)) = trial.measured() {
            self.came(&trial.plan, speedup, course);
        }
    }

    /// The same, with its speedup.
    pub(crate) fn came(&mut self, plan: &Plan, speedup: f64, course: &Course) {
        if plan.loads().is_empty() {
            self.unrolling.ended(course, speedup);
        }
        self.pace.ended(course, speedup);
    }
}

/// The plans, by their positions, that tell what the others may gain: the likely ones, and one of each kind that none of those
/// is of.
pub(crate) fn telling(plans: &[&Plan], likely: &[Plan]) -> Vec<usize> {
    let kind = |plan: &Plan| {
        let loads = plan.loads().iter();
        let loads: Vec<_> = loads
            .map(|(name, strategy)| (name.clone(), strategy.kind()))
            .collect();
        (plan.inner().is_some(), plan.unroll().is_some(), loads)
    };
    let (mut telling, rest): (Vec<usize>, Vec<usize>) =
        (0..plans.len()).partition(|&index| likely.contains(plans[index]));
    let known: Vec<_> = telling.iter().map(|&index| kind(plans[index])).collect();
    let mut others: HashMap<_, usize> = HashMap::new();
    for index in rest {
        let kind = kind(plans[index]);
        if known.contains(&kind) {
            continue;
        }
        let distance = |index: usize| ahead(plans[index]).abs_diff(USUAL);
        let first = others.entry(kind).or_insert(index);
        if distance(index) < distance(*first) {
            *first = index;
        }
    }
    telling.extend(others.into_values());
    telling.sort_unstable();
    telling
}

/// Iterations ahead that hide the latency in most loops.
const USUAL: u32 = 8;

/// Iterations whose loads are on their way with a plan.
pub(crate) fn ahead(plan: &Plan) -> u32 {
    let distances = plan.loads().iter().map(|(_, strategy)| strategy.distance().get());
    let group = plan.unroll().and_then(|unroll| unroll.iterations()).unwrap_or(1);
    distances.max().unwrap_or(0) + group
}

/// The outcome of an abandoned plan.
pub(crate) fn dropped(behind: Behind) -> Outcome {
    Outcome::Dropped {
        after: behind.after,
        at_most: behind.at_most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_plans_run_first_and_none_is_left_out() {
        let plans: Vec<Plan> = (1..=100)
            .map(|distance| format!("v=rolling-registers:{distance}").parse().expect("a plan"))
            .collect();
        let race = |likely: &[usize]| Race {
            likely: likely.iter().map(|&index| plans[index].clone()).collect(),
            ..Race::without_dropping()
        };
        let all: Vec<&Plan> = plans.iter().collect();
        let order = race(&[70, 40]).order(&all, |_| 10);
        assert_eq!(order.plans[..3], [70, 40, 0]);
        assert_eq!(
            [0, 1, 2, 3, 99].map(|place| order.abreast(place)),
            [2, 2, 2, 3, 32]
        );
        let mut tried = order.plans;
        tried.sort_unstable();
        assert_eq!(tried, (0..100).collect::<Vec<_>>());
        // Of the others one of each kind is first, about eight ahead.
        let hints: Vec<Plan> = [2, 8]
            .map(|distance| format!("v=cache:L2:{distance}").parse().expect("a plan"))
            .into();
        let all: Vec<&Plan> = plans.iter().chain(&hints).collect();
        assert_eq!(race(&[70]).order(&all, |_| 10).plans[..3], [70, 101, 0]);
        assert_eq!(telling(&all, &[]), [6, 101]);
        let all: Vec<&Plan> = plans.iter().collect();
        // Larger kernels come later, the smallest first.
        let order = race(&[70, 60, 50, 40, 30, 20, 10]).order(&all, |index| index);
        assert_eq!(order.plans[..8], [40, 30, 20, 10, 50, 60, 70, 0]);
    }
}
