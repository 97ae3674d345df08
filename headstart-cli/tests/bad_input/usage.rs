//! The command line is wrong, or the output is not read.

use std::process::{Command, Stdio};

use crate::headstart;

#[test]
fn usage_is_refused_with_status_2() {
    for arguments in [&["tune"][..], &["fly"], &["tune", "gather", "--fast"], &[]] {
        let output = headstart(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
    assert_eq!(headstart(&["--help"]).status.code(), Some(0));
    assert_eq!(headstart(&["tune", "--help"]).status.code(), Some(0));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for arguments in [
        &["kernels"][..],
        &["devices"],
        &["devices", "--json", "-"],
        &["emit", "gather"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_headstart"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // As `| head -0` does, before anything is written.
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{arguments:?} ended with {}: {said}",
            output.status
        );
        assert!(said.is_empty(), "{arguments:?} said: {said}");
    }
}
