//! `headstart new`: a program with a kernel, a launch and a tune, to start from.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use headstart::suggest::quoted;
use headstart::{Error, Result};

use crate::arguments::New;
use headstart_cli::output::print;

/// Cargo's own limit is the file system's; registries take no longer names.
const LONGEST_NAME: usize = 64;

/// Names that a program cannot have: Rust's keywords, folders and crates of Cargo's and Rust's, and the crate that the program
/// depends on.
const TAKEN: &[&str] = &[
    "Self",
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "headstart",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// The files of a program: paths and contents.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../templates/new/Cargo.toml.in")),
    ("README.md", include_str!("../../templates/new/README.md.in")),
    (".gitignore", include_str!("../../templates/new/gitignore.in")),
    ("src/main.rs", include_str!("../../templates/new/main.rs.in")),
];

/// An addition to the manifest inside of a workspace.
const WORKSPACE: &str = include_str!("../../templates/new/workspace.toml.in");

/// Runs the command.
pub fn run(options: &New) -> Result<()> {
    let name = name_of(&options.folder)?;
    let dependency = match &options.path {
        Some(path) => format!("{{ path = {} }}", toml_string(&checkout(path)?)?),
        None => format!("\"{}\"", env!("CARGO_PKG_VERSION")),
    };
    let files = files(name, &dependency, is_in_workspace(&options.folder));
    let mut written = Written::default();
    written
        .folder(&options.folder, &files)
        .inspect_err(|_| written.remove())?;
    let main = options.folder.join("src/main.rs");
    print(&format!(
        "{} has a kernel, a launch and a search for the best plan. In this folder:\n\n  \
         cargo run     runs the kernel on a simulated GPU, then tunes it\n  \
         cargo test    compares its results with the CPU's\n",
        quoted(&main.to_string_lossy())
    ))
}

/// The name of the program in a folder: the folder's.
fn name_of(folder: &Path) -> Result<&str> {
    let written = folder.to_string_lossy();
    let accepted = |name: &str| {
        format!(
            "a letter, then letters, digits, `-` and `_`, at most {LONGEST_NAME} in all, such as `{}`",
            similar(name)
        )
    };
    let Some(name) = folder.file_name() else {
        return Err(
            Error::usage(format!("{} does not end in a name", quoted(&written))).accepted(accepted("")),
        );
    };
    let refused = |what: String| Error::usage(what).accepted(accepted(&name.to_string_lossy()));
    let shown = quoted(&name.to_string_lossy());
    let Some(name) = name.to_str() else {
        return Err(refused(format!("{shown} is not a crate name")));
    };
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || !name.chars().all(is_word)
        || name.len() > LONGEST_NAME
    {
        return Err(refused(format!("{shown} is not a crate name")));
    }
    if TAKEN.contains(&name) {
        return Err(refused(format!(
            "{shown} cannot be the name of a program: Rust or Cargo has another use for it"
        )));
    }
    Ok(name)
}

/// A name that would be accepted, as near as possible to one that is not.
fn similar(name: &str) -> String {
    let mut similar = String::new();
    for c in name
        .trim_start_matches(|c: char| !c.is_ascii_alphabetic())
        .chars()
    {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => similar.push(c.to_ascii_lowercase()),
            _ if similar.ends_with('-') => {}
            _ => similar.push('-'),
        }
    }
    similar.truncate(LONGEST_NAME - "-kernel".len());
    let similar = similar.trim_end_matches('-');
    match similar {
        "" => "my-kernel".to_owned(),
        taken if TAKEN.contains(&taken) => format!("{taken}-kernel"),
        free => free.to_owned(),
    }
}

/// The library's folder in a checkout, absolute: the one that is named, or the one inside of it.
fn checkout(path: &Path) -> Result<PathBuf> {
    let refused = |why: String| {
        let shown = quoted(&path.to_string_lossy());
        Error::usage(format!("--path {shown}: {why}"))
            .accepted("a checkout of Headstart, or the folder `headstart` in it")
    };
    let found = fs::canonicalize(path).map_err(|error| refused(error.to_string()))?;
    let candidates = [found.clone(), found.join("headstart")];
    let is_library =
        |folder: &&PathBuf| package_name(&folder.join("Cargo.toml")).as_deref() == Some("headstart");
    let library = candidates.iter().find(is_library);
    library
        .cloned()
        .ok_or_else(|| refused("it has no package `headstart`".to_owned()))
}

/// The name of the package of a manifest, if it can be read and has one.
fn package_name(manifest: &Path) -> Option<String> {
    let table: toml::Table = fs::read_to_string(manifest).ok()?.parse().ok()?;
    Some(table.get("package")?.get("name")?.as_str()?.to_owned())
}

/// A path as TOML spells it.
fn toml_string(path: &Path) -> Result<String> {
    let text = path.to_str().ok_or_else(|| {
        let shown = quoted(&path.to_string_lossy());
        Error::usage(format!("--path: {shown} cannot be written to Cargo.toml")).accepted("a path in Unicode")
    })?;
    Ok(toml::Value::String(text.to_owned()).to_string())
}

