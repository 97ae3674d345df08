//! `examples/cluster/tune_dask.py` on two workers of this machine.

use std::process::{Command, Stdio};

use headstart_testing::tools;

use crate::process;
use crate::search::{PARTS, SUBJECT, Search};

#[test]
fn a_lost_worker_s_part_goes_on_from_its_log() {
    let python = tools::folder().join("bin/dask-python");
    if !python.exists() {
        return tools::skip("dask", "no Dask; scripts/tools sets it up");
    }
    let search = Search::new();
    let child = Command::new(&python)
        .arg(Search::example("tune_dask.py"))
        .arg(search.folder())
        .arg(PARTS.to_string())
        .args(SUBJECT)
        .env("PATH", Search::path())
        // As the search of one process is made.
        .env("HEADSTART_PTXAS", "")
        .env_remove("DASK_SCHEDULER_ADDRESS")
        .current_dir(search.folder())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    // Whatever comes, nothing is left running.
    let _ended = Ended(child.id());

    let lost = search.in_the_middle_of(1);
    let worker = process::parent(lost).expect("a worker");
    assert_ne!(worker, child.id(), "the part is not in a worker's process");
    process::kill(worker);
    process::wait_for("the end of the lost worker's search", || {
        process::has_ended(lost).then_some(())
    });
    let kept = search.kept(1);

    let output = child.wait_with_output().expect("a status");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("Verdict: "));
    search.check(1, &kept);
}

/// Ends a process, whose workers end with it.
struct Ended(u32);

impl Drop for Ended {
    fn drop(&mut self) {
        if std::thread::panicking() {
            process::kill(self.0);
        }
    }
}
