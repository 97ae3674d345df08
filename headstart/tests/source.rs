//! Random programs and graphs: our ways to IR, a compiler's and the interpreter give the same bits, and no plan changes one
//! of them, under launches that the plan was not derived with.
//!
//! `HEADSTART_SOURCES` sets how many kernels are tried, `HEADSTART_COMPILED` how many through compilers (a hundred a
//! file), `HEADSTART_SEED` the first of them. `examples/campaign.rs` does the same for as long as one likes.

use std::path::PathBuf;
use std::process::Command;

use headstart::testing::source::campaign::{Counts, Difference, prepared, trial};
use headstart::testing::source::{cuda, launches, program};
use headstart::testing::{self, Random, tools};
use rayon::prelude::*;

/// Kernels in one file for a compiler.
const A_FILE: u64 = 100;

/// What a compiler is called with, apart from the source and the output.
struct Compiler {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    /// Taken in turn, a file each.
    levels: &'static [&'static str],
    /// In front of the source.
    prelude: &'static str,
}

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

#[test]
fn plans_change_no_bit_under_other_launches() {
    let seed = testing::base_seed();
    let cases = testing::count("HEADSTART_SOURCES", 400);
    let results: Vec<(Counts, Vec<Difference>)> = (seed..seed + cases)
        .into_par_iter()
        .map(|seed| {
            let mut counts = Counts::default();
            let found = trial(seed, &mut counts, true);
            (counts, found)
        })
        .collect();
    let mut counts = Counts::default();
    results.iter().for_each(|(more, _)| counts.add(more));
    let differences: Vec<Difference> = results.into_iter().flat_map(|(_, found)| found).collect();
    settle(&counts, &differences);
    // What tests too little is no test.
    assert!(counts.kernels * 10 > cases * 8, "{counts}");
    assert!(counts.launches > counts.kernels * 5, "{counts}");
    assert!(counts.accepted * 4 > counts.kernels * 2, "{counts}");
}

fn compilers() -> Vec<Compiler> {
    let arguments = |words: &str| words.split_whitespace().map(str::to_owned).collect();
    let mut compilers = Vec::new();
    if let Some(program) = tools::program("nvcc") {
        compilers.push(Compiler {
            name: "nvcc",
            program,
            arguments: arguments("-arch=sm_80 -ptx -fmad=false -w"),
            // Its optimiser runs in `cicc`, and `-O0` alone does not stop it.
            levels: &["-O3", "-Xcicc -O0", "-Xcicc -O1", "-Xcicc -O2"],
            prelude: "",
        });
    }
    match clang() {
        Some(program) => compilers.push(Compiler {
            name: "clang",
            program,
            arguments: arguments(
                "-x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib -S -w -ffp-contract=off \
                 -Xclang -target-feature -Xclang +ptx70",
            ),
            levels: &["-O2", "-O0", "-O1", "-O3"],
            prelude: concat!(
                include_str!("../../corpus/clang.h"),
                "template <class T> static __device__ inline T __ldg(const T *p) { return *p; }\n"
            ),
        }),
        None => tools::skip("clang", "no clang; CLANG names it"),
    }
    compilers
}

fn clang() -> Option<PathBuf> {
    let named = std::env::var_os("CLANG").map(PathBuf::from);
    let names = ["clang-19", "clang"].map(PathBuf::from);
    named.into_iter().chain(names).find(|program| {
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    })
}

#[test]
fn compilers_agree_and_plans_change_no_bit() {
    let compilers = compilers();
    let seed = testing::base_seed();
    let cases = testing::count("HEADSTART_COMPILED", A_FILE);
    let folder = tempfile::tempdir().expect("a folder");
    let mut counts = Counts::default();
    let mut differences = Vec::new();
    for (number, compiler) in compilers.iter().enumerate() {
        let mut begin = seed;
        let mut levels = compiler.levels.iter().cycle().skip((seed % 4) as usize);
        while begin < seed + cases {
            let level = levels.next().copied().unwrap_or_default();
            let seeds = begin..(begin + A_FILE).min(seed + cases);
            begin = seeds.end;
            let programs: Vec<_> = seeds
                .into_par_iter()
                .map(|seed| {
                    let mut counts = Counts::default();
                    (prepared(seed, &mut counts), counts)
                })
                .collect();
            let mut text = compiler.prelude.to_owned();
            for (program, more) in &programs {
                counts.add(more);
                if let Some(prepared) = program {
                    text.push_str(&cuda(&prepared.program));
                }
            }
            let source = folder.path().join(format!("programs{number}.cu"));
            let output = folder.path().join(format!("programs{number}.ptx"));
            std::fs::write(&source, &text).expect("the source can be written");
            let ran = Command::new(&compiler.program)
                .args(&compiler.arguments)
                .args(level.split_whitespace())
                .arg("-o")
                .arg(&output)
                .arg(&source)
                .output()
                .unwrap_or_else(|error| panic!("{}: {error}", compiler.name));
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{}: {said}", compiler.name);
            let module = std::fs::read_to_string(&output).expect("a module");
            let results: Vec<_> = programs
                .into_par_iter()
                .filter_map(|(program, _)| {
                    let mut counts = Counts::default();
                    let found = program?.check_module(&module, &mut counts, true);
                    Some((counts, found))
                })
                .collect();
            for (more, found) in results {
                counts.add(&more);
                differences.extend(found);
            }
        }
    }
    for (rule, count) in &counts.rules {
        if rule.starts_with("not read") {
            println!("{count} {rule}");
        }
    }
    settle(&counts, &differences);
    assert!(compilers.is_empty() || counts.runs > counts.kernels, "{counts}");
}

/// What people write, as it stands in the text.
const WRITTEN: [&str; 20] = [
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
    "__ballot_sync",
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
