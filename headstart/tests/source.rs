//! Random programs and graphs: our ways to IR, a compiler's and the interpreter give the same bits, and no plan changes one
//! of them, under launches that the plan was not derived with.
//!
//! `HEADSTART_SOURCES` sets how many kernels are tried, `HEADSTART_TOGETHER` how many with work-groups that wait for each other
//! and how many with masks, `HEADSTART_COMPILED` how many through compilers (a hundred per file), `HEADSTART_SEED` the first of
//! them. `examples/campaign` has a GPU judge them.

use headstart_testing::source::campaign::{Counts, Difference, trial};
use headstart_testing::source::compilers::{A_FILE, Checked, check_file, compilers};
use headstart_testing::source::{cuda, launches, program};
use headstart_testing::{self as testing, Random};
use rayon::prelude::*;

/// What CUDA's headers would give clang.
const HEADER: &str = include_str!("../../corpus/clang.h");

/// The first difference, and how many there are.
fn settle(counts: &Counts, differences: &[Difference]) {
    println!("{counts}");
    for difference in differences {
        println!(
            "seed {} by {:?}, plan {}: {}",
            difference.seed, difference.route, difference.plan, difference.why
        );
    }
    if let Some(first) = differences.first() {
        panic!("{} differences, the first of them: {first}", differences.len());
    }
}

/// Tries plans on the kernels of these seeds; none may change a bit.
fn try_all(seeds: Vec<u64>) -> Counts {
    let results: Vec<(Counts, Vec<Difference>)> = seeds
        .into_par_iter()
        .map(|seed| {
            let mut counts = Counts::default();
            let found = trial(seed, &mut counts);
            (counts, found)
        })
        .collect();
    let mut counts = Counts::default();
    results.iter().for_each(|(more, _)| counts.add(more));
    let differences: Vec<Difference> = results.into_iter().flat_map(|(_, found)| found).collect();
    settle(&counts, &differences);
    counts
}

#[test]
fn plans_change_no_bit_under_other_launches() {
    let seed = testing::base_seed();
    let cases = testing::count("HEADSTART_SOURCES", 400);
    let counts = try_all((seed..seed + cases).collect());
    // What tests too little is no test.
    assert!(counts.kernels * 10 > cases * 8, "{counts}");
    assert!(counts.launches > counts.kernels * 5, "{counts}");
    assert!(counts.accepted * 4 > counts.kernels * 2, "{counts}");
    let is_unread = |rule: &&String| rule.starts_with("graph not read");
    let mut unread = counts.rules.keys().filter(is_unread);
    assert!(
        unread.all(|rule| rule.contains("in too many ways")),
        "{:?}",
        counts.rules
    );
}

#[test]
fn plans_keep_waiting_groups_and_masks() {
    let seed = testing::base_seed();
    let cases = testing::count("HEADSTART_TOGETHER", 40);
    // Every fifth seed is a graph's, which has neither.
    let programs = || {
        (seed..)
            .filter(|seed| seed % 5 < 4)
            .map(|seed| (seed, program(seed)))
    };
    let waiting = programs().filter(|(_, program)| program.waits);
    let masked = programs().filter(|(_, program)| !program.partial && cuda(program).contains("_sync(v"));
    for (what, seeds) in [
        (
            "groups that wait",
            waiting.take(cases as usize).map(|(seed, _)| seed).collect(),
        ),
        (
            "masks",
            masked
                .take(cases as usize)
                .map(|(seed, _)| seed)
                .collect::<Vec<u64>>(),
        ),
    ] {
        let counts = try_all(seeds);
        println!("{what}: {counts}");
        assert!(
            counts.kernels * 2 > cases && counts.accepted > 0,
            "{what}: {counts}"
        );
    }
}

#[test]
fn compilers_agree_and_plans_change_no_bit() {
    let compilers = compilers(HEADER);
    let seed = testing::base_seed();
    let cases = testing::count("HEADSTART_COMPILED", A_FILE);
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<u64> = (0..cases.div_ceil(A_FILE)).collect();
    let results: Vec<Checked> = files
        .into_par_iter()
        .map(|file| {
            let begin = seed + file * A_FILE;
            let seeds = begin..(begin + A_FILE).min(seed + cases);
            // Each day's seed begins with another level.
            check_file(&compilers, seeds, seed + file, folder.path()).unwrap_or_else(|said| panic!("{said}"))
        })
        .collect();
    let mut checked = Checked::default();
    results.into_iter().for_each(|more| checked.add(more));
    for (name, counts) in &checked.counts {
        println!("{name}: {counts}");
        for (rule, count) in &counts.rules {
            if rule.starts_with("not read") {
                println!("{count} {rule}");
            }
        }
    }
    let counts = checked.total();
    settle(&counts, &checked.differences);
    assert!(compilers.is_empty() || counts.runs > counts.kernels, "{counts}");
}

/// What people write, as it stands in the text.
const WRITTEN: [&str; 26] = [
    "goto out",
    "goto next",
    "continue;",
    "break;",
    "return;",
    "switch (",
    "do {",
    "||",
    "&&",
    "!(",
    "++v",
    "--v",
    "v7--",
    "__ldg(",
    "__shfl_",
    "__ballot_sync(0xffffffffu, ",
    "__ballot_sync(v",
    "__shfl_down_sync(v",
    "__syncwarp(v",
    "__threadfence();",
    "g[(t % ",
    "while (g[",
    "__syncthreads",
    " ? ",
    "signed char v",
    "unsigned long long v",
];

#[test]
fn everything_is_written() {
    let texts: Vec<String> = (0..1500).map(|seed| cuda(&program(seed))).collect();
    for wanted in WRITTEN {
        assert!(
            texts.iter().any(|text| text.contains(wanted)),
            "no program has `{wanted}`"
        );
    }
}

#[test]
fn launches_differ_and_mean_something() {
    // The array that may be the same memory as an earlier one, and the array of results.
    const SHARING: (usize, usize) = (9, 8);
    const RESULTS: usize = 10;
    let (mut tried, mut dropped, mut distinct, mut aliased) = (0, 0, 0, 0);
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let (found, more) = launches(&mut random, &program(seed), Some(SHARING), 8);
        dropped += more;
        tried += found.len();
        aliased += found
            .iter()
            .filter(|tried| tried.launch.aliases[SHARING.0].is_some())
            .count();
        let mut results: Vec<_> = found.iter().map(|tried| &tried.results[RESULTS]).collect();
        results.sort();
        results.dedup();
        distinct += results.len();
    }
    println!("{tried} launches, {dropped} dropped, {aliased} with shared memory, {distinct} results");
    assert!(tried > 600 && aliased > 100);
    assert!(distinct * 2 > tried);
    assert!(dropped < 2 * tried as u64);
}
