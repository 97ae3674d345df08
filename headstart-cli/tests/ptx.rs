//! Kernels in PTX on the command line: from a module and a launch file to a verdict, and to a module that loads in place of
//! the old one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn corpus(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    path.to_string_lossy().into_owned()
}

fn headstart(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .output();
    output.expect("the command starts")
}

fn done(arguments: &[&str]) -> String {
    let output = headstart(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?} said: {said}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(arguments: &[&str], status: i32, expected: &[&str]) {
    let output = headstart(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?} said: {said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    for expected in expected {
        assert!(
            said.contains(expected),
            "{arguments:?} does not say {expected:?}: {said}"
        );
    }
}

const LAUNCH: &str = "groups = 2\ngroup = 64\nreadonly = [\"param_0\", \"param_1\"]\nunaliased = [\"param_2\"]\n\
                      no_overflow = true\n[parameters.param_0]\nlength = 1024\nfill = \"indices\"\nbelow = 4096\n\
                      [parameters.param_1]\nlength = 4096\n[parameters.param_2]\nlength = 128\n\
                      [parameters.param_3]\nvalue = 8\n";

#[test]
fn a_module_is_tuned_and_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    fs::write(at("launch.toml"), LAUNCH).expect("written");
    let kernel = format!("{}:gather", corpus("first.ptx"));
    let (launch, better, report) = (at("launch.toml"), at("better.ptx"), at("report.json"));
    let plans = "param_1=rolling-async:2;param_1=rolling-registers:4";
    done(&[
        "tune", &kernel, "--launch", &launch, "--device", "sim:h200", "--plans", plans, "-o", &better,
        "--json", &report,
    ]);
    let report = fs::read_to_string(report).expect("a report");
    assert!(
        report.contains("\"baseline_ns\"") && report.contains("rolling-registers:4"),
        "{report}"
    );
    let text = fs::read_to_string(&better).expect("a module");
    assert!(text.starts_with("// Headstart "), "{}", &text[..200]);
    assert_eq!(text.matches(".entry").count(), 4, "all entries are there");
    // What was written is a kernel like any other, and computes the same.
    let checksum = |file: &str| {
        let kernel = format!("{file}:gather");
        let said = done(&[
            "run", &kernel, "--launch", &launch, "--device", "sim:h200", "--json", "-",
        ]);
        let from = said.find("\"checksums\"").expect("checksums");
        said[from..].split('}').next().map(str::to_owned)
    };
    assert_eq!(checksum(&better), checksum(&corpus("first.ptx")));
}

#[test]
fn a_plan_is_written_into_its_module() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    fs::write(&launch, LAUNCH).expect("written");
    let launch = launch.to_string_lossy();
    let kernel = format!("{}:gather", corpus("first.ptx"));
    let text = done(&[
        "emit",
        &kernel,
        "--launch",
        &launch,
        "--target",
        "ptx",
        "--plan",
        "param_1=rolling-async:2",
    ]);
    for expected in [
        "entry `gather`",
        "The plan is for work-groups of 64 x 1 x 1",
        // That nothing writes `param_0` the entry says itself: `ld.global.nc`.
        "Taken for granted: signed loop counters do not overflow",
        "$headstart_planned:",
        ".visible .entry spmv(",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
}

#[test]
fn a_launch_file_to_start_from_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    for entry in [
        "wide.ptx:cross_section",
        "wide.ptx:checksum",
        "together.ptx:dynamic_reverse",
    ] {
        let kernel = corpus(entry);
        fs::write(&launch, done(&["launch-template", &kernel])).expect("written");
        let text = done(&["emit", &kernel, "--launch", &launch.to_string_lossy()]);
        assert!(text.starts_with("hsir 1"), "{entry}");
    }
}

#[test]
fn mistakes_are_said() {
    let first = corpus("first.ptx");
    refused(
        &["run", &first, "--device", "sim:h200"],
        2,
        &["4 entries", "`gather`"],
    );
    refused(
        &["run", &format!("{first}:gahter"), "--device", "sim:h200"],
        2,
        &["no entry `gahter`", "did you mean `gather`?"],
    );
    refused(
        &["tune", "gather", "-o", "x.ptx"],
        2,
        &["`-o` writes a module of PTX"],
    );
    let folder = tempfile::tempdir().expect("a folder");
    let old = folder.path().join("old.ptx");
    let text = fs::read_to_string(&first).expect("the corpus");
    fs::write(&old, text.replace(".target sm_90", ".target sm_52")).expect("written");
    let old = format!("{}:gather", old.to_string_lossy());
    refused(
        &["emit", &old, "--target", "ptx"],
        3,
        &["`sm_52`", "sm_80 or a later GPU"],
    );
}

#[test]
fn a_launch_that_shows_nothing_is_told_above_the_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    let kernel = format!("{}:gather", corpus("first.ptx"));
    let told = |items: u32| {
        let text = format!(
            "groups = 2\ngroup = 32\n[parameters.param_0]\nlength = 2048\nfill = \"indices\"\nbelow = 64\n\
             [parameters.param_1]\nlength = 64\nfill = \"fractions\"\n\
             [parameters.param_2]\nlength = 64\nfill = \"zero\"\noutput = \"bits\"\n\
             [parameters.param_3]\nvalue = {items}\n"
        );
        fs::write(&launch, text).expect("written");
        let path = launch.to_string_lossy();
        done(&[
            "tune", &kernel, "--launch", &path, "--device", "sim:h200", "--plans", "unroll:2",
        ])
    };
    let text = told(0);
    let (before, _) = text.split_once("Verdict:").expect("a verdict");
    assert!(
        before.contains("Warning: No loop with loads ran a single iteration"),
        "{text}"
    );
    assert!(
        before.contains("Warning: The launch left every output as it was"),
        "{text}"
    );
    assert!(!told(8).contains("Warning"));
}
