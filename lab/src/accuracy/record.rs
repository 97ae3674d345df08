//! The record: for each case the GPU's measurements and the simulator's predictions, in one file that is written after each
//! case, so that an interrupted run keeps its results, and the two sides can be made on two machines.

use std::path::{Path, PathBuf};

use headstart::advise::Bounds;
use headstart::files::{self, FileError};
use headstart::suggest::quoted;
use headstart::{Error, Result};
use serde::{Deserialize, Serialize};

use headstart_cli::output::Destination;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The origin of the two sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_by: Option<Origin>,
    /// The same for the simulated side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_by: Option<Origin>,
    /// The cases.
    pub cases: Vec<CaseRecord>,
}

/// Where numbers come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The command line.
    pub command: String,
    /// The day, in UTC.
    pub date: String,
    /// The GPU's name, or the model's.
    pub device: String,
    /// The driver's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Our version.
    pub version: String,
}

/// A case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// Its name, which says kernel, settings and trace.
    pub case: String,
    /// What a GPU took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Side>,
    /// The simulator's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Side>,
}

/// One side of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The plain kernel's time, in nanoseconds.
    pub plain_ns: f64,
    /// Counted launches of each plan; 0 where times are simulated.
    #[serde(default)]
    pub rounds: u32,
    /// How long this took to find out, in seconds.
    pub wall_s: f64,
    /// How fast the kernel can get at most, of a simulated side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// The plans that have a time.
    pub plans: Vec<Entry>,
    /// Those that have none, each with its reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<(String, String)>,
    /// Plans that are not measured yet, because the time was over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// The error, if there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A plan's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The plan, as it is written today.
    #[serde(deserialize_with = "canonical")]
    pub plan: String,
    /// Its time, in nanoseconds; of measured ones the median.
    pub ns: f64,
    /// How many times faster than the plain kernel; of measured ones the median over rounds.
    pub speedup: f64,
    /// The least and the greatest speedup of a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, f64)>,
    /// Registers of a work-item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
}

impl Side {
    /// Whether every plan has a time, or a reason why it has none.
    pub fn is_whole(&self) -> bool {
        self.left.is_empty()
    }
}

/// A plan's text in today's spelling: older records name each line of a load apart.
fn canonical<'de, D: serde::Deserializer<'de>>(text: D) -> std::result::Result<String, D::Error> {
    let text = String::deserialize(text)?;
    let plan: headstart::prefetch::Plan = text.parse().map_err(serde::de::Error::custom)?;
    Ok(plan.to_string())
}

impl Record {
    /// Reads a file; what is not there yet is empty.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<Record> {
        let refused = |what: String| Error::input(what).at(quoted(&path.to_string_lossy()));
        let text = match files::text(path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.is_not_found() => return Ok(Record::default()),
            Err(FileError::TooLong { .. }) => {
                return Err(refused("it is too large".into()).accepted("at most 64 MiB"));
            }
            Err(error) => return Err(refused(format!("it cannot be read: {error}"))),
        };
        if text.trim().is_empty() {
            return Ok(Record::default());
        }
        serde_json::from_str(&text).map_err(|error| {
            refused(format!("not a record of accuracy: {error}"))
                .accepted("a file that `headstart-lab bench --suite accuracy --json FILE` writes")
        })
    }

    /// Adds the entries of other files; if both have a side, the other's counts.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn add(&mut self, paths: &[PathBuf]) -> Result<()> {
        for path in paths {
            let other = Record::open(path)?;
            for case in other.cases {
                let own = self.case(&case.case);
                own.measured = case.measured.or_else(|| own.measured.take());
                own.simulated = case.simulated.or_else(|| own.simulated.take());
            }
            self.measured_by = other.measured_by.or_else(|| self.measured_by.take());
            self.simulated_by = other.simulated_by.or_else(|| self.simulated_by.take());
        }
        Ok(())
    }

    /// The case of this name, which is added where it is new.
    pub fn case(&mut self, name: &str) -> &mut CaseRecord {
        let at = match self.cases.iter().position(|case| case.case == name) {
            Some(at) => at,
            None => {
                self.cases.push(CaseRecord {
                    case: name.to_owned(),
                    measured: None,
                    simulated: None,
                });
                self.cases.len() - 1
            }
        };
        &mut self.cases[at]
    }

    /// Writes it, a plan a line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, destination: &Destination) -> Result<()> {
        let bug = |error: serde_json::Error| Error::bug(format!("a record does not become JSON: {error}"));
        let text = serde_json::to_string(self).map_err(bug)?;
        let text = text
            .replace("{\"plan\":", "\n{\"plan\":")
            .replace("{\"case\":", "\n{\"case\":");
        destination.write(&format!("{text}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(ns: f64) -> Side {
        Side {
            plain_ns: ns,
            plans: vec![Entry {
                plan: "unroll:4".into(),
                ns: ns / 2.0,
                speedup: 2.0,
                between: Some((1.9, 2.1)),
                registers: Some(40),
            }],
            ..Side::default()
        }
    }

    #[test]
    fn two_sides_of_two_files_make_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        let mut measured = Record::default();
        measured.case("gather").measured = Some(side(1000.0));
        measured.case("article").measured = Some(side(2000.0));
        let mut simulated = Record::default();
        simulated.case("gather").simulated = Some(side(900.0));
        for (record, path) in [measured, simulated].iter().zip(&paths) {
            record
                .write(&Destination::check("--json", path).expect("a file"))
                .expect("written");
        }
        let mut both = Record::default();
        both.add(&paths).expect("read");
        assert_eq!(both.cases.len(), 2);
        assert_eq!(both.case("gather").measured, Some(side(1000.0)));
        assert_eq!(both.case("gather").simulated, Some(side(900.0)));
        assert_eq!(both.case("article").simulated, None);
        assert_eq!(
            Record::open(&folder.path().join("none")).expect("empty"),
            Record::default()
        );
        std::fs::write(&paths[0], "[1]").expect("written");
        assert!(Record::open(&paths[0]).is_err());
    }
}
