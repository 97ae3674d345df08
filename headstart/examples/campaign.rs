//! Tries plans on random programs and graphs on all cores, for a number of minutes or of seeds.
//!
//! ```text
//! cargo build --release -p headstart --example campaign && strip target/release/examples/campaign
//! HEADSTART_SEED=0 HEADSTART_MINUTES=10 HEADSTART_OUT=piece.json target/release/examples/campaign
//! ```
//!
//! The program needs nothing but itself. It starts at `HEADSTART_SEED` (0), ends before `HEADSTART_SEED + HEADSTART_CASES`
//! (no end) and after `HEADSTART_MINUTES` (10), on `RAYON_NUM_THREADS` threads (one for each core). `HEADSTART_OUT` names
//! the file that gets the counts and the differences as JSON; its `next` is the seed at which the next piece goes on.
//! `HEADSTART_SHOWN` (20) differences are shrunk and kept, of all others only their seeds and plans are. Exit status: 0 no
//! difference, 1 some.

use std::time::{Duration, Instant};

use headstart::testing::source::campaign::{Counts, Difference, trial};
use rayon::prelude::*;

/// Seeds that are tried before the clock is looked at.
const PIECE: u64 = 512;

fn variable(name: &str, otherwise: f64) -> f64 {
    let given = std::env::var(name).ok().and_then(|given| given.parse().ok());
    given.unwrap_or(otherwise)
}

fn main() {
    let start = variable("HEADSTART_SEED", 0.0) as u64;
    let cases = variable("HEADSTART_CASES", 1e18) as u64;
    let limit = Duration::from_secs_f64(60.0 * variable("HEADSTART_MINUTES", 10.0));
    let shown = variable("HEADSTART_SHOWN", 20.0) as usize;
    let begun = Instant::now();
    let mut counts = Counts::default();
    let mut differences: Vec<Difference> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    let mut next = start;
    while begun.elapsed() < limit && next < start + cases {
        let piece = PIECE.min(start + cases - next);
        let shrinks = differences.len() < shown;
        let results: Vec<(Counts, Vec<Difference>)> = (next..next + piece)
            .into_par_iter()
            .map(|seed| {
                let mut counts = Counts::default();
                let found = trial(seed, &mut counts, shrinks);
                (counts, found)
            })
            .collect();
        for (more, found) in results {
            counts.add(&more);
            for difference in found {
                match differences.len() < shown {
                    true => {
                        println!("{difference}");
                        differences.push(difference);
                    }
                    false => {
                        let Difference { seed, plan, why, .. } = difference;
                        others.push(format!("{seed} {plan}: {why}"));
                    }
                }
            }
        }
        next += piece;
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("seeds {start} to {next}, {seconds:.0} s: {counts}");
    for (route, [kernels, accepted, differences]) in &counts.routes {
        println!("{route:?}: {kernels} kernels, {accepted} plans accepted, {differences} differences");
    }
    for (strategy, count) in &counts.strategies {
        println!("{count:8} accepted with {strategy}");
    }
    for (rule, count) in &counts.rules {
        println!("{count:8} {rule}");
    }
    let report = serde_json::json!({
        "command": "campaign",
        "start": start,
        "next": next,
        "seconds": seconds,
        "threads": rayon::current_num_threads(),
        "counts": counts,
        "differences": differences,
        "others": others,
    });
    if let Ok(path) = std::env::var("HEADSTART_OUT") {
        let text = format!("{report:#}\n");
        if let Err(error) = std::fs::write(&path, text) {
            eprintln!("{path}: {error}");
            std::process::exit(2);
        }
    }
    std::process::exit(i32::from(counts.differences > 0));
}
