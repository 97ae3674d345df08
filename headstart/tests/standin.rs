//! A stand-in for kernels that we do not have: modules that `scripts/standin` takes from packages, or compiles.
//!
//! ```text
//! scripts/standin all
//! cargo test -p headstart --release --test standin -- --ignored --nocapture
//! ```
//!
//! Counts how many distinct entries are read, understood (every loop's trip count and every global load's root is known)
//! and executed by the functional engine, and says what refuses the others. `HEADSTART_STANDIN` names another folder than
//! `target/standin`; `HEADSTART_STANDIN_ONLY` picks the entries whose `FILE:ENTRY` contains it; `HEADSTART_STANDIN_LIST`
//! names a file that gets a line for each entry.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use headstart::Error;
use headstart::front::ptx::{Facts, Module};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

/// Dynamic shared memory of a work-group that every launch gets.
const SHARED_BYTES: u32 = 48 << 10;

/// What became of an entry.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    origin: String,
    read: Result<(), String>,
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
            rows.lock().expect("ours").push(Row {
                name: format!("{file}:{entry}"),
                origin: origin.clone(),
                read: read.as_ref().map(|_| ()).map_err(cause),
            });
        }
    });
    let mut rows = rows.into_inner().expect("ours");
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    let mut causes: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut origins: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut list = String::new();
    for row in &rows {
        let (all, read) = origins.entry(row.origin.clone()).or_default();
        *all += 1;
        *read += usize::from(row.read.is_ok());
        let _ = writeln!(
            list,
            "{}\t{}",
            row.name,
            row.read.clone().err().unwrap_or("read".to_owned())
        );
        if let Err(cause) = &row.read {
            causes.entry(cause.clone()).or_insert((0, row.name.clone())).0 += 1;
        }
    }
    for (origin, (all, read)) in &origins {
        println!("{origin:20} {all:5} entries {read:5} read");
    }
    let read = rows.iter().filter(|row| row.read.is_ok()).count();
    println!(
        "{:20} {:5} entries {read:5} read ({:.1} %)",
        "all",
        rows.len(),
        100.0 * read as f64 / rows.len() as f64
    );
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (cause, (count, example)) in causes.iter().take(200) {
        println!(
            "{count:6}  {cause}   [{}]",
            example.chars().take(100).collect::<String>()
        );
    }
    if let Some(path) = std::env::var_os("HEADSTART_STANDIN_LIST") {
        fs::write(path, list).expect("written");
    }
}
