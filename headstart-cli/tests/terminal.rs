//! What the command prints fits the terminal, without a word split, and is coloured only where that is wanted.

use std::collections::BTreeSet;
use std::process::{Command, Output};

fn headstart(columns: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .env("COLUMNS", columns)
        .env_remove("NO_COLOR")
        .output()
        .expect("the command starts")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(both).expect("text")
}

/// The commands of `headstart --help`, with a use of each that needs no GPU and little time. `emit`, `launch-template`,
/// `completions` and `man` give code.
fn uses() -> Vec<Vec<&'static str>> {
    let small = ["--set", "items=8", "--set", "groups=2", "--device", "sim:h200"];
    let with = |start: &[&'static str], rest: &[&'static str]| [start, &small, rest].concat();
    vec![
        with(
            &["tune", "gather"],
            &[
                "--plans",
                "unroll:2;values=rolling-async:4;values=rolling-registers:4096",
            ],
        ),
        with(&["tune", "gather"], &[]),
        with(&["advise", "gather"], &[]),
        with(&["run", "gather"], &["--plan", "values=rolling-async:4"]),
        with(
            &["sweep", "gather"],
            &["--over", "distance=1..12:12", "--over", "dram.latency=400,800"],
        ),
        with(
            &["compare", "none", "values=rolling-async:4", "--kernel", "gather"],
            &["--all-code"],
        ),
        with(&["compare", "gather", "gather-pointer"], &["--code", "machine"]),
        vec!["devices"],
        vec!["devices", "--model", "pvc-1550"],
        vec!["kernels"],
        vec!["plans"],
        vec!["occupancy", "--group", "256", "--registers", "64"],
        vec![
            "occupancy",
            "--device",
            "sim:pvc-1550",
            "--group",
            "256",
            "--registers",
            "600",
        ],
        vec!["--help"],
    ]
}

