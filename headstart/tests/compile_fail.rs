//! Errors in a kernel appear at its own lines: the compiler's messages for the sources in `compile_fail`.
//!
//! A comment `//~ E0308 22` says that the compiler reports error E0308 in that line, at column 22; a message
//! of the macro's own has no number: `//~ macro 14`. Nothing else may be reported, and nothing twice, unless the comment says how
//! often: `//~ E0308*2 22`. The sources are compiled
//! against the library that this test was built with. The messages that are ours are in `out/compile_fail.txt`.
//! `HEADSTART_BLESS=1` rewrites both: read the messages before you believe them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// A report's place: line, column, and the error's number (or `macro`).
type Place = (u64, u64, String);

/// How often each error is reported, or expected.
type Reports = BTreeMap<Place, usize>;

/// How many mistakes the sources show, at least.
const MISTAKES: usize = 100;

/// What the compiler says when the library was built by another compiler or with other dependencies.
const OTHER_BUILD: [&str; 5] = ["E0460", "E0462", "E0463", "E0464", "E0514"];

/// The libraries that this test may have been built with, the newest first.
fn libraries(dependencies: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dependencies).expect("the test lies among its dependencies");
    let mut found: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let is_ours = name.starts_with("libheadstart-") && name.ends_with(".rlib");
            is_ours.then(|| Some((path.metadata().ok()?.modified().ok()?, path.clone())))?
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Every error that the compiler reports for a source, with its message.
fn compile(source: &Path, library: &Path, dependencies: &Path) -> Vec<(Place, String)> {
    let out = tempfile::tempdir().expect("a place for the compiler's output");
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "--error-format=json",
            "-Adead_code",
        ])
        .arg("--out-dir")
        .arg(out.path())
        .arg("--extern")
        .arg(format!("headstart={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg(source)
        .output()
        .expect("the compiler runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    messages
        .filter(|message| message["level"] == "error")
        .filter_map(|message| {
            let code = message["code"]["code"].as_str().unwrap_or("macro").to_owned();
            let text = message["message"].as_str().unwrap_or_default().to_owned();
            if OTHER_BUILD.contains(&code.as_str()) {
                return Some(((0, 0, code), text));
            }
            // The summary at the end has no place.
            let spans = message["spans"].as_array()?;
            let span = spans.iter().find(|span| span["is_primary"] == true)?;
            let place = (span["line_start"].as_u64()?, span["column_start"].as_u64()?, code);
            Some((place, text))
        })
        .collect()
}

/// What the comments of a source expect.
fn expected(source: &Path) -> Reports {
    let text = std::fs::read_to_string(source).expect("the source is there");
    let reports = (1..).zip(text.lines()).flat_map(|(number, line)| {
        let comments = line.split("//~").skip(1).map(str::split_whitespace);
        comments.map(move |mut words| {
            let code = words.next().expect("an error's number");
            let (code, times) = code.split_once('*').unwrap_or((code, "1"));
            let column = words.next().and_then(|word| word.parse().ok()).expect("a column");
            let times = times.parse().expect("a number of times");
            ((number, column, code.to_owned()), times)
        })
    });
    reports.collect()
}

/// Makes a source's comments expect what was reported.
fn rewrite(source: &Path, reports: &Reports) {
    let text = std::fs::read_to_string(source).expect("the source is there");
    let mut rewritten = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        rewritten.push_str(line.split("//~").next().unwrap_or(line).trim_end());
        for ((_, column, code), times) in reports.iter().filter(|((line, ..), _)| *line == number) {
            let times = match times {
                1 => String::new(),
                times => format!("*{times}"),
            };
            rewritten.push_str(&format!(" //~ {code}{times} {column}"));
        }
        rewritten.push('\n');
    }
    std::fs::write(source, rewritten).expect("the source can be written");
}

#[test]
fn errors_point_into_the_kernel() {
    let this = std::env::current_exe().expect("a test has a path");
    let dependencies = this.parent().expect("it lies in a folder");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail");
    let sources = std::fs::read_dir(&folder).expect("the sources are there");
    let mut sources: Vec<PathBuf> = sources.filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.sort();
    let (mut count, mut messages) = (0, String::new());
    for source in sources {
        let reports = libraries(dependencies)
            .iter()
            .map(|library| compile(&source, library, dependencies))
            .find(|reports| {
                !reports
                    .iter()
                    .any(|((_, _, code), _)| OTHER_BUILD.contains(&code.as_str()))
            });
        let mut found = reports.expect("the library that this test was built with lies beside it");
        let name = source
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        found.sort();
        let mut reports = Reports::new();
        for (place, _) in &found {
            *reports.entry(place.clone()).or_default() += 1;
        }
        found.dedup();
        for ((line, column, code), text) in &found {
            // rustc may change the wording of its own messages.
            let own = ["the trait bound", "cannot ", "the type ", "`std::", "the size "];
            let in_our_words = code == "E0277" && !own.iter().any(|start| text.starts_with(start));
            if code == "macro" || in_our_words {
                messages.push_str(&format!("{name}:{line}:{column}: {text}\n"));
            }
        }
        count += reports.len();
        if std::env::var_os("HEADSTART_BLESS").is_some() {
            rewrite(&source, &reports);
        }
        assert_eq!(
            reports,
            expected(&source),
            "found, and expected, in {}",
            source.display()
        );
    }
    println!("{count} mistakes");
    assert!(count >= MISTAKES, "{count}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/out/compile_fail.txt");
    headstart_testing::compare(&path, &messages);
}
