//! Tries plans on random programs and graphs on all cores, for a number of minutes or of seeds.
//!
//! ```text
//! cargo build --release -p headstart --example campaign && strip target/release/examples/campaign
//! HEADSTART_SEED=0 HEADSTART_MINUTES=10 HEADSTART_OUT=piece.json target/release/examples/campaign [compilers]
//! ```
//!
//! Alone it needs nothing but itself; with `compilers` the programs go through nvcc and clang, a hundred a file and each
//! file at another level of optimisation (`HEADSTART_TOOLS` and `CLANG` say where they are).
//!
//! ```text
//! HEADSTART_TOOLS=/usr/local/cuda campaign gpu --minutes 9 --folder DIR
//! HEADSTART_TOOLS=/usr/local/cuda campaign conversions --folder DIR
//! ```
//!
//! With `gpu` they are run on the GPU that is here: the bits of the original against the functional engine's and against those
//! of up to six legal plans of each entry, under four launches. It goes on where the folder's `summary.json` ends, or
//! starts at a seed of its own; `differences.jsonl` has what was found. With `conversions` every conversion of PTX is
//! compared on 65,536 numbers. The options of both are in `gpu.rs`.
//!
//! The others start at `HEADSTART_SEED` (0), ends before `HEADSTART_SEED + HEADSTART_CASES` (no end) and after
//! `HEADSTART_MINUTES` (10), on `RAYON_NUM_THREADS` threads (one for each core). `HEADSTART_OUT` names the file that gets
//! the counts and the differences as JSON, again and again while it runs; its `next` is the seed at which the next piece
//! goes on. `HEADSTART_SHOWN` (20) differences are shrunk and kept, of all others only their seeds and plans are. Exit
//! status: 0 no difference, 1 some, 2 it could not go on.

mod gpu;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use headstart_testing::hardware::worker;
use headstart_testing::source::campaign::{Counts, Difference, trial};
use headstart_testing::source::compilers::{A_FILE, Checked, Compiler, check_file, compilers};
use rayon::prelude::*;

/// Seeds that are tried before the clock is looked at.
const PIECE: u64 = 512;

fn variable(name: &str, otherwise: f64) -> f64 {
    let given = std::env::var(name).ok().and_then(|given| given.parse().ok());
    given.unwrap_or(otherwise)
}

fn fail(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(2);
}

/// What was tried and found.
#[derive(Default)]
struct Report {
    counts: Counts,
    /// The same by compiler and level.
    compiled: BTreeMap<String, Counts>,
    /// Kernels that compilers were given, each once.
    kernels_compiled: u64,
    differences: Vec<Difference>,
    others: Vec<String>,
    shown: usize,
}

impl Report {
    fn find(&mut self, found: Vec<Difference>) {
        for difference in found {
            match self.differences.len() < self.shown {
                true => {
                    println!("{difference}");
                    self.differences.push(difference);
                }
                false => {
                    let Difference { seed, plan, why, .. } = difference;
                    self.others.push(format!("{seed} {plan}: {why}"));
                }
            }
        }
    }

    fn shrinks(&self) -> bool {
        self.differences.len() < self.shown
    }

    /// Tries plans on what our own ways make of the kernels of these seeds.
    fn try_seeds(&mut self, begin: u64, end: u64) -> u64 {
        let end = end.min(begin + PIECE);
        let shrinks = self.shrinks();
        let results: Vec<(Counts, Vec<Difference>)> = (begin..end)
            .into_par_iter()
            .map(|seed| {
                let mut counts = Counts::default();
                let found = trial(seed, &mut counts, shrinks);
                (counts, found)
            })
            .collect();
        for (more, found) in results {
            self.counts.add(&more);
            self.find(found);
        }
        end
    }

