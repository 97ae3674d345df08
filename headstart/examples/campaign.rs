//! Random CUDA programs on the GPU that is here: the bits of each entry against the functional engine's and against those of up
//! to six legal plans, under four launches.
//!
//! ```text
//! cargo build --release -p headstart --example campaign
//! HEADSTART_TOOLS=/usr/local/cuda HEADSTART_PTXAS=/usr/local/cuda/bin/ptxas target/release/examples/campaign gpu --minutes 9 --folder DIR
//! HEADSTART_TOOLS=/usr/local/cuda target/release/examples/campaign edits --folder DIR
//! ```
//!
//! Without `HEADSTART_PTXAS` the driver compiles, which takes several times as long. It goes on where the folder's `summary.json` ends,
//! or starts at a seed of its own; `differences.jsonl` has what was found. `edits` reads what plans make of the same entries again and
//! asks the engine, where there is no GPU. Exit status: 0 no difference, 1 some, 2 it could not go on. The test `source` tries plans on
//! random programs and graphs on the engine: `HEADSTART_SOURCES` and `HEADSTART_COMPILED` say how many.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use headstart::device::cuda::gpu::GpuFacts;
use headstart::device::cuda::worker::{Worker, serve};
use headstart_testing::hardware::{Found, Settings, Tally, check_file};
use headstart_testing::source::compilers::A_FILE;
use serde_json::{Value, json};

/// The word that makes this program a worker.
const WORKER: &str = "gpu-worker";
/// Entries of which the texts are kept for each kind of difference; of the others only what tells them again.
const WHOLE: u64 = 40;
/// Bytes of all that is kept.
const MOST_BYTES: u64 = 14 << 20;

/// What the command line says.
struct Words {
    minutes: f64,
    folder: PathBuf,
    seed: Option<u64>,
    threads: usize,
    plans: usize,
    files: u64,
    engine: bool,
}

const USAGE: &str = "campaign gpu|edits [--minutes N] [--folder DIR] [--seed N] [--files N] [--threads N] [--plans N] [--no-engine]";

impl Words {
    fn read(words: impl Iterator<Item = String>) -> Result<Words, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut read = Words {
            minutes: 10.0,
            folder: PathBuf::from("campaign-gpu"),
            seed: None,
            threads: cores,
            plans: 6,
            files: u64::MAX,
            engine: true,
        };
        let mut words = words;
        while let Some(word) = words.next() {
            if word == "--no-engine" {
                read.engine = false;
                continue;
            }
            let value = words
                .next()
                .ok_or_else(|| format!("{word} needs a value; {USAGE}"))?;
            let wrong = || format!("{word} {value}: no such value; {USAGE}");
            let number = || value.parse::<u64>().map_err(|_| wrong());
            match &word[..] {
                "--minutes" => read.minutes = value.parse().map_err(|_| wrong())?,
                "--folder" => read.folder = PathBuf::from(&value),
                "--seed" => read.seed = Some(number()?),
                "--files" => read.files = number()?,
                "--threads" => read.threads = number()?.max(1) as usize,
                "--plans" => read.plans = number()? as usize,
                _ => return Err(wrong()),
            }
        }
        Ok(read)
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let ran = match words.next().as_deref() {
        Some(WORKER) => serve(std::io::stdin().lock(), std::io::stdout())
            .map(|()| false)
            .map_err(|error| error.to_string()),
        Some(command @ ("gpu" | "edits")) => run(command, words),
        _ => Err(USAGE.to_owned()),
    };
    match ran {
        Ok(found) => std::process::exit(i32::from(found)),
        Err(why) => {
            eprintln!("{why}");
            std::process::exit(2);
        }
    }
}

fn worker() -> Result<Worker, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Worker::start(&program, &[WORKER.into()], 0).map_err(|failure| failure.what)
}

