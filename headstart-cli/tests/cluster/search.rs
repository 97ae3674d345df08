//! The search that the tests share out, and what has to come of it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{self, output, wait_for};

/// How many parts the search is in.
pub const PARTS: usize = 3;

/// How many trials a part has.
const TRIALS: usize = 5;

/// Each trial takes long enough for its part to be lost in the middle.
pub const SUBJECT: [&str; 9] = [
    "gather",
    "--device",
    "sim:h200",
    "--set",
    "groups=132",
    "--set",
    "items=512",
    "--plans",
    "unroll:2;unroll:4;unroll:8;unroll:16;values=rolling-registers:1;values=rolling-registers:2;\
     values=rolling-registers:4;values=rolling-registers:8;values=rolling-async:1;values=rolling-async:2;\
     values=rolling-async:4;values=rolling-async:8;values=cache:L2:1;values=cache:L2:2;values=cache:L2:4",
];

/// A search in a folder that all nodes see.
pub struct Search {
    folder: TempDir,
}

impl Search {
    /// In a new folder, which daemons of other users may enter.
    pub fn new() -> Search {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        Search { folder }
    }

    /// Where the parts' logs and the report are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of `examples/cluster`.
    pub fn example(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../examples/cluster")
            .join(name)
    }

    /// The path on which the nodes find `headstart`, and this test the programs of a cluster.
    pub fn path() -> OsString {
        let own = Path::new(env!("CARGO_BIN_EXE_headstart"))
            .parent()
            .expect("a folder");
        let tools = headstart_testing::tools::folder().join("bin");
        let others = env::var_os("PATH").unwrap_or_default();
        let all = [own.to_owned(), tools]
            .into_iter()
            .chain(env::split_paths(&others));
        env::join_paths(all).expect("a path")
    }

    fn log(&self, part: usize) -> PathBuf {
        self.folder().join(format!("part-{part}.jsonl"))
    }

    /// The process that makes a part's trials, once it has made two of them.
    pub fn in_the_middle_of(&self, part: usize) -> u32 {
        let log = self.log(part);
        let argument = log.to_str().expect("text").to_owned();
        wait_for("the second trial", || {
            let trials = fs::read_to_string(&log).map_or(0, |text| text.lines().count());
            (trials >= 2).then(|| process::with_argument(&argument).first().copied())?
        })
    }

    /// The whole lines of the log of a part that was lost.
    ///
    /// # Panics
    /// It was not lost in the middle.
    pub fn kept(&self, part: usize) -> String {
        let text = fs::read_to_string(self.log(part)).expect("a log");
        let whole = text.rfind('\n').map_or(0, |last| last + 1);
        let trials = text[..whole].lines().count();
        assert!((2..TRIALS).contains(&trials), "{trials} trials are kept");
        text[..whole].to_owned()
    }

    /// Checks the report against one process's, and the lost part's log against what was kept of it.
    pub fn check(&self, lost: usize, kept: &str) {
        let log = fs::read_to_string(self.log(lost)).expect("a log");
        assert!(log.starts_with(kept), "a trial was made again");
        for part in 1..=PARTS {
            let log = fs::read_to_string(self.log(part)).expect("a log");
            assert_eq!(plans(&log).len(), TRIALS, "part {part}");
        }

        // The report's additions are of another geometry: no trial of a part is repeated.
        let all = fs::read_to_string(self.folder().join("all.jsonl")).expect("a log");
        let key = |line: &str| line.split("\",\"plan\"").next().map(str::to_owned);
        let first = all.lines().next().and_then(key);
        let of_parts: String = all
            .lines()
            .filter(|line| key(line) == first)
            .flat_map(|line| [line, "\n"])
            .collect();
        assert_eq!(plans(&of_parts).len(), PARTS * TRIALS);

        let report = fs::read_to_string(self.folder().join("report.json")).expect("a report");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report, alone());
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        // After a failure a part may still run.
        for process in self.folder().to_str().map_or(vec![], process::with_argument) {
            process::kill(process);
        }
    }
}

/// The plans of a log, each of which is there once.
fn plans(log: &str) -> Vec<String> {
    let mut plans: Vec<String> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|trial| Some(trial.get("plan")?.as_str()?.to_owned()))
        .collect();
    let all = plans.len();
    plans.sort();
    plans.dedup();
    assert_eq!(plans.len(), all, "a trial was made twice:\n{log}");
    plans
}

/// The report of a search in one process.
fn alone() -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    command.arg("tune").args(SUBJECT).args(["--json", "-"]);
    command.env("HEADSTART_PTXAS", "");
    serde_json::from_str(&output(&mut command)).expect("JSON")
}
