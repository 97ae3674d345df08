//! A search whose process is killed goes on where it stopped.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough to be killed in the middle, on any machine.
const ARGUMENTS: [&str; 10] = [
    "tune",
    "gather",
    "--device",
    "sim:h200",
    "--set",
    "groups=132",
    "--set",
    "items=128",
    "--set",
    "work=2",
];

fn tune() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    command.args(ARGUMENTS);
    command.args([
        "--plans",
        "unroll:2;unroll:4;unroll:8;unroll:16;values=rolling-registers:1;values=rolling-registers:2;\
         values=rolling-registers:4;values=rolling-registers:8;values=rolling-async:1;values=rolling-async:2;\
         values=rolling-async:4;values=rolling-async:8;values=cache:L2:1;values=cache:L2:2;values=cache:L2:4",
    ]);
    command
}

#[test]
fn what_was_tried_before_the_kill_is_not_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log.jsonl");
    let lines = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let mut child = tune()
        .arg("--log")
        .arg(&log)
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    let started = Instant::now();
    while lines() < 3 {
        assert!(started.elapsed() < Duration::from_secs(300), "it does not get on");
        assert!(
            child.try_wait().expect("a status").is_none(),
            "it ended before it could be killed"
        );
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("killed");
    assert!(
        !child.wait().expect("a status").success(),
        "it ended before it was killed"
    );
    let kept = fs::read_to_string(&log).expect("there");
    let whole = kept.rfind('\n').map_or(0, |last| last + 1);
    let kept = &kept[..whole];

    let report = |log: Option<&std::path::Path>| {
        let mut command = tune();
        command.args(["--json", "-"]);
        if let Some(log) = log {
            command.arg("--log").arg(log);
        }
        let output = command.output().expect("the command runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("text")
    };
    let resumed = report(Some(&log));
    let after = fs::read_to_string(&log).expect("there");
    assert!(after.starts_with(kept), "a trial was made again");
    // The other lines are of the plans that were tried in another geometry.
    let first = after
        .lines()
        .next()
        .map_or("", |line| line.split("\",\"plan\"").next().unwrap_or(""));
    assert_eq!(after.lines().filter(|line| line.starts_with(first)).count(), 15);
    assert_eq!(resumed, report(None));
}
