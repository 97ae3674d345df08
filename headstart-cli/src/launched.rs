//! A program that was built with Headstart: it is run once, and leaves each kernel that it launches with the arguments of the
//! largest launch.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use headstart::runtime::kept::VARIABLE;
use headstart::suggest::{self, quoted};
use headstart::{Error, Result};
use tempfile::TempDir;

use crate::arguments::{BinOptions, DataOptions, KernelOptions};
use headstart_cli::output::{explain_command, tell};

/// A program's kept launches.
pub struct Launches {
    /// The files are there for as long as this is.
    folder: TempDir,
    /// The kernels, by name.
    pub names: Vec<String>,
}

impl Launches {
    /// Runs the program to its end. Its standard output is dropped: the command has its own output there.
    ///
    /// # Errors
    /// It cannot be run, fails, or launches no kernel of `#[kernel]`.
    pub fn of(program: &Path, options: &BinOptions) -> Result<Launches> {
        let shown = quoted(&program.to_string_lossy());
        let folder = tempfile::tempdir()
            .map_err(|error| Error::device(format!("cannot make a folder for the launches: {error}")))?;
        let mut command = Command::new(here(program));
        command
            .args(&options.arguments)
            .env(VARIABLE, folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        explain_command(&command);
        let status = command.status().map_err(|error| {
            Error::usage(format!("{shown} cannot be run: {error}"))
                .accepted("a built program, such as `target/release/my-program`")
        })?;
        if !status.success() {
            return Err(Error::input(format!("{shown} failed, {status}"))
                .accepted("a program that succeeds; put its arguments after `--`"));
        }
        let mut names = Vec::new();
        let entries = fs::read_dir(folder.path())
            .map_err(|error| Error::device(format!("the launches cannot be read: {error}")))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            let ending = path.extension().and_then(|ending| ending.to_str());
            match (name, ending) {
                (Some(name), Some("toml")) => names.push(name),
                (Some(name), Some("refused")) => {
                    let reason = fs::read_to_string(&path).unwrap_or_default();
                    tell(&format!("no launch of `{name}` was recorded: {}", reason.trim()));
                }
                _ => {}
            }
        }
        names.sort();
        match names.is_empty() {
            true => Err(
                Error::input(format!("{shown} launched no `#[kernel]`")).accepted(
                    "a program built with this version of the `headstart` crate that launches a kernel on any device; \
                 `headstart capture` is for CUDA programs",
                ),
            ),
            false => Ok(Launches { folder, names }),
        }
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// It was not launched: which were.
    pub fn named(&self, name: &str) -> Result<KernelOptions> {
        if !self.names.iter().any(|own| own == name) {
            return Err(
                Error::usage(format!("the program launched no kernel {}", quoted(name))).accepted(
                    suggest::accepted(name, "kernels", self.names.iter().map(String::as_str)),
                ),
            );
        }
        let file = |ending: &str| self.folder.path().join(format!("{name}.{ending}"));
        Ok(KernelOptions {
            kernel: file("hsir").to_string_lossy().into_owned(),
            data: DataOptions {
                set: Vec::new(),
                trace: None,
                launch: Some(file("toml")),
                accuracy: None,
            },
        })
    }
}

/// A program in this folder, which a name without a slash would not be.
fn here(program: &Path) -> OsString {
    match program.components().count() == 1 && program.is_file() {
        true => PathBuf::from(".").join(program).into_os_string(),
        false => program.as_os_str().to_owned(),
    }
}
