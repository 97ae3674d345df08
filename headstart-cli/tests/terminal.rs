//! The command's output fits the terminal, without a split word, and is coloured only where colours are wanted.

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

/// What a command printed that ended so.
fn text(output: &Output, status: Status) -> String {
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(both).expect("text")
}

/// An exit status: success, an error in the input, usage, or the device's.
type Status = i32;

/// Commands whose output is code or data, which is as wide as it is. Their help and their errors fit all the same.
const CODE: [&str; 4] = ["emit", "launch-template", "completions", "man"];

/// Files that commands read.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Files {
        let files = Files {
            folder: tempfile::tempdir().expect("a folder"),
        };
        let small = [
            "tune", "gather", "--set", "groups=2", "--device", "sim:h200", "--plans", "unroll:2",
        ];
        for (name, items) in [("a", "items=8"), ("b", "items=16")] {
            let (json, log) = (
                files.at(&format!("{name}.json")),
                files.at(&format!("{name}.jsonl")),
            );
            let rest = ["--set", items, "--json", &json, "--log", &log];
            text(&headstart("100", &[&small[..], &rest].concat()), 0);
        }
        let loops = "loop,seconds,calls,iterations,bytes in,bytes out,bytes,flops,flops 64\n\
                     relaxation of the whole pressure field,12,1000,16777216,134217728,67108864,201326592,150994944,0\n\
                     boundary,0.001,1000,4096,32768,32768,65536,4096,0\n";
        std::fs::write(files.at("loops.csv"), loops).expect("a file");
        std::fs::create_dir(files.at("empty")).expect("a folder");
        files
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    /// Uses of every command that need no GPU and little time. Those that need one say so, and fit.
    fn uses(&self) -> Vec<(Vec<String>, Status)> {
        let small = ["--set", "items=8", "--set", "groups=2", "--device", "sim:h200"];
        let [a, b, logs @ ..] = ["a.json", "b.json", "a.jsonl", "b.jsonl"].map(|name| self.at(name));
        let (loops, empty) = (self.at("loops.csv"), self.at("empty"));
        let (merged, new) = (self.at("merged.jsonl"), self.at("my-new-kernel"));
        let (model, captured) = (self.at("model.toml"), self.at("captured"));
        // A program that launches no kernel is at fault where there is a driver.
        let has_driver = headstart::device::cuda::gpu::count().is_ok_and(|count| count > 0);
        let no_kernel = if has_driver { 1 } else { 3 };
        let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/first.ptx");
        let profile = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../headstart/tests/data/profiles/gallery-raw.csv"
        );
        let with = |start: &[&'static str], rest: &[&'static str]| [start, &small, rest].concat();
        let plans = "unroll:2;values=rolling-async:4;values=rolling-registers:4096";
        let over = ["--over", "distance=1..12:12", "--over", "dram.latency=400,800"];
        let two_plans = ["compare", "none", "values=rolling-async:4", "--kernel", "gather"];
        let uses: Vec<(Vec<&str>, Status)> = vec![
            (vec!["--help"], 0),
            (with(&["tune", "gather"], &["--plans", plans]), 0),
            (with(&["tune", "gather"], &[]), 0),
            (
                with(&["tune", "gather"], &["--terms", "sycl", "--plans", "unroll:2"]),
                0,
            ),
            (vec!["tune", "no-such-kernel-in-the-gallery"], 2),
            // A search that its budget ends says other things each time.
            (with(&["advise", "gather"], &["--budget", "600"]), 0),
            (vec!["advise", "--ncu", profile], 0),
            (with(&["run", "gather"], &["--plan", "values=rolling-async:4"]), 0),
            (
                with(&["run", "gather"], &["--plan", "values=rolling-assync:4"]),
                2,
            ),
            (with(&["sweep", "gather"], &over), 0),
            (with(&two_plans, &["--all-code"]), 0),
            (
                with(&["compare", "gather", "gather-pointer"], &["--code", "machine"]),
                0,
            ),
            (vec!["compare", &a, &b], 0),
            (vec!["emit", "gather", "--device", "sim:nothing"], 2),
            (vec!["devices"], 0),
            (vec!["devices", "--model", "pvc-1550"], 0),
            (vec!["kernels"], 0),
            (vec!["kernels", module], 0),
            (vec!["plans"], 0),
            (vec!["occupancy", "--group", "256", "--registers", "64"], 0),
            (
                vec![
                    "occupancy",
                    "--device",
                    "sim:pvc-1550",
                    "--group",
                    "256",
                    "--registers",
                    "600",
                ],
                0,
            ),
            (vec!["merge", &logs[0], &logs[1], "--log", &merged], 0),
            (vec!["new", &new], 0),
            (vec!["new", &new], 2),
            (vec!["launch-template", "nothing.ptx"], 2),
            (vec!["capture", "-o", &captured, "--", "true"], no_kernel),
            (vec!["improve", "--", "true"], no_kernel),
            (vec!["exec", "--with", &empty, "--", "true"], 0),
            (
                vec![
                    "calibrate",
                    "--device",
                    "sim:h200",
                    "--case",
                    "micro/latency footprint=16384",
                    "-o",
                    &model,
                    "--compare",
                ],
                0,
            ),
            (vec!["offload", &loops], 0),
            (vec!["completions", "no-shell"], 2),
            (vec!["man", "/proc/no/folder"], 3),
        ];
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
        uses.into_iter()
            .map(|(words, status)| (owned(words), status))
            .collect()
    }
}

