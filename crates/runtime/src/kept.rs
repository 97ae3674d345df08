//! Launches of a program, kept in a folder: each kernel, with the geometry and the arguments that it was launched with.
//!
//! `headstart tune --bin PROGRAM` runs a program with `HEADSTART_LAUNCHES=FOLDER` in its environment, and then finds there, for
//! each launched kernel, `NAME.hsir`, a launch file `NAME.toml`, and the buffers as files. Of several launches of a kernel the
//! first one with the most work-items is kept. `NAME.refused` has the reason if a launch cannot be written as a launch file.
//! Without the variable nothing of this happens. Meanwhile `NAME::tuned` gives the plain kernel, without a search: the kept
//! kernel has to be the one that is tuned later.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{env, fs};

use crate::device::{Argument, Command, Event, Launch, Program, Queue};
use crate::error::{Error, Fault, Result};
use crate::ir::{self, Kernel, Param, Type};
use crate::suggest::quoted;

/// The variable with the folder.
pub const VARIABLE: &str = "HEADSTART_LAUNCHES";

/// The folder, if launches are to be kept.
fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let named = || {
        env::var_os(VARIABLE)
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
    };
    FOLDER.get_or_init(named).as_deref()
}

/// Whether this program runs so that its launches are kept.
pub fn is_on() -> bool {
    folder().is_some()
}

/// Keeps a launch that is about to be submitted behind the events `after`, if launches are kept and this one is larger than the
/// kept one of its kernel.
///
/// # Errors
/// Nothing can be written to the folder: a program that is run for its launches would run in vain.
pub(super) fn keep(program: &Program, launch: &Launch, queue: &dyn Queue, after: &[Event]) -> Result<()> {
    static LARGEST: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
    let Some(folder) = folder() else { return Ok(()) };
    let kernel = program.kernel();
    let items = launch.groups.iter().chain(&launch.group);
    let items = items.fold(1, |product: u64, &size| product.saturating_mul(size.into()));
    let mut largest = LARGEST.lock().unwrap_or_else(PoisonError::into_inner);
    let known = largest.entry(kernel.name.clone()).or_insert(0);
    if items <= *known {
        return Ok(());
    }
    *known = items;
    let name = file_name(&kernel.name);
    let refused = folder.join(format!("{name}.refused"));
    match written(folder, &name, kernel, launch, queue, after) {
        Ok(()) => drop(fs::remove_file(refused)),
        // The reader of the folder reports what is no launch file: this program continues.
        Err(error) => fs::write(refused, error.to_string()).map_err(|error| {
            let shown = quoted(&folder.to_string_lossy());
            Error::usage(format!("{VARIABLE} {shown} cannot be written: {error}"))
                .accepted("a folder that is there")
        })?,
    }
    Ok(())
}

fn written(
    folder: &Path,
    name: &str,
    kernel: &Kernel,
    launch: &Launch,
    queue: &dyn Queue,
    after: &[Event],
) -> Result<()> {
    let unwritable = |error: std::io::Error| Error::device(format!("the launch cannot be written: {error}"));
    let mut kernel = kernel.clone();
    if kernel.sub_group_size.is_none() {
        kernel.sub_group_size = launch.sub_group_size;
    }
    let mut text = format!("groups = {:?}\ngroup = {:?}\n", launch.groups, launch.group);
    for (position, (param, argument)) in kernel.params.iter().zip(&launch.arguments).enumerate() {
        let _ = write!(text, "\n[parameters.{:?}]\n", param.name);
        match (argument, argument.buffer()) {
            (&Argument::Scalar(ty, bits), _) => {
                let _ = writeln!(text, "value = {}", number(ty, bits));
            }
            (_, Some((buffer, start))) => {
                let is_same = |other: &Argument| {
                    let other = other.buffer();
                    other.is_some_and(|(other, start)| start == 0 && other.is_same(buffer))
                };
                if let Some(earlier) = launch.arguments[..position].iter().position(is_same) {
                    let earlier = &kernel.params[earlier].name;
                    let _ = writeln!(text, "buffer = {earlier:?}\noffset = {start}");
                    continue;
                }
                if start > 0 {
                    return Err(inside(param));
                }
                let _ = writeln!(text, "length = {}", buffer.length());
                let read = Command::Read {
                    buffer: buffer.clone(),
                    offset: 0,
                    length: buffer.bytes(),
                };
                match queue.submit(read, after).wait() {
                    Ok(outcome) => {
                        let file = format!("{name}.{}.bin", file_name(&param.name));
                        fs::write(folder.join(&file), outcome.bytes.as_slice()).map_err(unwritable)?;
                        let _ = writeln!(text, "file = {file:?}");
                    }
                    // An output need not have been written before.
                    Err(error) if error.fault() == Fault::Input => {}
                    Err(error) => return Err(error),
                }
            }
            (_, None) => {
                return Err(Error::usage(format!(
                    "parameter `{}` gets an address outside of all buffers",
                    param.name
                ))
                .accepted("buffers and values"));
            }
        }
    }
    fs::write(folder.join(format!("{name}.hsir")), ir::print(&kernel)).map_err(unwritable)?;
    fs::write(folder.join(format!("{name}.toml")), text).map_err(unwritable)
}

fn inside(param: &Param) -> Error {
    Error::usage(format!("parameter `{}` begins inside a buffer", param.name))
        .accepted("the whole buffer as an earlier argument, or one of its own")
}

/// A scalar as a launch file writes it.
fn number(ty: Type, bits: u64) -> String {
    let float = match ty {
        Type::F64 => f64::from_bits(bits),
        Type::F32 => f32::from_bits(bits as u32).into(),
        Type::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Type::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        Type::Bool => return (bits != 0).to_string(),
        // As signed: TOML has no integers above those.
        Type::I8 => return (bits as i8).to_string(),
        Type::I16 => return (bits as i16).to_string(),
        Type::I32 => return (bits as i32).to_string(),
        _ => return (bits as i64).to_string(),
    };
    match float.is_nan() {
        true => "nan".to_owned(),
        false => format!("{float:?}"),
    }
}

/// A name that is a file's everywhere.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_written_as_launch_files_read_them() {
        for (ty, bits, expected) in [
            (Type::I32, u32::MAX.into(), "-1"),
            (Type::I64, 7, "7"),
            (Type::Bool, 1, "true"),
            (Type::F32, 0.1f32.to_bits().into(), "0.10000000149011612"),
            (Type::F64, f64::INFINITY.to_bits(), "inf"),
            (Type::F32, f32::NAN.to_bits().into(), "nan"),
            (Type::F16, 0x3c00, "1.0"),
        ] {
            assert_eq!(number(ty, bits), expected);
        }
        assert_eq!(file_name("a::b<f32>"), "a__b_f32_");
    }
}
