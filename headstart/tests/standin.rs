//! A stand-in for kernels that we do not have: modules that `scripts/standin` takes from packages, or compiles.
//!
//! ```text
//! scripts/standin
//! cargo test -p headstart --release --test standin -- --ignored --nocapture
//! ```
//!
//! Counts how many distinct entries are read, understood (every loop's trip count and every global load's root is known) and,
//! with `HEADSTART_STANDIN_RUN`, executed by the functional engine on made-up data; and lists the reasons for refusals.
//! `HEADSTART_STANDIN` names another folder than `target/standin`; `HEADSTART_STANDIN_ONLY` picks the entries whose
//! `FILE:ENTRY` contains it; `HEADSTART_STANDIN_LIST` names a file that gets a line for each entry.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use headstart::analysis::definitions::Definitions;
use headstart::analysis::loops::summarize;
use headstart::analysis::roots::root;
use headstart::device::Device;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::{CompiledKernel, Groups, Options};
use headstart::front::ptx::{Facts, Imported, Module};
use headstart::ir::{Kernel, OpKind, Space};
use headstart::tune::{FileSubject, LaunchFile, Subject, fitted_launch_template};
use headstart::{Error, Fault};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

/// Dynamic shared memory of a work-group that every launch gets.
const SHARED_BYTES: u32 = 48 << 10;

/// What became of an entry.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    origin: String,
    read: Result<(), String>,
    /// What is not known of its loops and loads.
    unknown: Option<String>,
    /// How its run on made-up data ended, and whether it changed any memory.
    ran: Result<bool, (Fault, String)>,
}

/// Most operations of a sub-group on made-up data.
const MOST_OPERATIONS: u64 = 1 << 20;

/// The first loop without a trip count that is known when it is entered, or load of unknown memory.
fn unknown(kernel: &Kernel) -> Option<String> {
    let definitions = Definitions::of(kernel);
    let mut found = None;
    kernel.body.walk(&mut |op| match &op.kind {
        OpKind::Loop { .. } => {
            let summary = summarize(kernel, &definitions, op);
            if let (Err(why), None) = (summary.exit, summary.unless_wraps) {
                // The data that end a loop have other names elsewhere.
                let mut parts = why.split('`');
                let why: String = [parts.next(), parts.nth(1)].into_iter().flatten().collect();
                found.get_or_insert(format!("loop: {}", why.trim_end()));
            }
        }
        OpKind::Load { ptr, .. } => {
            let is_own = matches!(kernel.ty(*ptr).space(), Some(Space::Shared | Space::Private));
            if !is_own && root(kernel, &definitions, *ptr).is_none() {
                found.get_or_insert("load: it is unknown which memory it reads".to_owned());
            }
        }
        _ => {}
    });
    found
}

/// Runs an entry on the data of its template, which knows nothing but the entry. Gives whether an output changed.
fn run(imported: Imported) -> Result<bool, (Fault, String)> {
    let told = |error: Error| (error.fault(), cause(&error));
    let kernel = Arc::new(imported.kernel.clone());
    let original = Arc::new(imported.original.clone());
    let simulator = Simulator::new("h200").map_err(told)?;
    let text = fitted_launch_template(
        &kernel,
        Some(&original),
        Some(SHARED_BYTES),
        simulator.description(),
    );
    let launch = LaunchFile::parse(&text, "template").map_err(told)?;
    let workload = FileSubject::of_module(imported, launch)
        .workload()
        .map_err(told)?;
    // Once more, and by the engine alone: what the template says of itself is not taken for granted.
    let (mut launch, memories) = headstart_testing::bind(&workload).map_err(told)?;
    launch.operation_limit = Some(MOST_OPERATIONS);
    let before: Vec<_> = memories.iter().map(|memory| memory.snapshot()).collect();
    let size = kernel.sub_group_size.unwrap_or(32);
    let all = launch.group_count();
    let compiled = CompiledKernel::new(kernel);
    let groups = match compiled.may_wait_for_others() {
        true => Groups::All,
        false => Groups::Some(if all > 1 { vec![0, all - 1] } else { vec![0] }),
    };
    compiled
        .run(&launch, size, Options::CHECKING, &groups)
        .map_err(told)?;
    Ok(memories
        .iter()
        .zip(&before)
        .any(|(after, before)| !after.is_same(before)))
}

/// Numbers and names in messages differ from entry to entry; their causes do not.
fn cause(error: &Error) -> String {
    let what = error.what();
    let what = what
        .split_once("`: ")
        .map_or(what, |(entry, rest)| match entry.starts_with("entry `") {
            true => rest,
            false => what,
        });
    what.to_owned()
}

fn modules(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            modules(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            into.push(path);
        }
    }
    into.sort();
}

