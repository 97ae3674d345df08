//! A stand-in for kernels that we do not have: modules that `scripts/standin` takes from packages, or compiles.
//!
//! ```text
//! scripts/standin
//! cargo test -p headstart --release --test standin -- --ignored --nocapture
//! ```
//!
//! Counts how many distinct entries are read, of how many all is known (every loop's trip count and every global load's root),
//! how many are understood (what is not known has a rule that names what it depends on) and, with `HEADSTART_STANDIN_RUN`,
//! executed by the functional engine on made-up data; and lists the reasons for refusals, without the names of any.
//! `HEADSTART_STANDIN` names another folder than `target/standin`; `HEADSTART_STANDIN_ONLY` picks the entries whose
//! `FILE:ENTRY` contains it, `HEADSTART_STANDIN_EVERY=N` one of N of them, by what they are; `HEADSTART_STANDIN_LIST` names a
//! file that gets a line for each entry, while they are tried.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
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
    unknown: Option<Unknown>,
    /// How its run on made-up data ended, and whether it changed any memory.
    ran: Result<bool, (Fault, String)>,
}

impl Row {
    /// What became of it, in a line.
    fn line(&self) -> String {
        let unknown = self.unknown.as_ref().map_or(String::new(), |unknown| {
            format!("{} [{}]", unknown.why, unknown.label)
        });
        let outcome = match (&self.read, &self.ran) {
            (Err(cause), _) => format!("refused: {cause}"),
            (_, Ok(true)) => format!("ran, wrote; {unknown}"),
            (_, Ok(false)) => format!("ran; {unknown}"),
            (_, Err((fault, cause))) => format!("{fault:?}: {cause}; {unknown}"),
        };
        format!("{}\t{}", self.name, outcome.replace('\n', " "))
    }
}

/// The first thing that is not known of a kernel.
#[derive(Clone, Debug)]
struct Unknown {
    why: String,
    /// The loop, if it is one.
    label: String,
    /// Whether the reason says what it depends on, of this and all others.
    is_named: bool,
}

/// Most operations of a sub-group on made-up data.
const MOST_OPERATIONS: u64 = 1 << 20;

/// The reason of loops of which no rule says what ends them.
const UNNAMED: &str = "its end depends on data that the loop computes";

/// The first loop without a trip count that is known when it is entered, or load of unknown memory.
fn unknown(kernel: &Kernel) -> Option<Unknown> {
    let definitions = Definitions::of(kernel);
    let mut found: Option<Unknown> = None;
    let mut note = |why: String, label: String| {
        let is_named = !why.contains(UNNAMED);
        // What has no name comes first.
        if found.as_ref().is_none_or(|found| found.is_named && !is_named) {
            found = Some(Unknown { why, label, is_named });
        }
    };
    kernel.body.walk(&mut |op| match &op.kind {
        OpKind::Loop { label, .. } => {
            let summary = summarize(kernel, &definitions, op);
            if let (Err(why), None) = (summary.exit, summary.unless_wraps) {
                // The data that end a loop have other names elsewhere.
                let mut parts = why.split('`');
                let why: String = [parts.next(), parts.nth(1)].into_iter().flatten().collect();
                let label = kernel.labels[*label].name.clone().unwrap_or_default();
                note(format!("loop: {}", why.trim_end()), label);
            }
        }
        OpKind::Load { ptr, id, .. } => {
            let is_own = matches!(kernel.ty(*ptr).space(), Some(Space::Shared | Space::Private));
            if !is_own && root(kernel, &definitions, *ptr).is_none() {
                let why = "load: it is unknown which memory it reads";
                note(why.to_owned(), kernel.loads[*id].name.clone());
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

/// A message of the engine about data, without what differs from kernel to kernel: who did it, where, and names.
fn alike(what: &str) -> String {
    let mut parts = what.split('`');
    let mut told = parts.next().unwrap_or_default().to_owned();
    while let (Some(_), rest) = (parts.next(), parts.next()) {
        told.push('…');
        told.push_str(rest.unwrap_or_default());
    }
    let words = told
        .split_whitespace()
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
    let words: Vec<&str> = words.collect();
    let told = words.join(" ").replace("work-item of work-group (global ", "");
    let told = match told.split_once(" at ") {
        Some((access, rest)) if access.contains("which work-item") => {
            let race = rest.split_once(" with ").map_or("", |(_, race)| race);
            format!("{access} with {race}")
        }
        _ => told,
    };
    told.split(": ").next().unwrap_or_default().to_owned()
}

fn modules(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        // Compilers keep what they made in hidden folders, once more.
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if path.is_dir() && !is_hidden {
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
    let every = std::env::var("HEADSTART_STANDIN_EVERY").map_or(1, |text| text.parse().expect("a number"));
    let list = std::env::var_os("HEADSTART_STANDIN_LIST");
    let list = list.map(|path| Mutex::new(fs::File::create(path).expect("a file to write")));
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
            let hash = hash.finish();
            if !format!("{file}:{entry}").contains(&wanted)
                || !hash.is_multiple_of(every)
                || !seen.lock().expect("ours").insert(hash)
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
            let row = Row {
                name: format!("{file}:{entry}"),
                origin: origin.clone(),
                read: read.as_ref().map(|_| ()).map_err(cause),
                unknown,
                ran,
            };
            if let Some(list) = &list {
                let _ = writeln!(list.lock().expect("ours"), "{}", row.line());
            }
            rows.lock().expect("ours").push(row);
        }
    });
    let mut rows = rows.into_inner().expect("ours");
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |kind: &str, cause: &str| *causes.entry(format!("{kind}: {cause}")).or_default() += 1;
    let mut origins: BTreeMap<&str, [usize; 7]> = BTreeMap::new();
    for row in &rows {
        let stopped = |fault: Fault| matches!(&row.ran, Err((other, _)) if *other == fault);
        let read = row.read.is_ok();
        let numbers = [
            true,
            read,
            read && row.unknown.is_none(),
            read && row.unknown.as_ref().is_none_or(|unknown| unknown.is_named),
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
        match (&row.read, &row.ran) {
            (Err(cause), _) => count("not read", cause),
            (_, Err((Fault::Input, cause))) if runs => count("data at fault", &alike(cause)),
            (_, Err((_, cause))) if runs => count("not run", cause),
            _ => {}
        }
        if let Some(unknown) = &row.unknown {
            count("not known", &unknown.why);
        }
    }
    println!(
        "{:20} {:>8} {:>8} {:>12} {:>10} {:>8} {:>8} {:>14}",
        "", "entries", "read", "all is known", "understood", "ran", "wrote", "data at fault"
    );
    for (origin, [all, read, known, understood, ran, wrote, fault]) in &origins {
        println!("{origin:20} {all:8} {read:8} {known:12} {understood:10} {ran:8} {wrote:8} {fault:14}");
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (cause, count) in causes.iter().take(300) {
        println!("{count:6}  {cause}");
    }
}

#[test]
fn messages_that_differ_in_names_alone_count_as_one() {
    let beyond = "work-item 5 of work-group 0 (global 5) writes `param_0[1205248]`, out of bounds: `param_0` has 1048576 elements";
    assert_eq!(alike(beyond), "writes …, out of bounds");
    let unwritten = "work-item 16 of work-group 0 (global 16) reads `tile[592]`, which was never written";
    assert_eq!(alike(unwritten), "reads …, which was never written");
    let race = "work-item 0 of work-group 0 (global 0) writes `a[0]`, which work-item 1 read at k.ptx:10085 with no barrier between";
    assert_eq!(
        alike(race),
        "writes …, which work-item read with no barrier between"
    );
}
