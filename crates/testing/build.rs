//! Collects the examples in the documentation of the lower crates, which are tests of this one.
//!
//! The examples use the facade, so as tests of their own crate they would have it built again after each edit of that crate.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let crates = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by Cargo")).join("..");
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by Cargo"));
    let mut tests = String::new();
    for name in names(&crates) {
        let sources = crates.join(&name).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        for source in sources_in(&sources) {
            let text = fs::read_to_string(&source).expect("a source");
            for (line, block) in blocks(&text) {
                let within = source.strip_prefix(&sources).expect("in that folder").display();
                let item =
                    format!("{name}/{within}:{line}").replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                fs::write(out.join(&item), block).expect("the output folder can be written");
                writeln!(
                    tests,
                    "#[doc = include_str!({:?})]\npub mod {item} {{}}",
                    out.join(&item)
                )
                .expect("text");
            }
        }
    }
    fs::write(out.join("examples.rs"), tests).expect("the output folder can be written");
}

/// The crates whose `Cargo.toml` leaves their examples to this one, in order.
fn names(crates: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).expect("a folder") {
        let entry = entry.expect("an entry");
        let manifest = entry.path().join("Cargo.toml");
        println!("cargo::rerun-if-changed={}", manifest.display());
        let text = fs::read_to_string(&manifest).unwrap_or_default();
        if text.lines().any(|line| line == "doctest = false") {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

/// The Rust files in a folder and those below, in order.
fn sources_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(sources_in(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// The documentation comments that have an example, each with its first line's number.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut last = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")) else {
            continue;
        };
        if last != number.checked_sub(1) || found.is_empty() {
            found.push((number + 1, String::new()));
        }
        last = Some(number);
        let (_, block) = found.last_mut().expect("one was pushed");
        block.push_str(comment.strip_prefix(' ').unwrap_or(comment));
        block.push('\n');
    }
    found.retain(|(_, block)| has_example(block));
    found
}

/// Whether one of its fences opens Rust.
fn has_example(block: &str) -> bool {
    let fences = block.lines().filter_map(|line| line.strip_prefix("```"));
    fences
        .step_by(2)
        .any(|language| ["", "rust", "no_run", "should_panic", "compile_fail"].contains(&language))
}
