//! What each habit of ptxas that the lowering imitates is worth: the corpus' kernels and plans, which no habit was found on, with
//! all habits and without one, against what an H200 took (`results/corpus-again-h200.json` and `corpus-tuned-h200.json`). Ignored:
//! it takes minutes on many cores. `HEADSTART_CORPUS=TEXT` picks entries, `HEADSTART_PLANS=0` leaves their plans out, and
//! `HEADSTART_HABITS=TEXT` leaves out only habits whose name contains it.
//!
//!     cargo test --release -p headstart-gallery --test ablation -- --ignored --nocapture

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use headstart::back::machine::{Family, Rules};
use headstart::device::CacheState;
use headstart::device::model::{DeviceModel, built_in};
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::device::sim::timer::Timer;
use headstart::front::ptx;
use headstart::ir::Kernel;
use headstart::prefetch::{self, Plan};
use headstart::report::number::percent;
use headstart::tune::{Bound, FileSubject, LaunchFile, Subject, Workload, threads};
use serde_json::{Value, json};

/// Launches that are shorter say more about the launch than about the code.
const LEAST_NS: f64 = 3_000.0;

/// The same habits but one, by the name of that one.
fn without() -> Vec<(&'static str, Rules)> {
    let all = Family::Nvidia.rules();
    let wanted = std::env::var("HEADSTART_HABITS").unwrap_or_default();
    let mut without = vec![
        (
            "hints_last",
            Rules {
                hints_last: false,
                ..all
            },
        ),
        (
            "loads_sunk",
            Rules {
                loads_sunk: false,
                ..all
            },
        ),
        (
            "loads_behind_shuffles",
            Rules {
                loads_behind_shuffles: false,
                ..all
            },
        ),
        (
            "uses_before_loads",
            Rules {
                uses_before_loads: false,
                ..all
            },
        ),
        (
            "leaving_values_apart",
            Rules {
                leaving_values_apart: false,
                ..all
            },
        ),
        (
            "pointers_in_constants",
            Rules {
                pointers_in_constants: false,
                ..all
            },
        ),
        (
            "loops_unrolled",
            Rules {
                loops_unrolled: false,
                ..all
            },
        ),
        (
            "predicated_messages",
            Rules {
                predicated_messages: false,
                ..all
            },
        ),
    ];
    without.retain(|(name, _)| name.contains(&wanted));
    without
}

/// A kernel of the corpus, and how long an H200 took for it.
struct Case {
    name: String,
    workload: Workload,
    plain_ns: f64,
    /// Plans, and how many times as fast they were.
    plans: Vec<(Plan, f64)>,
}

/// The entries of a record in `results/`, by module and name.
fn entries(file: &str) -> BTreeMap<String, Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../results")
        .join(file);
    let text = std::fs::read_to_string(path).expect("the measurements");
    let mut results: Value = serde_json::from_str(&text).expect("the measurements");
    let Value::Array(entries) = results["entries"].take() else {
        panic!("{file} has no entries");
    };
    let name = |entry: &Value| {
        let (module, name) = (entry["module"].as_str()?, entry["entry"].as_str()?);
        Some(format!("{module}:{name}"))
    };
    let named = entries
        .into_iter()
        .filter_map(|mut entry| Some((name(&entry)?, entry["found"].take())));
    named.collect()
}

/// A kernel's launch in the geometry in which it was measured: the fastest of those that its launch file names.
fn measured_as(subject: FileSubject, found: &Value) -> Option<Workload> {
    let elsewhere = subject.elsewhere().ok()?;
    let all = std::iter::once(subject).chain(elsewhere);
    let mut workloads = all.filter_map(|subject| subject.workload().ok());
    workloads
        .find(|workload| json!(workload.groups) == found["groups"] && json!(workload.group) == found["group"])
}

