//! A sub-group's joint prefetch as blocks: one request for the whole sub-group instead of one line for each work-item.
//!
//! ```text
//! before, sub-groups of 16                   after
//! prefetch L1 100 at %p by sub_group         prefetch L1 64 at %p by sub_group         one block of 16 words
//!                                            prefetch L1 36 at %p + 64 by sub_group    by lines, as on every device
//! ```
//!
//! `OpSubgroupBlockPrefetchINTEL` (SPV_INTEL_subgroup_buffer_prefetch) fetches 1, 2, 4 or 8 words for each work-item of
//! the sub-group, one after the other from one pointer on. Its cache controls are decorations of the pointer
//! (SPV_INTEL_cache_controls), which IGC 2.40 honours here, other than on OpenCL's `prefetch`.
//!
//! Blocks are never larger than the range: a prefetch to L1 must not leave memory. The remaining bytes, unaligned ranges and
//! ranges with a run-time length are divided over the work-items by lines (`back::hints`).

use std::collections::HashSet;

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, Decoration, LoadCacheControl, Op as Code};

use super::emitter::Emitter;
use super::prefetch::control;
use super::{Options, SpirvTarget};
use crate::ir::{
    Builder, CacheHint, HintSource, Kernel, Op, OpKind, PrefetchScope, Region, Space, Type, Value,
};

/// Bytes of a word.
const WORD: u32 = 4;
/// Most words of a work-item that one block has.
const WORDS: u32 = 8;
/// Most blocks that are written one after the other.
const MOST_BLOCKS: u32 = 16;
/// Most bytes that one message brings.
const MESSAGE_BYTES: u32 = 256;

/// Which prefetches become blocks.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    sub_group: u32,
    /// Pointers to global memory that are multiples of 4.
    aligned: HashSet<Value>,
}

impl Blocks {
    /// The accesses that become blocks on a device that has them; none if the sub-group's size is left to the device.
    pub(super) fn of(kernel: &Kernel, options: &Options) -> Option<Blocks> {
        if !options.block_prefetch || options.target != SpirvTarget::IntelLsc {
            return None;
        }
        let sub_group = kernel.sub_group_size.or(options.sub_group_size)?;
        let emitter = Emitter::new(kernel, options);
        let mut aligned = HashSet::new();
        kernel.body.walk(&mut |op| {
            if let OpKind::Prefetch { ptr, .. } = op.kind
                && kernel.ty(ptr) == Type::Ptr(Space::Global)
                && emitter.alignment(ptr, 0) >= WORD
            {
                aligned.insert(ptr);
            }
        });
        Some(Blocks { sub_group, aligned })
    }

    /// How many bytes of a prefetch become blocks.
    pub(super) fn bytes(&self, op: &Op) -> u32 {
        let OpKind::Prefetch {
            ptr,
            bytes,
            count: None,
            source,
            scope: PrefetchScope::SubGroup,
            ..
        } = &op.kind
        else {
            return 0;
        };
        let least = WORD * self.sub_group;
        match self.aligned.contains(ptr) && source.fills() && *bytes <= MOST_BLOCKS * WORDS * least {
            true => bytes / least * least,
            false => 0,
        }
    }

    /// Whether a prefetch is one of whole blocks.
    pub(super) fn is_whole(&self, op: &Op) -> bool {
        matches!(op.kind, OpKind::Prefetch { bytes, .. } if bytes > 0 && self.bytes(op) == bytes)
    }

    /// Divides every prefetch that is more than whole blocks.
    pub(super) fn split(&self, kernel: &mut Kernel) {
        let mut body = std::mem::take(&mut kernel.body);
        self.region(kernel, &mut body);
        kernel.body = body;
    }

    fn region(&self, kernel: &mut Kernel, body: &mut Region) {
        for mut op in std::mem::take(&mut body.ops) {
            for inner in op.kind.regions_mut() {
                self.region(kernel, inner);
            }
            let whole = self.bytes(&op);
            let rest = match &mut op.kind {
                OpKind::Prefetch { ptr, bytes, .. } if whole > 0 && whole < *bytes => {
                    let rest = (*ptr, *bytes - whole);
                    *bytes = whole;
                    Some(rest)
                }
                _ => None,
            };
            let mut kind = op.kind.clone();
            let place = op.place;
            body.ops.push(op);
            let Some((from, rest)) = rest else { continue };
            let mut b = Builder::new(kernel, place);
            let zero = b.i64(0);
            let at = b.address(from, zero, 1, i64::from(whole));
            if let OpKind::Prefetch { ptr, bytes, .. } = &mut kind {
                (*ptr, *bytes) = (at, rest);
            }
            b.push(kind, &[]);
            body.ops.extend(b.finish().ops);
        }
    }

