//! Where results go: standard output, which may be closed at any time, and files, which are whole or not there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use headstart::report::number::grouped;
use headstart::suggest::quoted;
use headstart::{Error, Result};

use crate::terminal;

/// Writes a text for people to standard output: lines that are too long for the terminal are broken, and headings are
/// coloured if that is wanted. A reader that has gone away (`| head`) is no error: the rest is dropped, and the command goes
/// on to write its files.
///
/// # Errors
/// Standard output cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> Result<()> {
    print_as_it_is(&terminal::coloured(&terminal::output().fitted(text)))
}

/// Writes code or data to standard output.
///
/// # Errors
/// As for [`print()`].
pub fn print_as_it_is(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes a sentence on how it goes to standard error, unless only errors are wanted there. Standard error may be closed.
pub fn tell(sentence: &str) {
    if !terminal::is_quiet() {
        // Names come from files.
        let sentence = sentence.replace(char::is_control, "\u{fffd}");
        let _ = writeln!(io::stderr(), "{}", terminal::errors().fitted(&sentence));
    }
}

/// Writes another program's lines to standard error as they came: an error that follows refers to them.
pub fn tell_lines(text: &str) {
    let is_foreign = |c: char| c.is_control() && c != '\n' && c != '\t';
    let _ = write!(io::stderr(), "{}", text.replace(is_foreign, "\u{fffd}"));
}

/// A number of things: `1 case`, `2,048 cases`.
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count as u64))
}

/// Writes a sentence that only `--verbose` asks for to standard error.
pub fn explain(sentence: impl FnOnce() -> String) {
    if terminal::is_verbose() {
        tell(&sentence());
    }
}

/// With `--verbose`, prints the shell command line of a program that is started.
pub fn explain_command(command: &Command) {
    explain(|| format!("runs: {}", command_line(command)));
}

/// A command as a shell takes it: the environment that differs, the program, its arguments.
fn command_line(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| {
        let (name, value) = (name.to_string_lossy(), value?.to_string_lossy());
        Some(format!("{name}={}", for_shell(&value)))
    });
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| for_shell(&word.to_string_lossy()));
    set.chain(words).collect::<Vec<_>>().join(" ")
}

/// A word in single quotes where a shell would split or change it.
fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::device(format!(
            "standard output cannot be written: {error}"
        ))),
        _ => Ok(()),
    }
}

/// A value as JSON text that ends with a line break.
///
/// # Errors
/// It has no JSON form, which is a bug.
pub fn json_line(value: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Error::bug(format!("a result does not become JSON: {error}")))?;
    Ok(format!("{text}\n"))
}

/// A file to be written when the work is done, checked before the work starts.
#[derive(Debug)]
pub enum Destination {
    /// Standard output, written `-`.
    Standard,
    /// Something that is not a regular file, such as `/dev/null` or a named pipe: written in place.
    Special(PathBuf),
    /// A regular file: written beside its name, then renamed.
    File(PathBuf),
}

impl Destination {
    /// Checks the file of an option that may be left out.
    ///
    /// # Errors
    /// As for [`Destination::check`].
    pub fn asked(option: &str, path: Option<&Path>) -> Result<Option<Destination>> {
        path.map(|path| Destination::check(option, path)).transpose()
    }