/// Those of the corpus that were measured.
fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let tuned = entries("corpus-tuned-h200.json");
    let wanted = std::env::var("HEADSTART_CORPUS").unwrap_or_default();
    let case = |(name, found): (String, Value)| {
        let plain_ns = found["original_ns"].as_f64().filter(|time| *time >= LEAST_NS)?;
        let (module, entry) = name.split_once(':')?;
        let place = root.join(format!("launch/{entry}.toml"));
        let launch = LaunchFile::parse(&std::fs::read_to_string(&place).ok()?, entry).ok()?;
        let text = std::fs::read_to_string(root.join(module)).ok()?;
        let imported = ptx::import(&text, module, Some(entry), &launch.facts()).ok()?;
        let trials = tuned
            .get(&name)
            .and_then(|found| found["tuned"]["trials"].as_array());
        let plan = |trial: &Value| {
            let plan: Plan = trial["plan"].as_str()?.parse().ok()?;
            Some((plan, trial["speedup"].as_f64()?))
        };
        let plans = trials.into_iter().flatten().filter_map(plan);
        Some(Case {
            plans: plans.filter(|(plan, _)| *plan != Plan::none()).collect(),
            workload: measured_as(FileSubject::of_module(imported, launch), &found)?,
            plain_ns,
            name,
        })
    };
    let measured = entries("corpus-again-h200.json").into_iter();
    measured
        .filter(|(name, _)| name.contains(&wanted))
        .filter_map(case)
        .collect()
}

/// A case on the model.
struct Simulated<'c> {
    case: &'c Case,
    target: prefetch::PlanTarget,
    plain: Arc<Kernel>,
    device: Simulator,
    bound: Bound,
    timer: Timer,
}

/// Times with all habits, and without each one that changes the program.
struct Times {
    all: f64,
    without: Vec<Option<f64>>,
}

impl<'c> Simulated<'c> {
    fn new(case: &'c Case, model: &Arc<DeviceModel>) -> Option<Simulated<'c>> {
        let target = prefetch::PlanTarget {
            group_size: Some(case.workload.group),
            ..prefetch::PlanTarget::default()
        };
        let plain = prefetch::carry_out_wishes(&case.workload.kernel, &target).ok()?;
        let device = Simulator::custom(model.description(), Options::FAST, None);
        let bound = case.workload.bind(&device).ok()?;
        let launch = bound.prepare(&device).ok()?.launch;
        let timer = Timer::new(Arc::clone(model))
            .with_cache(CacheState::Kept)
            .serving_any_launch(true);
        let survey = timer.survey(&case.workload.kernel, &launch, None).map(Arc::new);
        Some(Simulated {
            case,
            target,
            plain: Arc::new(plain),
            device,
            bound,
            timer: timer.with_survey(survey),
        })
    }

    fn times(&self, kernel: &Kernel) -> Option<Times> {
        let launch = || self.bound.prepare(&self.device).map(|prepared| prepared.launch);
        let whole = self.timer.compile(kernel, &launch().ok()?).ok()?;
        let listing = whole.program().to_string();
        let without = without().into_iter().map(|(_, rules)| {
            let timer = self.timer.clone().with_rules(rules);
            let code = timer.compile(kernel, &launch().ok()?).ok()?;
            if code.program().to_string() == listing {
                return None;
            }
            Some(timer.run(&code, &launch().ok()?).ok()?.between_events_ns)
        });
        Some(Times {
            without: without.collect(),
            all: self.timer.run(&whole, &launch().ok()?).ok()?.between_events_ns,
        })
    }

    fn times_of(&self, plan: &Plan) -> Option<Times> {
        self.times(&prefetch::apply(&self.plain, plan, &self.target).ok()?.kernel)
    }
}

/// Logarithms of ratios to what was measured: with all habits, and without each that makes a difference.
struct Errors {
    all: f64,
    without: Vec<Option<f64>>,
}

impl Errors {
    /// Of a time.
    fn of_time(times: &Times, measured: f64) -> Errors {
        let off = |time: f64| (time / measured).ln();
        Errors {
            all: off(times.all),
            without: times.without.iter().map(|time| time.map(off)).collect(),
        }
    }

