//! Random plans for a kernel: legal or not, the passes decide; and what must hold of each random kernel that they derive.

use std::sync::Arc;

use crate::error::Fault;
use crate::ir::{Kernel, Label, LoadId, OpKind, print};
use crate::prefetch::plan::StrategyKind;
use crate::prefetch::{Loads, Plan, PlanTarget, apply, candidates};
use crate::random::Random;
use crate::shrink::shrink;
use crate::tune::Workload;
use crate::{base_seed, random_workload};

/// A random plan for loads of parameters that lie in loops.
///
/// Distances reach over the trip counts of random kernels. Some plans name parents of chains, too.
pub fn random_plan(random: &mut Random, kernel: &Kernel) -> Plan {
    let loops = loads_by_loop(kernel);
    let named = |loads: &Vec<LoadId>| loads.iter().map(|&load| name(kernel, load)).collect();
    let plan = plan_of(random, &loops.iter().map(named).collect::<Vec<Vec<String>>>());
    perhaps_inner(random, kernel, plan)
}

/// A random kernel with a plan carried out, `none` among them.
#[derive(Clone, Copy, Debug)]
pub struct Derived<'k> {
    /// What all follows from.
    pub seed: u64,
    /// The launch.
    pub workload: &'k Workload,
    /// The workload's kernel, or what is left of it while a failure is made smaller.
    pub plain: &'k Arc<Kernel>,
    /// With the plan.
    pub kernel: &'k Arc<Kernel>,
}

/// Derives random kernels with random plans; `wrong` says what is wrong with one, if anything is. The seed rotates.
///
/// # Panics
/// One is wrong: it is made smaller and printed. Or nearly all plans were refused.
pub fn derived_are_right(kernels: u64, plans: usize, wrong: impl Fn(&Derived) -> Option<String>) {
    let (mut legal, mut refused) = (0, 0);
    for seed in (base_seed()..).take(kernels as usize) {
        let workload = random_workload(seed);
        let target = PlanTarget::of(workload.group);
        let mut random = Random::new(seed);
        let random_plans: Vec<Plan> = (0..plans)
            .map(|_| random_plan(&mut random, &workload.kernel))
            .collect();
        for plan in [Plan::none()].into_iter().chain(random_plans) {
            let judged = |plain: &Arc<Kernel>| match apply(plain, &plan, &target) {
                Err(error) if error.fault() == Fault::Bug => Err(Some(error.to_string())),
                Err(_) => Err(None),
                Ok(applied) => Ok(wrong(&Derived {
                    seed,
                    workload: &workload,
                    plain,
                    kernel: &Arc::new(applied.kernel),
                })),
            };
            let first = match judged(&workload.kernel) {
                Err(None) => {
                    refused += 1;
                    continue;
                }
                Ok(None) => {
                    legal += u64::from(!plan.is_none());
                    continue;
                }
                Ok(Some(what)) | Err(Some(what)) => what,
            };
            // The same kind of failure: what comes before a name or a number.
            let kind = |what: &str| what.split(['`', ':']).next().unwrap_or_default().to_owned();
            let again = |kernel: &Kernel| judged(&Arc::new(kernel.clone())).unwrap_or_else(|bug| bug);
            let small = shrink(&workload.kernel, |kernel| {
                again(kernel).is_some_and(|what| kind(&what) == kind(&first))
            });
            let derived = apply(&small, &plan, &target).map(|applied| print(&applied.kernel));
            panic!(
                "seed {seed}, plan {plan}: {first}; shrunk: {:?}\n{}\n{}",
                again(&small),
                print(&small),
                derived.unwrap_or_else(|error| error.to_string())
            );
        }
    }
    println!("{legal} plans are right, {refused} were refused");
    let tried = legal + refused;
    assert!(
        legal * 6 > tried || tried < 30,
        "{legal} of {tried} plans were legal: the test tests too little"
    );
}

/// Now and then the same plan with iterations of loops inside as part of those around, where there are such loops.
fn perhaps_inner(random: &mut Random, kernel: &Kernel, plan: Plan) -> Plan {
    let inner = plan.clone().with_inner(Some(1));
    let found = Loads::of(kernel).inner_loops(&inner, &PlanTarget::default());
    match found.is_ok() && random.chance(40) {
        true => plan.with_inner(Some(*random.choose(&[1, 2, 3, 4, 8]))),
        false => plan,
    }
}

