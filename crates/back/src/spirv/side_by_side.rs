//! Block loads and stores: adjacent accesses of a sub-group, as one message.
//!
//! ```text
//! before, sub-groups of 16                   after
//! %a = load i32 %p, @values block            %ab = OpSubgroupBlockReadINTEL %v2uint %first   the first work-item's %p
//! %q = address %p + 0:i64 * 1 + 64           %a, %b = its components
//! %b = load i32 %q, @values block
//! ```
//!
//! `OpSubgroupBlockReadINTEL` and `OpSubgroupBlockWriteINTEL` (SPV_INTEL_subgroups) move 1, 2, 4 or 8 elements for each
//! work-item. The IR has one access for each; those that follow each other with nothing but pure operations between, from one
//! pointer and as far apart as the sub-group is wide, become one block.
//!
//! Only if every sub-group is full: a block reads all of its memory, even for missing work-items. Otherwise, and if the
//! compiler does not support such accesses, they are emitted as accesses of each work-item.

use std::collections::HashMap;

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, Op as Code, Scope, Word};

use super::Options;
use super::emitter::Emitter;
use crate::Result;
use crate::ir::{Kernel, Op, OpKind, Region, Space, Type, Value};
use crate::model::too_wide_for_blocks;

/// Most elements of a work-item that one block has.
const MOST_ELEMENTS: usize = 8;

/// Which block loads and stores a device's compiler knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockAccess {
    /// The sizes of elements, in bytes: the sum of those it knows, which are 1, 2, 4 and 8. 0 is none.
    pub elements: u32,
    /// Work-items of the largest sub-group that has them.
    pub most_items: u32,
}

impl BlockAccess {
    /// All sizes, for any sub-group.
    pub const ALL: BlockAccess = BlockAccess {
        elements: 1 + 2 + 4 + 8,
        most_items: u32::MAX,
    };

    /// The sizes, for sub-groups of up to 16: Intel's GPUs that have sub-groups of 8. Their compiler says `Block reads not
    /// supported in SIMD32` (IGC 1.0.12504 and 2.40, for skl, icllp, tgllp and dg2; not for pvc and bmg, which begin at 16).
    pub const UP_TO_16: BlockAccess = BlockAccess {
        most_items: 16,
        ..BlockAccess::ALL
    };

    /// The names of a device's block extensions.
    #[doc(hidden)]
    pub fn of_extensions(extensions: &str, most_items: u32) -> BlockAccess {
        let known = [
            ("cl_intel_subgroups_char", 1),
            ("cl_intel_subgroups_short", 2),
            ("cl_intel_subgroups", 4),
            ("cl_intel_subgroups_long", 8),
        ];
        let has = |name: &str| extensions.split_whitespace().any(|one| one == name);
        let sizes = known.iter().filter(|(name, _)| has(name));
        BlockAccess {
            elements: sizes.map(|(_, bytes)| bytes).sum(),
            most_items,
        }
    }

    fn takes(self, ty: Type) -> bool {
        self.elements & ty.bytes() != 0
    }
}

/// The form of an access.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part<'k> {
    /// The block with these accesses is written here.
    All(Vec<&'k Op>),
    /// Another writes it.
    OfAnother,
}

/// The blocks of a kernel, by the operations that they are made of.
pub(super) type Blocks<'k> = HashMap<*const Op, Part<'k>>;

/// The sub-group's size, if each sub-group is full.
fn full_size(kernel: &Kernel, options: &Options) -> Option<u32> {
    let size = kernel.sub_group_size.or(options.sub_group_size)?;
    let items: u64 = kernel.group_size?.iter().map(|&size| u64::from(size)).product();
    items.is_multiple_of(u64::from(size)).then_some(size)
}

