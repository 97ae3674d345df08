//! `headstart capture --import`: launches of a trace that tritonparse wrote.
//!
//! The Python package reads traces: tensors lie in them as PyTorch saves them. It comes with this command in the wheel.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use headstart::suggest::quoted;
use headstart::{Error, Result};

use crate::arguments::Capture;
use headstart_cli::output::print;

/// The variable that names an interpreter.
const NAMED: &str = "HEADSTART_PYTHON";

/// Imports a trace.
pub fn import(trace: &PathBuf, options: &Capture) -> Result<()> {
    let interpreter = interpreter();
    let shown = quoted(&interpreter.to_string_lossy());
    let accepted = || {
        format!(
            "an interpreter with the Python package (in a clone, `scripts/wheel` makes its wheel); {NAMED} names it"
        )
    };
    let mut command = Command::new(&interpreter);
    command.args(["-m", "headstart", "import-trace"]).arg(trace);
    command.arg("--output").arg(&options.output);
    if let Some(pattern) = &options.kernel {
        command.arg("--kernel").arg(pattern);
    }
    if let Some(launch) = options.launch {
        command.arg("--launch").arg(launch.to_string());
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::usage(format!("{shown} cannot be started: {error}")).accepted(accepted()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return print(&String::from_utf8_lossy(&output.stdout));
    }
    if said.contains("No module named") {
        return Err(Error::usage(format!("{shown} has no package `headstart`")).accepted(accepted()));
    }
    let last = said.trim_end().lines().last().unwrap_or("it said nothing");
    let last = last.strip_prefix("headstart: ").unwrap_or(last).to_owned();
    Err(match output.status.code() {
        Some(1) => Error::input(last),
        Some(2) => Error::usage(last),
        _ => Error::bug(format!(
            "the reader of traces ended with {}: {last}",
            output.status
        )),
    })
}

/// The interpreter that is named, or the one that this command was installed beside, or the path's.
fn interpreter() -> OsString {
    if let Some(named) = env::var_os(NAMED).filter(|name| !name.is_empty()) {
        return named;
    }
    let beside = env::current_exe()
        .ok()
        .and_then(|own| Some(own.parent()?.join("python3")));
    match beside.filter(|path| path.is_file()) {
        Some(path) => path.into_os_string(),
        None => "python3".into(),
    }
}