/// Whether a folder is inside of a workspace: Cargo would then refuse a program that is no member.
fn is_in_workspace(folder: &Path) -> bool {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let absolute = absolute.parent().and_then(|parent| fs::canonicalize(parent).ok());
    absolute.is_some_and(|parent| {
        parent.ancestors().any(|folder| {
            let manifest = fs::read_to_string(folder.join("Cargo.toml"));
            let table = manifest.ok().and_then(|text| text.parse::<toml::Table>().ok());
            table.is_some_and(|table| table.contains_key("workspace"))
        })
    })
}

/// The files of a program, filled in.
fn files(name: &str, dependency: &str, is_in_workspace: bool) -> Vec<(&'static str, String)> {
    let filled = |path: &str, text: &str| {
        let text = text
            .replace("{name}", name)
            .replace("{rust_version}", env!("CARGO_PKG_RUST_VERSION"))
            .replace("{dependency}", dependency);
        match path {
            "Cargo.toml" if is_in_workspace => text + WORKSPACE,
            _ => text,
        }
    };
    let filled = FILES.iter().map(|&(path, text)| {
        // The placeholders are the manifest's and the description's; in a program braces are Rust's.
        let is_program = path.ends_with(".rs");
        (
            path,
            if is_program {
                text.to_owned()
            } else {
                filled(path, text)
            },
        )
    });
    filled.collect()
}

/// The files written so far, to be removed if the rest cannot be written.
#[derive(Default)]
struct Written {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Written {
    /// Writes the files into a folder, which is new or empty.
    fn folder(&mut self, folder: &Path, files: &[(&str, String)]) -> Result<()> {
        let shown = quoted(&folder.to_string_lossy());
        let occupied = |what: &str| {
            Err(Error::usage(format!("{shown} {what}")).accepted("a new name, or an empty folder"))
        };
        match fs::symlink_metadata(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ if !folder.is_dir() => return occupied("exists and is not a folder"),
            _ => {
                let mut entries = fs::read_dir(folder).map_err(|error| unreadable(&shown, &error))?;
                if entries.next().is_some() {
                    return occupied("exists and is not empty");
                }
            }
        }
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            let parent = quoted(&parent.to_string_lossy());
            return Err(Error::usage(format!("there is no folder {parent}"))
                .accepted("a name, or a path whose parent folder exists"));
        }
        self.new_folder(folder)
            .map_err(|error| unwritable(&shown, &error))?;
        for (path, text) in files {
            let path = folder.join(path);
            let written = match path.parent() {
                Some(parent) => self.new_folder(parent),
                None => Ok(()),
            };
            let written = written.and_then(|()| self.new_file(&path, text));
            written.map_err(|error| unwritable(&quoted(&path.to_string_lossy()), &error))?;
        }
        Ok(())
    }

    fn new_folder(&mut self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        fs::create_dir(path)?;
        self.folders.push(path.to_owned());
        Ok(())
    }

    /// A new file; one that is there in the meantime is not ours.
    fn new_file(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = fs::File::create_new(path)?;
        self.files.push(path.to_owned());
        file.write_all(text.as_bytes())
    }

    /// Removes it again. Files that cannot be removed stay; the error that led here is the one reported.
    fn remove(&self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn unreadable(shown: &str, error: &io::Error) -> Error {
    Error::device(format!("{shown} cannot be read: {error}"))
}

fn unwritable(shown: &str, error: &io::Error) -> Error {
    Error::device(format!("{shown} cannot be written: {error}"))
        .accepted("a folder where you may write, with space left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggested_name_is_accepted() {
        for name in [
            "",
            "-",
            "9lives",
            "My Kernel!",
            "fn",
            "test",
            "headstart",
            "über",
            "a--b",
            &"x".repeat(99),
        ] {
            assert!(name_of(Path::new(name)).is_err() || name == "a--b", "{name}");
            let similar = similar(name);
            assert_eq!(
                name_of(Path::new(&similar)).expect("a name"),
                similar,
                "for {name:?}"
            );
        }
        assert_eq!(similar("My Kernel!"), "my-kernel");
        assert_eq!(similar("9lives"), "lives");
    }

    #[test]
    fn nothing_is_left_of_a_program_that_could_not_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        // The second file stands where the third needs a folder.
        let files = [
            ("a/first", "1".to_owned()),
            ("b", "2".to_owned()),
            ("b/third", "3".to_owned()),
        ];
        let mut written = Written::default();
        let error = written.folder(&program, &files).expect_err("it cannot");
        assert!(program.join("a/first").is_file());
        assert_eq!(error.exit_status(), 3, "{error}");
        written.remove();
        assert!(!program.exists());
    }

    #[test]
    fn every_placeholder_is_filled() {
        for is_in_workspace in [false, true] {
            for (path, text) in files("my-kernel", "\"0.1.0\"", is_in_workspace) {
                let is_program = path.ends_with(".rs");
                assert!(is_program || !text.contains(['{', '}']), "{path}: {text}");
                let is_manifest = path == "Cargo.toml";
                assert_eq!(
                    text.contains("\n[workspace]\n"),
                    is_manifest && is_in_workspace,
                    "{path}"
                );
                if is_manifest {
                    let table: toml::Table = text.parse().expect("TOML");
                    assert_eq!(table["dependencies"]["headstart"].as_str(), Some("0.1.0"));
                }
            }
        }
    }
}
