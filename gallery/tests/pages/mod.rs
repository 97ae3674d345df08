//! Shared code of the tests that generate pages from results: files that are compared with their expected contents.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::fs;
use std::path::{Path, PathBuf};

pub use headstart_testing::compare;
use serde_json::Value;

/// The repository's folder.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of `results/`; nothing if it is not there.
pub fn results(name: &str) -> Value {
    match fs::read_to_string(repository().join("results").join(name)) {
        Ok(text) => serde_json::from_str(&text).expect("results are JSON"),
        Err(_) => Value::Null,
    }
}

/// The beginning of a page's part: an anchor, its title and its paragraphs.
pub fn heading(anchor: &str, title: &str, text: &[&str]) -> String {
    format!(
        "\n<a id=\"{anchor}\"></a>\n\n## {title}\n\n{}\n\n",
        text.join("\n\n")
    )
}
