//! Bad input gets one clear line: what is wrong, where, and what would be accepted. The exit status says whose fault it is. No
//! partial file is left behind, nothing panics, nothing hangs.

mod devices;
mod files;
mod kernels;
mod launches;
mod plans;
mod programs;
mod reports;
mod usage;
mod waits;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// No command of these tests may take longer, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

fn headstart(arguments: &[&str]) -> Output {
    let started = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .output()
        .expect("the command starts");
    assert!(
        started.elapsed() < LIMIT,
        "{arguments:?} took {:?}",
        started.elapsed()
    );
    output
}

/// Runs a command that has no more than this many bytes of address space.
#[cfg(target_os = "linux")]
fn limited(bytes: u64, arguments: &[&str]) -> Output {
    let started = Instant::now();
    let output = Command::new("sh")
        .args([
            "-c",
            "ulimit -v \"$0\" && exec \"$@\"",
            &(bytes >> 10).to_string(),
        ])
        .arg(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .output()
        .expect("the shell starts");
    assert!(
        started.elapsed() < LIMIT,
        "{arguments:?} took {:?}",
        started.elapsed()
    );
    output
}

/// Runs a command that must be refused with this status, in one line that holds all of `expected`. A search may print before
/// that what it found in the kernel.
fn refused(arguments: &[&str], status: i32, expected: &[&str]) {
    let output = headstart(arguments);
    let all = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?} said: {all}");
    let is_error = |line: &&str| line.starts_with("headstart: ");
    assert_eq!(
        all.lines().filter(is_error).count(),
        1,
        "{arguments:?} said: {all}"
    );
    let said = all.lines().next_back().unwrap_or_default();
    assert!(
        is_error(&said) && all.ends_with('\n'),
        "{arguments:?} said: {all}"
    );
    let before = all.lines().count() - 1;
    assert!(
        before == 0 || ["tune", "advise"].contains(&arguments[0]),
        "{arguments:?} said: {all}"
    );
    assert!(said.len() < 700, "{arguments:?} said: {said}");
    assert!(
        all.chars().all(|c| c == '\n' || !c.is_control()),
        "{arguments:?} said: {all:?}"
    );
    for expected in expected {
        assert!(
            said.contains(expected),
            "{arguments:?} does not say {expected:?}: {said}"
        );
    }
    assert!(
        output.stdout.is_empty(),
        "{arguments:?} printed: {}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Commands that must be refused, one a line: the status, the arguments, and behind `=>` what is said, parted by ` & `.
fn table(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (command, said) = line.split_once(" =>").expect("what is said");
        let (status, arguments) = command.split_once(' ').expect("a status");
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let expected: Vec<&str> = said.trim_start().split(" & ").collect();
        refused(&arguments, status.parse().expect("a status"), &expected);
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    path.to_string_lossy().into_owned()
}

/// A kernel that reads and writes the same memory, so that nothing of it may be fetched early.
const PREFIX_SUM: &str = "hsir 1
kernel @prefix_sum(%data: ptr.global i32[%length] align 4 unaliased, %length: i64) group 32,1,1 {
  load @data
  %sum = loop 'scan (%i = 0:i64, %sum0 = 0:i32) -> i32 {
    %more = lt.s %i, %length
    if %more { yield } else { break %sum0 }
    %ptr = address %data + %i * 4
    %x = load i32 %ptr, @data
    %sum1 = add %sum0, %x
    store %ptr, %sum1
    %next = add.nw %i, 1:i64
    continue %next, %sum1
  }
  return
}
";

/// The first half of each work-group meets at a barrier, and the other half ends.
const HALF_A_BARRIER: &str = "hsir 1
kernel @half(%data: ptr.global i32[%length] align 4 unaliased, %length: i64) group 128,1,1 {
  file #1 \"half.rs\"
  %own = id.local.x
  %i = extend.u %own to i64
  %low = lt.u %own, 64:i32
  if %low {
    barrier #1:7:9
    yield
  }
  %ptr = address %data + %i * 4
  store %ptr, %own
  return
}
";
