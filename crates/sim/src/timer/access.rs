//! The memory accesses of an instruction, and their completion times.

use super::stalls::StallReason;
use crate::functional::{LANES, LaneOpKind, Lanes, Mask, Piece, Registers, from_generic};
use crate::ir::carried::QUAD_BYTES;
use crate::ir::{LscControl, Space};
use crate::memory::{Access, MemorySystem};
use crate::model::{PrefetchInstruction, Reached};

/// The addresses that an instruction touches. It lives for one instruction, on the stack.
#[allow(clippy::large_enum_variant)]
pub(super) enum Touched {
    /// No memory.
    None,
    /// This many bytes at each work-item's address.
    At(Lanes, u32),
    /// This many bytes at each work-item's first address, for its second.
    Both(Lanes, Lanes, u32),
    /// One access after the other, of the lanes that each names.
    Several(Vec<Piece>),
}

impl Touched {
    /// The addresses of an operation; none of one that is no access. Its result may take a pointer's place: this comes before.
    #[inline]
    pub(super) fn by(op: &LaneOpKind, values: &Registers) -> Option<Touched> {
        Some(match op {
            LaneOpKind::Load {
                to: moved, memory, ..
            }
            | LaneOpKind::Store {
                values: moved,
                memory,
            } => Touched::At(values.lanes(memory.ptr), memory.bytes(moved)),
            LaneOpKind::Atomic { ptr, ty, .. } => {
                Touched::At(values.lanes(*ptr), ty.bytes() * op.atomic_values())
            }
            LaneOpKind::Prefetch { ptr, bytes, .. } => Touched::At(values.lanes(*ptr), *bytes),
            LaneOpKind::Copy {
                target,
                source,
                bytes,
                ..
            } => Touched::Both(values.lanes(*source), values.lanes(*target), *bytes),
            LaneOpKind::Opaque {
                what, values: given, ..
            } => match what.moves() {
                Some(_) => Touched::Several(what.pieces(given, values)),
                None => Touched::At(what.addresses(given, values)?, QUAD_BYTES),
            },
            _ => return None,
        })
    }
}

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Load,
    /// With a cache control that the device acts on.
    Controlled(LscControl),
    Store,
    /// There and back: where the values are, this many of each work-item, they are changed.
    Atomic {
        values: u32,
    },
    /// From where all cores see it.
    AtomicLoad,
}

/// Memory's answer to a load or store.
pub(super) struct AccessResponse {
    /// When the values are there.
    pub done: u64,
    /// The stall reason of instructions that wait for it.
    pub cause: StallReason,
    /// Whether they come from behind L1, in the order of the sub-group's copies.
    pub is_behind_copies: bool,
}

/// A load or store.
pub(super) fn access(
    memory: &mut MemorySystem,
    core: usize,
    now: u64,
    touched: &Touched,
    space: Space,
    mask: Mask,
    direction: Direction,
) -> AccessResponse {
    let mut last = AccessResponse {
        done: now + 1,
        cause: StallReason::Wait,
        is_behind_copies: false,
    };
    match touched {
        Touched::At(addresses, bytes) => one(memory, core, now, (addresses, *bytes), space, mask, direction),
        Touched::Several(pieces) => {
            for piece in pieces {
                let addresses = (&piece.addresses, piece.bytes);
                let answer = one(
                    memory,
                    core,
                    now,
                    addresses,
                    space,
                    mask.and(piece.mask),
                    direction,
                );
                if answer.done >= last.done {
                    (last.done, last.cause) = (answer.done, answer.cause);
                }
                last.is_behind_copies |= answer.is_behind_copies;
            }
            last
        }
        Touched::None | Touched::Both(..) => last,
    }
}

