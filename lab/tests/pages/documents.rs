//! README.md and `docs/` are consistent: quotes match `results/`, every page is in the index, links lead somewhere, and a
//! reader can run the commands.
//!
//! Parts of README.md and of `docs/gather.md` stand between marks, `<!-- from results: NAME -->` and `<!-- end -->`, and
//! are made from results. `HEADSTART_BLESS=1` makes them anew; `scripts/readme` makes the results, too.

use std::fs;

use headstart::report::columns::Columns;
use headstart::report::number::{duration, speedup};
use headstart::report::terms::Terms;
use headstart::report::{Report, table};
use serde_json::Value;

use crate::{read, repository, results_of};

fn report(results: &Value) -> Report {
    serde_json::from_value(results["report"].clone()).expect("a report")
}

/// The pages of `docs/` and `results/`, as README.md would link them.
fn pages() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["docs", "results"] {
        for entry in fs::read_dir(repository().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            let name = name.to_string_lossy();
            if name.ends_with(".md") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort();
    found
}

/// Holds a marked part of a file against what it should be, or writes it where `HEADSTART_BLESS` says so.
pub fn compare(file: &str, name: &str, wanted: &str) {
    let text = read(file);
    let (mark, end) = (format!("<!-- from results: {name} -->\n"), "<!-- end -->");
    let (before, rest) = text
        .split_once(&mark)
        .unwrap_or_else(|| panic!("{file} has no part {name}"));
    let (_, after) = rest.split_once(end).expect("a marked part ends");
    crate::compare(file, &format!("{before}{mark}{wanted}{end}{after}"));
}

fn as_code(text: &str) -> String {
    format!("```text\n{text}```\n")
}

/// As the command prints what it found on an NVIDIA device into a pipe.
fn in_a_pipe() -> Columns {
    Columns::new(100).in_terms(Some(Terms::Cuda))
}

/// The report up to the plan's meaning: what a reader looks at first.
fn in_short(report: &Report) -> String {
    let text = table::text(report, in_a_pipe());
    let mut parts = text.split("\n\n");
    let [heading, verdict] = [parts.next(), parts.next()].map(|part| part.expect("a report"));
    format!("{heading}\n\n{verdict}\n")
}

#[test]
fn the_first_page_quotes_the_results() {
    crate::workloads::are_on_the_first_page();
    crate::programs::are_on_the_first_page();
    crate::shipped::are_on_the_first_page();
    let simulated = report(&results_of("tune-attention-sim-h200.json"));
    compare(
        "README.md",
        "tune-attention-sim-h200.json",
        &as_code(&in_short(&simulated)),
    );
}

/// Each report that is kept, of a model and of a GPU, is a screen with its verdict at the top.
#[test]
fn reports_are_screens() {
    for name in ["attention-sim", "gather-sim", "article", "gather"] {
        let results = results_of(&format!("tune-{name}-h200.json"));
        let own = if results["report"].is_null() {
            results
        } else {
            results["report"].clone()
        };
        let report: Report = serde_json::from_value(own).expect("a report");
        let text = table::text(&report, Columns::new(100).in_terms(Some(Terms::Cuda)));
        let count = text.lines().count();
        assert!(
            count <= 40 && text.lines().all(|line| line.chars().count() <= 100),
            "{count}: {text}"
        );
        let verdict = text.lines().position(|line| line.starts_with("Verdict: "));
        assert_eq!(verdict, Some(2), "{text}");
    }
}

#[test]
fn gather_s_page_and_picture_are_of_one_run() {
    let made = results_of("tune-gather-sim-h200.json");
    let report = report(&made);
    compare(
        "docs/gather.md",
        "tune-gather-sim-h200.json",
        &as_code(&table::in_full(&report, in_a_pipe())),
    );
    let advised = results_of("advise-gather-sim-h200.json");
    let text = advised["text"].as_str().expect("the advice as text");
    // In the words of the device's maker, as the command prints it.
    let printed = Terms::Cuda.said(text);
    compare(
        "docs/gather.md",
        "advise-gather-sim-h200.json",
        &as_code(&printed),
    );

    let picture = fs::metadata(repository().join("docs/tune-gather.png")).expect("the picture");
    assert_eq!(
        made["picture"]["bytes"].as_u64(),
        Some(picture.len()),
        "docs/tune-gather.png is not the picture of results/tune-gather-sim-h200.json; scripts/readme makes both"
    );

    // The same kernel, simulated twice: both say the same of it.
    let advice = &advised["advice"];
    assert_eq!(advice["verdict"], made["report"]["verdict"]);
    // Of the plans that are as fast as the best, the advice tries some.
    let trials = made["report"]["trials"].as_array().expect("trials");
    let advised_ns = trials
        .iter()
        .find(|trial| trial["plan"] == advice["plan"])
        .and_then(|trial| trial["time_ns"].as_f64())
        .expect("the advised plan was tried");
    let best_ns = made["report"]["best"]["time_ns"].as_f64().expect("a time");
    assert!(
        advised_ns < 1.02 * best_ns,
        "{} takes {advised_ns} ns, the best plan {best_ns} ns",
        advice["plan"]
    );
    let choices = advice["choices"].as_array().expect("choices");
    let chosen = choices.iter().find(|choice| choice["chosen"] == true);
    assert_eq!(chosen.expect("a choice")["time_ns"].as_f64(), Some(advised_ns));
    assert_eq!(advice["time_ns"], made["report"]["baseline_ns"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = |sentence: &str| {
        let sentence = Terms::Cuda.said(sentence);
        assert!(
            words.contains(&*sentence),
            "the text of the advice lacks: {sentence}"
        );
    };
    said(advice["conclusion"].as_str().expect("a conclusion"));
    for step in advice["steps"].as_array().expect("steps") {
        said(step["finding"].as_str().expect("a finding"));
    }
    for choice in choices {
        let number = |name: &str| choice[name].as_f64().expect("a number");
        said(&format!(
            "{} {} {}",
            choice["what"].as_str().expect("a verdict"),
            duration(number("time_ns")),
            speedup(number("speedup"))
        ));
    }
}

#[test]
fn the_index_has_every_page() {
    assert!(read("README.md").contains("](docs/README.md)"));
    for page in pages() {
        let (index, link) = match page.strip_prefix("results/") {
            Some(link) => ("results/README.md", link),
            None => ("docs/README.md", page.trim_start_matches("docs/")),
        };
        if index != page {
            let named = read(index).contains(&format!("]({link})"));
            assert!(named, "{index} does not name {link}");
        }
    }
    let index = read("docs/README.md");
    for line in index.lines().filter(|line| line.starts_with("- [")) {
        let said = line.split_once("): ").map_or("", |(_, said)| said);
        assert!(said.len() > 10, "nothing is said of a page: {line}");
    }
}

#[test]
fn links_lead_to_files() {
    let mut broken = Vec::new();
    for page in pages().into_iter().chain(["README.md".to_owned()]) {
        let text = read(&page);
        let folder = repository().join(&page);
        let folder = folder.parent().expect("a folder");
        for rest in text.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            let elsewhere = ["http://", "https://"]
                .iter()
                .any(|start| path.starts_with(start));
            if !path.is_empty() && !elsewhere && !folder.join(path).exists() {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "links to nothing:\n{}", broken.join("\n"));
}

/// Every `command` of a file of results.
fn commands<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str() {
                    Some(text) if name == "command" => found.push(text),
                    _ => commands(field, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| commands(item, found)),
        _ => {}
    }
}

/// Whether a command says something that only the machine knows on which it ran.
fn is_private(command: &str) -> bool {
    let known = [
        "headstart ",
        "cargo ",
        "scripts/",
        "target/release/",
        "HEADSTART_",
    ];
    let private = ["/root/", "/tmp/", "/home/", "./headstart", "a call for each"];
    !known.iter().any(|start| command.starts_with(start)) || private.iter().any(|part| command.contains(part))
}

#[test]
fn commands_of_results_can_be_run_by_a_reader() {
    let mut private = Vec::new();
    for entry in fs::read_dir(repository().join("results")).expect("a folder") {
        let name = entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned();
        if !name.ends_with(".json") {
            continue;
        }
        let value = results_of(&name);
        let mut found = Vec::new();
        commands(&value, &mut found);
        private.extend(
            found
                .into_iter()
                .filter(|command| is_private(command))
                .map(|command| format!("{name}: {command}")),
        );
    }
    assert!(private.is_empty(), "private commands:\n{}", private.join("\n"));
    assert!(is_private("./headstart bench"), "the test can tell");
    assert!(is_private("hs-n bench --json FILE"), "the test can tell");
}

/// A page that is made from a file of results, or quotes one, names the command that makes it.
#[test]
fn pages_of_measurements_name_a_command() {
    for page in pages() {
        let text = read(&page);
        // The indices name pages alone.
        if !text.contains("results/") || page.ends_with("README.md") {
            continue;
        }
        let command = [
            "`headstart ",
            "headstart tune",
            "cargo ",
            "scripts/",
            "HEADSTART_",
        ];
        assert!(
            command.iter().any(|start| text.contains(start)),
            "{page} names no command"
        );
        for private in ["`./headstart", "hs-n", "/root/", "/tmp/", "a call for each"] {
            assert!(!text.contains(private), "{page} has {private}");
        }
    }
}
