//! Malformed PTX: broken copies of the corpus through the parser and behind it, and broken launch files. `HEADSTART_FUZZ_SECONDS=600` runs each for so long; the seed is that of the other random tests.

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::modules;
use headstart::Fault;
use headstart::front::ptx::import;
use headstart::tune::{FileSubject, LaunchFile, Subject};
use headstart_testing::{self as testing, Random, bind};

/// Longest that one broken module may take, in an unoptimised build.
const PATIENCE: Duration = Duration::from_secs(30);

fn limit() -> Duration {
    let seconds = std::env::var("HEADSTART_FUZZ_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(4))
}

fn corpus() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut texts: Vec<String> = fs::read_dir(folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .map(|path| fs::read_to_string(path).expect("readable"))
        .collect();
    texts.sort();
    // Forms that are rare in it, masks that the run tells, warps in lockstep, debug information.
    texts.extend(
        [
            FORMS,
            FORMS,
            include_str!("ptx_semantics/masks.ptx"),
            include_str!("ptx_semantics/lockstep.ptx"),
            include_str!("../../crates/front/tests/ptx/fields.ptx"),
        ]
        .map(str::to_owned),
    );
    texts
}

/// Entries with the rare forms.
const FORMS: &str = include_str!("data/forms.ptx");

/// The text with some of its words, characters and lines exchanged, doubled or gone.
fn mutated(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..random.between(1, 8) {
        if lines.is_empty() {
            break;
        }
        let (at, other) = (
            random.below(lines.len() as u64) as usize,
            random.below(lines.len() as u64) as usize,
        );
        match random.below(8) {
            0 => {
                lines.remove(at);
            }
            1 => lines.swap(at, other),
            2 => lines.insert(at, lines[other].clone()),
            3 | 4 => {
                let odd = *random.choose(&[
                    "{",
                    "}",
                    ";",
                    "[",
                    "]",
                    "0",
                    "-",
                    ".",
                    "%r1",
                    "%rd2",
                    "%p1",
                    "\"",
                    "/*",
                    "é",
                    ":",
                    "@",
                    "4294967295",
                    "(",
                ]);
                let position = random.below(lines[at].chars().count() as u64 + 1) as usize;
                let line: Vec<char> = lines[at].chars().collect();
                let (head, tail) = line.split_at(position);
                let tail: String = tail.iter().skip(1).collect();
                lines[at] = format!("{}{odd}{tail}", head.iter().collect::<String>());
            }
            _ => {
                let words: Vec<String> = lines[other].split_whitespace().map(str::to_owned).collect();
                let mut own: Vec<String> = lines[at].split_whitespace().map(str::to_owned).collect();
                if !words.is_empty() && !own.is_empty() {
                    let position = random.below(own.len() as u64) as usize;
                    own[position] = random.choose(&words).clone();
                    lines[at] = own.join(" ");
                }
            }
        }
    }
    lines.join("\n")
}

#[test]
fn broken_modules_are_read_or_refused() {
    let (texts, mut random) = (corpus(), Random::new(testing::base_seed()));
    let start = Instant::now();
    let (mut rounds, mut read, mut refused) = (0u64, 0, 0);
    while start.elapsed() < limit() {
        let text = mutated(&mut random, random_text(&texts, rounds));
        let begun = Instant::now();
        let (more, fewer) = modules::check(&text);
        assert!(begun.elapsed() < PATIENCE, "{:?}\n{text}", begun.elapsed());
        (read, refused, rounds) = (read + more, refused + fewer, rounds + 1);
    }
    println!("{rounds} broken modules: {read} entries read, {refused} refused");
    assert!(read > 0 && refused > 0);
}

/// What a launch file can say, for the parameters of `two_loops`; each is a launch of its own.
const LAUNCHES: [&str; 3] = [
    "kernel = \"two_loops\"\ngroups = [2, 1, 1]\ngroup = 32\nreadonly = [\"param_1\"]\nunaliased = [\"param_0\"]\nno_overflow = true\n\
     warp_synchronous = true\nraces = [\"param_0\"]\nshared_bytes = 64\n[parameters.param_0]\nlength = 256\nfill = \"zero\"\n\
     output = 1e-6\n[parameters.param_1]\nlength = 4096\nfill = \"random\"\nrange = [-1.0, 1.0]\nseed = 7\n[parameters.param_2]\nvalue = 7\n\
     [[geometries]]\ngroups = 4\nparameters.param_2 = { value = 3 }\n",
    "groups = 1\ngroup = 32\nraces = true\n[graphs.bags]\nvertices = 64\ndegree = 4\nkind = \"skewed\"\ncolumns = 1000\n[parameters.param_0]\n\
     end_of = \"param_1\"\n[parameters.param_1]\nfill = \"columns\"\ngraph = \"bags\"\n[parameters.param_2]\ntype = \"f16\"\nvalue = 1.5\n",
    "groups = 1\ngroup = 32\n[tables.t]\nslots = 64\nload = 0.5\nhash = \"murmur\"\nempty = -1\n[parameters.param_0]\nbuffer = \"param_1\"\n\
     offset = 16\n[parameters.param_1]\nfill = \"slots\"\ntable = \"t\"\nhits = 0.9\nskew = 0.8\nbelow = 9\nnull = false\nshape = [8, 8]\n",
];

/// Most elements of a buffer that is made.
const FEW: u64 = 1 << 16;

#[test]
fn broken_launch_files_are_read_or_refused() {
    let mut random = Random::new(testing::base_seed());
    let start = Instant::now();
    let (mut rounds, mut launched, mut refused) = (0u64, 0u64, 0u64);
    while start.elapsed() < limit() {
        let text = mutated(&mut random, LAUNCHES[(rounds % 3) as usize]);
        rounds += 1;
        let begun = Instant::now();
        let made = LaunchFile::parse(&text, "launch.toml").and_then(|launch| {
            let imported = import(FORMS, "forms.ptx", Some("two_loops"), &launch.facts())?;
            let subject = FileSubject::of_module(imported, launch);
            let workload = subject.workload()?;
            if workload.bytes() < FEW && workload.geometry().groups < 64 {
                bind(&workload)?;
            }
            Ok(())
        });
        match made {
            Ok(()) => launched += 1,
            Err(error) => {
                assert_ne!(error.fault(), Fault::Bug, "{error}\n{text}");
                refused += 1;
            }
        }
        assert!(begun.elapsed() < PATIENCE, "{:?}\n{text}", begun.elapsed());
    }
    println!("{rounds} broken launch files: {launched} launched, {refused} refused");
    assert!(launched > 0 && refused > 0);
}

fn random_text(texts: &[String], round: u64) -> &str {
    &texts[(round % texts.len() as u64) as usize]
}
