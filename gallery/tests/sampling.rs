//! Launches whose work-groups differ: the times of samples that stand for all, held against those of whole launches.

use std::sync::Arc;

use headstart::device::CacheState;
use headstart::device::model::built_in;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::device::sim::timer::{Cores, LaunchTime, Pace, Timer};
use headstart::prefetch;
use headstart::report::number::{figures, percent};
use headstart::tune::{self, Bench, Raced, SimulatedBench, Simulates, Spread, Subject};
use headstart_gallery::kernels;

/// A kernel of the gallery with its settings: the time of the whole launch, and those of samples by these seeds.
fn times(case: &str, seeds: std::ops::Range<u64>) -> (LaunchTime, Vec<LaunchTime>) {
    let model = Arc::new(built_in("h200", &[]).expect("a built-in model"));
    let chosen = kernels::case(case);
    let workload = chosen.and_then(|chosen| chosen.workload()).expect("a workload");
    let target = prefetch::PlanTarget {
        group_size: Some(workload.group),
        ..prefetch::PlanTarget::default()
    };
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

/// The plain kernels of the accuracy suite, sampled and whole, against what an H200 takes: where these two differ, which is right.
#[test]
#[ignore = "takes minutes"]
fn whole_launches_of_the_accuracy_suite() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../results/accuracy-h200.json");
    let text = std::fs::read_to_string(path).expect("the measurements");
    let suite: serde_json::Value = serde_json::from_str(&text).expect("the measurements");
    let cases = suite["cases"].as_array().expect("the cases").iter();
    let named = cases.map(|case| (case["case"].as_str().expect("a name"), case));
    // The indices of an application's are not in the repository.
    let cases: Vec<_> = named.filter(|(name, _)| !name.contains("--trace")).collect();
    let nanoseconds = |case: &serde_json::Value, of: &str| case[of]["plain_ns"].as_f64().expect("a time");
    headstart::tune::threads::map(&cases, |&(name, case)| {
        let (measured, simulated) = (nanoseconds(case, "measured"), nanoseconds(case, "simulated"));
        let (whole, samples) = times(name, 0..1);
        let off = |time: f64| percent(time / measured - 1.0);
        println!(
            "{name}: measured {} us; the page's {}; {} of {} work-groups {}, all {}",
            figures(measured / 1e3),
            off(simulated),
            samples[0].sample.groups,
            whole.sample.groups,
            off(samples[0].nanoseconds),
            off(whole.nanoseconds),
        );
    });
}

/// Searches in lists and trees of growing size, whole and sampled, against what an H200 takes (microseconds, driver 580.159.04,
/// 2026-11-27: `headstart sweep binary-search --set groups=528 --set group=256 --set items=8 --over levels=14,18,20,22,24,26,28
/// --plan none --l2 flushed`, and the same of `btree --over levels=3,4,5,6,7`). The smallest lie in L1, the next ones in L2, the
/// largest beyond the pages that cores have at hand.
#[test]
#[ignore = "takes minutes"]
fn searches_by_size() {
    let searches = [
        (14, 33.5),
        (18, 59.9),
        (20, 74.2),
        (22, 88.7),
        (24, 135.0),
        (26, 186.0),
        (28, 361.0),
    ];
    let trees = [(3, 27.2), (4, 39.9), (5, 55.7), (6, 74.4), (7, 106.0)];
    let of = |name: &'static str, rows: &[(u32, f64)]| -> Vec<(String, f64)> {
        let case = |&(levels, measured)| {
            (
                format!("{name} groups=528 group=256 items=8 levels={levels}"),
                measured,
            )
        };
        rows.iter().map(case).collect()
    };
    let mut rows = of("binary-search", &searches);
    rows.extend(of("btree", &trees));
    let errors = headstart::tune::threads::map(&rows, |(case, measured)| {
        let (whole, samples) = times(case, 0..1);
        let off = |time: &LaunchTime| time.nanoseconds / 1e3 / measured - 1.0;
        println!(
            "{case}: measured {measured} us; all {}, {} of {} work-groups {}",
            percent(off(&whole)),
            samples[0].sample.groups,
            whole.sample.groups,
            percent(off(&samples[0])),
        );
        off(&whole)
    });
    let worst = errors.iter().fold(0.0f64, |worst, error| worst.max(error.abs()));
    assert!(worst <= 0.2, "{errors:?}");
}