/// A kernel whose blocks its sub-groups are too large for is refused.
///
/// # Errors
/// It is one.
pub(super) fn check(kernel: &Kernel, options: &Options) -> Result<()> {
    let most = options.block_access.most_items;
    let Some(size) = full_size(kernel, options).filter(|&size| size > most) else {
        return Ok(());
    };
    let mut place = None;
    kernel.body.walk(&mut |op| {
        let ty = accessed(kernel, op).filter(|ty| options.block_access.takes(*ty));
        if op.kind.is_block() && ty.is_some() && place.is_none() {
            place = Some(op.place);
        }
    });
    match place {
        None => Ok(()),
        Some(place) => Err(too_wide_for_blocks(kernel, place, size, most)),
    }
}

/// The element type of an access.
fn accessed(kernel: &Kernel, op: &Op) -> Option<Type> {
    match &op.kind {
        OpKind::Load { .. } => op.results.first().map(|&result| kernel.ty(result)),
        OpKind::Store { values, .. } => values.first().map(|&value| kernel.ty(value)),
        _ => None,
    }
}

/// The blocks of a kernel.
pub(super) fn blocks<'k>(kernel: &'k Kernel, options: &Options) -> Blocks<'k> {
    let mut found = Blocks::new();
    if let Some(size) = full_size(kernel, options)
        && size <= options.block_access.most_items
    {
        let mut search = Search {
            kernel,
            options,
            size,
            addresses: HashMap::new(),
            found: &mut found,
        };
        search.region(&kernel.body);
    }
    found
}

/// Where an access is: pointer, index and scale of its address, or the pointer alone; and the bytes behind that.
type Address = ((Value, Option<(Value, u32)>), i64);

struct Search<'k, 'a> {
    kernel: &'k Kernel,
    options: &'a Options,
    size: u32,
    /// The parts of addresses.
    addresses: HashMap<Value, Address>,
    found: &'a mut Blocks<'k>,
}

impl<'k> Search<'k, '_> {
    fn region(&mut self, region: &'k Region) {
        let mut run: Vec<&'k Op> = Vec::new();
        for op in &region.ops {
            self.note_address(op);
            for inner in op.kind.regions() {
                self.region(inner);
            }
            let ty = accessed(self.kernel, op);
            if op.kind.is_block() && ty.is_some_and(|ty| self.options.block_access.takes(ty)) {
                if !run.last().is_some_and(|last| self.follows(last, op)) {
                    self.close(std::mem::take(&mut run));
                }
                run.push(op);
            } else if !op.kind.is_pure() {
                self.close(std::mem::take(&mut run));
            }
        }
        self.close(run);
    }

    fn note_address(&mut self, op: &Op) {
        let (
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            },
            [result],
        ) = (&op.kind, &op.results[..])
        else {
            return;
        };
        let address = match self.kernel.as_constant(*index) {
            Some(index) => {
                let bytes = index.wrapping_mul(u64::from(*scale)) as i64;
                let (place, before) = self.address(*base);
                (place, before.wrapping_add(bytes).wrapping_add(*offset))
            }
            None => ((*base, Some((*index, *scale))), *offset),
        };
        self.addresses.insert(*result, address);
    }

    fn address(&self, pointer: Value) -> Address {
        self.addresses
            .get(&pointer)
            .copied()
            .unwrap_or(((pointer, None), 0))
    }

    /// Whether one access is directly behind the block of the other.
    fn follows(&self, last: &Op, op: &Op) -> bool {
        let (ty, other) = (accessed(self.kernel, op), accessed(self.kernel, last));
        let both = match (&last.kind, &op.kind) {
            (OpKind::Load { ptr: last, .. }, OpKind::Load { ptr, .. })
            | (OpKind::Store { ptr: last, .. }, OpKind::Store { ptr, .. }) => (*last, *ptr),
            _ => return false,
        };
        let ((before, from), (after, to)) = (self.address(both.0), self.address(both.1));
        let width = ty.map_or(0, |ty| i64::from(ty.bytes() * self.size));
        ty == other && before == after && from.checked_add(width) == Some(to)
    }

    /// Divides accesses that follow each other into blocks, the largest first.
    fn close(&mut self, run: Vec<&'k Op>) {
        let mut rest = &run[..];
        while !rest.is_empty() {
            let count = MOST_ELEMENTS.min(1 << rest.len().ilog2());
            let (block, after) = rest.split_at(count);
            rest = after;
            // All values are ready before the first store, and all loads are done before the first use.
            let writer = match block[0].kind {
                OpKind::Store { .. } => count - 1,
                _ => 0,
            };
            for (number, &op) in block.iter().enumerate() {
                let part = match number == writer {
                    true => Part::All(block.to_vec()),
                    false => Part::OfAnother,
                };
                self.found.insert(std::ptr::from_ref(op), part);
            }
        }
    }
}