    /// Checks that the file can be written, and leaves nothing behind.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(option: &str, path: &Path) -> Result<Destination> {
        if path.as_os_str() == "-" {
            return Ok(Destination::Standard);
        }
        let refused = |error: io::Error| {
            let shown = quoted(&path.to_string_lossy());
            Error::usage(format!("{option} {shown} cannot be written: {error}"))
        };
        // A link's target is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => Err(refused(io::Error::other("it is a folder"))),
            Ok(metadata) if !metadata.is_file() => Ok(Destination::Special(path)),
            Ok(_) => {
                // Opened without truncation: the file keeps its contents until there are new ones.
                OpenOptions::new().append(true).open(&path).map_err(refused)?;
                beside(&path).map_err(refused)?;
                Ok(Destination::File(path))
            }
            Err(_) => {
                beside(&path).map_err(refused)?;
                Ok(Destination::File(path))
            }
        }
    }

    /// Writes all of it, or nothing.
    ///
    /// # Errors
    /// It cannot be written after all.
    pub fn write(&self, text: &str) -> Result<()> {
        self.write_bytes(text.as_bytes())
    }

    /// Writes all of it, or nothing.
    ///
    /// # Errors
    /// It cannot be written after all.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        let refused = |path: &Path, error: io::Error| {
            Error::device(format!(
                "{} cannot be written: {error}",
                quoted(&path.to_string_lossy())
            ))
        };
        match self {
            Destination::Standard => print_bytes(bytes),
            Destination::Special(path) => {
                let written = OpenOptions::new()
                    .write(true)
                    .open(path)
                    .and_then(|mut file| file.write_all(bytes));
                written.map_err(|error| refused(path, error))
            }
            Destination::File(path) => {
                let written = beside(path).and_then(|mut temporary| {
                    temporary.write_all(bytes)?;
                    temporary.as_file().sync_data()?;
                    temporary.persist(path).map_err(|error| error.error)
                });
                written.map(|_: File| ()).map_err(|error| refused(path, error))
            }
        }
    }

    /// Checks those that options name, each by its option, and that no two are the same.
    ///
    /// # Errors
    /// One cannot be written, or would overwrite another.
    pub fn apart<const N: usize>(named: [(&str, &Option<PathBuf>); N]) -> Result<[Option<Destination>; N]> {
        let mut found: [Option<Destination>; N] = [const { None }; N];
        for (position, (option, path)) in named.iter().enumerate() {
            let Some(path) = path else { continue };
            let one = Destination::check(option, path)?;
            let same = found.iter().flatten().position(|other| one.is_same(other));
            if let Some(same) = same {
                // Destinations that are not there do not count.
                let given = named.iter().filter(|(_, path)| path.is_some()).nth(same);
                let other = given.map_or("", |(other, _)| other);
                return Err(
                    Error::usage(format!("`{option}` and `{other}` name the same file"))
                        .accepted("two files"),
                );
            }
            found[position] = Some(one);
        }
        Ok(found)
    }

    /// That it was written, and with what; nothing of standard output.
    pub fn said(&self, what: &str) -> Option<String> {
        match self {
            Destination::Standard => None,
            Destination::Special(path) | Destination::File(path) => {
                Some(format!("Written to {}: {what}.", quoted(&path.to_string_lossy())))
            }
        }
    }

    /// Whether this file would be replaced.
    pub fn replaces(&self, file: &Path) -> bool {
        match self {
            Destination::File(path) => fs::canonicalize(file).is_ok_and(|file| file == *path),
            Destination::Standard | Destination::Special(_) => false,
        }
    }

    /// Whether two destinations are the same, so that one would overwrite the other.
    fn is_same(&self, other: &Destination) -> bool {
        match (self, other) {
            (Destination::Standard, Destination::Standard) => true,
            (Destination::File(one), Destination::File(other)) => one == other,
            _ => false,
        }
    }
}

/// A temporary file in the same folder, so that renaming it is atomic. It is removed when dropped.
fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.file_name().is_none() {
        return Err(io::Error::other("it is not a file name"));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".headstart-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // With the user's mask, as for any new file; a replaced file keeps its own.
        let mode = fs::metadata(path).map_or(0o666, |metadata| metadata.permissions().mode() & 0o777);
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    builder.tempfile_in(folder).map_err(|error| {
        // The temporary name means nothing to the user.
        io::Error::new(
            error.kind(),
            match error.kind() {
                io::ErrorKind::NotFound => {
                    format!("there is no folder {}", quoted(&folder.to_string_lossy()))
                }
                kind => kind.to_string(),
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let mut command = Command::new("/opt/my tools/nvcc");
        command.args(["-O3", "it's.cu", ""]).env("MODE", "a b");
        let line = command_line(&command);
        assert_eq!(line, "MODE='a b' '/opt/my tools/nvcc' -O3 'it'\\''s.cu' ''");
        let told = Command::new("sh")
            .args(["-c", &format!("printf '%s|' {line}")])
            .output();
        let told = String::from_utf8(told.expect("a shell").stdout).expect("text");
        assert_eq!(told, "MODE=a b|/opt/my tools/nvcc|-O3|it's.cu||");
    }

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        let destination = Destination::check("--json", &path).expect("writable");
        assert!(names(folder.path()).is_empty(), "checking leaves nothing behind");
        destination.write("one").expect("written");
        destination.write("two").expect("written again");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "two");
        assert_eq!(names(folder.path()), ["report.json"]);
    }

    #[test]
    fn what_cannot_be_written_is_said_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |path: &Path| {
            Destination::check("--html", path)
                .expect_err("refused")
                .to_string()
        };
        assert!(check(folder.path()).contains("it is a folder"));
        assert!(check(&folder.path().join("no/such.html")).contains("there is no folder"));
        assert!(check(Path::new("")).contains("--html"));
        assert!(check(Path::new("..")).contains("--html"));
    }

    #[test]
    fn special_files_are_written_in_place() {
        let destination = Destination::check("--json", Path::new("/dev/null")).expect("writable");
        destination.write("gone").expect("written");
        assert!(matches!(destination, Destination::Special(_)));
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
    }

    #[test]
    fn a_link_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        Destination::check("--json", &link)
            .expect("writable")
            .write("new")
            .expect("written");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&target).expect("there"), "new");
    }
}