/// Twenty launches, each by ten choices of work-groups. `HEADSTART_LAUNCHES=TEXT` picks those whose name contains it.
#[test]
#[ignore = "takes minutes"]
fn twenty_launches_whose_work_groups_differ() {
    let cases = [
        "attention sequences=40 tokens=2048 pool=2^12",
        "bfs scale=18 degree=16 steps=2 lanes=16",
        "bfs scale=19 degree=16 steps=3 lanes=8",
        "btree groups=528 group=256 items=8 levels=7",
        "cross-section grid=2^18 groups=1024 group=64",
        "cross-section groups=1024 group=128 order=by-material",
        "cross-section groups=2112 grid=2^16",
        "cross-section groups=300 grid=2^17",
        "cross-section groups=2112 group=64 grid=2^18 order=by-material",
        "hash-probe groups=132 group=128 items=64 bits=27 load=50",
        "hash-probe groups=300 group=192 items=48 bits=26 load=80",
        "hash-probe groups=528 group=256 items=16 bits=27 load=50",
        "hash-probe groups=132 group=128 items=64 bits=24 load=90",
        "pagerank scale=17 degree=16 lanes=8",
        "pagerank scale=18 degree=16 lanes=8",
        "pagerank scale=19 degree=8 lanes=4",
        "spmv matrix=power-law rows=131072 group=128 lanes=8",
        "spmv matrix=power-law rows=262144 group=256 lanes=32",
        "spmv matrix=power-law rows=524288 group=128 lanes=8",
        "spmv matrix=power-law rows=524288 group=128 lanes=16",
    ];
    let wanted = std::env::var("HEADSTART_LAUNCHES").unwrap_or_default();
    let cases: Vec<&str> = cases.into_iter().filter(|case| case.contains(&wanted)).collect();
    let found = headstart::tune::threads::map(&cases, |case| errors(case, 0..10));
    let (mut all, mut outside) = (Vec::new(), 0);
    for (line, errors, beyond) in found {
        println!("{line}");
        all.extend(errors.iter().map(|error| error.abs()));
        outside += beyond;
    }
    all.sort_by(f64::total_cmp);
    println!(
        "{} samples: median {} %, highest tenth {} %, worst {} %; {outside} outside of what they say",
        all.len(),
        figures(100.0 * all[all.len() / 2]),
        figures(100.0 * all[all.len() * 9 / 10]),
        figures(100.0 * all[all.len() - 1]),
    );
    assert!(
        outside * 20 <= all.len(),
        "{outside} of {} are outside",
        all.len()
    );
}

/// First times of the likely plans, held against their times. `HEADSTART_LAUNCHES=TEXT` picks the launches whose name contains it.
#[test]
#[ignore = "takes minutes"]
fn first_speedups_are_within_what_they_say() {
    let cases = [
        "attention sequences=167 heads=8 tokens=704 pool=2^14 group=256",
        "embedding-bag bags=2350 bag=161 skew=zipf element=f16 dim=64 rows=2000000 group=256",
        "gather groups=954 group=128 items=256 table=2^24 work=2",
        "gather groups=2394 group=64 items=94 table=2^25 work=12",
        "hash-probe groups=2112 group=128 items=32 bits=26 load=50",
        "index-select groups=1056 group=256 items=64 bits=26",
        "pagerank scale=18 degree=16 lanes=8",
        "scatter groups=1056 group=256 items=32 bits=24",
        "spmv matrix=power-law rows=524288 group=128 lanes=8",
        "spmv matrix=random16 rows=1048576 lanes=4",
        "spmv-blocks matrix=random16 rows=1048576 group=128",
        "cross-section groups=1024 group=128",
    ];
    const PLANS: usize = 10;
    let wanted = std::env::var("HEADSTART_LAUNCHES").unwrap_or_default();
    let cases: Vec<&str> = cases.into_iter().filter(|case| case.contains(&wanted)).collect();
    let found = tune::threads::map(&cases, |case| {
        let subject = kernels::case(case).expect("its settings fit");
        let bench = SimulatedBench::new(built_in("h200", &[]).expect("a built-in model"));
        let workload = subject.workload().expect("a workload");
        let bound = workload.bind(bench.device()).expect("it fits");
        let plain = tune::plain(&bench, &workload).expect("wishes");
        let likely = tune::likely(&subject, &bench).expect("plans");
        let derived = likely
            .iter()
            .filter_map(|plan| tune::derive(&bench, &workload, &plain, plan).ok());
        let kernels: Vec<_> = std::iter::once((plain.clone(), "none".to_owned()))
            .chain(
                derived
                    .take(PLANS)
                    .map(|derived| (derived.kernel, derived.plan.to_string())),
            )
            .collect();
        let times = kernels.iter().filter_map(|(kernel, plan)| {
            let first = bench.soon(&bound, kernel).expect("it runs")?;
            let Ok(Raced::Ended(whole, _)) = bench.race(&bound, kernel, &Pace::new(Vec::new())) else {
                panic!("{case} under {plan} was given up");
            };
            Some((plan, first, whole.time_ns))
        });
        let times: Vec<_> = times.collect();
        let mut errors = Vec::new();
        if let [(_, first_plain, plain_ns), plans @ ..] = &times[..] {
            println!("{case}: plain {}", percent(first_plain.time_ns / plain_ns - 1.0));
            for (plan, first, whole_ns) in plans {
                let (early, late) = (first_plain.time_ns / first.time_ns, plain_ns / whole_ns);
                let off = early / late - 1.0;
                let Spread::Simulated { off: Some(within) } = first.spread else {
                    panic!("it says nothing of its error");
                };
                println!(
                    "  {plan}: {} instead of {}: {}",
                    figures(early),
                    figures(late),
                    percent(off)
                );
                errors.push((off.abs(), within));
            }
        }
        errors
    });
    let mut all: Vec<(f64, f64)> = found.into_iter().flatten().collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let outside = all.iter().filter(|(off, within)| off > within).count();
    println!(
        "{} first speedups: median {}, highest tenth {}, worst {}; {outside} outside of what they say",
        all.len(),
        percent(all[all.len() / 2].0),
        percent(all[all.len() * 9 / 10].0),
        percent(all[all.len() - 1].0),
    );
    assert!(
        outside * 10 <= all.len(),
        "{outside} of {} are outside",
        all.len()
    );
}