impl<'k> Emitter<'k> {
    /// Writes an access as a part of a block, if it is one. Whether it is.
    pub(super) fn side_by_side(&mut self, op: &'k Op) -> bool {
        match self.blocks.get(&std::ptr::from_ref(op)).cloned() {
            None => return false,
            Some(Part::OfAnother) => {}
            Some(Part::All(parts)) => match op.kind {
                OpKind::Load { .. } => self.block_load(&parts),
                _ => self.block_store(&parts),
            },
        }
        true
    }

    fn block_load(&mut self, parts: &[&'k Op]) {
        let (Some(&first), Some(ty)) = (parts.first(), accessed(self.kernel, parts[0])) else {
            return;
        };
        let (own, bits) = (self.ty_id(ty), self.module.int(ty.bytes() * 8));
        let vector = self.module.vector(bits, parts.len() as u32);
        let from = self.of_first(first, bits);
        let loaded = self.module.ins(Code::SubgroupBlockReadINTEL, vector, &[from]);
        for (number, part) in (0..).zip(parts) {
            let one = match parts.len() {
                1 => loaded,
                _ => self.component(bits, loaded, number),
            };
            let value = match own == bits {
                true => one,
                false => self.module.ins(Code::Bitcast, own, &[one]),
            };
            for &result in &part.results {
                self.set(result, value);
            }
        }
    }

    fn block_store(&mut self, parts: &[&'k Op]) {
        let (Some(&first), Some(ty)) = (parts.first(), accessed(self.kernel, parts[0])) else {
            return;
        };
        let (own, bits) = (self.ty_id(ty), self.module.int(ty.bytes() * 8));
        let mut stored = Vec::with_capacity(parts.len());
        for part in parts {
            if let OpKind::Store { values, .. } = &part.kind {
                let value = self.seen(values[0]);
                stored.push(match own == bits {
                    true => value,
                    false => self.module.ins(Code::Bitcast, bits, &[value]),
                });
            }
        }
        let vector = self.module.vector(bits, parts.len() as u32);
        let value = match stored[..] {
            [one] => one,
            _ => self.module.ins(Code::CompositeConstruct, vector, &stored),
        };
        let to = self.of_first(first, bits);
        let operands = [to, value].map(Operand::IdRef).to_vec();
        self.module.act(Code::SubgroupBlockWriteINTEL, operands);
    }

    /// The pointer of the first work-item of the sub-group, to elements of this type: the same for all.
    fn of_first(&mut self, access: &Op, element: Word) -> Word {
        self.module.needs(Capability::SubgroupBufferBlockIOINTEL);
        self.module.extension("SPV_INTEL_subgroups");
        self.module.needs(Capability::Groups);
        let (OpKind::Load { ptr, .. } | OpKind::Store { ptr, .. }) = access.kind else {
            return 0;
        };
        let (own, long) = (self.id(ptr), self.module.int(64));
        let address = self.module.ins(Code::ConvertPtrToU, long, &[own]);
        let scope = self.module.constant(32, Scope::Subgroup as u64);
        let lane = self.module.constant(32, 0);
        let operands = vec![
            Operand::IdScope(scope),
            Operand::IdRef(address),
            Operand::IdRef(lane),
        ];
        let first = self.module.make(Code::GroupBroadcast, long, operands);
        let ty = self
            .module
            .pointer(super::emitter::storage_class(Space::Global), element);
        self.module.ins(Code::ConvertUToPtr, ty, &[first])
    }
}