/// Runs the command; true if it found a difference.
fn run(command: &str, words: impl Iterator<Item = String>) -> Result<bool, String> {
    let words = Words::read(words)?;
    let between = tempfile::tempdir().map_err(|error| error.to_string())?;
    std::fs::create_dir_all(&words.folder).map_err(|error| format!("{}: {error}", words.folder.display()))?;
    let gpu = match command {
        "gpu" => worker()?.facts().cloned(),
        _ => None,
    };
    let capability = gpu.as_ref().map_or((9, 0), |gpu| gpu.capability);
    let mut settings = Settings::new(capability, between.path())?;
    settings.plans = words.plans;
    settings.engine = words.engine || gpu.is_none();
    tried(&words, &settings, gpu.as_ref())
}

/// What is kept in the folder, and goes on there.
struct State {
    start: u64,
    next: u64,
    tally: Tally,
    seconds: f64,
    minutes: f64,
    errors: Vec<String>,
    /// Texts kept so far, by kind, and their bytes.
    kept: BTreeMap<String, u64>,
    bytes: u64,
}

impl State {
    fn read(words: &Words) -> Result<State, String> {
        let path = words.folder.join("summary.json");
        let fresh = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            // Each start is elsewhere, and far from the others.
            now.map_or(0, |now| now.as_secs() % (1 << 24) * 100_000)
        };
        let whole = |seed: u64| seed / A_FILE * A_FILE;
        let mut state = State {
            start: 0,
            next: 0,
            tally: Tally::default(),
            seconds: 0.0,
            minutes: words.minutes,
            errors: Vec::new(),
            kept: BTreeMap::new(),
            bytes: std::fs::metadata(words.folder.join("differences.jsonl")).map_or(0, |data| data.len()),
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let wrong = |error: serde_json::Error| format!("{}: {error}", path.display());
                let before: Value = serde_json::from_str(&text).map_err(wrong)?;
                state.tally = serde_json::from_value(before["tally"].clone()).map_err(wrong)?;
                state.start = before["start"].as_u64().unwrap_or(0);
                state.next = before["next"].as_u64().unwrap_or(0);
                state.seconds = before["seconds"].as_f64().unwrap_or(0.0);
                state.kept = state
                    .tally
                    .differences
                    .iter()
                    .map(|(kind, count)| (kind.clone(), *count))
                    .collect();
                if let Some(seed) = words.seed {
                    state.next = whole(seed);
                }
            }
            Err(_) => {
                state.start = whole(words.seed.unwrap_or_else(fresh));
                state.next = state.start;
            }
        }
        Ok(state)
    }

    fn keep(&mut self, words: &Words, found: Vec<Found>) -> Result<(), String> {
        let path = words.folder.join("differences.jsonl");
        let file = std::fs::File::options().create(true).append(true).open(&path);
        let mut file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        let mut last = None;
        for found in found {
            // One plan of an entry is enough.
            let again = last == Some((found.kind, found.seed));
            last = Some((found.kind, found.seed));
            let kept = self.kept.entry(found.kind.to_owned()).or_default();
            *kept += u64::from(!again);
            let whole = !again && *kept <= WHOLE;
            if whole {
                let plan = found.plan.as_deref().unwrap_or("as it was");
                println!(
                    "{}: seed {}, {}, {plan}: {}",
                    found.kind, found.seed, found.options, found.why
                );
            }
            let found = if whole { found } else { found.brief() };
            let line = serde_json::to_string(&found).map_err(|error| error.to_string())?;
            if self.bytes + line.len() as u64 > MOST_BYTES {
                continue;
            }
            self.bytes += line.len() as u64 + 1;
            writeln!(file, "{line}").map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn write(&self, words: &Words, gpu: Option<&GpuFacts>, seconds: f64) -> Result<(), String> {
        let report = json!({
            "command": format!("campaign {} --minutes {}", if gpu.is_some() { "gpu" } else { "edits" }, self.minutes),
            "device": gpu,
            "start": self.start,
            "next": self.next,
            "seconds": self.seconds + seconds,
            "threads": words.threads,
            "plans": words.plans,
            "tally": self.tally,
            "errors": self.errors,
        });
        written(&words.folder.join("summary.json"), &report)
    }
}

fn written(path: &Path, report: &Value) -> Result<(), String> {
    // In two steps: a program that is stopped while it writes leaves the report of before.
    let whole = path.with_extension("new");
    let written = std::fs::write(&whole, format!("{report:#}\n"));
    written
        .and_then(|()| std::fs::rename(&whole, path))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn tried(words: &Words, settings: &Settings, gpu: Option<&GpuFacts>) -> Result<bool, String> {
    let begun = Instant::now();
    let limit = Duration::from_secs_f64(60.0 * words.minutes);
    let state = Mutex::new(State::read(words)?);
    let first = state.lock().unwrap_or_else(PoisonError::into_inner).next;
    let end = first.saturating_add(words.files.saturating_mul(A_FILE));
    let longest = Mutex::new(Duration::ZERO);
    let work = || -> Result<(), String> {
        let mut worker = gpu.map(|_| worker()).transpose()?;
        loop {
            let longest_now = *longest.lock().unwrap_or_else(PoisonError::into_inner);
            let seed = {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                // A file that would not be done in time is not begun.
                if state.next >= end || begun.elapsed() + longest_now > limit {
                    return Ok(());
                }
                state.next += A_FILE;
                state.next - A_FILE
            };
            let start = Instant::now();
            let checked = check_file(settings, worker.as_mut(), seed..seed + A_FILE, seed / A_FILE);
            let mut longest = longest.lock().unwrap_or_else(PoisonError::into_inner);
            *longest = start.elapsed().max(*longest);
            drop(longest);
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            match checked {
                Ok((tally, found)) => {
                    state.tally.add(&tally);
                    state.keep(words, found)?;
                }
                Err(said) => {
                    eprintln!(
                        "seeds from {seed}: {}",
                        said.lines().take(20).collect::<Vec<_>>().join("\n")
                    );
                    state
                        .errors
                        .push(format!("seeds from {seed}: {said}").chars().take(2000).collect());
                    // What fails again and again is not tried again.
                    if state.errors.len() > 20 {
                        return Err("too many files fail".to_owned());
                    }
                }
            }
            state.write(words, gpu, begun.elapsed().as_secs_f64())?;
        }
    };
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..words.threads).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|ended| ended.unwrap_or_else(|_| Err("a thread ended".to_owned())))
            .collect()
    });
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.write(words, gpu, begun.elapsed().as_secs_f64())?;
    outcomes.into_iter().collect::<Result<Vec<()>, String>>()?;
    show(&state, first, begun.elapsed());
    Ok(!state.tally.differences.is_empty())
}

