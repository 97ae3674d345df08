//! Shared code of the tests that generate pages from results: files that are compared with their expected contents.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The repository's folder.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Whether an environment variable asks for something.
pub fn wanted(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

/// A file of `results/`; nothing if it is not there.
pub fn results(name: &str) -> Value {
    match fs::read_to_string(repository().join("results").join(name)) {
        Ok(text) => serde_json::from_str(&text).expect("results are JSON"),
        Err(_) => Value::Null,
    }
}

/// Holds a file against what it should be, or writes it where `HEADSTART_BLESS` says so.
pub fn compare(path: &Path, text: &str) {
    if wanted("HEADSTART_BLESS") {
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
    assert!(
        fs::read_to_string(path).unwrap_or_default() == text,
        "{} is not what the results say; HEADSTART_BLESS=1 makes it anew",
        path.display()
    );
}

/// The beginning of a page's part: an anchor, its title and its paragraphs.
pub fn heading(anchor: &str, title: &str, text: &[&str]) -> String {
    format!(
        "\n<a id=\"{anchor}\"></a>\n\n## {title}\n\n{}\n\n",
        text.join("\n\n")
    )
}
