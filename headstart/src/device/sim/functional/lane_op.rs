//! Operations on registers: what the IR's operations become when their values have places.

use super::lanes::Slot;
use crate::ir::{
    Array, AtomicOp, BinaryOp, CacheLevel, CacheUse, CompareOp, ConvertOp, FloatRule, Id, Kernel, LoadId,
    Meeting, MemoryOrder, MemoryScope, NoWrapOp, Op, OpKind, Place, PrefetchScope, ShuffleOp, Space, Type,
    UnaryOp, Value, VoteOp, Wrap,
};

/// One operation of a sub-group. Control flow and barriers are not among them: who runs the operations
/// knows where to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneOp {
    /// What it does, to which registers.
    pub kind: LaneOpKind,
    /// How it rounds and flushes, if it computes with floats.
    pub rule: FloatRule,
    /// Where it was written.
    pub place: Place,
}

/// What a [`LaneOp`] does. `to` is the result's slot; types are those of the operands.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of `OpKind`")]
pub enum LaneOpKind {
    Id {
        to: Slot,
        id: Id,
    },
    ArrayAddress {
        to: Slot,
        array: Array,
    },
    Unary {
        op: UnaryOp,
        ty: Type,
        to: Slot,
        a: Slot,
    },
    Binary {
        op: BinaryOp,
        ty: Type,
        to: Slot,
        a: Slot,
        b: Slot,
    },
    NoWrap {
        op: NoWrapOp,
        wrap: Wrap,
        ty: Type,
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Fma {
        ty: Type,
        to: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    Compare {
        op: CompareOp,
        ty: Type,
        to: Slot,
        a: Slot,
        b: Slot,
    },
    Select {
        to: Slot,
        cond: Slot,
        a: Slot,
        b: Slot,
    },
    Convert {
        op: ConvertOp,
        from: Type,
        into: Type,
        to: Slot,
        a: Slot,
    },
    Address {
        to: Slot,
        base: Slot,
        index: Slot,
        scale: u32,
        offset: i64,
    },
    Load {
        to: SlotList,
        ty: Type,
        space: Space,
        ptr: Slot,
        id: LoadId,
        /// Whether the sub-group makes it as one block.
        block: bool,
        /// Whether it is volatile.
        volatile: bool,
    },
    Store {
        values: SlotList,
        ty: Type,
        space: Space,
        ptr: Slot,
        /// Whether the sub-group makes it as one block.
        block: bool,
        /// Whether it is volatile.
        volatile: bool,
    },
    Copy {
        to: Slot,
        target: Slot,
        source: Slot,
        bytes: u32,
        id: LoadId,
    },
    Join {
        to: Slot,
        tokens: Box<[Slot]>,
    },
    Wait {
        token: Slot,
    },
    Prefetch {
        ptr: Slot,
        bytes: u32,
        count: Option<Slot>,
        space: Space,
        level: CacheLevel,
        scope: PrefetchScope,
        id: Option<LoadId>,
    },
    Atomic {
        op: AtomicOp,
        to: Option<Slot>,
        ty: Type,
        space: Space,
        ptr: Slot,
        values: SlotList,
        order: MemoryOrder,
        scope: MemoryScope,
    },
    Fence {
        order: MemoryOrder,
        scope: MemoryScope,
    },
    Shuffle {
        op: ShuffleOp,
        ty: Type,
        to: Slot,
        value: Slot,
        by: Slot,
        mask: Option<Slot>,
    },
    Vote {
        op: VoteOp,
        to: Slot,
        value: Slot,
        mask: Option<Slot>,
    },
    Active {
        to: Slot,
    },
    MeetSubGroup {
        mask: Option<Slot>,
    },
    Print {
        text: Box<str>,
        values: Box<[(Type, Slot)]>,
    },
}

/// One, two or four slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotList {
    slots: [Slot; 4],
    length: u8,
}

impl SlotList {
    /// The slots.
    pub fn as_slice(&self) -> &[Slot] {
        &self.slots[..usize::from(self.length)]
    }

    /// Number of slots.
    pub fn length(&self) -> u32 {
        u32::from(self.length)
    }

    /// The first four of these, or all.
    fn new(slots: impl Iterator<Item = Slot>) -> SlotList {
        let mut list = SlotList {
            slots: [Slot(0); 4],
            length: 0,
        };
        for (place, slot) in list.slots.iter_mut().zip(slots) {
            *place = slot;
            list.length += 1;
        }
        list
    }
}

impl LaneOpKind {
    /// What people call an operation that a sub-group, or a party of it, runs together.
    pub(super) fn of_sub_group(&self) -> &'static str {
        match self {
            LaneOpKind::Shuffle { .. } => "shuffle",
            LaneOpKind::Vote { .. } => "vote",
            _ => "sub-group barrier",
        }
    }
}

