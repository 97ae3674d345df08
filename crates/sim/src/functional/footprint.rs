//! The lines of global memory that work-groups touch, each counted once.

use std::sync::atomic::{AtomicU64, Ordering};

use super::lane_op::LaneOp;
use super::lanes::{Mask, Registers};
use super::sub_group::Observer;
use super::work_group::{SubGroup, WorkGroup};

/// Bytes of buffers beyond which nothing is noted: a bit for each line takes 4 MiB then.
const MOST: u64 = 1 << 32;

/// Lines that were touched, of as many as are of interest.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// Of each buffer a bit for each line.
    buffers: Vec<Vec<AtomicU64>>,
    line_shift: u32,
    lines: AtomicU64,
    /// When there are as many, further ones are not noted.
    most: u64,
}

impl Footprint {
    /// Empty, for buffers of these sizes. Lines have `line` bytes, a power of two; lines beyond `most` bytes are not counted.
    /// None if there is too much to note.
    pub(crate) fn new(sizes: &[u64], line: u64, most: u64) -> Option<Footprint> {
        let line_shift = line.trailing_zeros();
        let words = |bytes: &u64| vec_of(bytes.div_ceil(line).div_ceil(64) as usize);
        (sizes.iter().sum::<u64>() <= MOST).then(|| Footprint {
            buffers: sizes.iter().map(words).collect(),
            line_shift,
            lines: AtomicU64::new(0),
            most: most >> line_shift,
        })
    }

    /// Bytes of the lines that were touched; at least `most` where there are more.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines.load(Ordering::Relaxed) << self.line_shift
    }

    /// Whether there are as many as are of interest.
    pub(crate) fn is_full(&self) -> bool {
        self.lines.load(Ordering::Relaxed) >= self.most
    }

    fn touch(&self, buffer: usize, offset: u64, bytes: u32) {
        let (first, last) = (
            offset >> self.line_shift,
            (offset + u64::from(bytes.max(1)) - 1) >> self.line_shift,
        );
        for line in first..=last {
            let word = self
                .buffers
                .get(buffer)
                .and_then(|words| words.get(line as usize / 64));
            let Some(word) = word else { return };
            let bit = 1 << (line % 64);
            if word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                self.lines.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// This many words of zeros.
fn vec_of(words: usize) -> Vec<AtomicU64> {
    std::iter::repeat_with(AtomicU64::default).take(words).collect()
}

/// Notes the touched lines, if requested.
#[derive(Clone, Copy)]
pub(super) struct Touching<'f>(pub Option<&'f Footprint>);

impl Observer for Touching<'_> {
    fn op(
        &mut self,
        op: &LaneOp,
        registers: &Registers,
        mask: Mask,
        _sub_group: &SubGroup,
        group: &WorkGroup<'_>,
    ) {
        let Some(footprint) = self.0 else { return };
        let Some(touches) = op.kind.touches() else { return };
        if footprint.is_full() {
            return;
        }
        let addresses = registers.get(touches.ptr);
        for lane in mask.lanes() {
            if let Some((buffer, offset)) = group.state.buffer_of(touches.space, addresses[lane]) {
                footprint.touch(buffer, offset, touches.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_counts_once() {
        let footprint = Footprint::new(&[1000, 256], 128, 1 << 20).expect("small buffers");
        for (buffer, offset, bytes) in [(0, 0, 4), (0, 124, 8), (0, 130, 4), (1, 0, 16), (2, 0, 4)] {
            footprint.touch(buffer, offset, bytes);
        }
        // Two lines of the first buffer, one of the second; there is no third.
        assert_eq!(footprint.bytes(), 3 * 128);
        assert!(Footprint::new(&[MOST, 1], 128, 1 << 20).is_none());
    }
}
