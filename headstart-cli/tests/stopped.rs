//! A search that is stopped, by a budget or by Ctrl-C, reports its results so far and says so.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn tune(more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    command.args([
        "tune", "gather", "--device", "sim:h200", "--set", "items=64", "--set", "work=2",
    ]);
    command.args(more);
    command
}

fn json(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_budget_ends_the_search() {
    let output = tune(&["--budget", "0.001", "--json", "-"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    let of = report["partial"]["of"].as_u64().expect("it is partial");
    assert_eq!(report["partial"]["tried"], 0);
    assert!(of > 50, "{of}");
    assert!(report["baseline_ns"].as_f64().expect("a time") > 0.0);
    assert_eq!(report["verdict"], "undecided");
    assert!(report["partial"]["telling_left"].as_u64() > Some(3), "{report}");
    // No plan ran, so nothing is said of how long one takes.
    assert!(report["partial"]["seconds_a_plan"].is_null(), "{report}");
    let notes = report["notes"].to_string();
    assert!(
        notes.contains(&format!("Stopped after 0 of {of} plans")),
        "{notes}"
    );
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("`--log FILE`"), "{told}");
}

/// Counting its work-groups alone takes many times the budget, and so does the launch.
#[test]
fn a_launch_that_is_too_large_for_its_budget_is_reported_all_the_same() {
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args([
            "tune",
            "attention",
            "--device",
            "sim:h200",
            "--budget",
            "0.5",
            "--json",
            "-",
        ])
        .args([
            "--set",
            "sequences=8",
            "--set",
            "tokens=4288",
            "--set",
            "pool=1024",
        ])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    assert_eq!(report["verdict"], "undecided", "{report}");
    assert!(report["baseline_ns"].as_f64() > Some(0.0), "{report}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

/// Work-items that follow a million indices each: nothing of that ends soon.
#[test]
#[ignore = "takes a minute"]
fn a_plain_kernel_that_is_not_done_is_reported_by_what_it_has_done() {
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args([
            "tune", "chase", "--device", "sim:h200", "--budget", "1", "--json", "-",
        ])
        .args([
            "--set",
            "steps=2^20",
            "--set",
            "groups=132",
            "--set",
            "bits=20",
            "--set",
            "group=1024",
        ])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(began.elapsed() > Duration::from_secs(60), "{:?}", began.elapsed());
    let report = json(&output);
    assert_eq!(report["verdict"], "undecided", "{report}");
    assert!(report["doubt"].to_string().contains("ended early"), "{report}");
    assert!(
        report["notes"].to_string().contains("takes longer than this"),
        "{report}"
    );
}

#[test]
fn a_search_within_its_budget_is_whole() {
    let output = tune(&["--budget", "3600", "--plans", "unroll:2", "--json", "-"]).output();
    let report = json(&output.expect("it runs"));
    assert!(report.get("partial").is_none(), "{report}");
}

#[test]
fn no_time_is_no_budget() {
    for budget in ["0", "-1", "NaN", "1e400"] {
        let output = tune(&[&format!("--budget={budget}")]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_reports_what_was_tried_and_the_search_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log.jsonl");
    let lines = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let kept = log.to_string_lossy().into_owned();
    // Long enough to be stopped in the middle, on any machine.
    let plans = "unroll:2;unroll:4;unroll:8;unroll:16;values=rolling-registers:1;values=rolling-registers:2;\
                 values=rolling-registers:4;values=rolling-registers:8;values=rolling-async:1;values=rolling-async:2";
    let logged = || {
        let mut command = tune(&["--set", "groups=264", "--plans", plans]);
        command.args(["--log", &kept, "--json", "-"]);
        command
    };
    let child = logged()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let started = Instant::now();
    while lines() < 3 {
        assert!(started.elapsed() < Duration::from_secs(300), "it does not get on");
        thread::sleep(Duration::from_millis(1));
    }
    let signal = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signal.expect("it is sent").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let report = json(&output);
    let tried = report["partial"]["tried"].as_u64().expect("it is partial");
    assert!(
        (3..report["partial"]["of"].as_u64().expect("a number")).contains(&tried),
        "{tried}"
    );
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains(&kept) && told.contains("resumes"), "{told}");
    // Refused plans are trials of the report; the log has what was made.
    assert!(lines() >= 3);

    let before = fs::read_to_string(&log).expect("there");
    let whole = json(&logged().output().expect("it runs"));
    assert!(whole.get("partial").is_none(), "{whole}");
    let after = fs::read_to_string(&log).expect("there");
    assert!(after.starts_with(&before), "a trial was made again");
    // The other lines are of the plans that were tried in another geometry.
    let search = after.split("\",\"plan\"").next().unwrap_or_default();
    assert_eq!(after.lines().filter(|line| line.starts_with(search)).count(), 10);
}
