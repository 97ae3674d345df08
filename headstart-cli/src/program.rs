//! The user's program, run with the library that is preloaded.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use headstart::suggest::quoted;
use headstart::{Error, Result};

use headstart_cli::output::explain_command;

/// The library's file.
const LIBRARY: &str = "libheadstart_driver.so";

/// Its content; none where the build made no shared library.
#[cfg(target_os = "linux")]
const CONTAINED: Option<&[u8]> = headstart_embed::shared_library!(headstart_driver);
#[cfg(not(target_os = "linux"))]
const CONTAINED: Option<&[u8]> = None;

/// The variable that says where the library is.
const NAMED: &str = "HEADSTART_DRIVER_LIBRARY";

/// Where a program's standard output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// To ours; it has our input, too.
    Aloud,
    /// Nowhere.
    Dropped,
    /// Here.
    Kept,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// Its standard output, if that was kept.
    pub output: Vec<u8>,
    /// How long it ran.
    pub took: Duration,
}

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
            return Err(Error::usage("no program is given").accepted("`-- PROGRAM ARGUMENTS …` at the end"));
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

    /// Makes libraries recompile kernels that they cache on disk as machine code without the text: CuPy's cache.
    pub fn compile_again(&mut self) {
        const CUPY: &str = "CUPY_CACHE_IN_MEMORY";
        if env::var_os(CUPY).is_none() {
            self.settings.push((CUPY, "1".to_owned()));
        }
    }

    /// Runs it to its end. Unless it is heard aloud, it has our input only where that is a file, which every run has from its start.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(&self, what: &str, folder: &Path, heard: Heard) -> Result<Ended> {
        self.start(self.observed(what, folder), heard)
    }

    /// Runs it to its end without the library.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run_alone(&self, heard: Heard) -> Result<Ended> {
        self.start(self.command(), heard)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    /// The program with the library, which reads and writes in this folder.
    fn observed(&self, what: &str, folder: &Path) -> Command {
        let mut driver = OsString::from(format!("{what}:"));
        driver.push(folder);
        let mut preload = self.library.clone().into_os_string();
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let mut command = self.command();
        command.env("LD_PRELOAD", preload).env("HEADSTART_DRIVER", driver);
        for (name, value) in &self.settings {
            command.env(name, value);
        }
        command
    }

    fn start(&self, mut command: Command, heard: Heard) -> Result<Ended> {
        match (input(), heard) {
            (Some(file), _) => {
                command.stdin(file);
            }
            (None, Heard::Aloud) => {
                command.stdin(Stdio::inherit());
            }
            (None, Heard::Dropped | Heard::Kept) => {
                command.stdin(Stdio::null());
            }
        }
        command.stdout(match heard {
            Heard::Aloud => Stdio::inherit(),
            Heard::Dropped => Stdio::null(),
            Heard::Kept => Stdio::piped(),
        });
        explain_command(&command);
        let begun = Instant::now();
        let ended = command.stderr(Stdio::inherit()).output();
        let took = begun.elapsed();
        let ended = ended.map_err(|error| {
            let shown = quoted(&self.words[0].to_string_lossy());
            Error::usage(format!("{shown} cannot be run: {error}")).accepted("a program")
        })?;
        Ok(Ended {
            status: ended.status,
            output: ended.stdout,
            took,
        })
    }
}

/// Our standard input from its current position, if it can be read more than once: a file. A pipe can be read only once.
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

/// The path of the library: from the environment, beside this program or in the build folder, or else a copy of the one
/// contained in this program.
///
/// # Errors
/// It is in none of these places, or there is nowhere to write the copy.
fn library() -> Result<PathBuf> {
    if let Some(named) = env::var_os(NAMED).filter(|named| !named.is_empty()) {
        let path = PathBuf::from(named);
        // The loader says nothing of a library that is not there, and runs the program without it.
        if !path.is_file() {
            return Err(Error::usage(format!(
                "{NAMED} names {}, and there is no such file",
                quoted(&path.to_string_lossy())
            ))
            .accepted(format!("the path of `{LIBRARY}`")));
        }
        return loadable(path);
    }
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let places = [".", "deps", "..", "../lib"].map(|place| beside.join(place));
    let found = places
        .iter()
        .map(|place| place.join(LIBRARY))
        .find(|path| path.is_file());
    if let Some(path) = found.and_then(|path| fs::canonicalize(path).ok()) {
        return loadable(path);
    }
    match CONTAINED {
        Some(bytes) => copied(bytes, &caches()?),
        None => Err(missing(&places)),
    }
}

