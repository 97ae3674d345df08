//! A derived kernel on a launch in which the plain kernel is right: whether it computes the same.

use std::sync::Arc;

use super::launch::Variant;
use super::plain::{Engine, Kept, steps};
use crate::device::sim::functional::{BufferMemory, CompiledKernel, Groups};
use crate::error::{Error, Fault, Result};
use crate::ir::Kernel;
use crate::tune::check::compare::Compare;

/// A derived kernel takes at most this many times the plain kernel's limit of steps.
const MORE_STEPS: u64 = 32;

/// The outcome of a launch.
#[derive(Clone, Debug)]
pub(super) enum Agreement {
    /// The results are the same.
    Same,
    /// The kernel is for launches of another kind.
    NotForIt,
    /// The results differ, or the derived kernel goes wrong: how.
    Different(Error),
}

/// Whether the kernel's own requirements on its work-group allow the launch.
fn takes(kernel: &Kernel, variant: &Variant) -> bool {
    kernel.group_size.is_none_or(|group| group == variant.group)
}

impl Engine {
    /// Runs a derived kernel on a launch of the plain one.
    ///
    /// # Errors
    /// The device cannot run the kernel.
    pub(super) fn compare(&self, derived: &CompiledKernel, kept: &Kept) -> Result<Agreement> {
        let kernel = derived.kernel();
        if !takes(kernel, &kept.variant) {
            return Ok(Agreement::NotForIt);
        }
        let size = self.sub_group(kernel);
        let limit = steps(&kept.variant, size).saturating_mul(MORE_STEPS);
        let (launch, memories) = kept
            .variant
            .bind(limit, |position| kept.inputs[position].clone())?;
        launch.check(kernel, &self.description)?;
        match derived.run(&launch, size, self.options, &Groups::All) {
            Ok(_) => {}
            Err(error) if error.fault() == Fault::Device => return Err(error),
            Err(error) => return Ok(Agreement::Different(error)),
        }
        for (position, right) in kept.results.iter().enumerate() {
            let (Some(right), Some(found)) = (right, &memories[position]) else {
                continue;
            };
            if let Err(error) = same(kernel, &kept.variant, position, right, found) {
                let name = &kept.variant.names(kernel)[position];
                return Ok(Agreement::Different(error.at(format!("output `{name}`"))));
            }
        }
        Ok(Agreement::Same)
    }
}

/// Compares two kernels' contents of a buffer.
fn same(
    kernel: &Kernel,
    variant: &Variant,
    position: usize,
    right: &Arc<BufferMemory>,
    found: &Arc<BufferMemory>,
) -> Result<()> {
    let Some(byte) = right.first_difference(found) else {
        return Ok(());
    };
    let sharing = (0..variant.parts.len()).filter(|&other| variant.memory_of(other) == position);
    // What any of the parameters that share it declares counts.
    let compare = sharing
        .filter_map(|other| variant.buffer(other)?.compare)
        .find(|compare| *compare != Compare::Bits)
        .unwrap_or(match kernel.float_mode.any_nan {
            true => Compare::BitsOrNan,
            false => Compare::Bits,
        });
    let element = found.element();
    let size = u64::from(element.bytes().max(1));
    if compare == Compare::Bits {
        let mut both = [[0u8; 8]; 2];
        let start = byte - byte % size;
        for (memory, bytes) in [right, found].into_iter().zip(&mut both) {
            let length = size.min(memory.bytes() - start) as usize;
            memory.copy_out(start, &mut bytes[..length])?;
        }
        let [right, found] = both.each_ref().map(|bytes| &bytes[..size as usize]);
        return compare
            .check_from(element, start / size, 0.0, right, found)
            .map(|_| ());
    }
    // Bytes that neither wrote are the same: common ones are compared whole.
    let length = right.bytes().min(found.bytes()) as usize;
    let mut both = [vec![0; length], vec![0; length]];
    right.copy_out(0, &mut both[0])?;
    found.copy_out(0, &mut both[1])?;
    compare.check(element, &both[0], &both[1]).map(|_| ())
}
