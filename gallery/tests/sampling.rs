//! Launches whose work-groups differ: the times of samples that stand for all, held against those of whole launches.

use std::sync::Arc;

use headstart::device::CacheState;
use headstart::device::model::built_in;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::device::sim::timer::{Cores, LaunchTime, Timer};
use headstart::prefetch;
use headstart::report::number::percent;
use headstart::tune::Subject;
use headstart_gallery::kernels;

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