/// The path, if the loader can take it from `LD_PRELOAD`, where spaces and colons separate paths.
fn loadable(path: PathBuf) -> Result<PathBuf> {
    let shown = path.to_string_lossy();
    if shown.contains([' ', ':', '\t', '\n']) {
        return Err(Error::usage(format!(
            "the loader takes no path with a space or a colon, such as {}",
            quoted(&shown)
        ))
        .accepted(format!("a copy of `{LIBRARY}` elsewhere, which {NAMED} names")));
    }
    Ok(path)
}

/// The user's folder for caches.
fn caches() -> Result<PathBuf> {
    let of = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    of("XDG_CACHE_HOME")
        .or_else(|| of("HOME").map(|home| home.join(".cache")))
        .ok_or_else(|| {
            Error::usage(format!("there is no folder to write `{LIBRARY}` to"))
                .accepted("HOME or XDG_CACHE_HOME in the environment")
        })
}

/// The library that this program contains, as a file in the folder for caches.
fn copied(bytes: &[u8], caches: &Path) -> Result<PathBuf> {
    let folder = caches.join("headstart");
    let path = loadable(folder.join(format!("{}-{LIBRARY}", env!("CARGO_PKG_VERSION"))))?;
    // Another build of the same version may have written it.
    if fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(path);
    }
    let written = fs::create_dir_all(&folder).and_then(|()| {
        // Programs that have the old file open keep it.
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(bytes)?;
        file.persist(&path)?;
        Ok(())
    });
    written.map_err(|error| {
        Error::device(format!(
            "cannot write {}: {error}",
            quoted(&path.to_string_lossy())
        ))
        .accepted("a folder for caches (XDG_CACHE_HOME) that can be written")
    })?;
    Ok(path)
}

/// A build without the library: how to get it.
fn missing(places: &[PathBuf]) -> Error {
    let looked: Vec<String> = places
        .iter()
        .map(|place| {
            let place = fs::canonicalize(place).unwrap_or_else(|_| place.clone());
            quoted(&place.to_string_lossy())
        })
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    Error::usage(format!(
        "this build of `headstart` does not contain `{LIBRARY}`, and the file is not in {}",
        looked.join(", ")
    ))
    .accepted(format!(
        "in a checkout of Headstart `cargo build --release -p headstart-driver` writes it to target/release; without one `cargo new \
         --lib preload && cd preload && cargo add headstart-driver@{version} && cargo build --release` writes it to \
         target/release/deps; then copy it beside `headstart`, or set {NAMED} to its path"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_written_once_and_replaced_by_another_build() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = copied(b"one", folder.path()).expect("written");
        assert_eq!(fs::read(&first).expect("there"), b"one");
        let when = |path: &Path| {
            fs::metadata(path)
                .and_then(|data| data.modified())
                .expect("a time")
        };
        let written = when(&first);
        assert_eq!(copied(b"one", folder.path()).expect("there"), first);
        assert_eq!(when(&first), written);
        assert_eq!(copied(b"two", folder.path()).expect("written"), first);
        assert_eq!(fs::read(&first).expect("there"), b"two");
        let spaced = folder.path().join("a b");
        let refused = copied(b"one", &spaced)
            .expect_err("the loader cannot take it")
            .to_string();
        assert!(refused.contains("no path with a space"), "{refused}");
        assert!(!spaced.exists());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_build_contains_the_library() {
        let bytes = CONTAINED.expect("it was built before the command");
        assert!(bytes.starts_with(b"\x7fELF"));
        let symbol = b"cuLaunchKernelEx";
        assert!(bytes.windows(symbol.len()).any(|window| window == symbol));
    }
}
