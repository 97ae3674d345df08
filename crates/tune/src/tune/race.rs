//! The race of the plans: which are timed first, and which are dropped because they are certain to be slower.
//!
//! Plans run in heats. The fastest of all heats before leads, and a plan of the next heat that falls behind it is dropped as
//! soon as that is sure ([`Pace`]). The likely plans run first, so that there is somebody fast to lead. Plans without loads,
//! which unroll only, are timed to their end: what unrolling alone reaches is part of every answer.

use super::bench::Bench;
use super::space::likely_plans_of;
use super::workload::Workload;
use crate::device::sim::timer::{Behind, Course, Entrant, Pace};
use crate::ir::Kernel;
use crate::prefetch::{self, Plan};
use crate::report::{Outcome, Trial};

/// Plans of the first heat, and of each later one at most; each is twice as large as the one before. They do not depend on
/// the machine, for which plans are dropped follows from them.
const FIRST_HEAT: usize = 8;
const LARGEST_HEAT: usize = 32;

/// A race.
#[derive(Clone, Debug)]
pub struct Race {
    pace: Pace,
    /// Of plans that are never given up.
    free: Pace,
    likely: Vec<Plan>,
    /// Bytes of those loads that each work-group reads in an iteration.
    iteration_bytes: f64,
}

impl Race {
    /// A race of a plain kernel's plans. Progress is told by the loads that lead to no other.
    pub fn new(kernel: &Kernel, workload: &Workload, bench: &dyn Bench) -> Race {
        let all = prefetch::candidates(kernel);
        let leads_on = |id| {
            all.iter()
                .any(|other| other.id != id && other.parents.contains(&id))
        };
        let last: Vec<_> = all.iter().filter(|load| !leads_on(load.id)).collect();
        let loads: Vec<_> = last.iter().map(|load| load.id).collect();
        let bytes: u32 = last.iter().map(|load| load.bytes * load.copies).sum();
        Race {
            pace: Pace::new(loads.clone()),
            free: Pace::new(loads),
            likely: likely_plans_of(kernel, &bench.levels()).unwrap_or_default(),
            iteration_bytes: f64::from(bytes) * f64::from(workload.geometry().group),
        }
    }

    /// Every plan runs to its end.
    pub fn without_dropping() -> Race {
        Race {
            pace: Pace::new(Vec::new()),
            free: Pace::new(Vec::new()),
            likely: Vec::new(),
            iteration_bytes: 0.0,
        }
    }

    /// A plan, and what it is held against; the plain kernel against nothing yet.
    pub fn entrant(&self, plan: &Plan) -> Entrant<'_> {
        let hinted = plan.loads().iter().filter(|(_, strategy)| strategy.is_hint());
        let distance = hinted.map(|(_, strategy)| strategy.distance().get()).max();
        Entrant {
            pace: match plan.loads().is_empty() {
                true => &self.free,
                false => &self.pace,
            },
            hinted: f64::from(distance.unwrap_or(0)) * self.iteration_bytes,
        }
    }

    /// The plain kernel has run.
    pub fn start(&mut self, course: Option<Course>) {
        self.came(&Plan::none(), 1.0, course);
    }

    /// The plans in heats, by their positions.
    pub fn heats(&self, plans: &[&Plan]) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..plans.len()).collect();
        order.sort_by_key(|&index| !self.likely.contains(plans[index]));
        let (mut heats, mut size) = (Vec::new(), FIRST_HEAT);
        while !order.is_empty() {
            let rest = order.split_off(size.min(order.len()));
            heats.push(std::mem::replace(&mut order, rest));
            size = (2 * size).min(LARGEST_HEAT);
        }
        heats
    }

    /// The speedup expected of a plan that there was no time to predict: above 1 for the likely ones, and more for those that
    /// have more iterations on their way, since a kernel that is worth a search waits. Only the order matters.
    pub fn unpredicted(&self, plan: &Plan) -> f64 {
        match self.likely.contains(plan) {
            true => 1.1 + 0.01 * f64::from(ahead(plan)).log2(),
            false => 1.0,
        }
    }

    /// A plan of the last heat has been tried.
    pub fn ended(&mut self, trial: &Trial, course: Option<Course>) {
        if let Some((_, speedup)) = trial.measured() {
            self.came(&trial.plan, speedup, course);
        }
    }

    /// The same, with its speedup.
    pub fn came(&mut self, plan: &Plan, speedup: f64, course: Option<Course>) {
        let Some(course) = course else { return };
        self.pace
            .ended(course, f64::from(ahead(plan)) * self.iteration_bytes, speedup);
    }
}

/// Iterations whose loads are on their way with a plan.
fn ahead(plan: &Plan) -> u32 {
    let distances = plan.loads().iter().map(|(_, strategy)| strategy.distance().get());
    let group = plan.unroll().and_then(|unroll| unroll.iterations()).unwrap_or(1);
    distances.max().unwrap_or(0) + group
}

/// What came of a plan that was given up.
pub fn dropped(behind: Behind) -> Outcome {
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
        let race = Race {
            likely: vec![plans[70].clone(), plans[40].clone()],
            ..Race::without_dropping()
        };
        let plans: Vec<&Plan> = plans.iter().collect();
        let heats = race.heats(&plans);
        assert_eq!(heats[0][..3], [40, 70, 0]);
        let mut all = heats.concat();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        assert!(heats.iter().all(|heat| heat.len() <= LARGEST_HEAT));
    }
}
