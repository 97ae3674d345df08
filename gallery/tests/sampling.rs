//! Launches whose work-groups differ: the times of samples that stand for all, held against those of whole launches.

use std::sync::Arc;

use headstart::device::CacheState;
use headstart::device::model::built_in;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::device::sim::timer::{Cores, LaunchTime, Timer};
use headstart::prefetch;
use headstart::report::number::{percent, speedup};
use headstart::tune::{self, Bench, Proposals, SimulatedBench, Spread, Subject};
use headstart_gallery::kernels;
use headstart_testing::count;

/// A kernel of the gallery with its settings: the time of the whole launch, and those of samples by these seeds.
fn times(case: &str, seeds: std::ops::Range<u64>) -> (LaunchTime, Vec<LaunchTime>) {
    let model = Arc::new(built_in("h200", &[]).expect("a built-in model"));
    let chosen = kernels::case(case);
    let workload = chosen.and_then(|chosen| chosen.workload()).expect("a workload");
    let target = prefetch::PlanTarget::of(workload.group);
    let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes");
    let device = Simulator::custom(model.description(), Options::FAST, None);
    let bound = workload.bind(&device).expect("it fits");
    // Kernels that write where they read need their inputs as they were.
    let launch = || bound.prepare(&device).expect("it fits").launch;
    let timer = Timer::new(model).with_cache(CacheState::Flushed);
    let code = timer.compile(&plain, &launch()).expect("it compiles");
    let survey = timer.survey(&workload.kernel, &launch(), None).map(Arc::new);
    let whole = timer.clone().with_cores(Cores::All).run(&code, &launch());
    let sample = |seed| {
        let timer = timer.clone().with_survey(survey.clone()).with_seed(seed);
        timer.run(&code, &launch()).expect("it runs")
    };
    (whole.expect("it runs"), seeds.map(sample).collect())
}

/// How far samples are off, in words, and how many are off by more than they say; none say anything of launches whose work-groups
/// are alike, whose samples may be off by 5 %.
fn errors(case: &str, seeds: std::ops::Range<u64>) -> (String, Vec<f64>, usize) {
    let (whole, samples) = times(case, seeds);
    let errors: Vec<f64> = samples
        .iter()
        .map(|sample| sample.cycles / whole.cycles - 1.0)
        .collect();
    let outside = samples
        .iter()
        .zip(&errors)
        .filter(|(sample, error)| error.abs() > sample.sample.within().unwrap_or(0.05))
        .count();
    let of = samples.first().map_or(0, |sample| sample.sample.groups);
    let list: Vec<String> = errors.iter().map(|&error| percent(error)).collect();
    let hit_rate = |time: &LaunchTime| time.memory.l2_hits as f64 / time.memory.l2_sectors.max(1) as f64;
    let line = format!(
        "{case}: {of} of {} work-groups, L2 hit rate {} for {}: {}",
        whole.sample.groups,
        percent(samples.first().map_or(0.0, hit_rate)),
        percent(hit_rate(&whole)),
        list.join(", ")
    );
    (line, errors, outside)
}

#[test]
fn samples_of_work_groups_that_differ_are_within_what_they_say() {
    for case in [
        "bfs scale=18 degree=16 steps=2 lanes=16",
        "hash-probe groups=132 group=128 items=64 bits=27 load=50",
        "spmv matrix=power-law rows=131072 group=128 lanes=8",
    ] {
        let (line, errors, outside) = errors(case, 0..3);
        println!("{line}");
        assert_eq!(outside, 0, "{line}");
        assert!(
            errors.iter().any(|error| *error != 0.0),
            "nothing was sampled: {line}"
        );
    }
}

/// Launches of random geometries, those of results/fresh-h200.txt that get first times.
const FRESH: [&str; 6] = [
    "hash-probe groups=350 group=128 items=24 bits=23 load=25",
    "pagerank scale=16 degree=24 group=512 lanes=32",
    "hash-probe groups=691 group=64 items=66 bits=26 load=25",
    "attention sequences=275 heads=2 tokens=448 pool=16384 group=128",
    "cross-section groups=803 group=64 nuclides=355 points=17804 grid=65536 order=mixed",
    "embedding-bag bags=4216 bag=229 lengths=ragged skew=uniform mode=sum element=f16 dim=64 rows=54605 group=64",
];

/// First speedups of a plan of each family, held against those of whole samples. `HEADSTART_LAUNCHES` says of how many launches.
#[test]
fn first_speedups_are_within_what_they_say() {
    const PLANS: usize = 4;
    let mut errors = Vec::new();
    for case in FRESH.into_iter().take(count("HEADSTART_LAUNCHES", 1) as usize) {
        let subject = kernels::case(case).expect("its settings fit");
        let bench = SimulatedBench::new(built_in("h200", &[]).expect("a built-in model"));
        let workload = subject.workload().expect("a workload");
        let bound = workload.bind(bench.device()).expect("it fits");
        let plain = tune::plain(&bench, &workload).expect("wishes");
        let simulator = bench.simulator().expect("it is one");
        let first_plain = simulator.soon(&bound, &plain).expect("it runs");
        let first_plain = first_plain.expect("a sample takes much longer");
        let plain_ns = bench.time(&bound, &plain).expect("it runs").time_ns;
        println!("{case}: plain {}", percent(first_plain.time_ns / plain_ns - 1.0));
        let likely = tune::likely(&subject, &bench).expect("plans");
        for index in Proposals::new(&likely, &likely).next(PLANS) {
            let plan = &likely[index];
            let Ok(derived) = tune::derive(&bench, &workload, &plain, plan) else {
                continue;
            };
            let first = simulator.soon(&bound, &derived.kernel).expect("it runs");
            let first = first.expect("as of the plain kernel");
            let whole_ns = bench.time(&bound, &derived.kernel).expect("it runs").time_ns;
            let (early, late) = (first_plain.time_ns / first.time_ns, plain_ns / whole_ns);
            let Spread::Simulated { off: Some(within) } = first.spread else {
                panic!("it says nothing of its error");
            };
            let off = (early / late).ln();
            println!(
                "  {plan}: {} instead of {}: {}",
                speedup(early),
                speedup(late),
                percent(off.exp() - 1.0)
            );
            errors.push((off.abs(), within.ln_1p()));
        }
    }
    errors.sort_by(|one, other| one.0.total_cmp(&other.0));
    let outside = errors.iter().filter(|(off, within)| off > within).count();
    let at = |share: f64| percent(errors[(share * (errors.len() - 1) as f64).round() as usize].0);
    println!(
        "{} first speedups: median {}, nine of ten {}; {outside} outside",
        errors.len(),
        at(0.5),
        at(0.9)
    );
    assert!(
        outside * 10 <= errors.len(),
        "{outside} of {} are outside",
        errors.len()
    );
}