/// The names of all commands.
fn commands() -> BTreeSet<String> {
    let help = text(&headstart("100", &["--help"]));
    let listed = help.split("Commands:").nth(1).expect("the commands are listed");
    let listed = listed.split("Options:").next().expect("and nothing else");
    let begin = listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    begin
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// Every word of the widest output is in the others, and no line is too long but for one long word.
fn fits(arguments: &[&str]) {
    let words = |text: &str| -> Vec<String> {
        let words = text.split_whitespace().filter(|word| !word.starts_with('─'));
        words.map(str::to_owned).collect()
    };
    let mut known: Option<BTreeSet<String>> = None;
    for columns in ["140", "100", "80"] {
        let width: usize = columns.parse().expect("a number");
        let text = text(&headstart(columns, arguments));
        for line in text.lines() {
            let is_one_word = !line.trim().contains(' ');
            assert!(
                line.chars().count() <= width || is_one_word,
                "{arguments:?} at {columns}: {line}\n{text}"
            );
        }
        // Plans may be broken after a comma.
        let joined = words(&text.replace(",\n", ", ").replace(',', ", "));
        let here: BTreeSet<String> = joined.into_iter().collect();
        let known = known.get_or_insert_with(|| here.clone());
        let split: Vec<_> = here
            .difference(known)
            .filter(|word| !is_letter_for_a_load(word))
            .collect();
        assert!(
            split.is_empty(),
            "{arguments:?} at {columns}: split words {split:?}"
        );
    }
}

/// `A=rolling-async:4`, or a word of the legend.
fn is_letter_for_a_load(word: &str) -> bool {
    let mut letters = word.chars();
    let is_letter = letters.next().is_some_and(|first| first.is_ascii_uppercase());
    is_letter && letters.next().is_none_or(|second| second == '=') || ["is", "B,"].contains(&word)
}

#[test]
fn every_output_fits_the_terminal() {
    for arguments in uses() {
        fits(&arguments);
    }
}

#[test]
fn every_help_fits_the_terminal() {
    let commands = commands();
    assert!(commands.len() > 15 && commands.contains("sweep"), "{commands:?}");
    for command in commands {
        if command != "help" {
            fits(&[&command, "--help"]);
        }
    }
}

#[test]
fn colours_come_where_they_are_wanted() {
    let small = [
        "--set", "items=16", "--set", "groups=8", "--device", "sim:h200", "--plans", "unroll:2",
    ];
    let run = |options: &[&str]| {
        let arguments = [&["tune", "gather"], &small[..], options].concat();
        text(&headstart("100", &arguments))
    };
    assert!(!run(&[]).contains('\u{1b}'), "not into a pipe");
    let coloured = run(&["--color", "always"]);
    assert!(coloured.contains("\u{1b}[1mVerdict: "), "{coloured}");
    let quiet = headstart("100", &[&["tune", "gather", "-q"], &small[..]].concat());
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
}

#[test]
fn what_became_of_each_plan_is_said_where_that_is_wanted() {
    let plans = "unroll:2;values=rolling-async:4;values=rolling-registers:4096";
    let arguments = [
        "tune", "gather", "--set", "items=8", "--set", "groups=2", "--device", "sim:h200", "--plans", plans,
    ];
    let run = |options: &[&str]| headstart("400", &[&arguments[..], options].concat());
    let (usual, verbose) = (run(&[]), run(&["-v"]));
    assert_eq!(usual.stdout, verbose.stdout, "the report is the same");
    let said = String::from_utf8(verbose.stderr).expect("text");
    let usual = String::from_utf8(usual.stderr).expect("text");
    for line in usual.lines() {
        assert!(said.contains(line), "{line}: {said}");
    }
    let report = headstart("400", &[&arguments[..], &["--json", "-"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let trials = report["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 4);
    for trial in trials {
        let plan = trial["plan"].as_str().expect("a plan");
        let line = said.lines().find(|line| line.contains(&format!("`{plan}`: ")));
        let line = line.unwrap_or_else(|| panic!("{plan}: {said}"));
        match trial["status"].as_str() {
            Some("ok") => assert!(line.contains("×, "), "{line}"),
            _ => {
                let reason = trial["reason"].as_str().expect("a reason");
                assert!(line.contains(&format!("rejected: {reason}")), "{line}");
            }
        }
        assert!(!usual.contains(line));
    }
    for phase in ["kernel and launch read", "device opened", "search"] {
        let line = said.lines().find(|line| line.ends_with(phase)).expect(phase);
        assert!(line.contains(" s  "), "{line}");
    }
    let both = headstart("100", &[&arguments[..], &["-q", "-v"]].concat());
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn reports_are_in_the_terms_of_the_device_s_maker() {
    let small = [
        "tune", "gather", "--set", "items=8", "--set", "groups=2", "--plans", "unroll:2",
    ];
    let run = |options: &[&str]| text(&headstart("200", &[&small[..], options].concat()));
    for (options, heading) in [
        (
            &["--device", "sim:h200"][..],
            "on sim:h200, 2 blocks of 128 threads",
        ),
        (
            &["--device", "sim:h200", "--terms", "sycl"],
            "on sim:h200, 2 work-groups of 128 work-items",
        ),
        (
            &["--device", "sim:pvc-1550"],
            "on sim:pvc-1550, 2 work-groups of 128 work-items",
        ),
        (
            &["--device", "sim:pvc-1550", "--terms", "cuda"],
            "on sim:pvc-1550, 2 blocks of 128 threads",
        ),
    ] {
        let text = run(options);
        assert!(text.contains(heading), "{options:?}:\n{text}");
    }
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let script = text(&headstart("100", &["completions", "bash"]));
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_string_lossy().into_owned();
    text(&headstart("100", &["man", &place]));
    for command in commands() {
        assert!(script.contains(&command), "{command}");
        let page = folder.path().join(format!("headstart-{command}.1"));
        assert!(command == "help" || page.is_file(), "{page:?}");
    }
}

#[test]
fn the_plans_of_the_help_are_plans() {
    let help = text(&headstart("100", &["plans"]));
    assert_eq!(
        help,
        text(&headstart("100", &["help", "plans"]))
            .split("\n\nUsage:")
            .next()
            .expect("first")
            .to_owned()
            + "\n"
    );
    let last = help.lines().last().expect("an example").trim();
    last.parse::<headstart::prefetch::Plan>()
        .expect("the example is a plan");
    for kind in headstart::prefetch::plan::Kind::names() {
        assert!(help.contains(&format!("  {kind}:")), "{kind}");
    }
}
