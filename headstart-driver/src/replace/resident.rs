//! Whether as many work-groups of a better kernel are resident as of the original.
//!
//! Work-groups that wait for each other come to an end only if those that are waited for are resident: a better kernel that uses
//! more registers or shared memory may hold fewer, and never end. The driver says how many of each a core holds, with the
//! launch's own work-groups and dynamic shared memory, and with what the program has set for the kernel. As many on each core
//! are as many in all, and as many clusters.
//!
//! Where the driver does not say, the fact does not hold; nor where the launch divides L1 and shared memory in a way of its own,
//! which the driver's answer leaves out, or may do so, as a node of a graph.

use std::ffi::{c_int, c_uint};

use crate::abi::{ATTRIBUTE_CARVEOUT, Handle, SUCCESS};
use crate::launches::Launch;
use crate::lock::Lock;
use crate::{events, real};

/// Answers that are kept: programs launch a kernel in few shapes.
const MOST_KEPT: usize = 8;

/// What an answer is for: the context, whose device has so much room; the original; work-items of a work-group; dynamic shared memory.
type Shape = (usize, usize, c_uint, c_uint);

/// The last answers, the latest first.
pub(super) struct Resident(Lock<[Option<(Shape, bool)>; MOST_KEPT]>);

impl Resident {
    pub const fn new() -> Resident {
        Resident(Lock::new([None; MOST_KEPT]))
    }

    /// What the program has set for the kernels has changed.
    pub fn forget(&self) {
        *self.0.take() = [None; MOST_KEPT];
    }

    /// Whether as many work-groups are resident with the better kernel.
    ///
    /// # Safety
    /// The launch is one that the driver takes, and `better` is a kernel.
    pub unsafe fn holds(&self, launch: &Launch, better: Handle) -> bool {
        // SAFETY: the caller's.
        let attributes = unsafe { launch.attributes() };
        if launch.is_node || attributes.iter().any(|own| own.id == ATTRIBUTE_CARVEOUT) {
            return false;
        }
        let Some(items) = launch
            .block
            .iter()
            .try_fold(1, |items: c_uint, &own| items.checked_mul(own))
        else {
            return false;
        };
        let shape = (
            events::context(),
            launch.handle as usize,
            items,
            launch.shared_bytes,
        );
        let known = self
            .0
            .take()
            .iter()
            .flatten()
            .find(|(own, _)| *own == shape)
            .copied();
        if let Some((_, holds)) = known {
            return holds;
        }
        let groups = |kernel: Handle| {
            let items = c_int::try_from(items).ok()?;
            let mut groups = 0;
            // SAFETY: a place for the answer, and a kernel, which the driver takes as a function.
            let result = unsafe {
                real::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &raw mut groups,
                    kernel,
                    items,
                    launch.shared_bytes as usize,
                )
            };
            (result == SUCCESS).then_some(groups)
        };
        let holds = match (groups(launch.handle), groups(better)) {
            (Some(original), Some(better)) => better >= original,
            _ => false,
        };
        let mut kept = self.0.take();
        kept.rotate_right(1);
        kept[0] = Some((shape, holds));
        holds
    }
}
