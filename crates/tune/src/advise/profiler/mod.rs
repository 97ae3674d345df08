//! Evidence from a profiler's file: Nsight Compute's CSV, VTune's CSV.
//!
//! A profiler's file has the columns that its user requested, between lines that the program printed, in the number format of
//! the user's locale. So columns are found by name, and only a time is required. Missing ones are reported, with the command
//! that collects them.

mod launch;
mod ncu;
pub(super) mod number;
pub(super) mod table;
mod vtune;

use std::path::Path;

use crate::error::{Error, Result};
use crate::evidence::{Evidence, Profile};
use crate::files::{self, FileError};
use crate::model::DeviceModel;
use crate::report::number::figures;
use crate::suggest::quoted;

/// The longest file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// How the profilers' own files become CSV files.
const EXPORT_NCU: &str = "a CSV file; a report of Nsight Compute becomes one by `ncu --import FILE.ncu-rep --csv --page details > FILE.csv`";
const EXPORT_VTUNE: &str = "a CSV file; a result of VTune becomes one by `vtune -report hotspots -r FOLDER -group-by computing-task \
                            -format csv -csv-delimiter comma > FILE.csv`";

/// Which profiler wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profiler {
    /// NVIDIA's Nsight Compute.
    NsightCompute,
    /// Intel's VTune.
    VTune,
}

/// A file's data about one launch.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// The kernel's name, as the profiler has it.
    pub kernel: String,
    /// The device, as the profiler has it.
    pub device: String,
    /// The simulated device of its kind, as `--device` spells it, where there is one.
    pub simulated: Option<String>,
    /// 32-bit registers of a work-item, where the profiler tells.
    pub registers: Option<u32>,
    /// Whether it may be of another launch than that of the kernel it is used for: nothing then compares the two.
    pub is_of_another_launch: bool,
    /// Numbers of the launch as a whole.
    pub evidence: Evidence,
    /// Where its time goes.
    pub profile: Profile,
    /// The launch's name, the missing numbers, and how to collect them.
    pub notes: Vec<String>,
}

/// What to search for in a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The launches of kernels whose names begin with this; of all, if none.
    pub kernel: Option<&'a str>,
    /// The launch of this number, counted from 0 as the profiler does.
    pub launch: Option<u64>,
    /// The device, where the user says so; else the file says it.
    pub model: Option<&'a DeviceModel>,
}

/// Reads a profiler's file.
///
/// # Errors
/// It cannot be read, has another format, or has no matching launch: where, and what would be accepted.
pub fn read(profiler: Profiler, path: &Path, wanted: &Wanted<'_>) -> Result<Profiled> {
    let place = quoted(&path.to_string_lossy());
    let exported = match path.extension().and_then(|end| end.to_str()) {
        Some("ncu-rep") => Some(EXPORT_NCU),
        _ if path.is_dir() => Some(EXPORT_VTUNE),
        _ => None,
    };
    if let Some(how) = exported {
        return Err(Error::usage("the profile is no CSV file")
            .at(&place)
            .accepted(how));
    }
    let bytes = files::bytes(path, MAX_BYTES).map_err(|error| match error {
        FileError::TooLong { .. } => Error::input("the profile is too large")
            .at(&place)
            .accepted("at most 64 MiB"),
        _ => Error::usage(format!("the profile cannot be read: {error}")).at(&place),
    })?;
    parse(profiler, &bytes, wanted).map_err(|error| error.within(&place))
}

/// Reads the bytes of a profiler's file.
///
/// # Errors
/// As for [`read`], without the file's name.
pub fn parse(profiler: Profiler, bytes: &[u8], wanted: &Wanted<'_>) -> Result<Profiled> {
    let text = decode(bytes)?;
    let profiled = match profiler {
        Profiler::NsightCompute => ncu::parse(&text, wanted)?,
        Profiler::VTune => vtune::parse(&text, wanted)?,
    };
    of_this_device(&profiled)?;
    Ok(profiled)
}

/// More of a device's bandwidth than it has, by this factor, is another device's.
const BEYOND: f64 = 1.25;

/// Refuses numbers that the device cannot have: a device that the profile is not of gets no advice.
fn of_this_device(profiled: &Profiled) -> Result<()> {
    let evidence = &profiled.evidence;
    match (
        evidence.bandwidth_used(),
        evidence.delivered(),
        evidence.bandwidth,
    ) {
        (Some(used), Some(delivered), Some(bandwidth)) if used > BEYOND => Err(Error::input(format!(
            "the profile is of another device: its memory delivers {} GB/s, and that of the model at most {}",
            figures(delivered),
            figures(bandwidth)
        ))
        .accepted("`--device` with the device that the profile was made on")),
        _ => Ok(()),
    }
}

/// A kernel's name as it is spelled in modules, where only letters, digits and underscores are allowed.
fn spelled(kernel: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    kernel.chars().map(plain).collect()
}

/// The text: UTF-8, or UTF-16 as a redirection of PowerShell leaves it.
fn decode(bytes: &[u8]) -> Result<String> {
    let wide = |from_bytes: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..]
            .chunks_exact(2)
            .map(|pair| from_bytes([pair[0], pair[1]]))
            .collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [] => Err(Error::input("the profile is empty")),
        [0xff, 0xfe, ..] => Ok(wide(u16::from_le_bytes)),
        [0xfe, 0xff, ..] => Ok(wide(u16::from_be_bytes)),
        // The program's output need not be UTF-8; the profiler's is.
        _ if bytes.contains(&0) => Err(Error::input("the profile is not text").accepted(EXPORT_NCU)),
        _ => Ok(String::from_utf8_lossy(bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests;
