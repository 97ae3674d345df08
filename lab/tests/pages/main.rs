//! The pages that are made of measurements, and what all pages must keep.
//!
//! A page is made from files in `results/` and compared with the one in `docs/`; `HEADSTART_BLESS=1` makes it anew.

mod corpus_results;
mod documents;
mod function_times;
mod programs;
mod results;
mod shipped;
mod strategies;
mod workloads;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of the repository.
fn read(name: &str) -> String {
    let path = repository().join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A file of results.
fn results_of(name: &str) -> Value {
    serde_json::from_str(&read(&format!("results/{name}"))).expect("results are JSON")
}

/// Holds a file against what it should be, or writes it where `HEADSTART_BLESS` says so.
fn compare(name: &str, made: &str) {
    headstart_testing::compare(&repository().join(name), made);
}