fn show(state: &State, first: u64, took: Duration) {
    let Tally {
        generated,
        entries,
        read,
        looped,
        planned,
        legal,
        launches,
        pairs,
        engine,
        ..
    } = &state.tally;
    println!("seeds {first} to {}, {:.0} s now", state.next, took.as_secs_f64());
    println!(
        "{generated} programs, {entries} entries, {read} read, {looped} with a load in a loop, {planned} of these with a legal plan"
    );
    println!("{launches} launches, {legal} legal plans, {pairs} compared launches of plans");
    println!(
        "{} plans' texts read again and run by the engine",
        state.tally.read_again
    );
    println!(
        "{engine} entries compared with the engine, {} with too many open sums",
        state.tally.engine_open
    );
    let lists = [
        ("found", &state.tally.differences),
        ("engine does not run", &state.tally.engine_fails),
        ("entry refused", &state.tally.refused),
    ];
    for (name, list) in lists {
        let mut list: Vec<_> = list.iter().collect();
        list.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (what, count) in list.into_iter().take(15) {
            let seed = state.tally.refused_seeds.get(what);
            let seed = seed.map_or_else(String::new, |seed| format!(" (seed {seed})"));
            println!("{count:8} {name}: {what}{seed}");
        }
    }
    for (stage, seconds) in &state.tally.seconds {
        println!("{seconds:8.0} s {stage}");
    }
}
