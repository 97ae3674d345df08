//! Captured launches run again, on a simulated device or on one that plans are tried on, and compared byte by byte with what the
//! program's own launch left.

use std::sync::Arc;

use super::data::WORKSPACE;
use super::read;
use crate::capture::{Captured, Difference};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tune::bench::Judge;
use crate::tune::subject::Subject;
use crate::tune::subject::workload::{PlacedMemory, Workload};

/// The outcome of running a captured launch again.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Bytes of memory that were compared.
    pub bytes: u64,
    /// Bytes that the captured launch changed.
    pub changed: u64,
    /// In each allocation that differs, where.
    pub differences: Vec<Difference>,
}

/// Runs a captured launch again on a simulated device, in its own address space, and compares all its memory with the contents
/// after the launch.
///
/// # Errors
/// As for [`captured_subject`](super::captured_subject); the kernel goes wrong.
pub fn replay(captured: Captured, device: &dyn Device) -> Result<Replay> {
    let captured = Arc::new(captured);
    let workload = read(Arc::clone(&captured), true)?.workload()?;
    let kernel = Arc::clone(&workload.kernel);
    let (_, outputs) = workload.bind(device)?.run(device, &kernel)?;
    compared(&captured, &workload, &outputs)
}

/// The same on a device that runs kernels, with the machine code that its assembler makes of the module as it is; none if it does
/// not return a kernel's outputs.
///
/// # Errors
/// As for [`replay`]; the memory cannot be where it was.
pub(in crate::tune) fn replay_on(captured: &Captured, device: &dyn Judge) -> Result<Option<Replay>> {
    let workload = read(Arc::new(captured.clone()), true)?.workload()?;
    let outputs = device.outputs_of(&workload, &workload.kernel)?;
    outputs
        .map(|outputs| compared(captured, &workload, &outputs))
        .transpose()
}

/// Compares a launch's memory, in its own address space, with the captured launch's.
fn compared(captured: &Captured, workload: &Workload, outputs: &[Vec<u8>]) -> Result<Replay> {
    let placed = workload.placed.as_ref();
    let placed = placed.ok_or_else(|| Error::bug("a launch that is run again is not where it was"))?;
    let all = || {
        captured
            .memory
            .iter()
            .chain(captured.variables.iter().map(|own| &own.memory))
    };
    let mut replay = Replay {
        bytes: 0,
        changed: 0,
        differences: Vec::new(),
    };
    for (PlacedMemory { address, .. }, now) in placed.memory.iter().zip(outputs) {
        // The driver's own memory is not compared.
        if *address == WORKSPACE {
            continue;
        }
        let own = all().find(|own| own.address == *address);
        let own = own.ok_or_else(|| Error::bug("memory of a captured launch is lost"))?;
        replay.bytes += now.len() as u64;
        if !Arc::ptr_eq(&own.before, &own.after) {
            let both = own.before.iter().zip(own.after.iter());
            replay.changed += both.filter(|(before, after)| before != after).count() as u64;
        }
        replay.differences.extend(own.difference(now));
    }
    Ok(replay)
}