/// The names of all commands, hidden ones aside, by clap's own tree: each has a manual page.
fn commands() -> BTreeSet<String> {
    let folder = tempfile::tempdir().expect("a folder");
    text(&headstart("100", &["man", &folder.path().to_string_lossy()]), 0);
    let pages = std::fs::read_dir(folder.path()).expect("the pages");
    let pages = pages.map(|page| page.expect("a page").file_name().to_string_lossy().into_owned());
    pages
        .filter_map(|page| Some(page.strip_prefix("headstart-")?.strip_suffix(".1")?.to_owned()))
        .filter(|name| name != "help")
        .collect()
}

/// Every word of the widest output is in the others, and no line is too long but for one long word.
fn fits(arguments: &[&str], status: Status, renewed: Option<&str>) {
    let words = |text: &str| -> Vec<String> {
        // Lines of tables, and numbers that differ from run to run, are no words.
        let is_word = |word: &&str| word.chars().any(char::is_alphabetic);
        let words = text.split_whitespace().filter(is_word);
        words.map(str::to_owned).collect()
    };
    let mut known: Option<BTreeSet<String>> = None;
    for columns in ["140", "100", "80"] {
        let width: usize = columns.parse().expect("a number");
        if let Some(folder) = renewed {
            let _ = std::fs::remove_dir_all(folder);
        }
        let output = headstart(columns, arguments);
        let text = text(&output, status);
        for line in text.lines() {
            let is_one_word = !line.trim().contains(' ');
            assert!(
                line.chars().count() <= width || is_one_word,
                "{arguments:?} at {columns}: {line}\n{text}"
            );
        }
        // What is said on the way of a search differs from run to run.
        let text = match status {
            0 => String::from_utf8_lossy(&output.stdout).into_owned(),
            _ => text,
        };
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
    let files = Files::new();
    let uses = files.uses();
    let used: BTreeSet<String> = uses
        .iter()
        .filter_map(|(words, _)| words.first().cloned())
        .collect();
    for command in commands() {
        assert!(used.contains(&command), "no use of `{command}` is looked at");
        let gives_output = uses
            .iter()
            .any(|(words, status)| words[0] == command && *status == 0);
        let needs_a_gpu_or_driver = ["capture", "improve"].contains(&&*command);
        assert!(
            gives_output || needs_a_gpu_or_driver || CODE.contains(&&*command),
            "every use of `{command}` fails"
        );
    }
    for (words, status) in &uses {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // What a command writes only once is written at each width.
        let renewed = match (words[0], status) {
            ("new", 0) => Some(words[1]),
            _ => None,
        };
        fits(&words, *status, renewed);
    }
}

#[test]
fn every_help_fits_the_terminal() {
    let commands = commands();
    assert!(commands.len() > 15 && commands.contains("sweep"), "{commands:?}");
    for command in commands {
        fits(&[&command, "--help"], 0, None);
        let help = text(&headstart("100", &[&command, "--help"]), 0);
        assert!(
            help.contains("Examples:") || command == "plans",
            "no examples in the help of `{command}`"
        );
    }
}

#[test]
fn colours_come_where_they_are_wanted() {
    let small = [
        "--set", "items=16", "--set", "groups=8", "--device", "sim:h200", "--plans", "unroll:2",
    ];
    let run = |options: &[&str]| {
        let arguments = [&["tune", "gather"], &small[..], options].concat();
        text(&headstart("100", &arguments), 0)
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
    let [short, full] =
        [&usual.stdout, &verbose.stdout].map(|text| String::from_utf8_lossy(text).into_owned());
    let begin = |text: &str| text.split("\nWhy\n").next().map(str::to_owned);
    assert_eq!(begin(&short), begin(&full), "the report begins the same");
    assert!(
        full.contains(", by distance") && full.contains("Rejected: "),
        "{full}"
    );
    assert!(
        !short.contains(", by distance") && short.lines().count() <= 40,
        "{short}"
    );
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
    let run = |options: &[&str]| text(&headstart("200", &[&small[..], options].concat()), 0);
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
    let script = text(&headstart("100", &["completions", "bash"]), 0);
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().to_string_lossy().into_owned();
    text(&headstart("100", &["man", &place]), 0);
    for command in commands() {
        assert!(script.contains(&command), "{command}");
        let page = folder.path().join(format!("headstart-{command}.1"));
        assert!(page.is_file(), "{page:?}");
    }
}

#[test]
fn the_plans_of_the_help_are_plans() {
    let help = text(&headstart("100", &["plans"]), 0);
    assert_eq!(
        help,
        text(&headstart("100", &["help", "plans"]), 0)
            .split("\n\nUsage:")
            .next()
            .expect("first")
            .to_owned()
            + "\n"
    );
    let last = help.lines().last().expect("an example").trim();
    last.parse::<headstart::prefetch::Plan>()
        .expect("the example is a plan");
    for kind in headstart::prefetch::plan::StrategyKind::names() {
        assert!(help.contains(&format!("  {kind}:")), "{kind}");
    }
}

#[test]
fn the_gallery_fits_80_columns_in_a_pipe() {
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .arg("kernels")
        .env_remove("COLUMNS")
        .output();
    let text = text(&output.expect("the command starts"), 0);
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert!(text.contains("gather") && wide.is_none(), "{wide:?}");
}

#[test]
fn reports_have_lines_of_100_characters_in_a_pipe() {
    let set = [
        "attention",
        "--set",
        "sequences=4",
        "--set",
        "tokens=256",
        "--set",
        "pool=1024",
    ];
    let on = ["--device", "sim:h200", "--plans"];
    let plan = "unroll:8,keys=rolling-async:8/interleaved,values=rolling-async:8/interleaved,pages=rolling-registers:16";
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .arg("tune")
        .args(set)
        .args(on)
        .arg(plan)
        .env_remove("COLUMNS")
        .output()
        .expect("the command starts");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let wide = report.lines().find(|line| line.chars().count() > 100);
    assert!(report.contains("Verdict: ") && wide.is_none(), "{wide:?}");
}