    /// The cost of a prefetch that becomes blocks.
    pub(super) fn cost(&self, op: &Op) -> Option<String> {
        let (whole, OpKind::Prefetch { bytes, .. }) = (self.bytes(op), &op.kind) else {
            return None;
        };
        let blocks = block_instructions(whole, self.sub_group);
        match (whole, bytes - whole) {
            (0, _) => None,
            (_, 0) => Some(format!("{blocks} block messages for the whole sub-group")),
            (_, rest) => Some(format!(
                "{blocks} block messages for the whole sub-group, and {rest} bytes by lines divided over it"
            )),
        }
    }
}

/// The words of each work-item in the blocks for this many bytes: eight while there are eight, then four, two, one.
fn blocks(bytes: u32, sub_group: u32) -> Vec<u32> {
    let mut words = bytes / WORD / sub_group.max(1);
    let mut blocks = Vec::new();
    while words > 0 {
        let block = WORDS.min(1 << words.ilog2());
        blocks.push(block);
        words -= block;
    }
    blocks
}

/// How many `load.ugm` messages without a destination the blocks for a range of whole blocks become in the code of one
/// sub-group: each brings at most 256 bytes (IGC 2.40 for pvc and bmg).
pub fn block_instructions(bytes: u32, sub_group: u32) -> u32 {
    let of_one = |words: u32| (words * WORD * sub_group).div_ceil(MESSAGE_BYTES);
    blocks(bytes, sub_group).into_iter().map(of_one).sum()
}

/// The level (0 is L1, 1 Intel's L3) and cache control of a number of `LSC_LDCC`.
fn controls(number: u32) -> Option<[LoadCacheControl; 2]> {
    use LoadCacheControl as Of;
    Some(match number {
        1 => [Of::UncachedINTEL, Of::UncachedINTEL],
        2 => [Of::UncachedINTEL, Of::CachedINTEL],
        3 => [Of::CachedINTEL, Of::UncachedINTEL],
        4 => [Of::CachedINTEL, Of::CachedINTEL],
        5 => [Of::StreamingINTEL, Of::UncachedINTEL],
        6 => [Of::StreamingINTEL, Of::CachedINTEL],
        7 => [Of::InvalidateAfterReadINTEL, Of::CachedINTEL],
        _ => return None,
    })
}

impl Emitter<'_> {
    /// A hint of a sub-group for whole blocks.
    pub(super) fn block_prefetch(&mut self, ptr: Value, bytes: u32, hint: CacheHint, source: HintSource) {
        let size = self.kernel.sub_group_size.or(self.options.sub_group_size);
        let sub_group = size.unwrap_or(1);
        self.module.needs(Capability::SubgroupBufferPrefetchINTEL);
        self.module.extension("SPV_INTEL_subgroup_buffer_prefetch");
        let controls = controls(control(hint, source));
        if controls.is_some() {
            self.module.needs(Capability::CacheControlsINTEL);
            self.module.extension("SPV_INTEL_cache_controls");
        }
        let (pointer, global) = (self.id(ptr), self.bytes_in(Space::Global));
        let word = self.module.int(32);
        let mut offset = 0;
        for words in blocks(bytes, sub_group) {
            let at = self.moved(global, pointer, offset);
            let at = self.pointing_to(word, Space::Global, at);
            for (level, control) in (0..).zip(controls.into_iter().flatten()) {
                let more = vec![Operand::LiteralBit32(level), Operand::LoadCacheControl(control)];
                self.module.decorate(at, Decoration::CacheControlLoadINTEL, more);
            }
            let count = self.module.constant(32, u64::from(words * WORD));
            let operands = [at, count].map(Operand::IdRef).to_vec();
            self.module.act(Code::SubgroupBlockPrefetchINTEL, operands);
            offset += u64::from(words * WORD * sub_group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_divided_into_the_largest_blocks() {
        assert_eq!(blocks(64, 16), [1]);
        assert_eq!(blocks(64 * 7, 16), [4, 2, 1]);
        assert_eq!(blocks(64 * 19, 16), [8, 8, 2, 1]);
        assert_eq!(block_instructions(64, 16), 1);
        assert_eq!(block_instructions(512, 16), 2);
        assert_eq!(block_instructions(1024, 32), 4);
    }
}