/// A random plan for any loads that a plan can name, those that begin at no parameter, too.
pub fn random_plan_of_any(random: &mut Random, kernel: &Kernel) -> Plan {
    let mut loops: Vec<(Label, Vec<String>)> = Vec::new();
    for load in candidates(kernel) {
        let name = load.name.to_string();
        match loops.iter_mut().find(|(own, _)| *own == load.looped) {
            Some((_, loads)) => loads.push(name),
            None => loops.push((load.looped, vec![name])),
        }
    }
    let loops: Vec<Vec<String>> = loops.into_iter().map(|(_, loads)| loads).collect();
    let plan = plan_of(random, &loops);
    perhaps_inner(random, kernel, plan)
}

/// A random plan for loads, by loop.
fn plan_of(random: &mut Random, loops: &[Vec<String>]) -> Plan {
    let mut parts = Vec::new();
    let mut group = 1;
    if random.chance(35) || loops.is_empty() {
        group = *random.choose(&[2, 3, 4, 8, 16]);
        parts.push(match random.chance(90) {
            true => format!("unroll:{group}"),
            false => "unroll:full".to_owned(),
        });
    }
    if !loops.is_empty() && (parts.is_empty() || random.chance(85)) {
        let mut among = random.choose(loops);
        for _ in 0..*random.choose(&[1, 1, 1, 2, 3]) {
            let load = random.choose(among).clone();
            parts.push(format!("{load}={}", strategy(random, group)));
            if random.chance(30) {
                among = random.choose(loops);
            }
        }
    }
    // A load named twice is refused; a single part never is.
    let plan = parts.join(",").parse().or_else(|_| parts[0].parse());
    plan.unwrap_or_else(|_| Plan::none())
}

/// Loads of parameters that lie in loops, those of one loop together.
fn loads_by_loop(kernel: &Kernel) -> Vec<Vec<LoadId>> {
    let mut loops = Vec::new();
    kernel.body.walk(&mut |op| {
        let OpKind::Loop { body, .. } = &op.kind else {
            return;
        };
        let mut loads = Vec::new();
        body.walk(&mut |op| {
            if let OpKind::Load { id, .. } = op.kind
                && kernel.param(&kernel.loads[id].name).is_some()
            {
                loads.push(id);
            }
        });
        if !loads.is_empty() {
            loops.push(loads);
        }
    });
    loops
}

/// A load as plans name it: with its line, because tables are read in many places.
fn name(kernel: &Kernel, load: LoadId) -> String {
    let data = &kernel.loads[load];
    let place = &kernel.places[data.place];
    match place.line {
        0 => data.name.clone(),
        line => format!("{}@{}:{line}", data.name, place.file),
    }
}

/// A strategy; its distance is mostly one that goes with groups of this many iterations.
fn strategy(random: &mut Random, group: u32) -> String {
    let distance = match group > 1 && random.chance(85) {
        true => group * random.between(1, 3) as u32,
        false => *random.choose(&[1, 1, 2, 2, 3, 4, 5, 8, 16, 21]),
    };
    let mut at = random.below(
        StrategyKind::ALL
            .iter()
            .map(|kind| kind.descriptor().weight)
            .sum(),
    );
    let kind = StrategyKind::ALL
        .iter()
        .find(|kind| match at.checked_sub(kind.descriptor().weight) {
            Some(rest) => {
                at = rest;
                false
            }
            None => true,
        });
    let descriptor = kind.expect("it is below the sum").descriptor();
    let mut text = descriptor.name.to_owned();
    if !descriptor.takes.levels.is_empty() {
        text += &format!(":{}", random.choose(descriptor.takes.levels).name());
    }
    text += &format!(":{distance}");
    if descriptor.takes.layout {
        text += *random.choose(&["", "/plain", "/padded", "/interleaved"]);
    }
    if descriptor.takes.nontemporal && random.chance(30) {
        text += "/nt";
    }
    if descriptor.takes.group && random.chance(50) {
        text += "/group";
    }
    text
}
