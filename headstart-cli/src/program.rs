//! The user's program, run with the library that is preloaded.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use headstart::suggest::quoted;
use headstart::{Error, Result};

use crate::output::explain_command;

/// The library's file.
const LIBRARY: &str = "libheadstart_driver.so";

/// The variable that says where the library is.
const NAMED: &str = "HEADSTART_DRIVER_LIBRARY";

/// A program with its arguments.
pub struct Program {
    words: Vec<OsString>,
    library: PathBuf,
    settings: Vec<(&'static str, String)>,
}

impl Program {
    /// A program as the command line has it.
    ///
    /// # Errors
    /// There is none; this system has no preloading; the library is not there.
    pub fn new(words: &[OsString]) -> Result<Program> {
        if words.is_empty() {
            return Err(Error::usage("which program?").accepted("`-- PROGRAM ARGUMENTS …` at the end"));
        }
        if !cfg!(target_os = "linux") {
            return Err(Error::device("programs are captured on Linux only"));
        }
        Ok(Program {
            words: words.to_vec(),
            library: library()?,
            settings: Vec::new(),
        })
    }

    /// Limits of a capture.
    pub fn limit(&mut self, most_bytes: u64, patience_s: u64) {
        self.settings
            .push(("HEADSTART_DRIVER_MAX_BYTES", most_bytes.to_string()));
        self.settings
            .push(("HEADSTART_DRIVER_PATIENCE", patience_s.to_string()));
    }

    /// Has libraries compile again what they keep as machine code on disk, where the text is not: CuPy's cache.
    pub fn compile_again(&mut self) {
        const CUPY: &str = "CUPY_CACHE_IN_MEMORY";
        if env::var_os(CUPY).is_none() {
            self.settings.push((CUPY, "1".to_owned()));
        }
    }

    /// Runs it to its end. `aloud` says that it has our input and output; otherwise its standard output is dropped, and it has our
    /// input only where that is a file, which every run has from its start.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(&self, what: &str, folder: &Path, aloud: bool) -> Result<ExitStatus> {
        let mut driver = OsString::from(format!("{what}:"));
        driver.push(folder);
        let mut preload = self.library.clone().into_os_string();
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .env("LD_PRELOAD", preload)
            .env("HEADSTART_DRIVER", driver);
        for (name, value) in &self.settings {
            command.env(name, value);
        }
        match (input(), aloud) {
            (Some(file), _) => {
                command.stdin(file);
            }
            (None, true) => {}
            (None, false) => {
                command.stdin(Stdio::null());
            }
        }
        if !aloud {
            command.stdout(Stdio::null());
        }
        explain_command(&command);
        let started = command.status();
        started.map_err(|error| {
            let shown = quoted(&self.words[0].to_string_lossy());
            Error::usage(format!("{shown} cannot be run: {error}")).accepted("a program")
        })
    }
}

/// Our input, from where it stands, if that can be read more than once: a file. A pipe has what it has once.
fn input() -> Option<File> {
    let mut own = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    if !own.metadata().ok()?.is_file() {
        return None;
    }
    let at = own.stream_position().ok()?;
    let mut again = File::open("/proc/self/fd/0").ok()?;
    again.seek(SeekFrom::Start(at)).ok()?;
    Some(again)
}

/// Where the library is: where the environment says, beside this program, or where the build put it.
///
/// # Errors
/// It is in none of these places: which they are, and how to build it.
fn library() -> Result<PathBuf> {
    if let Some(named) = env::var_os(NAMED).filter(|named| !named.is_empty()) {
        let path = PathBuf::from(named);
        // The loader says nothing of a library that is not there, and runs the program without it.
        return match path.is_file() {
            true => Ok(path),
            false => Err(Error::usage(format!(
                "{NAMED} names {}, and there is no such file",
                quoted(&path.to_string_lossy())
            ))
            .accepted(format!("the path of `{LIBRARY}`"))),
        };
    }
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let places = [".", "deps", "..", "../lib"].map(|place| beside.join(place));
    let found = places
        .iter()
        .map(|place| place.join(LIBRARY))
        .find(|path| path.is_file());
    found
        .and_then(|path| fs::canonicalize(path).ok())
        .ok_or_else(|| missing(&places))
}

/// `cargo install` installs programs and no libraries: what to do about it.
fn missing(places: &[PathBuf]) -> Error {
    let looked: Vec<String> = places
        .iter()
        .map(|place| {
            let place = fs::canonicalize(place).unwrap_or_else(|_| place.clone());
            quoted(&place.to_string_lossy())
        })
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    Error::usage(format!("`{LIBRARY}` is not there; it was looked for in {}", looked.join(", "))).accepted(format!(
        "in a checkout of Headstart `cargo build --release -p headstart-driver` writes it to target/release; without one `cargo new \
         --lib preload && cd preload && cargo add headstart-driver@{version} && cargo build --release` writes it to \
         target/release/deps; then copy it beside `headstart`, or set {NAMED} to its path"
    ))
}