    /// Tries plans on what compilers make of them: a file for each thread.
    fn try_files(&mut self, compilers: &[Compiler], folder: &std::path::Path, begin: u64, end: u64) -> u64 {
        let files = rayon::current_num_threads() as u64;
        let end = end.min(begin + files * A_FILE);
        let shrinks = self.shrinks();
        let begins: Vec<u64> = (begin..end).step_by(A_FILE as usize).collect();
        let results: Result<Vec<Checked>, String> = begins
            .into_par_iter()
            .map(|begin| {
                let seeds = begin..end.min(begin + A_FILE);
                check_file(compilers, seeds, begin / A_FILE, folder, shrinks)
            })
            .collect();
        for checked in results.unwrap_or_else(|said| fail(&said)) {
            self.counts.add(&checked.total());
            for (name, counts) in &checked.counts {
                self.compiled.entry(name.clone()).or_default().add(counts);
            }
            self.kernels_compiled += checked.kernels;
            self.find(checked.differences);
        }
        end
    }

    fn write(&self, path: &str, command: &str, start: u64, next: u64, seconds: f64) {
        let report = serde_json::json!({
            "command": command,
            "start": start,
            "next": next,
            "seconds": seconds,
            "threads": rayon::current_num_threads(),
            "counts": self.counts,
            "kernels_compiled": self.kernels_compiled,
            "compiled": self.compiled,
            "differences": self.differences,
            "others": self.others,
        });
        // In two steps: who is stopped while it writes has the report of before.
        let whole = format!("{path}.new");
        let written = std::fs::write(&whole, format!("{report:#}\n"));
        if let Err(error) = written.and_then(|()| std::fs::rename(&whole, path)) {
            fail(&format!("{path}: {error}"));
        }
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some(gpu::WORKER) => {
            let served = worker::serve(std::io::stdin().lock(), std::io::stdout());
            served.unwrap_or_else(|error| fail(&error.to_string()));
            return;
        }
        Some(command @ ("gpu" | "edits" | "conversions")) => match gpu::run(command, words) {
            Ok(found) => std::process::exit(i32::from(found)),
            Err(said) => fail(&said),
        },
        _ => {}
    }
    let start = variable("HEADSTART_SEED", 0.0) as u64;
    let cases = variable("HEADSTART_CASES", 1e18) as u64;
    let limit = Duration::from_secs_f64(60.0 * variable("HEADSTART_MINUTES", 10.0));
    let out = std::env::var("HEADSTART_OUT").ok();
    let (command, through) = match std::env::args().nth(1).as_deref() {
        None => ("campaign", None),
        Some("compilers") => {
            let header = include_str!("../../../corpus/clang.h");
            let folder = tempfile::tempdir().unwrap_or_else(|error| fail(&error.to_string()));
            ("campaign compilers", Some((compilers(header), folder)))
        }
        Some(other) => fail(&format!(
            "no way `{other}`; `compilers`, `gpu` and `conversions` are some, or none"
        )),
    };
    let begun = Instant::now();
    let mut report = Report {
        shown: variable("HEADSTART_SHOWN", 20.0) as usize,
        ..Report::default()
    };
    let mut next = start;
    while begun.elapsed() < limit && next < start + cases {
        next = match &through {
            None => report.try_seeds(next, start + cases),
            Some((compilers, folder)) => report.try_files(compilers, folder.path(), next, start + cases),
        };
        if let Some(path) = &out {
            report.write(path, command, start, next, begun.elapsed().as_secs_f64());
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let counts = &report.counts;
    println!("seeds {start} to {next}, {seconds:.0} s: {counts}");
    for (name, counts) in &report.compiled {
        println!("{name}: {counts}");
    }
    for (route, [kernels, accepted, differences]) in &counts.routes {
        println!("{route:?}: {kernels} kernels, {accepted} plans accepted, {differences} differences");
    }
    for (strategy, count) in &counts.strategies {
        println!("{count:8} accepted with {strategy}");
    }
    for (rule, count) in &counts.rules {
        println!("{count:8} {rule}");
    }
    std::process::exit(i32::from(counts.differences > 0));
}
