//! The race of plans, held against their whole runs: which plans would be dropped, and whether one of them is worth its end.

use std::sync::Arc;

use headstart::device::model::built_in;
use headstart::device::sim::timer::{Course, Pace, WORTH};
use headstart::ir::{CacheLevel, Kernel};
use headstart::prefetch::{Plan, candidates};
use headstart::report::number::percent;
use headstart::tune::search::{derive, main_loads, plain};
use headstart::tune::space::{default_plans, without_shared_copies};
use headstart::tune::{Bench, Raced, SimulatedBench, Simulates, Subject, Workload, threads};
use headstart_gallery::kernels;

/// A kernel of the gallery on the simulator, as a search runs it.
struct Case {
    bench: SimulatedBench,
    workload: Workload,
    kernel: Arc<Kernel>,
}

impl Case {
    fn new(case: &str) -> Case {
        let chosen = kernels::case(case);
        let workload = chosen.and_then(|chosen| chosen.workload()).expect("a workload");
        let bench = SimulatedBench::new(built_in("h200", &[]).expect("a built-in model"));
        let kernel = plain(&bench, &workload).expect("wishes");
        Case {
            bench,
            workload,
            kernel,
        }
    }

    /// Runs plans, each beside the same leaders; nothing of those that are refused.
    fn race(&self, plans: &[Plan], pace: &Pace) -> Vec<Option<Raced>> {
        let bound = self.workload.bind(self.bench.device()).expect("it fits");
        let run = |plan: &Plan| {
            let derived = match plan.is_none() {
                true => Arc::clone(&self.kernel),
                false => {
                    derive(&self.bench, &self.workload, &self.kernel, plan)
                        .ok()?
                        .kernel
                }
            };
            self.bench.race(&bound, &derived, pace).ok()
        };
        threads::map(plans, run)
    }

    /// No plan leads yet, and progress is measured as a search measures it.
    fn pace(&self) -> Pace {
        let all = candidates(&self.kernel);
        let leads_on = |id| {
            all.iter()
                .any(|other| other.id != id && other.parents.contains(&id))
        };
        let last = all.iter().filter(|load| !leads_on(load.id)).map(|load| load.id);
        Pace::new(last.collect())
    }

    /// The whole runs of the plans, with the plain kernel's as the first: nanoseconds, and how they came along.
    fn runs(&self) -> Vec<(Plan, f64, Course)> {
        let loads = main_loads(&self.kernel);
        let plans = default_plans(&loads, &[CacheLevel::L1, CacheLevel::L2]).expect("plans");
        let mut plans = without_shared_copies(&self.kernel, plans);
        plans.retain(|plan| !plan.is_none());
        plans.insert(0, Plan::none());
        let raced = self.race(&plans, &self.pace());
        let ended = plans.into_iter().zip(raced).map(|(plan, raced)| match raced? {
            Raced::Ended(timed, course) => Some((plan, timed.time_ns, course?)),
            Raced::Behind(_) => None,
        });
        ended.flatten().collect()
    }
}

/// Plans that lead.
const LEADERS: usize = 4;

/// The cases of the accuracy page whose indices are not an application's.
fn suite() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../results/accuracy-h200.json");
    let text = std::fs::read_to_string(path).expect("the measurements");
    let suite: serde_json::Value = serde_json::from_str(&text).expect("the measurements");
    let cases = suite["cases"].as_array().expect("the cases").iter();
    let names = cases.map(|case| case["case"].as_str().expect("a name").to_owned());
    names.filter(|name| !name.contains("--trace")).collect()
}

/// Launches whose work-groups differ, or that do other things at the end than before.
const UNEVEN: [&str; 12] = [
    "attention sequences=4 tokens=1024 pool=2^13 group=128",
    "attention sequences=24 tokens=512 pool=2^13 group=128",
    "spmv matrix=power-law rows=2^17 lanes=8 group=128",
    "spmv-blocks matrix=power-law rows=2^18 group=128",
    "pagerank scale=17 degree=8 lanes=4",
    "pagerank scale=18 degree=16 lanes=8",
    "bfs scale=18 degree=16 steps=2 lanes=16",
    "hash-probe groups=100 group=128 items=48 bits=26 load=80",
    "hash-probe groups=528 group=256 items=16 bits=27 load=50",
    "cross-section grid=2^18 groups=1024 group=64",
    "option-pricing steps=252 groups=132 group=128",
    "embedding-bag bags=256 bag=150 group=128",
];