impl LaneOp {
    /// The operation on the slots that `slot` gives its operands and results. `None` for what is no lane
    /// operation: blocks, `if`s, loops, terminators and barriers.
    ///
    /// The kernel must be verified.
    pub fn new(kernel: &Kernel, op: &Op, mut slot: impl FnMut(Value) -> Slot) -> Option<LaneOp> {
        let to = op.results.first().map_or(Slot(0), |&value| slot(value));
        let into = op.results.first().map_or(Type::Bool, |&value| kernel.ty(value));
        let space = |ptr: Value| kernel.ty(ptr).space().unwrap_or(Space::Global);
        let kind = match op.kind.plain() {
            OpKind::Id(id) => LaneOpKind::Id { to, id: *id },
            OpKind::ArrayAddress(array) => LaneOpKind::ArrayAddress { to, array: *array },
            OpKind::Unary(unary, a) => LaneOpKind::Unary {
                op: *unary,
                ty: kernel.ty(*a),
                to,
                a: slot(*a),
            },
            OpKind::Binary(binary, a, b) => LaneOpKind::Binary {
                op: *binary,
                ty: kernel.ty(*a),
                to,
                a: slot(*a),
                b: slot(*b),
            },
            OpKind::NoWrap(no_wrap, wrap, a, b) => LaneOpKind::NoWrap {
                op: *no_wrap,
                wrap: *wrap,
                ty: kernel.ty(*a),
                to,
                a: slot(*a),
                b: slot(*b),
            },
            OpKind::Fma(a, b, c) => LaneOpKind::Fma {
                ty: into,
                to,
                a: slot(*a),
                b: slot(*b),
                c: slot(*c),
            },
            OpKind::Compare(compare, a, b) => LaneOpKind::Compare {
                op: *compare,
                ty: kernel.ty(*a),
                to,
                a: slot(*a),
                b: slot(*b),
            },
            OpKind::Select(cond, a, b) => LaneOpKind::Select {
                to,
                cond: slot(*cond),
                a: slot(*a),
                b: slot(*b),
            },
            OpKind::Convert(convert, a) => LaneOpKind::Convert {
                op: *convert,
                from: kernel.ty(*a),
                into,
                to,
                a: slot(*a),
            },
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } => LaneOpKind::Address {
                to,
                base: slot(*base),
                index: slot(*index),
                scale: *scale,
                offset: *offset,
            },
            OpKind::Load { ptr, id, cache } => LaneOpKind::Load {
                to: SlotList::new(op.results.iter().map(|&value| slot(value))),
                ty: into,
                space: space(*ptr),
                ptr: slot(*ptr),
                id: *id,
                block: *cache == CacheUse::Block,
                volatile: *cache == CacheUse::Volatile,
            },
            OpKind::Store { ptr, values, cache } => LaneOpKind::Store {
                values: SlotList::new(values.iter().map(|&value| slot(value))),
                ty: values.first().map_or(Type::Bool, |&value| kernel.ty(value)),
                space: space(*ptr),
                ptr: slot(*ptr),
                block: *cache == CacheUse::Block,
                volatile: *cache == CacheUse::Volatile,
            },
            OpKind::Copy {
                to: target,
                from,
                bytes,
                id,
            } => LaneOpKind::Copy {
                to,
                target: slot(*target),
                source: slot(*from),
                bytes: *bytes,
                id: *id,
            },
            OpKind::Join(tokens) => LaneOpKind::Join {
                to,
                tokens: tokens.iter().map(|&token| slot(token)).collect(),
            },
            OpKind::Wait(token) => LaneOpKind::Wait { token: slot(*token) },
            OpKind::Prefetch {
                ptr,
                bytes,
                count,
                hint,
                scope,
                id,
                ..
            } => LaneOpKind::Prefetch {
                ptr: slot(*ptr),
                bytes: *bytes,
                count: count.map(&mut slot),
                space: space(*ptr),
                level: hint.level,
                scope: *scope,
                id: *id,
            },
            OpKind::Atomic {
                op: atomic,
                ptr,
                values,
                order,
                scope,
            } => LaneOpKind::Atomic {
                op: *atomic,
                to: atomic.has_result().then_some(to),
                ty: values.first().map_or(into, |&value| kernel.ty(value)),
                space: space(*ptr),
                ptr: slot(*ptr),
                values: SlotList::new(values.iter().map(|&value| slot(value))),
                order: *order,
                scope: *scope,
            },
            OpKind::Fence(order, scope) => LaneOpKind::Fence {
                order: *order,
                scope: *scope,
            },
            OpKind::Shuffle {
                op: shuffle,
                value,
                by,
                mask,
            } => LaneOpKind::Shuffle {
                op: *shuffle,
                ty: into,
                to,
                value: slot(*value),
                by: slot(*by),
                mask: mask.map(slot),
            },
            OpKind::Vote(vote, value, mask) => LaneOpKind::Vote {
                op: *vote,
                to,
                value: slot(*value),
                mask: mask.map(slot),
            },
            OpKind::Active => LaneOpKind::Active { to },
            OpKind::Meet(Meeting::SubGroup(mask)) => LaneOpKind::MeetSubGroup { mask: mask.map(slot) },
            OpKind::Print { text, values } => LaneOpKind::Print {
                text: text.as_str().into(),
                values: values
                    .iter()
                    .map(|&value| (kernel.ty(value), slot(value)))
                    .collect(),
            },
            OpKind::Barrier
            | OpKind::Meet(Meeting::Named { .. })
            | OpKind::Block { .. }
            | OpKind::If { .. }
            | OpKind::Loop { .. }
            | OpKind::Break(..)
            | OpKind::Continue(..)
            | OpKind::Depend(_)
            | OpKind::Ruled(..)
            | OpKind::Return
            | OpKind::Trap => return None,
        };
        Some(LaneOp {
            // Whether something may be fused is for the back ends.
            rule: op.kind.rule().uncontracted(),
            kind,
            place: op.place,
        })
    }

    /// The register with the mask of those who take part, of an operation that has one.
    pub fn party(&self) -> Option<Slot> {
        match self.kind {
            LaneOpKind::Shuffle { mask, .. }
            | LaneOpKind::Vote { mask, .. }
            | LaneOpKind::MeetSubGroup { mask } => mask,
            _ => None,
        }
    }

    /// The registers that it writes.
    pub fn results(&self) -> SlotList {
        let one = match &self.kind {
            LaneOpKind::Load { to, .. } => return *to,
            LaneOpKind::Atomic { to, .. } => *to,
            LaneOpKind::Store { .. }
            | LaneOpKind::Wait { .. }
            | LaneOpKind::Prefetch { .. }
            | LaneOpKind::Fence { .. }
            | LaneOpKind::MeetSubGroup { .. }
            | LaneOpKind::Print { .. } => None,
            LaneOpKind::Id { to, .. }
            | LaneOpKind::ArrayAddress { to, .. }
            | LaneOpKind::Unary { to, .. }
            | LaneOpKind::Binary { to, .. }
            | LaneOpKind::NoWrap { to, .. }
            | LaneOpKind::Fma { to, .. }
            | LaneOpKind::Compare { to, .. }
            | LaneOpKind::Select { to, .. }
            | LaneOpKind::Convert { to, .. }
            | LaneOpKind::Address { to, .. }
            | LaneOpKind::Copy { to, .. }
            | LaneOpKind::Join { to, .. }
            | LaneOpKind::Shuffle { to, .. }
            | LaneOpKind::Vote { to, .. }
            | LaneOpKind::Active { to } => Some(*to),
        };
        SlotList::new(one.into_iter())
    }

    /// Calls `map` on each slot that the operation reads or writes.
    pub fn map_slots(&mut self, mut map: impl FnMut(&mut Slot)) {
        match &mut self.kind {
            LaneOpKind::Id { to, .. } | LaneOpKind::ArrayAddress { to, .. } | LaneOpKind::Active { to } => {
                map(to);
            }
            LaneOpKind::Unary { to, a, .. } | LaneOpKind::Convert { to, a, .. } => {
                map(to);
                map(a);
            }
            LaneOpKind::Binary { to, a, b, .. }
            | LaneOpKind::NoWrap { to, a, b, .. }
            | LaneOpKind::Compare { to, a, b, .. }
            | LaneOpKind::Address {
                to,
                base: a,
                index: b,
                ..
            }
            | LaneOpKind::Copy {
                to,
                target: a,
                source: b,
                ..
            } => {
                map(to);
                map(a);
                map(b);
            }
            LaneOpKind::Fma { to, a, b, c, .. }
            | LaneOpKind::Select {
                to,
                cond: a,
                a: b,
                b: c,
            } => {
                map(to);
                map(a);
                map(b);
                map(c);
            }
            LaneOpKind::Load { to: list, ptr, .. }
            | LaneOpKind::Store {
                values: list, ptr, ..
            } => {
                list.slots[..usize::from(list.length)]
                    .iter_mut()
                    .for_each(&mut map);
                map(ptr);
            }
            LaneOpKind::Atomic { to, ptr, values, .. } => {
                values.slots[..usize::from(values.length)]
                    .iter_mut()
                    .for_each(&mut map);
                map(ptr);
                to.as_mut().map(map);
            }
            LaneOpKind::Fence { .. } => {}
            LaneOpKind::MeetSubGroup { mask } => {
                mask.as_mut().map(map);
            }
            LaneOpKind::Print { values, .. } => values.iter_mut().for_each(|(_, slot)| map(slot)),
            LaneOpKind::Shuffle {
                to, value, by, mask, ..
            } => {
                map(to);
                map(value);
                map(by);
                mask.as_mut().map(map);
            }
            LaneOpKind::Vote { to, value, mask, .. } => {
                map(to);
                map(value);
                mask.as_mut().map(map);
            }
            LaneOpKind::Join { to, tokens } => {
                map(to);
                tokens.iter_mut().for_each(map);
            }
            LaneOpKind::Wait { token: slot } => map(slot),
            LaneOpKind::Prefetch { ptr, count, .. } => {
                map(ptr);
                count.as_mut().map(map);
            }
        }
    }
}
