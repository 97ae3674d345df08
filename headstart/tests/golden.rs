//! Every kernel in `tests/in` is parsed, verified and printed; the print is compared with `tests/out`.
//!
//! `HEADSTART_BLESS=1` rewrites what is expected.

use std::fs;
use std::path::{Path, PathBuf};

use headstart::back::machine::{Target, lower};
use headstart::ir;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// The kernels in `tests/in`: file name and text, in alphabetical order.
fn kernels() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder("in"))
        .expect("tests/in is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hsir"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path
            .file_name()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path).expect("a kernel is readable");
        (name, text)
    };
    files.into_iter().map(read).collect()
}

/// Compares with the file in `tests/out`, or rewrites it; a complaint if they differ.
fn compare(name: &str, found: &str) -> Option<String> {
    let path = folder("out").join(name);
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        fs::write(&path, found).expect("tests/out can be written");
        return None;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected == found {
        return None;
    }
    let differing = expected.lines().zip(found.lines()).position(|(a, b)| a != b);
    let line = differing.unwrap_or(expected.lines().count().min(found.lines().count()));
    let (a, b) = (expected.lines().nth(line), found.lines().nth(line));
    Some(format!(
        "{}:{}: expected {a:?}, found {b:?}; HEADSTART_BLESS=1 rewrites it",
        path.display(),
        line + 1
    ))
}

fn no_complaints(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn kernels_round_trip() {
    let mut complaints = Vec::new();
    let kernels = kernels();
    assert!(kernels.len() >= 10, "the kernels are there");
    for (name, text) in kernels {
        let kernel = ir::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        ir::verify(&kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
        let printed = ir::print(&kernel);
        let again = ir::parse(&printed, &name).unwrap_or_else(|error| panic!("printed {error}"));
        complaints.extend(ir::first_difference(&kernel, &again).map(|what| format!("{name}: {what}")));
        if ir::print(&again) != printed {
            complaints.push(format!("{name}: printing again gives other text"));
        }
        complaints.extend(compare(&name, &printed));
    }
    no_complaints(complaints);
}

#[test]
fn kernels_lower() {
    let targets = [
        ("nvidia", Target::nvidia()),
        ("intel", Target::intel(16, 8 * 1024)),
    ];
    let mut complaints = Vec::new();
    for (name, text) in kernels() {
        let kernel = ir::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        let stem = name.trim_end_matches(".hsir");
        for (family, target) in &targets {
            let listing = lower(&kernel, target).to_string();
            complaints.extend(compare(&format!("{stem}.{family}.machine"), &listing));
        }
    }
    no_complaints(complaints);
}
