//! The measurements: rows that are stored as JSON, and read again.

use std::collections::BTreeMap;
use std::path::Path;

use headstart::files::{self, FileError};
use headstart::suggest::quoted;
use headstart::{Error, Result};
use serde::{Deserialize, Serialize};

use super::points::Point;

/// A microbenchmark's number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// The result, in the microbenchmark's unit.
    pub number: f64,
    /// How far it might be off, as a share of it, by the quartiles of the launches' times.
    pub spread: f64,
}

/// One microbenchmark with settings, and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The microbenchmark: `micro/latency`.
    pub kernel: String,
    /// Its settings, set apart by spaces.
    pub settings: String,
    /// The unit of the number.
    pub unit: String,
    /// The result; none if the device cannot run it.
    pub measured: Option<Number>,
    /// The model's result that it was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<f64>,
    /// Why it was not run.
    pub failure: Option<String>,
}

/// A device's measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// The command that made them.
    pub command: String,
    /// The device, as people call it.
    pub device: String,
    /// The driver's version, or the model.
    pub driver: String,
    /// When, in UTC.
    pub date: String,
    /// The maker of the device, `nvidia` or `intel`; empty for others, and in files of earlier versions, which are NVIDIA's.
    #[serde(default)]
    pub maker: Option<String>,
    /// The version that measured; none in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What else the device and its driver say of themselves, by name: nothing in it distinguishes two cards of one kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Cores of the device.
    pub cores: u32,
    /// The clock that cycles are counted by, in MHz.
    pub clock_mhz: f64,
    /// Bytes of the device's L2.
    pub l2_bytes: u64,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// How long measuring took, in seconds.
    pub seconds: f64,
    /// The model that they were compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// Files of measurements are at most this long.
const LONGEST: u64 = 16 << 20;

impl Measurements {
    /// Reads an earlier run's output.
    ///
    /// # Errors
    /// The file cannot be read, or is something else.
    pub fn read(path: &Path) -> Result<Measurements> {
        let place = quoted(&path.to_string_lossy());
        let wrong =
            |what: String| Error::usage(format!("these measurements cannot be read: {what}")).at(&place);
        let text = files::text(path, LONGEST).map_err(|error| match error {
            FileError::TooLong { .. } => wrong(error.to_string()).accepted("at most 16 MiB"),
            _ => wrong(error.to_string()),
        })?;
        serde_json::from_str(&text).map_err(|error| {
            wrong(error.to_string()).accepted("a file that `headstart calibrate --json FILE` wrote")
        })
    }

    /// Takes the rows of an earlier run on the same device.
    ///
    /// # Errors
    /// They are of another device, driver or version.
    pub fn go_on(&mut self, earlier: Measurements) -> Result<()> {
        let apart = [
            ("device", Some(&self.device), Some(&earlier.device)),
            ("driver", Some(&self.driver), Some(&earlier.driver)),
            (
                "version of Headstart",
                self.version.as_ref(),
                earlier.version.as_ref(),
            ),
        ];
        let facts = self.facts.iter();
        let facts = facts.map(|(name, own)| (name.as_str(), Some(own), earlier.facts.get(name)));
        for (name, own, other) in apart.into_iter().chain(facts) {
            if own != other {
                let said =
                    |text: Option<&String>| text.map_or("not in the file".to_owned(), |text| quoted(text));
                return Err(Error::usage(format!(
                    "the measurements are of another device, driver or version: their {name} is {}, and here it is {}",
                    said(other),
                    said(own)
                ))
                .accepted("a file from here, or no `--from`"));
            }
        }
        (self.rows, self.seconds) = (earlier.rows, earlier.seconds);
        Ok(())
    }

    /// The row of a point.
    pub fn row(&mut self, point: &Point) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.is_of(point))
    }

    /// Whether a point was run.
    pub fn has(&self, point: &Point) -> bool {
        self.rows.iter().any(|row| row.is_of(point))
    }

    /// The measurement at a point.
    pub fn of(&self, point: &Point) -> Option<Number> {
        let row = self.rows.iter().find(|row| row.is_of(point));
        row.and_then(|row| row.measured)
            .filter(|found| found.number.is_finite() && found.number > 0.0)
    }
}

impl Row {
    fn is_of(&self, point: &Point) -> bool {
        self.kernel == point.kernel && self.settings == point.settings
    }
}
