//! Whether data that the host computes fit through its memory.

use crate::device::{Fill, Pattern};
use crate::tune::subject::workload::Workload;
use crate::{Error, Result};

/// Checks that data computed on the host for the GPU fit into the host's memory: patterns without a closed form, which are
/// transferred as a whole.
pub(super) fn check_host_memory(workload: &Workload) -> Result<()> {
    let Some(available) = available_bytes() else {
        return Ok(());
    };
    for (given, param) in workload.given.iter().zip(&workload.kernel.params) {
        let Some((element, length, fill)) = given.contents() else {
            continue;
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
