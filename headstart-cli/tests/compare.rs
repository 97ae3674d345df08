//! `headstart compare`: two plans, two reports and two versions of a kernel, as text, as JSON and coloured.

use std::fs;
use std::process::{Command, Output};

const SMALL: [&str; 6] = ["--set", "items=64", "--set", "groups=8", "--device", "sim:h200"];

/// Adds one to each element, in a way that `OTHER` does not.
const ADD: &str = "hsir 1
kernel @add(%data: ptr.global i32[%length] align 4 unaliased, %length: i64) group 32,1,1 {
  load @data
  %group = id.group.x
  %size = id.group_size.x
  %base = mul.nuw %group, %size
  %own = id.local.x
  %item = add.nuw %base, %own
  %i = extend.u %item to i64
  %ptr = address %data + %i * 4
  %x = load i32 %ptr, @data
  %y = add %x, 1:i32
  store %ptr, %y
  return
}
";

const LAUNCH: &str = "groups = 4\ngroup = 32\n[parameters.data]\nlength = 128\nfill = \"indices\"\nbelow = 99\noutput = \"bits\"\n";

fn headstart(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .env("COLUMNS", "100")
        .env_remove("NO_COLOR")
        .output()
        .expect("the command starts")
}

fn printed(arguments: &[&str]) -> String {
    let output = headstart(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let text = printed(&[arguments, &["--json", "-"]].concat());
    serde_json::from_str(&text).expect("JSON and nothing else")
}

#[test]
fn two_plans_have_times_counters_and_code() {
    let plans = ["compare", "none", "values=rolling-async:4", "--kernel", "gather"];
    let text = printed(&[&plans[..], &SMALL].concat());
    let first = text.lines().next().expect("a conclusion");
    assert!(
        first.starts_with("B is ") && first.contains("× faster, "),
        "{text}"
    );
    let sentence = text
        .split("\n\n")
        .next()
        .expect("a conclusion")
        .replace('\n', " ");
    assert!(
        sentence.contains("Waiting for loads from global memory falls from "),
        "{text}"
    );
    let found = json(&[&plans[..], &SMALL].concat());
    assert_eq!(found["verdict"], "faster");
    let run = |plan: &str| -> serde_json::Value {
        let text = printed(&[&["run", "gather", "--plan", plan, "--json", "-"], &SMALL[..]].concat());
        serde_json::from_str(&text).expect("JSON")
    };
    // What each costs alone.
    let (a, b) = (run("none"), run("values=rolling-async:4"));
    for (side, run) in [("a", &a), ("b", &b)] {
        assert_eq!(found[side]["time_ns"], run["time_ns"], "{side}");
        assert_eq!(found[side]["plan"], run["plan"], "{side}");
    }
    let waiting = "waiting for loads from global memory";
    let rows = found["counters"].as_array().expect("counters");
    let row = rows.iter().find(|row| row["name"] == waiting).expect("counted");
    assert_eq!(row["a"], a["counters"][waiting]);
    assert_eq!(row["b"], b["counters"][waiting]);
    let ratio = found["ratio"].as_f64().expect("a ratio");
    let times = [&a, &b].map(|run| run["time_ns"].as_f64().expect("a time"));
    assert!((ratio - times[0] / times[1]).abs() < 1e-9);
    // The copies of the plan are in the code of B alone.
    let lines = found["code"]["lines"].as_array().expect("lines");
    let has_copy = |of: &str| {
        lines
            .iter()
            .any(|line| line["of"] == of && line["text"].as_str().is_some_and(|text| text.contains("copy")))
    };
    assert!(has_copy("b") && !has_copy("a"), "{lines:?}");
}

/// Who brings PTX is shown PTX.
#[test]
fn plans_of_a_module_are_compared_in_its_language() {
    let kernel = format!("{}/../corpus/first.ptx:gather", env!("CARGO_MANIFEST_DIR"));
    let found = json(&[
        "compare", "none", "unroll:2", "--kernel", &kernel, "--device", "sim:h200",
    ]);
    assert_eq!(found["code"]["form"], "PTX");
}

#[test]
fn the_code_is_cut_unless_all_of_it_is_wanted_and_coloured_where_colours_are() {
    let plans = ["compare", "none", "values=rolling-async:4", "--kernel", "gather"];
    let run = |options: &[&str]| printed(&[&plans[..], &SMALL, options].concat());
    let (cut, whole) = (run(&[]), run(&["--all-code"]));
    assert!(cut.contains(" more lines: `--all-code` prints them."), "{cut}");
    assert!(whole.lines().count() > cut.lines().count() + 50 && !whole.contains("--all-code"));
    assert!(!whole.contains('\u{1b}'), "not into a pipe");
    let coloured = run(&["--color", "always"]);
    for start in ["\u{1b}[32m+ ", "\u{1b}[31m- ", "\u{1b}[36m@@ "] {
        assert!(coloured.contains(start), "{start:?}: {coloured}");
    }
    let machine = run(&["--code", "machine"]);
    assert!(machine.contains("machine code: "), "{machine}");
    assert!(run(&["--code", "ptx"]).contains("PTX: "));
    assert!(!run(&["--code", "none"]).contains("@@"));
}

#[test]
fn one_plan_is_the_same_as_itself() {
    let found = json(
        &[
            &["compare", "unroll:2", "unroll:2", "--kernel", "gather"],
            &SMALL[..],
        ]
        .concat(),
    );
    assert_eq!(found["verdict"], "same");
    assert!(
        found["conclusion"]
            .as_str()
            .is_some_and(|said| said.starts_with("No difference: both take ")),
        "{found}"
    );
    assert_eq!(found["code"]["lines"], serde_json::json!([]));
}

#[test]
fn two_reports_are_compared_by_what_they_advise() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let tune = |name: &str, kernel: &str, device: &str, plans: &str| {
        let path = path(name);
        let arguments = [
            "tune", kernel, "--set", "items=16", "--set", "groups=8", "--plans", plans, "--device", device,
            "--json", &path, "-q",
        ];
        printed(&arguments);
        path
    };
    let a = tune("a.json", "gather", "sim:h200", "unroll:2");
    let b = tune("b.json", "gather", "sim:h200", "unroll:2;values=rolling-async:4");
    let text = printed(&["compare", &a, &b]);
    assert!(text.starts_with("B is "), "{text}");
    assert!(
        text.contains("The plain kernel takes ") && text.contains(" in both."),
        "{text}"
    );
    assert!(
        text.contains("2 plans timed in both; the gain of 0 differs by "),
        "{text}"
    );
    let found = json(&["compare", &a, &b]);
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&b).expect("a file")).expect("JSON");
    assert_eq!(found["b"]["time_ns"], report["best"]["time_ns"]);
    assert_eq!(found["b"]["plan"], report["best"]["plan"]);
    assert_eq!(json(&["compare", &a, &a])["verdict"], "same");

    let refused = |arguments: &[&str], status: i32, expected: &[&str]| {
        let output = headstart(arguments);
        let said = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ");
        assert_eq!(output.status.code(), Some(status), "{said}");
        for expected in expected {
            assert!(said.contains(expected), "{expected:?}: {said}");
        }
    };
    let elsewhere = tune("c.json", "gather", "sim:a100", "unroll:2");
    refused(
        &["compare", &a, &elsewhere],
        2,
        &[
            "different devices, `sim:h200` and `sim:a100`",
            "two reports of one device",
        ],
    );
    // Another kernel's report.
    let mut other = report;
    other["kernel"] = "scatter".into();
    let other_path = path("d.json");
    fs::write(&other_path, other.to_string()).expect("written");
    refused(
        &["compare", &a, &other_path],
        2,
        &[
            "different kernels, `gather` and `scatter`",
            "two reports of one kernel",
        ],
    );
}

#[test]
fn two_versions_are_compared_in_what_they_leave_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    };
    let launch = write("add.toml", LAUNCH);
    let one = write("one.hsir", ADD);
    let same = write(
        "same.hsir",
        &ADD.replace("%y = add %x, 1:i32", "%y = sub %x, -1:i32"),
    );
    let other = write(
        "other.hsir",
        &ADD.replace("%y = add %x, 1:i32", "%y = add %x, 2:i32"),
    );
    let compared = |b: &str| json(&["compare", &one, b, "--launch", &launch, "--device", "sim:h200"]);
    let found = compared(&same);
    assert_eq!(
        found["findings"],
        serde_json::json!(["Both leave the same bits in `data`."]),
        "{found}"
    );
    assert_eq!(
        (&found["code"]["removed"], &found["code"]["added"]),
        (&1.into(), &1.into())
    );
    let found = compared(&other);
    assert_eq!(
        found["warnings"],
        serde_json::json!(["they leave different bits in `data`."]),
        "{found}"
    );
}
