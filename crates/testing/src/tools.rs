//! Outside tools that `scripts/tools` sets up, and what a test does without them.

use std::path::{Path, PathBuf};

/// The folder of the outside tools: `target/tools`, or what `HEADSTART_TOOLS` names.
pub fn folder() -> PathBuf {
    std::env::var_os("HEADSTART_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools"),
        PathBuf::from,
    )
}

/// The program of this name. Without it, says on standard error that something is skipped.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = folder().join("bin").join(name);
    match path.exists() {
        true => Some(path),
        false => {
            skip(name, &format!("no {name}; scripts/tools sets it up"));
            None
        }
    }
}

/// Says on standard error that something is skipped for want of a tool, and why. Where the environment variable
/// `HEADSTART_NEED` names the tool (several are separated by spaces), being without it is a failure.
///
/// # Panics
/// The tool is needed.
pub fn skip(name: &str, why: &str) {
    let needed = std::env::var("HEADSTART_NEED").unwrap_or_default();
    assert!(
        !needed.split_whitespace().any(|need| need == name),
        "{why}; HEADSTART_NEED asks for {name}"
    );
    eprintln!("skipped: {why}");
}
