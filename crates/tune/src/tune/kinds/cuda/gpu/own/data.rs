//! Data for a worker: whether it already has them, and whether they fit through the host.

use std::sync::Arc;

use crate::device::{Fill, Pattern};
use crate::tune::workload::{ArgumentSpec, Workload};
use crate::{Error, Result};

/// Whether the parameters' arguments are known to be the same.
pub(super) fn holds_the_same(one: &[ArgumentSpec], other: &[ArgumentSpec]) -> bool {
    let is_same_fill = |one: &Fill, other: &Fill| match (one, other) {
        (Fill::Uninitialized, Fill::Uninitialized) => true,
        (Fill::Bytes(one), Fill::Bytes(other)) => Arc::ptr_eq(one, other),
        (Fill::Pattern(one), Fill::Pattern(other)) => match (one, other) {
            (Pattern::Function(one), Pattern::Function(other)) => Arc::ptr_eq(one, other),
            (Pattern::Function(_), _) | (_, Pattern::Function(_)) => false,
            // The others are said in full.
            _ => format!("{one:?}") == format!("{other:?}"),
        },
        _ => false,
    };
    let is_same = |(one, other): (&ArgumentSpec, &ArgumentSpec)| match (one, other) {
        (ArgumentSpec::Scalar(ty, bits), ArgumentSpec::Scalar(other_ty, other_bits)) => {
            (ty, bits) == (other_ty, other_bits)
        }
        (
            ArgumentSpec::Part { of, start },
            ArgumentSpec::Part {
                of: other_of,
                start: other_start,
            },
        ) => (of, start) == (other_of, other_start),
        (
            ArgumentSpec::Input {
                element,
                length,
                fill,
            },
            ArgumentSpec::Input {
                element: other_element,
                length: other_length,
                fill: other_fill,
            },
        )
        | (
            ArgumentSpec::Output {
                element,
                length,
                fill,
                ..
            },
            ArgumentSpec::Output {
                element: other_element,
                length: other_length,
                fill: other_fill,
                ..
            },
        ) => (element, length) == (other_element, other_length) && is_same_fill(fill, other_fill),
        _ => false,
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

/// Checks that data computed on the host for the GPU fit into the host's memory: patterns without a closed form, which are
/// transferred as a whole.
pub(super) fn check_host_memory(workload: &Workload) -> Result<()> {
    let Some(available) = available_bytes() else {
        return Ok(());
    };
    for (given, param) in workload.given.iter().zip(&workload.kernel.params) {
        let (element, length, fill) = match given {
            ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. } => continue,
            ArgumentSpec::Input {
                element,
                length,
                fill,
            }
            | ArgumentSpec::Output {
                element,
                length,
                fill,
                ..
            } => (element, length, fill),
        };
        let bytes = length.saturating_mul(u64::from(element.bytes()));
        if matches!(fill, Fill::Pattern(Pattern::Function(_))) && bytes > available {
            return Err(Error::device(format!(
                "the contents of `{}` are computed on the host: {bytes} bytes, and {available} of its memory are free",
                param.name
            ))
            .accepted("a smaller buffer, or a fill that the GPU computes"));
        }
    }
    Ok(())
}

/// The host's memory that is free, where the system tells.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes << 10)
}