#[test]
#[ignore = "needs the modules of scripts/standin"]
fn entries_of_the_stand_in_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/standin");
    let root = std::env::var_os("HEADSTART_STANDIN").map_or(root, PathBuf::from);
    let wanted = std::env::var("HEADSTART_STANDIN_ONLY").unwrap_or_default();
    let runs = std::env::var_os("HEADSTART_STANDIN_RUN").is_some();
    let mut files = Vec::new();
    modules(&root, &mut files);
    assert!(
        !files.is_empty(),
        "no modules in {}: run scripts/standin",
        root.display()
    );
    let seen: Mutex<HashSet<u64>> = Mutex::default();
    let rows: Mutex<Vec<Row>> = Mutex::default();
    files.par_iter().for_each(|path| {
        let text = fs::read_to_string(path).expect("text");
        let file = path
            .strip_prefix(&root)
            .expect("inside")
            .to_string_lossy()
            .into_owned();
        let origin = file.split('/').next().unwrap_or_default().to_owned();
        let module = Module::new(&text, &file).unwrap_or_else(|error| panic!("{file}: {error}"));
        for entry in module.entries() {
            let mut hash = DefaultHasher::new();
            module.body_of(entry).hash(&mut hash);
            if !format!("{file}:{entry}").contains(&wanted)
                || !seen.lock().expect("ours").insert(hash.finish())
            {
                continue;
            }
            let facts = Facts {
                dynamic_shared_bytes: Some(SHARED_BYTES),
                ..Facts::default()
            };
            let read = module.import_alone(entry, &facts);
            let unknown = read.as_ref().ok().and_then(|imported| unknown(&imported.kernel));
            let not_read = || (Fault::Input, "not read".to_owned());
            let ran = match (&read, runs) {
                (Ok(imported), true) => run(imported.clone()),
                _ => Err(not_read()),
            };
            rows.lock().expect("ours").push(Row {
                name: format!("{file}:{entry}"),
                origin: origin.clone(),
                read: read.as_ref().map(|_| ()).map_err(cause),
                unknown,
                ran,
            });
        }
    });
    let mut rows = rows.into_inner().expect("ours");
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    let mut causes: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut count = |kind: &str, cause: &str, name: &str| {
        causes
            .entry(format!("{kind}: {cause}"))
            .or_insert((0, name.to_owned()))
            .0 += 1;
    };
    let mut origins: BTreeMap<&str, [usize; 6]> = BTreeMap::new();
    let mut list = String::new();
    for row in &rows {
        let stopped = |fault: Fault| matches!(&row.ran, Err((other, _)) if *other == fault);
        let read = row.read.is_ok();
        let numbers = [
            true,
            read,
            read && row.unknown.is_none(),
            row.ran.is_ok(),
            row.ran == Ok(true),
            read && stopped(Fault::Input),
        ];
        for origin in [row.origin.as_str(), "~ all"] {
            let counts = origins.entry(origin).or_default();
            counts
                .iter_mut()
                .zip(numbers)
                .for_each(|(count, is)| *count += usize::from(is));
        }
        let outcome = match (&row.read, &row.unknown, &row.ran) {
            (Err(cause), ..) => format!("refused: {cause}"),
            (_, unknown, Ok(wrote)) => {
                let wrote = if *wrote { ", wrote" } else { "" };
                format!("ran{wrote}; {}", unknown.clone().unwrap_or_default())
            }
            (_, unknown, Err((fault, cause))) => {
                format!("{fault:?}: {cause}; {}", unknown.clone().unwrap_or_default())
            }
        };
        let _ = writeln!(list, "{}\t{outcome}", row.name);
        match (&row.read, &row.ran) {
            (Err(cause), _) => count("refused", cause, &row.name),
            (_, Err((fault, cause))) if runs => count(&format!("stopped, {fault:?}"), cause, &row.name),
            _ => {}
        }
        if let Some(unknown) = &row.unknown {
            count("not known", unknown, &row.name);
        }
    }
    println!(
        "{:20} {:>8} {:>8} {:>12} {:>8} {:>8} {:>14}",
        "", "entries", "read", "all is known", "ran", "wrote", "data at fault"
    );
    for (origin, [all, read, known, ran, wrote, fault]) in &origins {
        println!("{origin:20} {all:8} {read:8} {known:12} {ran:8} {wrote:8} {fault:14}");
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (cause, (count, example)) in causes.iter().take(300) {
        println!(
            "{count:6}  {cause}   [{}]",
            example.chars().take(100).collect::<String>()
        );
    }
    if let Some(path) = std::env::var_os("HEADSTART_STANDIN_LIST") {
        fs::write(path, list).expect("written");
    }
}
