//! `docs/documents.md`: each document's statements, ours, and how to see it, a line each. `HEADSTART_BLESS=1` makes it anew.

use std::fmt::Write;
use std::path::Path;

use headstart::tune::Subject;
use headstart_gallery::kernels;

use super::{article, extension, memory, notes, prefetching};

/// A statement of a document.
pub struct Row {
    /// What the document says.
    pub says: &'static str,
    /// Ours.
    pub ours: Ours,
    /// How to see it: a command, or a page.
    pub see: &'static str,
}

/// Our answer to a statement.
pub enum Ours {
    /// In words.
    Words(&'static str),
    /// With a number that the page's test finds.
    Found(fn() -> String),
}

/// A row whose answer is words.
pub const fn words(says: &'static str, ours: &'static str, see: &'static str) -> Row {
    Row {
        says,
        ours: Ours::Words(ours),
        see,
    }
}

/// A row whose answer has a number.
pub const fn found(says: &'static str, ours: fn() -> String, see: &'static str) -> Row {
    Row {
        says,
        ours: Ours::Found(ours),
        see,
    }
}

/// A document and its rows.
struct Document {
    title: &'static str,
    rows: &'static [&'static [Row]],
}

const DOCUMENTS: [Document; 5] = [
    Document {
        title: "Intel, *GPU Memory System* (oneAPI optimization guide)",
        rows: &[&memory::ROWS],
    },
    Document {
        title: "Intel, *Prefetch* (oneAPI optimization guide)",
        rows: &[&prefetching::ROWS],
    },
    Document {
        title: "Notes on optimizing for Intel's GPUs with oneAPI",
        rows: &[&notes::DEVICE, &notes::HOST],
    },
    Document {
        title: "SYCL extension `sycl_ext_oneapi_prefetch`",
        rows: &[&extension::ROWS],
    },
    Document {
        title: "NVIDIA, *Boosting Application Performance with GPU Memory Prefetching*",
        rows: &[&article::ROWS],
    },
];

const BEGINNING: &str = "\
# The documents' statements, and ours

Five documents say what prefetching is for and how Intel's and NVIDIA's GPUs behave. This page has a line for each of their statements:
what the document says, what Headstart has or finds, and how to see it. A test (`gallery/tests/documents`) makes the page, finds its numbers
on the models, and holds each of them to the document. No Intel GPU was measured: numbers of `sim:pvc-*`, `sim:xe-lp` and
`sim:gen11` are documented or public ones, each with its source in `devices/`. Where a line says *not modelled*, it says what would settle it.
";

fn page() -> String {
    let mut text = BEGINNING.to_owned();
    for document in &DOCUMENTS {
        let _ = write!(
            text,
            "\n## {}\n\n| the document says | Headstart | to see it |\n|---|---|---|\n",
            document.title
        );
        for row in document.rows.iter().copied().flatten() {
            let ours = match row.ours {
                Ours::Words(words) => words.to_owned(),
                Ours::Found(find) => find(),
            };
            let see = match row.see.starts_with("headstart ") {
                true => format!("`{}`", row.see),
                false => row.see.to_owned(),
            };
            let _ = writeln!(text, "| {} | {ours} | {see} |", row.says);
        }
    }
    text
}

#[test]
fn the_page_has_a_line_for_each_statement() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/documents.md");
    let page = page();
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        std::fs::write(&path, page).expect("the page can be written");
        return;
    }
    let there = std::fs::read_to_string(&path).expect("the page is there");
    let mut lines = there.lines().zip(page.lines());
    let differing = lines.find(|(there, here)| there != here);
    assert!(
        there == page,
        "docs/documents.md is not what the models say; HEADSTART_BLESS=1 makes it anew: {differing:#?}"
    );
}

/// What a line says to run is there, with these settings.
#[test]
fn every_command_names_kernels_and_settings_that_are_there() {
    let mut seen = 0;
    for row in DOCUMENTS
        .iter()
        .flat_map(|document| document.rows.iter().copied().flatten())
    {
        let Some(command) = row.see.strip_prefix("headstart ") else {
            let there = |page: &str| {
                Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("../docs")
                    .join(page)
                    .exists()
            };
            let links = row.see.split("](").skip(1);
            for link in links.filter_map(|link| link.split([')', '#']).next()) {
                assert!(there(link), "{}: no page {link}", row.says);
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
        assert!(known.is_ok(), "`{}`: {known:?}", row.see);
        seen += 1;
    }
    assert!(seen > 30, "{seen} commands");
}
