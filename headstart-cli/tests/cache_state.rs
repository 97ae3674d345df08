//! `--l2`: what a timed launch finds in the L2 cache, in every command that times one.

use std::process::{Command, Output};

use serde_json::Value;

/// 1 MiB of data: L2 holds it.
const KERNEL: [&str; 7] = [
    "gather",
    "--set",
    "items=16",
    "--set",
    "groups=16",
    "--device",
    "sim:h200",
];

fn headstart(arguments: &[&str]) -> Output {
    let command = env!("CARGO_BIN_EXE_headstart");
    Command::new(command)
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn json(command: &str, more: &[&str]) -> Value {
    let mut arguments = vec![command];
    arguments.extend(KERNEL);
    arguments.extend(["--json", "-"]);
    arguments.extend(more);
    let output = headstart(&arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn nanoseconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no time"))
}

#[test]
fn a_launch_that_finds_nothing_takes_longer_and_the_answer_says_so() {
    let table = ["--set", "table=2^16"];
    let with = |command: &str, more: &[&str]| json(command, &[&table, more].concat());
    let kept = nanoseconds(&with("run", &["--l2", "kept"])["time_ns"]);
    let flushed = nanoseconds(&with("run", &["--l2", "flushed"])["time_ns"]);
    assert_eq!(
        kept,
        nanoseconds(&with("run", &[])["time_ns"]),
        "kept is the default"
    );
    assert!(flushed > 1.2 * kept, "{flushed} against {kept}");

    // The same log serves both, and mixes no times.
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log").to_string_lossy().into_owned();
    let tune = |state| with("tune", &["--plans", "unroll:4", "--log", &log, "--l2", state]);
    let plain = |report: &Value| nanoseconds(&report["baseline_ns"]);
    let (one, other) = (tune("kept"), tune("flushed"));
    assert_eq!((plain(&one), plain(&other)), (kept, flushed));
    let says = |report: &Value| {
        report
            .to_string()
            .contains("an L2 cache that holds nothing of it")
    };
    assert!(!says(&one) && says(&other), "{other}");
    let warm = one.to_string();
    for said in [
        "the L2 cache as the launch before left it",
        "a launch with L2 `flushed` finds nothing",
    ] {
        assert!(warm.contains(said), "{said}: {warm}");
    }
    // Every time is with the launch, and the bounds are of such times.
    let launch = one["launch_ns"].as_f64().expect("the model's");
    assert!(warm.contains("Each time contains the launch"), "{warm}");
    for roof in one["bounds"]["roofs"].as_array().expect("bounds") {
        assert!(roof["least_ns"].as_f64() > Some(launch), "{roof}");
    }

    let swept = with(
        "sweep",
        &["--over", "work=8,9", "--plan", "unroll:4", "--l2", "flushed"],
    );
    // A sweep has one sample of work-groups for all points.
    let ratio = nanoseconds(&swept["points"][0]["plain_ns"]) / flushed;
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}: {swept}");
    assert!(says(&swept), "{swept}");
}

#[test]
fn advice_depends_on_it() {
    let table = ["--set", "table=2^16", "--l2"];
    let advice = |state| json("advise", &[&table[..], &[state]].concat());
    let (kept, flushed) = (advice("kept"), advice("flushed"));
    let time = |advice: &Value| nanoseconds(&advice["time_ns"]);
    assert!(time(&flushed) > 1.2 * time(&kept), "{kept} {flushed}");
}

#[test]
fn other_states_are_refused() {
    let output = headstart(&["run", "gather", "--l2", "cold"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("kept") && said.contains("flushed"), "{said}");
}