    /// Of a plan's speedup.
    fn of_speedup(plain: &Times, plan: &Times, measured: f64) -> Errors {
        let off = |plain: f64, plan: f64| (plain / plan / measured).ln();
        let pairs = plain.without.iter().zip(&plan.without);
        let without = pairs.map(|pair| match pair {
            (None, None) => None,
            (other, time) => Some(off(other.unwrap_or(plain.all), time.unwrap_or(plan.all))),
        });
        Errors {
            all: off(plain.all, plan.all),
            without: without.collect(),
        }
    }
}

/// In words: how many differ without a habit, and their errors with and without it: in the median, and how many are nearer with
/// it and without it, by over 1 %.
fn worth(found: &[Errors], habit: usize) -> String {
    let pairs: Vec<(f64, f64)> = found
        .iter()
        .filter_map(|found| Some((found.all.abs(), found.without[habit]?.abs())))
        .collect();
    let nearer = |by: fn(&(f64, f64)) -> f64| pairs.iter().filter(|pair| by(pair) > 0.01).count();
    format!(
        "{} of {} differ, off by {} with it, {} without; {} nearer with it, {} without",
        pairs.len(),
        found.len(),
        percent(median(pairs.iter().map(|pair| pair.0))),
        percent(median(pairs.iter().map(|pair| pair.1))),
        nearer(|&(with, without)| without - with),
        nearer(|&(with, without)| with - without),
    )
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[test]
#[ignore = "takes minutes"]
fn habits_of_ptxas() {
    let model = Arc::new(built_in("h200", &[]).expect("a built-in model"));
    let cases = cases();
    let plain_only = std::env::var("HEADSTART_PLANS").is_ok_and(|plans| plans == "0");
    let simulated: Vec<(Simulated, Times)> = threads::map(&cases.iter().collect::<Vec<_>>(), |case| {
        let simulated = Simulated::new(case, &model)?;
        let times = simulated.times(&simulated.plain)?;
        Some((simulated, times))
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(
        simulated.len() * 10 >= cases.len() * 9,
        "{} of {}",
        simulated.len(),
        cases.len()
    );
    let of_time = |(one, times): &(Simulated, Times)| Errors::of_time(times, one.case.plain_ns);
    let times: Vec<Errors> = simulated.iter().map(of_time).collect();
    let pairs = simulated.iter().flat_map(|(one, times)| {
        let plans = one.case.plans.iter().filter(|_| !plain_only);
        plans.map(move |(plan, measured)| (one, times, plan, *measured))
    });
    let pairs: Vec<(&Simulated, &Times, &Plan, f64)> = pairs.collect();
    let plans = threads::map(&pairs, |&(one, plain, plan, measured)| {
        Some(Errors::of_speedup(plain, &one.times_of(plan)?, measured))
    });
    for ((one, _), errors) in simulated.iter().zip(&times) {
        let of_this = |&(at, (other, ..)): &(usize, &(&Simulated, &Times, &Plan, f64))| {
            std::ptr::eq(other.case, one.case) && plans[at].is_some()
        };
        let of_plans = pairs.iter().enumerate().filter(of_this);
        let of_plans: Vec<f64> = of_plans
            .filter_map(|(at, _)| Some(plans[at].as_ref()?.all.abs()))
            .collect();
        println!(
            "{}: {:.1} us measured, simulated {}; {} plans, whose speedups are off by {}",
            one.case.name,
            one.case.plain_ns / 1e3,
            percent(errors.all.exp_m1()),
            of_plans.len(),
            percent(median(of_plans.into_iter())),
        );
    }
    let plans: Vec<Errors> = plans.into_iter().flatten().collect();
    println!(
        "{} plain times, off by {} in the median; {} speedups, off by {}",
        times.len(),
        percent(median(times.iter().map(|errors| errors.all.abs()))),
        plans.len(),
        percent(median(plans.iter().map(|errors| errors.all.abs()))),
    );
    for (habit, (name, _)) in without().into_iter().enumerate() {
        println!("{name}\n  plain times: {}", worth(&times, habit));
        println!("  speedups of plans: {}", worth(&plans, habit));
    }
}