/// An access of this many bytes at each work-item's address.
fn one(
    memory: &mut MemorySystem,
    core: usize,
    now: u64,
    (addresses, bytes): (&Lanes, u32),
    space: Space,
    mask: Mask,
    direction: Direction,
) -> AccessResponse {
    let at_once = AccessResponse {
        done: now + 1,
        cause: StallReason::Wait,
        is_behind_copies: false,
    };
    if mask.is_empty() {
        return at_once;
    }
    let mut local = [0; LANES];
    let (space, addresses) = match space {
        // A sub-group's generic addresses usually lie in one space.
        Space::Generic => {
            let first = mask.lanes().next().unwrap_or(0);
            for (to, &from) in local.iter_mut().zip(addresses) {
                *to = from_generic(from).1;
            }
            (from_generic(addresses[first]).0, &local)
        }
        space => (space, addresses),
    };
    let access = Access {
        addresses,
        mask: mask.0,
        bytes,
    };
    let time = now as f64;
    let answer = |done: f64, cause| AccessResponse {
        done: done.ceil() as u64,
        cause,
        is_behind_copies: false,
    };
    match (space, direction) {
        (Space::Shared, Direction::Load | Direction::Controlled(_) | Direction::AtomicLoad) => answer(
            memory.shared_load(core, time, &access),
            StallReason::ShortScoreboard,
        ),
        (Space::Shared, Direction::Store) => {
            memory.shared_store(core, time, &access);
            at_once
        }
        (Space::Shared, Direction::Atomic { .. }) => {
            let done = memory.shared_load(core, time, &access);
            memory.shared_store(core, time, &access);
            answer(done, StallReason::ShortScoreboard)
        }
        (_, Direction::Atomic { values }) => answer(
            memory.atomic(core, time, &access, values),
            StallReason::LongScoreboard,
        ),
        (_, Direction::AtomicLoad) => answer(
            memory.load_beyond_l1(core, time, &access),
            StallReason::LongScoreboard,
        ),
        (Space::Private, _) => answer(memory.private(core, time, &access), StallReason::LongScoreboard),
        (_, Direction::Load | Direction::Controlled(_)) => {
            let loaded = match direction {
                Direction::Controlled(control) => memory.load_controlled(core, time, &access, control),
                _ => memory.load(core, time, &access),
            };
            AccessResponse {
                is_behind_copies: !loaded.is_near,
                ..answer(loaded.done, StallReason::LongScoreboard)
            }
        }
        (_, Direction::Store) => {
            memory.store(core, time, &access);
            at_once
        }
    }
}

/// What a cache hint does on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hint {
    /// The cache that it fills.
    pub reached: Reached,
    /// Its cache control, where the device acts on it.
    pub control: Option<LscControl>,
    /// The instruction that carries it.
    pub by: PrefetchInstruction,
}

/// A cache hint; when the last value is there, if it is carried by copies.
pub(super) fn prefetch(
    memory: &mut MemorySystem,
    core: usize,
    now: u64,
    touched: &Touched,
    mask: Mask,
    hint: Hint,
) -> u64 {
    let mut copied = 0;
    let Touched::At(addresses, bytes) = touched else {
        return copied;
    };
    if mask.is_empty() || hint.by == PrefetchInstruction::Nothing {
        return copied;
    }
    let now = now as f64;
    // As much at a time as one access can name.
    const PIECE: u32 = 64;
    for first in (0..*bytes).step_by(PIECE as usize) {
        let moved = addresses.map(|address| address.wrapping_add(u64::from(first)));
        let access = Access {
            addresses: &moved,
            mask: mask.0,
            bytes: PIECE.min(bytes - first),
        };
        match hint.by {
            PrefetchInstruction::ScratchCopy => {
                // Each work-item has a word of its own: no two meet in a bank.
                let scratch: Lanes = std::array::from_fn(|lane| 4 * lane as u64);
                let to = Access {
                    addresses: &scratch,
                    mask: mask.0,
                    bytes: 4,
                };
                let done = memory.copy(core, now, &access, &to);
                copied = copied.max(done.ceil() as u64);
            }
            _ => memory.prefetch(core, now, &access, hint.reached, hint.control),
        }
    }
    copied
}

/// The largest of the active lanes' tokens.
pub(super) fn largest(tokens: &[u64], mask: Mask) -> u64 {
    mask.lanes().map(|lane| tokens[lane]).max().unwrap_or(0)
}
