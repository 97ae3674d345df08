//! A captured program: its kernels, the kinds of their launches, and each one's share of the GPU's time, as `capture.toml` has
//! them.
//!
//! The file is for scripts, too: nothing has to be taken out of a printed table.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::WHOLE;
use crate::error::{Error, Result};
use crate::files;
use crate::suggest::quoted;

/// The longest file.
const MOST_BYTES: u64 = 64 << 20;
/// The format that is read and written.
const FORMAT: u32 = 2;

/// A program that was captured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapturedProgram {
    /// The format of the file.
    format: u32,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The driver's version, as that says it: 13000 for 13.0.
    pub driver: i64,
    /// The time of all kernels, in nanoseconds: of all launches, from those whose time is known.
    pub(crate) total_ns: f64,
    /// The kernels, those that take longest first.
    #[serde(default)]
    pub kernels: Vec<CapturedKernel>,
}

/// A kernel of a captured program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapturedKernel {
    /// Its name in its image.
    pub name: String,
    /// The image's hash; `-` if it is not known.
    pub image: String,
    /// Launches, without those in graphs.
    pub launches: u64,
    /// Launches into stream captures, and nodes of graphs: how often these ran is not known.
    pub in_graphs: u32,
    /// The time of all launches, from those whose time is known, in nanoseconds.
    pub total_ns: f64,
    /// Its share of the time of all kernels.
    pub share: f64,
    /// What is known of its text: `read`, or why it cannot be tuned.
    pub ptx: String,
    /// The kinds of its launches, those that take longest first.
    #[serde(default)]
    pub kinds: Vec<LaunchKind>,
}

/// Launches of a kernel that are alike: work-groups of one size, about as many of them, numbers about as large, and pointers that
/// lie alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchKind {
    /// How many.
    pub launches: u64,
    /// How many of them have a known time.
    pub timed: u64,
    /// The time of all, from those whose time is known, in nanoseconds.
    pub total_ns: f64,
    /// Their share of the time of all kernels of the program.
    pub share: f64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: u64,
    /// The launch that says most of them, counted from 0 among the kind's.
    pub typical: u64,
    /// Of their time, the share of launches that take about as long as that one.
    pub share_of_typical: f64,
    /// Work-groups of the longest.
    pub groups: [u32; 3],
    /// Work-items of a work-group.
    pub group: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The parameters: a letter for the allocation that a pointer leads to, the power of two below a number.
    pub parameters: String,
    /// Whether that one was captured, or one that was named.
    pub is_typical: bool,
    /// The folder of a captured launch of the kind, in that of the capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Why no launch of it was captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_captured: Option<String>,
}

impl CapturedProgram {
    /// A program with these kernels.
    pub fn new(
        program: Vec<String>,
        driver: i64,
        total_ns: f64,
        kernels: Vec<CapturedKernel>,
    ) -> CapturedProgram {
        CapturedProgram {
            format: FORMAT,
            program,
            driver,
            total_ns,
            kernels,
        }
    }

    /// Whether a folder has a captured program.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(WHOLE).is_file()
    }

    /// Reads the captured program of a folder.
    ///
    /// # Errors
    /// It cannot be read, or is of another format.
    pub fn read(folder: &Path) -> Result<CapturedProgram> {
        let path = folder.join(WHOLE);
        let place = quoted(&path.to_string_lossy());
        let text = files::text(&path, MOST_BYTES).map_err(|error| {
            Error::usage(format!("the captured program cannot be read: {error}"))
                .at(&place)
                .accepted("a folder that `headstart capture` has written")
        })?;
        let read: CapturedProgram = toml::from_str(&text).map_err(|error| {
            let said = error.message().lines().collect::<Vec<_>>().join("; ");
            Error::input(format!("no captured program: {said}"))
                .at(&place)
                .accepted("a file that this version of `headstart capture` has written")
        })?;
        match read.format {
            FORMAT => Ok(read),
            other => Err(Error::input(format!("a captured program of format {other}"))
                .at(&place)
                .accepted(format!("format {FORMAT}"))),
        }
    }

    /// The file's text.
    ///
    /// # Errors
    /// It has no such form, which is a bug.
    pub fn text(&self) -> Result<String> {
        let text = toml::to_string(self)
            .map_err(|error| Error::bug(format!("a captured program has no text: {error}")))?;
        Ok(format!(
            "# A program's launches, from `headstart capture`.\n{text}"
        ))
    }

    /// The kind of launches that a folder has one of, and its kernel.
    pub fn kind_in(&self, folder: &str) -> Option<(&CapturedKernel, &LaunchKind)> {
        self.kinds()
            .find(|(_, kind)| kind.folder.as_deref() == Some(folder))
    }

    /// All kinds of launches, each with its kernel.
    pub fn kinds(&self) -> impl Iterator<Item = (&CapturedKernel, &LaunchKind)> {
        self.kernels
            .iter()
            .flat_map(move |kernel| kernel.kinds.iter().map(move |kind| (kernel, kind)))
    }
}

impl LaunchKind {
    /// Mean time of a launch, in nanoseconds; nothing if no time is known.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.timed > 0 && self.launches > 0).then(|| self.total_ns / self.launches as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let kind = LaunchKind {
            launches: 3,
            timed: 2,
            total_ns: 3000.5,
            share: 0.75,
            longest_ns: 1700,
            typical: 1,
            share_of_typical: 0.5,
            groups: [8, 1, 1],
            group: [128, 1, 1],
            shared_bytes: 0,
            parameters: "a b 2^9".to_owned(),
            is_typical: true,
            folder: Some("k".to_owned()),
            not_captured: None,
        };
        let kernel = CapturedKernel {
            name: "k \"\n".to_owned(),
            image: "ab".to_owned(),
            launches: 3,
            in_graphs: 0,
            total_ns: 3000.5,
            share: 1.0,
            ptx: "read".to_owned(),
            kinds: vec![kind.clone()],
        };
        let program = CapturedProgram::new(vec!["./p".to_owned()], 13000, 3000.5, vec![kernel]);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(WHOLE);
        std::fs::write(&path, program.text().expect("a text")).expect("a file");
        let read = CapturedProgram::read(folder.path()).expect("it is read");
        assert_eq!(read, program);
        assert_eq!(read.kind_in("k").map(|(_, kind)| kind), Some(&kind));
        assert_eq!(kind.mean_ns(), Some(3000.5 / 3.0));
        assert_eq!(read.kind_in("other"), None);
        std::fs::write(&path, "format = 1\nprogram = []\ndriver = 0\ntotal_ns = 0.0\n").expect("a file");
        let error = CapturedProgram::read(folder.path()).expect_err("an older one");
        assert!(error.to_string().contains("format 1"), "{error}");
    }
}
