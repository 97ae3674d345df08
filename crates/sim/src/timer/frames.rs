//! The addresses of spilled values: the frames of a sub-group's work-items in private memory.
//!
//! The words of a frame at one offset are adjacent for the work-items of a sub-group, so that each spill or fill is one
//! consecutive access ("consecutive 32-bit words are accessed by consecutive thread IDs", NVIDIA, Nsight documentation, Memory
//! Statistics - Local). A frame belongs to a place of a core: the next work-group there finds the lines of the one before in
//! the caches.

use super::code::Code;
use crate::functional::LANES;

/// Where private memory begins: behind all buffers, in front of the page tables.
const PRIVATE: u64 = 1 << 51;

/// The private memory of a core, more than its frames can take.
const CORE: u64 = 1 << 32;

/// Frames of sub-groups begin at a multiple of this many bytes.
const ALIGNED: u64 = 512;

/// The frames of a sub-group's work-items.
pub(super) struct Frames {
    start: u64,
    lanes: u64,
}

impl Frames {
    /// Those of a sub-group by its place in a core.
    pub(super) fn of(code: &Code, core: usize, place: usize) -> Frames {
        let lanes = u64::from(code.sub_group_size());
        let bytes = (u64::from(code.program.frame_bytes) * lanes).next_multiple_of(ALIGNED);
        Frames {
            start: PRIVATE + core as u64 * CORE + place as u64 * bytes,
            lanes,
        }
    }

    /// The addresses of a value of this many bytes at an offset in each frame.
    pub(super) fn addresses(&self, offset: u32, bytes: u8) -> [u64; LANES] {
        let first = self.start + u64::from(offset) * self.lanes;
        std::array::from_fn(|lane| first + lane as u64 * u64::from(bytes))
    }
}
