//! Shared code of the tests that generate pages from results: files that are compared with their expected contents, and
//! figures.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::fmt::Write;
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

/// A bar for each label, as long as its time in microseconds.
pub fn bars(title: &str, what: &str, rows: &[(String, f64)]) -> String {
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    let height = 34 + 24 * rows.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<title>{title}, microseconds on {what}</title>\n\
         <rect width=\"720\" height=\"{height}\" fill=\"white\"/>\n<text x=\"8\" y=\"20\">microseconds on \
         {what}; shorter is faster</text>\n"
    );
    for (number, (label, time)) in rows.iter().enumerate() {
        let y = 32 + 24 * number;
        let width = (time / most * 380.0).max(1.0);
        let _ = writeln!(
            svg,
            "<text x=\"230\" y=\"{}\" text-anchor=\"end\">{label}</text>\n\
             <rect x=\"238\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" fill=\"#3b6ea5\"/>\n\
             <text x=\"{:.1}\" y=\"{}\">{time:.1}</text>",
            y + 14,
            244.0 + width,
            y + 14
        );
    }
    svg + "</svg>\n"
}