/// Holds the plans of some launches against the fastest ones that lead: how many would be dropped, and those of them that are
/// worth their end, with how much faster they are.
fn hold(cases: &[String], leads: impl Fn(&Course) -> bool) -> (usize, Vec<(f64, String)>) {
    let (mut pairs, mut dropped, mut wrong) = (0, 0, Vec::new());
    for name in cases {
        let runs = Case::new(name).runs();
        let Some(((_, plain_ns, plain), plans)) = runs.split_first() else {
            continue;
        };
        let mut fastest: Vec<&(Plan, f64, Course)> = plans.iter().collect();
        fastest.sort_by(|one, other| one.1.total_cmp(&other.1));
        let mut leaders = 0;
        for leader in fastest {
            if leaders == LEADERS {
                break;
            }
            let mut pace = Pace::new(Vec::new());
            pace.ended(plain, 1.0);
            pace.ended(&leader.2, plain_ns / leader.1);
            // One whose progress tells nothing of others.
            if !pace.is_led_by(plain_ns / leader.1) || !leads(&leader.2) {
                continue;
            }
            leaders += 1;
            for (plan, ns, course) in plans.iter().filter(|(plan, ..)| *plan != leader.0) {
                pairs += 1;
                let Some(after) = pace.would_give_up(course) else {
                    continue;
                };
                dropped += 1;
                let faster = leader.1 / ns;
                if faster > WORTH {
                    wrong.push((
                        faster,
                        format!("{name}: {plan} beside {}, after {}", leader.0, percent(after)),
                    ));
                }
            }
        }
    }
    wrong.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (faster, which) in &wrong {
        println!("{faster:.3} {which}");
    }
    println!(
        "{pairs} pairs, {dropped} dropped, {} of them wrongly",
        wrong.len()
    );
    (dropped, wrong)
}

#[test]
#[ignore = "takes minutes"]
fn plans_that_are_dropped_are_not_worth_their_end() {
    let (dropped, wrong) = hold(&suite(), Course::is_steady);
    assert!(wrong.len() * 200 < dropped);
}

#[test]
#[ignore = "takes minutes"]
fn plans_that_are_dropped_beside_an_uneven_leader_are_not_worth_their_end() {
    let (dropped, wrong) = hold(&UNEVEN.map(str::to_owned), |course| !course.is_steady());
    assert!(wrong.len() * 200 < dropped);
}

/// Launches with many work-groups that differ: enough for a small sample.
const LARGE: [&str; 3] = [
    "spmv matrix=power-law rows=2^19 group=256 lanes=16",
    "spmv matrix=power-law rows=2^19 group=128 lanes=8",
    "spmv matrix=power-law rows=2^18 group=256 lanes=32",
];

/// The fastest plan alone leads, and no progress is counted, so that a plan is dropped for what a small sample says.
#[test]
#[ignore = "takes minutes"]
fn plans_that_a_small_sample_shows_far_behind_are_no_faster_than_is_said() {
    let (mut held, mut dropped) = (0, Vec::new());
    for name in LARGE {
        let case = Case::new(name);
        let runs = case.runs();
        let (_, plain_ns, plain) = runs.first().expect("the plain kernel's");
        let fastest = runs.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        let (_, best_ns, best) = fastest.expect("a run");
        let mut pace = case.pace();
        pace.ended(&plain.without_progress(), 1.0);
        pace.ended(&best.without_progress(), plain_ns / best_ns);
        let plans: Vec<Plan> = runs.iter().map(|(plan, ..)| plan.clone()).collect();
        for ((plan, ns, _), again) in runs.iter().zip(case.race(&plans, &pace)) {
            held += 1;
            if let Some(Raced::Behind(behind)) = again {
                let beside = plain_ns / ns / behind.estimate;
                println!("{beside:.3} {name}: {plan}");
                dropped.push((beside, plain_ns / ns > behind.at_most));
            }
        }
    }
    let wrong = dropped.iter().filter(|(_, is_wrong)| *is_wrong).count();
    let most = dropped.iter().map(|&(beside, _)| beside).fold(0.0, f64::max);
    println!(
        "{held} plans, {} dropped, {wrong} of them wrongly, {most:.3} at most",
        dropped.len()
    );
    assert!(wrong == 0 && dropped.len() > 300);
}
