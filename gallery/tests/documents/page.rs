//! `docs/documents.md` has a line for each statement of the documents: what it says, ours, and how to see it. The numbers in ours are
//! found on the models, and each command is one that a reader can run. `HEADSTART_BLESS=1` writes the numbers anew.

use std::path::{Path, PathBuf};

use headstart::tune::Subject;
use headstart_gallery::kernels;

use super::{article, extension, memory, notes, prefetching};

/// A statement of a document, and ours with the numbers that the models give.
pub type Found = (&'static str, fn() -> String);

const FOUND: [&[Found]; 6] = [
    &memory::ROWS,
    &prefetching::ROWS,
    &notes::DEVICE,
    &notes::HOST,
    &extension::ROWS,
    &article::ROWS,
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn page() -> String {
    std::fs::read_to_string(docs().join("documents.md")).expect("the page is there")
}

/// The lines of the page's tables: what a document says, ours, and how to see it.
fn rows(page: &str) -> impl Iterator<Item = [&str; 3]> {
    let cells = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    cells.filter_map(|cells| cells.split(" | ").collect::<Vec<_>>().try_into().ok())
}

#[test]
fn numbers_of_the_page_are_what_the_models_say() {
    let page = page();
    let mut made = page.clone();
    for (says, find) in FOUND.into_iter().flatten() {
        let lines: Vec<_> = rows(&page).filter(|[statement, ..]| statement == says).collect();
        let [[_, ours, see]] = lines[..] else {
            panic!("{} lines say: {says}", lines.len())
        };
        let line = |ours: &str| format!("| {says} | {ours} | {see} |\n");
        made = made.replace(&line(ours), &line(&find()));
    }
    headstart_testing::compare(&docs().join("documents.md"), &made);
}

/// What a line says to run is there, with these settings.
#[test]
fn every_command_names_kernels_and_settings_that_are_there() {
    let page = page();
    let mut seen = 0;
    for [says, _, see] in rows(&page) {
        let command = see
            .strip_prefix("`headstart ")
            .and_then(|see| see.strip_suffix('`'));
        let Some(command) = command else {
            let links = see.split("](").skip(1);
            for link in links.filter_map(|link| link.split([')', '#']).next()) {
                assert!(docs().join(link).exists(), "{says}: no page {link}");
            }
            continue;
        };
        let words: Vec<&str> = command.split(' ').collect();
        let of_kernels = ["run", "tune", "advise", "sweep", "emit", "compare"];
        let [verb, kernel, rest @ ..] = &words[..] else {
            continue;
        };
        if !of_kernels.contains(verb) {
            continue;
        }
        let settings = rest.iter().zip(rest.iter().skip(1));
        let settings = settings.filter(|(option, _)| **option == "--set");
        let settings: Vec<String> = settings.map(|(_, setting)| (*setting).to_owned()).collect();
        let known = kernels::find(kernel).and_then(|found| {
            let chosen = found.with(&settings, None)?;
            // What it is checked with, too.
            chosen.workload().and_then(|_| chosen.small(3)).map(drop)
        });
        assert!(known.is_ok(), "{see}: {known:?}");
        seen += 1;
    }
    assert_eq!(
        rows(&page).count(),
        page.lines().filter(|line| line.starts_with("| ")).count(),
        "each line has three cells"
    );
    assert!(seen > 30, "{seen} commands");
}
